"""The transitive closure of a chain.

It needs as many rounds as there are edges; half of all pairs need the middle edge.
"""

from __future__ import annotations

from everlog.bench.harness.workload import Promise, Workload
from everlog.bench.workloads._closure import ANSWERS, FOLLOWS, PROGRAM, QUERY, quadratic

WORKLOAD = Workload(
    name="closure_chain",
    query=QUERY,
    title="closure, chain",
    program=PROGRAM,
    answers=ANSWERS,
    make=lambda nodes: {"edge": [(n, n + 1) for n in range(nodes - 1)]},
    describe=lambda nodes: f"{nodes} nodes",
    small=40,
    large=1500,
    growth=(150, 300, 600),
    steps=100,
    batch=10,
    small_steps=20,
    static_promise=quadratic("all pairs"),
    update_promise=Promise(2, FOLLOWS + ": a sixth of all pairs on average"),
)
