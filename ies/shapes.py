"""Recursive rules of a known shape: the same rules up to names, the order of arguments, literals and rules.

A shape is a small Datalog program: what it derives, from relations without rules.  A recursive unit has that shape
if its rules are those rules after relations and variables are renamed, the columns of each relation are permuted,
and literals are put in another order.  Nothing else is let through: a further filter, constant or rule makes
another query, which no system of that shape keeps, and the reason says which literal it is.

The search goes through rules and literals with backtracking; shapes have a few rules of a few literals.

Reads: core.program, core.dependencies.  Read by: ies.offers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import TypeAlias

from attrs import evolve, frozen

from everlog.core import program as p
from everlog.core.dependencies import Unit
from everlog.core.program import Program, Rule, Term, Variable, Wildcard

Columns: TypeAlias = tuple[int, ...]
Relations: TypeAlias = Mapping[
    str, tuple[str, Columns]
]  # of the shape → of the program, and where its columns are
Variables: TypeAlias = Mapping[str, str]


@frozen
class Shape:
    """`program` derives `answer`; its relations without rules are the inputs."""

    program: Program
    answer: str


@frozen
class Match:
    """Which relation plays which part: `relations[name]` is (relation, columns), where column i of the shape's
    relation stands in column `columns[i]` of the program's."""

    relations: Relations


def match(shape: Shape, program: Program, unit: Unit) -> Match | None:
    """How a unit has a shape, if it does."""
    derived = {rule.head.relation for rule in shape.program.rules}
    for candidate in unit.relations:
        arity = program.relations[candidate].arity
        if arity != shape.program.relations[shape.answer].arity:
            continue
        for columns in permutations(range(arity)):
            start: Relations = {shape.answer: (candidate, columns)}
            for found in _derivations(shape, program, start, [shape.answer], derived):
                own = {found[name][0] for name in derived}
                inputs = {found[name][0] for name in found if name not in derived}
                if set(unit.relations) <= own and not inputs & own:
                    return Match(found)
    return None


def why_not(shapes: Sequence[Shape], program: Program, unit: Unit) -> str:
    """What keeps a unit from having any of these shapes, in words."""
    known = [rule for shape in shapes for rule in shape.program.rules]
    for rule in unit.rules:
        if _is_one_of(rule, known):
            continue
        for number, literal in enumerate(rule.body):
            fewer = evolve(rule, body=rule.body[:number] + rule.body[number + 1 :])
            if _is_one_of(fewer, known):
                return f"{rule.name} has `{literal}` besides what the shape has; make it a relation of its own"
        return f"{rule.name} is not a rule of this shape"
    return "its rules are of this shape one by one, but not together"


def _is_one_of(rule: Rule, known: Sequence[Rule]) -> bool:
    for other in known:
        arity = len(other.head.args)
        if len(rule.head.args) == arity:
            for columns in permutations(range(arity)):
                start: Relations = {other.head.relation: (rule.head.relation, columns)}
                if next(_rule(_plain(other), _plain(rule), start), None) is not None:
                    return True
    return False


# ── the search ───────────────────────────────────────────────────────────────────────────────────


def _derivations(
    shape: Shape, program: Program, relations: Relations, open_: list[str], derived: set[str]
) -> Iterator[Relations]:
    """Match the rules of every derived relation that was met."""
    if not open_:
        yield relations
        return
    name, *later = open_
    ours = [_plain(rule) for rule in shape.program.rules_of(name)]
    theirs = [_plain(rule) for rule in program.rules_of(relations[name][0])]
    for found in _rules(ours, theirs, relations):
        met = [r for r in found if r in derived and r not in relations and r not in later]
        yield from _derivations(shape, program, found, later + met, derived)


def _rules(ours: list[Rule], theirs: list[Rule], relations: Relations) -> Iterator[Relations]:
    if len(ours) != len(theirs):
        return
    if not ours:
        yield relations
        return
    for number, rule in enumerate(theirs):
        for found in _rule(ours[0], rule, relations):
            yield from _rules(ours[1:], theirs[:number] + theirs[number + 1 :], found)


def _rule(our: Rule, their: Rule, relations: Relations) -> Iterator[Relations]:
    for known, variables in _atom(our.head, their.head, relations, {}):
        for found, _ in _literals(our.body, their.body, known, variables):
            yield found


def _literals(
    ours: tuple[p.Literal, ...], theirs: tuple[p.Literal, ...], relations: Relations, variables: Variables
) -> Iterator[tuple[Relations, Variables]]:
    if len(ours) != len(theirs):
        return
    if not ours:
        yield relations, variables
        return
    for number, literal in enumerate(theirs):
        for known, bound in _literal(ours[0], literal, relations, variables):
            yield from _literals(ours[1:], theirs[:number] + theirs[number + 1 :], known, bound)


def _literal(
    our: p.Literal, their: p.Literal, relations: Relations, variables: Variables
) -> Iterator[tuple[Relations, Variables]]:
    match our, their:
        case p.Atom(), p.Atom():
            yield from _atom(our, their, relations, variables)
        case p.Negation(atom), p.Negation(other):
            yield from _atom(atom, other, relations, variables)
        case p.Comparison(), p.Comparison() if our.op == their.op:
            sides = [(their.left, their.right)]
            if our.op in ("=", "!="):
                sides.append((their.right, their.left))
            for pair in sides:
                bound = _terms((our.left, our.right), pair, variables)
                if bound is not None:
                    yield relations, bound
        case p.Aggregate(), p.Aggregate() if our.op == their.op and (our.target is None) == (their.target is None):
            ours, theirs = [our.result], [their.result]
            bound = _terms(
                (*ours, *([] if our.target is None else [our.target])),
                (*theirs, *([] if their.target is None else [their.target])),
                variables,
            )
            if bound is not None:
                yield from _literals(our.body, their.body, relations, bound)
        case _:
            return


def _atom(
    our: p.Atom, their: p.Atom, relations: Relations, variables: Variables
) -> Iterator[tuple[Relations, Variables]]:
    arity = len(our.args)
    if arity != len(their.args):
        return
    known = relations.get(our.relation)
    if known is not None:
        choices = [known[1]] if known[0] == their.relation else []
    elif any(name == their.relation for name, _ in relations.values()):
        choices = []
    else:
        choices = list(permutations(range(arity)))
    for columns in choices:
        bound = _terms(our.args, tuple(their.args[c] for c in columns), variables)
        if bound is not None:
            yield {**relations, our.relation: (their.relation, columns)}, bound


def _terms(ours: tuple[Term, ...], theirs: tuple[Term, ...], variables: Variables) -> Variables | None:
    """The variables with which terms are the same; one to one."""
    bound = dict(variables)
    for our, their in zip(ours, theirs, strict=True):
        match our, their:
            case Variable(name), Variable(other):
                if bound.setdefault(name, other) != other:
                    return None
            case Wildcard(), Wildcard():
                continue
            case p.Constant(value), p.Constant(other_value):
                if value != other_value:
                    return None
            case _:
                return None
    return bound if len(set(bound.values())) == len(bound) else None


def _plain(rule: Rule) -> Rule:
    """Variables that stand once, in an atom of the body, as `_`."""
    times: Counter[str] = Counter(v.name for arg in rule.head.args for v in p.variables_of(arg))
    for literal in rule.body:
        times.update(_names(literal))
    body = tuple(
        evolve(x, args=tuple(Wildcard() if isinstance(a, Variable) and times[a.name] == 1 else a for a in x.args))
        if isinstance(x, p.Atom)
        else x
        for x in rule.body
    )
    return evolve(rule, body=body)


def _names(literal: p.Literal) -> Iterator[str]:
    """The variables of a literal, as often as they stand there."""
    match literal:
        case p.Atom(args=args) | p.Negation(p.Atom(args=args)):
            terms: Sequence[Term | None] = args
        case p.Comparison(left=left, right=right):
            terms = (left, right)
        case p.Range():
            terms = (literal.result, literal.start, literal.stop, literal.step)
        case p.Aggregate():
            terms = (literal.result, literal.target)
            for inner in literal.body:
                yield from _names(inner)
    yield from (v.name for term in terms if term is not None for v in p.variables_of(term))
