"""Age generations and `auto` against first-order delta, on hostile and benign streams of the
triangle.

    hostile    two hubs, each with half of all tuples as neighbours; edges between them are toggled
    load       10^6 tuples at once: generations against the indexes of first-order delta
    benign     a random sparse graph with random updates; and a window that slides over edges
    engine     the benign and the hostile streams through `Database`, as a user has it

Times are of one process, both sides in one run.  `auto` is not told which stream comes; the updates
in which it moves are in its time.

    python -P bench/mvivm.py [--small] [--tuples 1000000] [--toggles 20000]
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import at_least, at_most, options

from everlog import Database
from everlog.core.classify.query import Query
from everlog.core.joins.join_strategies import view_of
from everlog.core.joins.view import Asked, JoinView

TRIANGLE = Query.of("R(a, b)", "S(b, c)", "T(a, c)")
Row = tuple[int, ...]
Update = tuple[int, Row, bool]
PROGRAM = """.decl r(a:number, b:number)
.decl s(b:number, c:number)
.decl t(a:number, c:number)
.decl q(a:number, b:number, c:number)
q(a, b, c) :- r(a, b), s(b, c), t(a, c).
"""


def hubs(tuples: int, toggles: int, number: int = 2) -> tuple[dict[int, list[Row]], list[Update]]:
    half = tuples // 2 // number
    loaded: dict[int, list[Row]] = {
        1: [(hub, 2 * n) for hub in range(number) for n in range(half)],
        2: [(hub, 2 * n + 1) for hub in range(number) for n in range(half)],
    }
    draw = random.Random(1)
    on: set[Row] = set()
    stream: list[Update] = []
    for _ in range(toggles):
        row = (draw.randrange(number), draw.randrange(number))
        stream.append((0, row, row not in on))
        on ^= {row}
    return loaded, stream


def sparse(tuples: int, updates: int) -> tuple[dict[int, list[Row]], list[Update]]:
    """Random graphs of degree about 8; a random row goes or comes."""
    draw = random.Random(2)
    nodes = tuples // 24
    rows = [
        (atom, (draw.randrange(nodes), draw.randrange(nodes))) for atom in range(3) for _ in range(tuples // 3)
    ]
    there = set(rows)
    loaded: dict[int, list[Row]] = {atom: [row for a, row in there if a == atom] for atom in range(3)}
    stream: list[Update] = []
    for _ in range(updates):
        key = draw.choice(rows) if draw.random() < 0.5 else (draw.randrange(3), (draw.randrange(nodes),) * 2)
        stream.append((key[0], key[1], key not in there))
        there ^= {key}
    return loaded, stream


def window(tuples: int, updates: int) -> tuple[dict[int, list[Row]], list[Update]]:
    """Edges in the order of their coming; the oldest goes when one comes."""
    draw = random.Random(3)
    nodes = tuples // 24
    seen: dict[tuple[int, Row], None] = {}
    while len(seen) < tuples + updates // 2:
        seen[draw.randrange(3), (draw.randrange(nodes), draw.randrange(nodes))] = None
    edges = list(seen)
    loaded: dict[int, list[Row]] = {atom: [row for a, row in edges[:tuples] if a == atom] for atom in range(3)}
    stream: list[Update] = []
    for n in range(updates // 2):
        stream += [(*edges[n], False), (*edges[tuples + n], True)]
    return loaded, stream


def play(view: JoinView, stream: list[Update]) -> int:
    told = 0
    for atom, row, insert in stream:
        if insert:
            view.insert(atom, row)
            told += sum(1 for _ in view.delta(atom, row))
        else:
            told += sum(1 for _ in view.delta(atom, row))
            view.delete(atom, row)
    return told


def seconds_of(strategy: str, loaded: dict[int, list[Row]], stream: list[Update]) -> tuple[float, int, JoinView]:
    """Seconds per update."""
    view = view_of(strategy, Asked.full(TRIANGLE, enumerated=False))
    view.load(loaded)
    start = time.process_time()
    told = play(view, stream)
    return (time.process_time() - start) / len(stream), told, view


def main() -> None:
    asked = options(__doc__, tuples=10**6, toggles=20_000)
    small = asked.small
    tuples = 10**4 if small else asked.tuples
    toggles = 1000 if small else asked.toggles

    print(f"hostile: two hubs, {tuples} tuples")
    loaded, stream = hubs(tuples, toggles)
    delta, _, _ = seconds_of("delta", loaded, stream[:60])
    times = {"delta": delta}
    times["generations"], _, _ = seconds_of("generations", loaded, stream)
    print("  " + ", ".join(f"{name} {t * 1e6:.1f} µs" for name, t in times.items()) + " an update")
    at_least("hostile triangle, generations against delta", times["delta"] / times["generations"], 20, small)

    print(f"load: {tuples} tuples at once")
    loaded, _ = sparse(tuples, 1)
    taken = {}
    for strategy in ("delta", "generations"):
        view = view_of(strategy, Asked.full(TRIANGLE, enumerated=False))
        start = time.process_time()
        view.load(loaded)
        probe = (0, -1)
        for atom in range(3):  # the first updates make the indexes that they need
            view.insert(atom, probe)
            list(view.delta(atom, probe))
        taken[strategy] = time.process_time() - start
    load = taken["generations"] / taken["delta"]
    at_most("load and first updates, generations against delta", load, 3, small=small)

    names = ("r", "s", "t")
    for title, make in (("random sparse", sparse), ("window", window)):
        loaded, stream = make(tuples // 10, toggles)
        spent: dict[str, list[float]] = {"delta": [], "auto": []}
        for _ in range(3):
            for strategy, seconds in spent.items():
                facts = {name: loaded[n] for n, name in enumerate(names)}
                db = Database.from_text(PROGRAM, facts=facts, strategies={"q": strategy})
                start = time.process_time()
                for atom, row, insert in stream:
                    (db.insert if insert else db.delete)(names[atom], row)
                seconds.append((time.process_time() - start) / len(stream))
        told = ", ".join(f"{strategy} {min(seconds) * 1e6:.1f} µs" for strategy, seconds in spent.items())
        print(f"engine: a benign stream through Database, {title}: {told} an update")
        at_most(f"benign, {title}, auto against delta", min(spent["auto"]) / min(spent["delta"]), 1.2, small=small)

    print("engine: the hostile stream through Database")
    loaded, stream = hubs(tuples, toggles)
    for strategy in ("delta", "auto"):
        facts = {"s": loaded[1], "t": loaded[2]}
        db = Database.from_text(PROGRAM, facts=facts, strategies={"q": strategy})
        part = stream[:60] if strategy == "delta" else stream
        start = time.process_time()
        for _, row, insert in part:
            (db.insert if insert else db.delete)("r", row)
        times[strategy] = (time.process_time() - start) / len(part)
        print(
            f"  {strategy} {times[strategy] * 1e6:.1f} µs an update; {db.explain('q#1').splitlines()[-1].strip()}"
        )
    at_least("hostile triangle in the engine, auto against delta", times["delta"] / times["auto"], 20, small)


if __name__ == "__main__":
    main()
