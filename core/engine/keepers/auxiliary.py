"""Recursive units kept by a system of auxiliary relations.

The keeper passes each inserted or deleted fact of the relations that the rules read to the system,
deletes first, and the system returns the changes.  An auxiliary relation becomes a table when it is
first read; if a rule reads it, from the start.

Undo passes the same updates to the system in reverse.  Its answer is then as before; auxiliary
relations may have several valid states, and the system may have *strayed* to
another one.  The tables keep the earlier state, which is valid as well, and follow the system at
its next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.planning.systems import GroupedRows, Refused, systems
from everlog.core.engine.stepping.step import Listener, Readers
from everlog.core.engine.stepping.store import Store
from everlog.core.program import Row, atoms_of
from everlog.core.storage.shape import Facts, Shape
from everlog.core.storage.table_shapes import PairShape

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step

Log = list[tuple[str, Row, bool]]


class AuxiliaryKeeper(Keeper):
    """Keeps recursion by a system of auxiliary relations.

    Invariants:
      I1  the system has exactly the facts of its inputs;
      I2  the table of the answer, and of each auxiliary relation that was read, holds the rows of
          the system; except auxiliary ones while it has `strayed`.
    """

    @classmethod
    def described(cls, planned: PlannedUnit) -> Iterator[str]:
        system = systems()[planned.strategy].described
        yield f"kept by {planned.strategy}: {system.title} ({planned.why})"
        yield f"one update: {system.cost}"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        assert planned.fit is not None
        self.fit = planned.fit
        self.system = self.fit.make()
        self.read = {self.fit.answer} | self._needed()
        self.strayed = False
        self._gone: Log = []
        self._new: Log = []

    def _needed(self) -> set[str]:
        """The relations of this unit that rules of other units read."""
        rules = [rule for rule in self.store.plan.program.rules if rule.head.relation not in self.relations]
        return {atom.relation for rule in rules for atom, _ in atoms_of(rule.body)} & set(self.relations)

    def use(self, store: Store) -> None:
        super().use(store)
        for name in self._needed():
            self.ready(name)

    def listen(self, readers: dict[str, Readers]) -> None:
        for relation in self.fit.inputs:
            entry = readers.setdefault(relation, Readers())
            entry.losses.append(self._hears(relation, False))
            entry.gains.append(self._hears(relation, True))

    def _hears(self, relation: str, insert: bool) -> Listener:
        def listener(step: Step, delta: Facts) -> None:
            log = self._new if insert else self._gone
            log += [(relation, row, insert) for row in self.store.shapes[relation].rows_of(delta)]
            step.wake(self)

        return listener

    def refusal(self, relation: str) -> str:
        why = f"`{self.fit.answer}` is kept by {self.fit.system}, which knows only its rules"
        return f"no facts can be given to `{relation}`: {why}"

    def change_given(self, relation: str, gone: list[Row], new: list[Row]) -> None:
        if gone or new:
            raise Refused(self.refusal(relation))

    def forget(self) -> None:
        self._gone, self._new = [], []

    def ready(self, relation: str) -> None:
        """Keep an auxiliary relation as a table from now on."""
        if relation not in self.read:
            self.read.add(relation)
            self.store.tables[relation].replace(as_facts(self.store.shapes[relation], self.system.rows(relation)))

    def turn(self, step: Step) -> None:
        updates, log = [*self._gone, *self._new], Log()
        self.forget()
        step.undo.append((self._revert, (log,)))
        changed: dict[str, tuple[Facts, Facts]] = {}
        for relation, row, insert in updates:
            step.guard.shield.held = True
            try:
                found = self.system.change(relation, row, insert)
                log.append((relation, row, insert))
            finally:
                step.guard.shield.release()
            for name, (went, came) in found.items():
                if name in self.read:
                    shape = self.store.shapes[name]
                    facts = as_facts(shape, went), as_facts(shape, came)
                    changed[name] = _then(shape, changed[name], facts) if name in changed else facts
        if self.strayed:
            step.undo.append((setattr, (self, "strayed", True)))
            self.strayed = False
            changed |= {name: self._lag(name) for name in self.read if name != self.fit.answer}
        for name in self.relations:
            if any(changed.get(name, ())):
                gone, new = changed[name]
                step.guard.derived(name, self.store.shapes[name].size_of(new))
                step.spread(name, gone, new)

    def _lag(self, name: str) -> tuple[Facts, Facts]:
        """The difference between a table and the rows of the system."""
        shape, facts = self.store.shapes[name], self.store.tables[name].facts
        now = as_facts(shape, self.system.rows(name))
        return shape.minus(facts, now), shape.minus(now, facts)

    def _revert(self, log: Log) -> None:
        self.strayed |= bool(log)
        while log:
            relation, row, insert = log.pop()
            self.system.change(relation, row, not insert)

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        self.forget()
        system = self.fit.make()
        system.load({name: self.store.tables[name].rows() for name in self.fit.inputs})
        self.system, self.strayed = system, False
        for name in self.relations:
            if name in self.read:
                self.store.tables[name].replace(as_facts(self.store.shapes[name], system.rows(name)))
        step.guard.derived(self.fit.answer, len(self.store.tables[self.fit.answer]))
        return {}

    def snapshot_besides(self) -> Callable[[], None]:
        system, strayed = self.system, self.strayed

        def restore() -> None:
            self.system, self.strayed = system, strayed

        return restore

    def check(self) -> None:
        self.system.check()
        for name in {self.fit.answer} if self.strayed else self.read:
            table = self.store.tables[name]
            assert set(table.rows()) == set(self.system.rows(name)), f"I2: {name}"


def as_facts(shape: Shape, rows: Iterable[Row]) -> Facts:
    """Rows in the form of a table; a binary relation set by set if rows are grouped."""
    if isinstance(shape, PairShape) and isinstance(rows, GroupedRows):
        return rows.by_key(shape.key)
    facts: Facts = shape.facts_of(rows)
    return facts


def _then(shape: Shape, first: tuple[Facts, Facts], second: tuple[Facts, Facts]) -> tuple[Facts, Facts]:
    """The net change of two changes, one after the other."""
    (gone, new), (later_gone, later_new) = first, second
    went = shape.copied(shape.minus(gone, later_new))
    came = shape.copied(shape.minus(new, later_gone))
    shape.add_facts(went, shape.minus(later_gone, new))
    shape.add_facts(came, shape.minus(later_new, gone))
    return went, came
