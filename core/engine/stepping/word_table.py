"""The table of a relation that the compiled machine keeps: Python's containers only on demand.

The machine has the rows as words.  Sets and indexes of Python objects are made when a rule or a
query in Python asks for them, and follow every change from then on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Protocol

from everlog.core.native.words import SortedWords, alone
from everlog.core.program import Row
from everlog.core.storage.shape import Container, SavedColumns, Shape
from everlog.core.storage.table_statistics import SAMPLE, Statistics
from everlog.core.storage.tables import TableOf


class RowSource(Collection[Row], Protocol):
    """The rows of a relation, wherever they are."""


class WordTable(TableOf[Container]):
    """Invariant: once `made`, facts and indexes are those of the source, but for a change that the
    source has and that is being told: `behind`.
    """

    def __init__(self, shape: Shape) -> None:
        self._facts: Container = shape.empty()
        self.made = False
        self.source: RowSource = ()
        self.behind: tuple[Container, Container] | None = None  # facts that went, that came
        super().__init__(shape, self._facts)

    @property
    def facts(self) -> Container:
        if not self.made:
            self._fill(self._facts)
            self.made = True
        return self._facts

    @facts.setter
    def facts(self, facts: Container) -> None:
        self._facts = facts

    def _fill(self, facts: Container) -> None:
        facts.clear()
        self.shape.add_facts(facts, self.shape.facts_of(self.source))
        if self.behind is not None:
            gone, new = self.behind
            self.shape.take_facts(facts, new)
            self.shape.add_facts(facts, gone)

    def _read(self) -> Iterable[Row]:
        """All rows, from wherever they are at hand."""
        return self.shape.rows_of(self.facts) if self.made or self.behind is not None else self.source

    def __len__(self) -> int:
        return self.shape.size_of(self._facts) if self.made else len(self.source)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._read())

    def __contains__(self, row: object) -> bool:
        if self.made or self.behind is not None:
            return isinstance(row, tuple) and self.shape.has_row(self.facts, row)
        return row in self.source

    def about(self) -> int:
        return len(self.source)

    def rows(self) -> Iterator[Row]:
        return iter(self._read())

    def sorted_rows(self) -> Iterable[Row]:
        return self.shape.sorted_rows(self.shape.facts_of(self._read()))

    def statistics(self) -> Statistics | None:
        if self.made:
            return super().statistics()
        return Statistics(len(self.source), list(islice(self.source, SAMPLE)))

    def words(self) -> SortedWords | None:
        found = None if self.behind is not None else alone(self.source)
        return None if found is None else SortedWords(found)

    def columns(self) -> SavedColumns:
        return self.shape.columns_of(self.shape.facts_of(self._read()))

    # ── changes ──────────────────────────────────────────────────────────────────────────────

    def fall_behind(self, gone: Container, new: Container) -> None:
        """The source has changed; readers are told next, by `remove` and `merge`."""
        self.behind = gone, new

    def caught_up(self) -> None:
        self.behind = None

    def remove(self, gone: Container) -> None:
        if self.made:
            super().remove(gone)
        elif self.behind is not None:
            self.behind = self.shape.empty(), self.behind[1]

    def merge(self, new: Container) -> Container:
        if self.made:
            return super().merge(new)
        if self.behind is not None:
            self.behind = self.behind[0], self.shape.empty()
        return new

    def renew(self) -> None:
        """The source has changed, and readers were not told how: make the table again."""
        self.behind = None
        if self.made:
            self._fill(self._facts)
            self.rebuild()

    def check(self) -> None:
        assert self.behind is None
        if self.made:
            assert set(self.shape.rows_of(self._facts)) == set(self.source), "others than those of the source"
            super().check()
