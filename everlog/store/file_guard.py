"""Files of an open database: made for their owner alone, and watched for being moved away.

A name can come to mean another file while the first one is open: somebody renames, replaces or
removes it.  What is written then goes to a file that nobody will find under that name.  So the
device and the number of each file are remembered when it is opened, and compared before anything is
written.

Nothing is done about a file that was moved: somebody else may have opened it by now, and would not
see our locks.  SQLite, too, leaves it as it is when the connection is closed.
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
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)  # which Windows has not


def make_private(path: Path) -> None:
    """Make an empty file that its owner alone can read; FileExistsError if there is one, or a link."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINKS, PRIVATE))


def identity(path: Path | str) -> Identity | None:
    """The device and the number of a file; None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def require_one_name(path: Path) -> None:
    """StoreError if a file has another name, by a hard link.

    Locks and the log of steps go by the name: who writes under the other one would see neither, and
    steps of both would be lost.  A name that a crash has left while the file was being made is
    removed.
    """
    with suppress(OSError):
        if _is_shared(path):
            for other in path.parent.glob(f".{escape(path.name)}.*.tmp"):
                if identity(other) == identity(path):
                    os.unlink(other)
        if _is_shared(path):
            raise StoreError(
                f"{path} cannot be opened for writing: the file has another name, too (a hard link), under which"
                " somebody could write to it unseen; remove that name, or write to a copy"
            )


def _is_shared(path: Path) -> bool:
    found = os.lstat(path)
    return S_ISREG(found.st_mode) and found.st_nlink > 1


class Place:
    """The files of a database as they were when it was opened: the database, and the log of whoever
    writes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = f"{path}-wal"
        self._files: dict[str, Identity | None] = {str(path): identity(path)}

    def watch_log(self) -> None:
        """The write-ahead log is there now."""
        self._files[self._log] = identity(self._log)

    def require(self, consequence: str) -> None:
        """FileMoved, unless all files are those that were opened.  Cost: a microsecond for each."""
        for name, known in self._files.items():
            if known != identity(name):
                raise FileMoved(
                    f"{name} is no longer the file that was opened: it was renamed, replaced or removed;"
                    f" {consequence}. Close the database and open it anew; where it was renamed, {self._log},"
                    " which may have its last steps, must get the new name, too"
                )
