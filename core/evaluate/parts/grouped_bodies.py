"""The body of an aggregate as a relation, computed once for all groups.

    abroad(c, d, t) :- pair(c, d), t = sum x : { pay(a, b, x), home(a, c), home(b, d) }.

looks up accounts of `c` for each pair of countries.  Where that costs more, the body is joined
once, and the aggregate looks up its group in the result:

    bindings(a, b, x, c, d) :- pay(a, b, x), home(a, c), home(b, d).
    abroad(c, d, t) :- pair(c, d), t = sum x : { bindings(a, b, x, c, d) }.

What needs a variable that the body itself does not give (`z < y` with an outer `y`) stays in the
aggregate.  `min` and `max` need no variables but their groups and their target, `count`, `sum` and
`mean` all: they run over the set of all bindings.

Source: Kim, ACM TODS 7(3), 1982 (nested SQL queries as joins).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TypeGuard

from attrs import evolve, frozen

from everlog.core.codegen.join_order import Ordering
from everlog.core.codegen.trial_joins import Trial
from everlog.core.evaluate.parts.body_parts import BodyParts
from everlog.core.program import (
    Aggregate,
    Atom,
    Comparison,
    Literal,
    Range,
    Rule,
    Variable,
    Wildcard,
    variables_of,
)
from everlog.core.program.bodies import may_fail, variables_of_literal
from everlog.core.storage.table_statistics import Statistics


class Grouping:
    """Rewrites the aggregates of rules; the relations that they then need are in `parts`."""

    def __init__(self, parts: BodyParts) -> None:
        self.parts = parts
        self.statistics: Mapping[str, Statistics] = {}
        self.rule = ""  # the name of the rule that is being rewritten

    def rewritten(self, rule: Rule, statistics: Mapping[str, Statistics]) -> Rule:
        """The rule, with aggregates over relations where that is cheaper or needed."""
        if not any(isinstance(literal, Aggregate) for literal in rule.body):
            return rule
        self.statistics, self.rule = statistics, rule.name
        around = _ordered(rule.body, self.statistics, frozenset())
        body = [
            self._named(self._literal(x, around.rows, around.ordering.trial_of(x.outer)))
            if isinstance(x, Aggregate)
            else x
            for x in rule.body
        ]
        return evolve(rule, body=tuple(body))

    def _literal(self, literal: Aggregate, turns: float, values: Trial | None) -> Aggregate:
        """An aggregate that is run `turns` times, or one over a relation, if that is cheaper.

        `values` are a few values of its outer variables, as a sample.
        """
        outer = frozenset(literal.outer)
        if may_fail(literal) or not any(isinstance(x, Atom) for x in literal.body):
            return literal
        once = _ordered(literal.body, self.statistics, outer, begin=values)
        inner = turns * max(once.rows, 1.0)
        body = [self._literal(x, inner, None) if isinstance(x, Aggregate) else x for x in literal.body]
        literal = evolve(literal, body=tuple(body))
        joined, rest = parted(literal.body, [x for x in literal.body if isinstance(x, Atom)])
        if sum(isinstance(x, Atom | Range) for x in joined) < 2:
            return literal
        given = {v for x in joined for v in variables_of_literal(x)}
        needed = _shown(literal, rest, given)
        every = _ordered(joined, self.statistics, frozenset(), needed)
        groups = every.distinct(given & outer)
        named = sum(self.statistics[x.relation].rows for x in literal.body if _loses(x, literal))
        if not needed or not is_cheaper(every.cost + turns * (1 + every.rows / groups), named + turns * once.cost):
            return literal
        atom = self.parts.atom(joined, needed, every.rows, self.rule)
        return literal if atom is None else evolve(literal, body=(atom, *rest))

    def _named(self, literal: Aggregate) -> Aggregate:
        """The aggregate over relations without the columns of its wildcards.

        Rows that differ only in wildcards count once, and a relation has them once.
        """
        body: list[Literal] = []
        for one in literal.body:
            if isinstance(one, Aggregate):
                one = self._named(one)
            elif _loses(one, literal):
                rows, names = self.statistics[one.relation].rows, frozenset(variables_of_literal(one))
                found = self.parts.atom([one], names, rows, self.rule)
                assert found is not None, "the columns of a relation have kinds"
                one = found
            body.append(one)
        return evolve(literal, body=tuple(body))


def _loses(literal: Literal, aggregate: Aggregate) -> TypeGuard[Atom]:
    """Whether an atom of an aggregate would give several rows that differ only in wildcards."""
    if aggregate.op in ("min", "max") or not isinstance(literal, Atom):
        return False
    kinds = {type(arg) for arg in literal.args}
    return Wildcard in kinds and Variable in kinds


def _shown(literal: Aggregate, rest: Sequence[Literal], given: Set[Variable]) -> Set[Variable]:
    """The variables of a joined body that its aggregate needs: all but for `min` and `max`."""
    if literal.op not in ("min", "max"):
        return given
    needed = {v for x in rest for v in variables_of_literal(x)}.union(literal.outer)
    needed.update(() if literal.target is None else variables_of(literal.target))
    return needed & given


def is_cheaper(grouped: float, by_group: float) -> bool:
    """Whether the steps for all groups at once are fewer than those for one group after another."""
    return grouped < by_group


@frozen
class _Ordered:
    """The estimates for a body in its best order."""

    ordering: Ordering
    cost: float
    rows: float

    def distinct(self, variables: Set[Variable]) -> float:
        """About how many different values some variables have together."""
        found = 1.0
        for variable in variables:
            found *= self.ordering.values_of(variable)
        return max(1.0, min(found, self.rows))


def _ordered(
    body: Sequence[Literal],
    statistics: Mapping[str, Statistics],
    bound: Set[Variable],
    shown: Set[Variable] | None = None,
    begin: Trial | None = None,
) -> _Ordered:
    variables = frozenset(v for literal in body for v in variables_of_literal(literal))
    ordering = Ordering(body, statistics, bound, kept=variables, shown=shown, begin=begin)
    ordering.chosen()
    return _Ordered(ordering, max(ordering.cost, 1.0), max(ordering.rows, 1.0))


def parted(body: Sequence[Literal], atoms: Sequence[Atom]) -> tuple[list[Literal], list[Literal]]:
    """Some atoms of a body with the literals that need no further variables; the others."""
    given = {v for x in atoms for v in variables_of_literal(x)}
    joined: list[Literal] = [*atoms]
    waiting = [x for x in body if not any(x is one for one in atoms)]
    found = True
    while found:
        found = False
        for one in list(waiting):
            if _needs(one, given) <= given and not isinstance(one, Aggregate | Atom):
                given.update(variables_of_literal(one))
                joined.append(one)
                waiting.remove(one)
                found = True
    return joined, waiting


def _needs(literal: Literal, given: Set[Variable]) -> Set[Variable]:
    """The variables that must have values before a literal can be joined."""
    if isinstance(literal, Range):
        return {v for term in literal.bounds for v in variables_of(term)}
    if isinstance(literal, Comparison) and literal.op == "=":
        for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
            if isinstance(one, Variable) and given >= set(variables_of(other)):
                return set()
    return set(variables_of_literal(literal))
