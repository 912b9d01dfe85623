"""Copies of a database in another file, which appears only when it is complete."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from everlog.store.errors import StoreError
from everlog.store.file_format import connected, sqlite_errors
from everlog.store.file_guard import make_private

SUFFIXES = (".db", ".sqlite", ".everlog")


def is_file_name(path: Path | str) -> bool:
    """Whether a name is that of a database file, rather than of a folder of facts.

    >>> is_file_name("roads.db"), is_file_name("backup")
    (True, False)
    """
    return Path(path).suffix in SUFFIXES


@contextmanager
def unfinished_file(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a temporary file, renamed at the end; removed after an error.

    Only its owner can read it; SQLite gives its other files the same mode.
    """
    if os.path.lexists(path):
        raise StoreError(f"{path} already exists, and is not changed")
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        make_private(unfinished)
    except OSError as problem:
        raise StoreError(f"{path} cannot be created: {problem.strerror or problem}") from None
    try:
        with sqlite_errors(path):
            connection = connected(unfinished, "mode=rw")
            try:
                yield connection
            finally:
                connection.close()
        _settle(unfinished, path)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                os.unlink(f"{unfinished}{suffix}")


def _settle(unfinished: Path, path: Path) -> None:
    """Rename a complete file, on disk, unless its name exists by now."""
    try:
        _synced(unfinished, os.O_RDWR)
        try:
            os.link(unfinished, path)
        except FileExistsError:
            raise StoreError(f"{path} already exists, and is not changed") from None
        except OSError:  # a file system without links
            if os.path.lexists(path):
                raise StoreError(f"{path} already exists, and is not changed") from None
            os.rename(unfinished, path)
        with suppress(OSError):  # not every system can open folders
            _synced(path.parent, os.O_RDONLY)
    except OSError as problem:
        raise StoreError(f"{path} cannot be created: {problem.strerror or problem}") from None


def _synced(path: Path, way: int) -> None:
    handle = os.open(path, way)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
