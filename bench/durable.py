"""The cost of durability: steps per second on disk, and the time to open a file.

*Steps*, in wall time: single inserts and deletes under a join and a count by group, in memory, and
in a file where each is synced before it is reported; beside them a bare SQLite transaction of the
same size, which is the best that the disk can do; and ten updates per step.

*Opening*: the same file loaded by evaluation, and from a checkpoint of the engine's state, for
three programs at two sizes, in CPU time; and the cost of `checkpoint`, including the measurement
by which it decides.

    python -P bench/durable.py [--small] [--steps 2000]
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import CLOSURE, options, random_graph, timed

from everlog import Database, DurableDatabase
from everlog.store.checkpoint import read_about

JOINED = """
.decl sale(shop:number, item:number)
.decl price(item:number, amount:number)
.decl sold(shop:number, amount:number)
sold(s, a) :- sale(s, i), price(i, a).
.decl counted(shop:number, n:number)
counted(s, n) :- sale(s, _), n = count : { sale(s, _) }.
"""
POINTS_TO = """
.decl new(v:symbol, o:symbol)
.decl assign(a:symbol, b:symbol)
.decl load(a:symbol, b:symbol)
.decl store(a:symbol, b:symbol)
.decl pt(v:symbol, o:symbol)
.decl heap(o:symbol, p:symbol)
pt(v, o) :- new(v, o).
pt(a, o) :- assign(a, b), pt(b, o).
pt(a, p) :- load(a, b), pt(b, o), heap(o, p).
heap(o, p) :- store(a, b), pt(a, o), pt(b, p).
"""
TRIANGLES = """
.decl e(x:number, y:number)
.decl t(x:number, y:number, z:number)
t(x, y, z) :- e(x, y), e(y, z), e(z, x).
"""
ROUNDS = 20
Facts = dict[str, list[tuple[object, ...]]]


# ── steps ────────────────────────────────────────────────────────────────────────────────────


def stepping(db: Database, updates: int) -> Callable[[int], None]:
    """Steps of some updates each: a sale is inserted, an older one deleted."""
    chance = random.Random(updates)
    alive = [(chance.randrange(100), chance.randrange(10**6)) for _ in range(1000)]
    db.insert("sale", alive)

    def one(insert: bool) -> tuple[tuple[int, int], bool]:
        if insert:
            alive.append((chance.randrange(100), chance.randrange(10**6)))
            return alive[-1], True
        return alive.pop(0), False

    def work(steps: int) -> None:
        for number in range(steps):
            if updates == 1:
                row, insert = one(number % 2 == 0)
                (db.insert if insert else db.delete)("sale", row)
            else:
                step = [one(place % 2 == 0) for place in range(updates)]
                db.apply([("sale", row, 1 if insert else -1) for row, insert in step])

    return work


def bare(folder: Path) -> Callable[[int], None]:
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE log (step INTEGER PRIMARY KEY, data BLOB)")

    def work(steps: int) -> None:
        for _ in range(steps):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO log (data) VALUES (?)", (b'[["sale",1,1,9]]\n[[1],[2]]',))
            connection.execute("COMMIT")

    return work


def steps_per_second(folder: Path, steps: int) -> None:
    """Steps per second; in turn, since other users share the disk."""
    facts: Facts = {"price": [(item, item % 97) for item in range(1000)]}
    memory = Database.from_text(JOINED, facts=facts)
    with Database.open(folder / "steps.db", text=JOINED, facts=facts) as db:
        works = {
            "one update, in memory": stepping(memory, 1),
            "one update, on disk": stepping(db, 1),
            "a bare SQLite transaction": bare(folder),
            "ten updates, in memory": stepping(memory, 10),
            "ten updates, on disk": stepping(db, 10),
        }
        seconds: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(ROUNDS):
            for name, work in works.items():
                start = time.perf_counter()
                work(steps // ROUNDS)
                seconds[name].append((time.perf_counter() - start) / (steps // ROUNDS))
        for name, found in seconds.items():
            print(f"{name:<30} {1 / statistics.median(found):10,.0f} steps/s")


# ── opening ──────────────────────────────────────────────────────────────────────────────────


def closure(size: int) -> tuple[str, Facts]:
    return CLOSURE, {"edge": list(random_graph(size, 2 * size))}  # type: ignore[dict-item]


def points_to(size: int) -> tuple[str, Facts]:
    chance = random.Random(2)

    def pairs(number: int) -> list[tuple[object, ...]]:
        return [(f"v{chance.randrange(size)}", f"v{chance.randrange(size)}") for _ in range(number)]

    facts: Facts = {"new": [(f"v{i}", f"o{i}") for i in range(size)], "assign": pairs(size * 5 // 6)}
    return POINTS_TO, {**facts, "load": pairs(size // 10), "store": pairs(size // 10)}


def triangles(size: int) -> tuple[str, Facts]:
    chance = random.Random(3)
    return TRIANGLES, {"e": list({(chance.randrange(size), chance.randrange(size)) for _ in range(size * 10)})}


def opening(folder: Path, name: str, size: int, make: Callable[[int], tuple[str, Facts]]) -> None:
    text, facts = make(size)
    path = folder / f"{name}{size}.db"
    with Database.open(path, text=text, facts=facts) as db:
        number = sum(map(db.size, db.relations))
        db.checkpoint(state=False)
        evaluated = min(opened(db) for _ in range(3))
        deciding, _ = timed(db.checkpoint)
        with db._file.reading() as connection:
            chosen = "state" if read_about(connection, "state") else "evaluation"
        db.checkpoint(state=True)
        restored = min(opened(db) for _ in range(3))
    print(
        f"{name:<11}{size:>8}{number:>12,}{evaluated:>11.2f} s{restored:>11.2f} s{evaluated / restored:>7.1f} ×"
        f"{deciding:>11.2f} s  {chosen:<11}{path.stat().st_size / 2**20:>6.1f} MB",
        flush=True,
    )


def opened(db: DurableDatabase) -> float:
    """The time to open the file, and to wake it: a copy of it, since it is open here."""
    copy = db.path.with_name("copy.db")
    db.save(copy)

    def loaded() -> DurableDatabase:
        other = Database.open(copy)
        other.stats()
        return other

    seconds, other = timed(loaded)
    other.close()
    copy.unlink()
    return seconds


def main() -> None:
    asked = options(__doc__, steps=2000)
    with tempfile.TemporaryDirectory(prefix="everlog-bench-") as name:
        folder = Path(name).resolve()
        steps_per_second(folder, 200 if asked.small else asked.steps)
        print()
        print(
            f"{'opening':<11}{'size':>8}{'facts':>12}{'evaluated':>13}{'from state':>13}{'':>9}"
            f"{'checkpoint':>13}  chooses      with state"
        )
        for program, sizes, make in (
            ("closure", (1000, 2000), closure),
            ("points-to", (3000, 6000), points_to),
            ("triangles", (20_000, 100_000), triangles),
        ):
            for size in (100, 200) if asked.small else sizes:
                opening(folder, program, size, make)


if __name__ == "__main__":
    main()
