"""Snapshots for new subscribers: the facts of one state, page by page.

Steps go on while a client reads, so a snapshot is a copy.  Clients of the same step share one; and
all unread copies together have a limited number of rows.  A page is limited in rows and bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakValueDictionary

from everlog.api.database import Database
from everlog.core.program import Relation, Row
from everlog.files.text_values import sorted_rows
from everlog.serve.errors import ApiError
from everlog.serve.events import Interest, event
from everlog.serve.wire import RowWriter, columns_json

_PAGE = 500  # rows in one event
_BYTES = 64 << 10  # bytes of its rows, unless a single one has more
MOST_HELD = 1_000_000  # rows in all copies; or two copies of what is asked for, if that is more


class _Copy(list[Row]):
    """The facts of a relation after a step, as long as a client reads them."""


class Snapshots:
    """The unread copies."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._copies: WeakValueDictionary[tuple[int, str], _Copy] = WeakValueDictionary()

    @property
    def held(self) -> int:
        """The number of rows in all copies."""
        return sum(map(len, self._copies.values()))

    def events(self, database: Database, step: int, interest: Interest) -> Iterator[bytes]:
        """The events of the current state, that after this step; ApiError if busy."""
        wanted = interest.relations
        on_demand = database._engine.demands.is_on_demand
        names = [n for n in database.relations if (not on_demand(n) if wanted is None else n in wanted)]
        some = {each.relation.name for each in interest.patterns}
        matching = [(database.relations[n], _matching(database, n, interest)) for n in names if n in some]
        names = [name for name in names if name not in some]
        known = {name: copy for name in names if (copy := self._copies.get((step, name))) is not None}
        missing = sum(database.size(name) for name in names if name not in known)
        if self.held + missing > max(self._most, 2 * sum(map(database.size, names))):
            raise ApiError(503, "busy", "other clients are reading large snapshots: try again later")
        found: list[tuple[Relation, _Copy]] = matching
        for name in names:
            copy = known.get(name)
            if copy is None:
                copy = self._copies[step, name] = _Copy(database.rows(name))
            found.append((database.relations[name], copy))
        return _pages(step, found, interest)


def _matching(database: Database, name: str, interest: Interest) -> _Copy:
    """The facts of a relation that match one of the patterns."""
    mine = [pattern for pattern in interest.patterns if pattern.relation.name == name]
    rows = {row for each in mine for row in database.lookup(name, each.bound) if each.has_equals(row)}
    return _Copy(sorted_rows(database.relations[name], rows))


def _pages(step: int, found: list[tuple[Relation, _Copy]], interest: Interest) -> Iterator[bytes]:
    """The events of a snapshot, encoded as they are sent; sent rows are freed."""
    found.reverse()
    while found:
        relation, rows = found.pop()
        columns = columns_json(relation.columns)
        writer = RowWriter(relation.columns, _BYTES, interest.as_text)
        start = 0
        while True:
            page, count = writer.first(rows[start : start + _PAGE])
            start += count
            more = start < len(rows)
            data = {"step": step, "relation": relation.name, "columns": columns, "rows": page, "more": more}
            yield event("snapshot", data)
            if not more:
                break
        del rows
