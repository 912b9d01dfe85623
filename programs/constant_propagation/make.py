"""Make facts of constant_propagation.dl: straight code with branches and loops.

python3 make.py FOLDER [--size PLACES] [--seed N]
"""

from __future__ import annotations

import itertools
import random

from everlog.programs.fact_scripts import Facts, main


def make(chance: random.Random, size: int) -> Facts:
    """Each place leads to the next one; one in eight also jumps ahead, one in sixteen back."""
    places = [f"line {i:05}" for i in range(1, size + 1)]
    variables = [f"v{i}" for i in range(1, 4 + size // 50)]
    flow = list(itertools.pairwise(places))
    for i, place in enumerate(places):
        if chance.random() < 1 / 8:
            flow.append((place, places[min(size - 1, i + chance.randrange(2, 12))]))
        if chance.random() < 1 / 16:
            flow.append((place, places[max(0, i - chance.randrange(2, 20))]))
    sets: list[tuple[str | int, ...]] = [(places[0], name, chance.randrange(10)) for name in variables]
    adds: list[tuple[str | int, ...]] = []
    for place in places[1:]:
        if chance.random() < 0.2:
            sets.append((place, chance.choice(variables), chance.randrange(10)))
        elif chance.random() < 0.2:
            adds.append((place, chance.choice(variables), chance.choice(variables), chance.choice([-1, 1, 2])))
    return {"flow": flow, "sets": sets, "adds": adds, "reads": [(places[-1], variables[0])]}


if __name__ == "__main__":
    main("Make the control flow of a function.", "places", 200, make, smallest=3)
