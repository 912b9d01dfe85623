"""The transitive closure of a grid: many paths per pair, no cycles."""

from __future__ import annotations

from everlog.bench._common import grid
from everlog.bench.harness.workload import Promise, Workload
from everlog.bench.workloads._closure import ANSWERS, FOLLOWS, PROGRAM, QUERY, quadratic

WORKLOAD = Workload(
    name="closure_grid",
    query=QUERY,
    title="closure, grid",
    program=PROGRAM,
    answers=ANSWERS,
    make=lambda side: {"edge": list(grid(side))},
    describe=lambda side: f"{side} × {side} nodes, {2 * side * (side - 1)} edges",
    small=7,
    large=60,
    growth=(15, 21, 30, 42),
    steps=200,
    batch=100,
    static_promise=quadratic("pairs times edges of a node"),
    update_promise=Promise(2, FOLLOWS + ": at most all pairs"),
)
