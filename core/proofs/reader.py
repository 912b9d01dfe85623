"""Lookups in a table for a few questions, without leaving an index behind.

A proof asks little: whether a fact is present, which facts have 3 in their first column.  An index
for that would cost as much as the table and be maintained for ever.  So a reader uses what exists:
the stored form of the table, or an index that some rule asked for.  Otherwise it scans, lazily;
when its scans have cost more than an index would, it builds one of its own.

Few matches come in sorted order, so that the same question has the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import TypeAlias

from everlog.core.program import Row, Value
from everlog.core.program.order import ordered
from everlog.core.storage.equivalence import Equivalence
from everlog.core.storage.shape import Columns, Key
from everlog.core.storage.table_shapes import PairShape
from everlog.core.storage.tables import Table

Bound: TypeAlias = Mapping[int, Value]  # column → value
ORDERED = 1_000  # up to this many matches are sorted; more come as they are stored
SCANS = 4  # an index costs about as much as this many scans


class Reader:
    """Questions to one table.

    Invariant: the table, its facts and its indexes are only read.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.arity = table.shape.arity
        self._is_binary = isinstance(table.shape, PairShape)
        self.size = len(table)
        self._scanned: dict[Columns, int] = {}
        self._own: dict[Columns, dict[Row, list[Row]]] = {}
        self._sorted: list[Row] | None = None

    def has(self, row: Row) -> bool:
        """Cost: O(1)."""
        return row in self.table

    def matching(self, bound: Bound) -> Iterator[Row]:
        """The rows with these values in these columns, lazily if there are many.

        >>> reader = Reader(Table(PairShape(), PairShape().facts_of([(1, 2), (1, 3), (2, 3)])))
        >>> [list(reader.matching(bound)) for bound in ({0: 1}, {1: 3}, {0: 2, 1: 1})]
        [[(1, 2), (1, 3)], [(1, 3), (2, 3)], []]
        """
        if len(bound) == self.arity:
            row = tuple(bound[column] for column in range(self.arity))
            return iter((row,) if self.has(row) else ())
        columns = tuple(sorted(bound))
        found = self._indexed(columns, bound)
        return self._scan(columns, bound) if found is None else iter(found)

    def count(self, bound: Bound) -> int:
        """The number of rows that `matching` has.

        Cost: O(1) without bound columns and where stored sets answer.
        """
        columns = tuple(sorted(bound))
        if not columns:
            return self.size
        if len(columns) < self.arity and self._natural(columns):
            return len(self.table.facts.get(bound[columns[0]], ()))
        return sum(1 for _ in self.matching(bound))

    def cost(self, columns: Iterable[int]) -> float:
        """About how many facts a lookup with these columns bound reads."""
        bound = tuple(sorted(columns))
        if len(bound) == self.arity:
            return 1
        if bound in self._own:
            return 1 + self.size / (1 + len(self._own[bound]))
        key = self._best(bound)
        if not key:
            natural = self._is_binary and len(bound) == 1  # one test per set, not per fact
            return 1 + (len(self.table.facts) if natural else self.size)
        index = self.table.facts if self._natural(key) else self.table.indexes[key, self._rest(key)]
        return 1 + self.size / (1 + len(index))

    # ── existing indexes ─────────────────────────────────────────────────────────────────────

    def _natural(self, key: Columns) -> bool:
        """Whether the stored facts are an index on these columns."""
        stored = key == self.table.shape.key_columns or isinstance(self.table, Equivalence)
        return stored and len(key) == 1

    def _rest(self, key: Columns) -> Columns:
        return tuple(column for column in range(self.arity) if column not in key)

    def _best(self, columns: Columns) -> Columns:
        """The columns of the index to use: as many of the bound ones as possible."""
        if self._natural(columns):
            return columns
        known = [
            key
            for key, rest in self.table.indexes
            if key and rest and set(key) <= set(columns) and rest == self._rest(key)
        ]
        return max(known, key=len, default=())

    def _indexed(self, columns: Columns, bound: Bound) -> Iterable[Row] | None:
        """The matches by an index; None if there is none."""
        if columns in self._own:
            return self._from_own(columns, bound)
        key = self._best(columns)
        if not key:
            return None
        rest = self._rest(key)
        index = self.table.facts if self._natural(key) else self.table.indexes[key, rest]
        assert isinstance(index, dict)
        rests = index.get(bound[key[0]] if len(key) == 1 else tuple(bound[column] for column in key), ())
        rows: Iterable[Row] = (self._joined(bound, key, rest, values) for values in rests)
        if self._is_binary:
            one = bound[key[0]]
            rows = zip(repeat(one), rests) if key == (0,) else zip(rests, repeat(one))
        left = [column for column in columns if column not in key]
        rows = (row for row in rows if _agrees(row, bound, left)) if left else rows
        return ordered(rows) if len(rests) <= ORDERED else rows

    def _joined(self, bound: Bound, key: Columns, rest: Columns, values: Key) -> Row:
        parts: dict[int, Value] = {column: bound[column] for column in key}
        parts.update(zip(rest, values if isinstance(values, tuple) else (values,), strict=True))
        return tuple(parts[column] for column in range(self.arity))

    # ── scans ────────────────────────────────────────────────────────────────────────────────

    def _scan(self, columns: Columns, bound: Bound) -> Iterator[Row]:
        if columns and self._scanned.get(columns, 0) > SCANS * self.size:
            self._build(columns)
            yield from self._from_own(columns, bound)
            return
        looked = 0
        try:
            for row in self._candidates(columns, bound):
                looked += 1
                if row is not None and _agrees(row, bound, columns):
                    yield row
        finally:
            self._scanned[columns] = self._scanned.get(columns, 0) + looked

    def _candidates(self, columns: Columns, bound: Bound) -> Iterable[Row | None]:
        """The rows that a scan reads; None for a set without the value."""
        if self.size <= ORDERED:
            if self._sorted is None:
                self._sorted = ordered(self.table.rows())
            return self._sorted
        if not self._is_binary or not columns:
            return self.table.rows()
        value, facts = bound[columns[0]], self.table.facts  # of the value column
        if columns == (1,):
            return ((key, value) if value in values else None for key, values in facts.items())
        return ((value, key) if value in values else None for key, values in facts.items())

    def _build(self, columns: Columns) -> None:
        own: dict[Row, list[Row]] = {}
        for row in self.table.rows():
            own.setdefault(tuple(row[column] for column in columns), []).append(row)
        self._own[columns] = own

    def _from_own(self, columns: Columns, bound: Bound) -> Iterable[Row]:
        rows = self._own[columns].get(tuple(bound[column] for column in columns), [])
        return ordered(rows) if len(rows) <= ORDERED else rows


def _agrees(row: Row, bound: Bound, columns: Iterable[int]) -> bool:
    """Whether a row has the values of these columns; NaN equals itself, as in a set."""
    return all(row[column] is bound[column] or row[column] == bound[column] for column in columns)
