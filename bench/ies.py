"""Incremental evaluation systems against recomputation: witnesses, matrix, SQLite.

*Witnesses*: one random edge deleted, then inserted, under the closure of a random graph of 2 000
nodes and 4 000 edges (2.57 million pairs), against semi-naive evaluation in the same process: by
the system alone, and by the engine with this system and with its own default.  Recomputations and
updates take turns; every changed row is read.

*The matrix*: milliseconds per update at 1 000 nodes, on graphs that are sparse, dense, and such
that one edge carries half of the closure.  For the system alone, an update includes making sets of
its changed pairs; in the engine, as a user sees it, up to half a million changed pairs are rows in
a table.

*SQLite*: triggers against SQLite's own recursive query: see bench/ies_sql.py.

    python -P bench/ies.py [--small] [--edges 100] [--rounds 5]
"""

from __future__ import annotations

import gc
import importlib.util
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import ies_sql
from _common import CLOSURE, at_least, at_most, fail, milliseconds, options, random_graph, timed

from everlog import Database, compile_text, evaluate
from everlog.ies.practical.protocol import Rows
from everlog.ies.practical.tc_algebra import AlgebraicClosure
from everlog.ies.practical.tc_witness import WitnessClosure

IN_ENGINE = ("sparse", "path", "cycle")  # graphs on which the matrix is also measured in the engine
Edge = tuple[int, int]
Update = Callable[[bool, Edge], int]  # insert or delete an edge; returns the number of changed rows


# ── witnesses against recomputation ──────────────────────────────────────────────────────────


def system_alone(edges: list[Edge]) -> tuple[Update, Callable[[], set[Edge]]]:
    system = WitnessClosure()
    system.load({"edge": edges})

    def update(insert: bool, edge: Edge) -> int:
        changes = (system.insert if insert else system.delete)("edge", edge)
        return sum(len(list(rows)) for rows in changes.get("path", ()))

    return update, lambda: set(system.view("path"))


def in_engine(
    edges: list[Edge], strategy: str | None, looked_at: bool = True
) -> tuple[Update, Callable[[], set[Edge]]]:
    """Updates in the engine; `looked_at` makes a row of every changed pair."""
    strategies = {} if strategy is None else {"path": strategy}
    database = Database(compile_text(CLOSURE), facts={"edge": edges}, strategies=strategies)

    def update(insert: bool, edge: Edge) -> int:
        changes = (database.insert if insert else database.delete)("edge", edge)
        return len(dict(changes["path"])) if looked_at and "path" in changes else 0

    return update, lambda: set(database.rows("path"))


def witnesses(nodes: int, edges: list[Edge], number: int, rounds: int, small: bool) -> None:
    program = compile_text(CLOSURE)
    sample = random.Random(7).sample(edges, min(number, len(edges)))
    sides = {
        "tc_witness alone": (100, lambda: system_alone(edges)),
        "tc_witness in the engine": (100, lambda: in_engine(edges, "tc_witness")),
        "the engine's default": (None, lambda: in_engine(edges, None)),
    }
    print(f"closure of {nodes} nodes and {len(edges)} edges, {len(sample)} edges deleted and inserted")
    for name, (bar, make) in sides.items():
        loaded, (update, pairs) = timed(make)
        for edge in random.Random(8).sample(edges, min(10, len(edges))):  # first uses compile
            update(False, edge)
            update(True, edge)
        bulk, deletes, inserts, told = [], [], [], 0
        for turn in range(rounds):
            seconds, result = timed(lambda: evaluate(program, {"edge": edges}))
            bulk.append(seconds)
            if turn == rounds - 1 and result.relation("path") != pairs():
                fail(f"{name} has other pairs than a recomputation")
            del result
            gc.collect()
            for edge in sample[turn::rounds]:
                start = time.process_time()
                told += update(False, edge)
                middle = time.process_time()
                update(True, edge)
                deletes.append(middle - start)
                inserts.append(time.process_time() - middle)
        mean = statistics.mean([*deletes, *inserts])
        print(
            f"  {name}: load {loaded:.2f} s, recomputation {statistics.mean(bulk):.2f} s,"
            f" delete {milliseconds(statistics.mean(deletes))} (most {milliseconds(max(deletes))}),"
            f" insert {milliseconds(statistics.mean(inserts))} (most {milliseconds(max(inserts))}),"
            f" {told / len(sample):.0f} changed pairs per delete"
        )
        at_least(f"closure {nodes}/{len(edges)}, {name}", statistics.mean(bulk) / mean, bar, small)
        del update, pairs
        gc.collect()


# ── the matrix ───────────────────────────────────────────────────────────────────────────────


def graphs(nodes: int) -> dict[str, list[Edge]]:
    return {
        "sparse": random_graph(nodes, 2 * nodes),
        "dense": random_graph(nodes, 100 * nodes if nodes >= 1000 else 10 * nodes),
        "path": [(n, n + 1) for n in range(nodes - 1)],
        "cycle": [(n, (n + 1) % nodes) for n in range(nodes)],
        "complete": [(x, y) for x in range(nodes) for y in range(nodes)],
    }


def matrix(nodes: int, number: int, small: bool) -> None:
    for name, edges in graphs(nodes).items():
        loaded, system = timed(lambda edges=edges: _algebraic(edges))
        times, told = [], 0
        for edge in random.Random(9).choices(edges, k=max(1, number // 5)):
            for change in (system.delete, system.insert):
                start = time.process_time()
                for rows in change("edge", edge).get("path", ()):
                    if isinstance(rows, Rows):
                        rows.by_key(0)
                        told += len(rows)
                times.append(time.process_time() - start)
        pairs = system.sizes()["path"]
        print(
            f"  {name}: {len(edges)} edges, {pairs} pairs, load {loaded:.2f} s, {told / len(times):.0f} changed"
            f" pairs per update, most {milliseconds(max(times))}; some pair is missing with probability at most"
            f" {system.error_bound():.0e}"
        )
        at_most(f"matrix, {nodes} nodes, {name}, an update", statistics.mean(times) * 1e3, 60, "ms", small)
        del system
        gc.collect()
        if name in IN_ENGINE:
            update, _ = in_engine(edges, "tc_algebra", looked_at=False)
            times = []
            for edge in random.Random(9).choices(edges, k=max(1, number // 10)):
                for insert in (False, True):
                    start = time.process_time()
                    update(insert, edge)
                    times.append(time.process_time() - start)
            what = f"matrix in the engine, {nodes} nodes, {name}, an update"
            at_most(what, statistics.mean(times) * 1e3, 60, "ms", small)


def _algebraic(edges: list[Edge]) -> AlgebraicClosure:
    system = AlgebraicClosure()
    system.load({"edge": edges})
    return system


def main() -> None:
    asked = options(__doc__, edges=100, rounds=5)
    nodes = 300 if asked.small else 2000
    if asked.small:
        asked.edges, asked.rounds = 20, 2
    witnesses(nodes, random_graph(nodes, 2 * nodes), asked.edges, asked.rounds, asked.small)
    nodes = 100 if asked.small else 1000
    if importlib.util.find_spec("numpy") is None:
        print("numpy is not installed: the lines of the matrix are left out")
    else:
        matrix(nodes, asked.edges, asked.small)
    ies_sql.main()  # takes the same options


if __name__ == "__main__":
    main()
