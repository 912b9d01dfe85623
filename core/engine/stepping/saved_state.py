"""What a unit keeps, as columns of plain values, and back: for whoever writes it to a file.

Millions of facts are nested dicts and sets; flat they are a few long lists, which are written and
read in C.  A binary relation is cut into runs: the keys, how many values each has, and all values
in a row.  Witnesses are not written: a unit makes them when it first needs them.

A unit that keeps something else (running totals, views of joins) has no columns, and is computed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import Any, TypeAlias

from everlog.core.storage.tables import Facts, Shape

Columns: TypeAlias = list[list[Any]]


# ── facts ────────────────────────────────────────────────────────────────────────────────────


def fact_columns(shape: Shape, facts: Facts) -> Columns:
    """
    >>> fact_columns(Shape(2), {1: {2, 3}, 4: {5}}), fact_columns(Shape(1), {7}), fact_columns(Shape(0), {()})
    ([[1, 4], [2, 1], [2, 3, 5]], [[7]], [[1]])
    """
    if shape.arity == 0:
        return [[len(facts)]]
    if shape.arity == 1:
        return [list(facts)]
    if shape.arity == 2:
        return [list(facts), list(map(len, facts.values())), list(chain.from_iterable(facts.values()))]
    return turned(facts, shape.arity)


def facts_from(shape: Shape, columns: Iterator[list[Any]]) -> Facts:
    """The inverse of `fact_columns`, which takes as many columns as it needs."""
    if shape.arity == 0:
        return set(repeat((), next(columns)[0]))
    if shape.arity == 1:
        return set(next(columns))
    if shape.arity == 2:
        keys, lengths, values = next(columns), next(columns), iter(next(columns))
        return {key: set(islice(values, length)) for key, length in zip(keys, lengths, strict=True)}
    return set(zip(*islice(columns, shape.arity), strict=True))


def shared_columns(facts: Mapping[Any, Any]) -> Columns:
    """The facts of a binary relation in which keys share fans: keys by fan, then the fans.

    >>> fan = {7}
    >>> shared_columns({1: fan, 2: {8, 9}, 3: fan})
    [[2, 1], [1, 3, 2], [1, 2], [7, 8, 9]]
    """
    groups: dict[int, list[Any]] = {}
    for key, fan in facts.items():
        groups.setdefault(id(fan), []).append(key)
    fans = [facts[keys[0]] for keys in groups.values()]
    return [
        list(map(len, groups.values())),
        list(chain.from_iterable(groups.values())),
        list(map(len, fans)),
        list(chain.from_iterable(fans)),
    ]


def shared_from(columns: Iterator[list[Any]]) -> dict[Any, set[Any]]:
    """The inverse of `shared_columns`."""
    numbers, keys, lengths, values = next(columns), iter(next(columns)), next(columns), iter(next(columns))
    facts: dict[Any, set[Any]] = {}
    for number, length in zip(numbers, lengths, strict=True):
        fan = set(islice(values, length))
        facts.update(dict.fromkeys(islice(keys, number), fan))
    return facts


def class_columns(facts: Facts) -> Columns:
    """The classes of an equivalence relation, whose members share their fans.

    >>> class_columns({1: {1, 2}, 2: {1, 2}, 3: {3}})
    [[2, 1], [1, 2, 3]]
    """
    classes: dict[Any, Any] = {}
    seen: set[Any] = set()
    for member, fan in facts.items():
        if member not in seen:
            classes[member] = fan
            seen |= fan
    return [list(map(len, classes.values())), list(chain.from_iterable(classes.values()))]


def classes_from(columns: Iterator[list[Any]]) -> Facts:
    lengths, members = next(columns), iter(next(columns))
    facts: dict[Any, set[Any]] = {}
    for length in lengths:
        fan = set(islice(members, length))
        facts.update(dict.fromkeys(fan, fan))
    return facts


def turned(rows: Collection[Any], width: int) -> Columns:
    """Rows as columns.  (`zip(*rows)` would make an iterator of each row.)

    >>> turned([(1, "a"), (2, "b")], 2), turned([], 2)
    ([[1, 2], ['a', 'b']], [[], []])
    """
    return [list(map(itemgetter(column), rows)) for column in range(width)]


# ── facts with something beside them ─────────────────────────────────────────────────────────


def count_columns(shape: Shape, counts: Mapping[Any, int]) -> Columns:
    """The counts of `core.engine.keepers.counted`: a bare value, or a tuple, and its number."""
    facts = [[*counts]] if shape.arity == 1 else turned(counts, shape.arity)
    return [list(counts.values()), *facts]


def counts_from(shape: Shape, columns: Iterator[list[Any]]) -> dict[Any, int]:
    numbers = next(columns)
    facts = list(islice(columns, shape.arity))
    if shape.arity == 0:
        return dict.fromkeys([()] * len(numbers), *numbers[:1])
    return dict(zip(facts[0] if shape.arity == 1 else zip(*facts, strict=True), numbers, strict=True))
