"""Rows with weights, and the indexes that joins use.

An index of an input answers one question of a generic join: for given values of some variables,
which values does the next one have?  It maps a key to {value: number of rows}, so that a value goes
with its last row.  Indexes are made when a join is compiled, and kept up to date from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any

from sortedcontainers import SortedDict

from everlog.core.program import Row

Key = Any


def picker(schema: Sequence[str], wanted: Sequence[str]) -> Callable[[Row], Key]:
    """From a row to the key of some of its variables: a tuple, or the bare value of one.

    >>> picker("abc", "c")((1, 2, 3)), picker("abc", "ca")((1, 2, 3)), picker("abc", "")((1, 2, 3))
    (3, (3, 1), ())
    """
    if not wanted:
        return lambda row: ()
    return itemgetter(*(schema.index(v) for v in wanted))


def row_picker(schema: Sequence[str], wanted: Sequence[str]) -> Callable[[Row], Row]:
    """The same, but always a tuple."""
    if len(wanted) == 1:
        place = schema.index(wanted[0])
        return lambda row: (row[place],)
    return picker(schema, wanted)


class Index:
    """{key: {value: number of rows}} over one input."""

    __slots__ = ("entries", "key", "ordered", "value", "whole")

    def __init__(self, schema: Sequence[str], key: Sequence[str], value: str, ordered: bool) -> None:
        self.key, self.value = picker(schema, key), picker(schema, (value,))
        self.ordered = ordered
        self.whole = {*key, value} == set(schema)  # no two rows have the same key and value
        self.entries: dict[Key, Any] = {}

    def add(self, row: Row) -> None:
        self.extend((row,))

    def extend(self, rows: Iterable[Row]) -> None:
        """Add rows.  Cost: of those in a run with the same key, that of one call in C."""
        entries, key_of, value_of = self.entries, self.key, self.value
        if self.whole:
            for key, together in groupby(rows, key_of):
                values = entries.get(key)
                if values is None:
                    values = entries[key] = SortedDict() if self.ordered else {}
                values.update(zip(map(value_of, together), repeat(1)))
            return
        for row in rows:
            key, value = key_of(row), value_of(row)
            values = entries.get(key)
            if values is None:
                values = entries[key] = SortedDict() if self.ordered else {}
            values[value] = values.get(value, 0) + 1

    def remove(self, row: Row) -> None:
        key, value = self.key(row), self.value(row)
        values = self.entries[key]
        number = values[value] - 1
        if number:
            values[value] = number
        else:
            del values[value]
            if not values:
                del self.entries[key]


class Input:
    """The rows of one atom, or of a view, each with a weight that is not zero.

    Invariants:
      I1  a row is in `rows` exactly while its weight is not zero;
      I2  every index holds exactly the rows of `rows`.
    """

    __slots__ = ("_listed", "indexes", "rows", "schema")

    def __init__(self, schema: Sequence[str]) -> None:
        self.schema = tuple(schema)
        self.rows: dict[Row, int] = {}
        self.indexes: dict[tuple[tuple[str, ...], str, bool], Index] = {}
        self._listed: list[Index] = []

    def index(self, key: Sequence[str], value: str, ordered: bool = False) -> dict[Key, Any]:
        name = tuple(key), value, ordered
        found = self.indexes.get(name)
        if found is None:
            found = self.indexes[name] = Index(self.schema, key, value, ordered)
            self._listed.append(found)
            found.extend(self.rows)
        return found.entries

    def add(self, row: Row, weight: int) -> int:
        """Add to the weight of a row; returns the weight that it had.

        Cost: O(1) for each index, and only when the row comes or goes.
        """
        before = self.rows.get(row, 0)
        now = before + weight
        if now:
            self.rows[row] = now
            if not before:
                for index in self._listed:
                    index.add(row)
        elif before:
            del self.rows[row]
            for index in self._listed:
                index.remove(row)
        return before

    def load(self, rows: Mapping[Row, int]) -> None:
        """Hold these rows with their weights, none of them zero, instead of what is there."""
        self.clear()
        self.rows.update(rows)
        for index in self._listed:
            index.extend(self.rows)

    def clear(self) -> None:
        self.rows.clear()
        for index in self._listed:
            index.entries.clear()

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def check(self) -> None:
        assert all(self.rows.values()), "I1"
        for (key, value, ordered), index in self.indexes.items():
            fresh = Index(self.schema, key, value, ordered)
            fresh.extend(self.rows)
            assert fresh.entries == index.entries, f"I2: {key} {value}"
