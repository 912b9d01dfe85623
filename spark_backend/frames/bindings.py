"""The bindings so far, as a DataFrame with a column for each variable.

Facts are sets, but a projection of a join is not.  `unique` says whether each binding is in the
frame once: then neither a rule nor an aggregate has to remove duplicates, the most expensive
operation.  If not, `rare` says that duplicates come only from duplicate rows of an input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve, field, frozen

from everlog.core.program import Kind, Variable
from everlog.spark_backend.column_types import HOLDS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Fresh: TypeAlias = Iterator[str]  # unused column names


@frozen
class Facts:
    """The facts of a relation; `unique`: no duplicate rows; `rare`: few of them."""

    frame: DataFrame
    unique: bool = True
    rare: bool = True


@frozen
class Bindings:
    """Bindings as a frame.

    Invariant: the frame has exactly the columns in `names` (or just `holds`), and `error` if set.
    `keys` determine the others.  The variables in `open` may have no value, where `error` says why.
    """

    frame: DataFrame
    names: Mapping[Variable, str] = field(factory=dict)
    kinds: Mapping[Variable, Kind] = field(factory=dict)
    keys: frozenset[Variable] = frozenset()
    unique: bool = True
    rare: bool = True
    error: str | None = None
    open: frozenset[Variable] = frozenset()

    def env(self) -> dict[Variable, Column]:
        from pyspark.sql import functions as F

        return {variable: F.col(name) for variable, name in self.names.items()}


def only(found: Bindings, frame: DataFrame) -> Bindings:
    """The bindings with a frame of exactly their columns."""
    shown = list(found.names.values()) or [HOLDS]
    return evolve(found, frame=frame.select(*shown, *([] if found.error is None else [found.error])))
