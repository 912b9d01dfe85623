"""The data of a stream: changes of rows, in transactions, from sources to sinks.

A *position* is a text that only its source understands.  The database stores it with the step of a
transaction, so after a restart the source continues exactly after the last step.
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
    """An omitted value, which is large and unchanged (PostgreSQL's TOAST)."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


@frozen
class RowChange:
    """A change of one row of a table.

    `op` is Debezium's letter: `c` created, `u` updated, `d` deleted, `r` read (a snapshot), `t` the
    table was truncated.  `before` and `after` have the row's values by column name, as far as they
    are known.  `number` is the line of the source, or the place in its transaction.
    """

    table: str
    op: str
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None
    number: int = 0


@frozen
class Transaction:
    """Changes that belong together: they become one step.

    `position` is where the source continues after it, or None.  `whole` has relations with all
    their rows, which replace the old ones.
    """

    changes: Sequence[RowChange]
    position: str | None
    place: str  # for messages: the source, and the place in it
    counted: str = "line"  # what the numbers of its changes count
    whole: Mapping[str, Sequence[Row]] = field(factory=dict)


class Source(Protocol):
    """A source of transactions."""

    name: str  # the name of its position in the database

    def open(self, database: Database) -> None:
        """Start after the position in the database, or at the beginning."""

    def take(self) -> Sequence[Transaction] | None:
        """The transactions that have arrived, maybe none; None at the end.  Does not wait."""

    def fileno(self) -> int | None:
        """A descriptor to wait on; None if the caller has to poll."""

    def has_begun(self) -> bool:
        """Whether its snapshot was taken; before that, the database is incomplete."""

    def is_before(self, position: str | None, other: str) -> bool:
        """Whether reading from the first position (None: the start) reaches the other."""

    def done(self, position: str) -> None:
        """The database has all changes up to here, so the source may drop them."""

    def close(self) -> None: ...


class Sink(Protocol):
    """A target of the changes of relations."""

    positions: Mapping[str, str]  # of the sources, at the last transaction that was written

    def open(self, database: Database) -> None:
        """Bring the target to the current state of the database."""

    def write(self, changes: Changes, positions: Mapping[str, str]) -> None:
        """Write the changes of a step, all or nothing."""

    def fileno(self) -> int | None:
        """A descriptor that may need attention while nothing changes, or None."""

    def attend(self, database: Database) -> None:
        """Handle that descriptor, such as a new client."""

    def settle(self, positions: Mapping[str, str]) -> None:
        """Store the positions of the sources if they have changed; nothing else to do."""

    def close(self) -> None: ...
