"""Indexes that are built only after enough lookups.

Building an index takes longer than one scan of the table, so a single lookup should not pay for it.
The first lookups of a kind scan the table, lazily, and the index is built when they have cost about
as much as it will.  A binary table is {key: values}, so a scan is one test per key, however many
facts there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from everlog.core.storage.shape import Columns, Key
from everlog.core.storage.tables import Table


class LazyIndex:
    """An index for lookups of single keys.

    >>> from everlog.core.storage.table_shapes import PairShape
    >>> from everlog.core.storage.tables import TableOf
    >>> shape = PairShape(value=0)
    >>> table = TableOf(shape, shape.facts_of([(1, "a"), (1, "b"), (2, "a"), (3, "a")]))
    >>> index = LazyIndex(table, (0,), (1,))
    >>> sorted(index.get(1)), table.indexes
    (['a', 'b'], {})
    >>> [sorted(index.get(n)) for n in (2, 3)], list(table.indexes)
    ([['a'], ['a']], [((0,), (1,))])
    """

    def __init__(self, table: Table, key: Columns, rest: Columns) -> None:
        self._table, self._key, self._rest = table, key, rest
        self._index = table.find(key, rest)
        if key == table.shape.key_columns and key and not rest:
            self._index = table.facts  # its keys are the index

    def get(self, wanted: Key, default: Collection[Key] = ()) -> Collection[Key] | Walk:
        """The rests of a key: iterable, and testable with `in`."""
        found = self._found(wanted)
        return found if isinstance(found, Walk) else found.get(wanted, default)

    def __contains__(self, wanted: Key) -> bool:
        found = self._found(wanted)
        return bool(found) if isinstance(found, Walk) else wanted in found

    def _found(self, wanted: Key) -> Any:
        """The index, or a scan while it is not worth its cost."""
        if self._index is None and self._is_worth_it():
            self._index = self._table.index(self._key, self._rest)
        return Walk(self._table, self._key, self._rest, wanted) if self._index is None else self._index

    def _is_worth_it(self) -> bool:
        """Whether scans have cost as much as the index would; if not, count another one."""
        table, which = self._table, (self._key, self._rest)
        found = table.find(*which)  # other code may have built it
        if found is not None:
            return True
        spent = table.spent.get(which, 0)
        if spent >= max(1, table.about()):
            return True
        table.spent[which] = spent + max(1, len(table.facts))
        return False


class Walk:
    """The rests of one key, found by a scan; with repetitions if they omit columns."""

    def __init__(self, table: Table, key: Columns, rest: Columns, wanted: Key) -> None:
        self._table, self._key, self._rest, self._wanted = table, key, rest, wanted

    def __iter__(self) -> Iterator[Key]:
        return self._table.shape.walk(self._table.facts, self._key, self._rest, self._wanted)

    def __contains__(self, rest: object) -> bool:
        return any(found in (rest,) for found in self)

    def __bool__(self) -> bool:
        return next((True for _ in self), False)
