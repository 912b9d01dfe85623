"""The mean of a variable as two totals: a view that sums it, and one that counts.

The mean of some values follows from their sum s and their number n.  A reader that adds up values,
each times its weight, gets both from 1 with weight s and 0 with weight n - s.  So answers have one
of these two in the place of the variable, and no value is met by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from attrs import evolve

from everlog.core.joins.view import Asked, JoinView, Weighted
from everlog.core.program import Row


class Averaged:
    """Invariant: both views have the same rows."""

    def __init__(self, asked: Asked, make: Callable[[Asked], JoinView]) -> None:
        self._place = asked.kept.index(asked.averaged)
        kept = tuple(v for v in asked.kept if v != asked.averaged)
        counting = evolve(asked, kept=kept, averaged="")
        self._count = make(counting)
        self._sum = make(evolve(counting, summed=(asked.averaged,), rounded=True))

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
            yield self._with(answer, 0), number
        for answer, total in summed:
            yield self._with(answer, 1), total
            yield self._with(answer, 0), -total

    def _with(self, answer: Row, value: int) -> Row:
        return (*answer[: self._place], value, *answer[self._place :])

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
