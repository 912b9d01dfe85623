"""Recursive units, the differential way: the derivations of each fact, counted by iteration.

A recursion is evaluated in synchronous iterations.  A fact has a *level*, the first iteration at which it
is there: 1 if it is given or derived without facts of the unit, else one more than the highest level among
the facts of the unit that a derivation uses.  Kept for each fact is how many derivations it has at
each level; its own level is the least of them.  In nested streams these numbers are the
differences along the clock of the iterations, before `distinct`.

The trick that makes deletes work in cycles is the second clock.  A change at level k only concerns
derivations at levels above k, so a step settles levels in increasing order, and a level is final when its
turn comes.  Some facts *leave* there (they had this level, and have no derivation at it any more), some
*come* (this is now their first level).  A fact that left is gone until a later level brings it back, so
no cycle keeps itself alive.  Delta rules find the derivations that use a fact that leaves or comes;
they are taken away at the level that they had, or added at the one that they have now.  In a step a
fact leaves at most once and comes at most once: the work is that of the derivations whose level changes.

Changes of other relations are heard of before the unit's turn, when its own levels are those of before.

Reads: core.engine.keeper, core.engine.forms.  Read by: core.engine.strategies.
Source: Budiu et al., PVLDB 16(7), 2023, Sections 5 and 6 (cycle rule, nested streams: see `maintained`
in core.dbsp.streams); McSherry, Murray, Isaacs, Isard, CIDR 2013 (differences by iteration).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve, frozen

from everlog.core import program as p
from everlog.core.codegen.derivations import CountWriter, LivingWriter
from everlog.core.engine import forms
from everlog.core.engine.keeper import Keeper, Listener, Readers, outside_relations, table_snapshot, versions
from everlog.core.engine.plan import PlannedUnit
from everlog.core.engine.store import Store, Task
from everlog.core.program import Atom, Row, Rule
from everlog.core.tables import Facts, Shape, facts_of

if TYPE_CHECKING:
    from everlog.core.engine.step import Step

Numbers: TypeAlias = dict[int, int]  # level → number of derivations
Before: TypeAlias = dict[str, dict[Row, Numbers]]  # of each fact that a step touched: what it had
Derivation: TypeAlias = tuple[Row, tuple[tuple[str, Row], ...], int]  # the fact, what it uses, how often
_COUNTED: dict[int, type[LivingWriter]] = {1: CountWriter, -1: CountWriter}


@frozen
class Listing:
    """A rule whose head shows a derivation: the fact, then each fact of the unit that the body uses.

    `path(x, z) :- path(x, y), edge(y, z).` becomes `derivations by path#2(x, z, x, y) :- …`.
    """

    rule: Rule
    relation: str
    width: int
    used: tuple[tuple[str, slice], ...]
    shape: Shape

    def __call__(self, task: Task, delta: Facts) -> Iterator[Derivation]:
        """The derivations that a version of the rule finds."""
        counted: dict[object, object] = {}
        task(delta, counted)
        for row, number in forms.counted_rows(self.shape, counted):
            yield row[: self.width], tuple((name, row[columns]) for name, columns in self.used), number


def listing_of(store: Store, rule: Rule, unit: tuple[str, ...]) -> Listing:
    args, used = list(rule.head.args), []
    for literal in rule.body:
        if isinstance(literal, Atom) and literal.relation in unit:
            used.append((literal.relation, slice(len(args), len(args) + len(literal.args))))
            args += literal.args
    name = f"derivations by {rule.name}"
    store.shapes[name] = shape = Shape(len(args))
    listed = evolve(rule, head=Atom(name, tuple(args)))
    return Listing(listed, rule.head.relation, len(rule.head.args), tuple(used), shape)


class DifferentialKeeper(Keeper):
    """Invariants, outside of a turn:
    I1  `numbers` has for each fact the number of its derivations at each level, and no zero;
    I2  `levels` has the least level of each fact, and the tables hold exactly these facts;
    I3  levels are those of synchronous iteration from nothing, so each fact is well-founded.
    """

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        self.tables = {name: store.tables[name] for name in self.relations}
        self.numbers: dict[str, dict[Row, Numbers]] = {name: {} for name in self.relations}
        self.levels: dict[str, dict[Row, int]] = {name: {} for name in self.relations}
        self.agenda: dict[int, dict[tuple[str, Row], int]] = {}  # level → changes of numbers at it
        self.invents = any(p.invents(rule) for rule in planned.unit.rules)
        listings = [listing_of(store, rule, self.relations) for rule in planned.unit.rules]
        self._whole = [(listing, Task(store, listing.rule, None, CountWriter)) for listing in listings]
        self._outside: list[Task] = []
        self._inside: dict[tuple[str, int], list[tuple[Listing, Task]]] = {}
        for name in self.relations:
            for listing in listings:
                for _, sign, task, _ in versions(store, listing.rule, name, _COUNTED):
                    self._inside.setdefault((name, sign), []).append((listing, task))

    def tasks(self) -> Iterator[Task]:
        yield from (task for _, task in self._whole)
        yield from self._outside
        yield from (task for found in self._inside.values() for _, task in found)

    # ── hearing of changes ───────────────────────────────────────────────────────────────────

    def listen(self, readers: dict[str, Readers]) -> None:
        self._outside.clear()
        for listing, _ in self._whole:
            for relation in outside_relations(listing.rule, self.relations):
                entry = readers.setdefault(relation, Readers())
                for event, sign, task, filtered in versions(self.store, listing.rule, relation, _COUNTED):
                    self._outside.append(task)
                    entry.filtered |= filtered
                    entry.of(event, sign).append(self._hearing(listing, task, sign))

    def _hearing(self, listing: Listing, task: Task, sign: int) -> Listener:
        def listener(step: Step, delta: Facts) -> None:
            self._note(listing, task, delta, sign)
            if self.agenda:
                step.wake(self)

        return listener

    def _note(self, listing: Listing, task: Task, delta: Facts, sign: int) -> None:
        """Put derivations on the agenda, at the level that they have by the present levels."""
        for row, used, number in listing(task, delta):
            level = 1 + max((self.levels[name][fact] for name, fact in used), default=0)
            self._plan(listing.relation, row, level, sign * number)

    def _plan(self, name: str, row: Row, level: int, number: int) -> None:
        changes = self.agenda.setdefault(level, {})
        changes[name, row] = changes.get((name, row), 0) + number

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        for sign, rows in ((-1, gone), (1, new)):
            for row in rows:
                self._plan(relation, row, 1, sign)
        step.wake(self)

    def forget(self) -> None:
        self.agenda = {}

    # ── a turn ───────────────────────────────────────────────────────────────────────────────

    def turn(self, step: Step) -> None:
        before: Before = {name: {} for name in self.relations}
        step.undo.append((self._take_back, (before,)))
        self._settle(step, before)
        self._tell(step, before)

    def _settle(self, step: Step, before: Before) -> None:
        """Level by level, until the agenda is empty; `before` keeps what the touched facts had."""
        while self.agenda:
            level = min(self.agenda)
            leave: dict[str, list[Row]] = {}
            come: dict[str, list[Row]] = {}
            with step.guard.shield:
                for (name, row), change in self.agenda.pop(level).items():
                    numbers = self._numbered(name, row, level, change, before)
                    known, first = self.levels[name].get(row), level in numbers
                    if known is not None and known < level:
                        continue  # it is there already, whatever it has here
                    if known is not None and first != (known == level):
                        leave.setdefault(name, []).append(row)
                    if first and known != level:
                        come.setdefault(name, []).append(row)
                    if numbers and not first:  # look again at the next level it has: then that is final
                        self._plan(name, row, min(numbers), 0)
            for name in self.relations:
                if name in leave:
                    self._leave(step, name, leave[name])
                if name in come:
                    self._come(step, name, come[name], level)
            step.guard.round(self.planned.name, level, sum(map(len, come.values())), self.invents)

    def _numbered(self, name: str, row: Row, level: int, change: int, before: Before) -> Numbers:
        """Change the number of a fact's derivations at a level; all of its numbers."""
        kept = self.numbers[name]
        numbers = kept.get(row, {})
        if change:
            before[name].setdefault(row, dict(numbers))
            numbers[level] = number = numbers.get(level, 0) + change
            assert number >= 0, f"{name}{row} has {number} derivations at level {level}"
            if not number:
                del numbers[level]
            kept[row] = numbers
            if not numbers:
                del kept[row]
        return numbers

    def _leave(self, step: Step, name: str, rows: list[Row]) -> None:
        facts = facts_of(self.store.shapes[name], rows)
        self._follow(name, facts, -1)
        with step.guard.shield:
            self.tables[name].remove(facts)
            for row in rows:
                del self.levels[name][row]

    def _come(self, step: Step, name: str, rows: list[Row], level: int) -> None:
        facts = facts_of(self.store.shapes[name], rows)
        with step.guard.shield:
            self.tables[name].merge(facts)
            self.levels[name].update(dict.fromkeys(rows, level))
        self._follow(name, facts, 1)

    def _follow(self, name: str, facts: Facts, sign: int) -> None:
        """The derivations of this unit that use the facts, each once, though it may use several."""
        delta = self.store.delta(name)
        try:
            delta.merge(facts)
            for listing, task in self._inside.get((name, sign), ()):
                self._note(listing, task, facts, sign)
        finally:
            delta.clear()

    def _tell(self, step: Step, before: Before) -> None:
        """Spread the change, from the tables of before: readers may need them."""
        changes: list[tuple[str, Facts, Facts]] = []
        for name, touched in before.items():
            shape, levels = self.store.shapes[name], self.levels[name]
            gone = facts_of(shape, (row for row, numbers in touched.items() if numbers and row not in levels))
            new = facts_of(shape, (row for row, numbers in touched.items() if not numbers and row in levels))
            if gone or new:
                changes.append((name, gone, new))
        with step.guard.shield:
            for name, gone, new in changes:
                self.tables[name].remove(new)
                self.tables[name].merge(gone)
        for name, gone, new in changes:
            step.spread(name, gone, new)

    def _take_back(self, before: Before) -> None:
        for name, touched in before.items():
            shape, kept, levels = self.store.shapes[name], self.numbers[name], self.levels[name]
            for row, numbers in touched.items():
                if numbers:
                    kept[row], levels[row] = numbers, min(numbers)
                else:
                    kept.pop(row, None)
                    levels.pop(row, None)
            self.tables[name].remove(facts_of(shape, (row for row, numbers in touched.items() if not numbers)))
            self.tables[name].merge(facts_of(shape, (row for row, numbers in touched.items() if numbers)))

    # ── as a whole ───────────────────────────────────────────────────────────────────────────

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        self.forget()
        self.numbers = {name: {} for name in self.relations}
        self.levels = {name: {} for name in self.relations}
        for name in self.relations:
            self.tables[name].clear()
            for row in self.given[name]:
                self._plan(name, row, 1, 1)
        for listing, task in self._whole:
            if not listing.used:
                self._note(listing, task, None, 1)
        self._settle(step, {name: {} for name in self.relations})
        return {}

    def snapshot(self) -> Callable[[], None]:
        tables = table_snapshot(self.store, self.relations)
        numbers, levels = self.numbers, self.levels  # a rebuild makes new ones

        def restore() -> None:
            self.forget()
            tables()
            self.numbers, self.levels = numbers, levels

        return restore

    def check(self) -> None:
        """Iterate from nothing over all derivations, and compare.  Cost: iterations × derivations."""
        derivations = [
            ((listing.relation, row), used, number)
            for listing, task in self._whole
            for row, used, number in listing(task, None)
        ]
        derivations += [((name, row), (), 1) for name, rows in self.given.items() for row in rows]
        levels: dict[tuple[str, Row], int] = {}
        level, new = 1, {fact for fact, used, _ in derivations if not used}
        while new:
            levels.update(dict.fromkeys(new, level))
            level += 1
            new = {fact for fact, used, _ in derivations if fact not in levels and levels.keys() >= set(used)}
        numbers: dict[str, dict[Row, Numbers]] = {name: {} for name in self.relations}
        for (name, row), used, number in derivations:
            assert levels.keys() >= {(name, row), *used}, f"I3: {name}{row} is not well-founded"
            at, found = 1 + max((levels[fact] for fact in used), default=0), numbers[name].setdefault(row, {})
            found[at] = found.get(at, 0) + number
        assert self.numbers == numbers, f"I1: {self.planned.name}: {self.numbers} of {numbers}"
        for name in self.relations:
            assert self.levels[name] == {row: min(at) for row, at in numbers[name].items()}, f"I2: {name}"
            assert set(self.tables[name].rows()) == self.levels[name].keys(), f"I2: {name}"
        assert not self.agenda, "the agenda is empty between steps"
