"""Arithmetic on facts in the form of their shape: sets, fans and counted facts.

A binary relation is {key: {value, …}}, any other a set (see core.storage.tables).  *Counted* facts
map a fact to a number or a witness: {key: {value: n}} for a binary relation, {fact: n} for any
other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from everlog.core.program import Row
from everlog.core.storage.equivalence import Classes, lacking
from everlog.core.storage.shared_fans import SharedTable
from everlog.core.storage.tables import Facts, Shape, Table, facts_of, rows_of


def support(shape: Shape, counted: Any) -> Facts:
    """The facts that counted facts speak of.

    >>> support(Shape(2), {1: {2: 5, 3: 1}})
    {1: {2, 3}}
    """
    if shape.arity == 2:
        return {key: set(fan) for key, fan in counted.items() if fan}
    return set(counted)


def minus(shape: Shape, facts: Facts, other: Facts) -> Facts:
    """facts ∖ other, in new containers.

    >>> minus(Shape(2), {1: {2, 3}, 4: {5}}, {1: {2}, 4: {5}})
    {1: {3}}
    """
    if shape.arity != 2:
        return facts - other
    out = {}
    for key, fan in facts.items():
        known = other.get(key)
        left = fan - known if known is not None else set(fan)
        if left:
            out[key] = left
    return out


def merge_counted(shape: Shape, into: Any, counted: Any) -> None:
    """Write counted facts over those there; the inner dicts are taken over."""
    if shape.arity != 2:
        into.update(counted)
        return
    for key, fan in counted.items():
        known = into.get(key)
        if known is None:
            into[key] = fan
        else:
            known.update(fan)


def take_counted(shape: Shape, counted: Any, facts: Facts) -> Any:
    """Remove facts from counted facts; what they had, for putting it back."""
    out: dict[Any, Any] = {}
    if shape.arity != 2:
        for fact in facts:
            if fact in counted:
                out[fact] = counted.pop(fact)
        return out
    for key, fan in facts.items():
        known = counted.get(key)
        if known is not None:
            out[key] = {value: known.pop(value) for value in fan if value in known}
            if not known:
                del counted[key]
    return out


def get_counted(shape: Shape, counted: Any, row: Any, default: Any = None) -> Any:
    """What counted facts have for one row."""
    if shape.arity == 2:
        counted = counted.get(row[shape.key])
        return default if counted is None else counted.get(row[shape.fan], default)
    return counted.get(row[0] if shape.arity == 1 else row, default)


def counted_rows(shape: Shape, counted: Any) -> Iterator[tuple[Row, Any]]:
    """Rows, each with what counted facts have for it.

    >>> list(counted_rows(Shape(2, fan=0), {1: {2: 5}}))
    [((2, 1), 5)]
    """
    if shape.arity == 2:
        for key, fan in counted.items():
            for value, number in fan.items():
                yield shape.row(key, value), number
    else:
        for fact, number in counted.items():
            yield (fact,) if shape.arity == 1 else fact, number


def has_row(shape: Shape, facts: Facts, row: Any) -> bool:
    if shape.arity == 2:
        fan = facts.get(row[shape.key])
        return fan is not None and row[shape.fan] in fan
    return (row[0] if shape.arity == 1 else row) in facts


def copied(shape: Shape, facts: Facts) -> Facts:
    """The same facts in containers of their own."""
    if shape.arity != 2:
        return set(facts)
    return {key: set(fan) for key, fan in facts.items()}


def reshaped(shape: Shape, other: Shape, facts: Facts) -> Facts:
    """Facts of one shape in the form of another (where the arity is the same)."""
    return facts_of(other, rows_of(shape, facts)) if shape.arity == other.arity else copied(shape, facts)


def difference(table: Table, before: Facts) -> tuple[Facts, Facts]:
    """What a table has lost and gained since it held the facts `before`."""
    if isinstance(table, Classes | SharedTable):
        return lacking(before, table.facts), lacking(table.facts, before)
    return minus(table.shape, before, table.facts), minus(table.shape, table.facts, before)
