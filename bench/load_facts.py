"""The speed of reading and writing facts, against Python's csv module.

A ratio is our time over the csv module's, both from this run, interleaved, the minimum of each:
below 1 we are faster.  The csv side does what a user would write: `tuple(map(int, row))` per line
to read; to write, `csv.writer` over the sorted rows, since ours are sorted as well.  We intern the
symbols in `calls`, which costs time here and saves it in every join.

    python bench/load_facts.py [--lines 300000] [--repeat 5]
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from everlog.core.program import Column, Kind, Relation, Row
from everlog.files import read_facts, write_facts

NUMBERS = Relation("numbers", tuple(Column(name, Kind.NUMBER) for name in "xyz"))
CALLS = Relation("calls", (Column("from", Kind.SYMBOL), Column("to", Kind.SYMBOL), Column("n", Kind.NUMBER)))


def number_rows(lines: int, draw: random.Random) -> list[Row]:
    return [(draw.randrange(10**6), draw.randrange(-1000, 10**6), draw.randrange(10**9)) for _ in range(lines)]


def call_rows(lines: int, draw: random.Random) -> list[Row]:
    def method() -> str:
        return f"some.package.Class{draw.randrange(lines // 10 + 1)}/method"

    return [(method(), method(), draw.randrange(100)) for _ in range(lines)]


def csv_numbers(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [tuple(map(int, row)) for row in csv.reader(file, delimiter="\t")]


def csv_calls(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return [(row[0], row[1], int(row[2])) for row in csv.reader(file, delimiter="\t")]


def csv_write(path: Path, rows: list[Row]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(sorted(rows))


def compare(title: str, ours: Callable[[], object], theirs: Callable[[], object], repeat: int) -> None:
    best = [float("inf"), float("inf")]
    for _ in range(repeat):
        for side, run in enumerate((ours, theirs)):
            start = time.process_time()
            result = run()
            best[side] = min(best[side], time.process_time() - start)
            del result
    print(f"{title:<14} everlog {best[0]:.3f} s   csv {best[1]:.3f} s   ratio {best[0] / best[1]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--lines", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        run(Path(name), options.lines, options.repeat)


def run(directory: Path, lines: int, repeat: int) -> None:
    draw = random.Random(1)
    print(f"{lines} lines, the least of {repeat} runs, CPU time")
    cases: list[tuple[Relation, list[Row], Callable[[Path], list[Row]]]] = [
        (NUMBERS, number_rows(lines, draw), csv_numbers),
        (CALLS, call_rows(lines, draw), csv_calls),
    ]
    for relation, rows, csv_read in cases:
        read = {"filename": f"{relation.name}.facts"}
        path, other = directory / read["filename"], directory / "other.csv"
        write_facts(relation, rows, read, directory, sys.stdout)
        assert sorted(read_facts(relation, read, directory)) == sorted(csv_read(path)), relation
        compare(
            f"read  {relation.name}",
            partial(read_facts, relation, read, directory),
            partial(csv_read, path),
            repeat,
        )
        compare(
            f"write {relation.name}",
            partial(write_facts, relation, rows, {}, directory, sys.stdout),
            partial(csv_write, other, rows),
            repeat,
        )


if __name__ == "__main__":
    main()
