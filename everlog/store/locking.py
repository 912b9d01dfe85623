"""One writer at a time: a system lock on a small file beside the database.

The system releases the lock when its holder ends, however it ends, so a killed process blocks no
other.  The lock file names the holder, for the message.  It is removed with the lock; one that a
crash has left behind means nothing.

Removing a lock file is safe: after locking, a process checks that the file is still the one under
that name, since a lock on a removed file is worthless.

The lock is not on the database file: SQLite has its own locks there, which POSIX would release as
soon as we closed any handle on that file.

Another user of the folder could put something under the name of the lock.  Links are not followed,
and only a regular file with one name is written to: naming the holder must destroy no other file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from stat import S_ISREG
from weakref import WeakSet

from everlog.store.errors import AlreadyOpen, StoreError
from everlog.store.file_guard import NO_LINKS, PRIVATE

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOOK = "open it with read_only=True (`.open FILE read-only`, `--read-only`) to read it"
_FAR = 1 << 30  # the byte that Windows locks: other processes cannot read locked bytes


class WriterLock:
    """The permission to write to a database, until `release` or process end."""

    def __init__(self, database: Path) -> None:
        """Take the lock; `AlreadyOpen` names its holder."""
        self.path = database.with_name(database.name + ".lock")
        self._handle = -1
        try:
            while self._handle < 0:
                self._try(database)
        except OSError as problem:
            is_link = os.path.islink(self.path)
            reason = "it is a link, which is not followed; remove it" if is_link else problem.strerror or problem
            raise StoreError(
                f"{database} cannot be opened for writing: its lock {self.path} cannot be taken: {reason}"
            ) from None
        _held.add(self)

    def _try(self, database: Path) -> None:
        """Take the lock, unless the file is being removed right now."""
        handle = self._opened(database)
        try:
            found = os.fstat(handle)
            if not S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise OSError("it is not a regular file with one name; remove it")
            if not _locked(handle):
                raise AlreadyOpen(
                    f"{database} is open for writing: {_holder(handle)}; {LOOK}, or end that process"
                )
            if self._is_ours(handle):
                _write_holder(handle)
                self._handle = handle
        finally:
            if self._handle != handle:
                os.close(handle)

    def _opened(self, database: Path) -> int:
        """Open the lock file; a new one gets the database's mode, or is private."""
        way = os.O_RDWR | NO_LINKS | getattr(os, "O_NONBLOCK", 0)
        for _ in range(100):  # other processes may create and remove it meanwhile
            with suppress(FileExistsError):
                handle = os.open(self.path, way | os.O_CREAT | os.O_EXCL, PRIVATE)
                with suppress(FileNotFoundError):  # the database does not exist yet
                    if hasattr(os, "fchmod"):
                        os.fchmod(handle, os.stat(database).st_mode & 0o666)
                return handle
            with suppress(FileNotFoundError):
                return os.open(self.path, way)
        raise OSError("other processes keep creating and removing it")

    def _is_ours(self, handle: int) -> bool:
        """Whether the name still means the open file."""
        try:
            return os.path.samestat(os.fstat(handle), os.lstat(self.path))
        except FileNotFoundError:
            return False

    def forget(self) -> None:
        """Drop the lock in a forked process, since it belongs to the parent."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def release(self) -> None:
        if self._handle >= 0:
            with suppress(OSError):  # Windows cannot remove an open file
                if self._is_ours(self._handle):
                    os.unlink(self.path)
            self.forget()

    def __del__(self) -> None:
        self.release()


_held: WeakSet[WriterLock] = WeakSet()


def _forget_all() -> None:
    for lock in _held:
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _locked(handle: int) -> bool:
    """Try to lock an open file; whether it succeeded."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt  # type: ignore[unreachable, unused-ignore]

            os.lseek(handle, _FAR, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    except (BlockingIOError, PermissionError):
        return False
    return True


def _holder(handle: int) -> str:
    with suppress(OSError, ValueError):
        os.lseek(handle, 0, os.SEEK_SET)
        number, _, since = os.read(handle, 100).decode().partition(" ")
        who = f"process {int(number)}"
        if int(number) == os.getpid():
            who = f"this {who.replace(' ', ', ')},"
        return f"{who} writes to it since {since.strip()}"
    return "another process writes to it"


def _write_holder(handle: int) -> None:
    text = f"{os.getpid()} {datetime.now().isoformat(sep=' ', timespec='seconds')}\n".encode()
    with suppress(OSError):  # a full disk: the lock stays anonymous
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, text)
