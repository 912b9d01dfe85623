"""Make facts of timetable.dl: stops on lines, with a train each hour.

python3 make.py FOLDER [--size STOPS] [--seed N]
"""

from __future__ import annotations

import random

from everlog.programs.fact_scripts import Facts, main


def make(chance: random.Random, size: int) -> Facts:
    """Lines of up to eight stops, which meet; each runs hourly in both directions."""
    stops = [f"stop {i:04}" for i in range(1, size + 1)]
    lines = [chance.sample(stops, min(size, chance.randrange(2, 9))) for _ in range(max(1, size // 3))]
    rides: list[tuple[str | int, ...]] = []
    for number, line in enumerate([*lines, *[line[::-1] for line in lines]]):
        minutes = [chance.randrange(4, 20) for _ in line]
        for hour in range(5, 23):
            time = 60 * hour + number * 7 % 60
            for x, y, takes in zip(line, line[1:], minutes, strict=False):
                rides.append((number * 100 + hour, x, y, time, time + takes))
                time += takes + 1
    late = [(train, chance.randrange(1, 40)) for train in {ride[0] for ride in rides} if chance.random() < 0.05]
    travellers = [
        (f"traveller {i}", chance.choice(stops), 60 * chance.randrange(5, 20)) for i in range(1 + size // 20)
    ]
    return {"ride": rides, "late": late, "traveller": travellers}


if __name__ == "__main__":
    main("Make a timetable with some trains that are late.", "stops", 120, make, smallest=2)
