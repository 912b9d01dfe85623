"""How the facts of a relation are stored, and the indexes that rules ask for.

Sets are the fastest thing Python has, so a relation is kept in the form in which rules can work
on whole sets at a time:

    arity 0, 3, 4 …   a set of rows
    arity 1           a set of values
    arity 2           {key: {value, …}}: the *fan* of a key; which column is the fan is chosen
                      once for each relation, by what its rules carry along

An index on `key` columns with `rest` columns maps a key to the set of its rests; a key or rest of
one column is the bare value, of several a tuple; without rest columns the index is the set of
keys.  It is built when a rule first asks for it and follows every merge from then on, in place,
so compiled rules may hold on to it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import Any, TypeAlias

from attrs import field, frozen

from everlog.core.program import Row, Value

Columns: TypeAlias = tuple[int, ...]
Facts: TypeAlias = Any  # a set of rows, a set of values, or {key: fan}: see above


@frozen
class Shape:
    """The form in which a relation's facts are kept: its arity and, of a binary one, its fan
    column.
    """

    arity: int
    fan: int = 1
    key: int = field(init=False, repr=False, eq=False)  # the column of a binary relation that is not the fan

    @key.default
    def _other_column(self) -> int:
        return 1 - self.fan

    def row(self, key: Value, value: Value) -> Row:
        """The row of a binary relation with this key and this value in its fan."""
        return (key, value) if self.fan == 1 else (value, key)

    def empty(self) -> Facts:
        return {} if self.arity == 2 else set()


def count_one(shape: Shape, counted: Any, row: Any, amount: int) -> None:
    """Add to the count of one row, in counts of the form that facts of this shape have."""
    if shape.arity == 2:
        counted = counted.setdefault(row[shape.key], {})
        row = row[shape.fan]
    elif shape.arity == 1:
        row = row[0]
    counted[row] = counted.get(row, 0) + amount


def rows_of(shape: Shape, facts: Facts) -> Iterator[Row]:
    """The facts as rows, in no order.

    >>> sorted(rows_of(Shape(2, fan=0), {"a": {1, 2}}))
    [(1, 'a'), (2, 'a')]
    """
    if shape.arity == 1:
        return zip(facts)
    if shape.arity != 2:
        return iter(facts)
    if shape.fan == 1:
        return chain.from_iterable(zip(repeat(key), fan) for key, fan in facts.items())
    return chain.from_iterable(zip(fan, repeat(key)) for key, fan in facts.items())


def facts_of(shape: Shape, rows: Iterable[Row]) -> Facts:
    """Rows in the form of `shape`."""
    if shape.arity == 1:
        return {value for (value,) in rows}
    if shape.arity != 2:
        return set(rows)
    out: dict[Any, set[Any]] = {}
    get = out.get
    if shape.fan == 1:
        for key, value in rows:
            fan = get(key)
            if fan is None:
                out[key] = {value}
            else:
                fan.add(value)
    else:
        for value, key in rows:
            fan = get(key)
            if fan is None:
                out[key] = {value}
            else:
                fan.add(value)
    return out


def add_facts(shape: Shape, into: Facts, facts: Facts) -> None:
    """`into` ∪= facts; fans are copied."""
    if shape.arity != 2:
        into |= facts
        return
    for key, fan in facts.items():
        known = into.get(key)
        if known is None:
            into[key] = set(fan)
        else:
            known |= fan


def add_row(shape: Shape, into: Facts, row: Row) -> None:
    """`into` ∪= {row}."""
    if shape.arity == 2:
        into.setdefault(row[shape.key], set()).add(row[shape.fan])
    else:
        into.add(row[0] if shape.arity == 1 else row)


def size_of(shape: Shape, facts: Facts) -> int:
    return sum(map(len, facts.values())) if shape.arity == 2 else len(facts)


def rough_size(shape: Shape, facts: Facts) -> int:
    """About how many facts there are: of a binary relation with many keys, by some of its fans.

    >>> rough_size(Shape(2), {key: {1, 2} for key in range(10_000)})
    20000

    Cost: constant.
    """
    if shape.arity != 2 or len(facts) <= _SAMPLE:
        return size_of(shape, facts)
    return len(facts) * sum(map(len, islice(facts.values(), _SAMPLE))) // _SAMPLE


_SAMPLE = 256


def fans_of(index: Mapping[Any, set[Any]], keys: Set[Any]) -> Iterable[set[Any]]:
    """The fans that an index has for those of the keys that it has.

    >>> list(fans_of({1: {2}, 3: {4}}, {3, 5}))
    [{4}]

    Cost: that of the fewer of the two.
    """
    if len(keys) <= len(index):
        return filter(None, map(index.get, keys))
    return map(index.__getitem__, keys & index.keys())


def sorted_rows(shape: Shape, facts: Facts) -> Iterable[Row]:
    """The facts as rows in order; a binary relation is sorted by key and fan, never by pair.

    Cost: of a binary relation with n facts and m values in its first column, O(n + m log m) and
    one sort per fan.
    """
    if shape.arity != 2:
        return sorted(rows_of(shape, facts))
    if shape.fan == 1:
        return chain.from_iterable(zip(repeat(key), sorted(facts[key])) for key in sorted(facts))
    turned: dict[Any, list[Any]] = defaultdict(list)
    keys_of = turned.__getitem__
    for key in sorted(facts):  # each key to the end of the list of every value in its fan, in C
        deque(map(list.append, map(keys_of, facts[key]), repeat(key)), maxlen=0)
    return chain.from_iterable(zip(repeat(value), turned[value]) for value in sorted(turned))


class Table:
    """The facts of one relation with the indexes on them.

    Invariants:
      I1  no fan is empty;
      I2  every index holds exactly what `facts` implies.
    """

    built = 0  # indexes made by any table: code that writes indexes itself looks whether there are new ones

    def __init__(self, shape: Shape, facts: Facts | None = None) -> None:
        self.shape = shape
        self.facts: Facts = shape.empty() if facts is None else facts
        self.indexes: dict[tuple[Columns, Columns], Any] = {}
        self.spent: dict[
            tuple[Columns, Columns], int
        ] = {}  # on lookups without an index: see core.storage.lazy_index

    @property
    def arity(self) -> int:
        return self.shape.arity

    def __len__(self) -> int:
        return size_of(self.shape, self.facts)

    def about(self) -> int:
        """About how many facts there are.  Cost: constant."""
        return rough_size(self.shape, self.facts)

    def rows(self) -> Iterator[Row]:
        return rows_of(self.shape, self.facts)

    def find(self, key: Columns, rest: Columns) -> Any:
        """The index on `key` with `rest` if it is there, perhaps as the facts themselves; None if
        it is not.
        """
        shape = self.shape
        if shape.arity == 2 and key == (shape.key,) and rest == (shape.fan,):
            return self.facts
        if shape.arity == 1 and key + rest == (0,):
            return self.facts
        if shape.arity != 2 and not (key and rest) and key + rest == tuple(range(shape.arity)):
            return self.facts
        return self.indexes.get((key, rest))

    def index(self, key: Columns, rest: Columns) -> Any:
        """The index on `key` with `rest`; built at the first call.  Cost: linear, then constant."""
        found = self.find(key, rest)
        if found is not None:
            return found
        built: Any = {} if key and rest else self._leading(key + rest)
        if not built:
            self._extend(built, key, rest, self.facts)
        Table.built += 1
        self.indexes[key, rest] = built  # only now: an interruption leaves no index that is half built
        return built

    def _leading(self, columns: Columns) -> set[Any]:
        """The values of some columns, if they are the keys of an index; else nothing."""
        return next((set(index) for (key, rest), index in self.indexes.items() if rest and key == columns), set())

    def merge(self, new: Facts) -> None:
        """Add facts that are not there yet, to the relation and to its indexes."""
        self._add(new)
        if self.indexes:
            for (key_columns, rest), index in self.indexes.items():
                self._extend(index, key_columns, rest, new)

    def _add(self, new: Facts) -> None:
        add_facts(self.shape, self.facts, new)

    def _extend(self, index: Any, key: Columns, rest: Columns, facts: Facts) -> None:
        shape = self.shape
        if shape.arity == 2 and key + rest == (shape.key,):
            index.update(facts)
        elif shape.arity == 2 and key + rest == (shape.fan,):
            index.update(*facts.values())
        elif shape.arity == 2 and key == (shape.fan,) and rest == (shape.key,):
            _turn(index, facts)
        elif not key or not rest:
            index.update(map(_getter(key + rest), rows_of(shape, facts)))
        else:
            _group(index, map(_getter(key), rows_of(shape, facts)), map(_getter(rest), rows_of(shape, facts)))

    def remove(self, gone: Facts) -> None:
        """Take facts away, from the relation and from its indexes; those not there are passed over.

        Cost: that of the facts for an index on all columns; an index that leaves columns out does
        not know how many facts stand behind an entry, and is made anew.
        """
        self._take(gone)
        for (key, rest), index in self.indexes.items():
            if len(key) + len(rest) < self.shape.arity:
                index.clear()
                self._extend(index, key, rest, self.facts)
            else:
                self._shrink(index, key, rest, gone)

    def _take(self, gone: Facts) -> None:
        if self.shape.arity != 2:
            self.facts -= gone
            return
        facts = self.facts
        for key, fan in gone.items():
            known = facts.get(key)
            if known is not None:
                known -= fan
                if not known:
                    del facts[key]

    def _shrink(self, index: Any, key: Columns, rest: Columns, gone: Facts) -> None:
        shape = self.shape
        if not key or not rest:
            index.difference_update(map(_getter(key + rest), rows_of(shape, gone)))
            return
        get = index.get
        if shape.arity == 2:  # the table turned: the fan leads to the keys
            for value, fan in gone.items():
                for k in fan:
                    found = get(k)
                    if found is not None:
                        found.discard(value)
                        if not found:
                            del index[k]
            return
        for k, r in zip(
            map(_getter(key), rows_of(shape, gone)), map(_getter(rest), rows_of(shape, gone)), strict=True
        ):
            found = get(k)
            if found is not None:
                found.discard(r)
                if not found:
                    del index[k]

    def clear(self) -> None:
        self.facts.clear()
        for index in self.indexes.values():
            index.clear()

    def replace(self, facts: Facts) -> None:
        """Hold these facts instead, in the same containers: compiled rules keep their indexes."""
        self.facts.clear()
        self.facts.update(facts)
        self.rebuild()

    def rebuild(self) -> None:
        """Make the indexes anew, in place, after facts were taken away."""
        for (key, rest), index in self.indexes.items():
            index.clear()
            self._extend(index, key, rest, self.facts)

    def check(self) -> None:
        if self.shape.arity == 2:
            assert all(self.facts.values()), "I1: a fan is empty"
        for (key, rest), index in self.indexes.items():
            fresh: Any = {} if key and rest else set()
            self._extend(fresh, key, rest, self.facts)
            assert fresh == index, f"I2: index {key} → {rest} is not what the facts imply"


def _turn(index: dict[Any, set[Any]], facts: dict[Any, set[Any]]) -> None:
    get = index.get
    for key, fan in facts.items():
        for value in fan:
            found = get(value)
            if found is None:
                index[value] = {key}
            else:
                found.add(key)


def _group(index: dict[Any, set[Any]], keys: Iterable[Any], rests: Iterable[Any]) -> None:
    get = index.get
    for key, rest in zip(keys, rests, strict=True):
        found = get(key)
        if found is None:
            index[key] = {rest}
        else:
            found.add(rest)


def _getter(columns: Columns) -> Callable[[Row], Any]:
    if not columns:
        return lambda row: ()
    return itemgetter(*columns)
