"""The tables of a database file, and which files are ours.

    about      what there is to know of the whole: steps, facts and state, each as JSON
    programs   the program from each step on at which it changed
    log        what each step changed: the given facts that went and came
    facts      the given facts after step `about.facts.step`, relation by relation
    state      what the engine kept after that step, if that comes back faster than by evaluation
    positions  how far sources of changes had been read at the last step

Each row has a checksum over its other columns.  A file is ours by its application id; its format is
SQLite's user version.  Whether a file is ours, and whole, is found out by a connection that can
only read: what is refused is not touched, and not even the recovery that SQLite would do on the way
happens to it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everlog.files.sqlite import EVERLOG
from everlog.store.column_codec import BadRecord
from everlog.store.errors import Damaged, ForeignFile, NewerFormat, NoSuchDatabase, StoreError
from everlog.store.locking import LOOK
from everlog.store.program_text import BadProgram

FORMAT = 1
PATIENCE = 10.0  # seconds to wait for whoever else holds SQLite's own locks

SCHEMA = """
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
    """A connection in one of SQLite's modes: `ro`, `rw` or `rwc`; statements are transactions of
    their own.
    """
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False, timeout=PATIENCE
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def for_reading(path: Path) -> sqlite3.Connection:
    """A connection to a file that is ours and of a format that we know; StoreError, and it is
    untouched.
    """
    _look(path)
    with told_of(path):
        connection = connected(path, "mode=ro")
        try:
            try:
                _recognise(connection, path)
            except sqlite3.OperationalError:
                # SQLite wants to make files beside it, and may not: nobody writes there, then
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
    """A connection to a file that was recognised before: whatever is committed is on disk."""
    if not os.access(path, os.W_OK):  # which SQLite would tell at the first step
        raise StoreError(f"{path} cannot be opened for writing: the file is read-only; {LOOK}")
    with told_of(path):
        connection = connected(path, "mode=rw")
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise StoreError(f"{path} cannot be opened for writing: its file system allows no write-ahead log")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")  # where a plain sync ends in the cache of the drive
            connection.execute("BEGIN IMMEDIATE")  # a disk that is read-only is told now, not at the first step
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
        return connection


def prepare(connection: sqlite3.Connection) -> None:
    """Make an empty file ours."""
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute(f"PRAGMA application_id = {EVERLOG}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    for statement in SCHEMA.split(";"):
        connection.execute(statement)


@contextmanager
def told_of(path: Path) -> Iterator[None]:
    """Errors of SQLite, and of what is read, as ours."""
    try:
        yield
    except (sqlite3.Error, BadRecord, BadProgram) as problem:
        name = getattr(problem, "sqlite_errorname", "")
        if name == "SQLITE_NOTADB":
            raise ForeignFile(
                f"{path} is no everlog database: it is no SQLite file at all, or its beginning is damaged"
            ) from problem
        if not is_passing(problem):
            raise Damaged(f"{path} is damaged: {problem}; it is left as it is") from problem
        raise StoreError(f"{path}: {words_of(problem)}") from problem


def _look(path: Path) -> None:
    """What SQLite would have no good words for.  (Without opening the file: see
    everlog.store.locking.)
    """
    if not path.exists():
        raise NoSuchDatabase(f"there is no database {path}")
    if not path.is_file():
        raise ForeignFile(f"{path} is no everlog database: it is no file")
    if not os.access(path, os.R_OK):
        raise StoreError(f"{path} cannot be read: permission denied")
    if not path.stat().st_size:
        raise ForeignFile(f"{path} is no everlog database: it is empty; remove it to have one made in its place")


def _recognise(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != EVERLOG:
        raise ForeignFile(f"{path} is no everlog database: it is an SQLite database of something else")
    if version > FORMAT:
        raise NewerFormat(
            f"{path} has format {version}, and this everlog knows formats up to {FORMAT}: use a newer everlog"
        )
    if version < FORMAT:
        raise Damaged(f"{path} is damaged: there is no format {version}; it is left as it is")


def is_passing(problem: Exception) -> bool:
    """Whether an error is of the machine at this moment, rather than of what the file holds."""
    name = getattr(problem, "sqlite_errorname", "")
    return name != "SQLITE_IOERR_SHORT_READ" and any(map(name.startswith, _WORDS))


def words_of(problem: Exception) -> str:
    """What an error means, with SQLite's own words."""
    name = getattr(problem, "sqlite_errorname", "")
    found = [words for start, words in _WORDS.items() if name.startswith(start)]
    return f"{found[0]} ({problem})" if found else str(problem)


_WORDS = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY": "the file is read-only",
    "SQLITE_IOERR": "the disk does not answer as it should",
    "SQLITE_BUSY": "another program holds the file",
    "SQLITE_CANTOPEN": "the file, or what SQLite keeps beside it, cannot be opened",
    "SQLITE_PERM": "permission denied",
    "SQLITE_NOMEM": "out of memory",
}
