"""A checkpoint: the facts after a step, and the engine's state.

Facts are written relation by relation, sorted, in chunks; `about` holds their number, so that a
missing one is noticed.  Those of relations with rules are written apart from base facts.  The
engine's state is written unit by unit, as columns (core.engine.stepping.saved_state).  State and
derived facts have a key: only the same program with the same strategies in the same engine trusts
them.

All functions take a connection inside a transaction of the caller.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from sqlite3 import Connection
from typing import Any, TypeAlias
from uuid import uuid4

from attrs import frozen

from everlog.core.program import Row
from everlog.store.column_codec import BadRecord
from everlog.store.file_format import DERIVED as DERIVED_TABLE
from everlog.store.records import checksum, chunks_of, decoded_rows, is_intact, pieces_of

SortedFacts: TypeAlias = Iterable[tuple[str, Iterable[Row]]]  # by relation

FACTS, DERIVED = "facts", "derived"  # tables of rows


@frozen
class State:
    """What can be computed from base facts: states of units, facts of relations, and their key."""

    key: str
    units: Mapping[str, bytes]
    derived: SortedFacts = ()
    base: Collection[str] | None = None  # relations with base facts alone; None: facts are not written


# ── about ────────────────────────────────────────────────────────────────────────────────────


def write_about(connection: Connection, name: str, value: Any) -> None:
    text = json.dumps(value)
    connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?, ?)", (name, text, checksum(name, text)))


def read_about(connection: Connection, name: str) -> Any:
    found = connection.execute("SELECT name, value, check_sum FROM about WHERE name = ?", (name,)).fetchone()
    if not is_intact(found, str, str):
        raise BadRecord(f"its entry `{name}` has changed since it was written")
    return json.loads(found[1])


# ── facts ────────────────────────────────────────────────────────────────────────────────────


def write(connection: Connection, step: int, facts: SortedFacts, state: State | None) -> None:
    """Replace the stored facts and states by those after a step."""
    pieces, numbers = _write_rows(connection, FACTS, facts)
    mark = uuid4().hex  # an earlier version of everlog replaces facts alone
    write_about(connection, "facts", {"step": step, "relations": pieces, "numbers": numbers, "mark": mark})
    connection.execute(DERIVED_TABLE)
    pieces, numbers = _write_rows(connection, DERIVED, () if state is None else state.derived)
    readable: dict[str, Any] | None = None
    units: dict[str, Any] | None = None
    if state is not None and state.base is not None:
        readable = {"key": state.key, "mark": mark, "relations": pieces, "numbers": numbers}
        readable["base"] = list(state.base)
    written = _write_units(connection, {} if state is None else state.units)
    if state is not None and written:
        units = {"key": state.key, "units": written}
    write_about(connection, "derived", readable)
    write_about(connection, "state", units)


def _write_rows(connection: Connection, table: str, facts: SortedFacts) -> tuple[dict[str, int], dict[str, int]]:
    """Replace the rows of a table; return the numbers of pieces and of rows of each relation."""
    connection.execute(f"DELETE FROM {table}")
    pieces: dict[str, int] = {}
    numbers: dict[str, int] = {}
    for relation, rows in facts:
        pieces[relation] = numbers[relation] = 0
        for number, data in chunks_of(rows):
            row = (relation, pieces[relation], number, data)
            connection.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", (*row, checksum(*row)))
            pieces[relation] += 1
            numbers[relation] += number
    return pieces, numbers


def _write_units(connection: Connection, units: Mapping[str, bytes]) -> dict[str, int]:
    connection.execute("DELETE FROM state")
    written: dict[str, int] = {}
    for unit, data in units.items():
        pieces = pieces_of(data)
        for number, piece in enumerate(pieces):
            row = (unit, number, piece)
            connection.execute("INSERT INTO state VALUES (?, ?, ?, ?)", (*row, checksum(*row)))
        written[unit] = len(pieces)
    return written


def derived_beside(connection: Connection, facts: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The entry of the derived facts that were written with these base facts."""
    if not connection.execute("SELECT 1 FROM about WHERE name = 'derived'").fetchone():
        return None
    found: Mapping[str, Any] | None = read_about(connection, "derived")
    return found if found is not None and found["mark"] == facts.get("mark") else None


def read_facts(connection: Connection) -> dict[str, list[Row]]:
    """The facts of the checkpoint; BadRecord if some are damaged or missing."""
    about = read_about(connection, "facts")
    left: dict[str, int] = about["relations"]
    facts: dict[str, list[Row]] = {relation: [] for relation in left}
    shared: dict[str, str] = {}
    for row in connection.execute(
        "SELECT relation, piece, number, data, check_sum FROM facts ORDER BY relation, piece"
    ):
        relation, _, number, data, _ = row
        if relation not in left or not is_intact(row, str, int, int, bytes):
            raise BadRecord(f"the facts of {relation} have changed since they were written")
        facts[relation] += decoded_rows(data, number, shared)
        left[relation] -= 1
    lost = [relation for relation, number in left.items() if number]
    if lost:
        raise BadRecord(f"facts of {lost[0]} are missing")
    return facts


# ── state ────────────────────────────────────────────────────────────────────────────────────


def read_state(connection: Connection, units: Mapping[str, int]) -> dict[str, bytes]:
    found: dict[str, list[bytes]] = {unit: [] for unit in units}
    for row in connection.execute("SELECT unit, piece, data, check_sum FROM state ORDER BY unit, piece"):
        unit, _, data, _ = row
        if unit not in found or not is_intact(row, str, int, bytes):
            raise BadRecord(f"the state of {unit} has changed since it was written")
        found[unit].append(data)
    if any(len(found[unit]) != number for unit, number in units.items()):
        raise BadRecord("a part of the state is missing")
    return {unit: b"".join(parts) for unit, parts in found.items()}
