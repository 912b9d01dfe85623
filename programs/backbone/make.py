"""Make facts of backbone.dl: cities, lines between neighbours, some of them down.

python3 make.py FOLDER [--size CITIES] [--seed N]
"""

from __future__ import annotations

import random

from everlog.programs.fact_scripts import Facts, main


def make(chance: random.Random, size: int) -> Facts:
    """Each city has about three lines, mostly to cities nearby."""
    names = [f"city {i:05}" for i in range(1, size + 1)]
    links = []
    for number in range(1, 3 * size // 2 + 1):
        x = chance.randrange(size)
        y = (x + chance.choice([1, 1, 2, 3, 7, size // 3 + 1])) % size
        if x != y:
            links.append((number, names[x], names[y], chance.choice([10, 40, 100, 400])))
    down = [(link[0],) for link in links if chance.random() < 0.05]
    return {"link": links, "down": down, "source": [(names[0],)]}


if __name__ == "__main__":
    main("Make a network of cities.", "cities", 300, make, smallest=2)
