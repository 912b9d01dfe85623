"""The engines for the laws, one for each way of applying a step."""

from __future__ import annotations

from collections.abc import Iterable

from everlog.core.engine import Engine, Incremental
from everlog.core.engine.engine import Net
from everlog.core.engine.stepping.changes import NOTHING
from everlog.core.program import Program
from everlog.core.program.executor import Changes, Update


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
