"""Age generations and `auto` against first-order delta, on triangle streams.

    hostile    two hubs, each with half of all tuples as neighbours; edges between hubs are toggled
    benign     a random sparse graph with random updates; and a window that slides over edges
    load       10^6 tuples at once: generations against the indexes of first-order delta
    engine     the same hostile stream through `Database`, as a user has it

Times are of one process, both sides in one run.  `auto` does not know which stream it gets; its
time includes the updates in which it switches.

    python -P bench/mvivm.py [--small] [--tuples 1000000] [--toggles 20000]
"""

from __future__ import annotations

import random
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import at_least, at_most, fail, options

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
    """Random graphs of degree about 8; a random row is inserted or deleted."""
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
    """A sliding window over edges: each insert deletes the oldest edge."""
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
    view = view_of(strategy, Asked.full(TRIANGLE))
    view.load(loaded)
    start = time.process_time()
    told = play(view, stream)
    return (time.process_time() - start) / len(stream), told, view


def memory_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    kept = work()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return size


def hostile(tuples: int, toggles: int, small: bool) -> None:
    """Two hubs: each update of first-order delta meets many partners."""
    print(f"hostile: two hubs, {tuples} tuples")
    loaded, stream = hubs(tuples, toggles)
    delta, _, _ = seconds_of("delta", loaded, stream[:60])
    times = {"delta": delta}
    for strategy in ("generations", "auto"):
        times[strategy], _, _ = seconds_of(strategy, loaded, stream)
    print("  " + ", ".join(f"{name} {t * 1e6:.1f} µs" for name, t in times.items()) + " an update")
    at_least("hostile triangle, auto against first-order delta", times["delta"] / times["auto"], 20, small)
    best = min(times["delta"], times["generations"])
    at_most("hostile triangle, auto against the best single strategy", times["auto"] / best, 2.5, small=small)


def benign(tuples: int, toggles: int, small: bool) -> None:
    """Streams on which first-order delta is hard to beat."""
    for title, make in (("benign, random sparse", sparse), ("benign, window", window)):
        loaded, stream = make(tuples // 10, toggles * 2)
        pairs = []
        for _ in range(3):
            first, told, _ = seconds_of("delta", loaded, stream)
            second, same, view = seconds_of("auto", loaded, stream)
            if told != same:
                fail(f"{title}: auto tells other changes than delta")
            pairs.append((first, second))
        first, second = min(a for a, _ in pairs), min(b for _, b in pairs)
        print(f"{title}: delta {first * 1e6:.1f} µs, auto {second * 1e6:.1f} µs, {view.strategy} at the end")  # type: ignore[attr-defined]
        at_most(f"{title}, auto against first-order delta", second / first, 1.3, small=small)


def load(tuples: int, small: bool) -> None:
    """All tuples at once, and the first updates."""
    print(f"load: {tuples} tuples at once")
    loaded, _ = sparse(tuples, 1)
    taken = {}
    for strategy in ("delta", "generations"):
        view = view_of(strategy, Asked.full(TRIANGLE))
        start = time.process_time()
        view.load(loaded)
        probe = (0, -1)
        for atom in range(3):  # the first updates build the indexes that they need
            view.insert(atom, probe)
            list(view.delta(atom, probe))
        taken[strategy] = time.process_time() - start
    ratio = taken["generations"] / taken["delta"]
    at_most("load and first updates, generations against delta", ratio, 3, small=small)


def memory(tuples: int, toggles: int, small: bool) -> None:
    loaded, stream = hubs(tuples // 10, toggles // 10)
    size = {
        strategy: memory_of(lambda strategy=strategy: seconds_of(strategy, loaded, stream))
        for strategy in ("delta", "auto")
    }
    at_most("memory of auto against delta, hostile", size["auto"] / size["delta"], 4, small=small)


def benign_in_engine(tuples: int, toggles: int, small: bool) -> None:
    loaded, stream = sparse(tuples // 10, toggles)
    names = ("r", "s", "t")
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
    print(f"engine: a benign stream through Database: {told} per update")
    at_most("benign in the engine, auto against delta", min(spent["auto"]) / min(spent["delta"]), 1.3, small=small)


def hostile_in_engine(tuples: int, toggles: int, small: bool) -> None:
    print("engine: the hostile stream through Database")
    loaded, stream = hubs(tuples, toggles)
    times = {}
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


def main() -> None:
    asked = options(__doc__, tuples=10**6, toggles=20_000)
    small = asked.small
    tuples = 10**4 if small else asked.tuples
    toggles = 1000 if small else asked.toggles
    hostile(tuples, toggles, small)
    benign(tuples, toggles, small)
    load(tuples, small)
    memory(tuples, toggles, small)
    benign_in_engine(tuples, toggles, small)
    hostile_in_engine(tuples, toggles, small)


if __name__ == "__main__":
    main()
