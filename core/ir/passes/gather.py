"""The innermost loop becomes one expression, where nothing but tests and the action are in it.

Before, for `far(x, y) :- edge(x, y), x != y.`, whose facts are a set of rows:

    scan edge(x, y)
      test x != y
      add far(x, y)

After:

    gather: add far(x, y), scan edge(x, y), test x != y

Python runs a comprehension about twice as fast as a loop.  A loop over a column whose values all go
with all values of a set is not even that: it becomes a factor of a product.
"""

from __future__ import annotations

from attrs import evolve

from everlog.core.ir.operations import Probe, Scan
from everlog.core.ir.passes.mentioned import mentions, only_variable
from everlog.core.ir.set_operations import (
    LOOPS,
    TESTS,
    Derive,
    Each,
    Gather,
    SetOperation,
    SetPlan,
)
from everlog.core.ir.uses import Action


def gather(plan: SetPlan) -> SetPlan:
    *before, derive = plan.operations
    assert isinstance(derive, Derive)
    if plan.use.living or derive.action not in (Action.ADD, Action.COLLECT) or derive.groups:
        return plan
    if plan.set_variable in derive.head.args:
        return evolve(plan, operations=_with_factor(before, derive))
    if derive.sets.members and not _is_only_filled(derive):
        return plan
    return plan if derive.keyed else evolve(plan, operations=_gathered(before, derive))


def _is_only_filled(derive: Derive) -> bool:
    """Whether all that matters is that one set has values, which has been tested."""
    return derive.action is Action.ADD and len(set(derive.sets.members)) == 1 and not derive.sets.dropped


def _gathered(before: list[SetOperation], derive: Derive) -> tuple[SetOperation, ...]:
    tests: list[SetOperation] = []
    while before and isinstance(before[-1], TESTS):
        tests.insert(0, before.pop())
    if before and isinstance(loop := before[-1], LOOPS):
        return (*before[:-1], Gather(loop, tuple(tests), derive))
    return (*before, *tests, derive)


def _with_factor(before: list[SetOperation], derive: Derive) -> tuple[SetOperation, ...]:
    """The loop as a factor, if it binds one column of the head, and nothing else that is needed."""
    loop = before[-1] if before else None
    sets = set(derive.sets.members)
    if not isinstance(loop, Scan | Probe | Each) or len(sets) > 1 or derive.sets.dropped or derive.keyed:
        return (*before, derive)
    variable = only_variable(loop)
    args = [arg for arg in derive.head.args if arg != variable]
    is_needed = variable is None or mentions(args, [variable])
    if is_needed or len(args) != len(derive.head.args) - 1 or derive.action is not Action.ADD:
        return (*before, derive)
    return (*before[:-1], evolve(derive, factor=loop))
