"""A checkpoint: the base facts after a step, and the engine's state.

The facts are written relation by relation, in chunks; `about` holds their number, so that a missing
one is noticed.  The engine's state is written unit by unit, as columns
(core.engine.stepping.saved_state), under a key: only the same program with the same strategies in
the same engine trusts it.

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

BaseFacts: TypeAlias = Mapping[str, Collection[Row]]


# ── about ────────────────────────────────────────────────────────────────────────────────────


def write_about(connection: Connection, name: str, value: Any) -> None:
    text = json.dumps(value)
    connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?, ?)", (name, text, checksum(name, text)))


def read_about(connection: Connection, name: str) -> Any:
    found = connection.execute("SELECT name, value, check_sum FROM about WHERE name = ?", (name,)).fetchone()
    if found is None or checksum(*found[:-1]) != found[-1]:
        raise BadRecord(f"its entry `{name}` has changed since it was written")
    return json.loads(found[1])


# ── facts ────────────────────────────────────────────────────────────────────────────────────


def write_facts(connection: Connection, step: int, facts: BaseFacts) -> None:
    """Replace the stored facts by those after a step."""
    connection.execute("DELETE FROM facts")
    relations: dict[str, int] = {}
    for relation, rows in facts.items():
        pieces = 0
        for number, data in chunks_of(rows):
            row = (relation, pieces, number, data)
            connection.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?)", (*row, checksum(*row)))
            pieces += 1
        relations[relation] = pieces
    write_about(connection, "facts", {"step": step, "relations": relations})


def read_facts(connection: Connection) -> dict[str, list[Row]]:
    """The facts of the checkpoint; BadRecord if some are damaged or missing."""
    about = read_about(connection, "facts")
    left: dict[str, int] = about["relations"]
    facts: dict[str, list[Row]] = {relation: [] for relation in left}
    shared: dict[str, str] = {}
    for row in connection.execute(
        "SELECT relation, piece, number, data, check_sum FROM facts ORDER BY relation, piece"
    ):
        relation, _, number, data, check = row
        if relation not in left or checksum(*row[:-1]) != check:
            raise BadRecord(f"the facts of {relation} have changed since they were written")
        facts[relation] += decoded_rows(data, number, shared)
        left[relation] -= 1
    lost = [relation for relation, number in left.items() if number]
    if lost:
        raise BadRecord(f"facts of {lost[0]} are missing")
    return facts


# ── state ────────────────────────────────────────────────────────────────────────────────────


def write_state(connection: Connection, about: Any, units: Iterable[tuple[str, bytes]]) -> None:
    """Replace the stored engine state; `about` holds its key."""
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
            raise BadRecord(f"the state of {unit} has changed since it was written")
        found[unit].append(data)
    if any(len(found[unit]) != number for unit, number in units.items()):
        raise BadRecord("a part of the state is missing")
    return {unit: b"".join(parts) for unit, parts in found.items()}
