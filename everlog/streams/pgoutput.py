"""The messages of PostgreSQL's output plugin `pgoutput`, protocol version 1.

A transaction is Begin, then for each table that it changes a Relation with the table's columns,
then Insert, Update, Delete and Truncate, then Commit.  Values are texts.  A large unchanged value
is omitted.

Source: the manual of PostgreSQL, "Logical Replication Message Formats".
"""

from __future__ import annotations

import struct
from typing import TypeAlias

from attrs import frozen

from everlog.streams.model import UNCHANGED, Unchanged

Text: TypeAlias = bytes | Unchanged | None
Tuple: TypeAlias = tuple[Text, ...]


@frozen
class Begin:
    final_lsn: int
    xid: int


@frozen
class Commit:
    end_lsn: int


@frozen
class Table:
    """The columns of a table at this point; `types` are oids with modifiers."""

    oid: int
    schema: str
    name: str
    columns: tuple[str, ...]
    types: tuple[tuple[int, int], ...]


@frozen
class Change:
    """A change of a row; `old` has all columns, or only the key if `old_is_key`."""

    op: str
    oid: int
    old: Tuple | None
    new: Tuple | None
    old_is_key: bool = False


@frozen
class Truncate:
    oids: tuple[int, ...]


Message: TypeAlias = Begin | Commit | Table | Change | Truncate


class _Bytes:
    """A message and the current position in it."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def letter(self) -> str:
        self._at += 1
        return chr(self._data[self._at - 1])

    def text(self) -> str:
        end = self._data.index(b"\0", self._at)
        text, self._at = self._data[self._at : end].decode(), end + 1
        return text

    def row(self) -> Tuple:
        return tuple([self._value() for _ in range(self.number("h"))])

    def _value(self) -> Text:
        match self.letter():
            case "n":
                return None
            case "u":
                return UNCHANGED
            case "t":
                size = self.number("i")
                self._at += size
                return self._data[self._at - size : self._at]
            case other:
                raise ValueError(f"a value of the unknown form {other!r}")


def read_message(data: bytes) -> Message | None:
    """Parse a message; None for those without rows (Origin, Type, Message).

    >>> read_message(b"C" + bytes(9) + bytes(7) + bytes([9]) + bytes(8))
    Commit(end_lsn=9)
    """
    rest = _Bytes(data)
    match rest.letter():
        case "B":
            lsn, _ = rest.number("q"), rest.number("q")
            return Begin(lsn, rest.number("I"))
        case "C":
            rest.number("b"), rest.number("q")
            return Commit(rest.number("q"))
        case "R":
            return _table(rest)
        case "I":
            oid, _ = rest.number("I"), rest.letter()
            return Change("c", oid, None, rest.row())
        case "U":
            return _update(rest)
        case "D":
            oid, form = rest.number("I"), rest.letter()
            return Change("d", oid, rest.row(), None, form == "K")
        case "T":
            count, _ = rest.number("i"), rest.number("b")
            return Truncate(tuple(rest.number("I") for _ in range(count)))
        case "O" | "Y" | "M":
            return None
        case other:
            raise ValueError(f"a message of the unknown kind {other!r}")


def _table(rest: _Bytes) -> Table:
    oid, schema, name = rest.number("I"), rest.text(), rest.text()
    rest.letter()  # replica identity
    columns, types = [], []
    for _ in range(rest.number("h")):
        rest.number("b")  # whether the column is part of the key
        columns.append(rest.text())
        types.append((rest.number("I"), rest.number("i")))
    return Table(oid, schema or "pg_catalog", name, tuple(columns), tuple(types))


def _update(rest: _Bytes) -> Change:
    oid, form = rest.number("I"), rest.letter()
    old = None
    if form != "N":
        old = rest.row()
        rest.letter()
    return Change("u", oid, old, rest.row(), form == "K")
