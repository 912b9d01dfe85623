"""The table of strategies: which keeper maintains a unit.

Adding a strategy is a file with a keeper, a line in `core.engine.planning.plan.STRATEGIES`, and a
line here.
"""

from __future__ import annotations

from everlog.core.engine.keepers.auxiliary import AuxiliaryKeeper
from everlog.core.engine.keepers.base import GivenKeeper
from everlog.core.engine.keepers.counted import CountKeeper
from everlog.core.engine.keepers.flow.flowing import FlowKeeper
from everlog.core.engine.keepers.groups import GroupKeeper
from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.keepers.recomputed import RecomputeKeeper
from everlog.core.engine.keepers.recursive.witnessed import RecursiveKeeper
from everlog.core.engine.planning import plan
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.store import Store

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
