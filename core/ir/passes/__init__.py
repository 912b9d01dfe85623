"""The passes over a plan for Python, in order.

| pass | does |
|---|---|
| `unite` | a loop that only leads into an index becomes a union of sets |
| `hoist` | a union moves out of the loops that it does not need |
| `gather` | the innermost loop and its tests become one expression |

Each is a file, with a plan before and after it.  `mentioned` says what an operation uses.
"""

from collections.abc import Callable

from everlog.core.ir.passes.gather import gather
from everlog.core.ir.passes.hoist import hoist
from everlog.core.ir.passes.unite import unite
from everlog.core.ir.set_operations import SetPlan

PASSES: tuple[Callable[[SetPlan], SetPlan], ...] = (unite, hoist, gather)


def passed(plan: SetPlan) -> SetPlan:
    """The plan after all passes."""
    for one in PASSES:
        plan = one(plan)
    return plan


__all__ = ["PASSES", "passed"]
