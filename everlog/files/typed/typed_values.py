"""Facts from typed sources: JSON, Arrow columns, database tables.

The schema of a source is compared with the declaration before any row is read: columns are found by
name or by position, and their types must be able to hold the kind of the column.  What a type
cannot guarantee (no null, 64 bits, no sign) is checked value by value.  Columns that need no
conversion are taken as they are (`bulk.ready_column`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TypeAlias

from attrs import frozen

from everlog.core.program import Column, Kind, Row, Value
from everlog.core.program.fact_rows import EXACT, column_label, exact_float, plain_float, shown, with_article
from everlog.core.program.values import MASK, NAN, SIGNED_MAX, SIGNED_MIN, decoded, encoded
from everlog.files.location import Place
from everlog.files.rejects import BadRow, Refuse
from everlog.files.text.bulk import ready_column
from everlog.files.text.layout import sources_of
from everlog.files.text_values import FactsError
from everlog.spark_backend.column_types import positions_by_name

Convert: TypeAlias = Callable[[Kind, object], Value]  # ValueError says what is wrong

# ── the schema ───────────────────────────────────────────────────────────────────────────────


@frozen
class Typed:
    """A source column: its name, its type's name, and the kinds that it can hold."""

    name: str
    type_name: str
    kinds: frozenset[Kind]


def check_columns(place: Place, columns: Sequence[Typed], where: str) -> list[int]:
    """The source column for each relation column; FactsError if they do not fit.

    As on Spark, columns are matched by name if all names exist (ignoring case), else by position if
    there are as many and none has a name of the relation's.  The parameter `columns="2:0"` sets the
    positions.
    """
    relation = place.relation
    positions = _positions(place, [column.name for column in columns], where)
    for number, (column, position) in enumerate(zip(relation.columns, positions, strict=True), start=1):
        source = columns[position]
        if column.kind not in source.kinds:
            raise FactsError(
                f"{where}: {column_label(column, number)}: the type `{source.type_name}` of `{source.name}` is"
                f" not {with_article(column.kind)}"
            )
    return positions


def _positions(place: Place, names: list[str], where: str) -> list[int]:
    if "columns" in place.params:
        positions = list(sources_of(place))
        beyond = [position for position in positions if position >= len(names)]
        if beyond:
            raise FactsError(f"{where}: columns={shown(place.params['columns'])}: there is no column {beyond[0]}")
        return positions
    if names == distinct_names(place.relation.columns):
        return list(range(len(names)))
    found = positions_by_name([column.name for column in place.relation.columns], names)
    if found is None:
        raise FactsError(
            f"{where} has the columns {', '.join(names)}, which do not fit {place.relation}: use the"
            " relation's names (or the same number of columns with other names, which are matched by position),"
            " or select columns with"
            ' columns="2:0"'
        )
    return found


def distinct_names(columns: Iterable[Column]) -> list[str]:
    """The names of columns; a later one is numbered if it differs only in case.

    >>> distinct_names([Column("x", Kind.NUMBER), Column("X", Kind.NUMBER)])
    ['x', 'X:1']
    """
    names: dict[str, str] = {}
    for number, column in enumerate(columns):
        name = f"{column.name}:{number}" if column.name.lower() in names else column.name
        names[name.lower()] = name
    return list(names.values())


# ── values ───────────────────────────────────────────────────────────────────────────────────


def typed_rows(
    place: Place, columns: Sequence[Sequence[object]], convert: Convert, where: str, refuse: Refuse
) -> list[Row]:
    """The rows of columns of values; `refuse` receives those that do not fit."""
    out: list[Sequence[Value]] = []
    bad: dict[int, str] = {}
    inputs = zip(place.relation.columns, columns, place.nulls, strict=True)
    for number, (column, stored, null) in enumerate(inputs, start=1):
        ready = ready_column(column.kind, stored)
        if ready is None:
            ready = []
            for index, value in enumerate(stored):
                try:
                    ready.append(null if value is None and null is not None else convert(column.kind, value))
                except ValueError as problem:
                    bad.setdefault(index, f"{column_label(column, number)}: {problem}")
                    ready.append(0)  # a placeholder: the row is dropped
        out.append(ready)
    for index in sorted(bad):
        refuse(BadRow(where, index + 1, bad[index], [column[index] for column in columns]))
    rows = list(zip(*out, strict=True))
    return [row for index, row in enumerate(rows) if index not in bad] if bad else rows


def no_value(kind: Kind) -> ValueError:
    """The error for a null where a value is required."""
    return ValueError(f"null is not {with_article(kind)}; set null=VALUE to replace it")


def typed_value(kind: Kind, value: object) -> Value:
    """A value in the stored form of this kind.

    >>> typed_value(Kind.FLOAT, 1), typed_value(Kind.NUMBER, Decimal(7))
    (1.0, 7)
    >>> typed_value(Kind.SYMBOL, b"x")
    'x'
    >>> typed_value(Kind.UNSIGNED, -1)
    Traceback (most recent call last):
    ValueError: -1 is out of range for a 64-bit unsigned
    """
    match kind, value:
        case _, None:
            raise no_value(kind)
        case _, bool():
            pass  # bool is an int only in Python
        case Kind.SYMBOL, str(text):
            return sys.intern(canonical(text))
        case Kind.SYMBOL, bytes(data):
            return sys.intern(decoded(data))
        case Kind.FLOAT, float(number):
            return number + 0.0 if number == number else NAN
        case Kind.FLOAT, Decimal():
            return _float_of_decimal(value)
        case Kind.FLOAT, int(number):
            return exact_float(number)
        case ((Kind.NUMBER | Kind.UNSIGNED), int(number)):
            return _ranged(kind, number)
        case ((Kind.NUMBER | Kind.UNSIGNED), Decimal()) if value == value.to_integral_value():
            return _ranged(kind, int(value) if abs(value) < 2**70 else 2**70)
    raise ValueError(f"{shown(value)} is not {with_article(kind)}")


def _float_of_decimal(value: Decimal) -> float:
    """The nearest float, as for a numeral in a file; an integer must be exact."""
    if value.is_nan():
        return NAN
    number = float(value) + 0.0
    if value.is_infinite():
        return number
    if math.isinf(number) or (value and not number):
        raise ValueError(f"{shown(str(value))} is too {'large' if number else 'small'} for a 64-bit float")
    return plain_float(f"{value:f}") if abs(number) >= EXACT else number


def _ranged(kind: Kind, number: int) -> int:
    low, high = (0, MASK) if kind is Kind.UNSIGNED else (SIGNED_MIN, SIGNED_MAX)
    if not low <= number <= high:
        raise ValueError(f"{shown(number)} is out of range for a 64-bit {kind}")
    return number


def canonical(text: str) -> str:
    r"""Refuse half a surrogate pair like `\ud83d`; `\udc80` means the byte 0x80."""
    if text.isascii():
        return text
    try:
        return decoded(encoded(text))
    except UnicodeEncodeError:
        raise ValueError(f"{shown(text)} has no UTF-8 form") from None
