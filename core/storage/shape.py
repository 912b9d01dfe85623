"""The interface of a shape: the three forms in which facts are stored.

A shape holds no facts.  Its methods take them, so that tables, changes and indexes are the plain
sets and dicts that compiled rules work on.  *Counted* facts have a number beside each fact:
{fact: n}, of a binary relation {key: {value: n}}.  The classes are in `table_shapes`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from everlog.core.program import Row, Value

Columns: TypeAlias = tuple[int, ...]
Key: TypeAlias = Value | Row  # the values of some columns: bare if it is one, a tuple if not
Index: TypeAlias = dict[Key, set[Key]] | set[Key]
ValueSet: TypeAlias = set[Value]
PairFacts: TypeAlias = dict[Value, ValueSet]
Amount: TypeAlias = Any  # a number of derivations, or a rank
Counted: TypeAlias = dict[Any, Amount]  # {fact: amount}, or {key: {value: amount}}
Function: TypeAlias = Mapping[Any, Value]  # from all columns of a fact but the last one
Column: TypeAlias = Sequence[Any]  # facts or numbers, as a file holds them
SavedColumns: TypeAlias = list[Column]


Facts: TypeAlias = Collection[object]  # in any form: for code that only passes them on


class Container(Collection[object], Protocol):
    """The common interface of the containers of facts."""

    def clear(self) -> None: ...
    def update(self, facts: Any, /) -> None: ...


F = TypeVar("F", bound=Container)


class ShapeOf(ABC, Generic[F]):
    """The form of a relation's facts.

    Facts are sets of `fact_columns`, one set for each value of the `key_columns`, or just one.
    """

    def __init__(self, arity: int, key_columns: Columns, fact_columns: Columns) -> None:
        self.arity, self.key_columns, self.fact_columns = arity, key_columns, fact_columns

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeOf):
            return False
        return self.arity == other.arity and self.key_columns == other.key_columns

    def __hash__(self) -> int:
        return hash((self.arity, self.key_columns))

    # ── facts ────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def empty(self) -> F: ...

    @abstractmethod
    def rows_of(self, facts: F) -> Iterator[Row]:
        """The facts as rows, in no order."""

    @abstractmethod
    def facts_of(self, rows: Iterable[Row]) -> F:
        """Rows in the form of this shape."""

    def sorted_rows(self, facts: F) -> Iterable[Row]:
        """The facts as rows, in order."""
        return sorted(self.rows_of(facts))

    def size_of(self, facts: F) -> int:
        return len(facts)

    def rough_size(self, facts: F) -> int:
        """About how many facts there are.  Cost: constant."""
        return len(facts)

    @abstractmethod
    def has_row(self, facts: F, row: Row) -> bool: ...

    @abstractmethod
    def add_row(self, into: F, row: Row) -> None: ...

    @abstractmethod
    def add_facts(self, into: F, facts: F) -> None:
        """`into` ∪= facts; sets of values are copied."""

    @abstractmethod
    def take_facts(self, out_of: F, facts: F) -> None:
        """`out_of` ∖= facts."""

    @abstractmethod
    def minus(self, facts: F, other: F) -> F:
        """facts ∖ other, in new containers."""

    @abstractmethod
    def only_new(self, facts: F, known: F) -> F:
        """facts ∖ known; consumes `facts`."""

    @abstractmethod
    def copied(self, facts: F) -> F:
        """The same facts in containers of their own."""

    def sample(self, facts: F, size: int) -> list[Row]:
        """Some of the rows, each with about the same chance."""
        return list(islice(self.rows_of(facts), size))

    def lookups(self, facts: F) -> Mapping[Columns, Mapping[Value, Collection[Any]]]:
        """The columns that the stored facts are an index on, each with that index."""
        return {}

    # ── indexes ──────────────────────────────────────────────────────────────────────────────

    def walk(self, facts: F, key: Columns, rest: Columns, wanted: Key) -> Iterator[Key]:
        """Scan the facts for the rests of one key; True for each if there are no rests."""
        key_of, rest_of = getter(key), getter(rest) if rest else lambda row: True
        one = (wanted,)  # `in` finds NaN, too
        return (rest_of(row) for row in self.rows_of(facts) if key_of(row) in one)

    def is_stored(self, key: Columns, rest: Columns) -> bool:
        """Whether the facts themselves are the index on `key` with `rest`."""
        if self.key_columns:
            return (key, rest) == (self.key_columns, self.fact_columns)
        return not (key and rest) and key + rest == self.fact_columns

    def extend(self, index: Index, key: Columns, rest: Columns, facts: F) -> None:
        """Add facts to an index."""
        if isinstance(index, set):
            index.update(map(getter(key + rest), self.rows_of(facts)))
        else:
            group(index, map(getter(key), self.rows_of(facts)), map(getter(rest), self.rows_of(facts)))

    def shrink(self, index: Index, key: Columns, rest: Columns, gone: F) -> None:
        """Remove facts from an index on all columns."""
        if isinstance(index, set):
            index.difference_update(map(getter(key + rest), self.rows_of(gone)))
        else:
            key_of, rest_of = getter(key), getter(rest)
            for row in self.rows_of(gone):
                discard(index, key_of(row), rest_of(row))

    # ── counted facts ────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def count_one(self, counted: Counted, row: Row, amount: int) -> None:
        """Add to the number of one row."""

    @abstractmethod
    def get_counted(self, counted: Counted, row: Row) -> Amount:
        """The amount of one row."""

    @abstractmethod
    def set_counted(self, counted: Counted, row: Row, amount: object) -> None: ...

    @abstractmethod
    def all_with(self, facts: F, amount: object) -> Counted:
        """Facts, each with the same amount."""

    @abstractmethod
    def counted_rows(self, counted: Counted) -> Iterator[tuple[Row, Amount]]:
        """Rows, each with its amount."""

    @abstractmethod
    def support(self, counted: Counted) -> F:
        """The facts of counted facts."""

    @abstractmethod
    def merge_counted(self, into: Counted, counted: Counted) -> None:
        """Write counted facts over those there; reuses the inner dicts."""

    @abstractmethod
    def take_counted(self, counted: Counted, facts: F) -> Counted:
        """Remove facts from counted facts; return what was removed, for undo."""

    @abstractmethod
    def cancel(self, plus: Counted, minus: Counted) -> None:
        """Subtract from two sets of numbers their common part."""

    @abstractmethod
    def repeated(self, counted: Counted) -> dict[Key, int]:
        """The facts whose number is above 1, a pair as (key, value)."""

    # ── functions of all columns but the last ────────────────────────────────────────────────

    @abstractmethod
    def graph_of(self, function: Function) -> F:
        """The graph of a function, as facts (argument…, value)."""

    @abstractmethod
    def by_argument(self, counted: Counted) -> dict[Key, dict[Value, int]]:
        """Counted facts by all columns but the last: argument → value → amount."""

    # ── columns ──────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def columns_of(self, facts: F) -> SavedColumns:
        """The facts as columns that a file can hold."""

    @abstractmethod
    def from_columns(self, columns: Iterator[Column]) -> F:
        """The inverse of `columns_of`; reads as many columns as it needs."""


Shape: TypeAlias = ShapeOf[Any]  # of a relation that may have any


def sets_of(index: Mapping[Key, set[Key]], keys: Set[Key]) -> Iterable[set[Key]]:
    """The sets that an index has for some keys; absent keys are skipped.

    >>> list(sets_of({1: {2}, 3: {4}}, {3, 5}))
    [{4}]

    Cost: that of the fewer of the two.
    """
    if len(keys) <= len(index):
        return filter(None, map(index.get, keys))
    return map(index.__getitem__, keys & index.keys())


def turned(rows: Collection[Row], width: int) -> SavedColumns:
    """Rows as columns.  (`zip(*rows)` would make an iterator of each row.)

    >>> turned([(1, "a"), (2, "b")], 2), turned([], 2)
    ([[1, 2], ['a', 'b']], [[], []])
    """
    return [list(map(itemgetter(column), rows)) for column in range(width)]


def getter(columns: Columns) -> Callable[[Row], Key]:
    """A function that takes the values of some columns out of a row."""
    return itemgetter(*columns) if columns else lambda row: ()


def group(index: dict[Key, set[Key]], keys: Iterable[Key], rests: Iterable[Key]) -> None:
    get = index.get
    for key, rest in zip(keys, rests, strict=True):
        found = get(key)
        if found is None:
            index[key] = {rest}
        else:
            found.add(rest)


def discard(index: dict[Key, set[Key]], key: Key, rest: Key) -> None:
    found = index.get(key)
    if found is not None:
        found.discard(rest)
        if not found:
            del index[key]


def cancel_numbers(plus: dict[Key, int], minus: dict[Key, int]) -> None:
    """Subtract from both their common part."""
    for fact in [fact for fact in minus if fact in plus]:
        net = plus[fact] - minus[fact]
        if net >= 0:
            del minus[fact]
        if net <= 0:
            del plus[fact]
        if net > 0:
            plus[fact] = net
        elif net < 0:
            minus[fact] = -net
