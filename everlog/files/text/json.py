r"""JSON: an array of arrays, or with `format=object` an array of objects.

A reader takes both shapes, whatever `format` says.  A byte that is not UTF-8 is written as an
escape (`\udce9`), and read from one.  Infinities and NaN are `Infinity` and `NaN`, as in Python.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TextIO

from everlog.core.program import Kind, Relation, Row, Value
from everlog.core.program.fact_rows import EXACT, column_label, shown
from everlog.core.program.values import decoded, float_text
from everlog.files.location import Place, Reading, read_bytes, read_stream, write_stream, write_text
from everlog.files.rejects import BadRow, Refuse, abort
from everlog.files.text.bulk import ready_column
from everlog.files.text.encodings import BYTES, UTF8, has_wrong_byte, utf8_bytes, wrong_byte
from everlog.files.text_values import FactsError, encoded_text, sorted_rows
from everlog.files.typed.typed_values import typed_value

_plain_text = json.JSONEncoder(ensure_ascii=False).encode
_EXTREME = re.compile(r"[0-9][eE][+-]?[0-9]{3}|[0-9]{16}\.")  # numerals that may not be exact floats


def _symbol_text(symbol: str) -> str:
    r"""A symbol in JSON; a byte that is not UTF-8 becomes an escape.

    >>> print(_symbol_text("é"), _symbol_text("\udce9"))
    "é" "\udce9"
    """
    if symbol.isascii() or not has_wrong_byte(symbol):
        return _plain_text(symbol)
    encoded_text(symbol)  # raises FactsError if it is not a text
    return json.dumps(symbol)


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def read_json_stream(reading: Reading) -> list[Row]:
    """Reader for `IO=json`: standard input, as in Soufflé, unless a file is named."""
    if "filename" in reading.place.params:
        return read_json_file(reading)
    return read_json(reading.place, read_stream(reading.stdin), "<stdin>", reading.refuse)


def read_json_file(reading: Reading) -> list[Row]:
    """Reader for `IO=jsonfile`."""
    path = reading.place.path(".json")
    data = read_bytes(reading.place, path, reading.missing_ok)
    return [] if data is None else read_json(reading.place, data, str(path), reading.refuse)


def read_json(place: Place, data: bytes, file: str, refuse: Refuse = abort) -> list[Row]:
    elements = _elements(utf8_text(data, place.params, file), file)
    if place.relation.arity == 0:
        return [()] if elements else []
    ready = ready_rows(place.relation, elements)
    if ready is not None:
        return ready
    rows, nulls = [], place.nulls
    for number, element in enumerate(elements, start=1):
        try:
            rows.append(row_of(place.relation, element, nulls))
        except ValueError as problem:
            refuse(BadRow(file, number, str(problem), element))
    return rows


def utf8_text(data: bytes, params: Mapping[str, str], file: str) -> str:
    """The text of a file; FactsError if it has another encoding than it should."""
    encoding = params.get("encoding", UTF8)
    text = decoded(utf8_bytes(data, encoding, file))
    if encoding != BYTES and not text.isascii():
        for number, line in enumerate(text.split("\n"), start=1) if has_wrong_byte(text) else ():
            problem = wrong_byte(line, first=number == 1)
            if problem is not None:
                raise FactsError(f"{file}:{number}: {problem}")
    return text


def json_value(text: str, **options: Any) -> Any:
    """Parse JSON; `1e400`, which is not a float, becomes a Decimal.

    >>> json_value("[1.5, 1e400, Infinity]")
    [1.5, Decimal('1E+400'), inf]
    """
    return json.loads(text, parse_float=_float_or_decimal if _EXTREME.search(text) else None, **options)


def _float_or_decimal(text: str) -> float | Decimal:
    value = float(text)
    is_plain = abs(value) >= EXACT and "e" not in text.lower()
    return Decimal(text) if is_plain or math.isinf(value) or not value else value


def _elements(text: str, file: str) -> list[object]:
    try:
        elements = json_value(text)
    except json.JSONDecodeError as problem:
        raise FactsError(f"{file}:{problem.lineno}: not JSON: {problem.msg}, column {problem.colno}") from None
    except (ValueError, RecursionError) as problem:  # a number of thousands of digits; deep nesting
        raise FactsError(f"{file}: not facts: {problem}") from None
    if not isinstance(elements, list):
        raise FactsError(f"{file}: expected an array of facts, found {shown(elements)}")
    return elements


def ready_rows(relation: Relation, elements: list[object]) -> list[Row] | None:
    """The rows, if they are arrays whose values need no conversion."""
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


def row_of(relation: Relation, element: object, nulls: Sequence[Value | None]) -> Row:
    """One fact; other fields are ignored.  ValueError says what is wrong.

    `nulls` is the value of a null in each column, or None if it is an error.
    """
    keys: Iterable[object]
    match element:
        case list():
            fields, keys = dict[object, object](enumerate(element)), range(relation.arity)
        case dict():
            fields, keys = element, [column.name for column in relation.columns]
        case _:
            raise ValueError(f"expected an array or an object, found {shown(element)}")
    row: list[Value] = []
    for number, (key, column, null) in enumerate(zip(keys, relation.columns, nulls, strict=True), start=1):
        if null is not None and fields.get(key) is None:  # a null, or no field, as Spark writes it
            row.append(null)
            continue
        if key not in fields:
            raise ValueError(f"{column_label(column, number)} is missing from {shown(element)}")
        try:
            row.append(typed_value(column.kind, fields[key]))
        except ValueError as problem:
            raise ValueError(f"{column_label(column, number)}: {problem}") from None
    return tuple(row)


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write_json_stream(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=json`: standard output, as in Soufflé, unless a file is named."""
    if "filename" in place.params:
        write_json_file(place, rows, stdout)
    else:
        write_stream(stdout, json_text(place, rows))


def write_json_file(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=jsonfile`."""
    write_text(place, ".json", json_text(place, rows))


def json_text(place: Place, rows: Iterable[Row]) -> str:
    """All facts, sorted, one per line."""
    text = fact_writer(place.relation, place.params.get("format") == "object")
    return "[" + ",\n".join(map(text, sorted_rows(place.relation, rows))) + "]\n"


def fact_writer(relation: Relation, objects: bool) -> Callable[[Row], str]:
    """A function that writes one fact as an array, or as an object."""
    columns = relation.columns
    if objects:
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
