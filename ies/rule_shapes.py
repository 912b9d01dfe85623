"""Recursive rules of a known shape, up to names and order.

A shape is a small Datalog program that derives relations from relations without rules.  A recursive
unit has that shape if its rules are those rules after renaming relations and variables, permuting
the columns of each relation, and reordering literals.  Nothing else matches: a further filter,
constant or rule makes another query, which no system of that shape maintains, and the reason names
the difference.

The search backtracks over rules and literals; shapes have a few rules of a few literals.  To
explain a failure, the search runs again and keeps the match with the most rules; the reason is the
rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from typing import TypeAlias

from attrs import evolve, frozen

from everlog.core import program as p
from everlog.core.program import Program, Rule, Variable
from everlog.core.program.dependencies import Unit
from everlog.ies.alike import Columns, Relations, Variables, plain, same_rules

Pairs: TypeAlias = list[tuple[Rule, Rule]]  # a rule of the shape, and the matching rule of the program

__all__ = ["Columns", "Match", "Relations", "Shape", "match", "why_not"]


@frozen
class Shape:
    """`program` derives `answer`; its relations without rules are the inputs."""

    program: Program
    answer: str


@frozen
class Match:
    """The mapping of a shape's relations to a program's.

    `relations[name]` is (relation, columns): column i of the shape's relation is column
    `columns[i]` of the program's.
    """

    relations: Relations


def match(shape: Shape, program: Program, unit: Unit) -> Match | None:
    """The match of a unit with a shape, if there is one."""
    derived = {rule.head.relation for rule in shape.program.rules}
    for found in _matches(shape, program, unit):
        own = {found[name][0] for name in derived}
        inputs = {found[name][0] for name in found if name not in derived}
        if set(unit.relations) <= own and not inputs & own:
            return Match(found)
    return None


# ── reasons ──────────────────────────────────────────────────────────────────────────────────────


def why_not(shapes: Sequence[Shape], program: Program, unit: Unit) -> str:
    """Why a unit has none of these shapes, in words."""
    known = [rule for shape in shapes for rule in shape.program.rules]
    for rule in unit.rules:
        if not _is_one_of(rule, known):
            return _unlike(rule, known)
    reasons: list[tuple[int, int, bool, str]] = []
    for shape in shapes:
        stuck: list[_Stuck] = []
        for found in _matches(shape, program, unit, stuck.append):
            outside = [name for name in unit.relations if name not in {r for r, _ in found.values()}]
            derived = {rule.head.relation for rule in shape.program.rules}
            inner = [r for name, (r, _) in found.items() if name not in derived and r in unit.relations]
            for name in (*outside, *inner):
                return f"`{name}` is derived together with `{found[shape.answer][0]}`, but not in the shape"
        reasons += [one.reason() for one in stuck]
    # the first among equals, of the simplest shape
    return min(reasons, key=lambda one: one[:3])[3] if reasons else "no relation of the unit has as many columns"


def _unlike(rule: Rule, known: Sequence[Rule]) -> str:
    """Why a rule is none of these."""
    for literal, fewer in _with_one_less(rule):
        if _is_one_of(fewer, known):
            return f"{rule.name} has `{literal}`, which is not in the shape; make it a relation of its own"
    read = sorted({x.relation for x in rule.body if isinstance(x, p.Atom)} - {rule.head.relation})
    for first in read:
        for second in read:
            if first < second and _is_one_of(_renamed(rule, {second: first}), known):
                return f"{rule.name} reads `{first}` and `{second}` where the shape has one relation"
    return f"{rule.name} is not a rule of this shape"


def _is_one_of(rule: Rule, known: Sequence[Rule]) -> bool:
    for other in known:
        arity = len(other.head.args)
        if len(rule.head.args) == arity:
            for columns in permutations(range(arity)):
                start: Relations = {other.head.relation: (rule.head.relation, columns)}
                if next(same_rules(plain(other), plain(rule), start), None) is not None:
                    return True
    return False


def _with_one_less(rule: Rule) -> Iterator[tuple[p.Literal, Rule]]:
    body = p.written_body(rule.body)
    for number, literal in enumerate(body):
        yield literal, evolve(rule, body=(*body[:number], *body[number + 1 :]))


def _renamed(rule: Rule, names: dict[str, str]) -> Rule:
    """The rule with other relations in its head and in the atoms of its body."""

    def renamed(atom: p.Atom) -> p.Atom:
        return evolve(atom, relation=names.get(atom.relation, atom.relation))

    body = tuple(renamed(x) if isinstance(x, p.Atom) else x for x in rule.body)
    return evolve(rule, head=renamed(rule.head), body=body)


@frozen
class _Stuck:
    """Where the search ended: the shape's and the program's rules of one relation."""

    ours: list[Rule]
    theirs: list[Rule]
    relations: Relations
    done: int

    def reason(self) -> tuple[int, int, bool, str]:
        """The reason, with a rank: low for a precise one that leaves few rules over."""
        pairs, found = max(_partly(self.ours, self.theirs, self.relations), key=lambda one: len(one[0]))
        left = [rule for rule in self.theirs if not any(rule is their for _, their in pairs)]
        open_ = [rule for rule in self.ours if not any(rule is our for our, _ in pairs)]
        said = _too_many(left, pairs, found) if not open_ else _other(left, open_, pairs, found)
        if not left:
            said = f"there is no rule `{_in_their_words(open_[0], found, {})}`"
        return (
            -self.done,
            len(left) + len(open_),
            said is None,
            said or f"{left[0].name} is not a rule of this shape",
        )


def _too_many(left: list[Rule], pairs: Pairs, found: Relations) -> str:
    for our, their in pairs:
        for rule in left:
            if next(same_rules(plain(our), plain(rule), found), None) is not None:
                return f"{rule.name} says the same as {their.name}"
    return f"{left[0].name} is not among the rules of the shape"


def _other(left: list[Rule], open_: list[Rule], pairs: Pairs, found: Relations) -> str | None:
    """Why one of the remaining rules is not one that the shape still needs."""
    beside = " and ".join(their.name for _, their in pairs)
    for rule, our in product(left, open_):
        start = {our.head.relation: found[our.head.relation]}
        for loose, _ in same_rules(plain(our), plain(rule), start):
            for name, (relation, columns) in loose.items():
                if found.get(name, (relation, columns)) != (relation, columns):
                    return _differently(rule, relation, found[name][0], pairs, name)
    for rule, our in product(left, open_) if pairs else ():
        for literal, fewer in _with_one_less(rule):
            if next(same_rules(plain(our), plain(fewer), found), None) is not None:
                return f"{rule.name} has `{literal}`, which does not fit {beside}"
        for literal, fewer in _with_one_less(our):
            for _, variables in same_rules(plain(fewer), plain(rule), found):
                lacking = _in_their_words(evolve(our, body=(literal,)), found, variables)
                return f"{rule.name} lacks `{lacking.body[0]}`, which fits {beside}"
    return None


def _differently(rule: Rule, relation: str, other: str, pairs: Pairs, name: str) -> str:
    there = [their.name for our, their in pairs if name in {x.relation for x in our.body if isinstance(x, p.Atom)}]
    where = there[0] if there else "the rest"
    if relation != other:
        return f"{rule.name} reads `{relation}` where {where} reads `{other}`"
    return f"{rule.name} has the columns of `{relation}` in another order than {where}"


def _in_their_words(rule: Rule, relations: Relations, variables: Variables) -> Rule:
    """A rule of the shape with the program's names, as far as they are known."""

    def term(one: p.Term) -> p.Term:
        return Variable(variables.get(one.name, one.name)) if isinstance(one, Variable) else one

    def literal(one: p.Literal) -> p.Literal:
        match one:
            case p.Atom():
                return atom(one)
            case p.Negation(inner):
                return p.Negation(atom(inner))
            case p.Comparison():
                return evolve(one, left=term(one.left), right=term(one.right))
            case _:
                return one

    def atom(one: p.Atom) -> p.Atom:
        relation, columns = relations.get(one.relation, (one.relation, tuple(range(len(one.args)))))
        return evolve(
            one, relation=relation, args=tuple(term(one.args[columns.index(n)]) for n in range(len(columns)))
        )

    return evolve(rule, head=atom(rule.head), body=tuple(map(literal, rule.body)))


# ── the search ───────────────────────────────────────────────────────────────────────────────────


def _matches(
    shape: Shape, program: Program, unit: Unit, stuck: Callable[[_Stuck], None] = lambda _: None
) -> Iterator[Relations]:
    """The ways in which a relation of the unit and its inputs match the shape."""
    derived = {rule.head.relation for rule in shape.program.rules}
    for candidate in unit.relations:
        arity = program.relations[candidate].arity
        if arity != shape.program.relations[shape.answer].arity:
            continue
        for columns in permutations(range(arity)):
            start: Relations = {shape.answer: (candidate, columns)}
            yield from _derivations(shape, program, start, [shape.answer], derived, stuck)


def _derivations(
    shape: Shape,
    program: Program,
    relations: Relations,
    open_: list[str],
    derived: set[str],
    stuck: Callable[[_Stuck], None],
) -> Iterator[Relations]:
    """Match the rules of every derived relation that was met."""
    if not open_:
        yield relations
        return
    name, *later = open_
    ours = list(shape.program.rules_of(name))
    theirs = list(program.rules_of(relations[name][0]))
    found = None
    for _, found in _partly(ours, theirs, relations, all_=True):
        met = [r for r in found if r in derived and r not in relations and r not in later]
        yield from _derivations(shape, program, found, later + met, derived, stuck)
    if found is None:
        stuck(_Stuck(ours, theirs, relations, len(relations)))


def _partly(
    ours: list[Rule], theirs: list[Rule], relations: Relations, all_: bool = False
) -> Iterator[tuple[Pairs, Relations]]:
    """The ways to match rules, all or some, each with its mapping of relations."""
    if all_ and len(ours) != len(theirs):
        return
    if not ours:
        yield [], relations
        return
    for number, rule in enumerate(theirs):
        for known, _ in same_rules(plain(ours[0]), plain(rule), relations):
            for pairs, found in _partly(ours[1:], theirs[:number] + theirs[number + 1 :], known, all_):
                yield [(ours[0], rule), *pairs], found
    if not all_:
        yield from _partly(ours[1:], theirs, relations)
