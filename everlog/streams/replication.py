"""Changes of PostgreSQL's tables by logical replication, read with SQL functions.

The server keeps its log for a slot until it learns how far the log was read.  `peek` returns the
changes after that point and leaves them there; once the database has them, `advance` moves the
point.  So a change is seen at least once, and the position stored with each step says which ones
were seen.

A slot without a name of its own is temporary: it ends with the connection, and the next run begins
with a snapshot.

Source: the manual of PostgreSQL, "Logical Decoding", "Replication Management Functions".
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from everlog.core.program.values import decoded
from everlog.files.text_values import FactsError
from everlog.streams.model import RowChange
from everlog.streams.pgoutput import Begin, Change, Commit, Table, Truncate, Tuple, read_message
from everlog.streams.postgres_tables import Noted, Snapshot, SourceTable

if TYPE_CHECKING:
    from psycopg import Connection

_MOST_CHANGES = 10_000  # of one peek; a transaction is never cut
_QUIET = 10.0  # seconds after which a slot is moved past unrelated changes


def lsn_text(lsn: int) -> str:
    """A position of the log as PostgreSQL writes it.

    >>> lsn_text(0x16B3748), lsn_number("0/16B3748") == 0x16B3748
    ('0/16B3748', True)
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_number(text: str) -> int:
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def can_replicate(connection: Connection[Any]) -> str | None:
    """Why logical replication is not available to this user, or None."""
    row = connection.execute(
        "SELECT current_setting('wal_level'), rolreplication OR rolsuper,"
        " has_database_privilege(current_database(), 'CREATE')"
        " OR EXISTS (SELECT FROM pg_publication WHERE starts_with(pubname, 'everlog_'))"
        " FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    assert row is not None
    if row[0] != "logical":
        return f"the server's wal_level is {row[0]}, not logical"
    if not row[1]:
        return "this user may not replicate (ALTER ROLE … REPLICATION)"
    return None if row[2] else "this user may not publish (GRANT CREATE ON DATABASE …)"


class Replication:
    """The changes of some tables.

    Its position is the end of the last transaction, `lsn`, and the first snapshot, until the log is
    past it.
    """

    def __init__(self, connection: Connection[Any], tables: Sequence[SourceTable], slot: str | None) -> None:
        self._connection, self._tables = connection, {table.full_name: table for table in tables}
        self._oids = [self._tables[name].oid for name in sorted(self._tables)]
        self._temporary = slot is None
        self._slot = slot or f"everlog_{uuid4().hex[:12]}"
        digest = hashlib.sha256("\0".join(sorted(self._tables)).encode()).hexdigest()[:12]
        self._publication = f"everlog_{digest}"
        self._read = 0  # the end of the last transaction that was taken
        self._advanced = 0
        self._looked = (-1, 0.0)  # the end of the log at the last look, and its time
        self._target = self._log()  # the end of the log at the start
        self._snapshot: tuple[Snapshot, str, int] | None = None
        for table in tables:
            if table.identity == "n" or (table.identity == "d" and not _has_primary_key(connection, table)):
                raise FactsError(
                    f"table {table.full_name} does not say which row was changed: give it a primary key, or ALTER"
                    " TABLE … REPLICA IDENTITY FULL"
                )

    # ── beginning ────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Make the server keep changes from now on."""
        self._publish()
        self._connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
            [self._slot],
        )
        row = self._connection.execute(
            "SELECT lsn - '0/0'::pg_lsn FROM pg_create_logical_replication_slot(%s, 'pgoutput', %s)",
            [self._slot, self._temporary],
        ).fetchone()
        assert row is not None
        self._read = self._advanced = int(row[0])

    def _publish(self) -> None:
        from psycopg import sql

        known = self._connection.execute(
            "SELECT 1 FROM pg_publication WHERE pubname = %s", [self._publication]
        ).fetchone()
        if known is not None and self._unpublished() is None:
            return
        statement = "CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)"
        if known is not None:  # a dropped table has left the publication, and one of its name is new
            statement = "ALTER PUBLICATION {} SET TABLE {}"
        listed = sql.SQL(", ").join(table.identifier for table in self._tables.values())
        self._connection.execute(sql.SQL(statement).format(sql.Identifier(self._publication), listed))

    def _unpublished(self) -> str | None:
        """A table that is not in the publication, because it was recreated or removed."""
        row = self._connection.execute(
            "SELECT name FROM unnest(%s::text[], %s::int8[]) AS wanted(name, table_oid) WHERE NOT EXISTS"
            " (SELECT FROM pg_publication_rel JOIN pg_publication p ON p.oid = prpubid"
            " WHERE pubname = %s AND prrelid::int8 = table_oid) LIMIT 1",
            [list(self._tables), [table.oid for table in self._tables.values()], self._publication],
        ).fetchone()
        return None if row is None else str(row[0])

    def begun(self, snapshot: str, log: int) -> dict[str, Any]:
        """The position after the first snapshot, taken at this end of the log."""
        self._snapshot = Snapshot.read(snapshot), snapshot, log
        return self._position()

    def resume(self, position: dict[str, Any]) -> bool:
        """Continue after a position; False if the server has dropped changes since."""
        row = self._connection.execute(
            "SELECT confirmed_flush_lsn - '0/0'::pg_lsn, wal_status FROM pg_replication_slots"
            " WHERE slot_name = %s AND plugin = 'pgoutput' AND database = current_database()",
            [self._slot],
        ).fetchone()
        lsn = lsn_number(position["lsn"])
        if self._temporary or row is None or row[1] == "lost" or row[0] > lsn:
            return False
        if position.get("oids") != self._oids or self._unpublished() is not None:  # a table was recreated
            return False
        self._read, self._advanced = lsn, int(row[0])
        if "snapshot" in position:
            text = position["snapshot"]
            self._snapshot = Snapshot.read(text), text, lsn_number(position["until"])
        return True

    # ── going on ─────────────────────────────────────────────────────────────────────────────

    def take(self) -> list[Noted]:
        """The transactions that were committed since, in the order of their commits."""
        log, now = self._log(), time.monotonic()
        if log == self._looked[0]:
            return []
        messages = self._connection.execute(
            "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, %s, 'proto_version', '1',"
            " 'publication_names', %s)",
            [self._slot, _MOST_CHANGES, self._publication],
            binary=True,
        ).fetchall()
        noted = self._transactions([data for (data,) in messages])
        if noted:
            self._looked = (-1, now)  # there may be more
            return noted
        lost = self._unpublished()
        if lost is not None:
            raise FactsError(
                f"changes of table {lost} are not published any more: it was dropped, it seems; start anew"
            )
        if now - self._looked[1] > _QUIET:  # move past unrelated changes
            self._looked, self._read = (log, now), max(log, self._read)
            noted = [Noted([], self._position(), "0")]
        else:
            self._looked = (log, self._looked[1])
        return noted

    def _log(self) -> int:
        """The end of the server's log."""
        row = self._connection.execute("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn").fetchone()
        assert row is not None
        return int(row[0])

    @property
    def caught_up(self) -> bool:
        """Whether all changes from before the start were taken."""
        return self._read >= self._target or self._looked[0] >= self._target

    def _transactions(self, messages: Sequence[bytes]) -> list[Noted]:
        noted: list[Noted] = []
        known: dict[int, Table] = {}
        begin = Begin(0, 0)
        changes: list[RowChange] = []
        for data in messages:
            match read_message(data):
                case Begin() as begin:
                    changes = []
                case Table() as table:
                    known[table.oid] = self._checked(table)
                case Change() as change:
                    changes.append(self._row_change(known[change.oid], change, len(changes) + 1))
                case Truncate(oids=oids):
                    names = [self._ours(known[oid]).full_name for oid in oids]
                    changes += [RowChange(name, "t", number=len(changes) + 1) for name in names]
                case Commit(end_lsn=end):
                    if end > self._read:
                        self._read = end
                        if not self._was_seen(begin.xid, end):
                            noted.append(Noted(changes, self._position(), str(begin.xid)))
        return noted

    def _was_seen(self, xid: int, end: int) -> bool:
        """Whether the first snapshot contains a transaction."""
        if self._snapshot is None:
            return False
        snapshot, _, until = self._snapshot
        if end > until:
            self._snapshot = None
            return False
        return snapshot.sees(xid)

    def _position(self) -> dict[str, Any]:
        tables = sorted(self._tables)
        position = {"via": "replication", "lsn": lsn_text(self._read), "tables": tables, "oids": self._oids}
        if self._snapshot is not None and self._read <= self._snapshot[2]:
            position |= {"snapshot": self._snapshot[1], "until": lsn_text(self._snapshot[2])}
        return position

    def _checked(self, table: Table) -> Table:
        """A table at this point, also a partition; FactsError if it has lost a column."""
        ours = self._tables.get(_name(table))
        for column in ours.columns if ours is not None else ():
            if column not in table.columns:
                raise FactsError(f"table {_name(table)} no longer has the column `{column}`")
        return table

    def _ours(self, table: Table) -> SourceTable:
        ours = self._tables.get(_name(table))
        if ours is None:
            raise FactsError(f"a followed table was renamed to {_name(table)}: start anew with --table")
        if ours.oid != table.oid:
            raise FactsError(f"table {_name(table)} was dropped and recreated while it was followed: start anew")
        return ours

    def _row_change(self, table: Table, change: Change, number: int) -> RowChange:
        ours = self._ours(table)

        def values(row: Tuple | None) -> dict[str, object] | None:
            if row is None:
                return None
            pairs = zip(table.columns, row, strict=True)
            return ours.renamed({name: decoded(v) if isinstance(v, bytes) else v for name, v in pairs})

        before = values(change.old)
        if before is not None and change.old_is_key:  # the other columns are null because they are not sent
            before = {name: value for name, value in before.items() if value is not None}
        return RowChange(_name(table), change.op, before, values(change.new), number)

    def done(self, position: dict[str, Any]) -> None:
        """Let the server drop changes up to here, since they are stored."""
        self._advance(lsn_number(position["lsn"]))

    def _advance(self, lsn: int) -> None:
        if lsn > self._advanced:
            self._connection.execute("SELECT pg_replication_slot_advance(%s, %s)", [self._slot, lsn_text(lsn)])
            self._advanced = lsn

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        if self._temporary:
            self._connection.execute("SELECT pg_drop_replication_slot(%s)", [self._slot])


def _name(table: Table) -> str:
    return f"{table.schema}.{table.name}"


def _has_primary_key(connection: Connection[Any], table: SourceTable) -> bool:
    found = connection.execute(
        "SELECT 1 FROM pg_index WHERE indrelid = to_regclass(%s) AND indisprimary",
        [table.identifier.as_string(connection)],
    ).fetchone()
    return found is not None


def forget(connection: Connection[Any], slot: str) -> None:
    """Remove a slot, and the publications that no other slot reads."""
    from psycopg import sql

    connection.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", [slot]
    )
    others = connection.execute(
        "SELECT 1 FROM pg_replication_slots WHERE plugin = 'pgoutput' AND slot_name LIKE 'everlog%'"
    ).fetchone()
    if others is None:
        ours = "SELECT pubname FROM pg_publication WHERE pubname ~ '^everlog_[0-9a-f]{12}$'"
        for (name,) in connection.execute(ours).fetchall():
            connection.execute(sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(name)))
