"""The normal form of rules: every change reaches them through one relation.

A delta rule replaces one literal of a body by the change of its relation.  That needs literals
whose truth for one binding depends on one fact, so some things are rewritten:

`e(x, _)`           becomes `e/0(x)`, under `!` too, where `e/0(x) :- e(x, y).` keeps the projection
`r(x, y), s(y, z)`   becomes `r(x, y), s/0(y)` where the head hides z: see `planning.existence`
`n = count : {…}`   becomes a lookup of the group's value; an auxiliary rule derives what the group
                    counts, sums or orders: `@count1(outer…, target) :- body.`

An aggregate whose outer variables are bound only outside (`count : { e(y, z), z > x }`) gets a
*domain*: an auxiliary relation with the values that those variables have in the rest of the rule.

A group that no rule reads may fail (`sum 12 / y : { e(x, y) }`).  So its failure is its value, and
the rule that looks it up fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, count

from attrs import evolve, field, frozen, mutable

from everlog.core import program as p
from everlog.core.engine.planning.existence import Reduced, reduced
from everlog.core.program import (
    Aggregate,
    Atom,
    Column,
    Comparison,
    Constant,
    Failure,
    Kind,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Term,
    Value,
    Variable,
    Wildcard,
)
from everlog.core.program.aggregates.ordered_groups import OrderedAggregate, most_counted, ordered_aggregate
from everlog.core.program.bodies import binds, may_fail, needs, schedule, sure_and_open
from everlog.core.program.shown import shown_aggregate, shown_name

ONE = Constant(1, Kind.NUMBER)
TARGET = Variable("target@")


class NeedsItself(Exception):
    """Only the recursion around an aggregate binds its outer variables."""


@frozen
class Group:
    """The aggregate `op` over the last column of a relation, grouped by the others."""

    name: str
    op: str
    kind: Kind
    written: str
    may_fail: bool = False
    ordered: Ordered | None = None
    start: Value | None = None  # of a function of the user
    target: Kind | None = None  # of what is aggregated, if no such value may fail
    best: bool = False  # whether rules look it up in the place of an atom: see `existence`


@frozen
class Ordered:
    """How an aggregate over intervals is kept: see `ordered_groups`.

    `domain` has the values of the outer variables.  `entries` derives `(place, target, group…)` for
    each fact in the braces.  The rule lets no count from `limit` on pass.
    """

    form: OrderedAggregate
    domain: str
    entries: Rule
    limit: int | None = None


@mutable
class Normaliser:
    """Rewrites rules one by one; collects added `relations`, `rules` and `groups`."""

    program: Program
    relations: dict[str, Relation] = field(factory=dict)
    rules: list[Rule] = field(factory=list)
    groups: dict[str, Group] = field(factory=dict)
    fresh: count[int] = field(factory=lambda: count(1))

    def rule(self, rule: Rule, unit: frozenset[str]) -> Rule:
        """The rule in normal form; `unit` has the relations computed together with it.

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

    # ── hidden variables ─────────────────────────────────────────────────────────────────────

    def existential(self, rule: Rule) -> Rule:
        """The rule with auxiliary relations in the place of variables that its head hides."""
        return self._in_parts(reduced(rule), rule, None)

    def _in_parts(self, found: Reduced, rule: Rule, of: Aggregate | None) -> Rule:
        """The rule over auxiliary relations; parts that are best are those `of` an aggregate."""
        names: dict[str, str] = {}
        written: dict[str, tuple[Literal, ...]] = {}
        kinds = _kinds(evolve(self.program, relations={**self.program.relations, **self.relations}), rule.body)

        def named(literal: Literal) -> Literal:
            if not isinstance(literal, Atom) or literal.relation not in names:
                return literal
            name = names[literal.relation]
            if of is None or not found.is_best(literal):
                return Atom(name, literal.args)
            *outer, result = [arg for arg in literal.args if isinstance(arg, Variable)]
            body = (Atom(name, (*outer, TARGET)),)
            return evolve(of, result=result, target=TARGET, body=body, outer=tuple(outer), partial=False)

        for part in found.parts:
            body = tuple(map(named, part.body))
            literals = (written.get(x.relation, (x,)) if isinstance(x, Atom) else (x,) for x in part.body)
            written[part.head.relation] = tuple(chain.from_iterable(literals))
            if part.best and of is not None:
                shown = evolve(of, target=part.head.args[-1], body=written[part.head.relation])
                names[part.head.relation] = self._best(Rule(part.head, body, rule.name, rule.origin), kinds, shown)
            else:
                names[part.head.relation] = self._existing(part.head, body, rule, kinds)
        return evolve(found.rule, body=tuple(map(named, found.rule.body)))

    def _best(self, rule: Rule, kinds: dict[Variable, Kind], of: Aggregate) -> str:
        """The auxiliary relation whose best values are looked up, by the other columns."""
        name = f"@{of.op}{rule.head.relation} of {rule.name}"
        variables = [v for v in rule.head.args if isinstance(v, Variable)]
        columns = tuple(Column(v.name, kinds.get(v, of.kind)) for v in variables)
        self.relations[name] = Relation(name, columns)
        self.rules.append(evolve(rule, head=Atom(name, rule.head.args), name=f"{name}#1"))
        self.groups[name] = Group(name, of.op, of.kind, shown_aggregate(of), target=columns[-1].kind, best=True)
        return name

    def _existing(self, head: Atom, body: tuple[Literal, ...], rule: Rule, kinds: dict[Variable, Kind]) -> str:
        """The auxiliary relation for a head; all rules share that of a projection."""
        first = body[0]
        if len(body) == 1 and isinstance(first, Atom) and first.relation in self.program.relations:
            columns = [first.args.index(arg) for arg in head.args]
            if len(set(first.args)) == len(first.args) and all(isinstance(a, Variable) for a in first.args):
                return self._projection(first.relation, columns)
        name = f"@exists{head.relation} of {rule.name}"
        columns_of = [Column(v.name, kinds.get(v, Kind.NUMBER)) for v in head.args if isinstance(v, Variable)]
        self.relations[name] = Relation(name, tuple(columns_of))
        self.rules.append(Rule(Atom(name, head.args), body, f"{name}#1", rule.origin))
        return name

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
        partial = may_fail(literal)
        if may_fail(target):  # then it is an ordinary condition
            inner = (*inner, Comparison("=", TARGET, target, target_kind))
            target = TARGET
        head = Atom(name, (*literal.outer, target))
        failure = Failure.VALUE if partial else Failure.ERROR
        made = Rule(head, self.body(inner, unit, rule), f"{name}#1", rule.origin, failure=failure)
        ordered = self._in_order(literal, body, made)
        if ordered is None and literal.op in ("min", "max"):  # how often a value is there does not matter
            best = target.name if isinstance(target, Variable) and target not in literal.outer else ""
            made = self._in_parts(reduced(made, best), made, literal)
        self.rules.append(made)
        start = None if literal.start is None else literal.start.value
        written = shown_aggregate(literal)
        known = None if partial else target_kind
        self.groups[name] = Group(name, literal.op, literal.kind, written, partial, ordered, start, known)
        held = TARGET if isinstance(target, p.Call) else target  # only the relation matters
        return evolve(literal, body=(Atom(name, (*literal.outer, held)),), partial=partial)

    def _in_order(self, literal: Aggregate, body: Sequence[Literal], made: Rule) -> Ordered | None:
        """How to keep an aggregate over intervals, if it is one; `made` joins facts and bounds."""
        form = ordered_aggregate(literal)
        domain = made.body[0]
        if form is None or not isinstance(domain, Atom):
            return None
        assert domain.relation == f"{made.head.relation}?"
        bounds = {x for x in literal.body if x not in form.inner}
        inner = tuple(x for x in made.body[1:] if x not in bounds)
        target = ONE if form.target is None else form.target
        head = Atom(f"{made.head.relation}<", (form.place, target, *form.group))
        entries = Rule(head, inner, made.name, made.origin)
        return Ordered(form, domain.relation, entries, most_counted(literal, body))

    def _grounded(
        self, literal: Aggregate, body: Sequence[Literal], unit: frozenset[str], rule: Rule, name: str
    ) -> tuple[Literal, ...]:
        """The aggregate's body, with a domain for outer variables that it may not bind."""
        wanted = {v.name for v in literal.outer}
        sure, _ = sure_and_open(literal.body, ())
        if wanted <= _bound(sure) and not schedule(literal.body, ())[1]:
            return literal.body
        others = [x for x in body if x is not literal and unit.isdisjoint(a.relation for a, _ in p.atoms_of((x,)))]
        outside = _binding(others, wanted)
        if outside is None:
            missing = [v for v in literal.outer if v.name not in _bound(schedule(others, ())[0])]
            raise NeedsItself(
                f"`{shown_name(missing[0].name)}` in `{shown_aggregate(literal)}` is bound by the recursion itself"
            )
        domain = f"{name}?"
        kinds = _kinds(self.program, body)
        self.relations[domain] = Relation(
            domain, tuple(Column(v.name, kinds.get(v, Kind.NUMBER)) for v in literal.outer)
        )
        head, inside = Atom(domain, literal.outer), self.body(outside, unit, rule)
        self.rules.append(Rule(head, inside, f"{domain}#1", rule.origin, failure=Failure.NOTHING))
        return (Atom(domain, literal.outer), *literal.body)


def _binding(body: Sequence[Literal], wanted: set[str]) -> list[Literal] | None:
    """The literals that bind the wanted variables; None if none do.

    A literal that may fail is omitted if it binds none of them: the domain needs no filter.
    """
    sure, rest = sure_and_open(body, ())
    known = _bound(sure)
    further: list[tuple[Literal, set[str]]] = []  # each with the variables that it binds first
    for literal in schedule(rest, known)[0]:
        further.append((literal, binds(literal) - known))
        known |= binds(literal)
    if not wanted <= known:
        return None
    chosen: list[Literal] = []
    for literal, new in reversed(further):
        if not new.isdisjoint(wanted):
            chosen.insert(0, literal)
            wanted = wanted | needs(literal)
    return [*sure, *chosen]


def _bound(literals: Iterable[Literal]) -> set[str]:
    return {name for literal in literals for name in binds(literal)}


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
