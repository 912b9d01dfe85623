"""Sorted rows, without one long sort.

Python sorts a list in one go: no other thread runs meanwhile, and no timer stops it.  Here runs of
some ten thousand rows are sorted, and merged as the rows are read: a page costs only its own part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice

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
    floats = [n for n, column in enumerate(relation.columns) if column.kind is Kind.FLOAT]
    key = _with_place_for_nan if any(row[n] != row[n] for run in runs for n in floats for row in run) else None
    for run in runs:
        run.sort(key=key)
    return iter(runs[0]) if len(runs) == 1 else merge(*runs, key=key)


def _with_place_for_nan(row: Row) -> tuple[tuple[bool, object], ...]:
    return tuple((value == value, value if value == value else 0) for value in row)
