"""The transitive closure of a random graph with two edges per node.

It has one large component with nearly all pairs.
"""

from __future__ import annotations

from random import Random

from everlog.bench._common import random_graph
from everlog.bench.harness.workload import Promise, Row, Workload
from everlog.bench.workloads._closure import ANSWERS, FOLLOWS, PROGRAM, QUERY, quadratic


def fresh(draw: Random, nodes: int) -> tuple[str, Row]:
    return "edge", (draw.randrange(nodes), draw.randrange(nodes))


WORKLOAD = Workload(
    name="closure_random",
    query=QUERY,
    title="closure, random graph",
    program=PROGRAM,
    answers=ANSWERS,
    make=lambda nodes: {"edge": list(random_graph(nodes, 2 * nodes))},
    describe=lambda nodes: f"{nodes} nodes, {2 * nodes} edges",
    small=30,
    large=2000,
    growth=(250, 500, 1000),
    fresh=fresh,
    steps=200,
    batch=100,
    static_promise=quadratic("pairs times edges of a node"),
    update_promise=Promise(2, FOLLOWS + ": at most all pairs"),
)
