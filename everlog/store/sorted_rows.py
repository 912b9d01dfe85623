"""Relations in a file that are read as needed: blocks of rows in sorted order.

A checkpoint writes the rows of a relation by value, column by column, in blocks of the same size
(`checkpoint.write_rows`).  So rows with known values in their first columns are next to each other,
and a binary search over blocks, then in one block, finds them.  A block is verified whenever it is
read.

SQLite maps the file.  A connection of its own holds one state of it, whatever a writer does.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from sqlite3 import Connection
from typing import Any, TypeAlias

from everlog.core.engine.stored_rows import Unreadable
from everlog.core.native.availability import NotAWord, why_not
from everlog.core.native.words import empty_words, new_symbols
from everlog.core.program import Kind, Relation, Row, Value
from everlog.store.checkpoint import FACTS
from everlog.store.column_codec import BadRecord, decoded_columns
from everlog.store.errors import StateLost, StoreError
from everlog.store.file import DatabaseFile
from everlog.store.file_format import for_reading, sqlite_errors
from everlog.store.records import checksum

Block: TypeAlias = list[Sequence[Any]]  # columns of values

BLOCKS = 64  # decoded blocks that are remembered


def in_order(relation: Relation, rows: Collection[Row]) -> Iterable[Row]:
    """Rows by value, column by column, up to the first column of floats.

    Cost: a sort, without a Python object per row on the compiled machine.
    """
    if not why_not():
        try:
            words = empty_words(relation, new_symbols())
            words.fill(rows)
            return words.sorted_rows()
        except NotAWord:
            pass
    searched = _searched(relation)
    if searched == relation.arity:
        return sorted(rows)
    return sorted(rows, key=itemgetter(*range(searched))) if searched else rows


def _searched(relation: Relation) -> int:
    """The number of columns before the first one of floats, which NaN leaves without an order."""
    kinds = [column.kind for column in relation.columns]
    return kinds.index(Kind.FLOAT) if Kind.FLOAT in kinds else len(kinds)


class OpenState:
    """One state of a file: blocks of its relations, for several readers."""

    def __init__(self, file: DatabaseFile) -> None:
        self.file = file
        self.connection: Connection | None = for_reading(file.path)
        self._blocks: OrderedDict[tuple[str, str, int], Block] = OrderedDict()
        self._readers = 0
        self._is_closed = False
        with sqlite_errors(file.path):
            self.connection.execute(f"PRAGMA mmap_size = {1 << 46}")  # SQLite maps as much as it can
            self.connection.execute("BEGIN")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Stay open, as long as somebody reads."""
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1
            if self._is_closed:
                self.close()

    def close(self) -> None:
        self._is_closed = True
        if not self._readers and self.connection is not None:
            self.connection.close()
            self.connection = None
            self._blocks.clear()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        if self.connection is None:
            raise StoreError(f"the database {self.file.path} is closed, and its facts were not read before")
        self.file.check()
        with sqlite_errors(self.file.path):
            yield self.connection

    def remembered(self, table: str, relation: str, piece: int) -> Block:
        """A block that may be asked for again."""
        key = table, relation, piece
        found = self._blocks.get(key)
        if found is None:
            found = self._blocks[key] = self.block(*key)
            if len(self._blocks) > BLOCKS:
                self._blocks.popitem(last=False)
        else:
            self._blocks.move_to_end(key)
        return found

    def block(self, table: str, relation: str, piece: int) -> Block:
        """A block of rows, as columns; `Unreadable` if it has changed and can be computed."""
        wanted = f"SELECT relation, piece, number, data, check_sum FROM {table} WHERE relation = ? AND piece = ?"
        try:
            with self.reading() as connection:
                row = connection.execute(wanted, (relation, piece)).fetchone()
                if row is None or checksum(*row[:-1]) != row[-1]:
                    raise Unreadable
                columns = decoded_columns(row[3])
                if any(len(column) != row[2] for column in columns):
                    raise Unreadable
                return columns or [[()] * row[2]]
        except (Unreadable, BadRecord):
            what = f"facts of {relation} have changed since they were written"
            if table == FACTS:
                with sqlite_errors(self.file.path):
                    raise BadRecord(what) from None
            message = f"{self.file.path}: derived {what}; they are computed from the base facts"
            warnings.warn(message, StateLost, stacklevel=2)
            raise Unreadable(message) from None


class SortedRows(Collection[Row]):
    """The rows of a relation in an open file."""

    def __init__(self, state: OpenState, table: str, relation: Relation, number: int, pieces: int) -> None:
        self._state, self._table, self._relation = state, table, relation
        self._number, self._pieces = number, pieces
        self._searched = _searched(relation)
        self._last: dict[int, Row] = {}  # the last row of each block that was looked at

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[Row]:
        with self._state.held():
            for piece in range(self._pieces):
                yield from self._rows(self._state.block(self._table, self._relation.name, piece))

    def __contains__(self, row: object) -> bool:
        fits = isinstance(row, tuple) and len(row) == self._relation.arity
        return fits and next(self.matching(dict(enumerate(row))), None) is not None  # type: ignore[arg-type]

    def is_found_by(self, columns: Collection[int]) -> bool:
        """Whether rows with values in these columns are found without reading all others."""
        return self._pieces <= 1 or (self._searched > 0 and 0 in columns)

    def matching(self, bound: Mapping[int, Value]) -> Iterator[Row]:
        """The rows with these values in these columns, in order.

        Cost: reading one block for each halving of their number, if the first column has a value;
        all blocks otherwise.
        """
        columns = self._relation.columns
        if any(isinstance(value, str) is not (columns[at].kind is Kind.SYMBOL) for at, value in bound.items()):
            return iter(())
        first: list[Value] = []
        while len(first) < self._searched and len(first) in bound:
            first.append(bound[len(first)])
        wanted = list(bound.items())
        rows = self._beginning(tuple(first)) if first else iter(self)
        return (row for row in rows if all(row[at] is value or row[at] == value for at, value in wanted))

    def _beginning(self, first: Row) -> Iterator[Row]:
        """The rows that begin with these values."""
        with self._state.held():
            low, high = 0, self._pieces
            while low < high:
                middle = (low + high) // 2
                if self._last_row(middle)[: len(first)] < first:
                    low = middle + 1
                else:
                    high = middle
            for piece in range(low, self._pieces):
                block = self._block(piece)
                start, end = 0, len(block[0])
                for column, value in zip(block, first, strict=False):
                    start = bisect_left(column, value, start, end)
                    end = bisect_right(column, value, start, end)
                yield from self._rows([column[start:end] for column in block])
                if end < len(block[0]):
                    return

    def _last_row(self, piece: int) -> Row:
        if piece not in self._last:
            self._last[piece] = tuple(column[-1] for column in self._block(piece))
        return self._last[piece]

    def _block(self, piece: int) -> Block:
        return self._state.remembered(self._table, self._relation.name, piece)

    def _rows(self, block: Block) -> Iterable[Row]:
        return zip(*block, strict=True) if self._relation.arity else block[0]
