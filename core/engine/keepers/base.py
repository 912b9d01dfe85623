"""Relations without rules: their base facts are their facts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.store import Store
from everlog.core.program import Row
from everlog.core.storage.shape import Facts

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step


class BaseKeeper(Keeper):
    """The table is the whole state."""

    about = "facts that are given, and nothing else"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        self.name = planned.unit.relations[0]
        self.shape = store.shapes[self.name]
        self.table = store.tables[self.name]
        self._change: tuple[list[Row], list[Row]] = [], []

    def holds(self, relation: str, row: Row) -> bool:
        return row in self.table

    def given_rows(self, relation: str) -> Collection[Row]:
        return self.table

    def change_given(self, relation: str, gone: list[Row], new: list[Row]) -> None:
        pass  # the table changes at the turn

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        self._change = gone, new
        step.wake(self)

    def forget(self) -> None:
        self._change = [], []

    def turn(self, step: Step) -> None:
        gone, new = self._change
        step.spread(self.name, self.shape.facts_of(gone), self.shape.facts_of(new))

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        gone, new = self._change
        self.forget()
        if gone or self.table.facts:
            self.table.remove(self.shape.facts_of(gone))
            self.table.merge(self.shape.facts_of(new))
        else:
            self.table.replace(self.shape.facts_of(new))
        return {}

    def snapshot(self) -> Callable[[], None]:
        gone, new = self._change

        def restore() -> None:
            self.table.remove(self.shape.facts_of(new))
            self.table.merge(self.shape.facts_of(gone))

        return restore

    def check(self) -> None:
        self.table.check()
