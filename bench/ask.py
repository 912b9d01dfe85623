"""Asking without storing: one source of a closure on demand, beside a breadth-first search.

The closure is declared `magic`, and its edges are loaded.  Then somebody subscribes to what one
node reaches: the time and the memory of that are compared with those of a breadth-first search in
Python over a dict of sets with the same edges.  While the subscription lasts, edges come and go
where it does not reach.

    python -P bench/ask.py [EDGES]
"""

from __future__ import annotations

import random
import sys
from time import process_time

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


if __name__ == "__main__":
    main()
