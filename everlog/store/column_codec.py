r"""Columns of values as bytes: exact, fast to read, and safe for any bytes.

A few values are JSON, which is readable in the file.  Many are written by kind: integers as the
narrowest array that holds them, floats bit by bit, symbols as a list of distinct ones and indexes
into it.  Python's arrays and `json` do the work in C.  A file cannot run code, as with `pickle`,
and its bytes are not trusted, as with `marshal`.

SQLite never sees the 64-bit integers, signed or not, so its limits do not matter.  Symbols that are
not UTF-8 (surrogate escapes) are stored as JSON's `\udc80`.  The engine has one NaN object, and
decoding returns it.
"""

from __future__ import annotations

import json
import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from operator import ne
from typing import Any, TypeAlias

from everlog.core.program import Value
from everlog.core.program.values import NAN

Column: TypeAlias = Sequence[Value]

FEW = 24  # up to this many values, JSON is as short
_RANGES = [
    (-(2**7), 2**7, "b"),
    (-(2**15), 2**15, "h"),
    (-(2**31), 2**31, "i"),
    (-(2**63), 2**63, "q"),
    (0, 2**64, "Q"),
]
_HEAD = struct.Struct("<cQ")  # the form of a column, and its length in bytes
_MARK = b"\x01"  # begins columns that are written by kind: JSON does not begin with it


class BadRecord(ValueError):
    """Bytes differ from what was written."""


def encoded_columns(columns: Sequence[Column]) -> bytes:
    """Columns as bytes.

    >>> encoded_columns([[1, 2], ["a", "b"]])
    b'[[1,2],["a","b"]]'
    >>> many = [range(1000), [0.5, NAN] * 500, ["a", "b"] * 500]
    >>> data = encoded_columns(many)
    >>> len(data) < 12000, [list(column[:3]) for column in decoded_columns(data)]
    (True, [[0, 1, 2], [0.5, nan, 0.5], ['a', 'b', 'a']])
    """
    if sum(map(len, columns)) <= FEW:
        return _json(list(map(list, columns)))
    parts = [_MARK]
    for column in columns:
        form, data = _by_kind(column)
        parts += [_HEAD.pack(form.encode(), len(data)), data]
    return b"".join(parts)


def decoded_columns(data: bytes, shared: dict[str, str] | None = None) -> list[Sequence[Any]]:
    """The columns of some bytes, integers as arrays; `shared` makes equal symbols one object."""
    shared = {} if shared is None else shared
    try:
        if data[:1] != _MARK:
            columns = _from_json(data)
            if not all(isinstance(column, list) for column in columns):
                raise BadRecord("no columns")
            return [_one_object_each(column, shared) for column in columns]
        columns, place = [], 1
        while place < len(data):
            form, length = _HEAD.unpack_from(data, place)
            place += _HEAD.size
            columns.append(_FORMS[form.decode()](data[place : place + length], shared))
            place += length
        if place != len(data):
            raise BadRecord("cut off")
        return columns
    except (ValueError, KeyError, TypeError, IndexError, struct.error, RecursionError) as problem:
        raise BadRecord(str(problem)) from problem


# ── forms ────────────────────────────────────────────────────────────────────────────────────


def _by_kind(column: Column) -> tuple[str, bytes]:
    types = {type(column[0])} if isinstance(column, array) and column else set(map(type, column))
    if types == {int}:
        low, high = min(column), max(column)
        for least, past, code in _RANGES:
            if least <= low and high < past:  # type: ignore[operator]
                return code, _array(code, column)
    if types == {float}:
        return "d", _array("d", column)
    if types == {str}:
        places = {symbol: place for place, symbol in enumerate(dict.fromkeys(column))}
        different = _json(list(places))
        form, which = _by_kind(list(map(places.__getitem__, column)))
        return "s", struct.pack("<Qc", len(different), form.encode()) + different + which
    return "j", _json(list(column))  # empty, or with values of several kinds


def _symbols(data: bytes, shared: dict[str, str]) -> list[Any]:
    length, form = struct.unpack_from("<Qc", data)
    start = struct.calcsize("<Qc")
    different = _one_object_each(_from_json(data[start : start + length]), shared)
    return list(map(different.__getitem__, _FORMS[form.decode()](data[start + length :], shared)))


def _floats(data: bytes, shared: dict[str, str]) -> list[Any]:
    column = _values("d", data).tolist()
    return [NAN if x != x else x for x in column] if any(map(ne, column, column)) else column


def _array(code: str, column: Column) -> bytes:
    values = array(code, column)  # type: ignore[type-var]
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _values(code: str, data: bytes) -> array[Any]:
    values = array(code)
    values.frombytes(data)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _integers(code: str) -> Callable[[bytes, dict[str, str]], Sequence[Any]]:
    return lambda data, shared: _values(code, data)


_FORMS: dict[str, Callable[[bytes, dict[str, str]], Sequence[Any]]] = {
    **{code: _integers(code) for _, _, code in _RANGES},
    "d": _floats,
    "s": _symbols,
    "j": lambda data, shared: _one_object_each(_from_json(data), shared),
}


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────

_CONSTANTS = {"NaN": NAN, "Infinity": float("inf"), "-Infinity": float("-inf")}


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _from_json(data: bytes) -> Any:
    return json.loads(data, parse_constant=_CONSTANTS.__getitem__)


def _one_object_each(column: list[Any], shared: dict[str, str]) -> list[Any]:
    if str in map(type, column):
        return [shared.setdefault(x, x) if x.__class__ is str else x for x in column]
    return column
