"""Make facts of company_control.dl: groups of companies with cross-holdings.

python3 make.py FOLDER [--size COMPANIES] [--seed N]
"""

from __future__ import annotations

import random

from everlog.programs.fact_scripts import Facts, main


def make(chance: random.Random, size: int) -> Facts:
    """Each company has up to six owners, mostly older companies; some shares go back."""
    names = [f"company {i:04}" for i in range(1, size + 1)]
    rows: list[tuple[str | int, ...]] = []
    for i, name in enumerate(names):
        others = names[:i] if i > 3 and chance.random() < 0.9 else [other for other in names if other != name]
        owners = chance.sample(others, min(len(others), chance.randrange(1, 7)))
        left = 1000
        for owner in owners:
            part = min(left, chance.choice([510, 500, 400, 260, 250, 120, 50]))
            if part:
                rows.append((owner, name, part))
                left -= part
    return {"owns": rows}


if __name__ == "__main__":
    main("Make companies and who owns them.", "companies", 200, make, smallest=2)
