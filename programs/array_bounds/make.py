"""Make facts of array_bounds.dl: loops over arrays, some of them without a guard.

python3 make.py FOLDER [--size LOOPS] [--seed N]
"""

from __future__ import annotations

import random

from everlog.programs.fact_scripts import Facts, main


def make(chance: random.Random, size: int) -> Facts:
    """Each loop counts from a number, or from the end of another; one in six runs too far."""
    facts: dict[str, list[tuple[str | int, ...]]] = {
        name: [] for name in ("number_is", "input_is", "copy", "add", "less", "at_least", "access", "size")
    }
    for i in range(1, size + 1):
        array, length = f"array {i:04}", chance.randrange(4, 64)
        start, at, inside, after = (f"{part} {i:04}" for part in ("start", "i", "inside", "after"))
        facts["size"].append((array, length))
        if i > 1 and chance.random() < 0.3:
            facts["copy"].append((start, f"after {chance.randrange(1, i):04}"))
        elif chance.random() < 0.1:
            facts["input_is"].append((start,))
        else:
            facts["number_is"].append((start, chance.randrange(3)))
        facts["copy"] += [(at, start), (at, f"next {i:04}")]
        facts["less"].append((inside, at, length + (chance.random() < 1 / 6)))
        facts["add"].append((f"next {i:04}", inside, chance.choice([1, 1, 2])))
        facts["at_least"].append((after, at, length))
        facts["access"].append((10 * i, array, inside))
    return facts


if __name__ == "__main__":
    main("Make the loops of a function.", "loops", 50, make, smallest=2)
