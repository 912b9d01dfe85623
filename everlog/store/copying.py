"""Copies of a database in another file, complete or not there at all."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from everlog.store.errors import StoreError
from everlog.store.file_format import connected, told_of
from everlog.store.file_guard import make_private

SUFFIXES = (".db", ".sqlite", ".everlog")


def is_file_name(path: Path | str) -> bool:
    """Whether something is saved as a database file, rather than as a folder of facts.

    >>> is_file_name("roads.db"), is_file_name("backup")
    (True, False)
    """
    return Path(path).suffix in SUFFIXES


@contextmanager
def unfinished_file(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a file that gets its name when the block ends well; otherwise nothing is left
    of it.

    Its owner alone can read it; what SQLite makes beside a file has the mode of that file.
    """
    if os.path.lexists(path):
        raise StoreError(f"{path} is there already, and is left as it is")
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        make_private(unfinished)
    except OSError as problem:
        raise StoreError(f"{path} cannot be made: {problem.strerror or problem}") from None
    try:
        with told_of(path):
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
    """Give a complete file its name, on disk, unless there is one of that name by now."""
    try:
        _synced(unfinished, os.O_RDWR)
        try:
            os.link(unfinished, path)
        except FileExistsError:
            raise StoreError(f"{path} is there already, and is left as it is") from None
        except OSError:  # a file system without links
            if os.path.lexists(path):
                raise StoreError(f"{path} is there already, and is left as it is") from None
            os.rename(unfinished, path)
        with suppress(OSError):  # folders cannot be opened everywhere
            _synced(path.parent, os.O_RDONLY)
    except OSError as problem:
        raise StoreError(f"{path} cannot be made: {problem.strerror or problem}") from None


def _synced(path: Path, way: int) -> None:
    handle = os.open(path, way)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
