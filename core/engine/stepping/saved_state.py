"""A unit's state as columns of plain values, and back, for a file.

Facts in memory are nested dicts and sets; as a few long lists they are written and read in C (see
`columns` and `restore` of tables).
A unit that keeps something else (running totals, views of joins) is not saved, but recomputed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeAlias

from everlog.core.storage.shape import Column, Counted, Key, SavedColumns, Shape, turned
from everlog.core.storage.table_shapes import ValueShape

Columns: TypeAlias = SavedColumns


def count_columns(shape: Shape, counts: Counted) -> Columns:
    """The counts of `core.engine.keepers.counted` as columns: numbers, then facts."""
    facts = [list(counts)] if isinstance(shape, ValueShape) else turned(counts, shape.arity)
    return [list(counts.values()), *facts]


def counts_from(shape: Shape, columns: Iterator[Column]) -> dict[Key, int]:
    """The inverse of `count_columns`."""
    numbers = next(columns)
    facts: Iterable[Key] = [()] * len(numbers)
    if shape.arity:
        facts = next(columns) if isinstance(shape, ValueShape) else zip(*islice(columns, shape.arity), strict=True)
    return dict(zip(facts, numbers, strict=True))
