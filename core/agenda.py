"""What is left of a rule body while it is being ordered.

Choosing the next literal by looking at all of them would cost the square of the body.  Here a
literal is looked at again only when one of its variables has just been bound, and the best atom
comes off a heap.

Reads: core.program.  Read by: core.codegen.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence, Set

from everlog.core import program as p
from everlog.core.program import Aggregate, Atom, Call, Comparison, Literal, Negation, Range, Variable


class Agenda:
    """The literals of a body that are not written yet.

    Invariant: `open` has exactly those; `_waiting` leads from each variable to the literals that
    have it; the heap has, of every open atom or range, its present expectation (and older ones).
    """

    def __init__(self, body: Sequence[Literal], set_variable: Variable | None) -> None:
        self.open: dict[int, Literal] = dict(enumerate(body))
        self.set_variable = set_variable
        self._variables = [frozenset(variables_of_literal(x)) for x in body]
        self._waiting: dict[Variable, list[int]] = {}
        self._uses: dict[Variable, int] = {}
        for position, variables in enumerate(self._variables):
            for variable in variables:
                self._waiting.setdefault(variable, []).append(position)
                self._uses[variable] = self._uses.get(variable, 0) + 1
        self._risky = [may_fail(x) for x in body]
        self._seen: set[Variable] = set()
        self._fresh: list[int] = list(self.open)
        self._heap: list[tuple[bool, float, int]] = []
        self._expect: list[int] = list(self.open)
        self._atoms = sum(isinstance(x, Atom | Range) for x in body)

    @property
    def needed(self) -> Set[Variable]:
        """The variables that some open literal still has."""
        return self._uses.keys()

    def done(self, position: int) -> Literal:
        literal = self.open.pop(position)
        self._atoms -= isinstance(literal, Atom | Range)
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

    def only_tests_left(self) -> bool:
        return not self._atoms and all(
            variable in self._seen or variable == self.set_variable
            for position in self.open
            for variable in self._variables[position]
        )

    def next(self, expected: Callable[[Literal], float | None]) -> int:
        """The atom or range with the fewest expected matches; unconnected ones come last."""
        for position in self._expect:
            literal = self.open.get(position)
            cost = None if literal is None else expected(literal)
            if cost is not None:
                apart = not (self._variables[position] & self._seen) and bool(self._variables[position])
                heapq.heappush(self._heap, (apart, cost, position))
        self._expect = []
        while self._heap:
            _, _, position = heapq.heappop(self._heap)
            if position in self.open:
                return position
        raise AssertionError(f"no order: {[str(x) for x in self.open.values()]}")


def may_fail(literal: Literal) -> bool:
    """Whether evaluating a literal can raise an error."""
    match literal:
        case Atom(args=args) | Negation(Atom(args=args)):
            terms: tuple[p.Term, ...] = args
        case Comparison(left=left, right=right):
            terms = (left, right)
        case Aggregate():
            return True
        case Range(start=start, stop=stop):
            terms = (start, stop)
    return any(isinstance(t, Call) and _risky(t) for t in terms)


def _risky(call: Call) -> bool:
    name = call.name
    if name in ("/", "%", "^") or name.startswith(("@", "to_", "as")):
        return name != "to_string"
    return any(isinstance(a, Call) and _risky(a) for a in call.args)


def variables_of_literal(literal: Literal) -> list[Variable]:
    """The variables that a literal shares with its body (those inside an aggregate stay inside)."""
    match literal:
        case Atom(args=args) | Negation(Atom(args=args)):
            return [v for a in args for v in p.variables_of(a)]
        case Comparison(left=left, right=right):
            return [*p.variables_of(left), *p.variables_of(right)]
        case Aggregate(result=result, outer=outer):
            return [result, *outer]
        case Range(result, start, stop, step, _):
            terms = [result, start, stop] + ([] if step is None else [step])
            return [v for t in terms for v in p.variables_of(t)]
