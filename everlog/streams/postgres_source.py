"""Tables of PostgreSQL as a live source: first all rows, then every transaction.

It uses logical replication if the server has it, else triggers; `via` selects one.  Without a
stored position (or if the server has dropped changes since), it begins with a snapshot, whose
difference from the database becomes one step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from everlog.api.database import Database
from everlog.files.rejects import Refuse, abort
from everlog.files.text_values import FactsError
from everlog.files.typed.postgres import redacted, server_errors
from everlog.store.durable_database import DurableDatabase
from everlog.streams.model import Transaction
from everlog.streams.naming import Naming
from everlog.streams.postgres_tables import Noted, connect, find_tables, lock, read_tables
from everlog.streams.replication import Replication, can_replicate, forget
from everlog.streams.triggers import Triggers, remove

if TYPE_CHECKING:
    from psycopg import Connection

_VIAS = ("auto", "replication", "triggers")
_PREFIX = "everlog"
_NAME = re.compile(r"[a-z0-9_]{1,40}")


def slot_name(name: str | None) -> str:
    """The name of a slot or of our triggers on the server; always ours by its prefix.

    >>> slot_name(None), slot_name("mine"), slot_name("everlog_2")
    ('everlog', 'everlog_mine', 'everlog_2')
    """
    if name is not None and not _NAME.fullmatch(name):
        raise FactsError(f"{name!r} is not a slot name: use lowercase letters, digits and _")
    if name is None or name == _PREFIX or name.startswith(f"{_PREFIX}_"):
        return name or _PREFIX
    return f"{_PREFIX}_{name}"


class PostgresSource:
    """The tables of a database that feed relations."""

    def __init__(
        self,
        url: str,
        naming: Naming,
        refuse: Refuse,
        *,
        live: bool = False,
        slot: str | None = None,
        via: str = "auto",
        tell: Callable[[str], object] | None = None,
    ) -> None:
        if via not in _VIAS:
            raise FactsError(f"via={via!r}: use {', '.join(_VIAS)}")
        self.name = redacted(url)
        self._url, self._naming, self._refuse, self._tell = url, naming, refuse, tell
        self._live, self._slot, self._via = live, slot, via
        self._connection: Connection[Any] | None = None
        self._feed: Replication | Triggers | None = None
        self._waiting: list[Transaction] = []

    def open(self, database: Database) -> None:
        with server_errors(self._url):
            self._connection = connect(self._url)
            lasting = self._slot is not None or isinstance(database, DurableDatabase)
            slot = slot_name(self._slot) if lasting else None
            derived = {rule.head.relation for rule in database.program.rules}
            tables = find_tables(self._connection, self._naming, sorted(derived), self._refuse is abort)
            chosen = self._chosen(self._connection)
            if slot is not None or chosen is Triggers:
                lock(
                    self._connection, f"follows as `{slot or slot_name(None)}`", "choose another name with --slot"
                )
            self._feed = chosen(self._connection, tables, slot)
            stored = database.positions.get(self.name)
            position = None if stored is None else json.loads(stored)
            if position is not None and self._goes_on(position, [table.full_name for table in tables]):
                return
            self._feed.begin()
            rows, snapshot, log = read_tables(self._connection, tables, self._refuse)
            first = self._feed.begun(snapshot, log)
            self._waiting = [Transaction((), json.dumps(first), f"{self.name}: snapshot", whole=rows)]

    def _goes_on(self, position: dict[str, Any], tables: Sequence[str]) -> bool:
        assert self._feed is not None
        via = "replication" if isinstance(self._feed, Replication) else "triggers"
        if position["via"] == via and position["tables"] == sorted(tables) and self._feed.resume(position):
            return True
        if self._tell is not None:
            self._tell(f"{self.name}: the server has dropped changes since the last run: all tables are compared")
        return False

    def _chosen(self, connection: Connection[Any]) -> type[Replication] | type[Triggers]:
        if self._via == "triggers":
            return Triggers
        why_not = can_replicate(connection)
        if why_not is None:
            return Replication
        if self._via == "replication":
            raise FactsError(f"{self.name}: {why_not}")
        if self._tell is not None:
            self._tell(f"{self.name}: using triggers, since {why_not}")
        return Triggers

    def take(self) -> Sequence[Transaction] | None:
        assert self._feed is not None
        if self._waiting:
            taken, self._waiting = self._waiting, []
            return taken
        if self._live or not self._feed.caught_up:
            with server_errors(self._url):
                taken = [self._transaction(noted) for noted in self._feed.take()]
            if taken or self._live or not self._feed.caught_up:
                return taken
        return None

    def _transaction(self, noted: Noted) -> Transaction:
        place = f"{self.name}: transaction {noted.id}"
        return Transaction(noted.changes, json.dumps(noted.position), place, "change")

    def fileno(self) -> int | None:
        return None if self._feed is None else self._feed.fileno()

    def has_begun(self) -> bool:
        return not self._waiting

    def is_before(self, position: str | None, other: str) -> bool:
        return False  # old changes do not come again

    def done(self, position: str) -> None:
        assert self._feed is not None
        with server_errors(self._url):
            self._feed.done(json.loads(position))

    def close(self) -> None:
        if self._connection is None or self._connection.closed:
            return
        try:
            with server_errors(self._url):
                if self._feed is not None:
                    self._feed.close()
        except FactsError:
            pass  # the server has gone, and temporary objects with it
        finally:
            self._connection.close()


def forget_source(url: str, slot: str | None) -> None:
    """Remove the slot, publications, triggers and notes that following has left."""
    with server_errors(url), connect(url) as connection:
        row = connection.execute("SELECT current_schema()").fetchone()
        assert row is not None
        forget(connection, slot_name(slot))
        remove(connection, str(row[0]), slot_name(slot))
