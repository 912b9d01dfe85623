"""The result of a query: rows that are computed when they are read.

A `Result` belongs to the state in which the query was asked.  Iteration is lazy: the first row
comes at once, in no particular order.  Counting, sorting and comparing compute all rows first, and
keep them; only sorting and comparing sort them.

A step changes the tables below a result.  So before a step, results that are still referenced are
completed if they have few rows (`KEPT`); the others raise `ChangedMeanwhile` when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from types import GeneratorType
from typing import SupportsIndex, overload
from weakref import ReferenceType

from everlog.api.facts.dataframes import Tabular
from everlog.api.lifecycle import State, uses
from everlog.core.native.words import SortedWords
from everlog.core.program import Column, Kind, Relation, Row
from everlog.core.program.values import EvaluationError
from everlog.files.text_values import sorted_rows

KEPT = 10_000  # a result in use is completed before a step if it has at most this many rows
_SHOWN = 1000  # `repr` writes at most this many rows in full
_FEW = 20  # the rows that `repr` writes of a longer result


class ChangedMeanwhile(RuntimeError):
    """A step has changed the database before all rows of this result were read."""


class Result(Tabular, Sequence[Row]):
    """The rows of a query, like a sorted list of tuples, computed when they are read.

    >>> from everlog import Database
    >>> text = ".decl edge(x:number, y:number)  edge(1, 2).  edge(2, 3).  edge(2, 4)."
    >>> db = Database.from_text(text)
    >>> found = db.query("edge(1, x), edge(x, y), y > 3")
    >>> found
    [(2, 4)]
    >>> found.columns, found.kinds
    (('x', 'y'), ('number', 'number'))
    >>> for x, y in found:           # lazily, in no particular order
    ...     print(x, y)
    2 4
    >>> len(found), found[0], (2, 4) in found, found == [(2, 4)]
    (1, (2, 4), True, True)

    `rows()`, indexing and `==` find all rows, sort them, and keep them; so do `to_pandas()`,
    `to_polars()` and `to_arrow()`.  `len` and `list` find them without sorting.
    """

    def __init__(
        self,
        state: State,
        columns: tuple[Column, ...],
        find: Callable[[], Iterable[Row]],
        *,
        find_sorted: Callable[[], Iterable[Row]] | None = None,
        size: Callable[[], int] | None = None,
        words: Callable[[], SortedWords | None] | None = None,
    ) -> None:
        """`find` iterates over the rows; pass `find_sorted`, `size` and `words` if cheaper."""
        self._relation = Relation("", columns)
        self._state, self._number = state, state.number
        self._find, self._find_sorted, self._size = find, find_sorted, size
        self._find_words = words
        self._found: list[Row] | None = None  # all rows, unordered
        self._sorted: list[Row] | None = None
        self._streams: list[ReferenceType[GeneratorType[Row, None, None]]] = []  # open iterations
        state.add(self)

    # ── columns and rows ─────────────────────────────────────────────────────────────────────

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns: variables of the query, or for one atom the relation's columns."""
        return tuple(column.name for column in self._relation.columns)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each column: `number`, `unsigned`, `float` or `symbol`."""
        return tuple(column.kind.value for column in self._relation.columns)

    def rows(self) -> list[Row]:
        """All rows, as a sorted list that does not follow later steps."""
        return list(self._all())

    def _columns(self) -> Sequence[Column]:
        return self._relation.columns

    def _words(self) -> SortedWords | None:
        if self._find_words is None or self._sorted is not None or self._found is not None:
            return None
        self._fresh()
        return self._state.read(self._find_words)

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _all(self) -> list[Row]:
        if self._sorted is None:
            if self._found is not None:
                self._sorted = sorted_rows(self._relation, self._found)
                self._found = None
            else:
                self._fresh()
                self._sorted = self._state.read(self._found_sorted)
                self._done()
        return self._sorted

    def _found_sorted(self) -> list[Row]:
        if self._find_sorted is not None and not self._has_floats():
            return list(self._find_sorted())
        return sorted_rows(self._relation, self._find())

    def _has_floats(self) -> bool:
        return any(column.kind is Kind.FLOAT for column in self._relation.columns)

    def _fresh(self) -> None:
        if self._state.number != self._number:
            raise ChangedMeanwhile(
                "a step has changed the database since this query was asked: ask it again, "
                "or take `.rows()` before the step"
            )

    def _done(self) -> None:
        """Stop tracking this result, whose rows are known, unless an iteration is open."""
        if all(stream() is None for stream in self._streams):
            self._state.open.pop(id(self), None)

    def complete(self) -> None:
        """Compute all rows, if they are few: a step is about to change the tables."""
        if self._sorted is None and self._found is None:
            try:
                found = list(islice(self._find(), KEPT + 1))
            except (EvaluationError, RecursionError, MemoryError):  # raised again when the rows are read
                return
            if len(found) <= KEPT:
                self._found = found

    def is_being_read(self) -> bool:
        """Whether any thread is computing rows right now."""
        return any(stream is not None and stream.gi_running for stream in (each() for each in self._streams))

    @uses
    def _stream(self) -> Generator[Row]:
        known = self._sorted if self._found is None else self._found
        if known is not None:  # `list` asks for an iterator, then for the length, then for rows
            yield from known
            return
        self._fresh()
        using, number = self._state, self._number
        read: list[Row] | None = []  # collected as long as the result may be small
        for row in using.read(self._find):
            if read is not None:
                read.append(row)
                if len(read) > KEPT:
                    read = None
            yield row
            if using.number != number:
                break
        else:
            return
        known = self._sorted if self._found is None else self._found
        if read is None or known is None:
            self._fresh()
        assert read is not None
        assert known is not None
        past = set(read)
        yield from [row for row in known if row not in past]

    # ── like a list ──────────────────────────────────────────────────────────────────────────

    def __iter__(self) -> Iterator[Row]:
        known = self._sorted if self._sorted is not None else self._found
        if known is not None:
            return iter(known)
        stream = self._stream()
        assert isinstance(stream, GeneratorType)
        self._streams = [each for each in self._streams if each() is not None] + [ReferenceType(stream)]
        return stream

    def __len__(self) -> int:
        """How many rows there are; they are found and kept for it, but not sorted.

        `list`, `tuple` and `sorted` ask for the length of what they go through, after `iter` and
        before the first row.  So they cost one search, as a loop does.
        """
        known = self._sorted if self._found is None else self._found
        if known is None:
            self._fresh()
            if self._size is not None:
                return self._state.read(self._size)
            known = self._found = self._state.read(lambda: list(self._find()))
            self._done()
        return len(known)

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    @overload
    def __getitem__(self, index: SupportsIndex) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Row | list[Row]:
        return self._all()[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Result):
            return self is other or self._all() == other._all()
        return self._all() == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        if self._sorted is None and len(first := list(islice(self, _SHOWN + 1))) > _SHOWN:
            few = ", ".join(map(repr, first[:_FEW]))
            return f"<Result ({', '.join(self.columns)}): more than {_SHOWN} rows: {few}, …>"
        return repr(self._all())

    def _repr_html_(self) -> str:
        from everlog.html import result_html

        return result_html(self)


Arrange = Callable[[list[Row]], list[Row]]


class OrderedResult(Result):
    """The rows of a query with `order by` or `limit`: all of them are found, then arranged.

    >>> from everlog import Database
    >>> db = Database.from_text(".decl e(x:number, y:number)  e(1, 2).  e(2, 3).  e(2, 4).")
    >>> db.query("e(x, y) order by y desc limit 2")
    [(2, 4), (2, 3)]
    """

    def __init__(
        self, state: State, columns: tuple[Column, ...], find: Callable[[], Iterable[Row]], arrange: Arrange
    ) -> None:
        super().__init__(state, columns, find)
        self._arrange = arrange

    def _found_sorted(self) -> list[Row]:
        return self._arrange(super()._found_sorted())

    def complete(self) -> None:
        with suppress(EvaluationError, RecursionError, MemoryError):  # raised again when the rows are read
            self._all()

    def __iter__(self) -> Iterator[Row]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
