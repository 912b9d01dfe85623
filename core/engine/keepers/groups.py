"""Aggregates: the value of each group, kept current.

An auxiliary rule derives `@count1(outer…, target)` once for each binding of the aggregate's body.
This keeper adds its derivations to running totals, and rules read the graph of a function: for each
value of the outer variables the aggregate's value.  A group that changes is one fact that goes and
one that comes.  `count` and `sum` of nothing are 0, so every group has a value; only groups that
are not empty are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from everlog.core.engine.keepers.aggregates import Totals, totals_of
from everlog.core.engine.keepers.counted import DerivingKeeper
from everlog.core.engine.keepers.keeper import content_of
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.store import Store
from everlog.core.program import Value
from everlog.core.program.aggregates.folded import is_folded
from everlog.core.storage.shape import Facts, Key
from everlog.core.storage.tables import Table

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step


class GroupValues(Table):
    """The graph of an aggregate, instead of a table: rules read its `values` only.

    The keeper writes them when it settles: no rule reads a group twice, so none needs the earlier
    value while the change is spread.
    """

    def __init__(self, values: dict[Key, Value]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def about(self) -> int:
        return len(self)

    def statistics(self) -> None:
        return None

    def remove(self, gone: Facts) -> None:
        pass

    def merge(self, new: Facts) -> Facts:
        return new

    def clear(self) -> None:
        self.values.clear()

    def check(self) -> None:
        pass


Targets: TypeAlias = dict[Key, dict[Value, int]]  # group → target → number of derivations


class GroupKeeper(DerivingKeeper):
    """Keeps the value of each group of an aggregate.

    Invariants:
      I1  the totals are those of all derivations of the auxiliary rule;
      I2  `values` has the value of every group that is not empty, or differs from the default.
    """

    about = "a running total or an ordered multiset for each group"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        assert planned.group is not None
        self.group = planned.group
        self.totals: Totals = self._new_totals()
        self.values = store.values.setdefault(self.name, {})
        self.graph = GroupValues(self.values)
        store.tables[self.name] = self.graph

    def _new_totals(self) -> Totals:
        group = self.group
        functor = self.store.functors[group.op[1:]] if is_folded(group.op) else None
        return totals_of(group.op, group.kind, group.may_fail, functor, group.start)

    def containers(self, relation: str) -> list[object]:
        return [self.values, self.totals.groups]

    def settle(self, step: Step) -> tuple[Facts, Facts]:
        plus, minus = self.plus, self.minus
        self.plus, self.minus = {}, {}
        if plus and minus:
            self.shape.cancel(plus, minus)
        came, went = self.shape.by_argument(plus), self.shape.by_argument(minus)
        gone: dict[Key, Value] = {}
        new: dict[Key, Value] = {}
        values, default = self.values, self.totals.default
        shield = step.guard.shield
        shield.held = True  # until the end: totals must be undone exactly once, and only if added
        step.undo.append((self._put_back, (came, went, gone, new)))
        for group, value in self._add(came, went).items():
            old = values.get(group, default)
            if value is not old and value != old:
                if old is not None:
                    gone[group] = old
                if value is not None:
                    new[group] = value
                if value is None or value == default:
                    del values[group]
                else:
                    values[group] = value
        shield.release()
        return self.shape.graph_of(gone), self.shape.graph_of(new)

    def _put_back(self, came: Targets, went: Targets, gone: dict[Key, Value], new: dict[Key, Value]) -> None:
        self._add(went, came)
        for group in new:
            self.values.pop(group, None)
        for group, value in gone.items():
            if value != self.totals.default:
                self.values[group] = value

    def _add(self, plus: Targets, minus: Targets) -> dict[Key, Value | None]:
        """Change the totals; return the value of each group that changed.

        A group changes once: a view may tell a total as terms that have no value one by one.
        """
        add, values = self.totals.add, dict[Key, Value | None]()
        for group, targets in plus.items():
            if group in minus:
                targets = dict(targets)
                for target, number in minus[group].items():
                    targets[target] = targets.get(target, 0) - number
            values[group] = add(group, targets, 1)
        for group, targets in minus.items():
            if group not in plus:
                values[group] = add(group, targets, -1)
        return values

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        self.forget_views()
        net = self.shape.by_argument(self.derive_all())
        self.totals.clear()
        self.values.clear()
        default = self.totals.default
        self.values.update({g: v for g, v in self._add(net, {}).items() if v is not None and v != default})
        step.guard.derived(self.name, len(self.values))
        return {}

    def snapshot(self) -> Callable[[], None]:
        totals, values = self.totals.snapshot(), content_of(self.values)

        def restore() -> None:
            self.forget()
            self.forget_views()
            totals()
            values()

        return restore

    def check(self) -> None:
        super().check()
        fresh = self._new_totals()
        values = {}
        for group, targets in self.shape.by_argument(self.derive_all()).items():
            if targets:
                values[group] = fresh.add(group, targets, 1)
        kept = {g: v for g, v in values.items() if v is not None and v != fresh.default}
        assert repr(sorted(self.values.items(), key=repr)) == repr(sorted(kept.items(), key=repr)), (
            f"I2: {self.name}: {self.values} is not {kept}"
        )
        assert self.totals.groups.keys() == fresh.groups.keys(), f"I1: {self.name}"
