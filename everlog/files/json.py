"""JSON: an array of arrays, or with `format=object` of objects keyed by the names of columns.

A reader takes both shapes, whatever `format` says.  What is no UTF-8 stays the byte it was;
infinities and NaN are `Infinity` and `NaN`, as Python writes them.

Reads: place, values, bulk.  Read by: dispatch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping

from everlog.core.program import Kind, Relation, Row, Value
from everlog.core.values import MASK, NAN, SIGNED_MAX, SIGNED_MIN, decoded, encoded, float_text
from everlog.files.bulk import ready_column
from everlog.files.place import Place
from everlog.files.values import FactsError, column_label, shown, sorted_rows

_symbol_text = json.JSONEncoder(ensure_ascii=False).encode

# ── in ───────────────────────────────────────────────────────────────────────────────────────


def read_json(place: Place, data: bytes, file: str) -> list[Row]:
    elements = _elements(data, file)
    if place.relation.arity == 0:
        return [()] if elements else []
    ready = _ready_rows(place.relation, elements)
    if ready is not None:
        return ready
    rows = []
    for number, element in enumerate(elements, start=1):
        try:
            rows.append(_row(place.relation, element))
        except ValueError as problem:
            raise FactsError(f"{file}: row {number}: {problem}") from None
    return rows


def _elements(data: bytes, file: str) -> list[object]:
    try:
        elements = json.loads(decoded(data))
    except json.JSONDecodeError as problem:
        raise FactsError(f"{file}:{problem.lineno}: not JSON: {problem.msg}, column {problem.colno}") from None
    except (ValueError, RecursionError) as problem:  # a number of thousands of digits; deep nesting
        raise FactsError(f"{file}: not facts: {problem}") from None
    if not isinstance(elements, list):
        raise FactsError(f"{file}: expected an array of facts, found {shown(elements)}")
    return elements


def _ready_rows(relation: Relation, elements: list[object]) -> list[Row] | None:
    """The rows, if they are arrays whose values need no second look."""
    arrays = [element for element in elements if isinstance(element, list) and len(element) >= relation.arity]
    if not elements or len(arrays) < len(elements):
        return None
    columns = []
    for column, values in zip(relation.columns, zip(*arrays, strict=False), strict=False):
        ready = ready_column(column.kind, values)
        if ready is None:
            return None
        columns.append(ready)
    return list(zip(*columns, strict=True))


def _row(relation: Relation, element: object) -> Row:
    """One fact; what it has beyond the columns is ignored.  ValueError says what is wrong."""
    keys: Iterable[object]
    match element:
        case list():
            given, keys = dict(enumerate(element)), range(relation.arity)
        case dict():
            given, keys = element, [column.name for column in relation.columns]
        case _:
            raise ValueError(f"expected an array or an object, found {shown(element)}")
    row = []
    for number, (key, column) in enumerate(zip(keys, relation.columns, strict=True), start=1):
        if key not in given:
            raise ValueError(f"{column_label(column, number)} is missing from {shown(element)}")
        try:
            row.append(_value(column.kind, given[key]))
        except ValueError as problem:
            raise ValueError(f"{column_label(column, number)}: {problem}") from None
    return tuple(row)


def _value(kind: Kind, value: object) -> Value:
    """A JSON value as the column has it."""
    match kind, value:
        case _, bool():
            pass  # an int to Python, but no number to JSON
        case Kind.SYMBOL, str(text):
            return sys.intern(_canonical(text))
        case Kind.FLOAT, float(number):
            return number + 0.0 if number == number else NAN
        case Kind.FLOAT, int(number) if abs(number) < 2**1023:
            return float(number)
        case ((Kind.NUMBER | Kind.UNSIGNED), int(number)):
            low, high = (0, MASK) if kind is Kind.UNSIGNED else (SIGNED_MIN, SIGNED_MAX)
            if low <= number <= high:
                return number
            raise ValueError(f"{shown(number)} is out of range for a 64-bit {kind}")
    raise ValueError(f"{shown(value)} is not {'an' if kind is Kind.UNSIGNED else 'a'} {kind}")


def _canonical(text: str) -> str:
    r"""Half a surrogate pair, written `\ud83d`, is no text; `\udc80` stands for the byte 0x80."""
    if text.isascii():
        return text
    try:
        return decoded(encoded(text))
    except UnicodeEncodeError:
        raise ValueError(f"{shown(text)} has no UTF-8 form") from None


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def json_text(place: Place, rows: Iterable[Row]) -> str:
    """All facts, sorted, one per line."""
    text = fact_writer(place)
    return "[" + ",\n".join(map(text, sorted_rows(place.relation, rows))) + "]\n"


def fact_writer(place: Place) -> Callable[[Row], str]:
    """A function that writes one fact: as an array, or with `format=object` as an object."""
    columns = place.relation.columns
    if place.params.get("format") == "object":
        keys = [_symbol_text(column.name).replace("%", "%%") for column in columns]
        template = "{" + ", ".join(f"{key}: %s" for key in keys) + "}"
    else:
        template = "[" + ", ".join(["%s"] * len(columns)) + "]"
    texts = [_TEXTS[column.kind] for column in columns]
    return lambda row: template % tuple([text(value) for text, value in zip(texts, row, strict=True)])


def _float_text(value: float) -> str:
    return float_text(value) if abs(value) < float("inf") else json.dumps(value)


_TEXTS: Mapping[Kind, Callable[..., str]] = {
    Kind.NUMBER: str,
    Kind.UNSIGNED: str,
    Kind.FLOAT: _float_text,
    Kind.SYMBOL: _symbol_text,
}
