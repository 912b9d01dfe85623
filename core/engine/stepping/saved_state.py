"""What a unit keeps, as columns of plain values, and back: for whoever writes it to a file.

Millions of facts with their witnesses are nested dicts and sets; flat they are a few long lists,
which are written and read in C.  A binary relation is cut into runs: the keys, how many values each
has, and all values in a row.  Witnesses are sorted by their rule, since those of one rule have the
same number of hidden values, and so make columns.

A unit that keeps something else (running totals, views of joins) has no columns, and is computed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import Any, TypeAlias

from attrs import frozen

from everlog.core.storage.tables import Facts, Shape

Columns: TypeAlias = list[list[Any]]


@frozen
class Kept:
    """What an engine kept: the numbers that witnesses call rules by, and the columns of units by
    their names.
    """

    numbers: Mapping[str, int]
    units: Mapping[str, Columns]


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


class Runs:
    """Witnesses of one rule on their way into columns."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.lengths: list[int] = []
        self.values: list[Any] = []
        self.witnesses: list[Any] = []


def plain_columns(shape: Shape, data: Mapping[Any, Any]) -> Columns:
    """The witnesses of `PlainProofs`: for each rule its number and width, then facts and hidden
    values.
    """
    by_rule: dict[int, Runs] = {}
    if shape.arity == 2:
        for key, fan in data.items():
            for value, witness in fan.items():
                number = witness[0] if witness else 0
                runs = by_rule.get(number)
                if runs is None:
                    runs = by_rule[number] = Runs()
                if runs.keys and runs.keys[-1] is key:
                    runs.lengths[-1] += 1
                else:
                    runs.keys.append(key)
                    runs.lengths.append(1)
                runs.values.append(value)
                runs.witnesses.append(witness)
    else:
        for fact, witness in data.items():
            runs = by_rule.setdefault(witness[0] if witness else 0, Runs())
            runs.values.append(fact)
            runs.witnesses.append(witness)
    columns: Columns = [_head(by_rule)]
    for number, runs in by_rule.items():
        if shape.arity == 2:
            columns += [runs.keys, runs.lengths, runs.values]
        elif shape.arity == 1:
            columns.append(runs.values)
        else:
            columns += turned(runs.values, shape.arity)
        columns += _hidden(number, runs)
    return columns


def plain_from(shape: Shape, columns: Iterator[list[Any]]) -> dict[Any, Any]:
    data: dict[Any, Any] = {}
    for number, width in _rules(next(columns)):
        if shape.arity == 2:
            keys, lengths, values = next(columns), next(columns), iter(next(columns))
            witnesses = _witnesses(number, width, columns)
            for key, length in zip(keys, lengths, strict=True):
                fan = dict(zip(islice(values, length), witnesses, strict=False))
                known = data.get(key)
                if known is None:
                    data[key] = fan
                else:
                    known.update(fan)
        else:
            facts = list(islice(columns, shape.arity)) if shape.arity else [[()]]
            flat = facts[0] if shape.arity <= 1 else zip(*facts, strict=True)
            data.update(zip(flat, _witnesses(number, width, columns), strict=False))
    return data


def grouped_columns(data: Mapping[Any, Mapping[Any, Any]]) -> Columns:
    """The witnesses of `GroupedProofs`: for each rule keys, sizes and values of sets, hidden
    values.
    """
    by_rule: dict[int, Runs] = {}
    for key, groups in data.items():
        for witness, values in groups.items():
            runs = by_rule.setdefault(witness[0] if witness else 0, Runs())
            runs.keys.append(key)
            runs.witnesses.append(witness)
            runs.lengths.append(len(values))
            runs.values.extend(values)
    columns: Columns = [_head(by_rule)]
    for number, runs in by_rule.items():
        columns += [runs.keys, runs.lengths, runs.values, *_hidden(number, runs)]
    return columns


def grouped_from(columns: Iterator[list[Any]]) -> dict[Any, dict[Any, set[Any]]]:
    data: dict[Any, dict[Any, set[Any]]] = {}
    for number, width in _rules(next(columns)):
        keys, lengths, values = next(columns), next(columns), iter(next(columns))
        for key, length, witness in zip(keys, lengths, _witnesses(number, width, columns), strict=False):
            data.setdefault(key, {})[witness] = set(islice(values, length))
    return data


def _head(by_rule: Mapping[int, Runs]) -> list[int]:
    """Number and width of each rule; the witness of a fact that is given has none."""
    return [n for number, runs in by_rule.items() for n in (number, len(runs.witnesses[0]) - 1 if number else 0)]


def _rules(head: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(head[::2], head[1::2], strict=True)


def _hidden(number: int, runs: Runs) -> Columns:
    return turned(runs.witnesses, len(runs.witnesses[0]))[1:] if number else []


def _witnesses(number: int, width: int, columns: Iterator[list[Any]]) -> Iterator[tuple[Any, ...]]:
    if not number:
        return repeat(())
    return zip(repeat(number), *islice(columns, width), strict=False)
