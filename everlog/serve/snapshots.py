"""Snapshots for those who follow: the facts of one state, page by page, as fast as each of them
reads.

While somebody reads, steps go on, so a snapshot is a copy.  Those who come at the same step share
one; and all that are being read may hold so many rows and no more, however slowly they are read.  A
page has so many rows, and about so many bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakValueDictionary

from everlog.api.database import Database
from everlog.core.program import Relation, Row
from everlog.serve.errors import ApiError
from everlog.serve.events import Wish, event
from everlog.serve.wire import RowWriter, columns_json

_PAGE = 500  # rows in one event
_BYTES = 64 << 10  # and the bytes of its rows, unless one alone has more
MOST_HELD = 1_000_000  # rows in all copies; or two copies of all that is asked for, if that is more


class _Copy(list[Row]):
    """The facts of a relation after a step, for as long as somebody has not read them."""


class Snapshots:
    """The copies that are being read."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._copies: WeakValueDictionary[tuple[int, str], _Copy] = WeakValueDictionary()

    @property
    def held(self) -> int:
        """How many rows all copies have."""
        return sum(map(len, self._copies.values()))

    def events(self, database: Database, step: int, wish: Wish) -> Iterator[bytes]:
        """The state after this step, which is the present one; ApiError if too much is being read
        already.
        """
        names = [name for name in database.relations if wish.relations is None or name in wish.relations]
        known = {name: copy for name in names if (copy := self._copies.get((step, name))) is not None}
        missing = sum(database.size(name) for name in names if name not in known)
        if self.held + missing > max(self._most, 2 * sum(map(database.size, names))):
            raise ApiError(503, "busy", "others have snapshots to read that are large: try again later")
        found: list[tuple[Relation, _Copy]] = []
        for name in names:
            copy = known.get(name)
            if copy is None:
                copy = self._copies[step, name] = _Copy(database.rows(name))
            found.append((database.relations[name], copy))
        return _pages(step, found, wish)


def _pages(step: int, found: list[tuple[Relation, _Copy]], wish: Wish) -> Iterator[bytes]:
    """A snapshot, written as it is sent; what was sent is let go."""
    found.reverse()
    while found:
        relation, rows = found.pop()
        columns = columns_json(relation.columns)
        writer = RowWriter(relation.columns, _BYTES, wish.as_text)
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
