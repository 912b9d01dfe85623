"""Sorted rows, without one long sort.

Python sorts a list in one go: no other thread runs meanwhile, and no timer stops it.  Here runs of
some ten thousand rows are sorted, and merged as the rows are read: a page costs only its own part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import chain, islice
from typing import Any

from everlog.core.program import Kind, Relation, Row

_RUN = 20_000  # rows per sort: some ten milliseconds


def runs_of(rows: Iterable[Row]) -> list[list[Row]]:
    """All rows, in lists of limited length."""
    source, runs = iter(rows), []
    while run := list(islice(source, _RUN)):
        runs.append(run)
    return runs


def in_order(relation: Relation, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows as `everlog.files.text_values.sorted_rows` sorts them.

    >>> from everlog.core.program import Column
    >>> list(in_order(Relation("n", (Column("x", Kind.FLOAT),)), [(2.0,), (float("nan"),), (1.0,)]))
    [(nan,), (1.0,), (2.0,)]
    """
    return merged(relation, runs_of(rows))


def merged(relation: Relation, runs: list[list[Row]]) -> Iterator[Row]:
    """The rows of all runs, sorted; the runs are sorted in place."""
    key = row_key(relation, chain.from_iterable(runs))
    for run in runs:
        run.sort(key=key)
    return iter(runs[0]) if len(runs) == 1 else merge(*runs, key=key)


def _with_place_for_nan(row: Row) -> tuple[tuple[bool, object], ...]:
    return tuple(map(place_for_nan, row))


def place_for_nan(value: object) -> tuple[bool, object]:
    """A key that puts NaN before all numbers."""
    return value == value, value if value == value else 0


def row_key(relation: Relation, rows: Iterable[Row]) -> Callable[[Row], Any] | None:
    """The key that sorts rows of a relation; None if they need none."""
    floats = [n for n, column in enumerate(relation.columns) if column.kind is Kind.FLOAT]
    has_nan = bool(floats) and any(row[n] != row[n] for row in rows for n in floats)
    return _with_place_for_nan if has_nan else None


def all_sorted(rows: list[Row], key: Callable[[Row], Any] | None, reverse: bool = False) -> list[Row]:
    """All rows, sorted.

    Runs are sorted, then joined two by two: Python merges two sorted halves in one linear pass, so
    that no call takes longer than such a pass, and a timer can stop the work in between.

    >>> from operator import itemgetter
    >>> all_sorted([(3,), (1,), (2,)], None), all_sorted([(1, 2), (2, 1)], itemgetter(1))
    ([(1,), (2,), (3,)], [(2, 1), (1, 2)])
    """
    runs = [sorted(run, key=key, reverse=reverse) for run in runs_of(rows)]
    while len(runs) > 1:
        pairs = zip(runs[::2], runs[1::2], strict=False)
        joined = [sorted(first + second, key=key, reverse=reverse) for first, second in pairs]
        runs = joined + ([runs[-1]] if len(runs) % 2 else [])
    return runs[0] if runs else []
