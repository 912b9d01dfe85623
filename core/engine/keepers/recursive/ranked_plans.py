"""The plans by which the compiled machine follows changes through the rules of a unit.

    whole    a rule that reads nothing of its unit, as it is
    outer    a rule from the change of another relation, also one that it reads under `!`
    inner    a rule from the change of a relation of its unit
    proofs   a rule backwards: from facts of its head to their derivations

The same plan serves what goes and what comes (core/native/live.h).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from everlog.core import program as p
from everlog.core.codegen.join_estimates import Estimate
from everlog.core.codegen.join_order import Ordering
from everlog.core.ir.lowering import lower_living
from everlog.core.ir.operations import Plan
from everlog.core.native.words import KIND_NUMBERS
from everlog.core.program import Atom, Call, Comparison, Kind, Literal, Negation, Relation, Rule, Term, Variable
from everlog.core.program.bodies import variables_of_literal
from everlog.core.storage.table_statistics import Statistics

if TYPE_CHECKING:
    from everlog.core.native import _machine as machine


@frozen
class Follower:
    """A plan that reads the change of `source`; `negated`: it stands under `!` there."""

    rule: Rule
    source: str
    plan: machine.Plan
    negated: bool = False


@frozen
class Proof:
    """A rule backwards: variables of its body, and their registers and kinds, from a fact."""

    rule: Rule
    plan: machine.Plan
    variables: tuple[Variable, ...]
    registers: tuple[int, ...]
    kinds: tuple[int, ...]


class RankedPlans:
    """All plans of a unit, for the sizes that its relations have now."""

    def __init__(
        self,
        rules: tuple[Rule, ...],
        relations: Mapping[str, Relation],
        live: Mapping[str, machine.Live],
        symbols: machine.Symbols,
        statistics: Callable[[str], Statistics],
        watch: Callable[[], object],
    ) -> None:
        self.relations, self.live, self.symbols, self.watch = relations, live, symbols, watch
        self.statistics = cache(statistics)  # a sample walks over all rows
        self.sizes = {name: float(len(one)) for name, one in live.items()}
        own = {rule.head.relation for rule in rules}
        self.whole: list[tuple[Rule, machine.Plan]] = []
        self.outer: list[Follower] = []
        self.inner: dict[str, list[Follower]] = {name: [] for name in own}
        self.proofs: dict[str, list[Proof]] = {name: [] for name in own}
        for rule in rules:
            reads_unit = False
            for place, literal in enumerate(rule.body):
                if isinstance(literal, Atom) and literal.relation in own:
                    reads_unit = True
                    plan = self._assembled(rule, place)
                    self.inner[literal.relation].append(Follower(rule, literal.relation, plan))
                elif isinstance(literal, Atom):
                    self.outer.append(Follower(rule, literal.relation, self._assembled(rule, place)))
                elif isinstance(literal, Negation):
                    turned = _turned(rule, place, literal)
                    plan = self._assembled(turned, place)
                    self.outer.append(Follower(rule, literal.atom.relation, plan, negated=True))
            if not reads_unit:
                self.whole.append((rule, self._assembled(rule, None)))
            self.proofs[rule.head.relation].append(self._proof(rule))

    def _lowered(self, rule: Rule, delta: int | None) -> Plan:
        names = {atom.relation for atom, _ in p.atoms_of(rule.body)}
        statistics = {name: self.statistics(name) for name in names}

        def order(body: Sequence[Literal], bound: Set[Variable], first: int | None) -> Sequence[Estimate]:
            variables = frozenset(v for literal in body for v in variables_of_literal(literal))
            fixed = rule.order_of(delta) if body is rule.body else ()
            return Ordering(body, statistics, bound, first, kept=variables, fixed=fixed).chosen()

        return lower_living(rule, order, self.relations, delta)

    def _assembled(self, rule: Rule, delta: int | None) -> machine.Plan:
        return self._made(self._lowered(rule, delta))

    def _made(self, plan: Plan) -> machine.Plan:
        from everlog.core.native.assembly import assemble  # here: only where the machine was built

        words = {name: one.relation for name, one in self.live.items()}
        return assemble(plan, words, {}, self.symbols, self.watch).code

    def _proof(self, rule: Rule) -> Proof:
        from everlog.core.native.assembly import registers_of

        lowered = self._lowered(_backwards(rule, self.relations[rule.head.relation]), 0)
        registers = registers_of(lowered)
        kinds = {v: k for v, k in _kinds(rule.body, self.relations).items() if v in registers}
        numbers = tuple(KIND_NUMBERS[kind] for kind in kinds.values())
        plan = self._made(lowered)
        plan.keep()
        return Proof(rule, plan, tuple(kinds), tuple(registers[v] for v in kinds), numbers)


def _turned(rule: Rule, place: int, negation: Negation) -> Rule:
    """The rule with a negated atom read as a positive one, from its change."""
    assert isinstance(negation.atom, Atom)
    return evolve(rule, body=(*rule.body[:place], negation.atom, *rule.body[place + 1 :]))


def _backwards(rule: Rule, head: Relation) -> Rule:
    """The rule with its head as the first atom of the body; what the head computes is compared.

    >>> x, y = Variable("x"), Variable("y")
    >>> rule = Rule(Atom("p", (x,)), (Atom("q", (x, y)),))
    >>> print(_backwards(rule, Relation("p", (p.Column("x", Kind.NUMBER),))))
    p(x) :- p(x), q(x, y).
    """
    args: list[Term] = []
    computed: list[Literal] = []
    for number, (arg, column) in enumerate(zip(rule.head.args, head.columns, strict=True)):
        if isinstance(arg, Call):
            variable = Variable(f"%head{number}")
            computed.append(Comparison("=", variable, arg, column.kind))
            args.append(variable)
        else:
            args.append(arg)
    return evolve(rule, body=(Atom(rule.head.relation, tuple(args)), *rule.body, *computed))


def _kinds(body: tuple[Literal, ...], relations: Mapping[str, Relation]) -> dict[Variable, Kind]:
    """The variables of a body, with their kinds."""
    found: dict[Variable, Kind] = {}
    for literal in body:
        match literal:
            case Atom(relation, args):
                for arg, column in zip(args, relations[relation].columns, strict=True):
                    if isinstance(arg, Variable):
                        found[arg] = column.kind
            case Comparison(_, left, right, kind):
                found.update({side: kind for side in (left, right) if isinstance(side, Variable)})
            case _:
                pass
    return found
