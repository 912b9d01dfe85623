"""Variables that a head hides, as existence: one fact instead of all its derivations.

`q(a) :- r(a, b), s(b, c), t(c, d).` asks whether there are b, c and d, not how often.  To count
derivations, every (b, c, d) is met; a row of `s` may be part of as many as D².  Instead a hidden
variable is taken out of the body, with the atoms that have it:

    t/0(c)  :- t(c, d).
    s'(b)   :- s(b, c), t/0(c).
    q(a)    :- r(a, b), s'(b).

A part of a body that shares no variable with the head or the rest becomes one condition.

Each auxiliary relation is a set, so a derivation more or less goes no further unless it is the
first or the last.  A variable can go if one of its atoms has all variables of the others: then the
auxiliary relation is no larger than that atom.  Free-connex heads lose all hidden variables so, and
each fact that only comes is then seen once (Bagan, Durand, Grandjean 2007; Theorem 4.1 of Abo
Khamis et al. 2024).

One row of `t` may switch many facts of `s'` on and off.  So a variable only goes where the cost
that follows is no larger than before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from attrs import evolve, frozen

from everlog.core.classify.query import merged_variables, query_of
from everlog.core.joins.exponents import largest_cover, update_exponent
from everlog.core.joins.join_strategies import AUTO
from everlog.core.joins.strategy_choice import wanted
from everlog.core.joins.untold import match_exponent
from everlog.core.program import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    Rule,
    Variable,
    atoms_of,
    variables_of,
)
from everlog.core.program.bodies import may_fail

MOST_ATOMS = 12  # of a body that is looked at


@frozen
class Reduced:
    """A rule, and the bodies of its new auxiliary relations, by their heads."""

    rule: Rule
    parts: tuple[tuple[Atom, tuple[Literal, ...]], ...] = ()


def reduced(rule: Rule) -> Reduced:
    """The rule with hidden variables taken out where that costs no more; heads have no names yet.

    >>> a, b, c = map(Variable, "abc")
    >>> found = reduced(Rule(Atom("q", (a, b)), (Atom("r", (a, b)), Atom("s", (b, c))), "q#1"))
    >>> print(found.rule, found.parts[0][1][0])
    q(a, b) :- r(a, b), 1(b). s(b, c)
    """
    if not _is_plain(rule):
        return Reduced(rule)
    before = _exponent(rule)
    best = _without_independent(rule)
    if best.parts and _total(best) > before:
        best = Reduced(rule)
    for small in (True, False):  # those first that switch one fact at most; then all
        found = best
        while (step := _without_one(found, small)) is not None:
            found = step
        if len(found.parts) > len(best.parts) and _total(found) <= before:
            best = found
    return best


def _is_plain(rule: Rule) -> bool:
    atoms = [x for x in rule.body if isinstance(x, Atom)]
    if not 1 < len(atoms) <= MOST_ATOMS or may_fail(rule.head) or merged_variables(rule):
        return False
    simple = all(isinstance(arg, Variable | Constant) for atom in atoms for arg in atom.args)
    movable = all(isinstance(x, Atom | Comparison | Negation) and not may_fail(x) for x in rule.body)
    return simple and movable


def _names(literal: Literal) -> frozenset[str]:
    if isinstance(literal, Comparison):
        return frozenset(v.name for side in (literal.left, literal.right) for v in variables_of(side))
    return frozenset(v.name for atom, _ in atoms_of((literal,)) for arg in atom.args for v in variables_of(arg))


def _without_independent(rule: Rule) -> Reduced:
    """Each part of a body that shares no variable with the head or the rest, as one condition."""
    shown = {v.name for arg in rule.head.args for v in variables_of(arg)}
    found, waiting = Reduced(rule), [x for x in rule.body if _names(x)]
    while waiting:
        names = _names(waiting[0])
        while wider := [x for x in waiting if not names.isdisjoint(_names(x)) and not _names(x) <= names]:
            names = names.union(*map(_names, wider))
        group = [x for x in waiting if not names.isdisjoint(_names(x))]
        waiting = [x for x in waiting if names.isdisjoint(_names(x))]
        rest = [x for x in found.rule.body if not any(x is one for one in group)]
        if names.isdisjoint(shown) and any(isinstance(x, Atom) for x in rest):
            head = Atom(str(len(found.parts) + 1), ())
            rule = evolve(found.rule, body=(head, *rest))
            found = Reduced(rule, (*found.parts, (head, tuple(group))))
    return found


def _without_one(found: Reduced, small: bool) -> Reduced | None:
    """Move one hidden variable, with those of its literals, out of a body; or None."""
    rule = found.rule
    shown = {v.name for arg in rule.head.args for v in variables_of(arg)}
    for name in sorted(_hidden(rule, shown), key=lambda v: (len(_having(rule, v)), v)):
        group = _having(rule, name)
        atoms = [x for x in group if isinstance(x, Atom)]
        scope = frozenset[str]().union(*map(_names, atoms))
        if not any(_names(atom) == scope for atom in atoms) or not all(_names(x) <= scope for x in group):
            continue
        if small and not all(_names(atom) == scope for atom in atoms):
            continue
        if all(any(x is y for y in group) for x in rule.body if isinstance(x, Atom)):
            continue  # that would be the rule itself
        gone = {v for v in scope if v not in shown and _same(_having(rule, v), group)}
        kept = [v for atom in atoms for arg in atom.args for v in variables_of(arg) if v.name not in gone]
        head = Atom(str(len(found.parts) + 1), tuple(dict.fromkeys(kept)))
        body: list[Literal] = []
        for literal in rule.body:
            if literal is group[0]:
                body.append(head)
            elif not any(literal is x for x in group):
                body.append(literal)
        return Reduced(evolve(rule, body=tuple(body)), (*found.parts, (head, tuple(group))))
    return None


def _hidden(rule: Rule, shown: set[str]) -> Iterator[str]:
    seen = {name for x in rule.body if isinstance(x, Atom) for name in _names(x)}
    return (name for name in seen if name not in shown)


def _having(rule: Rule, name: str) -> list[Literal]:
    """The literals with a variable, atoms first."""
    found = [x for x in rule.body if name in _names(x)]
    return sorted(found, key=lambda x: not isinstance(x, Atom))


def _same(one: Sequence[Literal], other: Sequence[Literal]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


# ── what it costs ────────────────────────────────────────────────────────────────────────────


def planned_exponent(rule: Rule) -> Fraction:
    """Of one update of one of its relations, with hidden variables taken out."""
    return _total(reduced(rule))


def _exponent(rule: Rule) -> Fraction:
    """Of one update of one of its relations, as the planner would keep it."""
    query = query_of(rule)
    if len(query.atoms) < 2:
        return Fraction(0)
    return update_exponent(AUTO, query, wanted(rule).shown)


def _total(found: Reduced) -> Fraction:
    """Of one update that goes through all parts."""
    rules = [Rule(head, body) for head, body in found.parts]
    total, switched = Fraction(0), Fraction(0)
    for rule in [*rules, found.rule]:
        query, own = query_of(rule), _exponent(rule)
        total = max(total, own, spread_through(own, switched, [frozenset(a.variables) for a in query.atoms]))
        if len(query.atoms) > 1:
            switched = max(switched, match_exponent(query, query.free))
    return total


def spread_through(own: Fraction, switched: Fraction, scopes: Sequence[frozenset[str]]) -> Fraction:
    """What a rule does when one update switches many facts that it reads.

    Each costs as much as one update; but all are different, so together they meet no more than the
    whole join has.
    """
    if not switched:
        return own
    return min(own + switched, max(own, switched, Fraction(largest_cover(scopes))))
