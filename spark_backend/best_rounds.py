"""Maps to a best value as rounds of plans: the best candidate of each key, by grouping.

A round joins Δ, the keys that improved in the round before, and groups the candidates by key.  Of
each group the best value stays, if it is better than what is known.  Known values are kept in
pieces, newest last, like other known facts (`spark_backend.iterate`); a newer piece has better
values of the same keys, so the best of all pieces is the answer.

Rules are monotone, so the rounds end in the least fixpoint, if there is one.  If rules only add to
values, more rounds than there are keys mean a cycle that improves on itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from everlog.core.evaluate.best_first import ROUNDS, only_adds
from everlog.core.program import Kind, Program
from everlog.core.program.aggregates.best_values import BestMap
from everlog.core.program.dependencies import Unit
from everlog.core.program.values import EvaluationError
from everlog.spark_backend.frames.bindings import Facts
from everlog.spark_backend.frames.functors import order_key
from everlog.spark_backend.frames.rule_frames import Rules
from everlog.spark_backend.iterate import Iteration, Piece, Progress
from everlog.spark_backend.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def why_not_grouped(program: Program, maps: Mapping[str, BestMap]) -> str:
    """Why maps to a best value are computed in one process; empty if rounds group them."""
    for name, known in maps.items():
        columns = program.relations[name].columns
        if len(columns) == 1:
            return f"`{name}` has one best value and no key to group by"
        if columns[known.column].kind is Kind.FLOAT:
            return f"the values of `{name}` are floats, and one that is NaN has to be found"
    return ""


class BestRounds(Iteration):
    """The fixpoint computation of a unit of maps."""

    def __init__(
        self,
        rules: Rules,
        unit: Unit,
        base: Mapping[str, Facts],
        settings: Settings,
        progress: Progress | None,
        maps: Mapping[str, BestMap],
    ) -> None:
        super().__init__(rules, unit, base, settings, progress)
        self._maps, self._adds = maps, only_adds(unit, maps)

    def run(self, seeds: Mapping[str, Facts], known: Mapping[str, Facts] | None = None) -> dict[str, Facts]:
        found = super().run(seeds, known)
        return {name: Facts(self._best(name, facts.frame), unique=True) for name, facts in found.items()}

    def _tell(self, number: int, delta: Mapping[str, Piece]) -> None:
        super()._tell(number, delta)
        facts = sum(known.size() for known in self.known.values())  # at least as many as keys
        if self._adds and number > facts + ROUNDS and any(piece.size for piece in delta.values()):
            names = ", ".join(f"`{name}`" for name in self._maps)
            raise EvaluationError(f"{names} has no best value: along a cycle it improves for ever")

    def _keyed(self, name: str) -> tuple[list[str], str]:
        """The columns of the key, and that of the value."""
        value = f"c{self._maps[name].column}"
        return [column for column in self.known[name].order if column != value], value

    def _order(self, name: str, value: Column) -> Column:
        kind = self._rules.program.relations[name].columns[self._maps[name].column].kind
        return order_key(value, kind)

    def _best(self, name: str, frame: DataFrame) -> DataFrame:
        """The best value of each key."""
        from pyspark.sql import functions as F

        keys, value = self._keyed(name)
        choose = F.min_by if self._maps[name].op == "min" else F.max_by
        chosen = choose(F.col(value), self._order(name, F.col(value))).alias(value)
        return frame.groupBy(*keys).agg(chosen).select(*self.known[name].order)

    def _fresh(self, name: str, frame: DataFrame) -> Piece:
        """The best candidates that are better than what is known."""
        from pyspark.sql import functions as F

        known, (keys, value) = self.known[name], self._keyed(name)
        found = self._best(name, self._placed(name, frame))
        for piece in known.pieces:
            if not piece.size:
                continue
            before = piece.frame.select(*keys, F.col(value).alias("before"))
            joined = found.join(before.hint("merge"), keys, "left")
            new, old = self._order(name, F.col(value)), self._order(name, F.col("before"))
            better = new < old if self._maps[name].op == "min" else new > old
            found = joined.where(F.col("before").isNull() | better).select(*known.order)
        return self._checkpoints.cut(found)

    def _united(self, name: str, frames: Sequence[DataFrame]) -> DataFrame:
        return self._best(name, super()._united(name, frames))
