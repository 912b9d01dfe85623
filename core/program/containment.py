"""Bodies that relations which are there answer: containment of conjunctive queries.

A relation with one rule, `two(a, c) :- edge(a, b), edge(b, c)`, holds the answers of its body.
Where a query has that body as a part, it may read the relation instead:

    edge(1, y), edge(y, z), z > 9      is      two(1, z), z > 9      with a → 1, b → y, c → z

The *mapping* proves it.  It takes every literal of the rule's body to a literal of the query, so
the query implies the atom.  And it takes the variables that the rule hides to different variables
of the query that occur nowhere else in it, so the atom implies the literals that it replaces.

Literals that a query has beyond the rule are left over, such as `z > 9` above.  A comparison with a
constant also covers a weaker one of the rule, and is then left over, too.

Source: A. Chandra, P. Merlin, Optimal implementation of conjunctive queries in relational data
bases, STOC 1977; with comparisons as further literals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import define, evolve, frozen

from everlog.core.program.bodies import rule_may_fail, variables_of_literal
from everlog.core.program.dependencies import units
from everlog.core.program.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Literal,
    Negation,
    Program,
    Range,
    Rule,
    Term,
    Variable,
    Wildcard,
    draws_numbers,
    variables_of,
)

MOST_ATOMS = 12  # of a rule that is looked for
MOST_TRIES = 5_000  # to map one literal, for each rule

_STRONGER = {"<": ("<", "<=", "="), "<=": ("<=", "="), ">": (">", ">=", "="), ">=": (">=", "=")}


@frozen
class Covering:
    """A part of a body that is read from a relation: the literals, the atom, and the mapping."""

    rule: Rule
    replaced: tuple[Literal, ...]
    by: Atom
    mapping: Mapping[Variable, Term]

    def __str__(self) -> str:
        literals = ", ".join(map(str, self.replaced))
        mapping = ", ".join(f"{_shown(variable)} → {_shown(term)}" for variable, term in self.mapping.items())
        return f"{_shown_atom(self.by)} for {literals}  ({self.rule.name} with {mapping})"

    def to_json(self) -> dict[str, object]:
        """As `everlog explain --json` has it: see docs/costs.md."""
        return {
            "atom": _shown_atom(self.by),
            "instead_of": list(map(str, self.replaced)),
            "rule": self.rule.name,
            "mapping": {str(variable): _shown(term) for variable, term in self.mapping.items()},
        }


def answering_rules(program: Program) -> tuple[Rule, ...]:
    """The rules whose relations hold exactly the answers of their bodies, if nobody adds facts."""
    found = []
    special = {each.dominated.relation for each in program.subsumptions} | set(program.limits)
    for unit in units(program):
        if unit.recursive or len(unit.rules) != 1:
            continue
        (rule,) = unit.rules
        relation = program.relations[rule.head.relation]
        plain = not (relation.equivalence or relation.choices or relation.lattices or relation.auxiliary_of)
        literals = all(isinstance(each, Atom | Negation | Comparison) for each in rule.body)
        atoms = sum(isinstance(each, Atom) for each in rule.body)
        fails = rule_may_fail(rule) or draws_numbers(rule)
        alone = relation.name not in special and not program.facts.get(relation.name)
        if plain and alone and literals and not fails and 0 < atoms <= MOST_ATOMS:
            found.append(with_named_wildcards(rule))
    return tuple(found)


def covered(rule: Rule, known: Iterable[Rule]) -> tuple[Rule, list[Covering]]:
    """The rule with parts of its body read from relations that hold their answers.

    >>> from everlog.core.program.program import Kind
    >>> a, b, c, y, z = map(Variable, "abcyz")
    >>> two = Rule(Atom("two", (a, c)), (Atom("edge", (a, b)), Atom("edge", (b, c))), name="two#1")
    >>> one = Constant(1, Kind.NUMBER)
    >>> query = Rule(Atom("q", (z,)), (Atom("edge", (one, y)), Atom("edge", (y, z))))
    >>> print(*covered(query, [two]))  # doctest: +ELLIPSIS
    q(z) :- two(1, z). [Covering(...)]

    Cost: bounded by `MOST_TRIES` for each of the rules.
    """
    if rule_may_fail(rule) or draws_numbers(rule):
        return rule, []
    relations = Counter(literal.relation for literal in rule.body if isinstance(literal, Atom))
    usable = [each for each in known if each.head.relation != rule.head.relation and _fits(each, relations)]
    usable.sort(key=lambda each: -len(each.body))
    query, found = rule, []
    for each in usable:
        while True:
            covering = _covering(query, each)
            if covering is None:
                break
            query = _replaced(query, covering)
            found.append(covering)
    return query, found


def _fits(view: Rule, relations: Counter[str]) -> bool:
    """Whether a query reads the relations of a rule; one atom may cover several of its atoms."""
    return all(relations[each.relation] for each in view.body if isinstance(each, Atom))


def _replaced(query: Rule, covering: Covering) -> Rule:
    """The query with the atom in the place of the first literal that it replaces."""
    first = query.body.index(covering.replaced[0])
    body: list[Literal] = []
    for place, literal in enumerate(query.body):
        if place == first:
            body.append(covering.by)
        elif literal not in covering.replaced:
            body.append(literal)
    return evolve(query, body=tuple(body), orders=())


# ── mappings ─────────────────────────────────────────────────────────────────────────────────


@define
class _Search:
    """The mappings of a rule's body into a query's, one after the other."""

    query: Sequence[Literal]
    tries: int = 0

    def mappings(
        self, rest: Sequence[Literal], mapping: dict[Variable, Term], used: tuple[Literal, ...]
    ) -> Iterator[tuple[dict[Variable, Term], tuple[Literal, ...]]]:
        if not rest:
            yield mapping, used
            return
        for literal in self.query:
            self.tries += 1
            if self.tries > MOST_TRIES:
                return
            found = _matched(rest[0], literal, mapping)
            if found is not None:
                same = _put(rest[0], found) == literal
                yield from self.mappings(rest[1:], found, (*used, literal) if same else used)


def _covering(query: Rule, view: Rule) -> Covering | None:
    named = with_named_wildcards(query)
    original = dict(zip(named.body, query.body, strict=True))
    order = sorted(view.body, key=lambda each: not isinstance(each, Atom))  # comparisons last
    for mapping, used in _Search(named.body).mappings(order, {}, ()):
        literals = tuple(dict.fromkeys(used))
        if sum(isinstance(each, Atom) for each in literals) and _hides(named, view, mapping, literals):
            args = tuple(_without_name(_put_term(arg, mapping)) for arg in view.head.args)
            replaced = tuple(original[each] for each in named.body if each in literals)
            if len(replaced) > 1:  # else nothing is gained
                return Covering(view, replaced, Atom(view.head.relation, args), mapping)
    return None


def _hides(query: Rule, view: Rule, mapping: Mapping[Variable, Term], replaced: tuple[Literal, ...]) -> bool:
    """Whether hidden variables go to different variables that only the replaced literals have."""
    shown = {variable for arg in view.head.args for variable in variables_of(arg)}
    if any(isinstance(arg, Call) for arg in view.head.args):
        return False
    hidden = [term for variable, term in mapping.items() if variable not in shown]
    outside = {variable for arg in query.head.args for variable in variables_of(arg)}
    for literal in query.body:
        if literal not in replaced:
            outside.update(_all_variables(literal))
    images = {term for variable, term in mapping.items() if variable in shown}
    variables = [term for term in hidden if isinstance(term, Variable)]
    return (
        len(variables) == len(hidden) == len(set(variables))
        and outside.isdisjoint(variables)
        and images.isdisjoint(variables)
    )


def _all_variables(literal: Literal) -> Iterator[Variable]:
    """The variables of a literal, those inside of aggregates too."""
    yield from variables_of_literal(literal)
    if isinstance(literal, Aggregate):
        yield from literal.outer
        for each in literal.body:
            yield from _all_variables(each)


def _matched(part: Literal, literal: Literal, mapping: dict[Variable, Term]) -> dict[Variable, Term] | None:
    """The mapping that also takes `part` to `literal`, or to a weaker condition; None if none."""
    match part, literal:
        case (Atom(name, args), Atom(other, terms)) if name == other:
            return _all_matched(args, terms, mapping)
        case (Negation(Atom(name, args)), Negation(Atom(other, terms))) if name == other:
            return _all_matched(args, terms, mapping)
        case (Comparison(op, left, right, kind), Comparison(known, first, second, its)) if kind == its:
            found = _all_matched((left, right), (first, second), mapping) if op == known else None
            return found if found is not None else _implied(part, literal, mapping)
    return None


def _implied(part: Comparison, literal: Comparison, mapping: dict[Variable, Term]) -> dict[Variable, Term] | None:
    """The mapping, if a comparison with a constant implies another of the same variable."""
    ours, theirs = part.right, literal.right
    if not isinstance(ours, Constant) or not isinstance(theirs, Constant):
        return None
    found = _all_matched((part.left,), (literal.left,), mapping)
    if found is None or literal.op not in _STRONGER.get(part.op, ()) or not isinstance(literal.left, Variable):
        return None
    if isinstance(ours.value, str) or isinstance(theirs.value, str) or part.kind.value == "float":
        return None
    mine, its = ours.value, theirs.value
    strict = part.op in ("<", ">") and literal.op not in ("<", ">")
    if its == mine:
        return None if strict else found
    return found if (its < mine) == part.op.startswith("<") else None


def _all_matched(
    args: Sequence[Term], terms: Sequence[Term], mapping: dict[Variable, Term]
) -> dict[Variable, Term] | None:
    found = dict(mapping)
    for arg, term in zip(args, terms, strict=True):
        if not _term_matched(arg, term, found):
            return None
    return found


def _term_matched(arg: Term, term: Term, found: dict[Variable, Term]) -> bool:
    match arg, term:
        case (Variable(), Variable() | Constant()):
            return found.setdefault(arg, term) == term
        case (Call(name, args), Call(other, terms)) if name == other and len(args) == len(terms):
            return all(_term_matched(a, t, found) for a, t in zip(args, terms, strict=True))
        case _:
            return not isinstance(arg, Variable | Call) and arg == term


def _put(literal: Literal, mapping: Mapping[Variable, Term]) -> Literal:
    match literal:
        case Atom(args=args):
            return evolve(literal, args=tuple(_put_term(arg, mapping) for arg in args))
        case Negation(atom):
            return Negation(evolve(atom, args=tuple(_put_term(arg, mapping) for arg in atom.args)))
        case Comparison(left=left, right=right):
            return evolve(literal, left=_put_term(left, mapping), right=_put_term(right, mapping))
        case Aggregate() | Range():
            return literal


def _put_term(term: Term, mapping: Mapping[Variable, Term]) -> Term:
    match term:
        case Variable():
            return mapping.get(term, term)
        case Call(args=args):
            return evolve(term, args=tuple(_put_term(arg, mapping) for arg in args))
        case _:
            return term


# ── wildcards ────────────────────────────────────────────────────────────────────────────────

_WILD = "_@"


def with_named_wildcards(rule: Rule) -> Rule:
    """The rule with a variable of its own for each wildcard of a positive atom."""
    body: list[Literal] = []
    for place, literal in enumerate(rule.body):
        if isinstance(literal, Atom):
            args = tuple(
                Variable(f"{_WILD}{place}.{n}") if isinstance(arg, Wildcard) else arg
                for n, arg in enumerate(literal.args)
            )
            literal = evolve(literal, args=args)
        body.append(literal)
    return evolve(rule, body=tuple(body), orders=())


def _without_name(term: Term) -> Term:
    """A wildcard again, where a column of the relation is a wildcard of the query."""
    return Wildcard() if isinstance(term, Variable) and term.name.startswith(_WILD) else term


def _shown(term: Term) -> str:
    return "_" if isinstance(term, Variable) and term.name.startswith(_WILD) else str(term)


def _shown_atom(atom: Atom) -> str:
    return f"{atom.relation}({', '.join(map(_shown, atom.args))})"
