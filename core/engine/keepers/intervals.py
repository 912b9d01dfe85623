"""Aggregates over intervals of an order: ranks, previous and next, running and rolling totals.

`n = count : { rev(_, u), u > t }` is a value for each t.  Joining facts with bounds would take time
and space for each pair of them.  This keeper has the facts of each group in order, with totals
(`core.storage.ordered_totals`), and the bounds in order, too:

*A fact comes or goes.*  The bounds whose intervals have its place lie side by side.  They are
visited from that place outwards.  A count or sum changes for each of them.  A least or greatest
value changes only until an interval has a better one; a count that is compared with a constant
matters only below that.  There the visit ends.

*A bound comes or goes.*  Its value is the total of an interval: two searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, field
from sortedcontainers import SortedList

from everlog.core.engine.keepers.groups import GroupValues
from everlog.core.engine.keepers.keeper import Keeper, content_of, outside_relations, versions
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.step import Listener, Readers
from everlog.core.engine.stepping.store import Store, Task
from everlog.core.ir.uses import Action, Use
from everlog.core.program import Row, Value
from everlog.core.program.aggregates.ordered_groups import interval_of
from everlog.core.storage.ordered_totals import OrderedGroup
from everlog.core.storage.shape import Counted, Facts, Key
from everlog.core.storage.table_shapes import shape_of

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step

Targets = dict[Row, dict[tuple[Any, Any], int]]  # group → (place, target) → number


@define
class _Part:
    """One group: its facts, and its bounds as (anchor, other end, outer values)."""

    facts: OrderedGroup
    bounds: Any = field(factory=SortedList)  # by the upper end, or by the lower one if there is no other


class OrderedKeeper(Keeper):
    """Keeps an aggregate for each value of its bounds.

    Invariants:
      I1  the facts of a group are the derivations of `entries`, its bounds the facts of `domain`;
      I2  `values` has the value of each bound, unless it is that of nothing.
    """

    about = "the facts in order, with totals of intervals"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        assert planned.group is not None
        assert planned.group.ordered is not None
        self.name = planned.unit.relations[0]
        ordered = self.ordered = planned.group.ordered
        self.form, self.op = ordered.form, ordered.form.op
        self.shape, self.domain_shape = store.shapes[self.name], store.shapes[ordered.domain]
        entries = ordered.entries
        self.entry_shape = store.shapes[entries.head.relation] = shape_of(len(entries.head.args))
        self.values: dict[Key, Value] = store.values.setdefault(self.name, {})
        store.tables[self.name] = GroupValues(self.values)
        self.nothing = OrderedGroup(self.op, self.form.kind).meaning(None)
        self.parts: dict[Row, _Part] = {}
        self.plus: Counted = {}
        self.minus: Counted = {}
        self.came: list[Facts] = []
        self.went: list[Facts] = []
        self._ends = interval_of(self.form)
        outer = [v.name for v in self._outer()]
        self._group_of = _picked([outer.index(v.name) for v in self.form.group])
        self._outside_of = _picked([outer.index(v.name) for v in self.form.outside])
        self._whole = Task(store, entries, None, Use(Action.COUNT))
        self._versions: list[Task] = []
        self._after = self.form.lower is not None and self.form.lower.strict
        self._before = self.form.upper is not None and self.form.upper.strict

    def _outer(self) -> list[Any]:
        """The outer variables in the order of the relation's columns."""
        return list(self.planned.unit.rules[0].head.args[:-1])

    def containers(self, relation: str) -> list[object]:
        return [self.values, self.parts]

    def tasks(self) -> Iterator[Task]:
        yield self._whole
        yield from self._versions

    # ── hearing of changes ───────────────────────────────────────────────────────────────────

    def listen(self, readers: dict[str, Readers]) -> None:
        self._versions.clear()
        for relation in outside_relations(self.ordered.entries, self.relations):
            uses = {1: Use(Action.COUNT), -1: Use(Action.COUNT)}
            for event, sign, task, filtered in versions(self.store, self.ordered.entries, relation, uses):
                self._versions.append(task)
                entry = readers.setdefault(relation, Readers())
                entry.filtered |= filtered
                entry.of(event, sign).append(self._hearing(task, sign))
        domain = readers.setdefault(self.ordered.domain, Readers())
        domain.losses.append(self._bounds(lambda: self.went))
        domain.gains.append(self._bounds(lambda: self.came))

    def _hearing(self, task: Task, sign: int) -> Listener:
        def listener(step: Step, delta: Facts) -> None:
            task(delta, self.plus if sign > 0 else self.minus)
            step.wake(self)

        return listener

    def _bounds(self, changed: Callable[[], list[Facts]]) -> Listener:
        def listener(step: Step, delta: Facts) -> None:
            changed().append(delta)
            step.wake(self)

        return listener

    def forget(self) -> None:
        self.plus, self.minus, self.came, self.went = {}, {}, [], []

    # ── a turn ───────────────────────────────────────────────────────────────────────────────

    def turn(self, step: Step) -> None:
        plus, minus = self.plus, self.minus
        came, went = self._keys(self.came), self._keys(self.went)
        self.forget()
        if plus and minus:
            self.entry_shape.cancel(plus, minus)
        new_facts, old_facts = self._by_group(plus), self._by_group(minus)
        gone: dict[Key, Value] = {}
        new: dict[Key, Value] = {}
        shield = step.guard.shield
        shield.held = True  # until the end: what was changed is undone exactly once
        step.undo.append((self._put_back, (new_facts, old_facts, came, went, gone, new)))
        self._change(new_facts, old_facts)
        for key in went:
            self._leave(key)
            self._note(key, self.nothing, gone, new)
        for key in came:
            self._enter(key)
            self._note(key, self._value(key), gone, new)
        for group in {**new_facts, **old_facts}:
            targets = [*new_facts.get(group, ()), *old_facts.get(group, ())]
            self._visit(group, targets, gone, new)
        shield.release()
        if gone or new:
            step.spread(self.name, self.shape.graph_of(gone), self.shape.graph_of(new))

    def _keys(self, changes: Iterable[Facts]) -> list[Row]:
        return [row for facts in changes for row in self.domain_shape.rows_of(facts)]

    def _by_group(self, counted: Counted) -> Targets:
        out: Targets = {}
        for (place, target, *group), number in self.entry_shape.counted_rows(counted):
            if place == place:
                out.setdefault(tuple(group), {})[place, target] = number
        return out

    def _change(self, plus: Targets, minus: Targets) -> None:
        for group, targets in plus.items():
            self._part(group).facts.change(targets, 1)
        for group, targets in minus.items():
            part = self._part(group)
            part.facts.change(targets, -1)
            self._drop_empty(group, part)

    def _part(self, group: Row) -> _Part:
        part = self.parts.get(group)
        if part is None:
            part = self.parts[group] = _Part(OrderedGroup(self.op, self.form.kind))
        return part

    def _drop_empty(self, group: Row, part: _Part) -> None:
        if not len(part.facts) and not part.bounds:
            del self.parts[group]

    def _placed(self, key: Row) -> tuple[Row, tuple[Any, Any, Row]] | None:
        """The group of a bound, and its place among the others; None if nothing lies in it."""
        interval = self._ends(self._outside_of(key))
        if interval is None:
            return None
        low, high = interval
        return self._group_of(key), ((low, high, key) if high is None else (high, low, key))

    def _enter(self, key: Row) -> None:
        found = self._placed(key)
        if found is not None:
            self._part(found[0]).bounds.add(_Bound(found[1]))

    def _leave(self, key: Row) -> None:
        found = self._placed(key)
        if found is not None:
            part = self.parts[found[0]]
            part.bounds.remove(_Bound(found[1]))
            self._drop_empty(found[0], part)

    def _value(self, key: Row) -> Value | None:
        interval, part = self._ends(self._outside_of(key)), self.parts.get(self._group_of(key))
        if interval is None or part is None:
            return self.nothing
        return self._limited(part.facts.value(interval[0], self._after, interval[1], self._before))

    def _limited(self, value: Value | None) -> Value | None:
        limit = self.ordered.limit
        return value if limit is None or value is None or value < limit else limit  # type: ignore[operator]

    def _note(self, row: Row, value: Value | None, gone: dict[Key, Value], new: dict[Key, Value]) -> bool:
        """Give a bound a value; whether it changed."""
        key, nothing = row[0] if len(row) == 1 else row, self.nothing
        old = self.values.get(key, nothing)
        if value is old or value == old:
            return False
        first = gone.pop(key, nothing) if key in new or key in gone else old
        new.pop(key, None)
        if first is not None and first != value:
            gone[key] = first
        if value is not None and first != value:
            new[key] = value
        if value == nothing:
            self.values.pop(key, None)
        else:
            assert value is not None
            self.values[key] = value
        return True

    def _put_back(
        self,
        plus: Targets,
        minus: Targets,
        came: list[Row],
        went: list[Row],
        gone: dict[Key, Value],
        new: dict[Key, Value],
    ) -> None:
        self._change(minus, plus)
        for key in came:
            self._leave(key)
        for key in went:
            self._enter(key)
        for group in new:
            self.values.pop(group, None)
        for group, value in gone.items():
            if value != self.nothing:
                self.values[group] = value

    # ── from a place outwards ────────────────────────────────────────────────────────────────

    def _visit(
        self, group: Row, targets: list[tuple[Any, Any]], gone: dict[Key, Value], new: dict[Key, Value]
    ) -> None:
        """Compute the values of the bounds whose intervals contain one of these places.

        Cost: at most twice that of all bounds of the group, however many places have changed.
        """
        part = self.parts.get(group)
        if part is None or not part.bounds:
            return
        stops = self.form.grows and (self.op in ("min", "max") or self.ordered.limit is not None)
        if self.form.grows and not stops:  # of nested ranges the widest has all
            places = [place for place, _ in targets]
            targets = [(max(places) if self.form.upper is None else min(places), None)]
        left = len(part.bounds)
        for place, target in targets:
            for bound in self._from(part, place):
                if not left:
                    for each in part.bounds:
                        self._note(each.key, self._value(each.key), gone, new)
                    return
                left -= 1
                key = bound.key
                before = self.values.get(key[0] if len(key) == 1 else key, self.nothing)
                value = self._value(key)
                self._note(key, value, gone, new)
                if stops and self._is_beyond(target, before) and self._is_beyond(target, value):
                    break

    def _from(self, part: _Part, place: Any) -> Iterator[_Bound]:
        """The bounds whose intervals contain a place, the nearest first."""
        bounds: Any = part.bounds
        if self.form.upper is None:
            last = bounds.bisect_left(_Edge(place)) if self._after else bounds.bisect_right(_Edge(place))
            for at in range(last - 1, -1, -1):
                yield bounds[at]
            return
        first = bounds.bisect_right(_Edge(place)) if self._before else bounds.bisect_left(_Edge(place))
        sliding = self.form.is_sliding
        for bound in bounds.islice(first):
            low = bound.other
            if low is None or low < place or (low == place and not self._after):
                yield bound
            elif sliding:
                return

    def _is_beyond(self, target: Any, value: Value | None) -> bool:
        """Whether a target changes neither the value of an interval nor that of a larger one."""
        if self.ordered.limit is not None:
            return value == self.ordered.limit
        if value is None or target != target:
            return False
        return value < target if self.op == "min" else value > target or value != value

    # ── as a whole ───────────────────────────────────────────────────────────────────────────

    def _derived(self) -> Targets:
        self.plus, self.minus = {}, {}
        counted: Counted = {}
        self._whole(None, counted)
        return self._by_group(counted)

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        self.forget()
        self.parts.clear()
        self.values.clear()
        self._change(self._derived(), {})
        keys = list(self.store.tables[self.ordered.domain].rows())
        placed: dict[Row, list[_Bound]] = {}
        for key in keys:
            found = self._placed(key)
            if found is not None:
                placed.setdefault(found[0], []).append(_Bound(found[1]))
        for group, bounds in placed.items():
            self._part(group).bounds = SortedList(bounds)
        for key in keys:
            value = self._value(key)
            if value is not None and value != self.nothing:
                self.values[key[0] if len(key) == 1 else key] = value
        step.guard.derived(self.name, len(self.values))
        return {}

    def snapshot(self) -> Callable[[], None]:
        parts, values = content_of(self.parts), content_of(self.values)

        def restore() -> None:
            self.forget()
            parts()
            values()

        return restore

    def check(self) -> None:
        derived, keys = self._derived(), list(self.store.tables[self.ordered.domain].rows())
        bounds = {bound.key for part in self.parts.values() for bound in part.bounds}
        assert bounds == {key for key in keys if self._placed(key) is not None}, f"I1: {self.name}"
        for group, part in self.parts.items():
            part.facts.check()
            fresh = OrderedGroup(self.op, self.form.kind)
            fresh.change(derived.pop(group, {}), 1)
            assert fresh.states == part.facts.states, f"I1: {self.name}: {group}"
        assert not derived, f"I1: {self.name}: {derived}"
        wanted = {key[0] if len(key) == 1 else key: self._value(key) for key in keys}
        kept = {key: value for key, value in wanted.items() if value is not None and value != self.nothing}
        assert repr(sorted(self.values.items(), key=repr)) == repr(sorted(kept.items(), key=repr)), (
            f"I2: {self.name}: {self.values} is not {kept}"
        )


class _Edge:
    """A place, compared with bounds by their anchors alone."""

    __slots__ = ("anchor",)

    def __init__(self, anchor: Any) -> None:
        self.anchor = anchor

    def __lt__(self, other: _Bound) -> bool:
        return self.anchor < other.anchor  # type: ignore[no-any-return]


class _Bound:
    """The interval of some outer values: its anchor, its other end, and those values."""

    __slots__ = ("anchor", "key", "other")

    def __init__(self, placed: tuple[Any, Any, Row]) -> None:
        self.anchor, self.other, self.key = placed

    def __lt__(self, other: _Bound | _Edge) -> bool:
        if isinstance(other, _Edge) or self.anchor != other.anchor:
            return self.anchor < other.anchor  # type: ignore[no-any-return]
        if self.other != other.other:
            return self.other < other.other  # type: ignore[no-any-return]
        return self.key < other.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bound) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _picked(columns: list[int]) -> Callable[[Row], Row]:
    """A function from a row to the values of some of its columns."""
    return lambda row: tuple([row[column] for column in columns])
