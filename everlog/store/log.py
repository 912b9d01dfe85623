"""The log: the changes of each step, and each new program with its first step.

A step's record is the *net* change of the base facts: deleted facts were there, inserted ones were
not.  So the log can be read in both directions, and any state can be reached from another.

All functions take a connection inside a transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from sqlite3 import Connection

from attrs import frozen

from everlog.core.engine.net_change import Net
from everlog.store.column_codec import BadRecord
from everlog.store.records import Change, checksum, decoded_change, encoded_change, is_intact, pieces_of


@frozen
class Entry:
    """A past step: its number, its time (milliseconds since 1970), and its changes.

    `program` is the text of the new program, if the step changed it.
    """

    step: int
    time: int
    change: Change
    program: str | None


def append(connection: Connection, step: int, time: int, net: Net, program: str | None) -> None:
    """Write a step."""
    pieces = pieces_of(encoded_change(net))
    for number, data in enumerate(pieces):
        row = (step, number, len(pieces), time, data)
        connection.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", (*row, checksum(*row)))
    if program is not None:
        write_program(connection, step, program)


def write_program(connection: Connection, step: int, saved: str) -> None:
    connection.execute("INSERT INTO programs VALUES (?, ?, ?)", (step, saved, checksum(step, saved)))


def program_at(connection: Connection, step: int) -> tuple[int, str]:
    """The program after a step, and the step that introduced it."""
    found = connection.execute(
        "SELECT step, saved, check_sum FROM programs WHERE step <= ? ORDER BY step DESC LIMIT 1", (step,)
    ).fetchone()
    if not is_intact(found, int, str):
        raise BadRecord(f"the program of step {step} has changed since it was written")
    return found[0], found[1]


def last_step(connection: Connection, base: int) -> int:
    """The number of the last step; `base` if the log is empty."""
    (last,) = connection.execute("SELECT max(step) FROM log").fetchone()
    return base if last is None else max(base, last)


def entries(connection: Connection, after: int, upto: int) -> Iterator[Entry]:
    """The steps after one up to another, in order; BadRecord if one is damaged."""
    shared: dict[str, str] = {}
    programs = {
        row[0]: row[1] if is_intact(row, int, str) else None
        for row in connection.execute(
            "SELECT step, saved, check_sum FROM programs WHERE step > ? AND step <= ?", (after, upto)
        )
    }
    step = after + 1
    parts: list[bytes] = []
    wanted = "SELECT step, piece, pieces, time, data, check_sum FROM log WHERE step > ? AND step <= ?"
    for row in connection.execute(f"{wanted} ORDER BY step, piece", (after, upto)):
        number, piece, pieces, time, data, _ = row
        if (number, piece) != (step, len(parts)) or not is_intact(row, int, int, int, int, bytes):
            raise BadRecord(f"step {step} has changed since it was written")
        parts.append(data)
        if len(parts) == pieces:
            program = programs.get(step)
            if program is None and step in programs:
                raise BadRecord(f"the program of step {step} has changed since it was written")
            yield Entry(step, time, decoded_change(b"".join(parts), shared), program)
            step, parts = step + 1, []
    if step != upto + 1:
        raise BadRecord(f"step {step} is missing")


def forget(connection: Connection, upto: int) -> None:
    """Drop the steps up to one, and the programs that no other step needs."""
    connection.execute("DELETE FROM log WHERE step <= ?", (upto,))
    connection.execute(
        "DELETE FROM programs WHERE step < (SELECT max(step) FROM programs WHERE step <= ?)", (upto,)
    )


# ── positions ────────────────────────────────────────────────────────────────────────────────


def write_positions(connection: Connection, positions: Mapping[str, str]) -> None:
    rows = [(source, position, checksum(source, position)) for source, position in positions.items()]
    connection.executemany("INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", rows)


def read_positions(connection: Connection) -> dict[str, str]:
    found = {}
    for row in connection.execute("SELECT source, position, check_sum FROM positions"):
        source, position, _ = row
        if not is_intact(row, str, str):
            raise BadRecord(f"the position of {source} has changed since it was written")
        found[source] = position
    return found
