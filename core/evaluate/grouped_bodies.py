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

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set

from attrs import evolve, fields, frozen, has

from everlog.core.codegen.join_order import Ordering
from everlog.core.codegen.trial_joins import Trial
from everlog.core.program import (
    Aggregate,
    Atom,
    Column,
    Comparison,
    Kind,
    Literal,
    Range,
    Relation,
    Rule,
    Variable,
    variables_of,
)
from everlog.core.program.bodies import may_fail, variables_of_literal
from everlog.core.storage.table_statistics import UNKNOWN, Guess, Statistics


@frozen
class Bindings:
    """The relation of a body, the rule that derives it, and about how many facts it will have."""

    relation: Relation
    rule: Rule
    rows: float


class Grouping:
    """Rewrites the aggregates of rules; the relations that they then need are in `made`."""

    def __init__(self, relations: Mapping[str, Relation]) -> None:
        self.relations = relations
        self.statistics: Mapping[str, Statistics] = {}
        self.made: dict[str, Bindings] = {}
        self._forms: dict[Hashable, str] = {}
        self.rule = ""  # the name of the one that is being rewritten

    @property
    def relations_made(self) -> dict[str, Relation]:
        return {name: one.relation for name, one in self.made.items()}

    def rewritten(self, rule: Rule, statistics: Mapping[str, Statistics]) -> Rule:
        """The rule, with aggregates over relations where that is cheaper."""
        if not any(isinstance(literal, Aggregate) for literal in rule.body):
            return rule
        self.statistics = statistics
        self.rule = rule.name
        around = _ordered(rule.body, self.statistics, frozenset())
        body = [
            self._literal(x, around.rows, around.ordering.trial_of(x.outer)) if isinstance(x, Aggregate) else x
            for x in rule.body
        ]
        return evolve(rule, body=tuple(body))

    def _literal(self, literal: Aggregate, turns: float, values: Trial | None) -> Aggregate:
        """An aggregate that is run `turns` times, for such `values` of its outer variables."""
        outer = frozenset(literal.outer)
        if may_fail(literal) or not any(isinstance(x, Atom) for x in literal.body):
            return literal
        once = _ordered(literal.body, self.statistics, outer, begin=values)
        inner = turns * max(once.rows, 1.0)
        body = [self._literal(x, inner, None) if isinstance(x, Aggregate) else x for x in literal.body]
        literal = evolve(literal, body=tuple(body))
        joined, rest = _parted(literal)
        if sum(isinstance(x, Atom | Range) for x in joined) < 2:
            return literal
        given = {v for x in joined for v in variables_of_literal(x)}
        needed = _shown(literal, rest, given)
        every = _ordered(joined, self.statistics, frozenset(), needed)
        groups = every.distinct(given & outer)
        if not is_cheaper(every.cost + turns * (1 + every.rows / groups), turns * once.cost):
            return literal
        atom = self._bindings(joined, needed, given, every.rows)
        return literal if atom is None else evolve(literal, body=(atom, *rest))

    def _bindings(
        self, joined: Sequence[Literal], needed: Set[Variable], given: Set[Variable], rows: float
    ) -> Atom | None:
        """The atom that stands for literals; None if it would have no columns."""
        kinds = dict(_kinds(joined, self.relations))
        variables = tuple(v for v in kinds if v in needed and v in given)
        if not variables or not given <= kinds.keys():
            return None
        form = _form((tuple(joined), variables), {})
        if form not in self._forms:
            name = self._forms[form] = f"bindings {len(self.made) + 1} of {self.rule}"
            columns = tuple(Column(v.name, kinds[v]) for v in variables)
            self.made[name] = Bindings(
                Relation(name, columns), Rule(Atom(name, variables), tuple(joined), name), rows
            )
        return Atom(self._forms[form], variables)


def _shown(literal: Aggregate, rest: Sequence[Literal], given: Set[Variable]) -> Set[Variable]:
    """The variables of a joined body that its aggregate needs: all, but for `min` and `max`."""
    if literal.op not in ("min", "max"):
        return given
    needed = {v for x in rest for v in variables_of_literal(x)}.union(literal.outer)
    needed.update(() if literal.target is None else variables_of(literal.target))
    return needed & given


def is_cheaper(grouped: float, by_group: float) -> bool:
    """Whether the steps for all groups at once are fewer than those for one group after another."""
    return grouped < by_group


def guessed(bindings: Bindings) -> Statistics:
    """What is known of a relation of bindings before it is computed."""
    return Guess(len(bindings.relation.columns), min(max(bindings.rows, 1.0), UNKNOWN))


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


def _parted(literal: Aggregate) -> tuple[list[Literal], list[Literal]]:
    """The literals that need no more variables than the body gives, and the others."""
    given = {v for x in literal.body if isinstance(x, Atom) for v in variables_of_literal(x)}
    waiting: list[Literal] = [x for x in literal.body if not isinstance(x, Atom)]
    joined: list[Literal] = [x for x in literal.body if isinstance(x, Atom)]
    found = True
    while found:
        found = False
        for one in list(waiting):
            if _needs(one, given) <= given and not isinstance(one, Aggregate):
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


def _kinds(body: Sequence[Literal], relations: Mapping[str, Relation]) -> Iterator[tuple[Variable, Kind]]:
    """Each variable of a body with the kind of its values."""
    for literal in body:
        match literal:
            case Atom(name, args):
                for column, arg in zip(relations[name].columns, args, strict=True):
                    if isinstance(arg, Variable):
                        yield arg, column.kind
            case Comparison("=", left, right, kind):
                yield from ((v, kind) for v in (left, right) if isinstance(v, Variable))
            case Range(result=result, kind=kind):
                yield result, kind


def _form(part: object, numbers: dict[Variable, int]) -> Hashable:
    """A part of a body with its variables numbered: alike for bodies that differ in names only."""
    if isinstance(part, Variable):
        return Variable, numbers.setdefault(part, len(numbers))
    if isinstance(part, tuple):
        return tuple(_form(one, numbers) for one in part)
    kind = type(part)
    if has(kind):
        return kind, *(_form(getattr(part, one.name), numbers) for one in fields(kind))
    assert isinstance(part, Hashable)
    return part
