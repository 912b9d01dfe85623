"""Rows, distinct values and frequent values of a table, from a sample.

The planner asks how many rows of a relation match a value of a variable.  The mean (rows per
distinct value) is wrong by orders of magnitude where a few values are frequent, so the frequent
values of each column are kept with their shares, as SQL databases do.

A table is sampled when a rule first asks, and again when it has grown or shrunk by a factor.

Sources: Haas and Stokes, JASA 93(444), 1998 (the estimator Duj1 of distinct values).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sized
from operator import itemgetter
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from everlog.core.program import Row, Value
from everlog.core.storage.shape import Columns, F, ShapeOf

if TYPE_CHECKING:
    from everlog.core.storage.tables import Table

SAMPLE = 1000  # rows
FREQUENT = 24  # values kept for a column
PROBES = 250  # values looked up to estimate how many rows match
_OFTEN = 5  # a value is frequent if the sample has it this often
UNKNOWN = 1_000_000  # assumed rows of a relation without statistics


class Statistics:
    """The planner's knowledge of one relation.

    >>> known = Statistics(4000.0, [(i, i % 2) for i in range(1000)])
    >>> round(known.distinct((0,))), round(known.distinct((1,))), known.share(1, 0)
    (4000, 2, 0.5)
    """

    __slots__ = (
        "__weakref__",
        "_counts",
        "_distinct",
        "_frequent",
        "_matching",
        "exact",
        "lookups",
        "rows",
        "sample",
    )

    def __init__(
        self,
        rows: float,
        sample: list[Row],
        exact: Mapping[Columns, int] | None = None,
        lookups: Mapping[int, Mapping[Value, Sized]] | None = None,
    ) -> None:
        self.rows, self.sample = rows, sample
        self.exact = exact or {}  # distinct values, counted by an index
        self.lookups = lookups or {}  # column → value → the rows with it, where an index exists
        self._counts: dict[int, Counter[Value]] = {}
        self._distinct: dict[Columns, float] = {}
        self._frequent: dict[int, dict[Value, float]] = {}
        self._matching: WeakKeyDictionary[Statistics, dict[tuple[int, int], float]] = WeakKeyDictionary()

    @property
    def complete(self) -> bool:
        """Whether the sample has all rows."""
        return len(self.sample) >= self.rows

    def counts(self, column: int) -> Counter[Value]:
        """How often the sample has each value in a column."""
        found = self._counts.get(column)
        if found is None:
            found = self._counts[column] = Counter(map(itemgetter(column), self.sample))
        return found

    def rows_with(self, column: int) -> Callable[[Value], float] | None:
        """The exact number of rows for each value of a column; None if that is unknown."""
        if column in self.lookups:
            get = self.lookups[column].get
            return lambda value: len(get(value, ()))
        return self.counts(column).__getitem__ if self.complete else None

    def distinct(self, columns: Columns) -> float:
        """The estimated number of distinct values of these columns together; at least 1."""
        found = self._distinct.get(columns)
        if found is None:
            found = self._distinct[columns] = self._estimated(columns)
        return found

    def _estimated(self, columns: Columns) -> float:
        if columns in self.exact:
            return max(1.0, float(self.exact[columns]))
        n = len(self.sample)
        if not n:
            return 1.0
        counts = Counter(map(itemgetter(*columns), self.sample)) if columns else Counter()
        if n >= self.rows:
            return float(len(counts) or 1)
        once = sum(1 for count in counts.values() if count == 1)
        return min(self.rows, max(1.0, n * len(counts) / (n - once + once * n / self.rows)))

    def frequent(self, column: int) -> Mapping[Value, float]:
        """The frequent values of a column, each with its share of all rows."""
        found = self._frequent.get(column)
        if found is None:
            n = len(self.sample)
            counts = self.counts(column).most_common(FREQUENT)
            found = {value: count / n for value, count in counts if count >= _OFTEN}
            self._frequent[column] = found
        return found

    def rare(self, column: int) -> float:
        """The share of all rows that one value has if it is not frequent."""
        frequent = self.frequent(column)
        values = self.distinct((column,)) - len(frequent)
        return max(0.0, 1.0 - sum(frequent.values())) / values if values >= 1 else 0.0

    def share(self, column: int, value: Value) -> float:
        """The share of all rows that have a value in a column."""
        known = self.rows_with(column)
        if known is not None:
            return known(value) / max(self.rows, 1.0)
        found = self.frequent(column).get(value)
        if found is not None:
            return found
        return self.rare(column) or min(1.0, 1.0 / max(self.rows, 1.0))

    def matching(self, column: int, other: Statistics, column_of_other: int) -> float:
        """The share of rows that match a value drawn from a column of another relation.

        Where rows with a value can be counted, it looks up values of the other sample.
        """
        known, key = self._matching.setdefault(other, {}), (column, column_of_other)
        if key not in known:
            known[key] = self._matched(column, other, column_of_other)
        return known[key]

    def _matched(self, column: int, other: Statistics, column_of_other: int) -> float:
        known = self.rows_with(column)
        if known is None or not other.sample:
            return self._expected(column, other, column_of_other)
        values = [row[column_of_other] for row in other.sample[:: len(other.sample) // PROBES + 1]]
        matched = sum(map(known, values)) / len(values)
        if not other.complete or len(values) < len(other.sample):
            matched = max(matched, 0.5 / len(values))  # none matched, but an unsampled one may
        return matched / max(self.rows, 1.0)

    def _expected(self, column: int, other: Statistics, column_of_other: int) -> float:
        """The same from shares.

        Frequent values are compared one by one.  Of the rare ones, each value of the column with
        fewer is assumed to be in the other.
        """
        mine, theirs = self.frequent(column), other.frequent(column_of_other)
        d_mine, d_theirs = self.distinct((column,)), other.distinct((column_of_other,))
        there = min(1.0, d_mine / d_theirs)  # the chance that a rare value of theirs is one of mine
        rare, rare_there = self.rare(column), other.rare(column_of_other) * min(1.0, d_theirs / d_mine)
        found = left = 0.0
        for value, share in mine.items():
            weight = theirs.get(value)
            weight = min(rare_there, 1.0) if weight is None else weight
            found += share * weight
            left += weight
        for value, weight in theirs.items():
            if value not in mine:
                found += weight * rare
                left += weight
        return found + max(0.0, 1.0 - left) * rare * there

    def same(self, one: int, other: int) -> float:
        """The share of rows that have the same value in two columns."""
        if not self.sample:
            return 1.0 / self.distinct((one,))
        found = sum(1 for row in self.sample if row[one] == row[other])
        return max(found, 0.5) / len(self.sample)

    def passing(self, column: int, test: Callable[[Value], bool]) -> float:
        """The share of rows whose value in a column passes a test."""
        if not self.sample:
            return 1.0
        passed = sum(1 for row in self.sample if test(row[column]))
        return max(passed, 0.5) / len(self.sample)


class Guess(Statistics):
    """Statistics of a future relation: each column divides its rows by one factor."""

    __slots__ = ("arity",)

    def __init__(self, arity: int, rows: float = UNKNOWN) -> None:
        super().__init__(max(rows, 2.0), [])
        self.arity = max(arity, 1)

    def _estimated(self, columns: Columns) -> float:
        return math.pow(self.rows, len(columns) / self.arity)

    def frequent(self, column: int) -> Mapping[Value, float]:
        return {}

    def passing(self, column: int, test: Callable[[Value], bool]) -> float:
        return 1 / 3


GROWN, SMALL = 8, 64  # a rule is planned again when a relation has grown or shrunk by this factor


def is_other_size(before: float, now: float) -> bool:
    """Whether an order of joins chosen for one size may be wrong for another."""
    return before > (now + SMALL) * GROWN or now > (before + SMALL) * GROWN


class Sampled:
    """The statistics of many tables, each sampled on demand and after it changed much.

    While tables are being filled (`growing`), nothing is known of an empty one.
    """

    def __init__(self, growing: bool) -> None:
        self._growing = growing
        self._known: dict[str, Statistics] = {}

    def known(self, tables: Iterable[tuple[str, Table]]) -> dict[str, Statistics]:
        """The statistics of these tables, by name."""
        found = {}
        for name, table in tables:
            rows = table.about()
            if not rows and self._growing:
                continue
            one: Statistics | None = self._known.get(name)
            if one is None or is_other_size(one.rows, rows):
                one = table.statistics()
            if one is not None:
                found[name] = self._known[name] = one
        return found


def statistics_of(shape: ShapeOf[F], facts: F, indexes: Mapping[tuple[Columns, Columns], Sized]) -> Statistics:
    """The statistics of facts and of the indexes on them.

    Cost: a pass in C over the keys of a binary relation; else that of the sample.
    """
    stored = shape.lookups(facts)
    exact = {key or rest: len(index) for (key, rest), index in indexes.items()}
    exact |= {key: len(index) for key, index in stored.items()}
    lookups = {key[0]: index for key, index in stored.items()}
    for (key, rest), index in indexes.items():
        if len(key) == 1 and len(rest) == shape.arity - 1 > 0 and isinstance(index, dict):
            lookups[key[0]] = index
    return Statistics(shape.size_of(facts), shape.sample(facts, SAMPLE), exact, lookups)
