"""What is left of a rule body while it is being ordered.

Choosing the next literal by looking at all of them would cost the square of the body.  Here a
literal is looked at again only when one of its variables has just been bound, and the best atom
comes off a heap.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence, Set
from typing import TypeAlias

from attrs import frozen

from everlog.core import program as p
from everlog.core.codegen.code_lines import Values
from everlog.core.program import Aggregate, Atom, Comparison, Literal, Negation, Range, Variable
from everlog.core.program.bodies import may_fail


@frozen
class Member:
    """`variable ∈ values`: the values of a key that is bound, not yet looped over."""

    variable: Variable
    values: Values


Item: TypeAlias = Literal | Member


class Agenda:
    """The literals of a body that are not written yet.

    Invariant: `open` has exactly those; `_waiting` leads from each variable to the literals that
    have it; the heap has, of every open atom or range, its present expectation (and older ones).
    """

    def __init__(self, body: Sequence[Literal], set_variable: Variable | None) -> None:
        self.open: dict[int, Item] = {}
        self.set_variable = set_variable
        self._variables: list[frozenset[Variable]] = []
        self._waiting: dict[Variable, list[int]] = {}
        self._uses: dict[Variable, int] = {}
        self._risky: list[bool] = []
        self._seen: set[Variable] = set()
        self._fresh: list[int] = []
        self._heap: list[tuple[bool, float, int]] = []
        self._expect: list[int] = []
        self._atoms = 0
        for literal in body:
            self.add(literal)

    def add(self, item: Item) -> None:
        position = len(self._variables)
        self.open[position] = item
        self._variables.append(frozenset(variables_of_literal(item)))
        self._risky.append(not isinstance(item, Member) and may_fail(item))
        for variable in self._variables[position]:
            self._waiting.setdefault(variable, []).append(position)
            self._uses[variable] = self._uses.get(variable, 0) + 1
        self._fresh.append(position)
        self._expect.append(position)
        self._atoms += isinstance(item, _JOINED)

    def members(self) -> list[Member]:
        return [x for x in self.open.values() if isinstance(x, Member)]

    def uses(self, variable: Variable) -> int:
        """In how many open literals a variable stands."""
        return self._uses.get(variable, 0)

    @property
    def needed(self) -> Set[Variable]:
        """The variables that some open literal still has."""
        return self._uses.keys()

    def positions(self, variable: Variable) -> list[int]:
        """The open literals that have the variable."""
        return [x for x in self._waiting.get(variable, ()) if x in self.open]

    def done(self, position: int) -> Item:
        literal = self.open.pop(position)
        self._atoms -= isinstance(literal, _JOINED)
        for variable in self._variables[position]:
            self._uses[variable] -= 1
            if not self._uses[variable]:
                del self._uses[variable]
        return literal

    def touched(self, bound: dict[Variable, str]) -> list[int]:
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
        live = sorted((x for x in positions if x in self.open), key=lambda x: (self._risky[x], x))
        self._expect += live
        return live

    def _is_apart(self, position: int) -> bool:
        """Whether nothing of a literal is bound yet: to join it now would be a product."""
        variables = self._variables[position]
        return bool(variables) and not (variables & self._seen)

    def only_tests_left(self) -> bool:
        return not self._atoms and all(
            variable in self._seen or variable == self.set_variable
            for position in self.open
            for variable in self._variables[position]
        )

    def next(self, expected: Callable[[Item], float | None]) -> int:
        """The atom or range with the fewest expected matches; unconnected ones come last."""
        for position in self._expect:
            literal = self.open.get(position)
            cost = None if literal is None else expected(literal)
            if cost is not None:
                apart = not isinstance(literal, Member) and self._is_apart(position)
                heapq.heappush(self._heap, (apart, cost, position))
        self._expect = []
        while self._heap:
            _, _, position = heapq.heappop(self._heap)
            if position in self.open:
                return position
        raise AssertionError(f"no order: {[str(x) for x in self.open.values()]}")


_JOINED = (Atom, Range, Member)


def variables_of_literal(literal: Item) -> list[Variable]:
    """The variables that a literal shares with its body (those inside an aggregate stay inside)."""
    match literal:
        case Atom(args=args) | Negation(Atom(args=args)):
            return [v for a in args for v in p.variables_of(a)]
        case Comparison(left=left, right=right):
            return [*p.variables_of(left), *p.variables_of(right)]
        case Member(variable=variable):
            return [variable]
        case Aggregate(result=result, outer=outer):
            return [result, *outer]
        case Range(result, start, stop, step, _):
            terms = [result, start, stop] + ([] if step is None else [step])
            return [v for t in terms for v in p.variables_of(t)]
