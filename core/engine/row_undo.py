"""Undo of compiled updates, row by row; works whether or not they were made."""

from __future__ import annotations

from everlog.core.program import Row
from everlog.core.storage.shape import Key
from everlog.core.storage.tables import Table


def put_row(table: Table, row: Row) -> None:
    table.merge(table.shape.facts_of([row]))


def take_row(table: Table, row: Row) -> None:
    table.remove(table.shape.facts_of([row]))


def set_count(counts: dict[Key, int], fact: Key, number: int | None) -> None:
    """Set the stored count of a fact; None removes it."""
    if number is None:
        counts.pop(fact, None)
    else:
        counts[fact] = number


def set_group(groups: dict[Key, int], values: dict[Key, int], group: Key, total: int, value: int) -> None:
    """Set total and value of a group; zeros are not stored."""
    for stored, number in ((groups, total), (values, value)):
        if number:
            stored[group] = number
        else:
            stored.pop(group, None)
