"""Records: the change of a step and the facts of a relation, with checksums.

SQLite notices damaged pages, but not a changed byte in the values.  So each row of each table has a
checksum over its other columns, and readers verify it.

Long records are cut into pieces, because SQLite limits a value to a gigabyte, and only one piece at
a time should be in memory.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias
from zlib import crc32

from everlog.core.engine.net_change import Net
from everlog.core.program import Row
from everlog.core.storage.shape import turned
from everlog.store.column_codec import BadRecord, decoded_columns, encoded_columns

Change: TypeAlias = dict[str, tuple[list[Row], list[Row]]]  # a mutable Net

PIECE = 1 << 24  # bytes of a record in one row of a table
CHUNK = 1 << 13  # facts of a relation in one record


def checksum(*values: int | str | bytes) -> int:
    """A checksum of a row of a table.

    >>> checksum(1, "a") == checksum(1, "a"), checksum(1, "a") == checksum("1a")
    (True, False)
    """
    total = 0
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        total = crc32(data, crc32(b"%d:" % len(data), total))
    return total


def is_intact(row: Sequence[Any] | None, *kinds: type) -> bool:
    """Whether a row of a table, whose last column is its checksum, is as it was written.

    SQLite stores a type with each value, and the same bytes have the same checksum in any type.

    >>> check = checksum(1, "a")
    >>> is_intact((1, "a", check), int, str), is_intact(("1", "a", check), int, str)
    (True, False)
    """
    return row is not None and tuple(map(type, row[:-1])) == kinds and checksum(*row[:-1]) == row[-1]


def pieces_of(data: bytes) -> list[bytes]:
    """A record in pieces, at least one."""
    return [data[start : start + PIECE] for start in range(0, len(data), PIECE)] or [data]


# ── rows ─────────────────────────────────────────────────────────────────────────────────────


def encoded_rows(rows: Collection[Row]) -> bytes:
    """Rows of one relation as bytes.

    Their number is stored elsewhere, since a relation may have no columns.
    """
    return encoded_columns(turned(rows, len(next(iter(rows), ()))))


def decoded_rows(data: bytes, number: int, shared: dict[str, str]) -> list[Row]:
    columns = decoded_columns(data, shared)
    if not columns:
        return [()] * number
    if any(len(column) != number for column in columns):
        raise BadRecord(f"{number} rows expected")
    return list(zip(*columns, strict=True))


def chunks_of(rows: Iterable[Row]) -> Iterator[tuple[int, bytes]]:
    """Many rows in records of limited size: the number of rows, and their bytes."""
    left = iter(rows)
    while chunk := list(islice(left, CHUNK)):
        yield len(chunk), encoded_rows(chunk)


# ── changes ──────────────────────────────────────────────────────────────────────────────────


def encoded_change(net: Net) -> bytes:
    r"""The deleted and inserted facts of a step: a header line, then the rows.

    >>> encoded_change({"edge": ([], [(1, 2)])})
    b'[["edge",1,1,9]]\n[[1],[2]]'
    """
    heads: list[tuple[str, int, int, int]] = []  # relation, sign, rows, bytes
    bodies: list[bytes] = []
    for name, both in net.items():
        for sign, rows in zip((-1, 1), both, strict=True):
            if rows:
                bodies.append(encoded_rows(rows))
                heads.append((name, sign, len(rows), len(bodies[-1])))
    head = json.dumps(heads, separators=(",", ":")).encode("ascii")
    return b"\n".join([head, b"".join(bodies)])


def decoded_change(data: bytes, shared: dict[str, str]) -> Change:
    """The change that some bytes encode.

    >>> decoded_change(encoded_change({"n": ([(1,), (2,)], [(3,)]), "m": ([], [()])}), {})
    {'n': ([(1,), (2,)], [(3,)]), 'm': ([], [()])}
    """
    head, _, body = data.partition(b"\n")
    change: Change = {}
    place = 0
    try:
        for name, sign, number, length in json.loads(head):
            rows = decoded_rows(body[place : place + length], number, shared)
            change.setdefault(name, ([], []))[sign > 0].extend(rows)
            place += length
    except (ValueError, TypeError) as problem:
        raise BadRecord(str(problem)) from problem
    if place != len(body):
        raise BadRecord("the record has another length")
    return change


def undone(net: Net) -> Change:
    """The inverse of a change."""
    return {name: (new, gone) for name, (gone, new) in net.items()}


def combined(changes: Iterable[Net]) -> Change:
    """The sum of consecutive changes, without what cancels out.

    >>> combined([{"n": ([], [(1,), (2,)])}, {"n": ([(1,)], [(3,)])}])
    {'n': ([], [(2,), (3,)])}
    """
    signed: dict[str, dict[Row, int]] = {}
    for change in changes:
        for name, both in change.items():
            rows = signed.setdefault(name, {})
            for sign, changed in zip((-1, 1), both, strict=True):
                for row in changed:
                    if rows.pop(row, sign) == sign:
                        rows[row] = sign
    return {
        name: ([row for row, sign in rows.items() if sign < 0], [row for row, sign in rows.items() if sign > 0])
        for name, rows in signed.items()
        if rows
    }


def applied(given: Mapping[str, Collection[Row]], changes: Sequence[Net]) -> dict[str, Collection[Row]]:
    """The facts after some changes."""
    facts = dict(given)
    for name, (gone, new) in combined(changes).items():
        rows = dict.fromkeys(facts.get(name, ()))
        for row in gone:
            rows.pop(row, None)
        rows.update(dict.fromkeys(new))
        facts[name] = rows
    return facts
