"""A join and a count by group over a million rows, with single-row updates.

q(a, c) :- r(a, b), s(b, c).
n(a, k) :- q(a, _), k = count : { q(a, _) }.
"""

from __future__ import annotations

import random

from everlog.bench._common import JOIN_COUNT
from everlog.bench.harness.workload import Promise, Row, Workload
from everlog.bench.workloads._drawn import drawn


def fresh(draw: random.Random, size: int) -> tuple[str, Row]:
    """A row; on average a `b` has three rows in r and in s, an `a` ten in r."""
    half = size // 2
    outer, b = draw.randrange(half // 10), draw.randrange(half // 3)
    return ("r", (outer, b)) if draw.random() < 0.5 else ("s", (b, outer))


WORKLOAD = Workload(
    name="join_count",
    query="join_count",
    title="join and group-by count",
    program=JOIN_COUNT + ".input r, s\n.output q, n\n",
    answers=("q", "n"),
    make=lambda size: drawn("r s", size, 28, fresh),
    describe=lambda size: f"{size} rows in r and s",
    small=300,
    large=1_000_000,
    growth=(31_250, 62_500, 125_000, 250_000),
    fresh=fresh,
    steps=50_000,
    static_promise=Promise(1, "rows and answers"),
    update_promise=Promise(0, "the rows of a `b` are few"),
)
