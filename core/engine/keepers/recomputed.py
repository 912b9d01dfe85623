"""Units that no incremental strategy fits: recomputed when their inputs change.

Equivalence relations in a recursion, choice domains, subsumption, size limits and `autoinc()`
depend on the order of rounds or on all facts at once.  Such a unit is evaluated into new tables,
and the difference is spread like any other change.  All units with `autoinc()` share one counter,
so one of them is also recomputed when its first number changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from attrs import evolve

from everlog.core import program as p
from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.engine.stepping.step import Readers
from everlog.core.engine.stepping.store import Store
from everlog.core.evaluate.counters import Counting
from everlog.core.evaluate.run_context import Context
from everlog.core.evaluate.seminaive import run_unit
from everlog.core.ir.compile import Compiled
from everlog.core.program import Row, Rule
from everlog.core.storage.equivalence import Equivalence
from everlog.core.storage.shape import Facts
from everlog.core.storage.tables import Table

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step


class RecomputeKeeper(Keeper):
    """Invariant: the tables hold the evaluation of the unit on its inputs."""

    about = "computed again when something that it reads has changed"

    @classmethod
    def told_deltas(cls, planned: PlannedUnit) -> Iterator[str]:
        """No delta rule runs."""
        yield from ()

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        self.before: RecomputeKeeper | None = None  # the previous unit with `autoinc()`
        self.after: RecomputeKeeper | None = None
        self.starts = self.ends = 0
        self.cache: dict[tuple[int, int | None], tuple[Rule, Compiled]] = {}
        self.numbers = any(map(p.draws_numbers, planned.unit.rules))

    def listen(self, readers: dict[str, Readers]) -> None:
        def listener(step: Step, delta: Facts) -> None:
            step.wake(self)

        for relation in sorted(self.planned.unit.reads - set(self.relations)):
            entry = readers.setdefault(relation, Readers())
            entry.losses.append(listener)
            entry.gains.append(listener)

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        step.wake(self)

    def turn(self, step: Step) -> None:
        step.undo.append((self._count_from, (self.starts, self.ends)))
        computed = self._evaluated(step)
        changes = []
        for name in self.relations:
            gone, new = computed[name].difference(self.store.tables[name].facts)
            if gone or new:
                changes.append((name, gone, new))
        for name, gone, new in changes:
            if isinstance(computed[name], Equivalence):
                self._spread_classes(step, name, gone, new, computed[name].facts)
            else:
                step.spread(name, gone, new)
        if self.after is not None and self.after.starts != self.ends:
            step.wake(self.after)

    def _spread_classes(self, step: Step, name: str, gone: Facts, new: Facts, classes: Facts) -> None:
        """`Step.spread` for classes, whose members share one set."""
        table = self.store.tables[name]
        step.undo.append((table.replace, (dict(table.facts),)))
        if self.exact:
            step.spread(name, gone, new)
        with step.guard.shield:
            table.replace(classes)
        if not self.exact:
            step.spread(name, gone, new, applied=True)

    def _count_from(self, starts: int, ends: int) -> None:
        self.starts, self.ends = starts, ends

    def _evaluated(self, step: Step) -> dict[str, Table]:
        store = self.store
        program = evolve(store.plan.program, rules=self.planned.unit.rules)
        context = Context(program, store.shapes, dict(store.tables), step.guard)
        context.cache = self.cache
        if self.numbers:
            starts = 0 if self.before is None else self.before.ends
            context.counting = Counting(program, starts)
        tables = run_unit(context, self.planned.unit, self.given)
        if self.numbers:
            self.starts, self.ends = starts, context.counting.next
        return tables

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        for name, table in self._evaluated(step).items():
            self.store.tables[name].replace(table.facts)
        return {}

    def state(self) -> Columns:
        columns: Columns = [[self.starts, self.ends]]
        for name in self.relations:
            columns += self.store.tables[name].columns()
        return columns

    def restore(self, columns: Columns) -> None:
        left = iter(columns)
        self.starts, self.ends = next(left)
        for name in self.relations:
            self.store.tables[name].restore(left)

    def snapshot_besides(self) -> Callable[[], None]:
        starts, ends = self.starts, self.ends

        def restore() -> None:
            self.starts, self.ends = starts, ends

        return restore


def chain_counters(keepers: Iterator[Keeper]) -> None:
    """Let the numbers of each unit with `autoinc()` follow those of the one before."""
    last: RecomputeKeeper | None = None
    for keeper in keepers:
        if isinstance(keeper, RecomputeKeeper) and keeper.numbers:
            keeper.before = last
            if last is not None:
                last.after = keeper
            last = keeper
