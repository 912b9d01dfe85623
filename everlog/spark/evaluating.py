"""Evaluate a program on Spark; the relations are DataFrames with the declared columns.

Inside, the backend names columns by their place; only here, and where a state or a database is
handed over, do they get the names that the user gave them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from everlog.core.program import Program
from everlog.spark_backend import evaluate as backend
from everlog.spark_backend.column_types import named
from everlog.spark_backend.evaluate import Evaluated, telling

if TYPE_CHECKING:
    from everlog.spark_backend.inputs import Input
    from everlog.spark_backend.spark_types import DataFrame, SparkSession

__all__ = ["Relations", "evaluate", "telling"]


class Relations(Mapping[str, "DataFrame"]):
    """The relations of a program, computed on Spark."""

    def __init__(self, program: Program, evaluated: Evaluated) -> None:
        self._program, self._evaluated = program, evaluated

    def __getitem__(self, name: str) -> DataFrame:
        return named(self._evaluated[name], self._program.relations[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._evaluated)

    def __len__(self) -> int:
        return len(self._evaluated)

    @property
    def ways(self) -> Mapping[str, str]:
        """How each relation was computed."""
        return self._evaluated.ways

    def release(self) -> None:
        """Free the caches of the relations; frames that are used again are recomputed."""
        self._evaluated.release()


def evaluate(
    spark: SparkSession, program: Program, inputs: Mapping[str, Input] | None = None, **options: Any
) -> Relations:
    """All relations of a program, from its facts and `inputs`.

    An input is a DataFrame with the columns of its relation, by position, or rows of Python.
    `options` are those of `everlog.spark_backend.evaluate`: `wanted` relations, `settings`, and
    others.  Raises FactError, or NotOnSpark if the program cannot run on Spark, before it runs.
    """
    return Relations(program, backend.evaluate(spark, program, inputs, **options))
