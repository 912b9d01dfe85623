"""Value flow with aliases, as in pointer analyses of C (CSPA).

Three relations are mutually recursive.  Statements are `assign(x, y)` (a value of y may flow to x)
and `dereference(p, v)` (v is what p points to: *p).  The data is a program of small functions:
assignments mostly within a function, some from a caller; each function dereferences a few of its
variables.  Functions call each other in short chains, so that flow stays local, as in real programs
after matching calls and returns.
"""

from __future__ import annotations

import random

from everlog.bench.harness.workload import Facts, Promise, Row, Workload

PROGRAM = """.decl assign(x:number, y:number)
.decl dereference(p:number, v:number)
.input assign, dereference
.decl value_flow(x:number, y:number)     // a value of y may come to x
.decl value_alias(x:number, y:number)    // x and y may hold the same value
.decl memory_alias(x:number, y:number)   // x and y may be the same place
.output value_flow, value_alias, memory_alias
value_flow(x, x) :- assign(x, _).
value_flow(y, y) :- assign(_, y).
value_flow(x, y) :- assign(x, y).
value_flow(x, z) :- value_flow(x, y), value_flow(y, z).
value_flow(x, z) :- assign(x, y), memory_alias(y, z).
memory_alias(x, x) :- assign(x, _).
memory_alias(y, y) :- assign(_, y).
memory_alias(v, w) :- dereference(p, v), value_alias(p, q), dereference(q, w).
value_alias(x, y) :- value_flow(x, z), value_flow(y, z).
value_alias(x, y) :- value_flow(x, z), memory_alias(z, w), value_flow(y, w).
"""

WIDTH = 12  # variables of a function
CHAIN = 8  # functions that call each other in a row


def statements(variables: int) -> Facts:
    draw = random.Random(21)
    assign: set[Row] = set()
    dereference: set[Row] = set()
    for function in range(variables // WIDTH):
        first = function * WIDTH
        for x in range(first + 1, first + WIDTH):  # a value comes from some earlier variable
            if draw.random() < 0.7:
                assign.add((x, draw.randrange(first, x)))
        if function % CHAIN:  # an argument
            assign.add((first, first - WIDTH + draw.randrange(WIDTH)))
        for _ in range(2):
            p, v = draw.sample(range(first, first + WIDTH), 2)
            dereference.add((p, v))
    return {"assign": sorted(assign), "dereference": sorted(dereference)}


WORKLOAD = Workload(
    name="value_flow",
    query="value_flow",
    title="value flow (CSPA-like)",
    program=PROGRAM,
    answers=("value_flow", "value_alias", "memory_alias"),
    make=statements,
    describe=lambda variables: f"{variables} variables in functions of {WIDTH}",
    small=48,
    large=6000,
    growth=(375, 750, 1500, 3000),
    steps=1000,
    batch=100,
    static_promise=Promise(1, "functions call in chains of bounded length, so pairs grow with variables"),
    update_promise=Promise(0, "follows the facts whose proof breaks: those of one chain of functions"),
)
