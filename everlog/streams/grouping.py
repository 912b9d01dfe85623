"""Events to transactions: changes that belong together become one step.

With markers, a transaction is complete after its END, once the number of events that the END counts
has arrived for the tables that the program knows; other events may come in between, as they do if
topics of Kafka are merged.  Without markers, consecutive events with the same transaction belong
together, and the next event of another one ends it; so does the end of the input.  An event without
a transaction is one by itself; the rows of a snapshot are one transaction.

A transaction with more events than its END counts, or one that can never get as many, is refused as
a whole: it is complete, and has a `problem`.  If the END counts by table, missing events may come
later; if it has only the sum, the tables of missing events are unknown, and nothing waits for them.

A sender may stop in the middle of a transaction, reconnect, and send all of it again: the events
before its second BEGIN are dropped, and so are open transactions of a socket's peer that closes.
An event that comes twice, with the same place in its transaction, counts once.

A source that can be read again from an offset continues at the beginning of the oldest incomplete
transaction, and skips those that were complete behind it, by name and place.  (Names alone do not
suffice: a second snapshot has the name of the first, and without markers an id may recur.)

Cost of an entry: independent of the number of open transactions.  There are at most MOST_OPEN: a
sender that never ends its transactions is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from attrs import define, field, frozen

from everlog.core.program.fact_rows import shown
from everlog.files.text_values import FactsError
from everlog.streams.debezium import Entry, Event, Marker
from everlog.streams.model import RowChange

Name: TypeAlias = str | int | None  # an id; the offset of an event without one; None for a snapshot
MOST_OPEN = 10_000  # transactions that have begun and not ended
_MOST_BEHIND = 10_000  # complete transactions behind an open one: positions must list them all


@frozen
class Group:
    """A complete transaction.

    `offset`, behind as many `lines`, and `finished` say where to continue after it.  With a
    `problem`, it is refused: the line with this `number` says what does not fit.
    """

    changes: tuple[RowChange, ...]
    offset: int
    lines: int
    finished: Mapping[Name, int]
    problem: str = ""
    number: int = 0


@define
class _Open:
    """An open transaction: where it began, its events so far, the counts of its END.

    `came` counts the events of each relation, and under "" those of tables that the program does
    not know.
    """

    id: str
    offset: int
    first: int
    marked: bool
    lost_before: int  # refused lines before it began
    changes: list[RowChange] = field(factory=list)
    came: Counter[str] = field(factory=Counter)
    orders: dict[int, Event] = field(factory=dict)
    ended: int = 0  # the line of its END
    wanted: Counter[str] | None = None
    whole: bool = False  # a single event, which needs no end

    def is_complete(self, lost: int) -> bool:
        """Whether all events that its END counts have come; lost lines may be among them."""
        missing = 0 if self.wanted is None else (self.wanted - self.came).total()
        return self.whole or (self.ended > 0 and missing <= lost)

    def problem(self) -> str:
        """Why the events do not fit the END, or that it is missing."""
        if self.wanted is None:
            return "is missing, and a line was refused"
        return f"counts {self.wanted.total()} event(s), and {self.came.total()} came"


class Grouper:
    """Groups events to transactions.

    Invariants:
      I1  at most one open transaction has neither BEGIN nor END;
      I2  `finished` has the ends of complete transactions behind an older open one;
      I3  a change of a refused transaction is in no group without a problem, unless it restarts;
      I4  `open` is in the order of the offsets where transactions began;
      I5  `unmarked` is the name of the transaction of I1.
    """

    def __init__(
        self, relation_of: Callable[[str], str | None], finished: Mapping[Name, int] = MappingProxyType({})
    ) -> None:
        """`relation_of` maps a table to its relation; with None, its changes are skipped."""
        self._relation_of = relation_of
        self._open: dict[Name, _Open] = {}
        self._unmarked: tuple[Name] | None = None
        self._lost = 0
        self._finished = dict(finished)
        self._seen = finished  # complete in an earlier run
        self._refused: dict[Name, None] = {}  # the latest ones, in order

    def add(self, entry: Entry, begin: int, end: int, line: int) -> Iterator[Group]:
        """Add an entry at these offsets and this line; yields what it completes."""
        name = _name(entry, begin)
        yield from self._end_unmarked(name, begin, line - 1)
        if begin < self._seen.get(name, 0):
            return
        current, marked = self._open.get(name), isinstance(entry, Marker) and entry.begins
        if current is None or (marked and current.marked):  # a second BEGIN: all of it comes again
            current = self._begin(name, begin, line, marked)
        if isinstance(entry, Event):
            self._take(current, entry)
            if name in self._refused:
                yield self._completed(name, end, line, "its transaction was refused before it came", line)
                return
            current.whole = entry.transaction is None and (name is not None or entry.snapshot == "last")
        elif entry.begins:
            self._refused.pop(name, None)
        else:
            current.ended = line
            if self._unmarked == (name,):
                self._unmarked = None
            problem = entry.problem or self._counted(current, entry)
            if problem:
                yield self._refuse(name, end, line, problem)
                return
        if current.ended and not (current.wanted is None or current.came <= current.wanted):
            yield self._refuse(name, end, line)
        elif current.is_complete(self._lost_since(current)):
            yield self._completed(name, end, line)
        if len(self._finished) >= _MOST_BEHIND:
            yield from self._give_up(end, line)

    def _begin(self, name: Name, offset: int, line: int, marked: bool) -> _Open:
        self._open.pop(name, None)
        if len(self._open) >= MOST_OPEN:
            raise FactsError(f"line {line}: {MOST_OPEN} transactions have begun and not ended: too many")
        new = _Open("snapshot" if name is None else str(name), offset, line, marked, self._lost)
        self._open[name] = new
        if not marked:
            self._unmarked = (name,)
        elif self._unmarked == (name,):
            self._unmarked = None
        return new

    def _lost_since(self, of: _Open) -> int:
        return self._lost - of.lost_before

    def _take(self, current: _Open, event: Event) -> None:
        if event.order is not None:
            known = current.orders.setdefault(event.order, event)
            if known is not event and _same(known.change, event.change):
                return
        relation = self._relation_of(event.change.table)
        if current.wanted is None or relation is not None:
            current.came[relation or ""] += 1
        if relation is not None:
            current.changes.append(event.change)

    def _counted(self, current: _Open, marker: Marker) -> str:
        """Store the counts of an END; returns what is wrong with them, if anything."""
        if marker.counts is not None:
            current.came.pop("", None)
            current.wanted = Counter()
            for table, count in marker.counts.items():
                relation = self._relation_of(table)
                if relation is not None:
                    current.wanted[relation] += count
        elif marker.event_count is not None:
            came, count = current.came.total(), marker.event_count
            if not came <= count <= came + self._lost_since(current):
                return f"counts {count} event(s), and {came} came"
        return ""

    def lose(self) -> None:
        """Note a refused line: its transaction is unknown, and none may wait for it."""
        self._lost += 1

    def here(self, end: int, line: int) -> Iterator[Group]:
        """An empty group with this position, unless a transaction is open."""
        if not self._open:
            yield Group((), end, line, {})

    def finish(self, end: int, line: int) -> Iterator[Group]:
        """End the input: a transaction without markers is complete."""
        yield from self._end_unmarked(end, end, line)  # nothing began here

    def short(self) -> list[tuple[str, int, list[RowChange]]]:
        """The ended transactions that lack events: why, the END's line, their changes."""
        return [(_message(of), of.ended, of.changes) for of in self._open.values() if of.ended]

    def drop(self) -> None:
        """Drop open transactions: the sender has gone."""
        self._open.clear()
        self._unmarked = None

    @property
    def incomplete(self) -> list[tuple[str, int]]:
        """The open transactions without an end, and their numbers of events."""
        return [(of.id, len(of.changes)) for of in self._open.values()]

    def _end_unmarked(self, name: Name, end: int, line: int) -> Iterator[Group]:
        if self._unmarked is not None and self._unmarked != (name,):
            yield self._completed(self._unmarked[0], end, line)

    def _give_up(self, end: int, line: int) -> Iterator[Group]:
        """Refuse transactions that wait for lost lines, before positions grow too long."""
        for name, of in list(self._open.items()):
            if of.ended or self._lost_since(of):
                yield self._refuse(name, end, line)

    def _refuse(self, name: Name, end: int, line: int, problem: str = "") -> Group:
        of = self._open[name]
        self._refused[name] = None
        if len(self._refused) > _MOST_BEHIND:
            del self._refused[next(iter(self._refused))]
        return self._completed(name, end, line, _message(of, problem), of.ended or of.first)

    def _completed(self, name: Name, end: int, line: int, problem: str = "", number: int = 0) -> Group:
        done = self._open.pop(name)
        if self._unmarked == (name,):
            self._unmarked = None
        oldest = next(iter(self._open.values()), None)
        if oldest is None:
            self._finished.clear()
        else:
            self._finished[name] = end
            end, line = oldest.offset, oldest.first - 1
        return Group(tuple(done.changes), end, line, dict(self._finished), problem, number)


def _name(entry: Entry, begin: int) -> Name:
    """The transaction of an entry; an event without one is named by its offset."""
    if isinstance(entry, Marker):
        return entry.id
    if entry.transaction is not None:
        return entry.transaction
    return begin if entry.snapshot in ("false", "incremental") else None


def _message(of: _Open, problem: str = "") -> str:
    return f"the END of transaction {shown(of.id)} {problem or of.problem()}: it is not applied"


def _same(change: RowChange, other: RowChange) -> bool:
    """Whether two lines hold the same change."""
    mine = (change.table, change.op, change.before, change.after)
    return mine == (other.table, other.op, other.before, other.after)
