"""Negation: functions of a call graph that no root reaches.

Paths do not pass functions that are switched off.
"""

from __future__ import annotations

import random

from everlog.bench.harness.workload import Facts, Promise, Row, Workload

PROGRAM = """.decl function(f:number)
.decl call(f:number, g:number)
.decl root(f:number)
.decl off(f:number)
.input function, call, root, off
.decl reached(f:number)
.decl dead(f:number)
.output dead
reached(f) :- root(f), !off(f).
reached(g) :- reached(f), call(f, g), !off(g).
dead(f) :- function(f), !reached(f).
"""


def make(functions: int) -> Facts:
    """Calls to nearby later functions, so that chains are long; one in ten is far."""
    draw = random.Random(30)
    calls: set[Row] = set()
    for f in range(functions):
        for _ in range(2):
            near = (f + 1 + draw.randrange(20)) % functions
            calls.add((f, draw.randrange(functions) if draw.random() < 0.1 else near))
    chosen = draw.sample(range(functions), functions // 10 + functions // 50)
    return {
        "function": [(f,) for f in range(functions)],
        "call": sorted(calls),
        "root": sorted((f,) for f in chosen[: functions // 50]),
        "off": sorted((f,) for f in chosen[functions // 50 :]),
    }


WORKLOAD = Workload(
    name="negation",
    query="negation",
    title="negation (dead functions)",
    program=PROGRAM,
    answers=("dead",),
    make=make,
    describe=lambda functions: f"{functions} functions, {2 * functions} calls",
    small=100,
    large=200_000,
    growth=(12_500, 25_000, 50_000, 100_000),
    steps=5_000,
    static_promise=Promise(1, "functions and calls"),
    update_promise=Promise(1, "follows the facts whose proof breaks: at most all functions"),
)
