"""The normal form of rules that can be maintained: every change reaches them through one relation.

A delta rule replaces one literal of a body by the change of its relation.  That needs literals
whose truth for one binding depends on one fact, so two things are rewritten:

`e(x, _)`           becomes `e/0(x)`, under `!` too, where `e/0(x) :- e(x, y).` keeps the projection
`n = count : {…}`   becomes a lookup of the group's value; an auxiliary rule derives what the group
                    counts, sums or orders: `@count1(outer…, target) :- body.`

An aggregate whose outer variables are bound only outside (`count : { e(y, z), z > x }`) gets a
*domain*: an auxiliary relation with the values that those variables take in the rest of the rule.
So does one that may fail (`sum 12 / y : { e(x, y) }`): only groups that are asked for are computed.

Reads: core.program, core.reference (which literals a binding makes ready).  Read by: core.engine.plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from attrs import evolve, field, frozen, mutable

from everlog.core import program as p
from everlog.core.codegen.agenda import variables_of_literal
from everlog.core.program import (
    Aggregate,
    Atom,
    Column,
    Constant,
    Kind,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Term,
    Variable,
    Wildcard,
)
from everlog.core.reference import schedule

ONE = Constant(1, Kind.NUMBER)


class NeedsItself(Exception):
    """An aggregate's outer variables are bound by nothing but the recursion that it stands in."""


@frozen
class Group:
    """The aggregate `op` over the last column of the relation `name`, for each value of the others."""

    name: str
    op: str
    kind: Kind
    written: str


@mutable
class Normaliser:
    """Rewrites rules one by one; `relations`, `rules` and `groups` collect what that adds."""

    program: Program
    relations: dict[str, Relation] = field(factory=dict)
    rules: list[Rule] = field(factory=list)
    groups: dict[str, Group] = field(factory=dict)
    fresh: count[int] = field(factory=lambda: count(1))

    def rule(self, rule: Rule, unit: frozenset[str]) -> Rule:
        """The rule in normal form; `unit` are the relations that it is computed together with.

        New names depend on the rule alone: they stay when other rules come and go.
        """
        self.fresh = count(1)
        return evolve(rule, body=self.body(rule.body, unit, rule))

    def body(self, body: Sequence[Literal], unit: frozenset[str], rule: Rule) -> tuple[Literal, ...]:
        out: list[Literal] = []
        for literal in body:
            match literal:
                case Atom():
                    out.append(self._projected(literal))
                case Negation(Atom() as atom):
                    out.append(Negation(self._projected(atom)))
                case Aggregate():
                    out.append(self._looked_up(literal, body, unit, rule))
                case _:
                    out.append(literal)
        return tuple(out)

    # ── wildcards ────────────────────────────────────────────────────────────────────────────

    def _projected(self, atom: Atom) -> Atom:
        """The atom over a projection that has no column for a wildcard."""
        columns = [c for c, arg in enumerate(atom.args) if not isinstance(arg, Wildcard)]
        if len(columns) == len(atom.args):
            return atom
        return Atom(self._projection(atom.relation, columns), tuple(atom.args[c] for c in columns))

    def _projection(self, relation: str, columns: list[int]) -> str:
        name = f"{relation}/{','.join(map(str, columns))}"
        if name not in self.relations:
            declared = self.program.relations[relation]
            self.relations[name] = Relation(name, tuple(declared.columns[c] for c in columns))
            args = [Variable(f"c{c}") for c in range(declared.arity)]
            head = Atom(name, tuple(args[c] for c in columns))
            self.rules.append(Rule(head, (Atom(relation, tuple(args)),), f"{name}#1"))
        return name

    # ── aggregates ───────────────────────────────────────────────────────────────────────────

    def _looked_up(
        self, literal: Aggregate, body: Sequence[Literal], unit: frozenset[str], rule: Rule
    ) -> Aggregate:
        name = f"@{literal.op}{next(self.fresh)} of {rule.name}"
        inner = self._grounded(literal, body, unit, rule, name)
        kinds = _kinds(self.program, [*body, *inner])
        target: Term = ONE if literal.target is None else literal.target
        target_kind = Kind.NUMBER if literal.target is None else _kind(target, kinds, literal.kind)
        columns = [Column(v.name, kinds.get(v, Kind.NUMBER)) for v in literal.outer]
        self.relations[name] = Relation(name, (*columns, Column("target", target_kind)))
        head = Atom(name, (*literal.outer, target))
        self.groups[name] = Group(name, literal.op, literal.kind, str(literal))
        self.rules.append(Rule(head, self.body(inner, unit, rule), f"{name}#1", rule.origin))
        return evolve(literal, body=(Atom(name, (*literal.outer, target)),))

    def _grounded(
        self, literal: Aggregate, body: Sequence[Literal], unit: frozenset[str], rule: Rule, name: str
    ) -> tuple[Literal, ...]:
        """The aggregate's body, with a domain for the outer variables if it does not bind them all.

        A body that may fail has one, too: no group may fail that nobody asks for.
        """
        order, stuck = schedule(literal.body, set())
        bound = {v for x in order for v in variables_of_literal(x)}
        binds_all = not stuck and bound.issuperset(literal.outer)
        if binds_all and not (literal.outer and _may_fail(literal)):
            return literal.body
        others = [x for x in body if x is not literal and not _reads(x, unit)]
        outside, _ = schedule(others, set())
        reached = {v for x in outside for v in variables_of_literal(x)}
        missing = [v for v in literal.outer if v not in reached]
        if missing and binds_all:
            return literal.body
        if missing:
            raise NeedsItself(f"`{missing[0]}` in `{literal}` is bound by the recursion itself")
        domain = f"{name}?"
        kinds = _kinds(self.program, body)
        self.relations[domain] = Relation(
            domain, tuple(Column(v.name, kinds.get(v, Kind.NUMBER)) for v in literal.outer)
        )
        head = Atom(domain, literal.outer)
        self.rules.append(Rule(head, self.body(outside, unit, rule), f"{domain}#1", rule.origin))
        return (Atom(domain, literal.outer), *literal.body)


def _may_fail(literal: Aggregate) -> bool:
    """Whether the body or the target computes something that is not defined for all values."""
    head = Atom("", () if literal.target is None else (literal.target,))
    return may_fail(Rule(head, literal.body))


def may_fail(rule: Rule) -> bool:
    """Whether a rule computes something that is not defined for all values."""
    return any(
        call.name.startswith(("@", "to_")) or call.name in ("/", "%", "as")
        for call in p.calls_of(rule)
        if not (call.name in ("/", "%") and isinstance(call.args[1], Constant) and call.args[1].value)
    )


def _reads(literal: Literal, unit: frozenset[str]) -> bool:
    return any(atom.relation in unit for atom, _ in p.atoms_of((literal,)))


def _kinds(program: Program, body: Iterable[Literal]) -> dict[Variable, Kind]:
    """The kinds of variables, as far as positive atoms tell: enough for messages."""
    kinds: dict[Variable, Kind] = {}
    for literal in body:
        if isinstance(literal, Atom) and literal.relation in program.relations:
            columns = program.relations[literal.relation].columns
            for arg, column in zip(literal.args, columns, strict=True):
                if isinstance(arg, Variable):
                    kinds[arg] = column.kind
    return kinds


def _kind(term: Term, kinds: dict[Variable, Kind], otherwise: Kind) -> Kind:
    match term:
        case Constant(kind=kind) | p.Call(kind=kind):
            return kind
        case Variable():
            return kinds.get(term, otherwise)
        case _:
            return otherwise
