"""A checkpoint: the given facts after a step, and what the engine kept, so that a database comes
back from there.

The facts are written relation by relation, in chunks; `about` says how many, so that none can be
missing.  The state of the engine is written unit by unit, as columns
(core.engine.stepping.saved_state), under a key: it is believed only by the same program, kept by
the same strategies, in the same engine.

All functions take a connection inside a transaction of the caller.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from sqlite3 import Connection
from typing import Any, TypeAlias

from everlog.core.program import Row
from everlog.store.column_codec import BadRecord
from everlog.store.records import checksum, chunks_of, decoded_rows, pieces_of

Given: TypeAlias = Mapping[str, Collection[Row]]


# ── about ────────────────────────────────────────────────────────────────────────────────────


def write_about(connection: Connection, name: str, value: Any) -> None:
    text = json.dumps(value)
    connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?, ?)", (name, text, checksum(name, text)))


def read_about(connection: Connection, name: str) -> Any:
    found = connection.execute("SELECT name, value, check_sum FROM about WHERE name = ?", (name,)).fetchone()
    if found is None or checksum(*found[:-1]) != found[-1]:
        raise BadRecord(f"what it says about its {name} is not what was written")
    return json.loads(found[1])


# ── facts ────────────────────────────────────────────────────────────────────────────────────


def write_facts(connection: Connection, step: int, given: Given) -> None:
    """Write the facts after a step in the place of those that are there."""
    connection.execute("DELETE FROM facts")
    relations: dict[str, int] = {}
    for relation, rows in given.items():
        pieces = 0
        for number, data in chunks_of(rows):
            row = (relation, pieces, number, data)
            connection.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?)", (*row, checksum(*row)))
            pieces += 1
        relations[relation] = pieces
    write_about(connection, "facts", {"step": step, "relations": relations})


def read_facts(connection: Connection) -> dict[str, list[Row]]:
    """The facts of the checkpoint; BadRecord if some are not whole."""
    about = read_about(connection, "facts")
    left: dict[str, int] = about["relations"]
    given: dict[str, list[Row]] = {relation: [] for relation in left}
    shared: dict[str, str] = {}
    for row in connection.execute(
        "SELECT relation, piece, number, data, check_sum FROM facts ORDER BY relation, piece"
    ):
        relation, _, number, data, check = row
        if relation not in left or checksum(*row[:-1]) != check:
            raise BadRecord(f"the facts of {relation} are not what was written")
        given[relation] += decoded_rows(data, number, shared)
        left[relation] -= 1
    lost = [relation for relation, number in left.items() if number]
    if lost:
        raise BadRecord(f"facts of {lost[0]} are not there")
    return given


# ── state ────────────────────────────────────────────────────────────────────────────────────


def write_state(connection: Connection, about: Any, units: Iterable[tuple[str, bytes]]) -> None:
    """Write what the engine keeps, in the place of what is there; `about` says under which key."""
    connection.execute("DELETE FROM state")
    written: dict[str, int] = {}
    for unit, data in units:
        pieces = pieces_of(data)
        for number, piece in enumerate(pieces):
            row = (unit, number, piece)
            connection.execute("INSERT INTO state VALUES (?, ?, ?, ?)", (*row, checksum(*row)))
        written[unit] = len(pieces)
    write_about(connection, "state", None if about is None else {**about, "units": written})


def read_state(connection: Connection, units: Mapping[str, int]) -> dict[str, bytes]:
    found: dict[str, list[bytes]] = {unit: [] for unit in units}
    for row in connection.execute("SELECT unit, piece, data, check_sum FROM state ORDER BY unit, piece"):
        unit, _, data, check = row
        if unit not in found or checksum(*row[:-1]) != check:
            raise BadRecord(f"the state of {unit} is not what was written")
        found[unit].append(data)
    if any(len(found[unit]) != number for unit, number in units.items()):
        raise BadRecord("a part of the state is not there")
    return {unit: b"".join(parts) for unit, parts in found.items()}
