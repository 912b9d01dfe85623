r"""The fast reader: a whole file at once, column by column, or not at all.

Almost every fact file is ordinary: each line has the same number of fields, each number is plain
digits.  A test without looking at single lines: delete everything except delimiters and newlines,
and the rest must be the same line repeated.  Then one `split` cuts all fields, every k-th field is
a column, and `map` converts a column.

A file of integers is faster still: with commas for delimiters and newlines it is a JSON array, and
the JSON scanner creates integers without creating a string for each field.

On anything unusual (a blank, `0x10`, a missing field, a number too large) `bulk_rows` returns None,
and the careful reader finds the rows, or the error and its line.  So this reader never decides what
is an error: it only answers where both readers agree.
"""

from __future__ import annotations

import json
import math
import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import cast

from everlog.core.program import Kind, Row, Value
from everlog.core.program.fact_rows import EXACT
from everlog.core.program.values import NAN, decoded
from everlog.files.text.encodings import BYTES
from everlog.files.text.layout import Layout
from everlog.files.text_values import parse_float

_DIGITS = b"0123456789"
_FLOAT = b"0123456789+-.eEinfatyINFATY"
_INTEGER_KINDS = {Kind.NUMBER: "q", Kind.UNSIGNED: "Q"}
_TYPES: Mapping[Kind, type] = {Kind.NUMBER: int, Kind.UNSIGNED: int, Kind.FLOAT: float, Kind.SYMBOL: str}
_INFINITE = (math.inf, -math.inf)
_SPARE_BYTES = (b"\x1f", b"\x1e", b"\x1d", b"\x00")


def bulk_rows(layout: Layout, data: bytes) -> list[Row] | None:
    """The rows of lines that end in `\\n` and have no quoted fields, or None.

    Cost: a few passes in C over the bytes, one over the fields.
    """
    single = _single_byte_delimiter(layout, data)
    if single is None:
        return None
    data, delimiter = single
    width = data[: data.find(b"\n")].count(delimiter) + 1
    if width < layout.width or width != (layout.fields or width) or not _rectangular(data, delimiter, width):
        return None
    try:
        columns = _integer_columns(layout, data, delimiter, width) or _columns(layout, data, delimiter, width)
    except (ValueError, OverflowError):
        return None
    return list(zip(*columns, strict=True))


def _single_byte_delimiter(layout: Layout, data: bytes) -> tuple[bytes, bytes] | None:
    """The data with a one-byte delimiter; None if brackets or the like forbid it."""
    if not layout.columns or not data:
        return None
    if layout.brackets and (b"[" in data or b"]" in data):
        return None
    if not layout.delimiter.isascii() or "\n" in layout.delimiter:
        return None
    delimiter = layout.delimiter.encode()
    if len(delimiter) == 1:
        return data, delimiter
    for spare in _SPARE_BYTES:
        if spare not in data:
            return data.replace(delimiter, spare), spare
    return None


def _rectangular(data: bytes, delimiter: bytes, width: int) -> bool:
    others = bytes(set(range(256)) - {delimiter[0], ord("\n")})
    line = delimiter * (width - 1) + b"\n"
    return data.translate(None, others) == line * data.count(b"\n")


def _integer_columns(layout: Layout, data: bytes, delimiter: bytes, width: int) -> list[list[int]] | None:
    """The columns, if every field is an integer of JSON and wanted as one."""
    if not all(kind in _INTEGER_KINDS for kind in layout.kinds):
        return None
    minus = b"" if Kind.UNSIGNED in layout.kinds else b"-"
    if data.translate(None, _DIGITS + minus + b"\n" + delimiter):
        return None
    commas = data[:-1].translate(bytes.maketrans(b"\n" + delimiter, b",,"))
    try:
        fields = json.loads(f"[{commas.decode()}]")
    except ValueError:
        return None  # such as 007, which is not JSON
    if not fields:
        return None  # one empty line, which is an empty array
    columns = [fields[source::width] for source in layout.sources]
    for column, kind in zip(columns, layout.kinds, strict=True):
        array(_INTEGER_KINDS[kind], column)  # OverflowError if a value does not fit
    return columns


def _columns(layout: Layout, data: bytes, delimiter: bytes, width: int) -> list[Sequence[Value]]:
    separator = delimiter.decode()
    text = decoded(data) if layout.encoding == BYTES else data.decode()  # UnicodeDecodeError is a ValueError
    fields = text.replace("\n", separator).split(separator)
    fields.pop()
    return [
        _converted(kind, fields[source::width], layout.nulls is not None)
        for kind, source in zip(layout.kinds, layout.sources, strict=True)
    ]


def _converted(kind: Kind, fields: list[str], has_nulls: bool) -> Sequence[Value]:
    """The values of a column; an error if the careful reader is needed.

    The errors are ValueError and OverflowError.

    Symbols are interned: equal symbols are the same object, which makes joins faster and saves
    memory, since most symbols repeat.
    """
    match kind:
        case Kind.SYMBOL:
            if has_nulls and "" in fields:
                raise ValueError("a null")
            return list(map(sys.intern, fields))
        case Kind.FLOAT:
            letters = _only(_FLOAT, fields)
            floats = list(map(float, fields))
            if letters or not _moderate(floats):
                _require_floats(fields, floats)
            if not all(floats):  # a zero may be -0.0
                floats = [value + 0.0 for value in floats]
            return [v if v == v else NAN for v in floats] if letters else floats
        case Kind.NUMBER | Kind.UNSIGNED:
            _only(_DIGITS + (b"+-" if kind is Kind.NUMBER else b"+"), fields)
            integers = list(map(int, fields))
            array(_INTEGER_KINDS[kind], integers)
            return integers


def _moderate(floats: list[float]) -> bool:
    """Whether no float can differ from its numeral beyond the last digits."""
    return all(floats) and max(floats) < EXACT and min(floats) > -EXACT


def _require_floats(fields: list[str], floats: list[float]) -> None:
    """Raise ValueError if a numeral is not exactly a float."""
    unsure = {
        field
        for field, value in zip(fields, floats, strict=True)
        if not -EXACT < value < EXACT and (value in _INFINITE or ("e" not in field and "E" not in field))
    }
    unsure.update(() if all(floats) else (f for f, value in zip(fields, floats, strict=True) if not value))
    for field in unsure:
        parse_float(field)


def ready_column(kind: Kind, values: Sequence[object]) -> list[Value] | None:
    """The values of a JSON array or a database, if all fit the column; otherwise None."""
    if set(map(type, values)) != {_TYPES[kind]}:
        return None
    ready = cast(list[Value], list(values))
    match kind:
        case Kind.SYMBOL:
            symbols = cast(list[str], ready)
            return list(map(sys.intern, symbols)) if "".join(symbols).isascii() else None
        case Kind.FLOAT:
            if any(value != value for value in ready):
                return None
            return ready if all(ready) else [value + 0.0 for value in cast(list[float], ready)]  # never -0.0
        case Kind.NUMBER | Kind.UNSIGNED:
            try:
                array(_INTEGER_KINDS[kind], cast(list[int], ready))
            except OverflowError:
                return None
            return ready


def _only(alphabet: bytes, fields: list[str]) -> bool:
    """Whether there is an `n`, as in `nan`; ValueError for a foreign character."""
    data = "".join(fields).encode("ascii")  # UnicodeEncodeError is a ValueError
    if data.translate(None, alphabet):
        raise ValueError("an unusual character")
    return b"n" in data or b"N" in data
