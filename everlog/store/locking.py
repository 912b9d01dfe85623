"""One writer at a time: a lock of the operating system on a small file beside the database.

The system drops the lock when its holder ends, however it ends, so a process that was killed blocks
nobody.  The file itself says who holds it, for the message.  It is removed with the lock; one that
a crash has left behind means nothing.

Removing a lock file is safe because whoever gets a lock looks whether the file is still the one
under that name: a lock on a file that was removed a moment ago is none.

The lock is not on the database file: SQLite has locks of its own there, which POSIX would drop as
soon as we closed any handle on that file.

Whoever may write to the folder could put something under the name of the lock.  Links are not
followed, and what is no plain file of one name is left alone: to write down who holds the lock must
destroy no other file.
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

LOOK = "open it with read_only=True (`.open FILE read-only`, `--read-only`) to look"
_FAR = 1 << 30  # where Windows locks a byte: what it locks nobody can read


class WriterLock:
    """The right to write to a database, until `release`, or until the process ends."""

    def __init__(self, database: Path) -> None:
        """Take the lock; `AlreadyOpen` names who has it."""
        self.path = database.with_name(database.name + ".lock")
        self._handle = -1
        try:
            while self._handle < 0:
                self._try(database)
        except OSError as problem:
            is_link = os.path.islink(self.path)
            reason = "it is a link, which is not followed; remove it" if is_link else problem.strerror or problem
            raise StoreError(
                f"{database} cannot be opened for writing: its lock {self.path} cannot be had: {reason}"
            ) from None
        _held.add(self)

    def _try(self, database: Path) -> None:
        """Take the lock, unless the file is removed at this very moment."""
        handle = self._opened(database)
        try:
            found = os.fstat(handle)
            if not S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise OSError("it is no file of its own; remove it")
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
        """The file of the lock; a new one is for those who may open the database, or for its owner
        alone.
        """
        way = os.O_RDWR | NO_LINKS | getattr(os, "O_NONBLOCK", 0)
        for _ in range(100):  # others may make and remove it meanwhile
            with suppress(FileExistsError):
                handle = os.open(self.path, way | os.O_CREAT | os.O_EXCL, PRIVATE)
                with suppress(FileNotFoundError):  # there is no database yet
                    if hasattr(os, "fchmod"):
                        os.fchmod(handle, os.stat(database).st_mode & 0o666)
                return handle
            with suppress(FileNotFoundError):
                return os.open(self.path, way)
        raise OSError("it comes and goes")

    def _is_ours(self, handle: int) -> bool:
        """Whether the name means the file that is open."""
        try:
            return os.path.samestat(os.fstat(handle), os.lstat(self.path))
        except FileNotFoundError:
            return False

    def forget(self) -> None:
        """In a process that was forked off: the lock is its parent's, and must not outlive it here."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def release(self) -> None:
        if self._handle >= 0:
            with suppress(OSError):  # on Windows a file that is open stays
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
    """Whether the lock on an open file could be had."""
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
    with suppress(OSError):  # a full disk: then the lock has no name
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, text)
