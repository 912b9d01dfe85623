"""What a unit keeps, as columns of plain values, and back: for whoever writes it to a file.

Millions of facts with their witnesses are nested dicts and sets; flat they are a few long lists,
which are written and read in C.  A binary relation is cut into runs: the keys, how many values each
has, and all values in a row.  Witnesses are sorted by their rule, since those of one rule have the
same number of hidden values, and so make columns.

A unit that keeps something else (running totals, views of joins) has no columns, and is computed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Any, TypeAlias

from attrs import frozen

from everlog.core.program import Value
from everlog.core.storage.shape import Column, Counted, Key, SavedColumns, Shape, ValueSet, turned
from everlog.core.storage.table_shapes import PairShape, ValueShape

Columns: TypeAlias = SavedColumns
Witness: TypeAlias = tuple[int, *tuple[Value, ...]] | tuple[()]  # a rule and values; of a given fact nothing


@frozen
class Kept:
    """What an engine kept: the numbers of rules in witnesses, and the units' columns."""

    numbers: Mapping[str, int]
    units: Mapping[str, Columns]


def count_columns(shape: Shape, counts: Mapping[Key, int]) -> Columns:
    """The counts of `core.engine.keepers.counted`: a bare value, or a tuple, and its number."""
    return [list(counts.values()), *_keys_apart(shape, counts)]


def counts_from(shape: Shape, columns: Iterator[Column]) -> dict[Key, int]:
    numbers = next(columns)
    return dict(zip(_keys_from(shape, columns, len(numbers)), numbers, strict=True))


def _keys_apart(shape: Shape, keys: Collection[Any]) -> Columns:
    """Keys, bare values or tuples, as a column for each column of the relation."""
    return [list(keys)] if isinstance(shape, ValueShape) else turned(keys, shape.arity)


def _keys_from(shape: Shape, columns: Iterator[Column], number: int) -> Iterable[Key]:
    """The inverse of `_keys_apart`."""
    if isinstance(shape, ValueShape):
        return next(columns)
    return zip(*islice(columns, shape.arity), strict=True) if shape.arity else [()] * number


class Runs:
    """Witnesses of one rule on their way into columns."""

    def __init__(self) -> None:
        self.keys: Column = []
        self.lengths: list[int] = []
        self.values: Column = []
        self.witnesses: Column = []


def plain_columns(shape: Shape, data: Counted) -> Columns:
    """The witnesses of `ProofsOf`: rules and widths, then facts and hidden values."""
    by_rule: dict[int, Runs] = {}
    if isinstance(shape, PairShape):
        for key, of_key in data.items():
            for value, witness in of_key.items():
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
        if isinstance(shape, PairShape):
            columns += [runs.keys, runs.lengths, runs.values]
        else:
            columns += _keys_apart(shape, runs.values)
        columns += _hidden(number, runs)
    return columns


def plain_from(shape: Shape, columns: Iterator[Column]) -> Counted:
    data: Counted = {}
    for number, width in _rules(next(columns)):
        if isinstance(shape, PairShape):
            keys, lengths, values = next(columns), next(columns), iter(next(columns))
            witnesses = _witnesses(number, width, columns)
            for key, length in zip(keys, lengths, strict=True):
                data.setdefault(key, {}).update(zip(islice(values, length), witnesses, strict=False))
        else:
            facts = _keys_from(shape, columns, 1)
            data.update(zip(facts, _witnesses(number, width, columns), strict=False))
    return data


def grouped_columns(data: Mapping[Value, Mapping[Witness, ValueSet]]) -> Columns:
    """The witnesses of `GroupedProofs`: by rule keys, sizes, values, hidden values."""
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


def grouped_from(columns: Iterator[Column]) -> dict[Value, dict[Witness, ValueSet]]:
    data: dict[Value, dict[Witness, ValueSet]] = {}
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


def _witnesses(number: int, width: int, columns: Iterator[Column]) -> Iterator[Any]:
    if not number:
        return repeat(())
    return zip(repeat(number), *islice(columns, width), strict=False)
