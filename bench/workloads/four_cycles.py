"""All directed 4-cycles of a power-law graph, edges in either direction."""

from __future__ import annotations

import random
from functools import cache

from everlog.bench.harness.workload import Promise, Row, Workload
from everlog.bench.workloads._drawn import drawn
from everlog.bench.workloads._graphs import Drawing

PROGRAM = """.decl edge(x:number, y:number)
.input edge
.decl cycle(a:number, b:number, c:number, d:number)
.output cycle
cycle(a, b, c, d) :- edge(a, b), edge(b, c), edge(c, d), edge(d, a), a < b, a < c, a < d.
"""

_drawing = cache(lambda nodes: Drawing(nodes, 0.4))


def fresh(draw: random.Random, edges: int) -> tuple[str, Row]:
    x, y = _drawing(edges // 4).edge(draw)
    return "edge", (x, y) if draw.random() < 0.5 else (y, x)


WORKLOAD = Workload(
    name="four_cycles",
    query="four_cycles",
    title="4-cycles, power law",
    program=PROGRAM,
    answers=("cycle",),
    make=lambda edges: drawn("edge", edges, 25, fresh),
    describe=lambda edges: f"{edges // 4} nodes, {edges} edges",
    small=300,
    large=50_000,
    growth=(3_125, 6_250, 12_500, 25_000),
    fresh=fresh,
    steps=5_000,
    static_promise=Promise(2, "the AGM bound, N^2"),
    update_promise=Promise(1, "Õ(D^(ŵ−1)) amortized, and as many as there are changes", amortized=True),
)
