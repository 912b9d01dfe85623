"""The engines for the laws, one for each way of applying a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from everlog.core.engine import Engine
from everlog.core.engine.engine import LARGE, Net
from everlog.core.engine.stepping.changes import NOTHING
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


EXECUTORS = {
    "follow": Incremental(large=10**9),
    "mixed": Incremental(large=3),
    "bulk": Bulk(),
    "witness": Incremental({"*": "witness"}, large=10**9),
}
for join in ("view_tree", "calibrated", "generations", "heavy_light"):  # wherever they serve
    EXECUTORS[join] = Incremental({"*": join}, large=10**9)
