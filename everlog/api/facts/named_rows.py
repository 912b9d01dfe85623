"""Rows as dicts and dataclasses: in, by the names of columns, and out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from everlog.core.program import Relation, Row
from everlog.core.program.fact_rows import FactError, checked_row, shown

_Record = TypeVar("_Record")
_SCALARS = (str, int, float, bytes, type(None))


def is_record(value: object) -> bool:
    """Whether a value is one row with named columns: a dict of plain values, or a dataclass.

    >>> is_record({"x": 1, "y": "a"}), is_record({"x": [1, 2]}), is_record((1, 2))
    (True, False, False)
    """
    if isinstance(value, Mapping):
        return bool(value) and all(
            isinstance(part, _SCALARS) or hasattr(part, "__index__") for part in value.values()
        )
    return _has_fields(value) and not isinstance(value, type)


def _has_fields(value: object) -> bool:
    return dataclasses.is_dataclass(value) or hasattr(type(value), "__attrs_attrs__")


def row_of(relation: Relation, record: object) -> Row:
    """The row of a record; FactError if a column is missing or unknown.

    >>> from everlog.core.program import Column, Kind
    >>> emp = Relation("emp", (Column("name", Kind.SYMBOL), Column("salary", Kind.NUMBER)))
    >>> row_of(emp, {"salary": 3, "name": "bob"})
    ('bob', 3)
    >>> row_of(emp, {"name": "bob", "salry": 3})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    everlog.core.program.fact_rows.FactError: emp: no column is named `salry`; did you ...
    """
    values = fields_of(record)
    for name in values:
        column_number(relation, name)
    for column in relation.columns:
        if column.name not in values:
            raise FactError(f"{relation.name}: column `{column.name}` is missing from {shown(record)}")
    return checked_row(relation, [values[column.name] for column in relation.columns])


def fields_of(record: Any) -> Mapping[str, Any]:
    """The values of a record by name."""
    if isinstance(record, Mapping):
        return record
    fields = (
        dataclasses.fields(record)
        if dataclasses.is_dataclass(record)
        else getattr(type(record), "__attrs_attrs__")  # noqa: B009
    )
    return {each.name: getattr(record, each.name) for each in fields}


def rows_of(relation: Relation, records: Iterable[object]) -> list[Row]:
    """The rows of several records."""
    return [row_of(relation, record) if is_record(record) else checked_row(relation, record) for record in records]


def column_number(relation: Relation, name: object) -> int:
    """The place of a column, counted from 0; FactError with the nearest name if there is none."""
    names = [column.name for column in relation.columns]
    if name in names:
        return names.index(str(name))
    close = get_close_matches(str(name), names, 1)
    hint = f"did you mean `{close[0]}`?" if close else f"the columns are {', '.join(names)}"
    raise FactError(f"{relation.name}: no column is named `{name}`; {hint}")


def dicts(columns: Sequence[str], rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows as dicts by column."""
    return [dict(zip(columns, row, strict=True)) for row in rows]


def instances(cls: type[_Record], columns: Sequence[str], rows: Iterable[Row]) -> list[_Record]:
    """Rows as instances of a class that takes the columns by name, such as a dataclass."""
    return [cls(**dict(zip(columns, row, strict=True))) for row in rows]
