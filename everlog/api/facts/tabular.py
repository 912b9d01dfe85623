"""Facts from a table: checked column by column, made into rows by one `zip`.

Rows are checked value by value, but a column of a table has one type.  So the check looks at the
type and the extreme values; it iterates only over a column of Python objects, and searches for the
row of a wrong value only if there is one.

Columns are matched by name if the table has all names of the relation's columns; by position if it
has none of them, and the same number of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from attrs import frozen

from everlog.api.facts.word_columns import words_of_column
from everlog.core.native.words import empty_words
from everlog.core.program import Column, Kind, Relation, Row
from everlog.core.program.fact_rows import (
    FactError,
    checked_value,
    column_label,
    exact_floats,
    plain_column,
    shown,
)
from everlog.core.program.values import decoded
from everlog.tables.foreign_tables import BYTES, FLOAT, INTEGER, OBJECT, TEXT, ForeignColumn, columns_of

if TYPE_CHECKING:
    from everlog.core.native._machine import Relation as Words
    from everlog.core.native._machine import Symbols

_FITTING = {
    Kind.NUMBER: {INTEGER, OBJECT},
    Kind.UNSIGNED: {INTEGER, OBJECT},
    Kind.FLOAT: {FLOAT, INTEGER, OBJECT},
    Kind.SYMBOL: {TEXT, BYTES, OBJECT},
}
_WANTED = {
    Kind.NUMBER: "integers",
    Kind.UNSIGNED: "integers that are not negative",
    Kind.FLOAT: "floats or integers",
    Kind.SYMBOL: "text",
}


def rows_of_table(relation: Relation, source: object) -> list[Row]:
    """The rows of a table, in stored form; FactError if a column does not fit.

    >>> from everlog.core.program import Column
    >>> age = Relation("age", (Column("who", Kind.SYMBOL), Column("years", Kind.NUMBER)))
    >>> rows_of_table(age, {"years": [36, 41], "id": [7, 8], "who": ["Ada", "Alan"]})
    [('Ada', 36), ('Alan', 41)]
    >>> rows_of_table(age, {"who": ["Ada"], "years": ["41"]})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    everlog.core.program.fact_rows.FactError: age: column 2 (`years`:number): '41' is not a ...
    """
    chosen = _checked(relation, source)
    columns = [one.values() for one in chosen]
    _require_one_length(chosen, list(map(len, columns)))
    return list(zip(*columns, strict=True))


def words_of_table(relation: Relation, source: object, symbols: Symbols) -> Words:
    """The same for the compiled machine: columns of words, without an object for each number."""
    chosen = _checked(relation, source)
    columns = [words_of_column(one.source, one.column.kind, one.values, symbols) for one in chosen]
    _require_one_length(chosen, [memoryview(column).nbytes // 8 for column in columns])
    found = empty_words(relation, symbols)
    if columns:
        found.take(tuple(columns))
    found.seal()
    return found


def _require_one_length(chosen: Sequence[Chosen], lengths: Sequence[int]) -> None:
    if len(set(lengths)) > 1:
        listed = ", ".join(f"`{one.source.name}` has {n}" for one, n in zip(chosen, lengths, strict=True))
        name = chosen[0].relation.name
        raise FactError(f"{name}: the columns of the table have different lengths: {listed}")


@frozen
class Chosen:
    """A column of a relation, and the column of a table that is for it."""

    relation: Relation
    number: int
    source: ForeignColumn

    @property
    def column(self) -> Column:
        return self.relation.columns[self.number]

    def check(self) -> None:
        """Raise FactError if the type of the column does not fit, or a value is missing."""
        name, kind, source = self.relation.name, self.column.kind, self.source
        label = column_label(self.column, self.number + 1)
        if source.form not in _FITTING[kind]:
            raise FactError(
                f"{name}: {label} takes {_WANTED[kind]}; column `{source.name}` of the table is of type"
                f" {source.type}"
            )
        if source.missing is not None:
            raise FactError(
                f"{name}: {label} needs a value in every row; column `{source.name}` of the table has none"
                f" in row {source.missing + 1}"
            )

    def values(self) -> list[Any]:
        """The values in stored form; FactError if one does not fit."""
        kind, source = self.column.kind, self.source
        values = source.values()
        if source.form == BYTES:
            return list(map(decoded, values))
        if kind is Kind.FLOAT and source.form in (FLOAT, INTEGER):
            if source.form == FLOAT:
                return values
            with suppress(ValueError):  # otherwise the wrong row is searched for below
                return exact_floats(values)
        if plain_column(kind, values):
            return values
        out = []
        for row, value in enumerate(values):
            try:
                out.append(checked_value(self.relation, self.number, value))
            except FactError as problem:
                raise FactError(f"{problem}, in row {row + 1} of the table") from None
        return out


def _chosen(relation: Relation, table: Sequence[ForeignColumn]) -> list[ForeignColumn]:
    by_name: dict[str, ForeignColumn] = {}
    for column in table:
        by_name.setdefault(column.name, column)
    wanted = [column.name for column in relation.columns]
    twice = [name for name in wanted if sum(column.name == name for column in table) > 1]
    if twice:
        raise FactError(f"{relation.name}: the table has several columns `{twice[0]}`")
    missing = [name for name in wanted if name not in by_name]
    if not missing and (wanted or not table):
        return [by_name[name] for name in wanted]
    if len(missing) == len(wanted) == len(table):
        return list(table)
    has = ", ".join(f"`{column.name}`" for column in table[:20]) or "no columns"
    if wanted and len(missing) < len(wanted):
        lacks = ", ".join(f"`{name}`" for name in missing)
        raise FactError(f"{relation.name}: the table has no column {lacks} of `{relation}`; it has {has}")
    raise FactError(
        f"`{relation}` has {relation.arity} column(s), the table {len(table)}: {has}; use the names of the"
        " relation's columns, or the same number of columns in the same order"
    )


def _checked(relation: Relation, source: object) -> list[Chosen]:
    """The columns of a table for a relation, as far as their types and lengths tell."""
    table = columns_of(source)
    if table is None:
        raise FactError(f"{relation.name}: {shown(source)} is neither a table with columns nor rows")
    found = [Chosen(relation, number, column) for number, column in enumerate(_chosen(relation, table))]
    for one in found:
        one.check()
    return found
