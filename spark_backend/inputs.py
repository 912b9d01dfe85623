"""Inputs of relations on Spark, frames or rows, checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from everlog.core.program import Kind, Relation, Row
from everlog.core.program.fact_rows import FactError, fact_rows
from everlog.spark_backend.column_types import TYPES, frame_of_rows, kinds_of, names_of, no_null

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import TypeIs

Input: TypeAlias = "DataFrame | Iterable[Row]"


class WrongInput(FactError):
    """A frame does not fit its relation."""


def is_frame(source: Input | None) -> TypeIs[DataFrame]:
    return hasattr(source, "toArrow")


def frame_of_input(spark: SparkSession, source: Input, relation: Relation) -> DataFrame:
    """The input of a relation as a frame, or FactError."""
    if is_frame(source):
        return conforming(source, relation)
    return frame_of_rows(spark, fact_rows(relation, source), kinds_of(relation))


def conforming(frame: DataFrame, relation: Relation) -> DataFrame:
    """A user's frame as facts of a relation: our names and types, and no nulls."""
    from pyspark.sql import functions as F

    kinds = kinds_of(relation)
    fields = frame.schema.fields
    if not kinds:
        return frame.limit(1).select(F.lit(True).alias(names_of(0)[0]))
    if len(fields) != len(kinds):
        found = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in fields)
        raise WrongInput(f"`{relation}` has {len(kinds)} columns, its input has {len(fields)}: {found}")
    columns = []
    for n, (column, kind) in enumerate(zip(fields, kinds, strict=True)):
        held = column.dataType.simpleString()
        if held not in _FITTING[TYPES[kind]]:
            raise WrongInput(
                f"column `{relation.columns[n].name}` of `{relation}` is a {kind}, which Spark holds as "
                f"{TYPES[kind]}; the input has {column.name} {held}"
            )
        value = F.col(f"f{n}").cast(TYPES[kind])
        value = value + F.lit(0.0) if kind is Kind.FLOAT else value  # never -0.0
        if column.nullable:
            message = (
                f"the input of `{relation.name}` has a null in its column `{column.name}`; facts have no nulls"
            )
            value = F.coalesce(value, F.raise_error(F.lit(message)).cast(TYPES[kind]), no_null(kind))
        columns.append(value.alias(f"c{n}"))
    return frame.toDF(*(f"f{n}" for n in range(len(kinds)))).select(*columns)


_FITTING = {
    "bigint": {"bigint", "int", "smallint", "tinyint"},
    "double": {"double", "float"},
    "string": {"string", "binary"},
}
