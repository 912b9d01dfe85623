"""Programs that compute only what a query needs (magic sets).

A query such as `path(1, x)` needs the paths from 1, not all paths.  An *adornment* says which
columns of an atom have values when it is asked for: `path^bf` is `path` with a bound first column.
Its *magic* relation `path?bf` holds the values asked for, and rules of `path^bf` begin with it:

    path?bf(1).
    path^bf(x, y) :- path?bf(x), edge(x, y).
    path^bf(x, z) :- path^bf(x, y), edge(y, z).

**Invariant:** a fact of `r^a` is a fact of `r`; and `r^a` has every fact of `r` whose bound columns
are in `r?a`.  So a query, a negation and an aggregate over `r^a` mean the same as over `r`.

Values for magic relations come from what stands before an atom: never from arithmetic, so that
demand ends when the program does, and never from a condition that may fail, so that it does not
fail where the program would not.  A relation is computed whole if it depends on the order of its
evaluation, or if its demand would go through a negation or an aggregate of itself.

Source: C. Beeri, R. Ramakrishnan, On the power of magic, Journal of Logic Programming 10, 1991.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TypeVar

from attrs import evolve, field, frozen

from everlog.core.program.aggregates.growing import grows_through
from everlog.core.program.bodies import binds, is_ready, may_fail, names, variables_of_literal
from everlog.core.program.demand_constants import with_constants
from everlog.core.program.dependencies import edges, units
from everlog.core.program.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Term,
    Variable,
    atoms_of,
    draws_numbers,
)

_T = TypeVar("_T")


@frozen
class Demand:
    """A program that computes the answers of a query in the relation `goal`.

    `adornments` lists those of each relation that is asked for in part; `whole` says why other
    relations are computed whole.
    """

    program: Program
    goal: str
    adornments: Mapping[str, tuple[str, ...]]
    whole: Mapping[str, str]

    def text(self) -> str:
        """The adornments, reasons and rules, for `--explain`."""
        lines = [f"{name}: asked for as {', '.join(found)}" for name, found in self.adornments.items()]
        lines += [f"{name}: computed whole, since {why}" for name, why in self.whole.items()]
        return "\n".join([*lines, *map(str, self.program.rules)])


def demanded(program: Program, query: Sequence[Rule], relation: Relation) -> Demand:
    """The part of a program that a query needs; `relation` declares the head of its rules."""
    special = dict(special_relations(program))
    numbered = [rule.head.relation for rule in program.rules if draws_numbers(rule)]
    if any(name in _needed(program, query) for name in numbered):
        relations = {**program.relations, relation.name: relation}
        why = "numbers from autoinc() depend on the whole program"
        rules = (*program.rules, *query)
        return Demand(
            evolve(program, relations=relations, rules=rules), relation.name, {}, dict.fromkeys(numbered, why)
        )
    program, query = with_constants(program, query, special)
    whole = closed(program, special)
    while True:
        built = Builder(program, whole)
        built.run(query, relation)
        found = evolve(built.result(relation), facts=built.facts())
        crossed = _crossed(found)
        if not crossed:
            used = {name for name in whole if name in found.relations and program.rules_of(name)}
            reasons = {name: why for name, why in whole.items() if name in used}
            return Demand(found, relation.name, built.adornments(), reasons)
        why = "demand for it would go through its own negation or aggregate"
        whole = closed(program, {**whole, **{built.origin.get(name, name): why for name in crossed}})


# ── relations that are computed whole ────────────────────────────────────────────────────────


def special_relations(program: Program) -> Iterator[tuple[str, str]]:
    for name, relation in program.relations.items():
        if relation.equivalence:
            yield name, "it is an equivalence"
        elif relation.choices:
            yield name, "it has a choice-domain"
        elif name in program.limits:
            yield name, "it has a .limitsize"
        elif relation.lattices:
            yield name, "it joins the values of a lattice"
    for unit in units(program):
        if any(True for _ in grows_through(unit)):
            yield from ((name, "its recursion goes through a running total") for name in unit.relations)
    for subsumption in program.subsumptions:
        yield subsumption.dominated.relation, "it has subsumption"


def _needed(program: Program, query: Sequence[Rule]) -> set[str]:
    """The relations that a query depends on."""
    return set(closed(program, {atom.relation: "" for rule in query for atom, _ in atoms_of(rule.body)}))


def closed(program: Program, whole: Mapping[str, str]) -> dict[str, str]:
    """The relations, and all that they depend on."""
    needed: dict[str, set[str]] = {}
    for edge in edges(program):
        needed.setdefault(edge.head, set()).add(edge.body)
    found, waiting = dict(whole), list(whole)
    while waiting:
        name = waiting.pop()
        for other in sorted(needed.get(name, ())):
            if other not in found:
                found[other] = f"`{name}` is"
                waiting.append(other)
    return found


def _crossed(program: Program) -> set[str]:
    """The relations that are negated or aggregated in their own unit."""
    home = {name: number for number, unit in enumerate(units(program)) for name in unit.relations}
    return {e.body for e in edges(program) if e.use != "positive" and home[e.head] == home[e.body]}


# ── adorned rules ────────────────────────────────────────────────────────────────────────────


@frozen
class Adorned:
    """A relation as it is asked for: `b` for each column with a value, `f` for the others."""

    relation: str
    adornment: str
    _bound: tuple[bool, ...] = field(init=False, eq=False, repr=False)  # for each column

    @_bound.default
    def _bound_columns(self) -> tuple[bool, ...]:
        return tuple(mark == "b" for mark in self.adornment)

    @property
    def name(self) -> str:
        return f"{self.relation}^{self.adornment}"

    @property
    def magic(self) -> str:
        return f"{self.relation}?{self.adornment}"

    def bound(self, args: Sequence[_T]) -> tuple[_T, ...]:
        """What stands in the columns that have values: of an atom, or of a fact."""
        return tuple(compress(args, self._bound))


@frozen
class Passing:
    """What stands before an atom: literals that may give values, and the variables they bind."""

    literals: tuple[Literal, ...] = ()
    known: frozenset[str] = frozenset()

    def after(self, literal: Literal) -> Passing:
        return Passing((*self.literals, literal), self.known | binds(literal))


@frozen(eq=False)
class Builder:
    program: Program
    whole: Mapping[str, str]
    rules: dict[Rule, None] = field(factory=dict)
    asked: dict[Adorned, None] = field(factory=dict)
    origin: dict[str, str] = field(factory=dict)  # name → the relation that it is a part of

    def run(self, query: Iterable[Rule], relation: Relation) -> None:
        for rule in query:
            self.rules[evolve(rule, body=tuple(self.body(rule.body, Passing(), None)))] = None
        done: set[Adorned] = set()
        while todo := [asked for asked in self.asked if asked not in done]:
            for asked in todo:
                done.add(asked)
                for rule in self.rules_of(asked):
                    self.adorned(rule, asked)

    def guards(self, asked: Adorned) -> bool:
        """Whether rules wait until the relation is asked for: else they derive all of it."""
        return "b" in asked.adornment

    def rules_of(self, asked: Adorned) -> Iterator[Rule]:
        """The rules of a relation, and one for its base facts, if it may have some."""
        yield from self.program.rules_of(asked.relation)
        if "[" in asked.relation and asked.relation not in self.program.facts:
            return  # made for the query
        args = tuple(Variable(f"^{n}") for n in range(len(asked.adornment)))
        yield Rule(Atom(asked.relation, args), (Atom(f"{asked.relation}!", args),), name=f"{asked.relation}#0")

    def adorned(self, rule: Rule, asked: Adorned) -> None:
        equations: list[Literal] = []
        args: list[Term] = []
        for n, arg in enumerate(rule.head.args):
            if isinstance(arg, Call) and asked.adornment[n] == "b":
                args.append(Variable(f"^{n}"))
                equations.append(Comparison("=", Variable(f"^{n}"), arg, arg.kind))
            else:
                args.append(arg)
        magic = Atom(asked.magic, asked.bound(args)) if self.guards(asked) else None
        start = Passing()
        if magic is not None:
            start = Passing((magic,), frozenset(names(x for x in magic.args if x in rule.head.args)))
        body = [*self.body(rule.body, start, magic), *equations]
        if magic is not None and not _implies(body, asked, args):
            body.insert(0, magic)
        self.rules[evolve(rule, head=Atom(asked.name, tuple(args)), body=tuple(body))] = None

    def body(self, body: Sequence[Literal], passing: Passing, magic: Atom | None) -> list[Literal]:
        """The body over what is asked for; adds the rules that ask for it."""
        new: dict[int, Literal] = {}
        rest = list(enumerate(body))
        while rest:
            place, literal = min(rest, key=lambda each: self._turn(each[1], passing.known))
            rest.remove((place, literal))
            new[place] = replaced = self._literal(literal, passing, magic)
            if isinstance(literal, Atom) or (_gives_values(literal) and is_ready(literal, passing.known)):
                passing = passing.after(replaced)
        return [new[place] for place in range(len(body))]

    def _turn(self, literal: Literal, known: frozenset[str]) -> tuple[int, int]:
        """Conditions that are ready, then atoms with values, base facts first; the rest last."""
        if not isinstance(literal, Atom):
            return (0, 0) if is_ready(literal, known) else (4, 0)
        free = sum(isinstance(arg, Variable) and arg.name not in known for arg in literal.args)
        return (
            1 if any(_has_value(arg, known) for arg in literal.args) else 2,
            2 * free + self.is_asked(literal.relation),
        )

    def is_asked(self, relation: str) -> bool:
        """Whether a relation is asked for in part."""
        return relation not in self.whole and bool(self.program.rules_of(relation))

    def _literal(self, literal: Literal, passing: Passing, magic: Atom | None) -> Literal:
        match literal:
            case Atom():
                return self._atom(literal, passing, magic)
            case Negation(atom):
                return Negation(self._atom(atom, passing, magic))
            case Aggregate(body=inner, outer=outer):
                known = frozenset(names(outer)) & passing.known
                own = names(v for each in inner for v in variables_of_literal(each)) - names(outer)
                before = names(v for each in passing.literals for v in variables_of_literal(each))
                inside = Passing() if own & before else Passing(passing.literals, known)
                return evolve(literal, body=tuple(self.body(inner, inside, magic)))
            case _:
                return literal

    def _atom(self, atom: Atom, passing: Passing, magic: Atom | None) -> Atom:
        if not self.is_asked(atom.relation):
            return atom
        asked = Adorned(atom.relation, self.marks(atom, passing, magic))
        self.asked[asked] = None
        self.origin[asked.name] = self.origin[asked.magic] = atom.relation
        wanted = Atom(asked.magic, asked.bound(atom.args))
        if self.guards(asked) and wanted != magic:
            self.rules[Rule(wanted, passing.literals, name=f"{asked.magic}#0")] = None
        return Atom(asked.name, atom.args)

    def marks(self, atom: Atom, passing: Passing, magic: Atom | None) -> str:
        """The adornment of an atom after what stands before it, in a rule that `magic` guards."""
        return "".join("b" if _has_value(arg, passing.known) else "f" for arg in atom.args)

    # ── the program ──────────────────────────────────────────────────────────────────────────

    def result(self, goal: Relation) -> Program:
        """The program of the rules so far, and of relations that are computed whole."""
        known = {goal.name: goal}
        for asked in self.asked:
            relation = self.program.relations[asked.relation]
            known[asked.name] = Relation(asked.name, relation.columns)
            columns = tuple(c for c, mark in zip(relation.columns, asked.adornment, strict=True) if mark == "b")
            known[asked.magic] = Relation(asked.magic, columns)
            known[f"{asked.relation}!"] = evolve(relation, name=f"{asked.relation}!")
        rules, waiting = list(self.rules), [a.relation for rule in self.rules for a, _ in atoms_of(rule.body)]
        while waiting:
            name = waiting.pop()
            if name not in known:
                known[name] = self.program.relations[name]
                own = self.program.rules_of(name)
                rules += own
                waiting += [atom.relation for rule in own for atom, _ in atoms_of(rule.body)]
                for each in self.program.subsumptions:
                    if each.dominated.relation == name:
                        waiting += [atom.relation for atom, _ in atoms_of(each.body)]
        subsumptions = tuple(s for s in self.program.subsumptions if s.dominated.relation in known)
        order = [name for name in self.program.relations if name in known]
        relations = {name: known[name] for name in [*order, *known]}
        named = tuple(evolve(r, name=r.name if r.name else f"{r.head.relation}#{n}") for n, r in enumerate(rules))
        limits = {name: most for name, most in self.program.limits.items() if name in known}
        return evolve(
            self.program, relations=relations, rules=named, subsumptions=subsumptions, limits=limits, facts={}
        )

    def facts(self) -> dict[str, tuple[tuple[int | float | str, ...], ...]]:
        """The facts of the text, under the names that they have here."""
        own = {f"{asked.relation}!": self.program.facts.get(asked.relation, ()) for asked in self.asked}
        return {**{n: f for n, f in self.program.facts.items() if not self.is_asked(n)}, **own}

    def adornments(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for asked in self.asked:
            found[asked.relation] = (*found.get(asked.relation, ()), asked.adornment or "()")
        return found


def _has_value(arg: Term, known: frozenset[str]) -> bool:
    return isinstance(arg, Constant) or (isinstance(arg, Variable) and arg.name in known)


def _gives_values(literal: Literal) -> bool:
    """Whether a condition may pass values on: it computes nothing, and cannot fail."""
    if not isinstance(literal, Comparison) or may_fail(literal):
        return False
    return not isinstance(literal.left, Call) and not isinstance(literal.right, Call)


def _implies(body: Sequence[Literal], asked: Adorned, args: Sequence[Term]) -> bool:
    """Whether the body has an atom that implies the magic one of its head."""
    bound = asked.bound(args)
    return any(isinstance(x, Atom) and x.relation == asked.name and asked.bound(x.args) == bound for x in body)


def base_names(demand: Demand, program: Program) -> dict[str, list[str]]:
    """For each relation of a program, the names that its base facts have under demand."""
    found: dict[str, list[str]] = {}
    for name in demand.program.relations:
        plain = name.rstrip("!")
        if plain in program.relations and (name != plain or f"{plain}!" not in demand.program.relations):
            found.setdefault(plain, []).append(name)
    return found
