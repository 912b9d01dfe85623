"""Recursion through sums and counts that only grow, and through joined values.

    controls(x, z) :- company(z), s = sum n : { controls(x, y), share(y, z, n) }, s > 50.

The more facts `controls` has, the larger is `s`, and `s > 50` stays true once it is.  So the rule
is monotone, and the recursion has a least fixpoint, if the addends are not negative and the sum is
only compared in the direction in which it grows (`growth_uses`).

To follow it, the sum is split in two.  A *contribution* is one fact per match of the braces, which
a rule derives; a *running total* is a map from the outer variables to the sum of the contributions
so far.  Rules read the total as they read a map to a greatest value:

    @sum1(x, z, y, n) :- controls(x, y), share(y, z, n).
    controls(x, z)    :- company(z), total(x, z, s), s > 50.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, field, frozen

from everlog.core.program.aggregates.best_values import best_maps, misuse_of, only_maps
from everlog.core.program.aggregates.joined_values import Joined, joined_by_lattices, joined_by_order
from everlog.core.program.bodies import variables_of_literal
from everlog.core.program.dependencies import Unit
from everlog.core.program.program import (
    Aggregate,
    Atom,
    Column,
    Comparison,
    Constant,
    Kind,
    Literal,
    Program,
    Relation,
    Rule,
    Term,
    Variable,
    atoms_of,
    calls_of,
    draws_numbers,
)
from everlog.core.program.shown import shown_aggregate

GROWING = ("count", "sum")


@frozen
class RunningTotal:
    """A relation with the total of the contributions for each value of its other columns."""

    totals: str
    contributions: str
    op: str
    kind: Kind
    written: str


@frozen
class GrowingUnit:
    """A unit in which rules read running totals, and facts of one key are joined.

    `links` have a total depend on its contributions; they are not run.  `relations` are those of
    totals and contributions.
    """

    rules: tuple[Rule, ...]
    links: tuple[Rule, ...] = ()
    relations: Mapping[str, Relation] = field(factory=dict)
    totals: tuple[RunningTotal, ...] = ()
    joined: Mapping[str, Joined] = field(factory=dict)

    @property
    def why(self) -> str:
        if self.totals:
            return f"through {self.totals[0].written}"
        return f"`{next(iter(self.joined))}` joins the values of a key"


def grows_through(unit: Unit) -> Iterator[tuple[Rule, Aggregate]]:
    """The aggregates of a unit over its own relations."""
    for rule in unit.rules:
        for literal in rule.body:
            if isinstance(literal, Aggregate) and any(
                a.relation in unit.relations for a, _ in atoms_of(literal.body)
            ):
                yield rule, literal


def growing_unit(program: Program, unit: Unit) -> GrowingUnit | None:
    """The unit with running totals and joined values; None if it has neither."""
    joined = {
        name: found
        for name in unit.relations
        if (found := joined_by_lattices(program.relations[name], program.functors)) is not None
    }
    through = list(grows_through(unit))
    if not through and not joined:
        return None
    return _split(program, unit, joined)


def as_joined_maps(program: Program, unit: Unit) -> GrowingUnit | None:
    """A unit of maps and sets that no one order of values settles; None if it is no such unit."""
    maps = best_maps(program, unit.relations)
    if not maps or isinstance(only_maps(program, unit), dict) or misuse_of(program, unit, maps) is not None:
        return None
    if any(s.dominated.relation not in maps for s in unit.subsumptions) or any(map(draws_numbers, unit.rules)):
        return None
    for name in unit.relations:
        relation = program.relations[name]
        if relation.equivalence or relation.choices or name in program.limits:
            return None
    adds = any(
        sum(atom.relation in maps for atom, _ in atoms_of(rule.body)) > 1 and any(True for _ in calls_of(rule))
        for rule in unit.rules
    )
    joined = {name: joined_by_order(program.relations[name], known, adds) for name, known in maps.items()}
    return GrowingUnit(unit.rules, joined=joined)


# ── totals and contributions ─────────────────────────────────────────────────────────────────


def _split(program: Program, unit: Unit, joined: Mapping[str, Joined]) -> GrowingUnit:
    rules: list[Rule] = []
    added = _Added(program)
    for rule in unit.rules:
        own = [
            x
            for x in rule.body
            if isinstance(x, Aggregate) and any(a.relation in unit.relations for a, _ in atoms_of(x.body))
        ]
        if not own:
            rules.append(rule)
            continue
        read = {id(x): added.total(x, rule, n) for n, x in enumerate(own)}
        for choice in range(2 ** len(own)):
            zero = [x for n, x in enumerate(own) if choice >> n & 1]
            made = _with_zero(rule, read, zero)
            if made is not None:
                rules.append(made)
    return GrowingUnit(
        (*rules, *added.rules), tuple(added.links), added.relations, tuple(added.totals), dict(joined)
    )


def _with_zero(rule: Rule, read: Mapping[int, Atom], zero: Sequence[Aggregate]) -> Rule | None:
    """The rule that reads totals, and takes some of them for 0: there are no contributions."""
    body: list[Literal] = []
    nothing = {x.result: x for x in zero}
    for literal in rule.body:
        if isinstance(literal, Aggregate) and literal.result in nothing:
            kind = literal.kind
            body.append(Comparison("=", literal.result, Constant(0.0 if kind is Kind.FLOAT else 0, kind), kind))
        elif id(literal) in read:
            body.append(read[id(literal)])
        else:
            if isinstance(literal, Comparison) and _fails_at_zero(literal, nothing):
                return None
            body.append(literal)
    name = f"{rule.name} from {', '.join(str(x.result) for x in zero)}" if zero else rule.name
    return evolve(rule, body=tuple(body), name=name)


def _fails_at_zero(test: Comparison, nothing: Mapping[Variable, Aggregate]) -> bool:
    """Whether a comparison of a total with a constant is false for 0."""
    turned = {"<": ">", "<=": ">="}.get(test.op, "")
    for side, op, bound in ((test.left, test.op, test.right), (test.right, turned, test.left)):
        if side in nothing and isinstance(bound, Constant) and not isinstance(bound.value, str):
            return (op == ">" and bound.value >= 0) or (op == ">=" and bound.value > 0)
    return False


class _Added:
    """The relations and rules of totals and contributions."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.rules: list[Rule] = []
        self.links: list[Rule] = []
        self.relations: dict[str, Relation] = {}
        self.totals: list[RunningTotal] = []

    def total(self, literal: Aggregate, rule: Rule, number: int) -> Atom:
        """Declare the total of an aggregate; the atom that reads it."""
        totals = f"@total{number + 1} of {rule.name}"
        contributions = f"{totals}+"
        kinds = self._kinds(literal.body)
        inner = dict.fromkeys(v for x in literal.body for v in variables_of_literal(x))
        hidden = [v for v in inner if v not in literal.outer]
        target: Term = Constant(1, Kind.NUMBER) if literal.target is None else literal.target
        outer = [Column(v.name, kinds.get(v, Kind.NUMBER)) for v in literal.outer]
        more = [Column(v.name, kinds.get(v, Kind.NUMBER)) for v in hidden]
        value = Column("total", literal.kind)
        self.relations[totals] = Relation(totals, (*outer, value))
        self.relations[contributions] = Relation(contributions, (*outer, *more, value))
        head = Atom(contributions, (*literal.outer, *hidden, target))
        self.rules.append(Rule(head, literal.body, f"{contributions}#1", rule.origin))
        result = Variable("total@")
        shown = Atom(contributions, (*literal.outer, *hidden, result))
        self.links.append(Rule(Atom(totals, (*literal.outer, result)), (shown,), f"{totals}#1", rule.origin))
        self.totals.append(RunningTotal(totals, contributions, literal.op, literal.kind, shown_aggregate(literal)))
        return Atom(totals, (*literal.outer, literal.result))

    def _kinds(self, body: Sequence[Literal]) -> dict[Variable, Kind]:
        found: dict[Variable, Kind] = {}
        for literal in body:
            if isinstance(literal, Atom):
                columns = self.program.relations[literal.relation].columns
                for arg, column in zip(literal.args, columns, strict=True):
                    if isinstance(arg, Variable):
                        found[arg] = column.kind
            elif isinstance(literal, Comparison) and isinstance(literal.left, Variable):
                found.setdefault(literal.left, literal.kind)
        return found
