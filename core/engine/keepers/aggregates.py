"""The running state of aggregates: invertible totals, and ordered multisets.

`count`, `sum` and `mean` are totals in a group, so a lost contribution is subtracted.  Those of
whole numbers are linear, so that views of joins may add up for them; sums of floats are exact, as
integers of the smallest float, so that a subtraction leaves no rounding error.  `min` and `max` are
not invertible: they keep each group's values in order, so that the next value is known when the
present one goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain, repeat
from typing import Any, TypeAlias

from sortedcontainers import SortedDict

from everlog.core.engine.keepers.keeper import content_of
from everlog.core.program import Functor, Kind, Value
from everlog.core.program.aggregates.folded import in_order
from everlog.core.program.exact import ExactSum
from everlog.core.program.functors import one_nan
from everlog.core.program.order import rank
from everlog.core.program.values import MASK, Failed, NoValue, wrap
from everlog.core.storage.shape import Key

Target: TypeAlias = Any  # a value of the aggregate's kind


class Totals:
    """Base class of aggregates: state per group, by the values of the outer variables."""

    default: Value | None = None

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.groups: dict[Key, Any] = {}

    def add(self, group: Key, targets: Mapping[Target, int], sign: int) -> Target:
        """Add or remove targets, each a number of times; return the new value.

        Cost: that of the targets, times the logarithm of the group for `min` and `max`.
        """
        raise NotImplementedError

    def snapshot(self) -> Callable[[], None]:
        """A function that restores the present groups; a rebuild makes new states."""
        return content_of(self.groups)

    def clear(self) -> None:
        self.groups.clear()


class Linear(Totals):
    """`count`, and `sum` of whole numbers: targets, each times its number, are added up.

    So a view of a join may tell the total of many targets as a multiple of 1.  The total is wrapped
    to 64 bits when it is read; a group whose total is 0 has the value of an empty one.

    >>> total = Linear(Kind.NUMBER)
    >>> total.add("a", {5: 2, 1: 3}, 1), total.add("a", {1: 13}, -1), total.groups
    (13, 0, {})
    """

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.default = 0.0 if kind is Kind.FLOAT else 0

    def add(self, group: Key, targets: Mapping[Target, int], sign: int) -> Value:
        amount = targets[1] if len(targets) == 1 and 1 in targets else sum(t * n for t, n in targets.items())
        total: int = self.groups.get(group, 0) + sign * amount
        if total:
            self.groups[group] = total
        else:
            self.groups.pop(group, None)
        match self.kind:
            case Kind.NUMBER:
                return wrap(total)
            case Kind.UNSIGNED:
                return total & MASK
            case _:
                return float(total)


class Sum(Totals):
    """Exact totals of floats.

    >>> total = Sum(Kind.FLOAT)
    >>> total.add(0, {1e100: 1, 1.5: 2}, 1), total.add(0, {1e100: 1}, -1)
    (1e+100, 3.0)
    """

    default: Value | None = 0.0

    def add(self, group: Key, targets: Mapping[Target, int], sign: int) -> Value | None:
        state = self.groups.get(group)
        if state is None:
            state = self.groups[group] = [0, ExactSum()]
        for target, number in targets.items():
            state[0] += sign * number
            state[1].add(float(target), sign * number)
        if not state[0]:
            del self.groups[group]
            return self.default
        return self.value(*state)

    def value(self, number: int, total: ExactSum) -> Value:
        return float(total.value())


class Mean(Sum):
    """
    >>> mean = Mean(Kind.FLOAT)
    >>> mean.add(0, {1: 1, 4: 1}, 1), mean.add(0, {1: 1, 4: 1}, -1)
    (2.5, None)
    """

    default = None

    def value(self, number: int, total: ExactSum) -> Value:
        return one_nan(total.value() / number)


class Extreme(Totals):
    """
    >>> least = Extreme(Kind.NUMBER, 0)
    >>> least.add("a", {3: 1, 5: 2}, 1), least.add("a", {3: 1}, -1), least.add("a", {5: 2}, -1)
    (3, 5, None)
    """

    def __init__(self, kind: Kind, end: int) -> None:
        super().__init__(kind)
        self.end = end  # 0: the least, -1: the greatest
        self.ranked = kind is Kind.FLOAT  # store values with their rank: NaN has no order

    def add(self, group: Key, targets: Mapping[Target, int], sign: int) -> Value | None:
        values = self.groups.get(group)
        if values is None:
            values = self.groups[group] = SortedDict()
        for target, number in targets.items():
            key = rank(target) if self.ranked else target
            after = values.get(key, 0) + sign * number
            if after:
                values[key] = after
            else:
                values.pop(key, None)
        if not values:
            del self.groups[group]
            return None
        value: Target = values.peekitem(self.end)[0]
        return value[1] if self.ranked else value  # type: ignore[no-any-return]


class Folded(Totals):
    """A function of the user over the targets, in their order.

    >>> kinds = (Kind.SYMBOL, Kind.SYMBOL)
    >>> longest = Functor("longest", kinds, Kind.SYMBOL, lambda a, b: max(a, b, key=len))
    >>> total = Folded(longest, "")
    >>> total.add("g", {"pear": 1, "fig": 2}, 1), total.add("g", {"pear": 1}, -1), total.groups["g"]
    ('pear', 'fig', SortedDict({((False, 'fig'), 'fig'): 2}))

    Cost: a call for each target of the group, whenever the group changes.
    """

    def __init__(self, functor: Functor, start: Value) -> None:
        super().__init__(functor.result)
        self.functor, self.start, self.default = functor, start, start

    def add(self, group: Key, targets: Mapping[Target, int], sign: int) -> Target:
        values = self.groups.get(group)
        if values is None:
            values = self.groups[group] = SortedDict()
        for target, number in targets.items():
            key = rank(target), target
            values[key] = values.get(key, 0) + sign * number
            if not values[key]:
                del values[key]
        if not values:
            del self.groups[group]
            return self.default
        try:
            found = chain.from_iterable(repeat(target, number) for (_, target), number in values.items())
            return in_order(self.functor, self.start, found)
        except NoValue as problem:
            return Failed(problem.message)


class Partial(Totals):
    """An aggregate whose targets may fail; a failing target is its group's value.

    >>> total = Partial(Linear(Kind.NUMBER))
    >>> bad = Failed("division by zero: 1 / 0")
    >>> total.add(0, {bad: 1, 5: 1}, 1), total.add(0, {bad: 1}, -1)
    (Failed(message='division by zero: 1 / 0'), 5)
    """

    def __init__(self, sound: Totals) -> None:
        super().__init__(sound.kind)
        self.sound, self.default = sound, sound.default
        self.failed: dict[Key, dict[Failed, int]] = {}
        self.groups = sound.groups

    def add(self, group: Key, targets: Mapping[Target, int], sign: int) -> Target:
        value = self.sound.add(group, {t: n for t, n in targets.items() if t.__class__ is not Failed}, sign)
        failed = self.failed.setdefault(group, {})
        for target, number in targets.items():
            if target.__class__ is Failed:
                failed[target] = failed.get(target, 0) + sign * number
                if not failed[target]:
                    del failed[target]
        if failed:
            return min(failed, key=lambda target: target.message)
        del self.failed[group]
        return value

    def snapshot(self) -> Callable[[], None]:
        sound, failed = self.sound.snapshot(), content_of(self.failed)

        def restore() -> None:
            sound()
            failed()

        return restore

    def clear(self) -> None:
        self.sound.clear()
        self.failed.clear()


def totals_of(
    op: str,
    kind: Kind,
    may_fail: bool = False,
    functor: Functor | None = None,
    start: Value | None = None,
) -> Totals:
    """The state of an aggregate; `functor` and `start` are those of a function of the user."""
    if functor is not None:
        assert start is not None
        return Partial(Folded(functor, start))
    return Partial(_sound(op, kind)) if may_fail else _sound(op, kind)


def _sound(op: str, kind: Kind) -> Totals:
    match op:
        case "count":
            return Linear(kind)
        case "sum":
            return Sum(kind) if kind is Kind.FLOAT else Linear(kind)
        case "mean":
            return Mean(kind)
        case "min":
            return Extreme(kind, 0)
        case "max":
            return Extreme(kind, -1)
    raise AssertionError(f"no such aggregate: {op}")
