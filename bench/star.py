"""A star schema and four million payments: sums over joins, beside DuckDB on one thread.

    python -P bench/star.py [--small] [--only NAME] [--pure]

Printed are the CPU seconds of whole commands, those of a command that only reads the same files
and counts their rows, and the difference; then the same for DuckDB, if it is installed, and the
ratio of the whole commands.  Relations are sets, which DuckDB is told when it reads them.  Each sum
of both sides is compared with one that plain Python computes while it makes the data.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from random import Random
from resource import RUSAGE_CHILDREN, getrusage
from typing import NamedTuple

Rows = dict[str, list[tuple[object, ...]]]
Sums = dict[str, set[tuple[str, ...]]]  # relation → its rows, as a file has them


class Case(NamedTuple):
    """Declarations and rules, the same in SQL, and what makes data together with the sums."""

    inputs: str
    rules: str
    sql: dict[str, str]
    data: Callable[[int], tuple[Rows, Sums]]
    size: int
    small: int


STAR = """
.decl nation(n:number, name:symbol)
.decl customer(c:number, n:number)
.decl supplier(s:number, n:number)
.decl orders(o:number, c:number, year:number)
.decl line(o:number, i:number, s:number, price:number)
.input nation, customer, supplier, orders, line
"""

BY_NATION = """
.decl by_nation(name:symbol, total:number)
by_nation(name, t) :- nation(n, name),
  t = sum p : { customer(c, n), orders(o, c, y), line(o, i, s, p), supplier(s, n) }.
.output by_nation
"""

IN_HEAD = """
.decl sold(name:symbol, total:number)
sold(name, sum(p)) :-
  nation(n, name), customer(c, n), orders(o, c, y), line(o, i, s, p), supplier(s, n).
.output sold
"""

BY_ORDER = """
.decl by_order(o:number, total:number)
by_order(o, t) :- orders(o, _, _), t = sum p : { line(o, i, _, p) }.
.output by_order
"""

PAYMENTS = """
.decl pay(a:number, b:number, x:number)
.decl home(a:number, c:number)
.decl pair(c:number, d:number)
.input pay, home, pair
"""

ABROAD = """
.decl abroad(c:number, d:number, t:number)
abroad(c, d, t) :- pair(c, d), t = sum x : { pay(a, b, x), x > 950000, home(a, c), home(b, d) }.
.output abroad
"""


# The same in SQL.
_JOINED = """select name, sum(price)::hugeint as total from nation join customer using (n)
  join orders using (c) join line using (o) join supplier using (s, n) group by name"""
SQL_BY_NATION = {
    "by_nation": f"select name, coalesce(total, 0) from nation left join ({_JOINED}) using (name)",
}
SQL_IN_HEAD = {"sold": _JOINED}
SQL_BY_ORDER = {
    "by_order": "select o, coalesce(sum(price), 0)::hugeint from orders left join line using (o) group by o"
}
SQL_ABROAD = {
    "abroad": """select c, d, coalesce(t, 0) from pair left join (
  select one.c, other.c as d, sum(x)::hugeint as t from pay
  join home one on pay.a = one.a join home other on pay.b = other.a
  where x > 950000 group by all) using (c, d)"""
}


def star(size: int) -> tuple[Rows, Sums]:
    """Orders of four lines each; `size` lines."""
    chance, nations = Random(1), 25
    home = [chance.randrange(nations) for _ in range(size // 40)]
    made = [chance.randrange(nations) for _ in range(size // 600)]
    buyer = [chance.randrange(len(home)) for _ in range(size // 4)]
    lines, by_order, by_nation = [], [0] * len(buyer), [0] * nations
    for number in range(size):
        order, supplier, price = number // 4, chance.randrange(len(made)), chance.randrange(1, 100_000)
        lines.append((order, number % 4, supplier, price))
        by_order[order] += price
        if home[buyer[order]] == made[supplier]:
            by_nation[made[supplier]] += price
    rows: Rows = {
        "nation": [(n, f"nation {n}") for n in range(nations)],
        "customer": list(enumerate(home)),
        "supplier": list(enumerate(made)),
        "orders": [(o, c, 1992 + o % 7) for o, c in enumerate(buyer)],
        "line": lines,
    }
    sums = {
        "by_nation": {(f"nation {n}", str(total)) for n, total in enumerate(by_nation)},
        "sold": {(f"nation {n}", str(total)) for n, total in enumerate(by_nation) if total},
        "by_order": {(str(o), str(total)) for o, total in enumerate(by_order)},
    }
    return rows, sums


def payments(size: int) -> tuple[Rows, Sums]:
    """Payments between accounts of 40 countries."""
    chance, countries = Random(2), 40
    home = [chance.randrange(countries) for _ in range(size // 10)]
    accounts = len(home)
    pick = chance.randrange
    pay = [(pick(accounts), pick(accounts), pick(1_000_000)) for _ in range(size)]
    totals: defaultdict[tuple[int, int], int] = defaultdict(int)
    for a, b, x in set(pay):
        if x > 950_000:
            totals[home[a], home[b]] += x
    rows: Rows = {
        "pay": pay,
        "home": list(enumerate(home)),
        "pair": [(c, d) for c in range(countries) for d in range(countries)],
    }
    every = ((c, d, totals[c, d]) for c in range(countries) for d in range(countries))
    return rows, {"abroad": {(str(c), str(d), str(t)) for c, d, t in every}}


CASES = {
    "sum by nation over five joins": Case(STAR, BY_NATION, SQL_BY_NATION, star, 600_000, 60_000),
    "the same, in the head": Case(STAR, IN_HEAD, SQL_IN_HEAD, star, 600_000, 60_000),
    "a sum by order": Case(STAR, BY_ORDER, SQL_BY_ORDER, star, 600_000, 60_000),
    "both sums": Case(STAR, BY_NATION + BY_ORDER, SQL_BY_NATION | SQL_BY_ORDER, star, 600_000, 60_000),
    "payments abroad": Case(PAYMENTS, ABROAD, SQL_ABROAD, payments, 4_000_000, 100_000),
}


def written(folder: Path, rows: Rows) -> None:
    for name, facts in rows.items():
        lines = ("\t".join(map(str, row)) for row in facts)
        (folder / f"{name}.facts").write_text("\n".join(lines) + "\n")


def seconds(command: list[str], pure: bool = False) -> float:
    """CPU seconds of a command."""
    before = getrusage(RUSAGE_CHILDREN)
    environment = os.environ | {"EVERLOG_PURE": "1" * pure}
    subprocess.run([sys.executable, "-P", *command], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def everlog(folder: Path, text: str, pure: bool) -> float:
    program = folder / "program.dl"
    program.write_text(text)
    return seconds(["-m", "everlog", "run", "-w", str(program), "-F", str(folder), "-D", str(folder)], pure)


DUCKDB = """
import sys, duckdb
database = duckdb.connect()
for statement in sys.argv[1:]:
    database.execute(statement)
"""


def duckdb(folder: Path, inputs: str, queries: dict[str, str]) -> float:
    statements = ["set threads = 1", "set enable_progress_bar = false"]
    for name, columns in columns_of(inputs).items():
        types = {column: {"number": "BIGINT", "symbol": "VARCHAR"}[kind] for column, kind in columns.items()}
        read = f"read_csv('{folder / name}.facts', delim='\t', header=false, columns={types})"
        statements.append(f"create table {name} as select distinct * from {read}")
    for name, query in queries.items():
        to = f"'{folder / name}.csv' (format csv, delimiter '\t', header false)"
        statements.append(f"copy ({query}) to {to}")
    return seconds(["-c", DUCKDB, *statements])


def columns_of(inputs: str) -> dict[str, dict[str, str]]:
    """The columns of each input, with their types."""
    found = {}
    for name in inputs.split(".input ")[1].strip().split(", "):
        declared = inputs.split(f".decl {name}(")[1].split(")")[0].split(", ")
        found[name] = dict(column.split(":") for column in declared)
    return found


def read_back(path: Path) -> set[tuple[str, ...]]:
    return {tuple(line.split("\t")) for line in path.read_text().splitlines()}


def counts_of(inputs: str) -> str:
    """Rules that count the rows of the inputs, so that all are read."""
    counted = ".decl rows(name:symbol, total:number)\n.output rows\n"
    for name, columns in columns_of(inputs).items():
        counted += f'rows("{name}", count : {{ {name}({", ".join("_" * len(columns))}) }}).\n'
    return counted


def check(folder: Path, case: Case, sums: Sums) -> None:
    """Compare what a side has written with the sums, and remove it."""
    for relation in case.sql:
        path = folder / f"{relation}.csv"
        assert read_back(path) == sums[relation], relation
        path.unlink()


def measured(folder: Path, cases: Iterable[tuple[str, Case]], small: bool, pure: bool) -> None:
    made: dict[tuple[Callable[[int], tuple[Rows, Sums]], int], Sums] = {}
    for name, case in cases:
        size = case.small if small else case.size
        if (case.data, size) not in made:
            rows, made[case.data, size] = case.data(size)
            written(folder, rows)
            del rows
        sums = made[case.data, size]
        reading = everlog(folder, case.inputs + counts_of(case.inputs), pure)
        whole = everlog(folder, case.inputs + case.rules, pure)
        check(folder, case, sums)
        figures = f"{whole:6.2f} s   reading {reading:5.2f}   beyond {whole - reading:5.2f}"
        if find_spec("duckdb") is not None:
            reading = duckdb(folder, case.inputs, {})
            other = duckdb(folder, case.inputs, case.sql)
            check(folder, case, sums)
            figures += f"   DuckDB {other:6.2f} s   reading {reading:5.2f}   beyond {other - reading:5.2f}"
            figures += f"   {whole / other:5.2f} x"
        print(f"{name:30} {size:9} rows   {figures}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a tenth of the data")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--pure", action="store_true", help="without the compiled machine")
    asked = parser.parse_args()
    cases = [(name, case) for name, case in CASES.items() if asked.only in name]
    with tempfile.TemporaryDirectory() as folder:
        measured(Path(folder), cases, asked.small, asked.pure)


if __name__ == "__main__":
    main()
