"""Views over bags: rows and answers have multiplicities.

A view of a join holds each row once.  A `BagView` counts beside it how often each row was inserted,
and tells the view only when a row comes for the first time or goes for the last.  The multiplicity
of an answer is the product of those of its rows, one lookup for each atom.  So every view works
over bags, with the same cost of updates and the same delay.

Source: Section 8 of Abo Khamis, Kara, Olteanu, Suciu, PACMMOD 2(5), 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from everlog.core.classify.query import Query
from everlog.core.joins.join_strategies import view_of
from everlog.core.joins.tries import row_picker
from everlog.core.joins.view import Asked, Weighted
from everlog.core.program import Row


class BagView:
    """A view of a full join whose rows have multiplicities.

    Invariant: the view holds exactly the rows whose number is not zero; none is negative.
    """

    def __init__(self, strategy: str, query: Query) -> None:
        self.view = view_of(strategy, Asked.full(query))
        self.numbers: list[dict[Row, int]] = [{} for _ in query.atoms]
        self._rows = [row_picker(query.variables, atom.variables) for atom in query.atoms]

    def change(self, atom: int, row: Row, times: int) -> Iterator[Weighted]:
        """Insert or delete a row a number of times; yields the changes of answers."""
        before = self.numbers[atom].get(row, 0)
        now = before + times
        if now < 0:
            raise ValueError(f"{row} is there {before} times, and cannot be deleted {-times} times")
        if not before and now:
            self.view.insert(atom, row)
        told = [(answer, times * self._number(answer, atom)) for answer, _ in self._having(atom, row, times)]
        if now:
            self.numbers[atom][row] = now
        elif before:
            del self.numbers[atom][row]
            self.view.delete(atom, row)
        return iter(told)

    def _having(self, atom: int, row: Row, times: int) -> Iterator[Weighted]:
        return self.view.delta(atom, row) if times else iter(())

    def answers(self) -> Iterator[Weighted]:
        """All answers with their multiplicities."""
        return ((answer, self._number(answer)) for answer, _ in self.view.answers())

    def _number(self, answer: Row, but: int | None = None) -> int:
        """The product of the multiplicities of an answer's rows, without that of one atom."""
        return prod(
            numbers[pick(answer)]
            for atom, (numbers, pick) in enumerate(zip(self.numbers, self._rows, strict=True))
            if atom != but
        )

    def check(self) -> None:
        self.view.check()
        for atom, numbers in enumerate(self.numbers):
            assert all(number > 0 for number in numbers.values()), "a number is positive"
            assert set(self.view.rows(atom)) == numbers.keys(), "the view holds the rows that are there"
