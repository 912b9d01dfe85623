"""Graphs that several workloads share, beside those in bench/_common.py."""

from __future__ import annotations

import bisect
import itertools
import random

Pair = tuple[int, int]


def power_law(nodes: int, edges: int, seed: int, exponent: float = 0.6) -> list[Pair]:
    """Edges from lower to higher numbers; node n has weight (n+1)^-exponent.

    >>> graph = power_law(50, 60, 1)
    >>> len(graph), all(x < y for x, y in graph)
    (60, True)
    """
    draw = Drawing(nodes, exponent)
    source = random.Random(seed)
    out: set[Pair] = set()
    while len(out) < edges:
        out.add(draw.edge(source))
    return sorted(out)


class Drawing:
    """Draws nodes by their weights."""

    def __init__(self, nodes: int, exponent: float = 0.6) -> None:
        self.sums = list(itertools.accumulate((n + 1) ** -exponent for n in range(nodes)))

    def node(self, source: random.Random) -> int:
        return bisect.bisect_left(self.sums, source.random() * self.sums[-1])

    def edge(self, source: random.Random) -> Pair:
        while True:
            x, y = self.node(source), self.node(source)
            if x != y:
                return (x, y) if x < y else (y, x)
