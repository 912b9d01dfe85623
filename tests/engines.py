"""The engines for the laws, one for each way of applying a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle

from attrs import field, frozen

from everlog.core.engine import Engine
from everlog.core.engine.engine import LARGE
from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.keepers.recursive.ranked import RankedKeeper
from everlog.core.engine.keepers.recursive.ranked_python import PythonRankedKeeper
from everlog.core.engine.keepers.recursive.turn_work import TurnWork
from everlog.core.engine.net_change import Net
from everlog.core.engine.stepping.changes import NOTHING
from everlog.core.engine.stepping.work import UNLIMITED
from everlog.core.program import Program
from everlog.core.program.executor import Changes, Update


@frozen
class Incremental:
    """The engine as an executor; a step of `large` updates may recompute whole units."""

    strategies: Mapping[str, str] = field(factory=dict)
    large: int = LARGE

    def start(self, program: Program) -> Engine:
        return Engine(program, strategies=self.strategies, large=self.large)


class BulkEngine(Engine):
    """An engine that recomputes every step."""

    def apply(self, step: Iterable[Update]) -> Changes:
        return self._apply_all(list(step))

    def _apply(self, net: Net) -> Changes:
        return self._compute(net) if net else NOTHING


class Bulk(Incremental):
    def start(self, program: Program) -> Engine:
        return BulkEngine(program)


class Hasty(Incremental):
    """An engine whose recursive units give up after little work, and compute themselves anew."""

    def start(self, program: Program) -> Engine:
        engine = super().start(program)
        for keeper in engine._network.keepers:
            if isinstance(keeper, PythonRankedKeeper):
                self._hurry(keeper.work)
            if isinstance(keeper, RankedKeeper):
                work = cycle((0, 1, 5, 20, 100))
                keeper.allowed = lambda work=work: next(work)  # type: ignore[misc,method-assign]
        return engine

    def _hurry(self, work: TurnWork) -> None:
        allowed = cycle((-1, 0, 10, 60, 300))

        def begin(keeper: Keeper) -> None:
            if not work.counting:
                work.counting = True
                work.allow(next(allowed) if keeper.proven else UNLIMITED)

        work.begin = begin  # type: ignore[method-assign]


EXECUTORS = {
    "follow": Incremental(large=10**9),
    "mixed": Incremental(large=3),
    "bulk": Bulk(),
    "ranked": Incremental({"*": "ranked"}, large=10**9),
    "ranked_python": Incremental({"*": "ranked_python"}, large=10**9),
    "hasty": Hasty({"*": "ranked"}, large=10**9),
    "hasty python": Hasty({"*": "ranked_python"}, large=10**9),
}
for join in ("view_tree", "calibrated", "generations", "heavy_light", "factorized"):  # wherever they serve
    EXECUTORS[join] = Incremental({"*": join}, large=10**9)
