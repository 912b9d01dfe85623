"""Rules that are equal up to names, order of columns and order of literals.

Each function yields every way to continue a partial match, and the caller tries the next one when
one fails.  Renaming is one to one: no two of our names map to the same name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import TypeAlias

from attrs import evolve

from everlog.core import program as p
from everlog.core.program import Rule, Term, Variable, Wildcard

Columns: TypeAlias = tuple[int, ...]
Relations: TypeAlias = Mapping[str, tuple[str, Columns]]  # ours → theirs, with our columns' places there
Variables: TypeAlias = Mapping[str, str]


def same_rules(our: Rule, their: Rule, relations: Relations) -> Iterator[tuple[Relations, Variables]]:
    """The ways in which two rules are the same; both are `plain`."""
    for known, variables in _atom(our.head, their.head, relations, {}):
        yield from _literals(our.body, their.body, known, variables)


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
    """The one-to-one mappings of variables that make the terms equal."""
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


def plain(rule: Rule) -> Rule:
    """The rule with `_` for each variable that occurs once, in a body atom."""
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
    """The variables of a literal, with repetitions."""
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
