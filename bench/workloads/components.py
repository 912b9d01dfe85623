"""Connected components: each node with the least node of its component.

Nodes form clusters of thirty with a few edges more than a tree needs, so that some edges can be
deleted without splitting a cluster.
"""

from __future__ import annotations

import random

from everlog.bench.harness.workload import Facts, Promise, Row, Workload

PROGRAM = """.decl edge(x:number, y:number)
.input edge
.decl connected(x:number, y:number)
.decl component(x:number, least:number)
.output component
connected(x, y) :- edge(x, y).
connected(y, x) :- edge(x, y).
connected(x, z) :- connected(x, y), edge(y, z).
connected(x, z) :- connected(x, y), edge(z, y).
component(x, l) :- connected(x, _), l = min y : { connected(x, y) }.
"""

CLUSTER = 30


def clusters(nodes: int) -> Facts:
    draw = random.Random(23)
    out: set[Row] = set()
    for first in range(0, nodes, CLUSTER):
        members = range(first, min(first + CLUSTER, nodes))
        for node in members[1:]:
            out.add((draw.randrange(first, node), node))
        for _ in range(len(members) // 4):
            x, y = draw.choice(members), draw.choice(members)
            if x < y:
                out.add((x, y))
    return {"edge": sorted(out)}


WORKLOAD = Workload(
    name="components",
    query="components",
    title="connected components",
    program=PROGRAM,
    answers=("component",),
    make=clusters,
    describe=lambda nodes: f"{nodes} nodes in clusters of {CLUSTER}",
    small=90,
    large=30000,
    growth=(1875, 3750, 7500, 15000),
    steps=2000,
    static_promise=Promise(1, "clusters do not grow; all pairs of a cluster are derived"),
    update_promise=Promise(0, "follows the facts whose proof breaks: those of one cluster"),
)
