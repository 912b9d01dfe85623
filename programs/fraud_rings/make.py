"""Make facts of fraud_rings.dl: a month of payments, most of them honest.

    python3 make.py FOLDER [--size PEOPLE] [--seed N]

Employers pay people, and people pay shops and landlords, so a few accounts have very many partners.
There is one ring for every twelve people: three or four of them pass a sum on, and each keeps a
little.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from everlog.programs.fact_scripts import Facts, Value, main

Payment = tuple[str, str, int, int]  # from, to, euros, day


def make(chance: random.Random, size: int) -> Facts:
    """The payments, numbered by day."""
    payments = sorted([*honest(chance, size), *rings(chance, size)], key=lambda p: (p[3], p))
    rows: list[tuple[Value, ...]] = [(number, *payment) for number, payment in enumerate(payments, start=1)]
    return {"payment": rows}


def honest(chance: random.Random, size: int) -> Iterator[Payment]:
    """Wages once, rent once, purchases now and then, and a gift among friends."""
    people = _people(size)
    for person in people:
        employer = f"firm {chance.randrange(max(1, size // 20)) + 1:02}"
        yield employer, person, chance.randrange(1800, 6000), 25
        yield person, f"landlord {chance.randrange(max(1, size // 15)) + 1:02}", chance.randrange(600, 2200), 1
        for _ in range(chance.randrange(1, 4)):
            shop = f"shop {min(chance.randrange(9), chance.randrange(9)) + 1:02}"
            yield person, shop, chance.randrange(20, 1500), chance.randrange(1, 31)
        if chance.random() < 0.3:
            yield person, chance.choice([p for p in people if p != person]), 50, chance.randrange(1, 31)


def rings(chance: random.Random, size: int) -> Iterator[Payment]:
    """Rings among a third of the people; each continues for up to two days."""
    crooks = chance.sample(_people(size), max(4, size // 3))
    for _ in range(max(1, size // 12)):
        members = chance.sample(crooks, chance.choice([3, 3, 4]))
        euros, day = chance.randrange(4000, 20000), chance.randrange(1, 25)
        for i, member in enumerate(members):
            yield member, members[(i + 1) % len(members)], euros, day
            euros, day = euros * chance.randrange(90, 100) // 100, day + chance.randrange(0, 3)


def _people(size: int) -> list[str]:
    return [f"person {i:03}" for i in range(1, size + 1)]


if __name__ == "__main__":
    main("Make a month of payments, some of them in rings.", "people", 60, make, smallest=4)
