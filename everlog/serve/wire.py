"""Facts as JSON, and back: numbers keep all of their 64 bits.

JSON has numbers of any size, and ours are written and read exactly.  But JavaScript reads them as
floats, which are exact only up to 2^53; so `numbers=text` returns numbers as strings, and a string
is accepted for any number.  JSON has no infinities and no NaN: those are always strings.

Answers are encoded in pieces and have a limit in bytes: no other thread runs while Python encodes a
piece, and a thousand rows may share a symbol of megabytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from everlog.api.changes import Changes
from everlog.api.parameters import Given
from everlog.core.program import Column, Kind, Relation, Row, Value
from everlog.core.program.fact_rows import FactError, checked_row, column_label, shown
from everlog.core.program.values import decoded
from everlog.core.runtime.collector import collector_paused
from everlog.files.text.json import json_value
from everlog.files.text_values import PARSERS
from everlog.serve.errors import ApiError
from everlog.serve.ordering import in_order

# ── out ──────────────────────────────────────────────────────────────────────────────────────

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def dumped(value: Any) -> bytes:
    r"""JSON as bytes; a byte that is not UTF-8 becomes `\udc80`, and is read back.

    >>> dumped({"x": [1, "ü", "\udc80"]})
    b'{"x":[1,"\xc3\xbc","\\udc80"]}'
    """
    return _encode(value).encode("utf-8", "backslashreplace")


class Encoded(bytes):
    """JSON that is already encoded: a part of an answer."""


class TooLarge(Exception):
    """The encoded value would exceed its limit in bytes."""


def answer(value: Any, most: int) -> bytes:
    """An answer as JSON; ApiError if it has more than `most` bytes.

    >>> answer({"rows": Encoded(b"[[1]]"), "more": False}, 100)
    b'{"rows":[[1]],"more":false}'
    """
    parts: list[bytes] = []
    size = 0
    try:
        for part in _parts(value, most):
            parts.append(part)
            size += len(part)
            if size > most:
                raise TooLarge
    except TooLarge:
        raise too_large(most) from None
    return b"".join(parts)


def joined(value: Any) -> bytes:
    """JSON of a value whose large parts are already encoded."""
    return b"".join(_parts(value, sys.maxsize))


def too_large(most: int) -> ApiError:
    return ApiError(422, "limit-exceeded", f"the answer has more than {most} bytes: ask for less")


def shortened(value: dict[str, Any]) -> dict[str, Any]:
    """The answer to a step that is done, without all parts that may be long.

    >>> shortened({"step": 7, "repeated": False, "changes": {"n": {"deleted": 0, "inserted": 10}}})
    {'step': 7, 'repeated': False, 'changes': {}, 'cut': True}
    """
    empty = {key: type(item)() if isinstance(item, dict | list) else item for key, item in value.items()}
    return {**empty, "cut": True}


_LEVELS = 5  # levels of lists and objects that are encoded separately; deeper ones are small


def _parts(value: Any, most: int, level: int = 0) -> Iterator[bytes]:
    if isinstance(value, Encoded):
        yield value
    elif isinstance(value, str):
        if len(value) > most:
            raise TooLarge
        yield dumped(value)
    elif isinstance(value, dict) and level < _LEVELS:
        before = b"{"
        for key, item in value.items():
            yield before + dumped(str(key)) + b":"
            yield from _parts(item, most, level + 1)
            before = b","
        yield b"}" if value else b"{}"
    elif isinstance(value, list | tuple) and level < _LEVELS:
        before = b"["
        for item in value:
            yield before
            yield from _parts(item, most, level + 1)
            before = b","
        yield b"]" if value else b"[]"
    else:
        yield dumped(value)


def columns_json(columns: Iterable[Column]) -> list[dict[str, str]]:
    return [{"name": c.name, "kind": c.kind.value, "type": str(c.type_name or c.kind)} for c in columns]


def rows_json(columns: Sequence[Column], rows: Iterable[Row], as_text: bool = False) -> list[Sequence[Any]]:
    """Rows as lists for JSON.

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


_PIECE = 64 << 10  # bytes per encoding step, about
_WIDEST = 26  # bytes of a number, with its quotes and comma


class RowWriter:
    """Encodes rows of one relation as a JSON array, as many as fit.

    >>> RowWriter([Column("x", Kind.NUMBER)], 9).written([(1,), (2,), (3,)])
    (b'[[1],[2]', 2)
    """

    def __init__(self, columns: Sequence[Column], room: int, as_text: bool = False) -> None:
        self._columns, self._room, self._as_text = columns, room, as_text
        self._symbols = [n for n, column in enumerate(columns) if column.kind is Kind.SYMBOL]
        self._plain = 3 + _WIDEST * len(columns)

    def written(self, rows: Iterable[Row]) -> tuple[Encoded, int]:
        """The array, without its end unless all rows fit, and its number of rows."""
        parts: list[bytes] = []
        size, count, all_fit = 1, 0, True
        for batch in self._batches(rows):
            part = self._encoded(batch, self._room - size)
            if part is None:
                all_fit = False
                for row in batch:
                    part = self._encoded([row], self._room - size)
                    if part is None:
                        break
                    parts.append(part)
                    size, count = size + len(part), count + 1
                break
            parts.append(part)
            size, count = size + len(part), count + len(batch)
        out = b"".join(parts)
        return Encoded(b"[" + out[:-1] + (b"]" if all_fit else b"")), count

    def first(self, rows: Sequence[Row]) -> tuple[Encoded, int]:
        """The rows that fit, as a complete array; at least one, however large."""
        written, count = self.written(rows)
        if count == len(rows):
            return written, count
        if not count:
            return Encoded(dumped(rows_json(self._columns, rows[:1], self._as_text))), 1
        return Encoded(written + b"]"), count

    def _encoded(self, rows: Sequence[Row], room: int) -> bytes | None:
        """Rows, each followed by a comma; None if they exceed `room` bytes."""
        if len(rows) == 1 and sum([len(str(rows[0][n])) for n in self._symbols]) > room:
            return None
        part = dumped(rows_json(self._columns, rows, self._as_text))[1:-1] + b","
        return None if len(part) > room else part

    def _batches(self, rows: Iterable[Row]) -> Iterator[list[Row]]:
        """Groups of rows with about `_PIECE` bytes; a larger row is alone."""
        symbols, plain = self._symbols, self._plain
        batch: list[Row] = []
        weight = 0
        for row in rows:
            more = plain
            for n in symbols:
                more += len(row[n])  # type: ignore[arg-type]
            if weight + more > _PIECE and batch:
                yield batch
                batch, weight = [], 0
            batch.append(row)
            weight += more
        if batch:
            yield batch


def page_json(
    columns: Sequence[Column], rows: Iterable[Row], room: int, as_text: bool = False, busy: str = ""
) -> tuple[Encoded, int, bool]:
    """The rows that fit into `room` bytes, their number, and whether they are all.

    Raises ApiError if the first one does not fit, with the message `busy` if it would later.

    >>> page_json([Column("x", Kind.NUMBER)], [(1,), (2,), (3,)], 9)
    (b'[[1],[2]]', 2, False)
    """
    given = list(rows)
    written, count = RowWriter(columns, room, as_text).written(given)
    if count == len(given):
        return written, count, True
    if not count and busy:
        raise ApiError(503, "busy", busy)
    if not count:
        message = f"a single row has more than the {room} bytes of an answer: ask for fewer columns"
        raise ApiError(422, "limit-exceeded", message)
    return Encoded(written + b"]"), count, False


class ChangesWriter:
    """Encodes the changes of a step for any number of readers, each relation once.

    Cost: that of `room` bytes per relation, however much has changed.
    """

    def __init__(self, changes: Changes, room: int) -> None:
        self._changes, self._room = changes, room
        self._known: dict[tuple[str, bool], dict[str, Encoded] | None] = {}

    def written(self, as_text: bool, relations: Collection[str] | None = None) -> dict[str, dict[str, Encoded]]:
        """The deletions and insertions by relation, sorted; TooLarge beyond `room` bytes."""
        changes, room = self._changes, self._room
        names = [name for name in changes if relations is None or name in relations]
        # each value, each comma and each bracket takes at least a byte
        if sum((2 * changes.relation(name).arity + 2) * len(changes[name]) for name in names) > room:
            raise TooLarge
        out: dict[str, dict[str, Encoded]] = {}
        for name in names:
            if (name, as_text) not in self._known:
                self._known[name, as_text] = None  # until it is encoded
                self._known[name, as_text] = self._relation(name, as_text)
            sides = self._known[name, as_text]
            if sides is None:
                raise TooLarge
            room -= sum(map(len, sides.values()))
            if room < 0:
                raise TooLarge
            out[name] = sides
        return out

    def _relation(self, name: str, as_text: bool) -> dict[str, Encoded] | None:
        relation, signed = self._changes.relation(name), self._changes[name]
        sides = {}
        for side, sign in (("deleted", -1), ("inserted", 1)):
            rows = [row for row, found in signed.items() if found == sign]
            written, count = RowWriter(relation.columns, self._room, as_text).written(in_order(relation, rows))
            if count < len(rows):
                return None
            sides[side] = written
        return sides


def counts_json(changes: Changes) -> dict[str, Any]:
    """The numbers of deleted and inserted facts by relation."""
    out = {}
    for name in changes:
        inserted = sum(sign > 0 for sign in changes[name].values())
        out[name] = {"deleted": len(changes[name]) - inserted, "inserted": inserted}
    return out


def plain(value: Any) -> Any:
    """A value for JSON, with infinities and NaN as text."""
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
    """Parse a JSON body; ApiError if it is wrong."""
    try:
        with collector_paused():  # a collection over millions of small lists takes seconds, and finds nothing
            return json_value(decoded(data), parse_constant=_no_constant)
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise ApiError(400, "bad-json", f"the body is not JSON: {problem.msg}, {where}") from None
    except RecursionError:
        raise ApiError(400, "bad-json", "the body is nested too deeply") from None
    except ValueError as problem:  # a number with thousands of digits, or a constant refused below
        raise ApiError(400, "bad-json", f"the body is not JSON: {problem}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is not a number in JSON; write it as a string, "{name}"')


def row_in(relation: Relation, given: object) -> Row:
    """A row from an array or an object of JSON; FactError if it does not fit.

    >>> edge = Relation("edge", (Column("x", Kind.NUMBER), Column("y", Kind.NUMBER)))
    >>> row_in(edge, ["9223372036854775807", 1]), row_in(edge, {"y": 2, "x": 1})
    ((9223372036854775807, 1), (1, 2))
    """
    if isinstance(given, dict):
        names = [column.name for column in relation.columns]
        missing = [name for name in names if name not in given]
        more = [name for name in given if name not in names]
        if missing or more:
            what = f"has no `{missing[0]}`" if missing else f"has `{more[0]}`, which is not a column"
            raise FactError(f"{relation.name}: {shown(given)} {what}")
        given = [given[name] for name in names]
    if isinstance(given, list) and len(given) == relation.arity:
        given = [_value(relation, number, value) for number, value in enumerate(given)]
    return checked_row(relation, given)


def parameters_in(given: Mapping[str, object] | None) -> Given:
    """The parameters of a query, from JSON."""
    return Given(given or {}, _number_of_text)


def _value(relation: Relation, number: int, value: object) -> object:
    column = relation.columns[number]
    try:
        return _number_of_text(column.kind, value)
    except FactError as problem:
        raise FactError(f"{relation.name}: {column_label(column, number + 1)}: {problem}") from None


def _number_of_text(kind: Kind, value: object) -> object:
    """Convert the string of a number."""
    if not isinstance(value, str) or kind is Kind.SYMBOL:
        return value
    try:
        return PARSERS[kind](value)
    except ValueError as problem:
        raise FactError(str(problem)) from None
