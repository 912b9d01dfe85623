"""A skewed 3-path: a row in ten of r and of t is at one of four hubs.

    q(a, b, c, d) :- r(a, b), s(b, c), t(c, d)

A row of s from a hub to a hub would change a product of many a and many d; there are none.  A few
rows of s have a hub at one end.  The hostile stream toggles rows of s from a hub of r to values
that t does not have: they derive nothing, but a system that joins r and s first makes many rows in
vain.
"""

from __future__ import annotations

import random

from everlog.bench.harness.workload import Facts, Promise, Row, Workload
from everlog.bench.workloads._drawn import drawn

PROGRAM = """.decl r(a:number, b:number)
.decl s(b:number, c:number)
.decl t(c:number, d:number)
.input r, s, t
.decl q(a:number, b:number, c:number, d:number)
.output q
q(a, b, c, d) :- r(a, b), s(b, c), t(c, d).
"""

HUBS = 4


def outer(draw: random.Random, size: int) -> int:
    """A hub in one row of ten, else another value, which has few rows."""
    return draw.randrange(HUBS) if draw.random() < 0.1 else HUBS + draw.randrange(size // 5)


def fresh(draw: random.Random, size: int) -> tuple[str, Row]:
    relation = draw.choice("rst")
    end = draw.randrange(size)
    match relation:
        case "r":
            return "r", (end, outer(draw, size))
        case "t":  # t has other hubs than r
            return "t", (10 * size - outer(draw, size), end)
        case _:
            b, c = HUBS + draw.randrange(size // 5), HUBS + draw.randrange(size // 5)
            match draw.random():
                case chance if chance < 0.001:
                    b = draw.randrange(HUBS)
                case chance if chance < 0.002:
                    c = draw.randrange(HUBS)
            return "s", (b, 10 * size - c)


def hub_rows(facts: Facts) -> list[tuple[str, Row]]:
    """Rows of s from a hub of r to a value that t lacks: they derive nothing."""
    draw = random.Random(27)
    here = {c for c, _ in facts["t"]}
    out: list[tuple[str, Row]] = []
    while len(out) < 20:
        c = draw.randrange(10**9, 2 * 10**9)
        if c not in here:
            out.append(("s", (draw.randrange(HUBS), c)))
    return out


WORKLOAD = Workload(
    name="three_path",
    query="three_path",
    title="3-path, skewed",
    program=PROGRAM,
    answers=("q",),
    make=lambda size: drawn("r s t", size, 26, fresh),
    describe=lambda size: f"{size} rows in r, s, t",
    small=300,
    large=300_000,
    growth=(18_750, 37_500, 75_000, 150_000),
    fresh=fresh,
    hubs=hub_rows,
    steps=5_000,
    static_promise=Promise(1, "acyclic: rows and answers"),
    update_promise=Promise(0.5, "Õ(D^(ŵ−1)) amortized", amortized=True),
)
