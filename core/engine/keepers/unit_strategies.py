"""The table of strategies: which keeper maintains a unit.

A strategy is a file with a keeper, which also describes it, and a line here;
`core.engine.planning.plan` chooses it by its name.
"""

from __future__ import annotations

from collections.abc import Mapping

from everlog.core.engine.keepers.auxiliary import AuxiliaryKeeper
from everlog.core.engine.keepers.base import BaseKeeper
from everlog.core.engine.keepers.best import BestKeeper
from everlog.core.engine.keepers.counted import CountKeeper
from everlog.core.engine.keepers.flow.flowing import FlowKeeper
from everlog.core.engine.keepers.groups import GroupKeeper
from everlog.core.engine.keepers.growing import GrowingKeeper
from everlog.core.engine.keepers.intervals import OrderedKeeper
from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.keepers.merging import ClassKeeper
from everlog.core.engine.keepers.recomputed import RecomputeKeeper
from everlog.core.engine.keepers.recursive.ranked import RankedKeeper
from everlog.core.engine.keepers.recursive.ranked_python import PythonRankedKeeper
from everlog.core.engine.keepers.views.view_keeper import ViewKeeper
from everlog.core.engine.planning import plan
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.planning.view_rules import VIEW
from everlog.core.engine.stepping.store import Store

KEEPERS: dict[str, type[Keeper]] = {
    plan.GIVEN: BaseKeeper,
    plan.COUNTS: CountKeeper,
    plan.GROUPS: GroupKeeper,
    plan.ORDERED: OrderedKeeper,
    plan.BEST: BestKeeper,
    plan.GROWING: GrowingKeeper,
    plan.FLOW: FlowKeeper,
    plan.CLASSES: ClassKeeper,
    plan.RANKED: RankedKeeper,
    plan.RANKED_PYTHON: PythonRankedKeeper,
    VIEW: ViewKeeper,
    plan.RECOMPUTE: RecomputeKeeper,
}


STRATEGIES: Mapping[str, str] = {name: keeper.about for name, keeper in KEEPERS.items()}


def keeper_type(planned: PlannedUnit) -> type[Keeper]:
    """The class of the keeper of a unit."""
    return AuxiliaryKeeper if planned.fit is not None else KEEPERS[planned.strategy]


def keeper_of(store: Store, planned: PlannedUnit, number: int) -> Keeper:
    """The keeper of a unit, with no facts yet."""
    return keeper_type(planned)(store, planned, number)
