"""Bags instead of sets: rows that are there several times, and answers with their multiplicity.

A view of a join holds each row once.  Here stands beside it how often each row is there; the view
itself hears only of rows that come for the first time or go for the last.  An answer is there as
often as its rows can be chosen: the product of their numbers, one look-up for each atom.  So every
view becomes one of bags, with the same cost of updates and the same delay.

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

    >>> bags = BagView("calibrated", Query.of("R(a)", "S(a, b)"))
    >>> [list(bags.change(*one)) for one in [(0, (1,), 2), (1, (1, 5), 3), (0, (1,), -1)]]
    [[], [((1, 5), 6)], [((1, 5), -3)]]

    Invariant: the view holds exactly the rows whose number is not zero; none is negative.
    """

    def __init__(self, strategy: str, query: Query) -> None:
        self.view = view_of(strategy, Asked.full(query))
        self.numbers: list[dict[Row, int]] = [{} for _ in query.atoms]
        self._rows = [row_picker(query.variables, atom.variables) for atom in query.atoms]

    def change(self, atom: int, row: Row, times: int) -> Iterator[Weighted]:
        """Put a row in so many times, or take it out; the answers that change, and by how much."""
        before = self.numbers[atom].get(row, 0)
        now = before + times
        if now < 0:
            raise ValueError(f"{row} is there {before} times, and cannot go {-times} times")
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
        """How often the rows of an answer can be chosen, apart from those of one atom."""
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
