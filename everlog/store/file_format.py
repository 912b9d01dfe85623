"""The tables of a database file, and the test whether a file is ours.

    about      numbers of steps, facts and state, each as JSON
    programs   the program from each step on that changed it
    log        the changes of each step: deleted and inserted base facts
    facts      the base facts after step `about.facts.step`, relation by relation, sorted
    derived    the facts of relations with rules after that step, in the same way
    state      the engine's state after that step, if reading it is faster than computing it
    positions  the positions of sources of changes at the last step

Each row has a checksum over its other columns.  The application id marks a file as ours; the format
is SQLite's user version.  A read-only connection tests whether a file is ours and complete, so that
a refused file is not touched, not even by SQLite's own recovery.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everlog.files.typed.sqlite import EVERLOG
from everlog.store.column_codec import BadRecord
from everlog.store.errors import Damaged, ForeignFile, NewerFormat, NoSuchDatabase, StoreError
from everlog.store.locking import LOOK
from everlog.store.program_text import BadProgram

FORMAT = 1
PATIENCE = 10.0  # seconds to wait for SQLite's own locks

DERIVED = """
CREATE TABLE IF NOT EXISTS derived (
    relation TEXT NOT NULL, piece INTEGER NOT NULL, number INTEGER NOT NULL,
    data BLOB NOT NULL, check_sum INTEGER NOT NULL, PRIMARY KEY (relation, piece)
) WITHOUT ROWID"""  # earlier versions made files without it
SCHEMA = f"""{DERIVED};
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL, check_sum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE programs (step INTEGER PRIMARY KEY, saved TEXT NOT NULL, check_sum INTEGER NOT NULL);
CREATE TABLE log (
    step INTEGER NOT NULL, piece INTEGER NOT NULL, pieces INTEGER NOT NULL, time INTEGER NOT NULL,
    data BLOB NOT NULL, check_sum INTEGER NOT NULL, PRIMARY KEY (step, piece)
) WITHOUT ROWID;
CREATE TABLE facts (
    relation TEXT NOT NULL, piece INTEGER NOT NULL, number INTEGER NOT NULL,
    data BLOB NOT NULL, check_sum INTEGER NOT NULL, PRIMARY KEY (relation, piece)
) WITHOUT ROWID;
CREATE TABLE state (
    unit TEXT NOT NULL, piece INTEGER NOT NULL, data BLOB NOT NULL, check_sum INTEGER NOT NULL,
    PRIMARY KEY (unit, piece)
) WITHOUT ROWID;
CREATE TABLE positions (source TEXT PRIMARY KEY, position TEXT NOT NULL, check_sum INTEGER NOT NULL) WITHOUT ROWID;
"""


def connected(path: Path, mode: str) -> sqlite3.Connection:
    """A connection in a mode of SQLite, `ro`, `rw` or `rwc`, with autocommit."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False, timeout=PATIENCE
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def for_reading(path: Path) -> sqlite3.Connection:
    """A read-only connection to a file of ours in a known format, or StoreError."""
    _look(path)
    with sqlite_errors(path):
        connection = connected(path, "mode=ro")
        try:
            try:
                _recognise(connection, path)
            except sqlite3.OperationalError:
                # SQLite may not create its other files here: then no other process writes either
                if os.path.exists(f"{path}-wal") or os.access(path.parent, os.W_OK):
                    raise
                connection.close()
                connection = connected(path, "mode=ro&immutable=1")
                _recognise(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def for_writing(path: Path) -> sqlite3.Connection:
    """A connection to a tested file; a commit is on disk when it returns."""
    if not os.access(path, os.W_OK):  # SQLite would report it only at the first step
        raise StoreError(f"{path} cannot be opened for writing: the file is read-only; {LOOK}")
    with sqlite_errors(path):
        connection = connected(path, "mode=rw")
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise StoreError(f"{path} cannot be opened for writing: its file system has no write-ahead log")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")  # a plain sync may end in the cache of the drive
            connection.execute("BEGIN IMMEDIATE")  # find a read-only disk now, not at the first step
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
        return connection


def prepare(connection: sqlite3.Connection) -> None:
    """Turn an empty file into a database of ours."""
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute(f"PRAGMA application_id = {EVERLOG}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    for statement in SCHEMA.split(";"):
        connection.execute(statement)


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite and of damaged records to StoreErrors."""
    try:
        yield
    except (sqlite3.Error, BadRecord, BadProgram) as problem:
        name = getattr(problem, "sqlite_errorname", "")
        if name == "SQLITE_NOTADB":
            raise ForeignFile(
                f"{path} is not an everlog database: it is not an SQLite file, or its beginning is damaged"
            ) from problem
        if not is_transient(problem):
            raise Damaged(f"{path} is damaged: {problem}; it is not changed") from problem
        raise StoreError(f"{path}: {words_of(problem)}") from problem


def _look(path: Path) -> None:
    """Refuse what SQLite would report badly, without opening it (see `locking`)."""
    if not path.exists():
        raise NoSuchDatabase(f"there is no database {path}")
    if not path.is_file():
        raise ForeignFile(f"{path} is not an everlog database: it is not a regular file")
    if not os.access(path, os.R_OK):
        raise StoreError(f"{path} cannot be read: permission denied")
    if not path.stat().st_size:
        raise ForeignFile(f"{path} is not an everlog database: it is empty; remove it to create one in its place")


def _recognise(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != EVERLOG:
        raise ForeignFile(f"{path} is not an everlog database: it is an SQLite database of another program")
    if version > FORMAT:
        raise NewerFormat(
            f"{path} has format {version}, but this everlog knows formats up to {FORMAT}: use a newer everlog"
        )
    if version < FORMAT:
        raise Damaged(f"{path} is damaged: there is no format {version}; it is not changed")


def is_transient(problem: Exception) -> bool:
    """Whether an error comes from the machine, rather than from the file's content."""
    name = getattr(problem, "sqlite_errorname", "")
    return name != "SQLITE_IOERR_SHORT_READ" and any(map(name.startswith, _WORDS))


def words_of(problem: Exception) -> str:
    """The meaning of an error, with SQLite's message."""
    name = getattr(problem, "sqlite_errorname", "")
    found = [words for start, words in _WORDS.items() if name.startswith(start)]
    return f"{found[0]} ({problem})" if found else str(problem)


_WORDS = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY": "the file is read-only",
    "SQLITE_IOERR": "the disk reports an error",
    "SQLITE_BUSY": "another program holds the file",
    "SQLITE_CANTOPEN": "the file, or one that SQLite keeps beside it, cannot be opened",
    "SQLITE_PERM": "permission denied",
    "SQLITE_NOMEM": "out of memory",
}
