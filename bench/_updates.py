"""Single updates against recomputation, for other scripts.

One update is a `Database.delete` or `Database.insert` of one base fact, and every changed row is
read.  Recomputation is `core.evaluate.seminaive.evaluate` of the program on the same facts, which
keeps nothing for updates; the load of a `Database`, and its first delete, which builds what deletes
need, are printed beside it.  Recomputations and shares of the updates take turns; the ratio is the
mean recomputation over the mean update.  The bar is for a fact deleted, then inserted: the mean of
all updates.  Deletes and inserts are also printed separately.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Mapping, Sequence

from _common import add_changes, at_least, fail, milliseconds, timed

from everlog import Database, compile_text, evaluate
from everlog.core.program import Program, Row

BaseFacts = Mapping[str, Sequence[Row]]


def compare(
    title: str, text: str, base: BaseFacts, number: int, rounds: int, bar: float | None, small: bool
) -> None:
    """Measure `number` random base facts, each deleted and inserted again."""
    program = compile_text(text)
    facts = [(name, row) for name, rows in base.items() for row in rows]
    sample = random.Random(7).sample(facts, min(number, len(facts)))
    seconds, database = timed(lambda: Database(program, facts=base))
    loads = [seconds]
    first, _ = _update(database.delete, *facts[0])
    database.insert(*facts[0])
    _warm_up(database, facts)
    bulk: list[float] = []
    deletes: list[float] = []
    inserts: list[float] = []
    told = 0
    for turn in range(rounds):
        seconds, result = timed(lambda: evaluate(program, base))
        bulk.append(seconds)
        if turn == 0:
            _same(program, database, result.relation, "after the load")
        del result
        gc.collect()
        for name, row in sample[turn::rounds]:
            gone, deleted = _update(database.delete, name, row)
            came, inserted = _update(database.insert, name, row)
            deletes.append(gone)
            inserts.append(came)
            told += sum(map(len, deleted.values()))
            total: dict[str, dict[Row, int]] = {}
            add_changes(total, deleted)
            add_changes(total, inserted)
            if any(total.values()):
                fail(f"{title}: deleting and inserting {name}{row} changed something")
    _check_states(program, database, base, sample[:2])
    if not small:
        seconds, other = timed(lambda: Database(program, facts=base))
        loads.append(seconds)
        del other
    recomputed, loaded = statistics.mean(bulk), min(loads)
    sizes = ", ".join(f"{database.size(name)} {name}" for name in program.relations)
    print(f"{title}: {sizes}")
    print(
        f"  recomputation {recomputed:.2f} s, load {loaded:.2f} s ({loaded / recomputed:.2f} ×), "
        f"first delete {first:.2f} s ({first / recomputed:.2f} ×); {len(sample)} facts, "
        f"{told / len(sample):.0f} changes per delete"
    )
    for what, times in (("delete", deletes), ("insert", inserts), ("both", [*deletes, *inserts])):
        mean, middle, most = statistics.mean(times), statistics.median(times), max(times)
        print(
            f"  {what}: mean {milliseconds(mean)}, median {milliseconds(middle)}, most {milliseconds(most)};"
            f" {loaded / mean:.0f} × faster than the load"
        )
    at_least(f"{title}, delete", recomputed / statistics.mean(deletes), None)
    at_least(f"{title}, insert", recomputed / statistics.mean(inserts), None)
    at_least(f"{title}, one update (mean of both)", recomputed / statistics.mean([*deletes, *inserts]), bar, small)


def _update(change, name: str, row: Row):  # type: ignore[no-untyped-def]  # a bound method of Database
    start = time.process_time()
    changes = change(name, row)
    told = {relation: changes[relation] for relation in changes}
    return time.process_time() - start, told


def _warm_up(database: Database, facts: Sequence[tuple[str, Row]]) -> None:
    """Run each rule once: its first use compiles it (see bench/first_use.py)."""
    for name in dict.fromkeys(name for name, _ in facts):
        rows = [row for relation, row in facts if relation == name]
        for row in random.Random(8).sample(rows, min(10, len(rows))):
            database.delete(name, row)
            database.insert(name, row)


def _same(program: Program, database: Database, relation, when: str) -> None:  # type: ignore[no-untyped-def]
    for name in program.relations:
        if set(database.rows(name)) != relation(name):
            fail(f"{name} differs from a recomputation, {when}")


def _check_states(
    program: Program, database: Database, base: BaseFacts, sample: Sequence[tuple[str, Row]]
) -> None:
    for name, row in sample:
        database.delete(name, row)
        less = {n: [r for r in rows if (n, r) != (name, row)] for n, rows in base.items()}
        _same(program, database, evaluate(program, less).relation, f"after the deletion of {name}{row}")
        database.insert(name, row)
    _same(program, database, evaluate(program, base).relation, "at the end")
