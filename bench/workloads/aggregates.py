"""Count, sum, least and greatest by group over a million rows."""

from __future__ import annotations

import random

from everlog.bench.harness.workload import Facts, Promise, Row, Workload

PROGRAM = """.decl sale(id:number, shop:number, amount:number)
.input sale
.decl total(shop:number, sales:number, amount:number, least:number, most:number)
.output total
total(shop, k, s, l, m) :-
    sale(_, shop, _),
    k = count : { sale(_, shop, _) },
    s = sum a : { sale(_, shop, a) },
    l = min a : { sale(_, shop, a) },
    m = max a : { sale(_, shop, a) }.
"""


def sale(draw: random.Random, number: int, size: int) -> Row:
    return number, draw.randrange(max(2, size // 100)), draw.randrange(1, 100_000)


def fresh(draw: random.Random, size: int) -> tuple[str, Row]:
    return "sale", sale(draw, size + draw.randrange(10**9), size)


def make(size: int) -> Facts:
    draw = random.Random(29)
    return {"sale": [sale(draw, number, size) for number in range(size)]}


WORKLOAD = Workload(
    name="aggregates",
    query="aggregates",
    title="count, sum, min, max by group",
    program=PROGRAM,
    answers=("total",),
    make=make,
    describe=lambda size: f"{size} rows in {size // 100} groups",
    small=300,
    large=1_000_000,
    growth=(31_250, 62_500, 125_000, 250_000),
    fresh=fresh,
    steps=50_000,
    static_promise=Promise(1, "rows"),
    update_promise=Promise(0, "O(1), and the logarithm of a group for min and max"),
)
