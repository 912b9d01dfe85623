"""Results that are kept: a page, another order, or a file of a result without asking again.

A query that is asked again for each page sorts a million rows each time, and between two pages a
step may change them.  Here the rows of one state are found and sorted once, and stay until the
client drops them, or until other results need the room.  An order by one column, or the rows that
contain a text, is computed once and kept until another is asked for.

Invariant: all kept results together have at most `Bounds.kept` rows; those that were not read for
the longest time go first.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from everlog.core.program import Kind, Relation, Row
from everlog.core.runtime.guards import Guard
from everlog.serve.errors import ApiError
from everlog.serve.ordering import all_sorted, place_for_nan

_MOST = 64  # results that are kept
_PIECE = 20_000  # rows between two looks at the clock


class KeptResult:
    """The rows of a query in one state, sorted, and their last arrangement."""

    def __init__(self, name: str, relation: Relation, step: int, rows: list[Row]) -> None:
        self.name, self.relation, self.step, self.rows = name, relation, step, rows
        self._asked: tuple[int, str] = (0, "")
        self._arranged = rows

    @property
    def size(self) -> int:
        """The rows that it holds, an arrangement included."""
        return len(self.rows) + (len(self._arranged) if self._arranged is not self.rows else 0)

    def arranged(self, sort: int, contains: str, guard: Guard) -> list[Row]:
        """The rows that contain a text, ordered by a column: its number, negative if descending."""
        if abs(sort) > self.relation.arity:
            raise ApiError(400, "bad-parameter", f"`sort`: the result has {self.relation.arity} columns")
        asked = (sort, contains)
        if asked != self._asked:
            rows = list(_containing(self.relation, self.rows, contains, guard)) if contains else self.rows
            self._arranged = self._sorted(rows, sort) if sort else rows
            self._asked = asked
        return self._arranged

    def _sorted(self, rows: list[Row], sort: int) -> list[Row]:
        column = abs(sort) - 1
        by_value = itemgetter(column)
        floats = self.relation.columns[column].kind is Kind.FLOAT
        key = (lambda row: place_for_nan(row[column])) if floats else by_value
        return all_sorted(rows, key, reverse=sort < 0)


def _containing(relation: Relation, rows: list[Row], text: str, guard: Guard) -> Iterator[Row]:
    wanted = text.casefold()
    for start in range(0, len(rows), _PIECE):
        guard.look()
        for row in rows[start : start + _PIECE]:
            if any(wanted in str(value).casefold() for value in row):
                yield row


class KeptResults:
    """All kept results of a service, by name."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: dict[str, KeptResult] = {}

    def add(self, result: KeptResult) -> None:
        self._kept[result.name] = result
        self.make_room()

    def make_room(self) -> None:
        """Drop the results that were not read for longest, but never the newest, until all fit."""
        while len(self._kept) > 1 and (len(self._kept) > _MOST or self._size > self.most):
            del self._kept[next(iter(self._kept))]

    @property
    def _size(self) -> int:
        return sum(each.size for each in self._kept.values())

    def find(self, name: str) -> KeptResult:
        found = self._kept.pop(name, None)
        if found is None:
            raise ApiError(404, "no-such-result", "this result is not kept any more: ask the query again")
        self._kept[name] = found  # now it was read last
        return found

    def drop(self, name: str) -> None:
        self._kept.pop(name, None)

    def clear(self) -> None:
        self._kept.clear()
