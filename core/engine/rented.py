"""Indexes that are not worth building yet.

To look a value up, a table wants an index, and building one takes longer than to go through the table
once: whoever asks once should not pay for those who ask often.  So the first lookups of a kind go through the
table, lazily, and the index is built when they have cost about as much as it will.  A binary table is {key: fan},
so going through it is one test per key, however many facts there are.

Reads: core.tables.  Read by: core.engine.engine, core.engine.asking.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from everlog.core.tables import Columns, Table


class Rented:
    """An index as far as `get` goes.

    >>> from everlog.core.tables import Shape, facts_of
    >>> table = Table(Shape(2, fan=0), facts_of(Shape(2, fan=0), [(1, "a"), (1, "b"), (2, "a"), (3, "a")]))
    >>> index = Rented(table, (0,), (1,))
    >>> sorted(index.get(1)), table.indexes
    (['a', 'b'], {})
    >>> [sorted(index.get(n)) for n in (2, 3)], list(table.indexes)
    ([['a'], ['a']], [((0,), (1,))])
    """

    def __init__(self, table: Table, key: Columns, rest: Columns) -> None:
        self._table, self._key, self._rest = table, key, rest

    def get(self, wanted: Any, default: Any = ()) -> Any:
        """What goes with a key: something to go through, or to ask for a value, once."""
        table, key, rest = self._table, self._key, self._rest
        index = table.find(key, rest)
        if index is None:
            spent = table.spent.get((key, rest), 0)
            if spent < len(table):
                table.spent[key, rest] = spent + max(1, len(table.facts))
                return _Walk(table, key, rest, wanted)
            index = table.index(key, rest)
        return index.get(wanted, default)


class _Walk:
    """The rests of one key, found on a walk through the table; some repeatedly, if they leave columns out."""

    def __init__(self, table: Table, key: Columns, rest: Columns, wanted: Any) -> None:
        self._table, self._key, self._rest, self._wanted = table, key, rest, wanted

    def __iter__(self) -> Iterator[Any]:
        table, wanted = self._table, (self._wanted,)  # `in` finds NaN, too
        if table.shape.arity == 2:
            value = self._wanted
            return (key for key, fan in table.facts.items() if value in fan)
        key_of, rest_of = itemgetter(*self._key), itemgetter(*self._rest)
        return (rest_of(row) for row in table.facts if key_of(row) in wanted)

    def __contains__(self, rest: object) -> bool:
        return any(found == rest for found in self)

    def __bool__(self) -> bool:
        return next((True for _ in self), False)
