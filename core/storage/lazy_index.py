"""Indexes that are not worth building yet.

To look a value up, a table wants an index, and building one takes longer than to go through the
table once: whoever asks once should not pay for those who ask often.  So the first lookups of a
kind go through the table, lazily, and the index is built when they have cost about as much as it
will.  A binary table is {key: fan}, so going through it is one test per key, however many facts
there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from everlog.core.storage.tables import Columns, Table, rough_size


class LazyIndex:
    """An index, as far as it is asked for keys one by one.

    >>> from everlog.core.storage.tables import Shape, facts_of
    >>> table = Table(Shape(2, fan=0), facts_of(Shape(2, fan=0), [(1, "a"), (1, "b"), (2, "a"), (3, "a")]))
    >>> index = LazyIndex(table, (0,), (1,))
    >>> sorted(index.get(1)), table.indexes
    (['a', 'b'], {})
    >>> [sorted(index.get(n)) for n in (2, 3)], list(table.indexes)
    ([['a'], ['a']], [((0,), (1,))])
    """

    def __init__(self, table: Table, key: Columns, rest: Columns) -> None:
        self._table, self._key, self._rest = table, key, rest
        self._index = table.find(key, rest)
        if table.shape.arity == 2 and key == (table.shape.key,) and not rest:
            self._index = table.facts  # whose keys they are

    def get(self, wanted: Any, default: Any = ()) -> Any:
        """What goes with a key: something to go through, or to ask for a value."""
        if self._index is None and self._is_worth_it():
            self._index = self._table.index(self._key, self._rest)
        if self._index is None:
            return _Walk(self._table, self._key, self._rest, wanted)
        return self._index.get(wanted, default)

    def __contains__(self, wanted: object) -> bool:
        if self._index is None and self._is_worth_it():
            self._index = self._table.index(self._key, self._rest)
        return (
            bool(_Walk(self._table, self._key, self._rest, wanted))
            if self._index is None
            else wanted in self._index
        )

    def _is_worth_it(self) -> bool:
        """Whether walks have cost as much as the index would; if not, another one is about to."""
        table, which = self._table, (self._key, self._rest)
        found = table.find(*which)  # somebody else may have built it
        if found is not None:
            return True
        spent = table.spent.get(which, 0)
        if spent >= max(1, rough_size(table.shape, table.facts)):
            return True
        table.spent[which] = spent + max(1, len(table.facts))
        return False


class _Walk:
    """The rests of one key, found on a walk through the table; some repeatedly, if they leave
    columns out.
    """

    def __init__(self, table: Table, key: Columns, rest: Columns, wanted: Any) -> None:
        self._table, self._key, self._rest, self._wanted = table, key, rest, wanted

    def __iter__(self) -> Iterator[Any]:
        """Whatever goes with the key; without rests, True for each fact that has it."""
        table, wanted = self._table, (self._wanted,)  # `in` finds NaN, too
        if table.shape.arity == 2:
            value = self._wanted  # of the fan: an index by the other column needs no walk
            return (key for key, fan in table.facts.items() if value in fan)
        key_of = itemgetter(*self._key)
        if not self._rest:
            return (True for row in table.facts if key_of(row) in wanted)
        rest_of = itemgetter(*self._rest)
        return (rest_of(row) for row in table.facts if key_of(row) in wanted)

    def __contains__(self, rest: object) -> bool:
        return any(found in (rest,) for found in self)

    def __bool__(self) -> bool:
        return next((True for _ in self), False)
