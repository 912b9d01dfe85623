"""The table of strategies: which keeper maintains a unit.

Adding a strategy is a file with a keeper, a line in `core.engine.plan.STRATEGIES`, and a line here.

Reads: the strategies.  Read by: core.engine.engine.
"""

from __future__ import annotations

from everlog.core.engine import plan
from everlog.core.engine.auxiliary import AuxiliaryKeeper
from everlog.core.engine.counted import CountKeeper
from everlog.core.engine.flowing import FlowKeeper
from everlog.core.engine.given import GivenKeeper
from everlog.core.engine.groups import GroupKeeper
from everlog.core.engine.keeper import Keeper
from everlog.core.engine.plan import PlannedUnit
from everlog.core.engine.recomputed import RecomputeKeeper
from everlog.core.engine.store import Store
from everlog.core.engine.witnessed import RecursiveKeeper

KEEPERS: dict[str, type[Keeper]] = {
    plan.GIVEN: GivenKeeper,
    plan.COUNTS: CountKeeper,
    plan.GROUPS: GroupKeeper,
    plan.FLOW: FlowKeeper,
    plan.WITNESS: RecursiveKeeper,
    plan.RECOMPUTE: RecomputeKeeper,
}


def keeper_of(store: Store, planned: PlannedUnit, number: int) -> Keeper:
    """The keeper of a unit, with no facts yet."""
    keeper = AuxiliaryKeeper if planned.fit is not None else KEEPERS[planned.strategy]
    return keeper(store, planned, number)
