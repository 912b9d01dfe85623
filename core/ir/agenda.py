"""What is left of a rule body while it is being lowered.

Atoms and ranges come in the planned order (`core.codegen.join_order`).  Tests come as soon as their
variables have values: a test is looked at again only when one of its variables has just been bound,
for to look at all of them each time would cost the square of the body.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from attrs import frozen

from everlog.core.ir.set_operations import Local
from everlog.core.program import Atom, Literal, Range, Variable, bodies


@frozen
class Offer:
    """`variable ∈ values`: about `size` values of a bound key, not looped over yet."""

    variable: Variable
    values: Local
    size: float


Item: TypeAlias = Literal | Offer


class Agenda:
    """The literals of a body that are not lowered yet.

    Invariant: `open` has exactly those; `_waiting` leads from each variable to the literals that
    have it.
    """

    def __init__(self, body: Sequence[Literal], set_variable: Variable | None) -> None:
        self.open: dict[int, Item] = {}
        self.set_variable = set_variable
        self._variables: list[frozenset[Variable]] = []
        self._waiting: dict[Variable, list[int]] = {}
        self._risky: list[bool] = []
        self._seen: set[Variable] = set()
        self._fresh: list[int] = []
        self._order: list[int] = []
        self._atoms = 0
        for literal in body:
            self.add(literal)

    def add(self, item: Item) -> None:
        position = len(self._variables)
        self.open[position] = item
        self._variables.append(frozenset(variables_of_literal(item)))
        self._risky.append(not isinstance(item, Offer) and bodies.may_fail(item))
        for variable in self._variables[position]:
            self._waiting.setdefault(variable, []).append(position)
        self._fresh.append(position)
        self._atoms += isinstance(item, _JOINED)

    def follow(self, order: Iterable[int]) -> None:
        """Take atoms and ranges in this order."""
        self._order = list(order)[::-1]

    def smallest_offer(self) -> int | None:
        """The open offer with the fewest values."""
        members = [(x.size, position) for position, x in self.open.items() if isinstance(x, Offer)]
        return min(members)[1] if members else None

    def positions(self, variable: Variable) -> list[int]:
        """The open literals that have the variable."""
        return [x for x in self._waiting.get(variable, ()) if x in self.open]

    def done(self, position: int) -> Item:
        literal = self.open.pop(position)
        self._atoms -= isinstance(literal, _JOINED)
        return literal

    def touched(self, bound: dict[Variable, None]) -> list[int]:
        """The open literals with a variable that was bound since the last call, in order.

        What may fail (a division) comes after what cannot, so that `x != 0` guards `10 / x`.
        """
        positions = set(self._fresh)
        self._fresh = []
        while len(self._seen) < len(bound):  # `bound` only grows, at its end
            for variable in reversed(bound):
                if variable in self._seen:
                    break
                self._seen.add(variable)
                positions.update(self._waiting.get(variable, ()))
        return sorted((x for x in positions if x in self.open), key=lambda x: (self._risky[x], x))

    def only_tests_left(self) -> bool:
        return not self._atoms and all(
            variable in self._seen or variable == self.set_variable
            for position in self.open
            for variable in self._variables[position]
        )

    def planned(self) -> int | None:
        """The atom or range that comes next in the planned order; None if all are lowered."""
        while self._order and self._order[-1] not in self.open:
            self._order.pop()
        return self._order[-1] if self._order else None


_JOINED = (Atom, Range, Offer)


def variables_of_literal(literal: Item) -> list[Variable]:
    """The variables that a literal shares with its body (those inside an aggregate stay inside)."""
    return [literal.variable] if isinstance(literal, Offer) else bodies.variables_of_literal(literal)
