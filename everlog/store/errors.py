"""What can go wrong with a database in a file, one class for each thing that a program may want to
tell apart.
"""

from __future__ import annotations


class StoreError(Exception):
    """Something about a database in a file; the message says what, where, and what to do."""


class NoSuchDatabase(StoreError):
    """There is no file, and no program to begin one with."""


class ForeignFile(StoreError):
    """The file is no everlog database; it is left as it is."""


class NewerFormat(StoreError):
    """A newer everlog has made the file; it is left as it is."""


class Damaged(StoreError):
    """The file does not hold what was written to it; it is left as it is."""


class AlreadyOpen(StoreError):
    """Somebody writes to this database."""


class NotWritten(StoreError):
    """A step could not be written to the file; it is undone, and the database is as before."""


class FileMoved(NotWritten):
    """The file was renamed, replaced or removed while it was open; the step is undone, and no other
    is taken.
    """


class ReadOnly(StoreError):
    """A write to a database that was opened for reading, to a state of the past, or to one that is
    closed.
    """


class NoSuchStep(StoreError, LookupError):
    """A step that has not been yet, or that is older than the history that is kept."""


class OtherProgram(StoreError):
    """A program was given that does not go with the facts of the file."""
