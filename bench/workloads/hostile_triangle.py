"""The triangle with two hubs, each with half of all neighbours, none in common.

Edges of r between hubs are toggled, and half of the four are present at any time: first-order delta
visits the neighbours of a hub each time, and finds no answer.
"""

from __future__ import annotations

from everlog.bench.harness.workload import Facts, Promise, Row, Workload

PROGRAM = """.decl r(a:number, b:number)
.decl s(b:number, c:number)
.decl t(a:number, c:number)
.input r, s, t
.decl q(a:number, b:number, c:number)
.output q
q(a, b, c) :- r(a, b), s(b, c), t(a, c).
"""

HUBS = 2


def make(tuples: int) -> Facts:
    half = tuples // 2 // HUBS
    return {
        "r": [(0, 1), (1, 0)],
        "s": [(hub, 2 * n) for hub in range(HUBS) for n in range(half)],
        "t": [(hub, 2 * n + 1) for hub in range(HUBS) for n in range(half)],
    }


def hub_rows(facts: Facts) -> list[tuple[str, Row]]:
    return [("r", (a, b)) for a in range(HUBS) for b in range(HUBS)]


WORKLOAD = Workload(
    name="hostile_triangle",
    query="three_triangles",
    title="triangle, hostile hubs",
    program=PROGRAM,
    answers=("q",),
    make=make,
    describe=lambda tuples: f"{tuples} rows, two hubs",
    small=2_000,
    large=1_000_000,
    growth=(31_250, 62_500, 125_000, 250_000),
    hubs=hub_rows,
    streams=("hubs",),
    steps=20_000,
    budget=40.0,  # the first seconds pay for another strategy
    static_promise=Promise(1.5, "the AGM bound, N^3/2"),
    update_promise=Promise(0.5, "Õ(D^1/2) amortized", amortized=True),
)
