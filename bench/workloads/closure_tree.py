"""The transitive closure of a complete binary tree, edges downwards."""

from __future__ import annotations

from everlog.bench.harness.workload import Promise, Workload
from everlog.bench.workloads._closure import ANSWERS, FOLLOWS, PROGRAM, QUERY

WORKLOAD = Workload(
    name="closure_tree",
    query=QUERY,
    title="closure, tree",
    program=PROGRAM,
    answers=ANSWERS,
    make=lambda nodes: {"edge": [((n - 1) // 2, n) for n in range(1, nodes)]},
    describe=lambda nodes: f"{nodes} nodes, two children each",
    small=63,
    large=2**16 - 1,
    growth=(2**11 - 1, 2**12 - 1, 2**13 - 1, 2**14 - 1),
    steps=2000,
    static_promise=Promise(1, "pairs: nodes times depth, so N log N"),
    update_promise=Promise(1, FOLLOWS + ": those above times those below, log² N on average"),
)
