"""Relations of the compiled machine, for code that may run without it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeGuard

from everlog.core.program import Kind, Relation, Row, Value
from everlog.core.storage.shape import Column

if TYPE_CHECKING:
    from everlog.core.native import _machine as machine

KIND_NUMBERS = {Kind.NUMBER: 0, Kind.UNSIGNED: 1, Kind.FLOAT: 2, Kind.SYMBOL: 3}


def new_symbols() -> machine.Symbols:
    """The symbols of one evaluation; only where the machine was built."""
    from everlog.core.native import _machine as machine

    return machine.Symbols()


_CODES = {Kind.NUMBER: "q", Kind.UNSIGNED: "Q", Kind.FLOAT: "d"}


def column_of(words: memoryview, kind: Kind, symbols: machine.Symbols) -> Sequence[Value]:
    """The values of a column of words: an array, or a list of symbols."""
    if kind is Kind.SYMBOL:
        return symbols.texts_of(words.cast("q"))
    column: array[int] | array[float] = array(_CODES[kind])
    column.frombytes(words)
    return column


def words_of(column: Column, kind: Kind, symbols: machine.Symbols) -> bytes | memoryview:
    """The inverse of `column_of`, for any array of integers."""
    from everlog.core.native import _machine as machine

    if kind is Kind.SYMBOL:
        return symbols.numbers(list(column))
    if not isinstance(column, array) or (column.typecode == "d") != (kind is Kind.FLOAT):
        column = array(_CODES[kind], column)
    return machine.widened(column)


def save_memory() -> None:
    """Return freed memory to the system: for a process that evaluates a program and ends."""
    from everlog.core.native import _machine as machine

    machine.large_arrays_apart()


def empty_words(relation: Relation, symbols: machine.Symbols) -> machine.Relation:
    from everlog.core.native import _machine as machine

    return machine.Relation(tuple(KIND_NUMBERS[column.kind] for column in relation.columns), symbols)


def new_settling() -> machine.Settling:
    """Maps to a best value, settled together; only where the machine was built."""
    from everlog.core.native import _machine as machine

    return machine.Settling()


def new_chooser(relation: machine.Relation, keys: tuple[tuple[int, ...], ...]) -> machine.Chooser:
    """Adds to a relation the facts that agree with no other one on all columns of a key."""
    from everlog.core.native import _machine as machine

    return machine.Chooser(relation, keys)


def is_words(rows: object) -> TypeGuard[machine.Relation]:
    """Whether rows are a relation of the compiled machine."""
    return type(rows).__module__ == "everlog.core.native._machine"


def are_words(rows: object) -> TypeGuard[machine.Words]:
    """Whether rows are words of the compiled machine, which become tuples when they are read."""
    return is_words(rows)


def alone(rows: object) -> machine.Relation | None:
    """The rows of a living relation of the compiled machine, in another one; None for others."""
    if type(rows).__module__ != "everlog.core.native._machine":
        return None
    from everlog.core.native import _machine as machine

    return rows.alone() if isinstance(rows, machine.Live) else None


class SortedRows:
    """The rows of a relation in sorted order; those with a NaN may be anywhere."""

    def __init__(self, make: Callable[[], Iterable[Row]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Row]:
        return iter(self._make())


class SortedWords:
    """The rows of a relation in sorted order: as tuples, lines of a file, or columns."""

    def __init__(self, relation: machine.Relation) -> None:
        self._relation = relation

    def __iter__(self) -> Iterator[Row]:
        return self._relation.sorted_rows()

    def __len__(self) -> int:
        return len(self._relation)

    @property
    def symbols(self) -> machine.Symbols:
        return self._relation.symbols

    def columns(self, size: int) -> Iterator[list[bytearray]]:
        """The words of each column, in parts of at most `size` rows."""
        return self._relation.columns(size)

    def lines(self, delimiter: str) -> Iterator[bytes] | None:
        """All lines, in chunks of bytes; None if some value needs quotes or has no UTF-8."""
        return self._relation.lines(delimiter)
