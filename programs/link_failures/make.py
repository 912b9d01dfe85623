"""Make facts of link_failures.dl: a ring of cities with chords and failed lines.

python3 make.py FOLDER [--size CITIES] [--seed N]
"""

from __future__ import annotations

import random

from everlog.programs.fact_scripts import Facts, main


def make(chance: random.Random, size: int) -> Facts:
    """A ring of cities; every third has a line across; one line of twelve is down."""
    cities = [f"city {i:04}" for i in range(size)]
    pairs = {(i, (i + 1) % size) for i in range(size)}
    while len(pairs) < min(size + size // 3, size * (size - 1) // 2):
        a, b = sorted(chance.sample(range(size), 2))
        if (a, b) not in pairs and (b, a) not in pairs:
            pairs.add((a, b))
    lines = [(number, cities[a], cities[b]) for number, (a, b) in enumerate(sorted(pairs), start=1)]
    down = chance.sample(range(1, len(lines) + 1), max(1, len(lines) // 12))
    return {"line": lines, "failed": [(number,) for number in down], "dark": []}


if __name__ == "__main__":
    main("Make a network of cities and lines.", "cities", 24, make, smallest=4)
