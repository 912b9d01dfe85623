"""A borrow check in the manner of Polonius, on generated control-flow graphs.

A function is a control-flow graph: straight lines, branches that meet again, loops.  Variables are
references; at points of the graph a reference is taken (a loan is issued into its origin), one
reference is assigned to another (an origin flows into another), a variable is overwritten (loans
are killed), and borrowed things are changed, which is an error while a loan is live.  An origin is
live from its assignment to its last use.
"""

from __future__ import annotations

import random

from everlog.bench.harness.workload import Facts, Promise, Row, Workload

PROGRAM = """.decl next(p:number, q:number)                    // control flow
.decl subset_at(a:number, b:number, p:number)      // loans of a flow into b, stated at p
.decl issued(o:number, l:number, p:number)         // a loan is issued into an origin
.decl killed(l:number, p:number)
.decl invalidated(l:number, p:number)              // what was lent is changed
.decl live(o:number, p:number)                     // the origin may be used later
.input next, subset_at, issued, killed, invalidated, live
.decl subset(a:number, b:number, p:number)
.decl holds(o:number, l:number, p:number)          // an origin may hold a loan
.decl loan_live(l:number, p:number)
.decl error(l:number, p:number)
.output holds, error
subset(a, b, p) :- subset_at(a, b, p).
subset(a, c, p) :- subset(a, b, p), subset(b, c, p), a != c.
subset(a, b, q) :- subset(a, b, p), next(p, q), live(a, q), live(b, q).
holds(o, l, p) :- issued(o, l, p).
holds(b, l, p) :- holds(a, l, p), subset(a, b, p).
holds(o, l, q) :- holds(o, l, p), next(p, q), !killed(l, p), live(o, q).
loan_live(l, p) :- holds(o, l, p), live(o, p).
error(l, p) :- invalidated(l, p), loan_live(l, p).
"""

POINTS = 60  # of a function
VARIABLES = 6


def functions(number: int) -> Facts:
    draw = random.Random(22)
    out: dict[str, set[Row]] = {
        name: set() for name in ("next", "subset_at", "issued", "killed", "invalidated", "live")
    }
    for function in range(number):
        first, loans = function * POINTS, function * POINTS
        origins = range(function * VARIABLES, (function + 1) * VARIABLES)
        last = first + POINTS - 1
        out["next"] |= {(p, p + 1) for p in range(first, last)}
        for _ in range(4):  # a branch, or the back edge of a loop
            p, q = sorted(draw.sample(range(first, last + 1), 2))
            out["next"].add((p, q) if draw.random() < 0.6 else (q, p))
        for o in origins:
            begin = draw.randrange(first, last)
            out["live"] |= {(o, p) for p in range(begin, min(last, begin + draw.randrange(8, 40)) + 1)}
        for loan in range(loans, loans + 8):
            p = draw.randrange(first, last)
            out["issued"].add((draw.choice(origins), loan, p))
            out["invalidated"].add((loan, draw.randrange(first, last)))
            if draw.random() < 0.4:
                out["killed"].add((loan, draw.randrange(first, last)))
        for _ in range(8):
            a, b = draw.sample(origins, 2)
            out["subset_at"].add((a, b, draw.randrange(first, last)))
    return {name: sorted(rows) for name, rows in out.items()}


WORKLOAD = Workload(
    name="borrow_check",
    query="borrow_check",
    title="borrow check (Polonius-like)",
    program=PROGRAM,
    answers=("holds", "error"),
    make=functions,
    describe=lambda number: f"{number} functions of {POINTS} points",
    small=4,
    large=2000,
    growth=(125, 250, 500, 1000),
    steps=2000,
    static_promise=Promise(1, "a function is analysed by itself"),
    update_promise=Promise(0, "follows the facts whose proof breaks: those of one function"),
)
