"""Whether a rule fails when generated code meets a condition without a value.

By the definition of core.program.bodies it fails if no other condition excludes the choice of
facts.  The code that met the failure may not have chosen all facts yet, nor tested all conditions.
So it passes its bindings to a `FailurePoint`, which tries every way to choose the rest.  That is
rare, and need not be fast: its code is compiled at the first failure, condition by condition, and
asks for its indexes then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from everlog.core.program import Failure, Literal, Row, Rule, Value, Variable
from everlog.core.program.bodies import Binding, outcomes, sure_and_open, variables_of_literal
from everlog.core.program.values import Failed, NoValue
from everlog.core.storage.shape import Counted, Shape

Lookup: TypeAlias = Callable[[Any], object]


class Bindable(Protocol):
    """Compiled code, to be bound to its indexes."""

    def bound_to(self, lookup: Lookup, /) -> Any: ...


Write = Callable[[Sequence[Literal], Sequence[Variable], Sequence[Variable]], Bindable]


class FailurePoint:
    """One place of generated code at which the values of `bound` are known.

    `body` is what the rule has to satisfy.  `write` compiles literals to a generator: from the
    values of some variables to those of others.
    """

    def __init__(
        self, rule: Rule, shape: Shape | None, body: Sequence[Literal], bound: Sequence[Variable], write: Write
    ) -> None:
        self._rule, self._shape, self._bound, self._write = rule, shape, bound, write
        self._sure, self._open = sure_and_open(body, {variable.name for variable in bound})
        self._code: dict[tuple[int, tuple[str, ...]], tuple[list[str], Bindable]] = {}

    def __call__(self, lookup: Lookup, new: Counted, error: NoValue, *values: Value) -> None:
        """Tell what the failure means for the rule: an error, or a value of its head."""
        given = {v.name: value for v, value in zip(self._bound, values, strict=True)}
        for choice in self._extended(lookup, -1, self._sure, given):
            for binding, problem in outcomes(self._open, choice, self._matches(lookup), error):
                assert problem is not None
                if self._rule.failure is Failure.ERROR:
                    raise problem
                assert self._shape is not None
                outer: Row = tuple(binding[v.name] for v in self._rule.head.args[:-1] if isinstance(v, Variable))
                failed: Any = Failed(problem.message)  # in the place of a value
                self._shape.count_one(new, (*outer, failed), 1)

    def _matches(self, lookup: Lookup) -> Callable[[Literal, Binding], Iterator[Binding]]:
        numbers = {id(literal): number for number, literal in enumerate(self._open)}
        return lambda literal, binding: self._extended(lookup, numbers[id(literal)], [literal], binding)

    def _extended(
        self, lookup: Lookup, number: int, literals: Sequence[Literal], binding: Binding
    ) -> Iterator[Binding]:
        """Every way to extend the binding so that the literals hold."""
        found = list(dict.fromkeys(v for literal in literals for v in variables_of_literal(literal)))
        given = [v for v in found if v.name in binding]
        key = number, tuple(v.name for v in given)
        if key not in self._code:
            new = [v for v in found if v not in given]
            self._code[key] = [v.name for v in new], self._write(literals, given, new)
        names, code = self._code[key]
        run: Any = code.bound_to(lookup)
        for values in run(None, None, *(binding[v.name] for v in given)):
            yield {**binding, **dict(zip(names, values, strict=True))}
