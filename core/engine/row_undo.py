"""How to take back what written-out updates do, row by row; it works whether or not the change was
made.
"""

from __future__ import annotations

from typing import Any

from everlog.core.program import Row
from everlog.core.storage.tables import Table


def put_row(table: Table, row: Row) -> None:
    table.merge(table.shape.facts_of([row]))


def take_row(table: Table, row: Row) -> None:
    table.remove(table.shape.facts_of([row]))


def set_count(counts: dict[Any, int], fact: Any, number: int | None) -> None:
    """The count that is written down for a fact; None: none is."""
    if number is None:
        counts.pop(fact, None)
    else:
        counts[fact] = number


def set_group(groups: dict[Any, int], values: dict[Any, int], group: Any, number: int) -> None:
    if number:
        groups[group] = values[group] = number
    else:
        groups.pop(group, None)
        values.pop(group, None)
