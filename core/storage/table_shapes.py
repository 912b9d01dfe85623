"""The three shapes in which facts are stored, one class each.

Python's sets are fast, so a relation has the form in which rules can work on whole sets:

    `ValueShape`   arity 1           a set of values
    `PairShape`    arity 2           {key: {value, …}}; the value column is chosen once for each
                                     relation, by what its rules carry along
    `RowShape`     arity 0, 3, 4 …   a set of rows
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate, chain, islice, repeat
from operator import itemgetter
from typing import Generic, TypeVar

from everlog.core.program import Row, Value
from everlog.core.storage.shape import (
    Amount,
    Column,
    Columns,
    Counted,
    Function,
    Index,
    Key,
    PairFacts,
    SavedColumns,
    Shape,
    ShapeOf,
    cancel_numbers,
    discard,
    turned,
)

K = TypeVar("K", bound=Key)
_FIRST_VALUES = 16  # a sample takes one of the first values of a key
_SAMPLE = 256  # keys whose sets estimate the number of facts


class SetShape(ShapeOf[set[K]], Generic[K]):
    """Facts in one set: the common part of values and rows."""

    def __init__(self, arity: int) -> None:
        super().__init__(arity, (), tuple(range(arity)))

    @abstractmethod
    def fact_of(self, row: Row) -> K:
        """A row as an element of the set."""

    @abstractmethod
    def rows_of(self, facts: Iterable[K]) -> Iterator[Row]: ...

    def empty(self) -> set[K]:
        return set()

    def has_row(self, facts: set[K], row: Row) -> bool:
        return self.fact_of(row) in facts

    def add_row(self, into: set[K], row: Row) -> None:
        into.add(self.fact_of(row))

    def add_facts(self, into: set[K], facts: set[K]) -> None:
        into |= facts

    def take_facts(self, out_of: set[K], facts: set[K]) -> None:
        out_of -= facts

    def minus(self, facts: set[K], other: set[K]) -> set[K]:
        return facts - other

    def only_new(self, facts: set[K], known: set[K]) -> set[K]:
        facts -= known
        return facts

    def copied(self, facts: set[K]) -> set[K]:
        return set(facts)

    def count_one(self, counted: Counted, row: Row, amount: int) -> None:
        fact = self.fact_of(row)
        counted[fact] = counted.get(fact, 0) + amount

    def get_counted(self, counted: Counted, row: Row) -> Amount:
        return counted.get(self.fact_of(row))

    def set_counted(self, counted: Counted, row: Row, amount: object) -> None:
        counted[self.fact_of(row)] = amount

    def all_with(self, facts: set[K], amount: object) -> Counted:
        return dict.fromkeys(facts, amount)

    def counted_rows(self, counted: Counted) -> Iterator[tuple[Row, Amount]]:
        return zip(self.rows_of(counted), counted.values(), strict=True)

    def support(self, counted: Counted) -> set[K]:
        return set(counted)

    def merge_counted(self, into: Counted, counted: Counted) -> None:
        into.update(counted)

    def take_counted(self, counted: Counted, facts: set[K]) -> Counted:
        return {fact: counted.pop(fact) for fact in facts if fact in counted}

    def cancel(self, plus: Counted, minus: Counted) -> None:
        cancel_numbers(plus, minus)

    def repeated(self, counted: Counted) -> dict[Key, int]:
        return {fact: number for fact, number in counted.items() if number > 1}


class ValueShape(SetShape[Value]):
    """A set of values.

    >>> shape = ValueShape()
    >>> shape.facts_of([(7,), (8,)]) == {7, 8}, list(shape.rows_of({7})), shape.columns_of({7})
    (True, [(7,)], [[7]])
    """

    def __init__(self) -> None:
        super().__init__(1)

    def fact_of(self, row: Row) -> Value:
        return row[0]

    def rows_of(self, facts: Iterable[Value]) -> Iterator[Row]:
        return zip(facts)

    def facts_of(self, rows: Iterable[Row]) -> set[Value]:
        return {value for (value,) in rows}

    def graph_of(self, function: Function) -> set[Value]:
        return set(function.values())

    def by_argument(self, counted: Counted) -> dict[Key, dict[Value, int]]:
        return {(): counted} if counted else {}

    def columns_of(self, facts: Iterable[Value]) -> SavedColumns:
        return [list(facts)]

    def from_columns(self, columns: Iterator[Column]) -> set[Value]:
        return set(next(columns))


class RowShape(SetShape[Row]):
    """A set of rows.

    >>> RowShape(3).columns_of({(1, 2, 3)}), RowShape(0).columns_of({()})
    ([[1], [2], [3]], [[1]])
    """

    def fact_of(self, row: Row) -> Row:
        return row

    def rows_of(self, facts: Iterable[Row]) -> Iterator[Row]:
        return iter(facts)

    def facts_of(self, rows: Iterable[Row]) -> set[Row]:
        return set(rows)

    def graph_of(self, function: Function) -> set[Row]:
        return {(*argument, value) for argument, value in function.items()}

    def by_argument(self, counted: Counted) -> dict[Key, dict[Value, int]]:
        out: dict[Key, dict[Value, int]] = {}
        for row, number in counted.items():
            out.setdefault(row[:-1], {})[row[-1]] = number
        return out

    def columns_of(self, facts: Collection[Row]) -> SavedColumns:
        return turned(facts, self.arity) if self.arity else [[len(facts)]]

    def from_columns(self, columns: Iterator[Column]) -> set[Row]:
        if not self.arity:
            return set(repeat((), next(columns)[0]))
        return set(zip(*islice(columns, self.arity), strict=True))


class PairShape(ShapeOf[PairFacts]):
    """{key: {value, …}}.  No set of values is empty.

    >>> shape = PairShape(value=0)
    >>> sorted(shape.rows_of({"a": {1, 2}})), shape.facts_of([(1, "a"), (1, "b")])
    ([(1, 'a'), (2, 'a')], {'a': {1}, 'b': {1}})
    >>> shape.minus({1: {2, 3}, 4: {5}}, {1: {2}, 4: {5}})
    {1: {3}}
    >>> shape.support({1: {2: 5, 3: 1}}), list(shape.counted_rows({1: {2: 5}}))
    ({1: {2, 3}}, [((2, 1), 5)])
    >>> shape.columns_of({1: {2, 3}, 4: {5}})
    [[1, 4], [2, 1], [2, 3, 5]]
    """

    def __init__(self, value: int = 1) -> None:
        super().__init__(2, (1 - value,), (value,))
        self.key, self.value = 1 - value, value  # the columns of a row

    def row(self, key: Value, value: Value) -> Row:
        return (key, value) if self.value == 1 else (value, key)

    def empty(self) -> PairFacts:
        return {}

    def rows_of(self, facts: PairFacts) -> Iterator[Row]:
        if self.value == 1:
            return chain.from_iterable(zip(repeat(key), values) for key, values in facts.items())
        return chain.from_iterable(zip(values, repeat(key)) for key, values in facts.items())

    def facts_of(self, rows: Iterable[Row]) -> PairFacts:
        out: PairFacts = {}
        get = out.get
        for key, value in rows if self.value == 1 else map(itemgetter(1, 0), rows):
            values = get(key)
            if values is None:
                out[key] = {value}
            else:
                values.add(value)
        return out

    def sorted_rows(self, facts: PairFacts) -> Iterable[Row]:
        """Sorted by key and values, never by pair.

        Cost: with n facts and m values in the first column, O(n + m log m) and one sort per key.
        """
        if self.value == 1:
            return chain.from_iterable(zip(repeat(key), sorted(facts[key])) for key in sorted(facts))
        turned: dict[Value, list[Value]] = defaultdict(list)
        keys_of = turned.__getitem__
        for key in sorted(facts):  # append each key to the list of every value that it has, in C
            deque(map(list.append, map(keys_of, facts[key]), repeat(key)), maxlen=0)
        return chain.from_iterable(zip(repeat(value), turned[value]) for value in sorted(turned))

    def size_of(self, facts: PairFacts) -> int:
        return sum(map(len, facts.values()))

    def rough_size(self, facts: PairFacts) -> int:
        """About how many facts there are, estimated from the values of some keys.

        >>> PairShape().rough_size({key: {1, 2} for key in range(10_000)})
        20000
        """
        if len(facts) <= _SAMPLE:
            return self.size_of(facts)
        return len(facts) * sum(map(len, islice(facts.values(), _SAMPLE))) // _SAMPLE

    def has_row(self, facts: PairFacts, row: Row) -> bool:
        values = facts.get(row[self.key])
        return values is not None and row[self.value] in values

    def add_row(self, into: PairFacts, row: Row) -> None:
        into.setdefault(row[self.key], set()).add(row[self.value])

    def add_facts(self, into: PairFacts, facts: PairFacts) -> None:
        for key, values in facts.items():
            known = into.get(key)
            if known is None:
                into[key] = set(values)
            else:
                known |= values

    def take_facts(self, out_of: PairFacts, facts: PairFacts) -> None:
        for key, values in facts.items():
            known = out_of.get(key)
            if known is not None:
                known -= values
                if not known:
                    del out_of[key]

    def minus(self, facts: PairFacts, other: PairFacts) -> PairFacts:
        out = {}
        for key, values in facts.items():
            known = other.get(key)
            left = values - known if known is not None else set(values)
            if left:
                out[key] = left
        return out

    def only_new(self, facts: PairFacts, known: PairFacts) -> PairFacts:
        if not known:
            return facts
        get = known.get
        for key, values in facts.items():
            old = get(key)
            if old is not None:
                values -= old
        return {key: values for key, values in facts.items() if values}

    def copied(self, facts: PairFacts) -> PairFacts:
        return {key: set(values) for key, values in facts.items()}

    def sample(self, facts: PairFacts, size: int) -> list[Row]:
        """Some of the pairs: a key by its number of values, and one of its first values."""
        ends = list(accumulate(map(len, facts.values())))
        total = ends[-1] if ends else 0
        if total <= size:
            return list(self.rows_of(facts))
        keys = list(facts)
        found: list[Row] = []
        places = [number * total // size for number in range(size)]  # evenly spread over all pairs
        for place, at in zip(places, map(bisect, repeat(ends), places), strict=True):
            key = keys[at]
            values = facts[key]
            skipped = (place - ends[at] + len(values)) % _FIRST_VALUES
            value = next(islice(values, skipped, None) if skipped else iter(values))
            found.append((key, value) if self.key == 0 else (value, key))
        return found

    def lookups(self, facts: PairFacts) -> Mapping[Columns, Mapping[Value, Collection[Value]]]:
        return {(self.key,): facts}

    # ── indexes ──────────────────────────────────────────────────────────────────────────────

    def walk(self, facts: PairFacts, key: Columns, rest: Columns, wanted: Key) -> Iterator[Key]:
        """The keys of a value: an index by key needs no walk."""
        assert key == self.fact_columns
        return (one for one, values in facts.items() if wanted in values)

    def extend(self, index: Index, key: Columns, rest: Columns, facts: PairFacts) -> None:
        if isinstance(index, set) and key + rest == self.key_columns:
            index.update(facts)
        elif isinstance(index, set) and key + rest == self.fact_columns:
            index.update(*facts.values())
        elif isinstance(index, dict) and rest == self.key_columns:
            get = index.get
            for one, values in facts.items():
                for value in values:
                    found = get(value)
                    if found is None:
                        index[value] = {one}
                    else:
                        found.add(one)
        else:
            super().extend(index, key, rest, facts)

    def shrink(self, index: Index, key: Columns, rest: Columns, gone: PairFacts) -> None:
        if isinstance(index, set):
            super().shrink(index, key, rest, gone)
            return
        for one, values in gone.items():  # from values to keys
            for value in values:
                discard(index, value, one)

    # ── counted facts ────────────────────────────────────────────────────────────────────────

    def count_one(self, counted: Counted, row: Row, amount: int) -> None:
        of_key, value = counted.setdefault(row[self.key], {}), row[self.value]
        of_key[value] = of_key.get(value, 0) + amount

    def get_counted(self, counted: Counted, row: Row) -> Amount:
        return counted.get(row[self.key], {}).get(row[self.value])

    def set_counted(self, counted: Counted, row: Row, amount: object) -> None:
        counted.setdefault(row[self.key], {})[row[self.value]] = amount

    def all_with(self, facts: PairFacts, amount: object) -> Counted:
        return {key: dict.fromkeys(values, amount) for key, values in facts.items()}

    def counted_rows(self, counted: Counted) -> Iterator[tuple[Row, Amount]]:
        for key, of_key in counted.items():
            for value, amount in of_key.items():
                yield self.row(key, value), amount

    def support(self, counted: Counted) -> PairFacts:
        return {key: set(of_key) for key, of_key in counted.items() if of_key}

    def merge_counted(self, into: Counted, counted: Counted) -> None:
        for key, of_key in counted.items():
            known = into.get(key)
            if known is None:
                into[key] = of_key
            else:
                known.update(of_key)

    def take_counted(self, counted: Counted, facts: PairFacts) -> Counted:
        out: Counted = {}
        for key, values in facts.items():
            known = counted.get(key)
            if known is not None:
                out[key] = {value: known.pop(value) for value in values if value in known}
                if not known:
                    del counted[key]
        return out

    def cancel(self, plus: Counted, minus: Counted) -> None:
        for key, lost in minus.items():
            came = plus.get(key)
            if came is not None:
                cancel_numbers(came, lost)

    def repeated(self, counted: Counted) -> dict[Key, int]:
        return {(key, value): n for key, of_key in counted.items() for value, n in of_key.items() if n > 1}

    def graph_of(self, function: Function) -> PairFacts:
        assert self.value == 1
        return {argument: {value} for argument, value in function.items()}

    def by_argument(self, counted: Counted) -> dict[Key, dict[Value, int]]:
        assert self.value == 1
        return counted

    # ── columns ──────────────────────────────────────────────────────────────────────────────

    def columns_of(self, facts: PairFacts) -> SavedColumns:
        """The keys, the number of values of each, and all values."""
        return [list(facts), list(map(len, facts.values())), list(chain.from_iterable(facts.values()))]

    def from_columns(self, columns: Iterator[Column]) -> PairFacts:
        keys, lengths, values = next(columns), next(columns), iter(next(columns))
        return {key: set(islice(values, length)) for key, length in zip(keys, lengths, strict=True)}


def shape_of(arity: int, value: int = 1) -> Shape:
    """The shape of a relation; of a binary one, `value` is the value column."""
    return ValueShape() if arity == 1 else PairShape(value) if arity == 2 else RowShape(arity)
