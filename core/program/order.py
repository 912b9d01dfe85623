"""The order of rows and values, total also where a float is NaN."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from everlog.core.program import Row, Value


class Ordered(Protocol):
    """A value, or what stands for it in an order, among others of its kind."""

    def __lt__(self, other: Any, /) -> bool: ...


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Rows of one relation in sorted order; NaN, which Python cannot sort, comes last.

    >>> ordered([(float("nan"),), (2.0,), (1.0,)])
    [(1.0,), (2.0,), (nan,)]
    """
    return sorted(rows, key=lambda row: [rank(value) for value in row])


def rank(value: Value) -> Ordered:
    """The sort key of a value among values of one kind: total also with NaN."""
    return value != value, value
