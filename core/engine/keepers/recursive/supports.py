"""The ranks and counts of a relation that Python keeps.

Both stand beside the facts: {fact: …}, of a binary relation {key: {value: …}}.  Compiled rules read
the ranks.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from everlog.core.program import Row
from everlog.core.storage.shape import Counted, Facts, Shape

Taken: TypeAlias = tuple[Counted, Counted]  # ranks and counts


class Supports:
    """For each fact of a relation its rank, and the number of derivations from lower ranks.

    Invariant: both have the same facts.
    """

    def __init__(self, shape: Shape, ranks: Counted) -> None:
        self.shape, self.ranks = shape, ranks
        self.counts: Counted = {}

    def clear(self) -> None:
        self.ranks.clear()
        self.counts.clear()

    def copied(self) -> Taken:
        """Both, in containers of their own."""
        return _copied(self.ranks), _copied(self.counts)

    def replace(self, taken: Taken) -> None:
        """Take over what `copied` or `take` returned, instead of what is there."""
        self.clear()
        self.put(taken)

    def add(self, counts: Counted, rank: int) -> None:
        """Add facts, each with its count; consumes them."""
        self.shape.merge_counted(self.ranks, self.shape.all_with(self.shape.support(counts), rank))
        self.shape.merge_counted(self.counts, counts)

    def take(self, facts: Facts) -> Taken:
        """Remove facts; return what they had, for `put`."""
        return self.shape.take_counted(self.ranks, facts), self.shape.take_counted(self.counts, facts)

    def put(self, taken: Taken) -> None:
        """The inverse of `take`."""
        ranks, counts = taken
        self.shape.merge_counted(self.ranks, ranks)
        self.shape.merge_counted(self.counts, counts)

    def gain(self, plus: Counted, before: list[tuple[Row, int]]) -> Counted:
        """Count derivations that came; return those of facts that are not there.

        `before` gets what was changed, for `restore`.
        """
        shape, counts = self.shape, self.counts
        unknown: Counted = {}
        for row, number in shape.counted_rows(plus):
            known = shape.get_counted(counts, row)
            if known is None:
                shape.set_counted(unknown, row, number)
            else:
                before.append((row, known))
                shape.set_counted(counts, row, known + number)
        return unknown

    def lose(self, minus: Counted, coming: Counted, before: list[tuple[Row, int]]) -> list[Row]:
        """Take derivations away, also from `coming` facts; return the facts that have none left."""
        shape, counts = self.shape, self.counts
        bare: list[Row] = []
        for row, number in shape.counted_rows(minus):
            known = shape.get_counted(counts, row)
            if known is not None:
                before.append((row, known))
                shape.set_counted(counts, row, known - number)
                if known == number:
                    bare.append(row)
            elif (known := shape.get_counted(coming, row)) is not None:
                shape.set_counted(coming, row, known - number)
        return bare

    def restore(self, before: list[tuple[Row, int]]) -> None:
        """Undo `gain` and `lose`."""
        for row, number in reversed(before):
            self.shape.set_counted(self.counts, row, number)

    def rank(self, row: Row) -> int | None:
        """The rank of a fact, or None."""
        rank: int | None = self.shape.get_counted(self.ranks, row)
        return rank


def _copied(counted: Counted) -> Counted:
    return {key: dict(of_key) if isinstance(of_key, dict) else of_key for key, of_key in counted.items()}


def without_zeros(shape: Shape, counted: Counted) -> Counted:
    """The facts whose number is not 0, in containers of their own."""
    left: dict[Any, Any] = {}
    for row, number in shape.counted_rows(counted):
        if number:
            shape.set_counted(left, row, number)
    return left
