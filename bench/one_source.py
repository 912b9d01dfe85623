"""What one node reaches by a million edges, beside a breadth-first search in Python.

The search walks over a dict of sets.  The query is evaluated on demand, from rows; the time to load
the rows into tables is measured by a query that reads nothing else, and is subtracted.

    python bench/one_source.py [EDGES]
"""

from __future__ import annotations

import random
import sys
from time import process_time

from everlog.core.evaluate.on_demand import answers, demand_of
from everlog.core.program import Atom, Column, Constant, Kind, Program, Row, Rule, Variable
from everlog.dsl.check import compile_text

CLOSURE = """.decl edge(x:number, y:number)  .input edge
.decl path(x:number, y:number)  .output path
path(x, y) :- edge(x, y).
"""
RULES = {
    "left-linear": "path(x, z) :- path(x, y), edge(y, z).",
    "right-linear": "path(x, z) :- edge(x, y), path(y, z).",
}


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


def asked(program: Program, relation: str, rows: list[Row]) -> tuple[float, set[object]]:
    """Seconds and answers of `relation(1, x)`."""
    body = Atom(relation, (Constant(1, Kind.NUMBER), Variable("x")))
    demand = demand_of(program, [Rule(Atom("?-", (Variable("x"),)), (body,))], (Column("x", Kind.NUMBER),))
    start = process_time()
    found = answers(program, demand, {"edge": rows})
    return process_time() - start, {row[0] for row in found.relation("?-")}


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    draw = random.Random(1)
    rows: list[Row] = [(draw.randrange(number // 4), draw.randrange(number // 4)) for _ in range(number)]
    edges: dict[int, set[int]] = {}
    for source, target in rows:
        edges.setdefault(int(source), set()).add(int(target))
    start = process_time()
    reached = search(edges, 1)
    searched = process_time() - start
    print(f"{number} edges, {len(reached)} nodes reached; breadth-first search {searched:.2f} s")
    for name, rule in RULES.items():
        program = compile_text(CLOSURE + rule)
        load, _ = asked(program, "edge", rows)
        whole, found = asked(program, "path", rows)
        assert found == reached
        ratio = (whole - load) / searched
        print(f"{name:<13} {whole:.2f} s, of which {load:.2f} s to load: {ratio:.2f} × the search without it")


if __name__ == "__main__":
    main()
