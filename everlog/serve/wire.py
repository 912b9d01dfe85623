"""Facts as JSON, and back: numbers keep all of their 64 bits.

JSON itself has numbers of any size, and ours are written and read exactly.  But JavaScript reads them as floats,
which are exact up to 2^53 only; so whoever asks for `numbers=text` gets numbers as strings, and wherever a number
is expected a string of it will do.  JSON has no infinities and no NaN: those are always strings.

Reads: core.program, core.fact_rows, everlog.files.values.  Read by: everlog.serve.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from everlog.changes import Changes
from everlog.core.fact_rows import FactError, checked_row, column_label, shown
from everlog.core.program import Column, Kind, Relation, Row, Value
from everlog.core.values import decoded
from everlog.files.json import json_value
from everlog.files.values import PARSERS
from everlog.parameters import Given
from everlog.serve.errors import ApiError

# ── out ──────────────────────────────────────────────────────────────────────────────────────

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def dumped(value: Any) -> bytes:
    r"""JSON as bytes; what came in as a byte that is no UTF-8 goes out as `\udc80`, and comes back as that byte.

    >>> dumped({"x": [1, "ü", "\udc80"]})
    b'{"x":[1,"\xc3\xbc","\\udc80"]}'
    """
    return _encode(value).encode("utf-8", "backslashreplace")


def columns_json(columns: Iterable[Column]) -> list[dict[str, str]]:
    return [{"name": c.name, "kind": c.kind.value, "type": str(c.type_name or c.kind)} for c in columns]


def rows_json(columns: Sequence[Column], rows: Iterable[Row], as_text: bool = False) -> list[Sequence[Any]]:
    """
    >>> rows_json([Column("x", Kind.FLOAT), Column("y", Kind.NUMBER)], [(float("inf"), 2**62)])
    [['Infinity', 4611686018427387904]]
    """
    if as_text:
        writers = [_TEXT[column.kind] for column in columns]
    elif any(column.kind is Kind.FLOAT for column in columns):
        writers = [_finite if column.kind is Kind.FLOAT else _same for column in columns]
    else:
        return list(rows)
    return [[write(value) for write, value in zip(writers, row, strict=True)] for row in rows]


def changes_json(changes: Changes, as_text: bool, relations: Collection[str] | None = None) -> dict[str, Any]:
    """What each relation lost and gained, sorted."""
    out = {}
    for name in changes:
        if relations is None or name in relations:
            columns = changes.relation(name).columns
            out[name] = {
                "deleted": rows_json(columns, changes.deleted(name), as_text),
                "inserted": rows_json(columns, changes.inserted(name), as_text),
            }
    return out


def counts_json(changes: Changes) -> dict[str, Any]:
    """How many facts each relation lost and gained."""
    out = {}
    for name in changes:
        inserted = sum(sign > 0 for sign in changes[name].values())
        out[name] = {"deleted": len(changes[name]) - inserted, "inserted": inserted}
    return out


def plain(value: Any) -> Any:
    """Any object for JSON with what JSON has no number for as text: proofs, explanations, statistics."""
    match value:
        case float():
            return _finite(value)
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value


def _same(value: Value) -> Any:
    return value


def _finite(value: Any) -> Any:
    if abs(value) < float("inf"):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


_TEXT: Mapping[Kind, Callable[[Any], Any]] = {
    Kind.NUMBER: str,
    Kind.UNSIGNED: str,
    Kind.FLOAT: lambda value: str(_finite(value)),
    Kind.SYMBOL: _same,
}

# ── in ───────────────────────────────────────────────────────────────────────────────────────


def parsed(data: bytes) -> Any:
    """The value of a body of JSON; ApiError where it is none."""
    try:
        return json_value(decoded(data), parse_constant=_no_constant)
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise ApiError(400, "bad-json", f"the body is not JSON: {problem.msg}, {where}") from None
    except RecursionError:
        raise ApiError(400, "bad-json", "the body is nested too deeply") from None
    except ValueError as problem:  # a number of thousands of digits, or one of those below
        raise ApiError(400, "bad-json", f"the body is not JSON: {problem}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is no number of JSON; write it as a string, "{name}"')


def row_in(relation: Relation, given: object) -> Row:
    """A row that somebody sent, an array or an object keyed by the names of columns; FactError if it is none.

    >>> edge = Relation("edge", (Column("x", Kind.NUMBER), Column("y", Kind.NUMBER)))
    >>> row_in(edge, ["9223372036854775807", 1]), row_in(edge, {"y": 2, "x": 1})
    ((9223372036854775807, 1), (1, 2))
    """
    if isinstance(given, dict):
        names = [column.name for column in relation.columns]
        missing = [name for name in names if name not in given]
        more = [name for name in given if name not in names]
        if missing or more:
            what = f"has no `{missing[0]}`" if missing else f"has `{more[0]}`, which is no column"
            raise FactError(f"{relation.name}: {shown(given)} {what}")
        given = [given[name] for name in names]
    if isinstance(given, list) and len(given) == relation.arity:
        given = [_value(relation, number, value) for number, value in enumerate(given)]
    return checked_row(relation, given)


def parameters_in(given: Mapping[str, object] | None) -> Given:
    """Values that somebody sent for the parameters of a query."""
    return Given(given or {}, _number_of_text)


def _value(relation: Relation, number: int, value: object) -> object:
    column = relation.columns[number]
    try:
        return _number_of_text(column.kind, value)
    except FactError as problem:
        raise FactError(f"{relation.name}: {column_label(column, number + 1)}: {problem}") from None


def _number_of_text(kind: Kind, value: object) -> object:
    """A string in the place of a number is the text of a number."""
    if not isinstance(value, str) or kind is Kind.SYMBOL:
        return value
    try:
        return PARSERS[kind](value)
    except ValueError as problem:
        raise FactError(str(problem)) from None
