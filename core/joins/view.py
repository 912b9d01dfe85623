"""The protocol of views of joins.

The query of a view is a conjunction of atoms with distinct variables; a row of an atom has their
values in order.  An update inserts or deletes one row of one atom; a relation that stands in
several atoms is updated once for each, in the order of the atoms.  `delta` enumerates the answers
that contain a present row: after an insert the new ones, before a delete those that will be lost.

Answers are rows over `kept` with a weight: how many answers of the whole query they stand for.
With all variables kept every weight is 1 and no row comes twice.

`steps` counts the work of a view, independently of the machine: lookups, values of loops, changed
entries.  Only a view that is made to counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias

from attrs import frozen

from everlog.core.classify.query import Query
from everlog.core.joins.leapfrog import Bound
from everlog.core.program import Row, Value

Weighted: TypeAlias = tuple[Row, int]


class CannotServe(ValueError):
    """The strategy does not serve this query; the message says why."""


@frozen
class Asked:
    """A view to be made: the query, the variables that answers show, and bounds of searches.

    A view that is to be `enumerated` keeps what all its answers need, so that each comes after a
    constant number of steps, the first one too.  Of other views only changes are asked.

    The weight of an answer is the number of ways to complete it; with `summed`, it is the sum of
    the products of the values of these variables in these ways; `number` makes a whole number of a
    value that is none.  `averaged` is a variable that is kept, of `floats` or of whole numbers: see
    the module of that name.  With `distinct` the weight is 1, and totals count answers.
    """

    query: Query
    kept: tuple[str, ...]
    ranges: tuple[Bound, ...] = ()
    counting: bool = False
    enumerated: bool = True
    summed: tuple[str, ...] = ()
    averaged: str = ""
    floats: bool = False
    number: Callable[[Value], int] | None = None
    distinct: bool = False

    @staticmethod
    def full(
        query: Query, counting: bool = False, ranges: tuple[Bound, ...] = (), enumerated: bool = True
    ) -> Asked:
        return Asked(query, query.variables, ranges, counting, enumerated)


class JoinView(Protocol):
    """Invariant: the answers are always those of the query on the present rows."""

    def insert(self, atom: int, row: Row) -> bool:
        """Insert a row; False if it is there already."""

    def delete(self, atom: int, row: Row) -> bool:
        """Delete a row; False if it is not there."""

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        """The answers that contain a present row.  Read them before the next update."""

    def answers(self) -> Iterator[Weighted]:
        """All answers.  Read them before the next update."""

    def load(self, rows: Mapping[int, Iterable[Row]]) -> None:
        """Load many rows at once into an empty view."""

    def rows(self, atom: int) -> Collection[Row]:
        """The present rows of an atom."""

    @property
    def steps(self) -> int:
        """The work done so far, if the view counts it."""

    def check(self) -> None:
        """Assert every invariant."""


class CountedView:
    """The common part of views: a number of steps, and loading by single inserts."""

    def __init__(self) -> None:
        self._count = [0]  # steps; a list, so that generated functions can add to it

    def insert(self, atom: int, row: Row) -> bool:
        raise NotImplementedError

    def load(self, rows: Mapping[int, Iterable[Row]]) -> None:
        for atom, given in rows.items():
            for row in given:
                self.insert(atom, row)

    @property
    def steps(self) -> int:
        return self._count[0]
