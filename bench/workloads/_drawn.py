"""Facts drawn one by one, as updates draw them, until there are enough."""

from __future__ import annotations

import random
from collections.abc import Callable

from everlog.bench.harness.workload import Facts, Row


def drawn(relations: str, size: int, seed: int, fresh: Callable[[random.Random, int], tuple[str, Row]]) -> Facts:
    """`size` different facts, in the order drawn.

    >>> drawn("e", 3, 1, lambda draw, size: ("e", (draw.randrange(size),)))
    {'e': [(0,), (2,), (1,)]}
    """
    draw = random.Random(seed)
    out: dict[str, dict[Row, None]] = {name: {} for name in relations.split()}
    left = size
    while left:
        relation, row = fresh(draw, size)
        if row not in out[relation]:
            out[relation][row] = None
            left -= 1
    return {name: list(rows) for name, rows in out.items()}
