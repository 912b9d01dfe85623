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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from heapq import nlargest
from itertools import islice, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from attrs import frozen

from everlog.core.program import Row, Value
from everlog.core.program.functors import COMPARISONS
from everlog.core.storage.shape import Columns, F, Key, ShapeOf

if TYPE_CHECKING:
    from everlog.core.storage.tables import Table

# For each key that is there: about how many rows have it, and some of them, at most a given number.
Partners: TypeAlias = dict[Key, tuple[float, list[Row]]]
RowsByKey: TypeAlias = dict[Key, list[Row]]
# Reads a table for them; None if it is large, unless it is read in any case.
Reader: TypeAlias = Callable[[Columns, Collection[Key], int, bool], "Partners | None"]
Lookup: TypeAlias = tuple[Columns, Mapping[Any, Collection[Any]]]  # an index, and the columns of what it gives

SAMPLE = 256  # rows of a larger table
WHOLE = 2000  # rows of a table that is read as a whole
FREQUENT = 24  # values kept for a column
READ_IN_ANY_CASE = 200_000  # rows that are looked at of a larger table
READ = 5_000  # rows of a table that gets an index to find a few: less than a millisecond
PROBES = 128  # values looked up to estimate how many rows match
MET = 64  # rows that stand for those that a join leaves
SELECTIONS = 64  # remembered for a table
_OFTEN = 5  # a value is frequent if the sample has it this often
_SHARE_OF_A_TEST = 1 / 3  # of rows that nothing is known of
UNKNOWN = 1_000_000  # assumed rows of a relation without statistics


class Statistics:
    """The planner's knowledge of one relation.

    >>> known = Statistics(4000.0, [(i, i % 2) for i in range(1000)])
    >>> round(known.distinct((0,))), round(known.distinct((1,))), known.share(1, 0)
    (4000, 2, 0.5)
    """

    begins = False  # whether a trial of a join may begin with a sample of the rows

    __slots__ = (
        "__weakref__",
        "_by",
        "_counts",
        "_distinct",
        "_frequent",
        "_matching",
        "_meeting",
        "_selected",
        "complete",
        "exact",
        "lookups",
        "reader",
        "rows",
        "sample",
        "whole",
    )

    def __init__(
        self,
        rows: float,
        sample: list[Row],
        exact: Mapping[Columns, int] | None = None,
        lookups: Mapping[Columns, Lookup] | None = None,
        complete: bool | None = None,
        reader: Reader | None = None,
        whole: Statistics | None = None,
    ) -> None:
        self.rows, self.sample = rows, sample
        self.complete = len(sample) >= rows if complete is None else complete  # whether the sample has all rows
        self.exact = exact or {}  # distinct values, counted by an index
        self.lookups = lookups or {}  # columns → an index by them, where one exists
        self.reader = reader  # looks for rows in the whole table
        self.whole = whole  # of the rows of which these are some
        self._by: dict[Columns, RowsByKey] = {}
        self._counts: dict[Columns, Counter[Key]] = {}
        self._distinct: dict[Columns, float] = {}
        self._frequent: dict[int, dict[Key, float]] = {}
        self._matching: WeakKeyDictionary[Statistics, dict[tuple[Columns, Columns], float]] = WeakKeyDictionary()
        self._meeting: WeakKeyDictionary[Statistics, dict[tuple[Columns, Columns], Statistics]]
        self._meeting = WeakKeyDictionary()
        self._selected: dict[Selection, Statistics] = {}

    def counts(self, columns: Columns) -> Counter[Key]:
        """How often the sample has each value of some columns together."""
        found = self._counts.get(columns)
        if found is None:
            found = self._counts[columns] = Counter(map(itemgetter(*columns), self.sample))
        return found

    def rows_with(self, columns: Columns, values: Iterable[Key]) -> list[int] | None:
        """The exact number of rows for each of these values; None if that is unknown."""
        if columns in self.lookups:
            return list(map(len, map(self.lookups[columns][1].get, values, repeat(()))))
        return self.sampled_with(columns, values) if self.complete else None

    def sampled_with(self, columns: Columns, values: Iterable[Key]) -> list[int]:
        """The number of rows of the sample for each of these values."""
        return list(map(self.counts(columns).get, values, repeat(0)))

    def partners(self, columns: Columns, keys: Collection[Key], most: int) -> Partners | None:
        """At most `most` rows for each key of some columns; None if that is much work."""
        if not columns:
            sample = self.sample
            step = len(sample) // most + 1
            return {(): (self.rows, sample[::step])} if sample else {}
        if self.complete:
            return self._partners_in_sample(columns, keys, most)
        if columns in self.lookups:
            rest, index = self.lookups[columns]
            return {
                key: (len(found), [_row(columns, key, rest, one) for one in islice(found, most)])
                for key in keys
                if (found := index.get(key, ()))
            }
        for on, (rest, index) in self.lookups.items():
            if len(columns) == len(on) + len(rest):  # whole rows
                own, others, rows = itemgetter(*on), itemgetter(*rest), cast(Collection[Row], keys)
                return {row: (1, [row]) for row in rows if others(row) in index.get(own(row), ())}
        return None if self.reader is None else self.reader(columns, keys, most, False)

    def _partners_in_sample(self, columns: Columns, keys: Collection[Key], most: int) -> Partners:
        if columns not in self._by:
            self._by[columns] = _by_key(columns, self.sample)
        return _some_of(self._by[columns], keys, most, 1)

    def distinct(self, columns: Columns) -> float:
        """The estimated number of distinct values of these columns together; at least 1."""
        found = self._distinct.get(columns)
        if found is None:
            found = self._estimated(columns)
            if self.whole is not None:
                found = min(found, self.whole.distinct(columns))
            self._distinct[columns] = found
        return found

    def _estimated(self, columns: Columns) -> float:
        if columns in self.exact:
            return max(1.0, float(self.exact[columns]))
        n = len(self.sample)
        if not n or not self.rows:  # a sample may be older than the number of rows
            return 1.0
        if not columns:
            return 1.0
        counts = self.counts(columns)
        if self.complete:
            return float(len(counts))
        once = list(counts.values()).count(1)
        return min(self.rows, max(1.0, n * len(counts) / (n - once + once * n / self.rows)))

    def frequent(self, column: int) -> Mapping[Key, float]:
        """The frequent values of a column, each with its share of all rows."""
        found = self._frequent.get(column)
        if found is None:
            n = len(self.sample)
            often = [pair for pair in self.counts((column,)).items() if pair[1] >= _OFTEN]
            most = nlargest(FREQUENT, often, key=itemgetter(1)) if len(often) > FREQUENT else often
            found = {value: count / n for value, count in most}
            self._frequent[column] = found
        return found

    def rare(self, column: int) -> float:
        """The share of all rows that one value has if it is not frequent."""
        frequent = self.frequent(column)
        values = self.distinct((column,)) - len(frequent)
        return max(0.0, 1.0 - sum(frequent.values())) / values if values >= 1 else 0.0

    def share(self, column: int, value: Value) -> float:
        """The share of all rows that have a value in a column."""
        known = self.rows_with((column,), (value,))
        if known is not None:
            return known[0] / max(self.rows, 1.0)
        found = self.frequent(column).get(value)
        if found is not None:
            return found
        return self.rare(column) or min(1.0, 1.0 / max(self.rows, 1.0))

    def matching(self, columns: Columns, other: Statistics, columns_of_other: Columns) -> float:
        """The share of rows that match values drawn from a row of another relation.

        Where rows with such values can be counted, it looks up those of the other sample.
        """
        known, key = self._matching.setdefault(other, {}), (columns, columns_of_other)
        if key not in known:
            known[key] = self._matched(columns, other, columns_of_other)
        return known[key]

    def _matched(self, columns: Columns, other: Statistics, columns_of_other: Columns) -> float:
        values = list(map(itemgetter(*columns_of_other), other.sample[:: len(other.sample) // PROBES + 1]))
        known = self.rows_with(columns, values)
        if known is None or not values:
            shares = [self._expected(c, other, d) for c, d in zip(columns, columns_of_other, strict=True)]
            return self.together(shares, columns)
        matched = sum(known) / len(values)
        if not other.complete or len(values) < len(other.sample):
            matched = max(matched, 0.5 / len(values))  # none matched, but an unsampled one may
        return matched / max(self.rows, 1.0)

    def meeting(self, columns: Columns, other: Statistics, columns_of_other: Columns) -> Statistics:
        """The statistics of the rows that a join with another relation leaves, by their matches.

        Frequent values meet more, so they are more frequent afterwards.
        """
        known, key = self._meeting.setdefault(other, {}), (columns, columns_of_other)
        if key not in known:
            known[key] = self._met(columns, other, columns_of_other)
        return known[key]

    def _met(self, columns: Columns, other: Statistics, columns_of_other: Columns) -> Statistics:
        rows = self.sample[:: len(self.sample) // MET + 1]
        values = list(map(itemgetter(*columns), rows))
        matches = other.rows_with(columns_of_other, values)
        if matches is None:
            matches = other.sampled_with(columns_of_other, values)
        total = sum(matches)
        if total < _OFTEN:  # too few to tell
            return self
        copies = MET / total
        sample = [row for row, n in zip(rows, matches, strict=True) if n for _ in range(max(1, round(n * copies)))]
        left = self.rows * sum(map(bool, matches)) / len(rows)
        complete = self.complete and len(rows) == len(self.sample)
        return Statistics(left, sample, complete=complete, whole=self)

    def together(self, shares: Sequence[float], columns: Columns) -> float:
        """The share of rows that match in all of these columns, from that in each."""
        if len(shares) < 2:
            return shares[0] if shares else 1.0
        return min(max(math.prod(shares), 1.0 / self.distinct(columns)), *shares)

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

    def passing(self, column: int, test: Callable[[Value], bool]) -> float:
        """The share of rows whose value in a column passes a test."""
        if not self.sample:
            return _SHARE_OF_A_TEST
        passed = sum(1 for row in self.sample if test(row[column]))
        return max(passed, 0.5) / len(self.sample)

    def selected(self, selection: Selection) -> Statistics:
        """The statistics of the rows that pass a selection."""
        if not selection:
            return self
        found = self._selected.get(selection)
        if found is None:
            if len(self._selected) >= SELECTIONS:
                self._selected.clear()
            found = self._selected[selection] = self._selecting(selection)
        return found

    def _selecting(self, selection: Selection) -> Statistics:
        passing = selection.of(self.sample)
        if self.complete:
            return Statistics(float(len(passing)), passing)
        rows = self.rows * max(len(passing), 0.5) / max(len(self.sample), 1)
        shares = [self.share(column, value) for column, value in selection.constants]
        if len(passing) < _OFTEN:  # too few to tell: constants are counted one by one
            rows = min(rows, self.rows * math.prod(shares))
        rows = min(rows, *(self.rows * share for share in shares)) if shares else rows
        return Statistics(rows, passing or self.sample, complete=False, whole=self)


@frozen
class Selection:
    """What one atom demands of a row by itself: constants, repeated variables, comparisons.

    A comparison has two sides: a column, or -1 and a constant.
    """

    constants: tuple[tuple[int, Value], ...] = ()
    same: tuple[tuple[int, int], ...] = ()
    comparisons: tuple[tuple[str, tuple[int, Value], tuple[int, Value]], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.constants or self.same or self.comparisons)

    def of(self, rows: list[Row]) -> list[Row]:
        """The rows that pass."""
        for column, value in self.constants:
            rows = [row for row in rows if row[column] == value]
        for one, other in self.same:
            rows = [row for row in rows if row[one] == row[other]]
        for op, (one, left), (other, right) in self.comparisons:
            holds = COMPARISONS[op]
            if one < 0:
                rows = [row for row in rows if holds(left, row[other])]
            elif other < 0:
                rows = [row for row in rows if holds(row[one], right)]
            else:
                rows = [row for row in rows if holds(row[one], row[other])]
        return rows


class Thorough(Statistics):
    """Statistics for a rule that has done much work already: then looking for rows is worth it.

    Trials of joins (core.codegen.trial_joins) may begin with a sample, and read whole tables.
    """

    __slots__ = ()
    begins = True

    @classmethod
    def of(cls, known: Statistics) -> Thorough:
        return cls(known.rows, known.sample, known.exact, known.lookups, known.complete, known.reader)

    def partners(self, columns: Columns, keys: Collection[Key], most: int) -> Partners | None:
        found = super().partners(columns, keys, most)
        if found is None and self.reader is not None:
            return self.reader(columns, keys, most, True)
        return found


def _by_key(columns: Columns, rows: Iterable[Row]) -> RowsByKey:
    """Rows by their values of some columns."""
    found: RowsByKey = {}
    key_of_row = itemgetter(*columns)
    for row in rows:
        found.setdefault(key_of_row(row), []).append(row)
    return found


def _some_of(by: RowsByKey, keys: Collection[Key], most: int, step: int) -> Partners:
    """At most `most` rows for each key; each row that was read stands for `step` of them."""
    return {key: (len(rows) * step, rows[:: len(rows) // most + 1]) for key in keys if (rows := by.get(key, []))}


def _row(columns: Columns, key: Any, rest: Columns, one: Any) -> Row:
    """A row, from what an index has of it."""
    values = (key,) if len(columns) == 1 else key
    values += (one,) if len(rest) == 1 else one
    return tuple([value for _, value in sorted(zip(columns + rest, values, strict=True), key=itemgetter(0))])


class Guess(Statistics):
    """Statistics of a future relation: each column divides its rows by one factor."""

    __slots__ = ("arity",)

    def __init__(self, arity: int, rows: float = UNKNOWN) -> None:
        super().__init__(max(rows, 2.0), [])
        self.arity = max(arity, 1)

    def _estimated(self, columns: Columns) -> float:
        return max(1.0, math.pow(self.rows, len(columns) / self.arity))

    def frequent(self, column: int) -> Mapping[Key, float]:
        return {}

    def _selecting(self, selection: Selection) -> Statistics:
        equal = len(selection.constants) + len(selection.same)
        share = math.pow(self.rows, -equal / self.arity) * _SHARE_OF_A_TEST ** len(selection.comparisons)
        return Guess(self.arity, self.rows * share)


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
    lookups: dict[Columns, Lookup] = {key: (shape.fact_columns, index) for key, index in stored.items()}
    for (key, rest), index in indexes.items():
        if key and len(key) + len(rest) == shape.arity and isinstance(index, dict):
            lookups[key] = rest, index
    rows = shape.size_of(facts)
    sample = shape.sample(facts, SAMPLE if rows > WHOLE else WHOLE)

    indexes_made: dict[Columns, RowsByKey] = {}

    def reader(columns: Columns, keys: Collection[Key], most: int, in_any_case: bool) -> Partners | None:
        if rows <= READ:
            if columns not in indexes_made:
                indexes_made[columns] = _by_key(columns, shape.rows_of(facts))
            return _some_of(indexes_made[columns], keys, most, 1)
        if not in_any_case:
            return None
        step, key_of_row = rows // READ_IN_ANY_CASE + 1, itemgetter(*columns)
        wanted, read = frozenset(keys), islice(shape.rows_of(facts), 0, None, step)
        return _some_of(_by_key(columns, (row for row in read if key_of_row(row) in wanted)), keys, most, step)

    return Statistics(rows, sample, exact, lookups, reader=reader)
