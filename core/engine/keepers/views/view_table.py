"""The relation of a view, for readers of tables: nothing is stored here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from everlog.core.program import Row, Value
from everlog.core.storage.shape import Columns, Container, Index, SavedColumns, Shape
from everlog.core.storage.tables import TableOf


class FoundRows(Protocol):
    """The facts of a relation, found when somebody asks."""

    def size(self) -> int: ...

    def known_size(self) -> int:
        """The number of facts where that is known; 0 where it would have to be counted."""

    def rows(self) -> Iterator[Row]: ...

    def has(self, row: Row) -> bool: ...

    def having(self, bound: Mapping[int, Value]) -> Iterator[Row]: ...


class ViewTable(TableOf[Container]):
    """Reads go to the keeper, which follows changes by itself: `merge` and `remove` do nothing.

    No rule reads a view, so an index is made for the one reader that asks, and is not kept.
    """

    def __init__(self, shape: Shape, source: FoundRows) -> None:
        self.shape, self.source = shape, source
        self.indexes: dict[tuple[Columns, Columns], Index] = {}
        self.spent: dict[tuple[Columns, Columns], int] = {}

    @property
    def facts(self) -> Container:
        """All facts, in a container of their own."""
        return self.shape.facts_of(self.source.rows())

    @facts.setter
    def facts(self, facts: Container) -> None:
        raise AssertionError("a view has no facts of its own")

    def size(self) -> int:
        return self.source.size()

    def __len__(self) -> int:
        return self.source.size()

    def __iter__(self) -> Iterator[Row]:
        return self.source.rows()

    def __contains__(self, row: object) -> bool:
        return isinstance(row, tuple) and len(row) == self.shape.arity and self.source.has(row)

    def having(self, bound: Mapping[int, Value]) -> Iterator[Row]:
        """The facts with these values in these columns."""
        return self.source.having(bound)

    def about(self) -> int:
        return self.source.known_size()

    def statistics(self) -> None:
        return None

    def rows(self) -> Iterator[Row]:
        return self.source.rows()

    def find(self, key: Columns, rest: Columns) -> None:
        return None

    def index(self, key: Columns, rest: Columns) -> Index | Container:
        return TableOf(self.shape, self.facts).index(key, rest)

    def sorted_rows(self) -> Iterable[Row]:
        return sorted(self.source.rows())

    def columns(self) -> SavedColumns:
        return self.shape.columns_of(self.facts)

    def merge(self, new: Container) -> Container:
        return new

    def remove(self, gone: Container) -> None:
        pass

    def clear(self) -> None:
        pass

    def rebuild(self) -> None:
        pass

    def check(self) -> None:
        pass
