"""Ranks, neighbours and rolling sums: loads and single updates, beside DuckDB's window functions.

    python -P bench/windows.py [--rows 10000] [--updates 200] [--values 1000000]

A load is compared with DuckDB's query over the same rows, an update with the load: DuckDB computes
its query anew.  Fewer values make more ties.  Times are CPU times of one run with one thread;
answers are compared.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable
from time import process_time
from typing import Any

import duckdb

from everlog import Database

FORMS = {
    "rank": (
        "n = count : { r(_, u), u > t }",
        "rank() OVER (ORDER BY t DESC) - 1",
    ),
    "first ten": (
        "n = count : { r(_, u), u > t }, n < 10",
        "rank() OVER (ORDER BY t DESC) - 1 AS n FROM r QUALIFY n < 10",
    ),
    "previous": (
        "n = max u : { r(_, u), u < t }",
        "max(t) OVER (ORDER BY t RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS n "
        "FROM r QUALIFY n IS NOT NULL",
    ),
    "running sum": ("n = sum x : { r(x, u), u <= t }", "sum(x) OVER (ORDER BY t)"),
    "rolling sum": (
        "n = sum x : { r(x, u), u <= t, u > t - 1000 }",
        "sum(x) OVER (ORDER BY t RANGE BETWEEN 999 PRECEDING AND CURRENT ROW)",
    ),
}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = process_time()
    found = work()
    return process_time() - start, found


def measured(name: str, asked: argparse.Namespace) -> None:
    chance = random.Random(1)
    body, window = FORMS[name]
    rows = [(x, chance.randrange(asked.values)) for x in range(asked.rows)]
    db = Database.from_text(
        f".decl r(x:number, t:number)  .decl w(x:number, n:number)  w(x, n) :- r(x, t), {body}."
    )
    load, _ = timed(lambda: db.insert("r", rows))
    more = [(asked.rows + x, chance.randrange(asked.values)) for x in range(asked.rows // 10)]
    at_once, _ = timed(lambda: db.insert("r", more))
    rows += more
    times = []
    for number in range(asked.updates):
        if number % 2:
            row = rows.pop(chance.randrange(len(rows)))
            times.append(timed(lambda row=row: db.delete("r", row))[0])
        else:
            rows.append((2 * asked.rows + number, chance.randrange(asked.values)))
            times.append(timed(lambda: db.insert("r", rows[-1]))[0])
    other = duckdb.connect(config={"threads": 1})
    other.execute("CREATE TABLE r (x BIGINT, t BIGINT)")
    other.register("given", _frame(rows))
    other.execute("INSERT INTO r SELECT * FROM given")
    query = f"SELECT x, {window}{'' if ' FROM ' in window else ' FROM r'}"
    beside, answer = timed(lambda: other.execute(query).fetchall())
    assert set(db["w"]) == {(x, int(n)) for x, n in answer}, name
    median, worst = statistics.median(times), max(times)
    print(f"{name}: load {load:.3f} s, {len(more)} more {at_once:.3f} s; DuckDB's query {beside:.3f} s")
    print(f"  an update: median {median * 1e6:.0f} µs, load/{load / median:.0f}; worst {worst * 1e3:.1f} ms")


def _frame(rows: list[tuple[int, int]]) -> Any:
    import pyarrow as pa

    return pa.table({"x": [x for x, _ in rows], "t": [t for _, t in rows]})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--values", type=int, default=1_000_000)
    asked = parser.parse_args()
    for name in FORMS:
        measured(name, asked)


if __name__ == "__main__":
    main()
