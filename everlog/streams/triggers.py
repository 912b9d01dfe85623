"""Changes of PostgreSQL's tables by triggers, if the server does not replicate.

Triggers record each change in a table of ours, in the same transaction, and wake us with NOTIFY.
Transactions commit in another order than that of their numbers, or of the numbers of their changes;
so the server decides what is new: all that a snapshot sees and the last one did not.  A transaction
that changes a row waits for the commit of an earlier one that changed it, and records its change
later: ordered by their last changes, transactions give each row its correct history.
"""

from __future__ import annotations

import json
import select
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from everlog.streams.model import RowChange
from everlog.streams.postgres_tables import Noted, Snapshot, SourceTable

if TYPE_CHECKING:
    from psycopg import Connection, sql

_OPS = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "TRUNCATE": "t"}


class Triggers:
    """The changes of some tables.

    Its position is the snapshot up to which all is read, and what was read beyond it.
    """

    def __init__(self, connection: Connection[Any], tables: Sequence[SourceTable], name: str | None) -> None:
        self._connection, self._tables = connection, {table.full_name: table for table in tables}
        self._temporary = name is None
        self._name = name or "everlog"
        row = connection.execute("SELECT current_schema()").fetchone()
        assert row is not None
        self._schema = str(row[0])
        self._snapshot = ""
        self._beyond: list[int] = []
        self._woken, self._has_looked = True, False
        connection.add_notify_handler(self._wake)
        connection.execute(self._sql("LISTEN {}", self._identifier("changes", "")))

    def _wake(self, notice: object) -> None:
        self._woken = True

    # ── beginning ────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Record changes from now on."""
        with self._connection.transaction():
            self._connection.execute(
                self._sql(
                    "CREATE TABLE IF NOT EXISTS {} (number bigserial PRIMARY KEY, xid xid8 NOT NULL DEFAULT"
                    " pg_current_xact_id(), source text NOT NULL, op text NOT NULL, before jsonb, after jsonb)",
                    self._identifier("changes"),
                )
            )
            self._connection.execute(
                self._sql(
                    "CREATE TABLE IF NOT EXISTS {} (one boolean PRIMARY KEY DEFAULT true CHECK (one),"
                    " snapshot text NOT NULL)",
                    self._identifier("removed"),
                )
            )
            self._connection.execute(self._function())
            for table in self._tables.values():
                self._attach(table)

    def _function(self) -> sql.Composed:
        from psycopg import sql

        return self._sql(
            """
            CREATE OR REPLACE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
            SET search_path = pg_catalog, pg_temp AS $$
            BEGIN
              INSERT INTO {} (source, op, before, after) VALUES (TG_ARGV[0], TG_OP,
                CASE WHEN TG_OP IN ('UPDATE', 'DELETE') THEN to_jsonb(OLD) END,
                CASE WHEN TG_OP IN ('INSERT', 'UPDATE') THEN to_jsonb(NEW) END);
              PERFORM pg_notify({}, '');
              RETURN NULL;
            END $$""",
            self._identifier("note"),
            self._identifier("changes"),
            sql.Literal(f"{self._name}_changes"),
        )

    def _attach(self, table: SourceTable) -> None:
        from psycopg import sql

        for suffix, events, level in (
            ("rows", "INSERT OR UPDATE OR DELETE", "ROW"),
            ("all", "TRUNCATE", "STATEMENT"),
        ):
            trigger = sql.Identifier(f"{self._name}_{suffix}")
            self._connection.execute(self._sql("DROP TRIGGER IF EXISTS {} ON {}", trigger, table.identifier))
            self._connection.execute(
                self._sql(
                    f"CREATE TRIGGER {{}} AFTER {events} ON {{}} FOR EACH {level} EXECUTE FUNCTION {{}}({{}})",
                    trigger,
                    table.identifier,
                    self._identifier("note"),
                    sql.Literal(table.full_name),
                )
            )

    def begun(self, snapshot: str, log: int) -> dict[str, Any]:
        """The position after the first snapshot."""
        self._snapshot, self._beyond = snapshot, []
        return self._position()

    def resume(self, position: dict[str, Any]) -> bool:
        """Continue after a position; False if some changes since were not recorded."""
        if self._temporary or not self._is_complete():
            return False
        removed = self._sql("SELECT snapshot FROM {}", self._identifier("removed"))
        row = self._connection.execute(removed).fetchone()
        if row is not None and not Snapshot.read(position["snapshot"]).covers(Snapshot.read(row[0])):
            return False
        self._snapshot, self._beyond = position["snapshot"], list(position["beyond"])
        return True

    def _is_complete(self) -> bool:
        """Whether our tables and triggers exist."""
        there = self._connection.execute(
            "SELECT to_regclass(%s) IS NOT NULL AND to_regclass(%s) IS NOT NULL",
            [self._identifier(part).as_string(self._connection) for part in ("changes", "removed")],
        ).fetchone()
        if there is None or not there[0]:
            return False
        for table in self._tables.values():
            found = self._connection.execute(
                "SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass(%s) AND tgname IN (%s, %s)",
                [table.identifier.as_string(self._connection), f"{self._name}_rows", f"{self._name}_all"],
            ).fetchone()
            if found is None or found[0] != 2:
                return False
        return True

    # ── going on ─────────────────────────────────────────────────────────────────────────────

    def take(self) -> list[Noted]:
        """The transactions committed since, in an order that is correct for each row."""
        if select.select([self._connection], [], [], 0)[0]:
            self._connection.execute("SELECT 1")  # reads notifications, and so calls `_wake`
        noted: list[Noted] = []
        while self._woken and not noted:  # a notification may arrive with the answer to a query of ours
            self._woken = False
            noted = self._new()
        return noted

    @property
    def caught_up(self) -> bool:
        """Whether all changes from before the start were taken: one look finds them."""
        return self._has_looked

    def _new(self) -> list[Noted]:
        self._has_looked = True
        with self._connection.transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            now = self._connection.execute("SELECT pg_current_snapshot()::text").fetchone()
            rows = self._connection.execute(
                self._sql(
                    "SELECT xid::text::int8, source, op, before::text, after::text FROM {}"
                    " WHERE NOT pg_visible_in_snapshot(xid, %s::pg_snapshot) ORDER BY number",
                    self._identifier("changes"),
                ),
                [self._snapshot],
            ).fetchall()
        assert now is not None
        return self._transactions(str(now[0]), rows)

    def _transactions(self, snapshot: str, rows: Sequence[tuple[int, str, str, str, str]]) -> list[Noted]:
        changes: dict[int, list[RowChange]] = {}
        for xid, source, op, before, after in rows:
            if xid not in self._beyond and source in self._tables:
                of = changes.pop(xid, [])  # moved to the end: the last change counts
                values = self._values(source, before), self._values(source, after)
                changes[xid] = [*of, RowChange(source, _OPS[op], *values, number=len(of) + 1)]
        noted = []
        for count, (xid, of) in enumerate(changes.items(), start=1):
            if count == len(changes):
                self._snapshot, self._beyond = snapshot, []
            else:
                self._beyond.append(xid)
            noted.append(Noted(of, self._position(), str(xid)))
        if not changes:
            self._snapshot, self._beyond = snapshot, []
        return noted

    def _values(self, source: str, text: str | None) -> dict[str, object] | None:
        """A row, with values as PostgreSQL writes them, since JSON's numbers would round."""
        if text is None:
            return None
        return self._tables[source].renamed(json.loads(text, parse_float=str, parse_int=str))

    def _position(self) -> dict[str, Any]:
        tables = sorted(self._tables)
        return {"via": "triggers", "snapshot": self._snapshot, "beyond": list(self._beyond), "tables": tables}

    def done(self, position: dict[str, Any]) -> None:
        """Delete recorded changes up to here, since they are stored."""
        seen = "DELETE FROM {} WHERE pg_visible_in_snapshot(xid, %s::pg_snapshot)"
        noted = (
            "INSERT INTO {} (snapshot) VALUES (%s) ON CONFLICT (one) DO UPDATE SET snapshot = EXCLUDED.snapshot"
        )
        with self._connection.transaction():
            for statement, part in ((seen, "changes"), (noted, "removed")):
                self._connection.execute(self._sql(statement, self._identifier(part)), [position["snapshot"]])

    def fileno(self) -> int | None:
        return self._connection.fileno()

    def close(self) -> None:
        if self._temporary:
            remove(self._connection, self._schema, self._name)

    # ── SQL ──────────────────────────────────────────────────────────────────────────────────

    def _identifier(self, part: str, schema: str | None = None) -> sql.Identifier:
        from psycopg import sql

        name = f"{self._name}_{part}"
        return sql.Identifier(name) if schema == "" else sql.Identifier(self._schema, name)

    @staticmethod
    def _sql(text: str, *parts: sql.Composable) -> sql.Composed:
        from psycopg import sql

        return sql.SQL(text).format(*parts)


def remove(connection: Connection[Any], schema: str, name: str) -> None:
    """Remove the triggers of this name in all schemas, and their records."""
    from psycopg import sql

    with connection.transaction():
        function = sql.Identifier(schema, f"{name}_note")
        connection.execute(sql.SQL("DROP FUNCTION IF EXISTS {}() CASCADE").format(function))  # and its triggers
        for part in ("changes", "removed"):
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(schema, f"{name}_{part}")))
