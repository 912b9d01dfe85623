"""Relations that no rule derives: the facts that are given are the facts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.store import Store
from everlog.core.program import Row
from everlog.core.storage.forms import has_row
from everlog.core.storage.tables import Facts, Table, facts_of

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step


class Rows(Collection[Row]):
    """The facts of a table as a collection of rows."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __contains__(self, row: object) -> bool:
        return has_row(self._table.shape, self._table.facts, row)

    def __iter__(self) -> Iterator[Row]:
        return self._table.rows()

    def __len__(self) -> int:
        return len(self._table)


class GivenKeeper(Keeper):
    """The table is all there is."""

    about = "facts that are given, and nothing else"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        self.name = planned.unit.relations[0]
        self.shape = store.shapes[self.name]
        self.table = store.tables[self.name]
        self._change: tuple[list[Row], list[Row]] = [], []

    def holds(self, relation: str, row: Row) -> bool:
        return has_row(self.shape, self.table.facts, row)

    def given_rows(self, relation: str) -> Collection[Row]:
        return Rows(self.table)

    def change_given(self, relation: str, gone: list[Row], new: list[Row]) -> None:
        pass  # the table changes at the turn

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        self._change = gone, new
        step.wake(self)

    def forget(self) -> None:
        self._change = [], []

    def turn(self, step: Step) -> None:
        gone, new = self._change
        step.spread(self.name, facts_of(self.shape, gone), facts_of(self.shape, new))

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        gone, new = self._change
        self.forget()
        if gone or self.table.facts:
            self.table.remove(facts_of(self.shape, gone))
            self.table.merge(facts_of(self.shape, new))
        else:
            self.table.replace(facts_of(self.shape, new))
        return {}

    def snapshot(self) -> Callable[[], None]:
        gone, new = self._change

        def restore() -> None:
            self.table.remove(facts_of(self.shape, new))
            self.table.merge(facts_of(self.shape, gone))

        return restore

    def check(self) -> None:
        self.table.check()
