"""Files of an open database: private, and checked for being moved away.

While a file is open, someone may rename, replace or remove it; then its name means another file,
and writes would go to one that is not found under that name.  So the device and the inode of each
file are stored when it is opened, and compared before anything is written.

A moved file is left alone: another process may have opened it, and would not see our locks.  SQLite
also leaves it alone when the connection is closed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from glob import escape
from pathlib import Path
from stat import S_ISREG
from typing import TypeAlias

from everlog.store.errors import FileMoved, StoreError

Identity: TypeAlias = tuple[int, int]

PRIVATE = 0o600
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # Windows does not have it


def make_private(path: Path) -> None:
    """Create an empty file that only its owner can read; FileExistsError if it exists."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINKS, PRIVATE))


def identity(path: Path | str) -> Identity | None:
    """The device and the inode of a file; None if it does not exist."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def require_one_name(path: Path) -> None:
    """Raise StoreError if a file has another name (a hard link).

    Locks and the log of steps belong to the name: a writer under the other name would see neither,
    and steps of both would be lost.  A name that a crash left behind while the file was created is
    removed.
    """
    with suppress(OSError):
        if _is_shared(path):
            for other in path.parent.glob(f".{escape(path.name)}.*.tmp"):
                if identity(other) == identity(path):
                    os.unlink(other)
        if _is_shared(path):
            raise StoreError(
                f"{path} cannot be opened for writing: the file has another name (a hard link), under which"
                " another process could write to it unnoticed; remove that name, or write to a copy"
            )


def _is_shared(path: Path) -> bool:
    found = os.lstat(path)
    return S_ISREG(found.st_mode) and found.st_nlink > 1


class OpenedFiles:
    """The identity of the database and its log, as they were opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = f"{path}-wal"
        self._files: dict[str, Identity | None] = {str(path): identity(path)}

    def watch_log(self) -> None:
        """Add the write-ahead log, which exists now."""
        self._files[self._log] = identity(self._log)

    def require(self, consequence: str) -> None:
        """Raise FileMoved if a file has changed.  Cost: a microsecond for each."""
        for name, known in self._files.items():
            if known != identity(name):
                raise FileMoved(
                    f"{name} is no longer the file that was opened: it was renamed, replaced or removed;"
                    f" {consequence}. Close the database and open it again; if it was renamed, {self._log},"
                    " which may hold its last steps, must get the new name too"
                )
