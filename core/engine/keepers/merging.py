"""Equivalence relations that follow their pairs: classes merge, and are split.

The pairs that rules derive, and base facts, are the edges of a graph; a class is a component of it.
Rules that do more than copy a relation derive their pairs in an auxiliary relation, which is kept
like any other (`core.engine.planning.flow_rules`: sources).  So all edges are in indexes of tables,
and none are kept twice.

*A pair comes*: two classes become one.  *A pair goes*: two searches, from both of its ends, either
meet, and the class stays, or one of them finds the part that split off.  When the searches of a
step have cost as much as going through the class, it is gone through once.

All members of a class share one set, which is never changed: a merge or a split makes new ones.
Cost: that of the classes that change, for their members are told; a search in a class that stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.planning.flow_rules import sources_and_steps
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.engine.stepping.step import Listener, Readers
from everlog.core.engine.stepping.store import Store
from everlog.core.program import Row, Value
from everlog.core.storage.equivalence import Classes, lacking
from everlog.core.storage.shape import Facts, PairFacts, ValueSet
from everlog.core.storage.table_shapes import PairShape

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step

_NONE: Any = frozenset()  # read as a set, never changed
_MANY = 10_000  # facts between two checks of the limits


_After = dict[Value, ValueSet]


class ClassKeeper(Keeper):
    """Keeps an equivalence relation that no rule of its own reads.

    Invariants:
      I1  two values share a set exactly when pairs connect them, and it holds just these values;
      I2  a value is there exactly when some pair has it.
    """

    about = "classes that merge and split as pairs come and go"
    no_rule = "the classes of the two values are merged or split"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        (self.name,) = self.relations
        self.sources, _ = sources_and_steps(planned.unit, PairShape())
        self._gone: list[Row] = []
        self._new: list[Row] = []
        self._bind()

    def _bind(self) -> None:
        """Bind the indexes of all pairs, in both directions; they change in place."""
        tables = self.store.tables
        table = tables[self.name]
        assert isinstance(table, Classes)
        self.table = table
        self._base = {key: PairShape(1 - key).facts_of(self.given[self.name]) for key in (0, 1)}
        self._around: list[PairFacts] = [self._base[0], self._base[1]]
        for relation in dict.fromkeys(source.relation for source in self.sources):
            self._around += [tables[relation].steps(0, 1), tables[relation].steps(1, 0)]

    def use(self, store: Store) -> None:
        super().use(store)
        self._bind()

    # ── hearing of changes ───────────────────────────────────────────────────────────────────

    def listen(self, readers: dict[str, Readers]) -> None:
        for relation in dict.fromkeys(source.relation for source in self.sources):
            entry = readers.setdefault(relation, Readers())
            entry.losses.append(self._hears(relation, gone=True))
            entry.gains.append(self._hears(relation, gone=False))

    def _hears(self, relation: str, gone: bool) -> Listener:
        def listener(step: Step, delta: Facts) -> None:
            (self._gone if gone else self._new).extend(self.store.shapes[relation].rows_of(delta))
            step.wake(self)

        return listener

    def change_given(self, relation: str, gone: list[Row], new: list[Row]) -> None:
        super().change_given(relation, gone, new)
        for key, facts in self._base.items():
            shape = PairShape(1 - key)
            shape.take_facts(facts, shape.facts_of(gone))
            shape.add_facts(facts, shape.facts_of(new))

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        self._gone.extend(gone)
        self._new.extend(new)
        step.wake(self)

    def forget(self) -> None:
        self._gone, self._new = [], []

    # ── a turn ───────────────────────────────────────────────────────────────────────────────

    def turn(self, step: Step) -> None:
        began = perf_counter()
        after = self._after()
        self.forget()
        self._took(perf_counter() - began)
        facts = self.table.facts
        before = {value: facts[value] for value in after if value in facts}
        now = {value: values for value, values in after.items() if values}
        gone, new = lacking(before, now), lacking(now, before)
        if gone or new:
            step.guard.derived(self.name, sum(map(len, new.values())))
            self._spread(step, gone, new, before, after)

    def _spread(self, step: Step, gone: PairFacts, new: PairFacts, before: PairFacts, after: _After) -> None:
        step.undo.append((self.table.reassign, ({value: before.get(value, _NONE) for value in after},)))
        if self.exact:  # for a while, members of a class have sets of their own
            step.spread(self.name, gone, new)
            with step.guard.shield:
                self.table.share(after)
        else:
            with step.guard.shield:
                self.table.share(after)
                self.table.follow(gone, new)
            step.spread(self.name, gone, new, applied=True)

    def _after(self) -> _After:
        """The class of each value that may have another one now; an empty one if it went."""
        after: _After = {}
        self._split(after)
        fresh: dict[int, ValueSet] = {}
        for a, b in self._new:
            self._merge(a, b, after, fresh)
        return after

    def _class_of(self, value: Value, after: _After) -> ValueSet:
        found = after.get(value)
        return self.table.facts.get(value, _NONE) if found is None else found

    def _next_to(self, value: Value) -> ValueSet:
        """The values that some pair connects with a value."""
        return set().union(*[index.get(value, _NONE) for index in self._around])

    def _supports(self, value: Value, other: Value) -> int:
        """How many pairs connect two values: a value with itself, twice as many."""
        return sum(other in index.get(value, _NONE) for index in self._around)

    def _merge(self, a: Value, b: Value, after: _After, fresh: dict[int, ValueSet]) -> None:
        """Make one class of two; `fresh` has the sets of this step, which nothing else uses yet."""
        left, right = self._class_of(a, after), self._class_of(b, after)
        if left and b in left:
            return
        large, small = left or {a}, right or {b}
        if len(large) < len(small):
            large, small = small, large
        if id(large) not in fresh:
            large = set(large)
            fresh[id(large)] = large
            after.update(dict.fromkeys(large, large))
        large |= small
        after.update(dict.fromkeys(small, large))

    def _split(self, after: _After) -> None:
        """Split the classes that lost pairs, as if they went one after the other."""
        left = _Pairs(self._next_to, self._supports, self._new, self._gone)
        spent: dict[int, int] = {}  # class before the step → values that searches have seen
        facts = self.table.facts
        for a, b in self._gone:
            left.goes(a, b)
            old, whole = facts[a], self._class_of(a, after)
            if b not in whole or spent.get(id(old), 0) > len(old) or b in left.next_to(a):
                continue  # parted already, by itself or with its class; or another rule has the pair
            if a == b:
                if len(whole) == 1:
                    self._cut({a}, after, left)
                continue
            part, seen = _parted(a, b, left.next_to)
            spent[id(old)] = spent.get(id(old), 0) + seen
            if spent[id(old)] > len(old):  # go through the class once
                for found in components(old, left.at_last):
                    self._cut(found, after, left)
            elif part is not None:
                self._cut(set(whole) - part, after, left)
                self._cut(part, after, left)

    def _cut(self, part: ValueSet, after: _After, left: _Pairs) -> None:
        """Make a part a class of its own; a single value goes if no pair has it."""
        after.update(dict.fromkeys(part, part))
        if len(part) == 1:
            (value,) = part
            if not left.at_last(value):
                after[value] = _NONE

    # ── as a whole ───────────────────────────────────────────────────────────────────────────

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        began = perf_counter()
        self.forget()
        facts: PairFacts = {}
        new = 0
        for part in components(set().union(*self._around), self._next_to):
            facts.update(dict.fromkeys(part, part))
            new += len(part) ** 2
            if new > _MANY:
                step.guard.derived(self.name, new)
                new = 0
        step.guard.derived(self.name, new)
        self.table.replace(facts)
        self._took(perf_counter() - began)
        return {}

    def state(self) -> Columns:
        return self.table.columns()

    def restore(self, columns: Columns) -> None:
        self.forget()
        self.table.restore(iter(columns))

    def check(self) -> None:
        facts = self.table.facts
        parts = list(components(set().union(*self._around), self._next_to))
        assert {value: part for part in parts for value in part} == facts, f"I1, I2: {self.name}"
        assert len({id(values) for values in facts.values()}) == len(parts), f"I1: {self.name}"


class _Pairs:
    """The pairs of the state before a step, while those that go are taken away one by one."""

    def __init__(
        self,
        now: Callable[[Value], ValueSet],
        supports: Callable[[Value, Value], int],
        new: list[Row],
        gone: list[Row],
    ) -> None:
        came = Counter(pair for a, b in new for pair in ((a, b), (b, a)))
        self._now = now
        self._new = {pair for pair, number in came.items() if supports(*pair) == number}  # no older one is there
        self._gone: dict[Value, Counter[Value]] = {}
        for a, b in gone:
            self._gone.setdefault(a, Counter())[b] += 1
            self._gone.setdefault(b, Counter())[a] += 1

    def goes(self, a: Value, b: Value) -> None:
        for one, other in ((a, b), (b, a)):
            self._gone[one][other] -= 1
            if not self._gone[one][other]:
                del self._gone[one][other]

    def next_to(self, value: Value) -> ValueSet:
        """The values that pairs connect with a value now."""
        left = self._gone.get(value)
        return self.at_last(value).union(left) if left else self.at_last(value)

    def at_last(self, value: Value) -> ValueSet:
        """The same when all pairs that go are gone."""
        near = self._now(value)
        return {other for other in near if (value, other) not in self._new} if self._new else near


def _parted(a: Value, b: Value, near: Callable[[Value], ValueSet]) -> tuple[ValueSet | None, int]:
    """The values around one end, if they do not lead to the other; and how many were seen.

    The searches from both ends take turns, so that the smaller part decides the cost.
    """
    sides = [({a}, [a]), ({b}, [b])]
    while True:
        for n, (seen, front) in enumerate(sides):
            other = sides[1 - n][0]
            if not front:
                return seen, len(seen) + len(other)
            new = near(front.pop()) - seen
            if not new.isdisjoint(other):
                return None, len(seen) + len(other)
            front += new
            seen |= new


def components(values: Iterable[Value], near: Callable[[Value], ValueSet]) -> Iterator[ValueSet]:
    """The values that lead to each other by `near`, a set for each component."""
    done: ValueSet = set()
    for value in values:
        if value not in done:
            part, front = {value}, [value]
            while front:
                new = near(front.pop()) - part
                part |= new
                front += new
            done |= part
            yield part
