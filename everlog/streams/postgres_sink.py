"""Tables of PostgreSQL that follow relations: one transaction per step.

On opening, a table is compared with its relation, and the difference is written: so interruptions
do no harm.  From then on only changes are written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from everlog.api.changes import Changes
from everlog.api.database import Database
from everlog.core.program import Column, Kind, Relation, Row
from everlog.files.location import Place, Reading
from everlog.files.typed.postgres import (
    fill_table,
    fitting_names,
    make_table,
    read_table,
    refuse_unstorable,
    server_errors,
    table_exists,
)
from everlog.files.typed.sqlite import PRESENCE
from everlog.streams.naming import Naming
from everlog.streams.postgres_tables import connect, lock

_BY_COPY = 1000  # rows; for fewer, INSERT is faster
_INDEXED = 8  # columns


@frozen
class _Table:
    """A table, its relation, and the table's columns with their types."""

    place: Place
    names: Sequence[str]
    types: Sequence[str]

    @property
    def relation(self) -> Relation:
        return self.place.relation

    @property
    def columns(self) -> Sequence[Column]:
        return self.relation.columns or (PRESENCE,)

    @property
    def identifier(self) -> Any:
        from psycopg import sql

        return sql.Identifier(*self.place.table_path)


class PostgresSink:
    """The tables of relations in a database."""

    def __init__(self, url: str, relations: Sequence[str], naming: Naming) -> None:
        self._url = url
        self._places = [
            Place(naming.relations[name], {"table": naming.table_of(name)}, Path()) for name in relations
        ]
        self._tables: list[_Table] = []
        with server_errors(self._url):
            self._connection = connect(url)
            try:
                self.positions: Mapping[str, str] = self._stored()
            except BaseException:
                self._connection.close()
                raise

    def _stored(self) -> Mapping[str, str]:
        """Lock the tables; the positions of the last step, if all tables agree."""
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS everlog_positions (followed_by text PRIMARY KEY, positions jsonb NOT NULL,"
            " written timestamptz NOT NULL DEFAULT now())"
        )
        for place in self._places:
            lock(self._connection, f"writes to the table {place.table}", "end it first")
        names = [place.table for place in self._places]
        rows = self._connection.execute(
            "SELECT positions FROM everlog_positions WHERE followed_by = ANY(%s)", [names]
        ).fetchall()
        found: list[dict[str, str]] = [positions for (positions,) in rows]
        return found[0] if len(found) == len(names) and all(other == found[0] for other in found) else {}

    def open(self, database: Database) -> None:
        with server_errors(self._url):
            for place in self._places:
                with self._connection.transaction():
                    self._tables.append(self._prepared(place))
            with self._connection.transaction():
                for table in self._tables:
                    self._compare(table, database.rows(table.relation.name))
                self._store(database.positions)

    def _prepared(self, place: Place) -> _Table:
        """The table, created if necessary."""
        from psycopg import sql

        identifier = sql.Identifier(*place.table_path)
        if table_exists(self._connection, identifier):
            names = fitting_names(self._connection, place, identifier)
        else:
            names = make_table(self._connection, place, identifier)
            self._connection.execute(_index(identifier, names, place.relation.columns or (PRESENCE,)))
        known = self._connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = to_regclass(%s)",
            [identifier.as_string(self._connection)],
        ).fetchall()
        types = dict(known)
        return _Table(place, names, [types[name] for name in names])

    def _compare(self, table: _Table, rows: Iterable[Row]) -> None:
        """Write the difference between the table and the rows."""
        stored = Counter(read_table(self._connection, Reading(table.place), table.identifier))
        wanted = set(rows)
        wrong = [row for row, count in stored.items() if count > 1 or row not in wanted]
        self._change(table, wrong, [row for row in wanted if stored[row] != 1])

    def write(self, changes: Changes, positions: Mapping[str, str]) -> None:
        touched = [table for table in self._tables if changes[table.relation.name]]
        if touched:
            with server_errors(self._url), self._connection.transaction():
                for table in touched:
                    name = table.relation.name
                    self._change(table, changes.deleted(name), changes.inserted(name))
                self._store(positions)

    def _change(self, table: _Table, gone: Sequence[Row], new: Sequence[Row]) -> None:
        from psycopg import sql

        refuse_unstorable(table.relation, new)
        if gone:
            same = sql.SQL(" AND ").join(_same(table))
            delete = sql.SQL("DELETE FROM {} AS told USING {} WHERE {}").format(
                table.identifier, _given(table), same
            )
            self._connection.execute(delete, _columns(table, gone))
        if len(new) > _BY_COPY:
            fill_table(self._connection, table.identifier, table.names, new)
        elif new:
            names = sql.SQL(", ").join(map(sql.Identifier, table.names))
            insert = sql.SQL("INSERT INTO {} ({}) SELECT * FROM {}").format(table.identifier, names, _given(table))
            self._connection.execute(insert, _columns(table, new))

    def _store(self, positions: Mapping[str, str]) -> None:
        stored = json.dumps(dict(positions))
        for table in self._tables:
            self._connection.execute(
                "INSERT INTO everlog_positions (followed_by, positions) VALUES (%s, %s) ON CONFLICT (followed_by)"
                " DO UPDATE SET positions = EXCLUDED.positions, written = now()",
                [table.place.table, stored],
            )
        self.positions = dict(positions)

    def settle(self, positions: Mapping[str, str]) -> None:
        if positions != self.positions:
            with server_errors(self._url), self._connection.transaction():
                self._store(positions)

    def fileno(self) -> int | None:
        return None

    def attend(self, database: Database) -> None:
        pass

    def close(self) -> None:
        self._connection.close()


# ── SQL ──────────────────────────────────────────────────────────────────────────────────────


def _given(table: _Table) -> Any:
    """Rows as parameters, one array per column."""
    from psycopg import sql

    arrays = sql.SQL(", ").join(sql.SQL("%s::{}[]").format(sql.SQL(of)) for of in table.types)
    names = sql.SQL(", ").join(sql.Identifier(f"c{n}") for n in range(len(table.names)))
    return sql.SQL("unnest({}) AS given({})").format(arrays, names)


def _columns(table: _Table, rows: Sequence[Row]) -> list[list[object]]:
    if not table.relation.columns:
        return [[1] * len(rows)]
    return [list(column) for column in zip(*rows, strict=True)]


def _same(table: _Table) -> Iterator[Any]:
    """The condition that a row equals a parameter row, in a form for our index."""
    from psycopg import sql

    for number, (name, column) in enumerate(zip(table.names, table.columns, strict=True)):
        here, there = sql.Identifier("told", name), sql.Identifier("given", f"c{number}")
        yield sql.SQL("{} = {}").format(here, there)
        if column.kind is Kind.SYMBOL:
            yield sql.SQL("{} = {}").format(_hashed(here), _hashed(there))


def _index(table: Any, names: Sequence[str], columns: Sequence[Column]) -> Any:
    """An index over all columns; of texts their hashes, since long texts fit no index."""
    from psycopg import sql

    keys = [
        _hashed(sql.Identifier(name)) if column.kind is Kind.SYMBOL else sql.Identifier(name)
        for name, column in zip(names, columns, strict=True)
    ]
    return sql.SQL("CREATE INDEX ON {} ({})").format(table, sql.SQL(", ").join(keys[:_INDEXED]))


def _hashed(text: Any) -> Any:
    from psycopg import sql

    return sql.SQL("hashtextextended({}, 0)").format(text)
