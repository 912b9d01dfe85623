"""All triangles of a power-law graph, edges from lower to higher numbers."""

from __future__ import annotations

from functools import cache
from random import Random

from everlog.bench.harness.workload import Promise, Row, Workload
from everlog.bench.workloads._graphs import Drawing, power_law

PROGRAM = """.decl edge(x:number, y:number)
.input edge
.decl triangle(a:number, b:number, c:number)
.output triangle
triangle(a, b, c) :- edge(a, b), edge(b, c), edge(a, c).
"""

_drawing = cache(Drawing)


def fresh(draw: Random, edges: int) -> tuple[str, Row]:
    return "edge", _drawing(edges // 4).edge(draw)


WORKLOAD = Workload(
    name="triangles",
    query="triangles",
    title="triangles, power law",
    program=PROGRAM,
    answers=("triangle",),
    make=lambda edges: {"edge": list(power_law(edges // 4, edges, 24))},
    describe=lambda edges: f"{edges // 4} nodes, {edges} edges",
    small=400,
    large=200_000,
    growth=(12_500, 25_000, 50_000, 100_000),
    fresh=fresh,
    steps=10_000,
    static_promise=Promise(1.5, "the AGM bound, N^3/2"),
    update_promise=Promise(0.5, "Õ(D^1/2) amortized", amortized=True),
)
