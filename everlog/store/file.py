"""A database file while it is open.

A step is a transaction of SQLite: committed, and so on disk, or absent.  After a failure the
write-ahead log may hold remains, which the next transaction overwrites.  But if only the sync has
failed, recovery after a crash would find a complete transaction there; so after a failure a small
transaction is tried at once, and again before the file is closed.

A new file has a temporary name until it is complete.  If the name means another file at the time of
a step (`file_guard`), that step is refused, and so are all others.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from uuid import uuid4

from everlog._version import __version__
from everlog.core.engine.net_change import Net
from everlog.store import checkpoint, log
from everlog.store.checkpoint import SortedFacts, State
from everlog.store.copying import unfinished_file
from everlog.store.errors import FileMoved, NotWritten, ReadOnly, StoreError
from everlog.store.file_format import (
    PATIENCE,
    for_reading,
    for_writing,
    is_transient,
    prepare,
    sqlite_errors,
    words_of,
)
from everlog.store.file_guard import OpenedFiles
from everlog.store.locking import WriterLock

HISTORY = 1000  # steps that a checkpoint keeps by default


class DatabaseFile:
    """An open file; `step` is the last step, `oldest` the first one of the history.

    Invariant: for the writer, `step` is the last step that was committed.
    """

    def __init__(self, path: Path, lock: WriterLock | None) -> None:
        """Open a file for reading; after StoreError it is unchanged."""
        self.path, self._lock = path, lock
        self._process = os.getpid()
        self._writes = self._in_doubt = self._closed = self._moved = False
        self._files = OpenedFiles(path)  # first: a replacement during the opening is noticed
        self._connection = for_reading(path)
        try:
            self.look()
            self._files.require("nothing was done")
        except BaseException:
            self._connection.close()
            raise

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the file, whatever the writer does."""
        self.check()
        with sqlite_errors(self.path):
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")

    def look(self) -> None:
        """Read the number of the last step."""
        with self.reading() as connection:
            self.find_steps(connection)

    def find_oldest(self, connection: sqlite3.Connection) -> None:
        about = checkpoint.read_about(connection, "steps")
        self.oldest, self.history = int(about["oldest"]), about["history"]

    def find_steps(self, connection: sqlite3.Connection) -> None:
        self.find_oldest(connection)
        self.digest = checkpoint.read_about(connection, "given")  # of the last program passed to `open`
        self.base = int(checkpoint.read_about(connection, "facts")["step"])
        self.step = log.last_step(connection, self.base)

    def program_at(self, step: int) -> tuple[int, str]:
        with self.reading() as connection:
            return log.program_at(connection, step)

    def positions(self) -> dict[str, str]:
        with self.reading() as connection:
            return log.read_positions(connection)

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def begin_writing(self) -> None:
        """Switch from reading to writing; the file was read completely before."""
        assert self._lock is not None, "readers do not write"
        connection = for_writing(self.path)
        try:
            self._files.require("nothing was done")
        except BaseException:
            connection.close()
            raise
        self._connection.close()
        self._connection, self._writes = connection, True
        self._files.watch_log()

    def copy_to(self, path: Path) -> None:
        """Copy all committed data with its history; after StoreError there is no copy."""
        with unfinished_file(path) as connection, self.reading() as source:
            source.backup(connection)

    def write(
        self,
        net: Net,
        *,
        program: str | None = None,
        positions: Mapping[str, str] | None = None,
        digest: str | None = None,
    ) -> None:
        """Write a step; after NotWritten the file is as before."""
        step = self.step + 1
        with self._writing("the step is undone") as connection:
            log.append(connection, step, int(time() * 1000), net, program)
            if positions:
                log.write_positions(connection, positions)
            if digest is not None:
                checkpoint.write_about(connection, "given", digest)
        self.step, self.digest = step, self.digest if digest is None else digest

    def write_positions(self, positions: Mapping[str, str]) -> None:
        """Write the positions of sources, without a step."""
        with self._writing("the positions are as before") as connection:
            log.write_positions(connection, positions)

    def checkpoint(self, facts: SortedFacts, state: State | None, history: int | None) -> None:
        """Write the current facts and the engine's state, and drop old steps."""
        oldest = self.oldest if history is None else max(self.oldest, self.step - history)
        with self._writing("the file is as before") as connection:
            checkpoint.write(connection, self.step, facts, state)
            log.forget(connection, oldest)
            checkpoint.write_about(connection, "steps", {"oldest": oldest, "history": self.history})
        self.oldest, self.base = oldest, self.step
        with suppress(sqlite3.Error):  # free pages stay in the file until the next time
            # as a script: `execute` would free one page and stop
            # and without waiting for readers
            self._connection.executescript(
                "PRAGMA busy_timeout = 0; PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);"
                f"PRAGMA busy_timeout = {int(1000 * PATIENCE)};"
            )

    def keep(self, history: int | None) -> None:
        """Set the number of steps that checkpoints keep; None means all."""
        with self._writing("the file is as before") as connection:
            checkpoint.write_about(connection, "steps", {"oldest": self.oldest, "history": history})
        self.history = history

    @contextmanager
    def _writing(self, consequence: str) -> Iterator[sqlite3.Connection]:
        self._check_writing()
        connection, begun = self._connection, False
        try:
            self._require_place(consequence)
            connection.execute("BEGIN IMMEDIATE")
            begun = True
            yield connection
            self._require_place(consequence)
            connection.execute("COMMIT")
        except BaseException as problem:
            if begun:
                self._in_doubt = True
                self._give_up()
            if isinstance(problem, sqlite3.Error | MemoryError | OverflowError):
                words = words_of(problem) if is_transient(problem) or str(problem) else "out of memory"
                raise NotWritten(f"{self.path} cannot be written: {words}; {consequence}") from problem
            raise
        self._in_doubt = False

    def _require_place(self, consequence: str) -> None:
        try:
            self._files.require(consequence)
        except FileMoved:
            self._moved = True
            raise

    def require_place(self) -> None:
        """Raise FileMoved if this name now means another file."""
        self._files.require("it cannot be followed")

    def _give_up(self) -> None:
        """Erase the remains of a failed transaction: see above."""
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        if self._moved:
            return
        with suppress(sqlite3.Error):
            self._connection.execute("BEGIN IMMEDIATE")
            checkpoint.write_about(self._connection, "failure", {"after": self.step, "mark": uuid4().hex})
            self._connection.execute("COMMIT")
            self._in_doubt = False
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def check(self) -> None:
        """Raise if the file is closed, or open in another process."""
        if self._closed:
            raise ReadOnly(f"the database {self.path} is closed")
        if os.getpid() != self._process:
            raise StoreError(f"{self.path} was opened by process {self._process}: open it again in this one")

    def _check_writing(self) -> None:
        self.check()
        if not self._writes:
            raise ReadOnly(f"{self.path} was opened for reading only")
        if self._moved:
            raise FileMoved(
                f"{self.path} was renamed, replaced or removed while it was open: no more steps are written;"
                " close the database and open it again"
            )

    def close(self) -> None:
        if os.getpid() == self._process and not self._closed:
            self._closed = True
            if self._writes and self._in_doubt:
                self._give_up()
            self._connection.close()
            if self._lock is not None:
                self._lock.release()


def created(path: Path, program: str, facts: SortedFacts, history: int | None, origin: str) -> None:
    """Create a database file; after StoreError there is none."""
    with unfinished_file(path) as connection:
        prepare(connection)
        connection.execute("BEGIN IMMEDIATE")
        checkpoint.write_about(connection, "file", {"made_by": f"everlog {__version__}", "id": uuid4().hex})
        checkpoint.write_about(connection, "steps", {"oldest": 0, "history": history})
        checkpoint.write_about(connection, "given", origin)
        checkpoint.write(connection, 0, facts, None)
        log.write_program(connection, 0, program)
        connection.execute("COMMIT")
