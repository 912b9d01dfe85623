"""Make facts of cheapest_build.dl: items in layers, each built of items of lower layers.

python3 make.py FOLDER [--size ITEMS] [--seed N]
"""

from __future__ import annotations

import random

from everlog.programs.fact_scripts import Facts, main


def make(chance: random.Random, size: int) -> Facts:
    """The first tenth of the items is raw; others are built, and half of them are sold, too."""
    items = [f"item {i:05}" for i in range(1, size + 1)]
    raw = max(1, size // 10)
    parts: list[tuple[str | int, ...]] = []
    for i, item in enumerate(items[raw:], raw):
        for other in chance.sample(items[:i], min(i, chance.randrange(1, 6))):
            parts.append((item, other, chance.randrange(1, 5)))
    prices = [
        (item, f"seller {chance.randrange(20)}", chance.randrange(5, 50) * (1 + i // raw))
        for i, item in enumerate(items)
        for _ in range(1 if i < raw else chance.randrange(2))
    ]
    return {"price": prices, "part": parts, "work": [(item, chance.randrange(1, 30)) for item in items[raw:]]}


if __name__ == "__main__":
    main("Make items, their parts and prices.", "items", 400, make, smallest=2)
