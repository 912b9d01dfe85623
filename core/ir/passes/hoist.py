"""A union moves out of the loops that it does not need: it is made once, not for each turn.

Before, for `same(x, y) :- Δsame(u, v), up(x, u), up(y, v).` of one order:

    keys Δ same(u, …) as _values1
      each x in up(…, =u)
        union _S3 = up(…, v), each v in _values1
        add same(x, y), y in _S3

After:

    keys Δ same(u, …) as _values1
      union _S3 = up(…, v), each v in _values1
      each x in up(…, =u)
        add same(x, y), y in _S3

Loops that stand between are not begun where the union is empty.
"""

from __future__ import annotations

from attrs import evolve

from everlog.core.ir.passes.mentioned import bound_by, mentions
from everlog.core.ir.set_operations import LOOPS, Loop, SetOperation, SetPlan, Union


def hoist(plan: SetPlan) -> SetPlan:
    done: list[SetOperation] = []
    for operation in plan.operations:
        place = len(done)
        if isinstance(operation, Union):
            while place and isinstance(loop := done[place - 1], LOOPS) and not _needs(operation, loop):
                place -= 1
            operation = evolve(operation, is_outside=place < len(done))
        done.insert(place, operation)
    return evolve(plan, operations=tuple(done))


def _needs(union: Union, loop: Loop) -> bool:
    """Whether a union reads what a loop binds."""
    return mentions([union.over], bound_by(loop))
