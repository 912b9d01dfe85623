"""The errors of a database in a file, one class for each case."""

from __future__ import annotations


class StoreError(Exception):
    """An error of a database in a file; the message says what, where, and what to do."""


class NoSuchDatabase(StoreError):
    """There is no file, and no program to create one with."""


class ForeignFile(StoreError):
    """The file is not an everlog database; it is not changed."""


class NewerFormat(StoreError):
    """A newer everlog has written the file; it is not changed."""


class Damaged(StoreError):
    """The file differs from what was written to it; it is not changed."""


class AlreadyOpen(StoreError):
    """Another connection writes to this database."""


class NotWritten(StoreError):
    """A step could not be written to the file, and is undone."""


class FileMoved(NotWritten):
    """The file was renamed, replaced or removed while open; steps are refused."""


class ReadOnly(StoreError):
    """A write to a read-only or closed database, or to a past state."""


class NoSuchStep(StoreError, LookupError):
    """A step that does not exist yet, or is older than the history."""


class OtherProgram(StoreError):
    """A program does not fit the facts of the file."""


class StateLost(UserWarning):
    """Derived facts in the file differ from what was written; they are computed again."""
