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

The least or greatest value of a variable goes along: of `min x : { r(a, b), s(b, c), t(c, x) }` for
each a, only the least x of a c matters, and then only the least x of a b:

    t'(c, min x) :- t(c, x).
    s'(b, min x) :- s(b, c), t'(c, x).
    q(a, min x)  :- r(a, b), s'(b, x).

Such a part is *best*.  Each keeps its values in order, and passes on the best one.

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
class Part:
    """An auxiliary relation.

    Of a part that is `best`, only the least or greatest value of the last column counts, for each
    row of the others.
    """

    head: Atom
    body: tuple[Literal, ...]
    best: bool = False


@frozen
class Reduced:
    """A rule, and its new auxiliary relations; `target` is a variable whose best value counts."""

    rule: Rule
    parts: tuple[Part, ...] = ()
    target: str = ""

    def is_best(self, literal: Literal) -> bool:
        """Whether an atom reads a part that is best."""
        return isinstance(literal, Atom) and any(part.best and part.head == literal for part in self.parts)


def reduced(rule: Rule, target: str = "") -> Reduced:
    """The rule with hidden variables taken out where that costs no more; heads have no names yet.

    >>> a, b, c = map(Variable, "abc")
    >>> found = reduced(Rule(Atom("q", (a, b)), (Atom("r", (a, b)), Atom("s", (b, c))), "q#1"))
    >>> print(found.rule, found.parts[0].body[0])
    q(a, b) :- r(a, b), 1(b). s(b, c)

    `target` is the last variable of the head, where only its best value for the others counts:

    >>> least = Rule(Atom("min", (a, c)), (Atom("r", (a, b)), Atom("s", (b, c))), "min#1")
    >>> found = reduced(least, "c")
    >>> print(found.rule, found.parts[0].body[0], found.parts[0].best)
    min(a, c) :- r(a, b), 1(b, c). s(b, c) True
    """
    if not _is_plain(rule):
        return Reduced(rule)
    before = _exponent(rule, bool(target))
    best = _without_independent(Reduced(rule, target=target))
    if best.parts and _total(best) > before:
        best = Reduced(rule, target=target)
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


def _without_independent(found: Reduced) -> Reduced:
    """Each part of a body that shares no variable with the head or the rest, as one condition."""
    rule = found.rule
    shown = {v.name for arg in rule.head.args for v in variables_of(arg)}
    waiting = [x for x in rule.body if _names(x)]
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
            found = evolve(found, rule=rule, parts=(*found.parts, Part(head, tuple(group))))
    return found


def _without_one(found: Reduced, small: bool) -> Reduced | None:
    """Move one hidden variable, with those of its literals, out of a body; or None."""
    rule = found.rule
    shown = {v.name for arg in rule.head.args for v in variables_of(arg)}
    names = sorted(_hidden(rule, shown), key=lambda v: (len(_having(rule, v)), v))
    for name in [found.target, *names] if found.target else names:
        group = _having(rule, name)
        part = _part(found, group, shown)
        if part is None or all(any(x is y for y in group) for x in rule.body if isinstance(x, Atom)):
            continue  # with all atoms, that would be the rule itself
        if not _is_covered(found, group, part, small) or (name == found.target and not part.best):
            continue
        body: list[Literal] = []
        for literal in rule.body:
            if literal is group[0]:
                body.append(part.head)
            elif not any(literal is x for x in group):
                body.append(literal)
        return evolve(found, rule=evolve(rule, body=tuple(body)), parts=(*found.parts, part))
    return None


def _part(found: Reduced, group: Sequence[Literal], shown: set[str]) -> Part | None:
    """The auxiliary relation of some literals; None if that is the one they read already."""
    rule, target = found.rule, found.target
    atoms = [x for x in group if isinstance(x, Atom)]
    scope = frozenset[str]().union(*map(_names, atoms))
    best = target in scope and all(any(x is y for y in group) for x in _having(rule, target))
    if all(map(found.is_best, atoms)):
        return None
    gone = {v for v in scope if v not in shown and _same(_having(rule, v), group)}
    variables = dict.fromkeys(v for atom in atoms for arg in atom.args for v in variables_of(arg))
    kept = [v for v in variables if v.name not in gone and not (best and v.name == target)]
    if best:
        rest = [x for x in rule.body if isinstance(x, Atom) and not found.is_best(x) and x not in group]
        if not {v.name for v in kept} <= frozenset[str]().union(*map(_names, rest)):
            return None  # what looks the best value up has to bind its key
        kept.append(Variable(target))
    return Part(Atom(str(len(found.parts) + 1), tuple(kept)), tuple(group), best)


def _is_covered(found: Reduced, group: Sequence[Literal], part: Part, small: bool) -> bool:
    """Whether one atom of a group has all of its variables; if `small`, each atom.

    A best value follows from the rest of its row.
    """
    atoms = [x for x in group if isinstance(x, Atom)]
    scope = frozenset[str]().union(*map(_names, atoms))
    having = [x for x in atoms if found.target in _names(x)]
    if having and all(map(found.is_best, having)):
        atoms = [x for x in atoms if not found.is_best(x)]
        scope -= {found.target}
    rest = [x for x in group if not found.is_best(x)]
    if not any(_names(atom) == scope for atom in atoms) or not all(_names(x) <= scope for x in rest):
        return False
    return not small or all(_names(atom) == scope for atom in atoms)


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


def _exponent(rule: Rule, best: bool = False) -> Fraction:
    """Of one update of one of its relations, as the planner would keep it.

    Of a rule whose `best` values are asked, no match is told.
    """
    query = query_of(rule)
    if len(query.atoms) < 2:
        return Fraction(0)
    shown = wanted(rule).shown
    return update_exponent(AUTO, query, evolve(shown, told=shown.told and not best))


def _total(found: Reduced) -> Fraction:
    """Of one update that goes through all parts.

    A value that is the best one takes no part in a join: it follows from the rest of its row.
    """
    total, switched = Fraction(0), Fraction(0)
    for part in [*found.parts, Part(found.rule.head, found.rule.body, bool(found.target))]:
        body = [_without_last(x) if found.is_best(x) else x for x in part.body]
        bare = not part.best or any(found.target in _names(x) for x in body)
        rule = Rule(part.head if bare else _without_last(part.head), tuple(body))
        query, own = query_of(rule), _exponent(rule, part.best)
        total = max(total, own, spread_through(own, switched, [frozenset(a.variables) for a in query.atoms]))
        if len(query.atoms) > 1:
            shown = query.free - {found.target} if part.best else query.free
            switched = max(switched, match_exponent(query, shown))
    return total


def _without_last(atom: Literal) -> Atom:
    assert isinstance(atom, Atom)
    return evolve(atom, args=atom.args[:-1])


def spread_through(own: Fraction, switched: Fraction, scopes: Sequence[frozenset[str]]) -> Fraction:
    """What a rule does when one update switches many facts that it reads.

    Each costs as much as one update; but all are different, so together they meet no more than the
    whole join has.
    """
    if not switched:
        return own
    return min(own + switched, max(own, switched, Fraction(largest_cover(scopes))))
