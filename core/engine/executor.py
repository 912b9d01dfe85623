"""The engine as an executor."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from everlog.core.engine.engine import LARGE, Engine
from everlog.core.program import Program


@frozen
class Incremental:
    """`large` is the number of updates from which a step may recompute whole units."""

    strategies: Mapping[str, str] = field(factory=dict)
    large: int = LARGE

    def start(self, program: Program) -> Engine:
        return Engine(program, strategies=self.strategies, large=self.large)
