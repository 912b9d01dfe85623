"""Deletes and inserts, single and in batches, in recursive programs, against the load.

Each case loads a `Database`, then deletes and inserts random base facts, one row per step, and
reads every change.  `first` is the first delete and the first insert after the load.  All times are
shares of the load, from one run: `1/250` means that 250 such updates take as long as one load.
Batches delete k random base facts in one step and insert them in another; a cell is the dearer of
the two, also as a share of the load.

Edits are steps like those of a person who edits a function: of the facts about one value and its
neighbours in the order of the first column, up to 40, half go and as many come, with values that
neighbours have in the same columns; the next step takes the edit back.

    python -P bench/living.py [--small] [--only NAME] [--facts 100] [--batches] [--edits 20]

Data is generated with fixed seeds; `--small` uses small sizes.  The state at the end is compared
with an evaluation from scratch.
"""

from __future__ import annotations

import random
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import CLOSURE, fail, random_graph, timed
from attrs import frozen
from programs_updates import DYCK, EL, POINTS_TO, SAME_GENERATION, Given, brackets, family, ontology, points_to

from everlog import Database, compile_text, evaluate
from everlog.bench.workloads.value_flow import PROGRAM as VALUE_FLOW
from everlog.bench.workloads.value_flow import statements

Fact = tuple[str, tuple[int, ...]]

FACTOR = 4  # from one batch to the next
EDITED = 40  # facts near each other, half of which an edit replaces
CLASSES = """.decl same(x:number, y:number)
.decl class(x:number, y:number) eqrel
class(x, y) :- same(x, y).
"""


@frozen
class Case:
    name: str
    text: str
    base: Given

    @property
    def facts(self) -> list[Fact]:
        return [(name, row) for name, rows in self.base.items() for row in rows]


def lineage(nodes: int) -> Given:
    """Edges from each node to three of the hundred before it."""
    draw = random.Random(9)
    edges = {(draw.randrange(max(0, n - 100), n), n) for n in range(1, nodes) for _ in range(3)}
    return {"edge": sorted(edges)}


def cases(small: bool) -> list[Case]:
    part = 10 if small else 1
    return [
        Case("Dyck", DYCK, brackets(2000 // part)),
        Case("value flow", VALUE_FLOW, {name: list(rows) for name, rows in statements(60_000 // part).items()}),
        Case("points-to", POINTS_TO, {name: list(rows) for name, rows in points_to(6000 // part).items()}),
        Case("same generation", SAME_GENERATION, {"parent": list(family(15_000 // part))}),
        Case("EL", EL, ontology(1000 // part)),
        Case("lineage", CLOSURE, lineage(5000 // part)),
        Case("equivalence", CLASSES, {"same": list(random_graph(400_000 // part, 160_000 // part))}),
    ]


class Measured:
    """One case: a loaded database, and the time of each update."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.program = compile_text(case.text)
        self.load, self.database = timed(lambda: Database(self.program, facts=case.base))
        self.draw = random.Random(7)

    def step(self, facts: list[Fact], insert: bool) -> tuple[float, int]:
        """CPU seconds of one step, and the number of its changes."""

        def applied() -> int:
            with self.database.transaction() as transaction:
                for name, row in facts:
                    (transaction.insert if insert else transaction.delete)(name, row)
            return sum(len(rows) for rows in transaction.changes.values())

        return timed(applied)

    def singles(self, number: int) -> str:
        """The table row of single updates."""
        sample = self.draw.sample(self.case.facts, min(number, len(self.case.facts)))
        first = [self.step(sample[:1], insert)[0] for insert in (False, True)]
        deletes: list[float] = []
        inserts: list[float] = []
        changed = 0
        for fact in sample[1:]:
            seconds, changes = self.step([fact], False)
            deletes.append(seconds)
            changed += changes
            inserts.append(self.step([fact], True)[0])
        deletes.sort()
        inserts.sort()
        shown = [
            *first,
            statistics.mean(deletes),
            deletes[int(0.95 * (len(deletes) - 1))],
            deletes[-1],
            statistics.mean(inserts),
            inserts[-1],
        ]
        cells = [self.case.name, f"{self.load:.2f} s", *map(self.share, shown), str(changed // len(deletes))]
        return table_row(cells)

    def batches(self) -> str:
        """The table row of batches, up to a quarter of the base facts."""
        cells = [self.case.name]
        size = 1
        while size * 4 <= len(self.case.facts):
            sample = self.draw.sample(self.case.facts, size)
            cells.append(self.share(max(self.step(sample, False)[0], self.step(sample, True)[0])))
            size *= FACTOR
        return table_row(cells)

    def edits(self, number: int) -> str:
        """The table row of edits."""
        seconds: list[float] = []
        changed = 0
        for _ in range(number):
            gone, new = self.edit()
            for out, into in ((gone, new), (new, gone)):
                spent, changes = self.replaced(out, into)
                seconds.append(spent)
                changed += changes
        seconds.sort()
        shown = [statistics.mean(seconds), seconds[int(0.95 * (len(seconds) - 1))], seconds[-1]]
        return table_row([self.case.name, *map(self.share, shown), str(changed // len(seconds))])

    def edit(self) -> tuple[list[Fact], list[Fact]]:
        """The facts that go and those that come in one edit."""
        name = self.draw.choice([name for name, rows in self.case.base.items() if rows])
        rows = sorted(self.case.base[name])
        first = self.draw.randrange(max(1, len(rows) - EDITED))
        near = rows[first : first + EDITED]
        gone = self.draw.sample(near, (len(near) + 1) // 2)
        columns = list(zip(*near, strict=True))
        made = {tuple(self.draw.choice(column) for column in columns) for _ in gone}
        new = made.difference(self.case.base[name])
        return [(name, row) for row in sorted(gone)], [(name, row) for row in sorted(new)]

    def replaced(self, gone: list[Fact], new: list[Fact]) -> tuple[float, int]:
        """CPU seconds of a step that replaces facts by others, and the number of its changes."""

        def applied() -> int:
            with self.database.transaction() as transaction:
                for name, row in gone:
                    transaction.delete(name, row)
                for name, row in new:
                    transaction.insert(name, row)
            return sum(len(rows) for rows in transaction.changes.values())

        return timed(applied)

    def share(self, seconds: float) -> str:
        """A time as a share of the load."""
        ratio = seconds / self.load
        return f"{ratio:.2f}" if ratio > 0.2 else f"1/{1 / max(ratio, 1e-9):.0f}"

    def check(self) -> None:
        """Compare the state at the end with an evaluation from scratch."""
        expected = evaluate(self.program, self.case.base)
        for name in self.program.relations:
            if set(self.database.rows(name)) != expected.relation(name):
                fail(f"{self.case.name}: {name} differs from a recomputation")


def table_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    import argparse

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--batches", action="store_true")
    parser.add_argument("--edits", type=int, default=0)
    parser.add_argument("--facts", type=int, default=100)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    if asked.batches:
        print(table_row(["program", *(f"{FACTOR**n}" for n in range(8))]))
    elif asked.edits:
        print(table_row(["program", "edit", "p95", "worst", "changes"]))
    else:
        heads = ["load", "first delete", "first insert", "delete", "p95", "worst", "insert", "worst", "changes"]
        print(table_row(["program", *heads]))
    for case in cases(asked.small):
        if asked.only in case.name:
            measured = Measured(case)
            if asked.edits:
                row = measured.edits(asked.edits)
            else:
                row = measured.batches() if asked.batches else measured.singles(asked.facts)
            print(row, flush=True)
            measured.check()


if __name__ == "__main__":
    main()
