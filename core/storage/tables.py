"""The facts of a relation, and the indexes that rules ask for.

An index on `key` columns with `rest` columns maps a key to the set of its rests; a key or rest of
one column is the bare value, of several a tuple; without rest columns the index is the set of keys.
It is built when a rule first asks for it and follows every merge from then on, in place, so
compiled rules may keep a reference to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Generic, TypeAlias, cast

from everlog.core.program import Row
from everlog.core.runtime.collector import collector_paused
from everlog.core.storage.shape import Column, Columns, F, Index, Key, PairFacts, SavedColumns, ShapeOf
from everlog.core.storage.table_statistics import Statistics, statistics_of


class TableOf(Collection[Row], Generic[F]):
    """The facts of one relation, a collection of rows, with the indexes on them.

    Invariants:
      I1  no set of values is empty;
      I2  every index holds exactly what `facts` implies.
    """

    built = 0  # indexes built by any table: code that updates indexes itself checks for new ones

    def __init__(self, shape: ShapeOf[F], facts: F | None = None) -> None:
        self.shape = shape
        self.facts: F = shape.empty() if facts is None else facts
        self.indexes: dict[tuple[Columns, Columns], Index] = {}
        self.spent: dict[tuple[Columns, Columns], int] = {}  # cost of lookups without index: LazyIndex

    @property
    def arity(self) -> int:
        return self.shape.arity

    def __len__(self) -> int:
        return self.shape.size_of(self.facts)

    def size(self) -> int:
        """How many facts there are, which may be more than `len` can say."""
        return len(self)

    def __iter__(self) -> Iterator[Row]:
        return self.shape.rows_of(self.facts)

    def __contains__(self, row: object) -> bool:
        return isinstance(row, tuple) and self.shape.has_row(self.facts, row)

    def about(self) -> int:
        """About how many facts there are.  Cost: constant."""
        return self.shape.rough_size(self.facts)

    def statistics(self) -> Statistics | None:
        """Rows, distinct and frequent values, for the planner; None if unknown."""
        return statistics_of(self.shape, self.facts, self.indexes)

    def rows(self) -> Iterator[Row]:
        return self.shape.rows_of(self.facts)

    def find(self, key: Columns, rest: Columns) -> Index | F | None:
        """The index on `key` with `rest`, perhaps the facts themselves; None if not built."""
        return self.facts if self.shape.is_stored(key, rest) else self.indexes.get((key, rest))

    def index(self, key: Columns, rest: Columns) -> Index | F:
        """The index on `key` with `rest`, built at the first call.

        Cost: linear, then constant.
        """
        found = self.find(key, rest)
        if found is not None:
            return found
        built: Index = {} if key and rest else self._leading(key + rest)
        if not built:
            with collector_paused():  # an index stays
                self.shape.extend(built, key, rest, self.facts)
        TableOf.built += 1
        self.indexes[key, rest] = built  # only now: an interruption leaves no half-built index
        return built

    def steps(self, start: int, end: int) -> PairFacts:
        """The values of one column, each with those that it has in another."""
        index: Any = self.index((start,), (end,))  # keys and rests of one column are bare values
        return cast(PairFacts, index)

    def _leading(self, columns: Columns) -> set[Key]:
        """The values of some columns, if they are the keys of an index; else empty."""
        return next((set(index) for (key, rest), index in self.indexes.items() if rest and key == columns), set())

    def sorted_rows(self) -> Iterable[Row]:
        """The facts as rows, in order."""
        return self.shape.sorted_rows(self.facts)

    def merge(self, new: F) -> F:
        """Add facts that are not present to table and indexes; return all new facts."""
        self._add(new)
        if self.indexes:
            for (key, rest), index in self.indexes.items():
                self.shape.extend(index, key, rest, new)
        return new

    def _add(self, new: F) -> None:
        self.shape.add_facts(self.facts, new)

    def remove(self, gone: F) -> None:
        """Remove facts from table and indexes; skip absent ones.

        Cost: that of the facts for an index on all columns; an index that omits columns does not
        count the facts behind an entry, and is rebuilt.
        """
        self._take(gone)
        for (key, rest), index in self.indexes.items():
            if len(key) + len(rest) < self.shape.arity:
                index.clear()
                self.shape.extend(index, key, rest, self.facts)
            else:
                self.shape.shrink(index, key, rest, gone)

    def _take(self, gone: F) -> None:
        self.shape.take_facts(self.facts, gone)

    def difference(self, before: F) -> tuple[F, F]:
        """The facts that the table lost and gained since it held `before`."""
        return self.shape.minus(before, self.facts), self.shape.minus(self.facts, before)

    def clear(self) -> None:
        self.facts.clear()
        for index in self.indexes.values():
            index.clear()

    def replace(self, facts: F) -> None:
        """Replace the facts, in the same containers: compiled rules keep their indexes."""
        self.facts.clear()
        self.facts.update(facts)
        self.rebuild()

    def rebuild(self) -> None:
        """Rebuild the indexes, in place."""
        for (key, rest), index in self.indexes.items():
            index.clear()
            self.shape.extend(index, key, rest, self.facts)

    def columns(self) -> SavedColumns:
        """The facts as columns that a file can hold."""
        return self.shape.columns_of(self.facts)

    def restore(self, columns: Iterator[Column]) -> None:
        """The inverse of `columns`; reads as many columns as it needs."""
        self.replace(self.shape.from_columns(columns))

    def check(self) -> None:
        if isinstance(self.facts, dict):
            assert all(self.facts.values()), "I1: a set of values is empty"
        for (key, rest), index in self.indexes.items():
            fresh: Index = {} if key and rest else set()
            self.shape.extend(fresh, key, rest, self.facts)
            assert fresh == index, f"I2: index {key} → {rest} is not what the facts imply"


Table: TypeAlias = TableOf[Any]  # of a relation of any shape
