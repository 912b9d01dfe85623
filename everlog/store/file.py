"""A database file while it is open.

Steps are transactions of SQLite: committed, which means on disk, or not there.  If one fails,
whatever it left in the write-ahead log is of no account, since the next transaction writes over it.
But a machine that stops in between would find a whole transaction there if only the sync had
failed; so after a failure a small transaction is tried at once, and again before the file is
closed.

A file begins under another name and gets its own when it is complete: nobody ever sees half of one.
If the name means another file by the time of a step (`place`), that step is refused, and so are all
others.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from typing import Any
from uuid import uuid4

from everlog._version import __version__
from everlog.core.engine.engine import Net
from everlog.store import checkpoint, log
from everlog.store.checkpoint import Given
from everlog.store.copying import unfinished_file
from everlog.store.errors import FileMoved, NotWritten, ReadOnly, StoreError
from everlog.store.file_format import for_reading, for_writing, is_passing, prepare, told_of, words_of
from everlog.store.file_guard import Place
from everlog.store.locking import WriterLock

HISTORY = 1000  # steps that a checkpoint keeps, if nothing else is said


class DatabaseFile:
    """An open file.  `step` is the last step, `oldest` the first state that history leads back to.

    Invariant: for the writer, `step` is the last step that was committed.
    """

    def __init__(self, path: Path, lock: WriterLock | None) -> None:
        """Open a file to look at; StoreError, and it is as it was."""
        self.path, self._lock = path, lock
        self._process = os.getpid()
        self._writes = self._in_doubt = self._closed = self._moved = False
        self._place = Place(path)  # before it is opened: what is replaced meanwhile is noticed
        self._connection = for_reading(path)
        try:
            self.look()
            self._place.require("nothing was done")
        except BaseException:
            self._connection.close()
            raise

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One state of the file, whoever writes to it meanwhile."""
        self._check()
        with told_of(self.path):
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")

    def look(self) -> None:
        """Find out what the last step is."""
        with self.reading() as connection:
            self.find_steps(connection)

    def find_oldest(self, connection: sqlite3.Connection) -> None:
        about = checkpoint.read_about(connection, "steps")
        self.oldest, self.history = int(about["oldest"]), about["history"]

    def find_steps(self, connection: sqlite3.Connection) -> None:
        self.find_oldest(connection)
        self.given = checkpoint.read_about(connection, "given")  # the digest of the program that was given last
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
        """From looking to writing; the file has been read, and is whole."""
        assert self._lock is not None, "readers do not write"
        connection = for_writing(self.path)
        try:
            self._place.require("nothing was done")
        except BaseException:
            connection.close()
            raise
        self._connection.close()
        self._connection, self._writes = connection, True
        self._place.watch_log()

    def copy_to(self, path: Path) -> None:
        """A copy of all that was committed, history too; StoreError, and there is none."""
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
        """Write a step; NotWritten, and it is as if it had not been tried."""
        step = self.step + 1
        with self._writing("the step is undone") as connection:
            log.append(connection, step, int(time() * 1000), net, program)
            if positions:
                log.write_positions(connection, positions)
            if digest is not None:
                checkpoint.write_about(connection, "given", digest)
        self.step, self.given = step, self.given if digest is None else digest

    def write_positions(self, positions: Mapping[str, str]) -> None:
        """Write how far sources have been read, when nothing else changes."""
        with self._writing("the positions are as before") as connection:
            log.write_positions(connection, positions)

    def checkpoint(
        self, given: Given, state: Any, units: Iterable[tuple[str, bytes]], history: int | None
    ) -> None:
        """Write the facts, and what the engine keeps, at the present step, and drop steps of long
        ago.
        """
        oldest = self.oldest if history is None else max(self.oldest, self.step - history)
        with self._writing("the file is as before") as connection:
            checkpoint.write_facts(connection, self.step, given)
            checkpoint.write_state(connection, state, units)
            log.forget(connection, oldest)
            checkpoint.write_about(connection, "steps", {"oldest": oldest, "history": self.history})
        self.oldest, self.base = oldest, self.step
        with suppress(sqlite3.Error):  # what is free stays free, if not now
            # as a script: `execute` would take the first page and stop
            self._connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);")

    def keep(self, history: int | None) -> None:
        """How many steps checkpoints keep from now on; None is all."""
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
                words = words_of(problem) if is_passing(problem) or str(problem) else "out of memory"
                raise NotWritten(f"{self.path} cannot be written: {words}; {consequence}") from problem
            raise
        self._in_doubt = False

    def _require_place(self, consequence: str) -> None:
        try:
            self._place.require(consequence)
        except FileMoved:
            self._moved = True
            raise

    def require_place(self) -> None:
        """FileMoved, if the file under this name is another one by now."""
        self._place.require("it cannot be followed")

    def _give_up(self) -> None:
        """Leave nothing of a transaction that failed: see above."""
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

    def _check(self) -> None:
        if self._closed:
            raise ReadOnly(f"the database {self.path} is closed")
        if os.getpid() != self._process:
            raise StoreError(f"{self.path} was opened by process {self._process}: open it anew in this one")

    def _check_writing(self) -> None:
        self._check()
        if not self._writes:
            raise ReadOnly(f"{self.path} was opened for reading only")
        if self._moved:
            raise FileMoved(
                f"{self.path} was renamed, replaced or removed while it was open: nothing more is written;"
                " close the database and open it anew"
            )

    def close(self) -> None:
        if os.getpid() == self._process and not self._closed:
            self._closed = True
            if self._writes and self._in_doubt:
                self._give_up()
            self._connection.close()
            if self._lock is not None:
                self._lock.release()


def created(path: Path, program: str, given: Given, history: int | None, origin: str) -> None:
    """Make a database file; StoreError, and there is none."""
    with unfinished_file(path) as connection:
        prepare(connection)
        connection.execute("BEGIN IMMEDIATE")
        checkpoint.write_about(connection, "file", {"made_by": f"everlog {__version__}", "id": uuid4().hex})
        checkpoint.write_about(connection, "steps", {"oldest": 0, "history": history})
        checkpoint.write_about(connection, "given", origin)
        checkpoint.write_facts(connection, 0, given)
        checkpoint.write_state(connection, None, ())
        log.write_program(connection, 0, program)
        connection.execute("COMMIT")
