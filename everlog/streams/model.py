"""What passes through a stream: changes of rows, kept together in transactions, from sources to
sinks.

A source says where it has got to by a *position*, a text that it alone understands.  The database
keeps it with the step that a transaction becomes, so after a restart the source goes on exactly
behind the last step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, Protocol

from attrs import field, frozen

from everlog.api.changes import Changes
from everlog.api.database import Database
from everlog.core.program import Row


class Unchanged(Enum):
    """A value that a change leaves out, since it is large and has not changed (PostgreSQL's TOAST)."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


@frozen
class RowChange:
    """What became of a row of a table.

    `op` is Debezium's letter: `c` created, `u` updated, `d` deleted, `r` read (it was there), `t`
    the table was emptied.  `before` and `after` have the row's values by the names of columns, as
    far as they are known.  `number` says which line of the source, or which change of its
    transaction, this is.
    """

    table: str
    op: str
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None
    number: int = 0


@frozen
class Transaction:
    """Changes that belong together: they become one step.

    `position` is where the source goes on behind it, None where it does not know.  `whole` has
    relations of which all rows are given, in the place of those that were there.
    """

    changes: Sequence[RowChange]
    position: str | None
    place: str  # for messages: the source, and where in it
    counted: str = "line"  # what the numbers of its changes number
    whole: Mapping[str, Sequence[Row]] = field(factory=dict)


class Source(Protocol):
    """Where transactions come from."""

    name: str  # under which the database keeps its position

    def open(self, database: Database) -> None:
        """Begin behind the position that the database has, or at the beginning."""

    def take(self) -> Sequence[Transaction] | None:
        """The transactions that are there now, maybe none; None when there will be no more.  Does
        not wait.
        """

    def fileno(self) -> int | None:
        """What can be waited on; None if somebody has to look now and then."""

    def has_begun(self) -> bool:
        """Whether what it begins with has been taken: without that, the database is in no state to
        be told.
        """

    def is_before(self, position: str | None, other: str) -> bool:
        """Whether this source, read again from the first position (None: its beginning), comes to
        the other.
        """

    def done(self, position: str) -> None:
        """The database has all up to here; nobody will ask for it again."""

    def close(self) -> None: ...


class Sink(Protocol):
    """Where the changes of relations go."""

    positions: Mapping[str, str]  # of the sources, at the last transaction that is there

    def open(self, database: Database) -> None:
        """Bring what is there to the state that the database has now."""

    def write(self, changes: Changes, positions: Mapping[str, str]) -> None:
        """Add what a step changed: all of it or nothing."""

    def fileno(self) -> int | None:
        """What may need attention while nothing changes; None where nothing does."""

    def attend(self, database: Database) -> None:
        """Give that attention."""

    def settle(self, positions: Mapping[str, str]) -> None:
        """There is nothing to do: remember how far the sources are, if that is not known."""

    def close(self) -> None: ...
