"""Events to transactions: what belongs together becomes one step.

With markers, a transaction is complete when its END has come, and as many events as the END says of the tables
that the program knows; others may come in between, as they do where topics of Kafka are merged.  Without markers,
events in a row with the same transaction belong together, and the next event that has another one ends it; so does
the end of the input.  An event without any transaction is one by itself; the rows of a snapshot are one.

Whoever sends may be stopped in the middle of a transaction, come back, and tell all of it again: what was told
before its second BEGIN is forgotten, and so is what a peer of a socket has left open when it goes.

Where a source can be read again from an offset, that is the beginning of the oldest transaction that is not
complete, with the names of those that were complete behind it.

Cost: what an entry takes does not depend on how many transactions are open.  There are at most
MOST_OPEN: a sender that never ends what it begins is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import define, field, frozen

from everlog.files.values import FactsError
from everlog.streams.debezium import Entry, Event, Marker
from everlog.streams.model import RowChange

_SNAPSHOT = "\0snapshot"  # names of what has none
MOST_OPEN = 10_000  # transactions that have begun and not ended


@frozen
class Group:
    """A complete transaction; `offset`, behind as many `lines`, and `finished` say where to go on behind it."""

    changes: tuple[RowChange, ...]
    offset: int
    lines: int
    finished: frozenset[str]


@define
class _Open:
    """A transaction that is under way: where it began, what it has so far, what its END said."""

    offset: int
    first: int
    marked: bool
    lost_before: int  # lines that were refused before it began
    changes: list[RowChange] = field(factory=list)
    ended: bool = False
    wanted: int = 0

    def is_complete(self, lost: int) -> bool:
        """`lost`: how many lines have been refused by now."""
        return self.ended and len(self.changes) + lost - self.lost_before >= self.wanted


class Grouper:
    """Invariants:
    I1  at most one transaction that is under way has neither BEGIN nor END;
    I2  `finished` holds what was complete while something that began before it was not;
    I3  `open` is in the order of the offsets where transactions began;
    I4  `unmarked` is the transaction of I1.
    """

    def __init__(self, known: Callable[[str], bool], finished: frozenset[str] = frozenset()) -> None:
        """`known` says whether the program knows a table; changes of others are left out."""
        self._known = known
        self._open: dict[str, _Open] = {}
        self._unmarked: str | None = None
        self._lost = 0
        self._finished = set(finished)
        self._seen = frozenset(finished)  # complete in an earlier life

    def add(self, entry: Entry, begin: int, end: int, line: int) -> Iterator[Group]:
        """An entry that stands at these offsets of its source, and on this line; what it completes."""
        name = _name(entry, begin)
        yield from self._end_unmarked(name, begin, line - 1)
        if name in self._seen:
            return
        current, marked = self._open.get(name), isinstance(entry, Marker) and entry.begins
        if current is None or (marked and current.marked):  # whoever begins it again tells all of it again
            current = self._begin(name, _Open(begin, line, marked, self._lost))
        if isinstance(entry, Event):
            if self._known(entry.change.table):
                current.changes.append(entry.change)
            alone = entry.transaction is None and (name != _SNAPSHOT or entry.snapshot == "last")
            current.ended = current.ended or alone
        elif not entry.begins:
            current.ended = True
            current.wanted = sum(count for table, count in entry.counts.items() if self._known(table))
        if current.ended and self._unmarked == name:
            self._unmarked = None
        if current.is_complete(self._lost):
            yield self._completed(name, end, line)

    def _begin(self, name: str, new: _Open) -> _Open:
        self._open.pop(name, None)
        if len(self._open) >= MOST_OPEN:
            raise FactsError(
                f"line {new.first}: {MOST_OPEN} transactions have begun and not ended; no more are kept"
            )
        self._open[name] = new
        if not new.marked:
            self._unmarked = name
        return new

    def lose(self) -> None:
        """A line was refused: nobody knows which transaction it was of, and none may wait for it."""
        self._lost += 1

    def finish(self, end: int, line: int) -> Iterator[Group]:
        """There will be no more: a transaction without markers is complete."""
        yield from self._end_unmarked("", end, line)

    def drop(self) -> None:
        """Whoever sent has gone: what was under way will not end."""
        self._open.clear()
        self._unmarked = None

    @property
    def incomplete(self) -> list[tuple[str, int]]:
        """The transactions that have begun and not ended, and how many events they have."""
        return [(name, len(of.changes)) for name, of in self._open.items()]

    def _end_unmarked(self, name: str, end: int, line: int) -> Iterator[Group]:
        if self._unmarked is not None and self._unmarked != name:
            yield self._completed(self._unmarked, end, line)

    def _completed(self, name: str, end: int, line: int) -> Group:
        done = self._open.pop(name)
        if self._unmarked == name:
            self._unmarked = None
        oldest = next(iter(self._open.values()), None)
        if oldest is None:
            self._finished.clear()
            return Group(tuple(done.changes), end, line, frozenset())
        self._finished.add(name)
        return Group(tuple(done.changes), oldest.offset, oldest.first - 1, frozenset(self._finished))


def _name(entry: Entry, begin: int) -> str:
    """The transaction of an entry; one that has none is named by where it stands."""
    if isinstance(entry, Marker):
        return entry.id
    if entry.transaction is not None:
        return entry.transaction
    return f"\0{begin}" if entry.snapshot in ("false", "incremental") else _SNAPSHOT
