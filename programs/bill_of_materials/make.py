"""Make facts of bill_of_materials.dl: products, assemblies, parts, suppliers.

python3 make.py FOLDER [--size PARTS] [--seed N]
"""

from __future__ import annotations

import random

from everlog.programs.fact_scripts import Facts, Value, main

LEVELS = 4


def make(chance: random.Random, size: int) -> Facts:
    """Parts on levels: each is made of two to five lower parts; the lowest are bought."""
    levels = [
        [f"{'part' if level == 0 else f'assembly {level}'}.{i + 1:04}" for i in range(max(2, size >> level))]
        for level in range(LEVELS)
    ]
    has: list[tuple[Value, ...]] = []
    work: list[tuple[Value, ...]] = []
    for level in range(1, LEVELS):
        below = [*levels[level - 1], *chance.sample(levels[0], 2)]
        for whole in levels[level]:
            parts = chance.sample(sorted(set(below)), min(len(set(below)), chance.randrange(2, 6)))
            has += [(whole, part, chance.choice([1, 1, 2, 4, 8])) for part in parts]
            work.append((whole, chance.randrange(50, 900)))
    offers: list[tuple[Value, ...]] = [
        (part, f"supplier {supplier}", chance.randrange(5, 2000))
        for part in levels[0]
        for supplier in chance.sample(range(1, 9), chance.randrange(1, 4))
    ]
    return {"has": has, "work": work, "offer": offers}


if __name__ == "__main__":
    main("Make products, assemblies, parts and offers.", "parts that are bought", 100, make, smallest=2)
