"""A relation that is not stored: its answers are found when somebody asks.

A rule whose join fits a tree of counts has one, and the tables serve all others.  A step changes
the trees, and tells what the view lost and gained as facts that are found when they are read: the
answers of matches that had a row that went, in the tables as they were; and those of matches that
have a row that came.  Of one rule whose head shows all variables the trees know their number.

Invariant: a told change is read in the state that its step made, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.keepers.views.earlier import indexes_before
from everlog.core.engine.keepers.views.rule_reader import RuleReader
from everlog.core.engine.keepers.views.rule_tree import Log, RowChange, RuleTree
from everlog.core.engine.keepers.views.view_table import ViewTable
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.planning.view_rules import VIEW
from everlog.core.engine.stepping.changes import rows_of_change
from everlog.core.engine.stepping.found_changes import NO_FACTS, FoundFacts, StepIsOver
from everlog.core.engine.stepping.step import Listener, Readers
from everlog.core.engine.stepping.store import Store, Task
from everlog.core.ir.compile import Lookup
from everlog.core.program import Row, Value
from everlog.core.storage.shape import Facts

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step

Told = Mapping[str, tuple[Facts, Facts]]  # of the relations that are read: facts that went, that came


class ViewKeeper(Keeper):
    """Invariants:
    I1  a tree, once made, has the rows of the tables as of the last turn;
    I2  `version` is another one after each turn and each undo.
    """

    about = "nothing but counts: its facts are found when somebody asks"
    no_rule = "its facts are found when somebody asks"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        self.name = planned.unit.relations[0]
        relation = store.plan.program.relations[self.name]
        rules = planned.unit.rules
        self.readers = [RuleReader(store, rule, relation) for rule in rules]
        self.trees = {
            n: RuleTree(store, rule) for n, rule in enumerate(rules) if planned.joins[rule.name].strategy == VIEW
        }
        self.reads = list(dict.fromkeys(name for reader in self.readers for _, name in reader.atoms))
        self.version = 0
        self._rebuilt = NO_FACTS, NO_FACTS
        self.repeats = len(rules) > 1 or not (self.trees and self.trees[0].is_full)
        store.tables[self.name] = ViewTable(store.shapes[self.name], self)

    def use(self, store: Store) -> None:
        super().use(store)
        for reader in self.readers:
            reader.store = store
        for tree in self.trees.values():
            tree.store = store

    def tasks(self) -> Iterator[Task]:
        yield from ()

    def refusal(self, relation: str) -> str:
        return f"`{relation}` is a view, which has no facts of its own"

    def strategy_now(self, rule: object) -> str:
        return VIEW

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def rows(self) -> Iterator[Row]:
        """All facts.  Cost: constant for each if all rules have trees."""
        for n in range(len(self.readers)):
            found: Iterator[Row] = iter(self.trees[n]) if n in self.trees else _once(self.readers[n].answers())
            yield from (row for row in found if not any(self._derives(m, row) for m in range(n)))

    def has(self, row: Row) -> bool:
        """Whether a row is a fact.  Cost: constant if all rules have trees."""
        return any(self._derives(n, row) for n in range(len(self.readers)))

    def _derives(self, rule: int, row: Row) -> bool:
        if rule in self.trees:
            return row in self.trees[rule]
        return _any(self.readers[rule].having(dict(enumerate(row))))

    def having(self, bound: Mapping[int, Value]) -> Iterator[Row]:
        """The facts with these values in these columns."""
        found = (row for reader in self.readers for row in reader.having(bound))
        return _once(found) if self.repeats else found

    def size(self) -> int:
        """The number of facts.  Cost: constant if there is one rule, and it has a tree."""
        return self.known_size() if self._is_counted else sum(1 for _ in self.rows())

    def known_size(self) -> int:
        return self.trees[0].number() if self._is_counted else 0

    @property
    def _is_counted(self) -> bool:
        return len(self.readers) == 1 and 0 in self.trees

    def size_of(self, relation: str) -> int:
        return self.known_size()

    def containers(self, relation: str) -> list[object]:
        return [each for tree in self.trees.values() for each in tree.containers()]

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    def listen(self, readers: dict[str, Readers]) -> None:
        wake: Listener = lambda step, facts: step.wake(self)  # noqa: E731
        for name in self.reads:
            entry = readers.setdefault(name, Readers())
            entry.losses.append(wake)
            entry.gains.append(wake)

    def turn(self, step: Step) -> None:
        self.version += 1
        told = {name: step.changes[name] for name in self.reads if name in step.changes}
        change = self.change(told, self._follow(step, told))
        if any(change):
            step.changes[self.name] = change

    def change(self, told: Told, numbers: tuple[int, int] | None) -> tuple[FoundFacts, FoundFacts]:
        """What the view lost and gained, by what the relations did that it reads."""
        gone, new = ({name: change[side] for name, change in told.items() if change[side]} for side in (0, 1))
        change = ViewChange(self, told)
        lost, gained = numbers or (None, None)
        return (
            FoundFacts(change.lost, change.has_lost, lost) if gone else NO_FACTS,
            FoundFacts(change.gained, change.has_gained, gained) if new else NO_FACTS,
        )

    def _follow(self, step: Step, told: Told) -> tuple[int, int] | None:
        """Have the trees follow; how many facts went and came, where they know it."""
        rows = {name: self.rows_of(name, change) for name, change in told.items()}
        before = self._count()
        logs = {n: Log() for n in self.trees}
        step.undo.append((self._revert, (logs,)))
        with step.guard.shield:
            for n, tree in self.trees.items():
                tree.take(rows, True, logs[n])
        between = self._count()
        with step.guard.shield:
            for n, tree in self.trees.items():
                tree.take(rows, False, logs[n])
        return None if self.repeats else (before - between, self._count() - between)

    def _count(self) -> int:
        return 0 if self.repeats else self.trees[0].number()

    def rows_of(self, name: str, change: tuple[Facts, Facts]) -> RowChange:
        """What a relation did, as rows."""
        shape = self.store.shapes[name]
        gone, new = (list(rows_of_change(shape, facts)) for facts in change)
        return gone, new

    def _revert(self, logs: dict[int, Log]) -> None:
        self.version += 1
        for n, log in logs.items():
            self.trees[n].revert(log)

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        assert not gone, "a view has no facts of its own"
        assert not new, "a view has no facts of its own"

    def forget(self) -> None:
        self.version += 1

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        self.version += 1
        told = {name: step.changes[name] for name in self.reads if name in step.changes}
        grows = not self.repeats and not any(gone for gone, _ in told.values())
        before = self._count() if grows and self.trees[0].is_made else None
        for tree in self.trees.values():
            tree.forget()
            tree.make()
        self._rebuilt = self.change(told, None if before is None else (0, self._count() - before))
        return {}

    def rebuilt_changes(self) -> Mapping[str, tuple[Facts, Facts]]:
        return {self.name: self._rebuilt}

    def snapshot(self) -> Callable[[], None]:
        """A function that has the trees made again; there are no facts to restore."""

        def restore() -> None:
            self.version += 1
            for tree in self.trees.values():
                tree.forget()

        return restore

    def check(self) -> None:
        for tree in self.trees.values():
            tree.check()


class ViewChange:
    """What a view lost and gained in a step, found from what the relations did that it reads."""

    def __init__(self, keeper: ViewKeeper, told: Told) -> None:
        self._keeper, self._told, self._version = keeper, told, keeper.version
        self._facts: dict[str, tuple[Facts, Facts]] | None = None
        self._lookup: Lookup | None = None

    def _change_of(self, name: str) -> tuple[Facts, Facts]:
        """What went and came, in the form of the relation's shape."""
        if self._facts is None:
            shapes = self._keeper.store.shapes
            self._facts = {
                read: (shapes[read].facts_of(gone), shapes[read].facts_of(new))
                for read, change in self._told.items()
                for gone, new in [self._keeper.rows_of(read, change)]
            }
        return self._facts[name]

    @property
    def _before(self) -> Lookup:
        if self._lookup is None:
            changes = {name: self._change_of(name) for name in self._told}
            self._lookup = indexes_before(self._keeper.store, changes)
        return self._lookup

    def _current(self) -> None:
        if self._keeper.version != self._version:
            raise StepIsOver(self._keeper.name)

    def lost(self) -> Iterator[Row]:
        self._current()
        has = self._keeper.has
        yield from self._found(0, self._before, lambda row: not has(row))

    def gained(self) -> Iterator[Row]:
        self._current()
        lookup = self._keeper.store.index
        yield from self._found(1, lookup, lambda row: not self._keeper.repeats or not self._was(row))

    def _found(self, side: int, lookup: Lookup, fits: Callable[[Row], bool]) -> Iterator[Row]:
        """The answers through what went, or came, that fit; each once."""
        ways = [
            (reader, position, name)
            for reader in self._keeper.readers
            for position, name in reader.atoms
            if name in self._told and self._told[name][side]
        ]
        seen: set[Row] | None = set() if len(ways) > 1 or self._keeper.repeats else None
        for reader, position, name in ways:
            for row in reader.through(position, self._change_of(name)[side], lookup):
                if (seen is None or row not in seen) and fits(row):
                    if seen is not None:
                        seen.add(row)
                    yield row
                    self._current()

    def _was(self, row: Row) -> bool:
        """Whether a row was a fact before the step."""
        before = self._before
        return any(_any(reader.having(dict(enumerate(row)), before)) for reader in self._keeper.readers)

    def has_lost(self, row: Row) -> bool:
        self._current()
        return not self._keeper.has(row) and self._was(row)

    def has_gained(self, row: Row) -> bool:
        self._current()
        return self._keeper.has(row) and not self._was(row)


def _any(found: Iterator[Row]) -> bool:
    return next(found, None) is not None


def _once(found: Iterator[Row]) -> Iterator[Row]:
    seen: set[Row] = set()
    for row in found:
        if row not in seen:
            seen.add(row)
            yield row
