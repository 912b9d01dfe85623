"""Tables of PostgreSQL that feed relations: search, checks, snapshots.

Two rows of a table must be two facts, otherwise deleting one would delete the other: so a table
needs a key, and its relation must have the columns of the key.

A snapshot knows which transactions it sees.  Changes are recorded from before it is taken, and
those of transactions that it sees are skipped: so nothing is missing between the snapshot and the
changes, and nothing comes twice.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from everlog.core.program import Kind, Relation, Row, Value
from everlog.core.program.fact_rows import shown
from everlog.core.program.values import decoded
from everlog.files.location import Place, Reading
from everlog.files.rejects import Refuse
from everlog.files.text_values import PARSERS, FactsError
from everlog.files.typed.postgres import kinds_of_oid, read_table
from everlog.files.typed.typed_values import Typed, check_columns, typed_value
from everlog.streams.model import RowChange
from everlog.streams.naming import Naming, what_of_nulls

if TYPE_CHECKING:
    from psycopg import Connection, sql

_BYTEA_OID = 17
_FLOATING = {700: "f", 701: "d"}
_ATTEMPTS = 50
_BYTEA = re.compile(r"\\x((?:[0-9a-f]{2})*)")


@frozen
class SourceTable:
    """A table and its relation; `columns` maps used table columns to the relation's."""

    relation: Relation
    oid: int
    schema: str
    name: str
    columns: Mapping[str, str]
    binary: frozenset[str]  # columns of type `bytea`
    floating: Mapping[str, str]  # columns of type `real` and `double precision`, with their bit formats
    identity: str  # PostgreSQL's letter for what a change says about the old row
    nulls: tuple[Value | None, ...]  # the value for null in each column of the relation

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def identifier(self) -> sql.Identifier:
        from psycopg import sql

        return sql.Identifier(self.schema, self.name)

    def renamed(self, values: Mapping[str, object]) -> dict[str, object]:
        """The values of a row by the relation's names."""
        return {
            self.columns[name]: self._stored(name, value) if isinstance(value, str) else value
            for name, value in values.items()
            if name in self.columns
        }

    def _stored(self, name: str, text: str) -> object:
        """A value as stored; of floats, PostgreSQL writes the shortest numeral."""
        if name in self.binary:
            return bytes_text(text)
        if name not in self.floating:
            return text
        (number,) = struct.unpack(self.floating[name], struct.pack(self.floating[name], float(text)))
        return number


@frozen
class Noted:
    """A committed transaction, and the position after it."""

    changes: Sequence[RowChange]
    position: dict[str, Any]
    id: str


# ── which tables ─────────────────────────────────────────────────────────────────────────────


def find_tables(
    connection: Connection[Any], naming: Naming, derived: Sequence[str], nulls_are_refused: bool
) -> list[SourceTable]:
    """The tables of relations without rules: the named ones, and others if they exist.

    Their keys are set in `naming`.  Raises FactsError if a table does not fit; also if a column may
    be NULL without a value for it, where that would end the stream one day.
    """
    found = []
    for relation in naming.relations.values():
        if relation.name not in derived:
            table = _find(connection, naming, relation, nulls_are_refused)
            if table is not None:
                found.append(table)
            elif relation.name in naming.tables:
                name = naming.table_of(relation.name)
                raise FactsError(f"there is no table {name}, which relation {relation.name} should follow")
    if not found:
        wanted = ", ".join(name for name in naming.relations if name not in derived)
        raise FactsError(f"there is no table for any relation of {wanted}; name them with --table RELATION=TABLE")
    return found


def _find(
    connection: Connection[Any], naming: Naming, relation: Relation, nulls_are_refused: bool
) -> SourceTable | None:
    from psycopg import sql

    table = naming.table_of(relation.name)
    identifier = sql.Identifier(*(table.split(".") if relation.name in naming.tables else [table]))
    row = connection.execute(
        "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relreplident FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)",
        [identifier.as_string(connection)],
    ).fetchone()
    if row is None:
        return None
    oid: int = row[0]
    schema, name, kind, identity = (text.decode() if isinstance(text, bytes) else str(text) for text in row[1:])
    if kind not in "rp":
        raise FactsError(f"{schema}.{name} is not a table, so its changes cannot be followed")
    known = connection.execute(
        "SELECT attname, atttypid::int8, atttypmod, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute"
        " WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [oid],
    ).fetchall()
    place = Place(relation, {"table": f"{schema}.{name}"}, Path())
    typed = [
        Typed(column, shown_type, kinds_of_oid(of, modifier)) for column, of, modifier, shown_type, _ in known
    ]
    positions = check_columns(place, typed, f"table {schema}.{name}")
    columns = {known[p][0]: column.name for p, column in zip(positions, relation.columns, strict=True)}
    nulls = tuple(naming.nulls_of(relation))
    for position, column, null in zip(positions, relation.columns, nulls, strict=True):
        if nulls_are_refused and null is None and not known[position][4]:
            raise FactsError(
                f"column `{known[position][0]}` of table {schema}.{name} may be NULL;"
                f" {what_of_nulls(relation, column)}; or ALTER TABLE … ALTER {known[position][0]} SET NOT NULL"
            )
    key = _key(connection, naming, relation, f"{schema}.{name}", oid, columns, identity)
    names = [column.name for column in relation.columns]
    naming.keys[relation.name] = tuple(names.index(column) for column in key)
    floating = {column: _FLOATING[of] for column, of, *_ in known if of in _FLOATING}
    binary = frozenset(column for column, of, *_ in known if of == _BYTEA_OID)
    return SourceTable(relation, oid, schema, name, columns, binary, floating, identity, nulls)


def _key(
    connection: Connection[Any],
    naming: Naming,
    relation: Relation,
    table: str,
    oid: int,
    columns: Mapping[str, str],
    identity: str,
) -> tuple[str, ...]:
    """The key columns of the relation."""
    rows = connection.execute(
        "SELECT a.attname FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, n)"
        " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE i.indrelid = %s"
        " AND k.n <= i.indnkeyatts AND CASE WHEN %s THEN i.indisreplident ELSE i.indisprimary END",
        [oid, identity == "i"],
    ).fetchall()
    names = [name for (name,) in rows]
    if not names:
        given = naming.keys.get(relation.name)
        if given is None:
            raise FactsError(
                f"table {table} has no primary key, so equal rows cannot be distinguished; add one, or"
                f" name the key columns: --key {relation.name}=COLUMN,…"
            )
        return tuple(relation.columns[position].name for position in given)
    missing = [name for name in names if name not in columns]
    if missing:
        raise FactsError(
            f"relation {relation.name} lacks the column `{missing[0]}` of the key of table {table}: two rows could"
            " be one fact; declare it"
        )
    return tuple(columns[name] for name in names)


def connect(url: str) -> Connection[Any]:
    """A connection in which each statement is a transaction, unless one is open."""
    import psycopg

    return psycopg.connect(url, autocommit=True)


def lock(connection: Connection[Any], what: str, hint: str) -> None:
    """Take a lock; it is released when the connection ends."""
    attempt = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
    for _ in range(_ATTEMPTS):  # the connection of a killed process may still exist for a moment
        row = connection.execute(attempt, [f"everlog {what}"]).fetchone()
        if row is not None and row[0]:
            return
        time.sleep(0.1)
    raise FactsError(f"another everlog {what}; {hint}")


# ── snapshots ────────────────────────────────────────────────────────────────────────────────


@frozen
class Snapshot:
    """A snapshot `xmin:xmax:xip,…` of PostgreSQL: the transactions that it sees."""

    lowest: int  # it sees all transactions below,
    next: int  # and none from here on
    under_way: frozenset[int]

    @staticmethod
    def read(text: str) -> Snapshot:
        """Parse PostgreSQL's text.

        >>> Snapshot.read("10:20:12,15").sees(11), Snapshot.read("10:20:12,15").sees(12)
        (True, False)
        """
        lowest, highest, under_way = text.split(":")
        return Snapshot(int(lowest), int(highest), frozenset(map(int, filter(None, under_way.split(",")))))

    def sees(self, xid: int) -> bool:
        """Whether it sees a transaction; a 32-bit number means the nearest one."""
        if xid < 2**32:
            xid += (self.next - xid + 2**31) >> 32 << 32
        return xid < self.next and xid not in self.under_way

    def covers(self, other: Snapshot) -> bool:
        """Whether it sees all that the other one sees."""
        return other.next <= self.next and not any(map(other.sees, self.under_way))


def read_tables(
    connection: Connection[Any], tables: Sequence[SourceTable], refuse: Refuse
) -> tuple[dict[str, list[Row]], str, int]:
    """All rows of the tables in one snapshot, the snapshot, and the log's position."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        found = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert found is not None
        rows = {
            table.relation.name: read_table(
                connection,
                Reading(Place(table.relation, {"table": table.full_name}, Path(), table.nulls), refuse=refuse),
                table.identifier,
            )
            for table in tables
        }
        log = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
        assert log is not None
    return rows, str(found[0]), int(log[0])


# ── values ───────────────────────────────────────────────────────────────────────────────────


def text_value(kind: Kind, value: object) -> Value:
    r"""A text of PostgreSQL as a value in the stored form of this kind.

    >>> text_value(Kind.NUMBER, "7.00"), text_value(Kind.FLOAT, "Infinity")
    (7, inf)
    >>> text_value(Kind.SYMBOL, "7")
    '7'
    """
    if not isinstance(value, str) or kind is Kind.SYMBOL:
        return typed_value(kind, value)
    if kind is Kind.FLOAT:
        return PARSERS[kind](value)
    try:
        return typed_value(kind, Decimal(value))
    except InvalidOperation:
        raise ValueError(f"{shown(value)} is not a {kind}") from None


def bytes_text(text: str) -> str:
    r"""The symbol of a `bytea`, which PostgreSQL writes in hexadecimal.

    >>> bytes_text("\\x6162")
    'ab'
    """
    found = _BYTEA.fullmatch(text)
    return text if found is None else decoded(bytes.fromhex(found[1]))
