"""The relations of a whole evaluation, on the machine that computes them.

A relation begins with its base facts.  The machine that runs its unit asks for it first, and gets
it in its own form; the other machine gets a converted copy when it first asks, by which time the
relation is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from everlog.core.native.words import SortedRows, SortedWords, empty_words, is_words, new_chooser, new_symbols
from everlog.core.program import Program, Row
from everlog.core.storage.shape import Columns, Key, Shape
from everlog.core.storage.table_statistics import SAMPLE, WHOLE, Partners, Statistics
from everlog.core.storage.tables import Table, TableOf

if TYPE_CHECKING:
    from everlog.core.native import _machine as machine


class Tables(dict[str, Table]):
    """Tables by name, each made when it is first asked for."""

    def __init__(self, make: Callable[[str], Table]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Table:
        self[name] = self._make(name)
        return self[name]


def statistics_of_words(relation: machine.Relation) -> Statistics:
    """What the planner knows of a complete relation of the compiled machine."""

    def reader(columns: Columns, keys: Collection[Key], most: int, in_any_case: bool) -> Partners | None:
        return relation.partners(columns, keys, most)  # so fast that it may always be asked for

    sample = relation.sample(SAMPLE if len(relation) > WHOLE else WHOLE)
    return Statistics(len(relation), sample, reader=reader)


class Relations:
    """Every relation of a program, as a table of Python, as words, or both."""

    def __init__(self, program: Program, shapes: Mapping[str, Shape], base: Mapping[str, Iterable[Row]]) -> None:
        self.program, self.shapes, self._base = program, shapes, base
        self._derived = {rule.head.relation for rule in program.rules}
        self.tables = Tables(self._table)
        self.begin: Callable[[str, Iterable[Row]], Table] | None = None  # makes a table from base facts
        self.words: dict[str, machine.Relation] = {}
        self.choosers: dict[str, machine.Chooser] = {}
        self._statistics: dict[str, Statistics] = {}
        read = (rows.symbols for rows in base.values() if is_words(rows))
        self._symbols: machine.Symbols | None = next(read, None)

    def _table(self, name: str) -> Table:
        if name in self.words:
            shape = self.shapes[name]
            return TableOf(shape, shape.facts_of(self.words[name].rows()))
        assert self.begin is not None
        return self.begin(name, self._base.get(name, ()))

    @property
    def symbols(self) -> machine.Symbols:
        if self._symbols is None:
            self._symbols = new_symbols()
        return self._symbols

    def native(self, name: str) -> machine.Relation:
        """A relation for the compiled machine; NotAWord if a value is not of its column's type."""
        found = self.words.get(name)
        if found is None:
            rows = self.tables[name].rows() if name in self.tables else self._base.get(name, ())
            is_base = name not in self._derived and not self.program.relations[name].choices
            if is_words(rows) and rows.symbols is self.symbols and is_base:
                found = rows  # nothing is added to it
            else:
                found = empty_words(self.program.relations[name], self.symbols)
                found.fill(rows)
                if is_base:
                    found.seal()
                if self.program.relations[name].choices and name not in self.tables:
                    given, found = found, empty_words(self.program.relations[name], self.symbols)
                    self.choosers[name] = new_chooser(found, self.program.relations[name].choices)
                    self.admit(name, given)
            found.advance()
            self.words[name] = found
        return found

    def admit(self, name: str, candidates: machine.Relation) -> None:
        """Add to a relation, in sorted order, the candidates whose keys are free."""
        self.choosers[name].admit(candidates)

    def forget(self, names: Iterable[str]) -> None:
        """Begin relations again, with their base facts."""
        for name in names:
            self.words.pop(name, None)
            self.tables.pop(name, None)

    def statistics(self, name: str) -> Statistics:
        """What the planner knows of a complete relation of the compiled machine."""
        found = self._statistics.get(name)
        if found is None:
            found = self._statistics[name] = statistics_of_words(self.native(name))
        return found

    def all_tables(self) -> dict[str, Table]:
        """Every relation as a table."""
        for name in self.program.relations:
            self.tables[name]
        return self.tables

    def size(self, name: str) -> int:
        return len(self.words[name] if name in self.words else self.tables[name])

    def rows(self, name: str) -> Iterable[Row]:
        """The facts in no order."""
        return self.words[name].rows() if name in self.words else self.tables[name].rows()

    def seal(self, names: Iterable[str]) -> None:
        """Free what only look-ups need: from now on these relations are only read as a whole."""
        for name in names:
            if name in self.words:
                self.words[name].seal()

    def sorted_rows(self, name: str) -> Iterable[Row]:
        if name in self.words:
            return SortedWords(self.words[name])
        table = self.tables[name]
        return SortedRows(partial(table.shape.sorted_rows, table.facts))
