"""A database that lives for long at a constant size, with symbols that are ever new.

Trees of names come and go, one fact per step: the oldest goes, and the next of a new tree comes.
No name comes twice.  The program has recursion of both kinds (carried column and not), negation and
an aggregate.  The table has a row for each part of the run: memory of the process, and CPU time of
the steps; memory and latency are flat if the last row is like those before it.  The state at the
end is compared with an evaluation from scratch.

    python -P bench/long_lived.py [--updates 1000000] [--facts 4000] [--parts 10] [--small]
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from time import process_time

sys.path.append(str(Path(__file__).parent))

from _common import fail

from everlog import Database, compile_text, evaluate

Row = tuple[str, str]

PROGRAM = """.decl parent(child:symbol, parent:symbol)
.input parent
.decl above(x:symbol, y:symbol)
above(x, y) :- parent(x, y).
above(x, z) :- above(x, y), parent(y, z).
.decl same(x:symbol, y:symbol)
same(x, y) :- parent(x, p), parent(y, p).
same(x, y) :- parent(x, p), parent(y, q), same(p, q).
.decl leaf(x:symbol)
leaf(x) :- parent(x, _), !parent(_, x).
.decl below(x:symbol, n:number)
below(x, n) :- parent(_, x), n = count : { above(_, x) }.
"""
CHILDREN = 3  # of each node of a tree, which has two levels of them


def facts() -> Iterator[Row]:
    """One tree after the other, without end."""
    number = 0
    while True:
        root = f"root {number}"
        for child in range(CHILDREN):
            yield f"{root}, child {child}", root
            for leaf in range(CHILDREN):
                yield f"{root}, child {child}, leaf {leaf}", f"{root}, child {child}"
        number += 1


def memory() -> float:
    """Resident memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def soak(database: Database, coming: Iterator[Row], there: deque[Row], steps: int) -> list[float]:
    """CPU seconds of each step: the oldest fact goes, or a new one comes, in turns."""
    seconds: list[float] = []
    for number in range(steps):
        start = process_time()
        if number % 2:
            row = next(coming)
            database.insert("parent", row)
            there.append(row)
        else:
            database.delete("parent", there.popleft())
        seconds.append(process_time() - start)
    return sorted(seconds)


def main() -> None:
    import argparse

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=1_000_000)
    parser.add_argument("--facts", type=int, default=4000)
    parser.add_argument("--parts", type=int, default=10)
    parser.add_argument("--small", action="store_true")
    asked = parser.parse_args()
    updates, size = (4000, 400) if asked.small else (asked.updates, asked.facts)
    program = compile_text(PROGRAM)
    coming = facts()
    there = deque(next(coming) for _ in range(size))
    database = Database(program, facts={"parent": list(there)})
    print("| updates | memory, MB | mean, µs | p50 | p99 | worst |")
    print("|---|---|---|---|---|---|")
    steps = updates // asked.parts
    for part in range(1, asked.parts + 1):
        seconds = [1e6 * one for one in soak(database, coming, there, steps)]
        shown = [sum(seconds) / steps, seconds[steps // 2], seconds[99 * steps // 100], seconds[-1]]
        cells = [f"{part * steps}", f"{memory():.0f}", *(f"{one:.0f}" for one in shown)]
        print(f"| {' | '.join(cells)} |", flush=True)
    expected = evaluate(program, {"parent": list(there)})
    for name in program.relations:
        if set(database.rows(name)) != set(expected.rows(name)):
            fail(f"{name} is not what an evaluation from scratch finds")


if __name__ == "__main__":
    main()
