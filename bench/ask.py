"""Asking without storing: one source of a closure, and a path with ten thousand million answers.

The closure is declared `magic`, and its edges are loaded.  Then somebody subscribes to what one
node reaches: the time and the memory of that are compared with those of a breadth-first search in
Python over a dict of sets with the same edges.  While the subscription lasts, edges come and go
where it does not reach.

Then a path of three joins, through one node in the middle, is declared a view: load, memory, the
first answer, membership, the number of answers and updates, beside a database without the view.
Last, aggregates over a join whose rows meet in a few hubs: how an update grows with the hubs.

    python -P -m everlog.bench.ask [EDGES [ROWS]]
"""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from math import log
from multiprocessing import get_context
from time import perf_counter, process_time

from everlog import Database
from everlog.bench.harness.machine import megabytes

RULES = {
    "left-linear": "path(x, z) :- path(x, y), edge(y, z).",
    "right-linear": "path(x, z) :- edge(x, y), path(y, z).",
}


def program(rule: str) -> str:
    return f"""
        .decl edge(x:number, y:number)
        .decl path(x:number, y:number) magic
        path(x, y) :- edge(x, y).
        {rule}"""


def search(edges: dict[int, set[int]], start: int) -> set[int]:
    """What a node reaches, by breadth-first search."""
    seen: set[int] = set()
    todo = [start]
    while todo:
        found = []
        for node in todo:
            for target in edges.get(node, ()):
                if target not in seen:
                    seen.add(target)
                    found.append(target)
        todo = found
    return seen


def load(rule: str, edges: dict[int, set[int]]) -> Database:
    db = Database.from_text(program(rule))
    db.insert_all({"edge": [(x, y) for x, targets in edges.items() for y in targets]})
    return db


def outside(edges: dict[int, set[int]], draw: random.Random, number: int, nodes: int) -> list[tuple[int, int]]:
    """New edges in the half of the graph that the search does not see."""
    found = {(2 * draw.randrange(nodes) + 1, 2 * draw.randrange(nodes) + 1) for _ in range(number)}
    return [(x, y) for x, y in found if y not in edges.get(x, ())]


def one_source(name: str, db: Database, edges: dict[int, set[int]], draw: random.Random) -> None:
    """Ask what node 0 reaches: once, and for a while."""
    before = megabytes()
    start = process_time()
    first = list(db.query("path(0, x)"))
    once = process_time() - start
    searched, asked = [], []
    for _ in range(3):
        start = process_time()
        reached = search(edges, 0)
        searched.append(process_time() - start)
        start = process_time()
        found = list(db.query("path(0, x)"))
        asked.append(process_time() - start)
        assert {x for (x,) in found} == reached
        assert len(found) == len(first)
    ratio = min(asked) / min(searched)
    print(f"{name}: {len(reached)} nodes; search {min(searched):.2f} s, asked {min(asked):.2f} s: {ratio:.2f} ×")
    print(f"  the first time, when the edges are copied: {once:.2f} s, {megabytes() - before:.0f} MB more")
    before = megabytes()
    with db.subscribe("path(0, x)", lambda changes: None):
        print(f"  subscribed: {megabytes() - before:.0f} MB more")
        other = outside(edges, draw, 2000, len(edges) // 2)
        start = process_time()
        for edge in other:
            db.insert("edge", edge)
        for edge in other:
            db.delete("edge", edge)
        spent = (process_time() - start) / (2 * len(other))
        print(f"  an update outside of what is reached: {spent * 1e6:.1f} µs")


TABLES = ".decl r(a:number, b:number) .decl s(a:number, b:number) .decl t(a:number, b:number)"
VIEW = """
    .decl p(a:number, b:number, c:number, d:number)
    .view p
    p(a, b, c, d) :- r(a, b), s(b, c), t(c, d)."""


def path_database(text: str, rows: int) -> Database:
    """A database whose rows all meet in one node."""
    return _loaded(text, rows)[0]


def load_alone(text: str, rows: int) -> tuple[float, float]:
    """Seconds of its load, and megabytes, in a process of its own: no memory was freed before."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measured_load, text, rows).result()


def _measured_load(text: str, rows: int) -> tuple[float, float]:
    return _loaded(text, rows)[1:]


def _loaded(text: str, rows: int) -> tuple[Database, float, float]:
    given = {"r": [(n, 0) for n in range(rows)], "s": [(0, 0)], "t": [(0, n) for n in range(rows)]}
    db = Database.from_text(text)
    gc.collect()
    before, start = megabytes(), process_time()
    db.insert_all(given)
    seconds = process_time() - start
    del given
    gc.collect()
    return db, seconds, megabytes() - before


def each_microseconds(number: int, call: Callable[[int], object]) -> float:
    """The median of single calls."""
    times = []
    for n in range(number):
        start = perf_counter()
        call(n)
        times.append(perf_counter() - start)
    return sorted(times)[number // 2] * 1e6


def stored_not(rows: int) -> None:
    """A path of three joins as a view."""
    (bare_seconds, bare_memory), (seconds, memory) = (load_alone(text, rows) for text in (TABLES, TABLES + VIEW))
    bare, db = path_database(TABLES, rows), path_database(TABLES + VIEW, rows)
    print(f"3-path, {rows} rows on each side: {db.size('p')} answers")
    print(f"  load {seconds:.2f} s, of the tables alone {bare_seconds:.2f} s", end="; ")
    print(f"{memory:.0f} MB, of the tables alone {bare_memory:.0f} MB: {memory / bare_memory:.2f} ×")
    engine = db._engine
    first = each_microseconds(200, lambda n: next(iter(engine.stream("p"))))
    begun = each_microseconds(200, lambda n: next(iter(db.query("p(a, b, c, d)"))))
    print(f"  first answer {first:.1f} µs, by a query {begun:.1f} µs", end="; ")
    counted = each_microseconds(200, lambda n: engine.size("p"))
    there = each_microseconds(200, lambda n: (n, 0, 0, n) in engine.tables["p"])
    print(f"how many {counted:.1f} µs, is it there {there:.1f} µs")
    start = perf_counter()
    number = sum(1 for _ in islice(engine.stream("p"), 1_000_000))
    print(f"  {(perf_counter() - start) / number * 1e6:.2f} µs for each further answer")
    alone = each_microseconds(500, lambda n: bare.insert("r", (rows + n, 0)))
    update = each_microseconds(500, lambda n: db.insert("r", (rows + n, 0)))
    told = each_microseconds(100, lambda n: len(db.insert("r", (2 * rows + n, 0))["p"]))
    print(f"  an insert that adds {rows} answers {update:.1f} µs (tables alone {alone:.1f} µs)", end="; ")
    print(f"with their number {told:.1f} µs")


AGGREGATES = ("count", "sum x", "sum a * x", "sum x * x", "mean x", "min x", "max x")
HUBS = 3


def hub_rows(rows: int) -> dict[str, list[tuple[int, int]]]:
    """Two relations whose rows meet in a few hubs, and one that joins hubs with each other."""
    hubs = range(HUBS)
    return {
        "r": [(n, n % HUBS) for n in range(rows)],
        "s": [(b, c) for b in hubs for c in hubs] + [(n, n) for n in range(HUBS, rows)],
        "t": [(n % HUBS, n) for n in range(rows)],
    }


def update_seconds(what: str, rows: int, updates: int) -> float:
    """Of one update of a hub, with the aggregate settled in its view."""
    kind = "float" if what.startswith("mean") else "number"
    rule = f".decl q(v:{kind}) q(v) :- v = {what} : {{ r(a, b), s(b, c), t(c, x) }}."
    db = Database.from_text(f"{TABLES} {rule}")
    db.insert_all(hub_rows(rows))
    changed = [
        [("r", (rows + n, n % HUBS)), ("t", (n % HUBS, rows + n)), ("s", (n % HUBS, HUBS + n))]
        for n in range(updates)
    ]

    def play(part: list[list[tuple[str, tuple[int, int]]]]) -> None:
        for some in part:
            for relation, row in some:
                db.insert(relation, row)
            for relation, row in some:
                db.delete(relation, row)

    play(changed[: updates // 2])
    start = process_time()
    play(changed[updates // 2 :])
    return (process_time() - start) / (6 * (updates - updates // 2))


def over_hubs(most: int) -> None:
    """How an update of an aggregate over a join grows with the hubs."""
    sizes = [most // 16, most // 4, most]
    print(f"aggregates over r(a, b), s(b, c), t(c, x) with {HUBS} hubs; an update, {sizes} rows each")
    for what in AGGREGATES:
        spent = [update_seconds(what, size, 400) for size in sizes]
        slope = log(spent[-1] / spent[0]) / log(sizes[-1] / sizes[0])
        print(f"  {what:<10} {', '.join(f'{each * 1e6:.0f}' for each in spent)} µs: slope {slope:+.2f}")


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    draw = random.Random(1)
    before = megabytes()
    edges: dict[int, set[int]] = {}
    for _ in range(number):  # two halves without an edge between them: the search stays in one
        half = draw.randrange(2)
        source, target = (2 * draw.randrange(number // 8) + half for _ in "xy")
        edges.setdefault(source, set()).add(target)
    print(f"{number} edges as a dict of sets: {megabytes() - before:.0f} MB")
    for name, rule in RULES.items():
        before = megabytes()
        db = load(rule, edges)
        print(f"{name}, loaded: {megabytes() - before:.0f} MB")
        one_source(name, db, edges, draw)
        del db
    del edges
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 400_000
    for rows in (most // 4, most // 2, most):
        stored_not(rows)
    over_hubs(most // 4)


if __name__ == "__main__":
    main()
