"""Aggregates over intervals of an order, in code of a whole evaluation.

Code collects the facts of each group as {(place, target): number}.  The first interval of a group
that is asked for puts them in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from everlog.core.program import Value
from everlog.core.program.aggregates.ordered_groups import OrderedAggregate, interval_of
from everlog.core.storage.ordered_totals import OrderedGroup
from everlog.core.storage.shape import Key


def interval_values(
    form: OrderedAggregate,
) -> Callable[[dict[Key, Any], Key, Sequence[Value]], Value | None]:
    """A function from all groups, the key of one and values of the bounds to the aggregate."""
    ends = interval_of(form)
    nothing = OrderedGroup(form.op, form.kind).meaning(None)
    after = form.lower is not None and form.lower.strict
    before = form.upper is not None and form.upper.strict

    def value(groups: dict[Key, Any], key: Key, outside: Sequence[Value]) -> Value | None:
        interval, group = ends(outside), groups.get(key)
        if group is None or interval is None:
            return nothing
        if type(group) is dict:
            targets, group = group, OrderedGroup(form.op, form.kind)
            group.change(targets, 1)
            groups[key] = group
        return group.value(interval[0], after, interval[1], before)

    return value
