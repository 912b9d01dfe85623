"""Means, and sums of floats, as totals: a few values stand for all that are added up.

The mean of whole numbers follows from their sum s and their number n: `Averaged` keeps a view that
sums, and one that counts.  A reader that adds up values, each times its weight, gets both from 1
with weight s and 0 with weight n - s.  So answers have one of these two in the place of the
variable, and no value is met by itself.

A sum of floats must not depend on the order in which they come and go, so it is not rounded before
it is read.  Each float is a multiple of the smallest one, and `FloatTotals` keeps a view that sums
these multiples, packed into one integer with the number of infinities, of NaNs and of all
(`core.program.exact`).  Answers have one of these five in the place of the variable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from attrs import evolve

from everlog.core.joins.view import Asked, JoinView, Weighted
from everlog.core.program import Row, Value
from everlog.core.program.exact import packed_float, terms_of


class Averaged:
    """Invariant: both views have the same rows."""

    def __init__(self, asked: Asked, make: Callable[[Asked], JoinView]) -> None:
        self._place = asked.kept.index(asked.averaged)
        kept = tuple(v for v in asked.kept if v != asked.averaged)
        counting = evolve(asked, kept=kept, averaged="")
        self._count = make(counting)
        self._sum = make(evolve(counting, summed=(asked.averaged,), number=_rounded))

    def insert(self, atom: int, row: Row) -> bool:
        self._count.insert(atom, row)
        return self._sum.insert(atom, row)

    def delete(self, atom: int, row: Row) -> bool:
        self._count.delete(atom, row)
        return self._sum.delete(atom, row)

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        yield from self._both(self._count.delta(atom, row), self._sum.delta(atom, row))

    def answers(self) -> Iterator[Weighted]:
        yield from self._both(self._count.answers(), self._sum.answers())

    def _both(self, counted: Iterable[Weighted], summed: Iterable[Weighted]) -> Iterator[Weighted]:
        for answer, number in counted:
            yield _with(answer, self._place, 0), number
        for answer, total in summed:
            yield _with(answer, self._place, 1), total
            yield _with(answer, self._place, 0), -total

    def load(self, rows: Mapping[int, Iterable[Row]]) -> None:
        given = {atom: list(of_atom) for atom, of_atom in rows.items()}
        self._count.load(given)
        self._sum.load(given)

    def rows(self, atom: int) -> Collection[Row]:
        return self._sum.rows(atom)

    @property
    def steps(self) -> int:
        return self._count.steps + self._sum.steps

    def check(self) -> None:
        self._count.check()
        self._sum.check()


class FloatTotals:
    """Invariant: the view has the rows."""

    def __init__(self, asked: Asked, make: Callable[[Asked], JoinView]) -> None:
        self._place = asked.kept.index(asked.averaged)
        kept = tuple(v for v in asked.kept if v != asked.averaged)
        self._sum = make(evolve(asked, kept=kept, averaged="", summed=(asked.averaged,), number=_packed))

    def insert(self, atom: int, row: Row) -> bool:
        return self._sum.insert(atom, row)

    def delete(self, atom: int, row: Row) -> bool:
        return self._sum.delete(atom, row)

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        return self._terms(self._sum.delta(atom, row))

    def answers(self) -> Iterator[Weighted]:
        return self._terms(self._sum.answers())

    def _terms(self, summed: Iterable[Weighted]) -> Iterator[Weighted]:
        for answer, total in summed:
            for value, times in terms_of(total):
                yield _with(answer, self._place, value), times

    def load(self, rows: Mapping[int, Iterable[Row]]) -> None:
        self._sum.load(rows)

    def rows(self, atom: int) -> Collection[Row]:
        return self._sum.rows(atom)

    @property
    def steps(self) -> int:
        return self._sum.steps

    def check(self) -> None:
        self._sum.check()


def _packed(value: Value) -> int:
    return packed_float(float(value))


def _rounded(value: Value) -> int:
    return int(float(value))


def _with(answer: Row, place: int, value: Value) -> Row:
    return (*answer[:place], value, *answer[place:])
