"""Events to transactions: what belongs together becomes one step.

With markers, a transaction is complete when its END has come, and as many events as the END says of
the tables that the program knows; others may come in between, as they do where topics of Kafka are
merged.  Without markers, events in a row with the same transaction belong together, and the next
event that has another one ends it; so does the end of the input.  An event without any transaction
is one by itself; the rows of a snapshot are one.

A transaction that has more events than its END counts, or will never have as many, is refused as a
whole: it is complete, and has a `problem`.  Where the END counts tables, missing events may come
later; where it has no more than the sum, nobody knows of which tables they would be, and none are
waited for.

Whoever sends may be stopped in the middle of a transaction, come back, and tell all of it again:
what was told before its second BEGIN is forgotten, and so is what a peer of a socket has left open
when it goes.  An event that comes twice, with the same place in the order of its transaction,
counts once.

Where a source can be read again from an offset, that is the beginning of the oldest transaction
that is not complete, with those that were complete behind it, and where they were.  (Their names
alone would not do: a second snapshot has the name of the first, and without markers an id may come
back.)

Cost: what an entry takes does not depend on how many transactions are open.  There are at most
MOST_OPEN: a sender that never ends what it begins is refused.
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

Name: TypeAlias = str | int | None  # an id; the offset of an event that has none; None of a snapshot
MOST_OPEN = 10_000  # transactions that have begun and not ended
_MOST_BEHIND = 10_000  # transactions complete while one waits for what may never come: positions have them all


@frozen
class Group:
    """A complete transaction; `offset`, behind as many `lines`, and `finished` say where to go on
    behind it.

    With a `problem`, it is refused: the line with this `number` says what does not fit.
    """

    changes: tuple[RowChange, ...]
    offset: int
    lines: int
    finished: Mapping[Name, int]
    problem: str = ""
    number: int = 0


@define
class _Open:
    """A transaction that is under way: where it began, what it has so far, what its END said.

    `came` counts the events of each relation, and under "" those of tables that the program does
    not know.
    """

    id: str
    offset: int
    first: int
    marked: bool
    lost_before: int  # lines that were refused before it began
    changes: list[RowChange] = field(factory=list)
    came: Counter[str] = field(factory=Counter)
    orders: dict[int, Event] = field(factory=dict)
    ended: int = 0  # the line of its END
    wanted: Counter[str] | None = None
    whole: bool = False  # it ends by itself

    def is_complete(self, lost: int) -> bool:
        """Whether all events have come that its END counts; the lines that were lost may be some of
        them.
        """
        missing = 0 if self.wanted is None else (self.wanted - self.came).total()
        return self.whole or (self.ended > 0 and missing <= lost)

    def problem(self) -> str:
        """Why what came does not fit the END, or that it has not come."""
        if self.wanted is None:
            return "has not come, and a line was refused"
        return f"counts {self.wanted.total()} event(s), and {self.came.total()} came"


class Grouper:
    """Invariants:  I1  at most one transaction that is under way has neither BEGIN nor END; I2
    `finished` has where those ended that were complete while something that began before that was
    not; I3  no change of a transaction that was refused is in a group without a problem, unless it
    is begun again; I4  `open` is in the order of the offsets where transactions began; I5
    `unmarked` has the name of the transaction of I1.
    """

    def __init__(
        self, relation_of: Callable[[str], str | None], finished: Mapping[Name, int] = MappingProxyType({})
    ) -> None:
        """`relation_of` gives the relation that a table feeds, or None; changes of such tables are
        left out.
        """
        self._relation_of = relation_of
        self._open: dict[Name, _Open] = {}
        self._unmarked: tuple[Name] | None = None
        self._lost = 0
        self._finished = dict(finished)
        self._seen = finished  # complete in an earlier life
        self._refused: dict[Name, None] = {}  # the last ones, in order

    def add(self, entry: Entry, begin: int, end: int, line: int) -> Iterator[Group]:
        """An entry that stands at these offsets of its source, and on this line; what it completes."""
        name = _name(entry, begin)
        yield from self._end_unmarked(name, begin, line - 1)
        if begin < self._seen.get(name, 0):
            return
        current, marked = self._open.get(name), isinstance(entry, Marker) and entry.begins
        if current is None or (marked and current.marked):  # whoever begins it again tells all of it again
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
            raise FactsError(f"line {line}: {MOST_OPEN} transactions have begun and not ended; no more are kept")
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
        """Note what an END counts; what cannot be right about it, whatever may still come."""
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
        """A line was refused: nobody knows which transaction it was of, and none may wait for it."""
        self._lost += 1

    def here(self, end: int, line: int) -> Iterator[Group]:
        """A group of nothing, to go on from here, unless something is under way."""
        if not self._open:
            yield Group((), end, line, {})

    def finish(self, end: int, line: int) -> Iterator[Group]:
        """There will be no more: a transaction without markers is complete."""
        yield from self._end_unmarked(end, end, line)  # nothing began here

    def short(self) -> list[tuple[str, int, list[RowChange]]]:
        """The transactions that have ended, and miss events: why, the line of the END, and what
        they have.
        """
        return [(_message(of), of.ended, of.changes) for of in self._open.values() if of.ended]

    def drop(self) -> None:
        """Whoever sent has gone: what was under way will not end."""
        self._open.clear()
        self._unmarked = None

    @property
    def incomplete(self) -> list[tuple[str, int]]:
        """The transactions that have begun and not ended, and how many events they have."""
        return [(of.id, len(of.changes)) for of in self._open.values()]

    def _end_unmarked(self, name: Name, end: int, line: int) -> Iterator[Group]:
        if self._unmarked is not None and self._unmarked != (name,):
            yield self._completed(self._unmarked[0], end, line)

    def _give_up(self, end: int, line: int) -> Iterator[Group]:
        """Refuse what has waited so long that positions grow: a line that it needs was lost."""
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
    """The transaction of an entry; an event that has none is named by where it stands."""
    if isinstance(entry, Marker):
        return entry.id
    if entry.transaction is not None:
        return entry.transaction
    return begin if entry.snapshot in ("false", "incremental") else None


def _message(of: _Open, problem: str = "") -> str:
    return f"the END of transaction {shown(of.id)} {problem or of.problem()}: it is not applied"


def _same(change: RowChange, other: RowChange) -> bool:
    """Whether two lines tell the same change."""
    told = (change.table, change.op, change.before, change.after)
    return told == (other.table, other.op, other.before, other.after)
