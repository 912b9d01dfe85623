"""Parts of a body that are computed first, where a rule would join them again for many rows.

    q(a) :- age(a, _), f(b, c), big(c).         an independent part: once, instead of for each a
        becomes  bindings() :- f(b, c), big(c).      q(a) :- age(a, _), bindings().

    q(x, y) :- city(_, x), city(_, y), x != y.  few values in many rows: each value once
        becomes  bindings(y) :- city(_, y).          q(x, y) :- bindings(x), bindings(y), x != y.

    q(x, w) :- a(x), e(x, y), e(y, z), e(z, w). many rows that agree in what the rest needs
        becomes  bindings(x, z) :- a(x), e(x, y), e(y, z).
                 q(x, w) :- bindings(x, z), e(z, w).

The last atoms of an order can be such a part, too: they are then joined by themselves.  What is
expected to be gained is computed from the plan of the rule and from distinct values, which bound
the rows of a part from above.

Source: Yannakakis, VLDB 1981 (a part is joined no further than what is needed of it).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from operator import itemgetter

from attrs import evolve, fields, has

from everlog.core.codegen.join_order import Ordering
from everlog.core.evaluate.parts.body_parts import Bindings, BodyParts
from everlog.core.evaluate.parts.grouped_bodies import parted
from everlog.core.ir.operations import Step
from everlog.core.program import Aggregate, Atom, Comparison, Literal, Rule, Variable, Wildcard, variables_of
from everlog.core.program.bodies import rule_may_fail, variables_of_literal
from everlog.core.storage.table_statistics import Statistics

WORTH = 100_000  # rows that a rule is expected to try before parts are looked for
BETTER = 4  # times fewer steps are expected of a rule with a part of its own
_ADDED = 3  # steps in the time of adding a row to a relation


class Splitting:
    """Looks for one part of a rule's body that is better computed first."""

    def __init__(self, parts: BodyParts) -> None:
        self.parts = parts

    def split(self, rule: Rule, steps: Sequence[Step], statistics: Mapping[str, Statistics]) -> Rule | None:
        """The rule with one more part as a relation; None if nothing is gained.

        `steps` is its plan.  The rule is not recursive.
        """
        if rule.orders or rule_may_fail(rule):
            return None
        body = _Body(rule, [step for step in steps if not step.within], statistics)
        found = self._repeated(rule) or self._independent(rule) or self._with(rule, body.wildcards())
        if found is not None or sum(step.tried for step in body.steps) < WORTH:
            return found
        _, atoms = max((*body.first_atoms(), *body.last_atoms()), key=itemgetter(0), default=(0.0, None))
        return self._with(rule, atoms)

    def _with(self, rule: Rule, atoms: Sequence[Atom] | None) -> Rule | None:
        """The rule with these atoms, and the tests that need no others, as a relation."""
        if atoms is None:
            return None
        part, rest = parted(rule.body, atoms)
        if not rest:
            return None  # the part would be the rule
        shown = _variables(part) & (_variables(rest) | _head_variables(rule))
        atom = self.parts.atom(part, shown, 1.0, rule.name)
        return None if atom is None else evolve(rule, body=(atom, *rest))

    # ── parts that need no estimate ──────────────────────────────────────────────────────────

    def _repeated(self, rule: Rule) -> Rule | None:
        """The rule that reads the bindings of an aggregate, where it joins the same again.

        An aggregate in a head becomes one in the body, beside a copy of what it aggregates.
        """
        for literal in rule.body:
            for one in literal.body if isinstance(literal, Aggregate) else ():
                if isinstance(one, Atom) and one.relation in self.parts.made:
                    found = _reading(rule, self.parts.made[one.relation])
                    if found is not None:
                        return found
        return None

    def _independent(self, rule: Rule) -> Rule | None:
        """The rule with a condition instead of a part that shares no variable with the rest."""
        needed = _head_variables(rule)
        for places in _parts(rule.body):
            part = [rule.body[place] for place in places]
            if not needed.isdisjoint(_variables(part)) or not _is_join(part):
                continue
            taken = set(places)
            rest = [literal for place, literal in enumerate(rule.body) if place not in taken]
            if any(isinstance(literal, Atom) for literal in rest):
                atom = self.parts.atom(part, frozenset(), 1.0, rule.name)
                return None if atom is None else evolve(rule, body=(atom, *rest))
        return None


def _parts(body: Sequence[Literal]) -> Iterator[list[int]]:
    """The places of literals that share variables, directly or through others.  Cost: linear."""
    variables = [variables_of_literal(literal) for literal in body]
    readers: dict[Variable, list[int]] = {}
    for place, names in enumerate(variables):
        for name in names:
            readers.setdefault(name, []).append(place)
    seen: set[int] = set()
    for first, names in enumerate(variables):
        if first in seen or not names:
            continue
        part, wave = [], {first}
        while wave:
            part += sorted(wave)
            seen |= wave
            read = {name for place in wave for name in variables[place]}
            wave = {place for name in read for place in readers.pop(name, ())} - seen
        yield part


class _Body:
    """The body of a rule in the order of its plan."""

    def __init__(self, rule: Rule, steps: Sequence[Step], statistics: Mapping[str, Statistics]) -> None:
        self.rule, self.steps, self.statistics = rule, steps, statistics
        self.atoms = [step.literal for step in steps if isinstance(step.literal, Atom)]
        self.costs = [step.tried + before.kept for before, step in pairwise(steps)]

    def wildcards(self) -> list[Atom] | None:
        """An atom that gives each value of its variables in many rows, all of them read."""
        for place, step in enumerate(self.steps if len(self.steps) > 1 else ()):
            atom = step.literal
            if not isinstance(atom, Atom) or not any(isinstance(arg, Wildcard) for arg in atom.args):
                continue
            shown = tuple(c for c, arg in enumerate(atom.args) if not isinstance(arg, Wildcard))
            known = self.statistics[atom.relation]
            values = step.tried + sum(self.costs[place:])
            rows = values * known.rows / known.distinct(shown) if shown else 0.0
            if rows > WORTH and rows > BETTER * (values + known.rows):
                return [atom]
        return None

    def first_atoms(self) -> Iterator[tuple[float, list[Atom]]]:
        """First atoms of the order, many of whose rows are the same to the others; steps gained."""
        for place in range(2, len(self.steps)):
            atoms, rows, after = self.atoms[:place], self.steps[place - 1].kept, sum(self.costs[place - 1 :])
            shown = self._shown(atoms)
            if len(self.atoms) < len(self.steps) or shown is None:
                continue
            left = min(self._distinct(shown), rows)
            gained = after * (1 - left / max(rows, 1.0)) - _ADDED * rows
            if BETTER * left <= rows and gained > WORTH:
                yield gained, atoms

    def last_atoms(self) -> Iterator[tuple[float, list[Atom]]]:
        """Last atoms of the order that take far fewer steps by themselves; the steps gained."""
        for place in range(1, len(self.steps) - 1):
            atoms, rows, after = self.atoms[place:], self.steps[place - 1].kept, sum(self.costs[place - 1 :])
            if len(self.atoms) < len(self.steps) or after < BETTER * WORTH:
                continue
            shown = self._shown(atoms)
            if shown is None:
                continue
            part, _ = parted(self.rule.body, atoms)
            ordering = Ordering(part, self.statistics, kept=frozenset(_variables(part)), shown=shown)
            ordering.chosen()
            left = min(self._distinct(shown), ordering.rows)
            meeting = max(left / self._distinct(shown & _variables(self.atoms[:place])), 1.0)
            steps = ordering.cost + _ADDED * left + rows * (1.0 + meeting)
            if BETTER * steps <= after and after - steps > WORTH:
                yield after - steps, atoms

    def _shown(self, atoms: Sequence[Atom]) -> Set[Variable] | None:
        """The variables of some atoms that are needed elsewhere; None if these are all."""
        part, rest = parted(self.rule.body, atoms)
        shown = _variables(part) & (_variables(rest) | _head_variables(self.rule))
        return None if shown == _variables(part) else shown

    def _distinct(self, variables: Iterable[Variable]) -> float:
        """An upper bound, about, of the different values that these variables have together."""
        found = 1.0
        for variable in variables:
            values = [
                self.statistics[atom.relation].distinct((column,))
                for atom in self.atoms
                for column, arg in enumerate(atom.args)
                if arg == variable
            ]
            found *= min(values, default=float(WORTH))
        return found


def _is_join(part: Sequence[Literal]) -> bool:
    """Whether a part may have to look at many rows to find one that fits."""
    atoms = [x for x in part if isinstance(x, Atom)]
    names = [arg for atom in atoms for arg in atom.args if isinstance(arg, Variable)]
    return bool(atoms) and (len(part) > 1 or len(names) > len({*names}))


def _variables(literals: Iterable[Literal]) -> set[Variable]:
    return {v for x in literals for v in variables_of_literal(x)}


def _head_variables(rule: Rule) -> set[Variable]:
    return {v for arg in rule.head.args for v in variables_of(arg)}


# ── the same body twice ──────────────────────────────────────────────────────────────────────


def _reading(rule: Rule, bindings: Bindings) -> Rule | None:
    """The rule with bindings in place of the literals that these are the bindings of."""
    equal = [x for x in bindings.rule.body if _is_equality(x)]
    others = [x for x in bindings.rule.body if not _is_equality(x)]
    for names, used in _copies(others, rule.body, {}):
        if not all(_agree(one, names) for one in equal):
            continue
        rest = [x for x in rule.body if not any(x is one for one in used)]
        needed = _variables(used) & (_variables(rest) | _head_variables(rule))
        args = tuple(names[v] if names.get(v) in needed else Wildcard() for v in _columns(bindings))
        if needed <= {*args}:
            return evolve(rule, body=(Atom(bindings.relation.name, args), *rest))
    return None


def _columns(bindings: Bindings) -> Iterator[Variable]:
    return (arg for arg in bindings.rule.head.args if isinstance(arg, Variable))


def _copies(
    part: Sequence[Literal], body: Sequence[Literal], names: dict[Variable, Variable]
) -> Iterator[tuple[dict[Variable, Variable], list[Literal]]]:
    """The ways to find all literals of a part in a body, with the names of its variables there."""
    if not part:
        yield names, []
        return
    for literal in body:
        found = dict(names)
        if _is_copy(part[0], literal, found):
            others = [x for x in body if x is not literal]
            for more, used in _copies(part[1:], others, found):
                yield more, [literal, *used]


def _is_copy(one: object, other: object, names: dict[Variable, Variable]) -> bool:
    """Whether two parts of bodies are alike but for the names of variables."""
    if isinstance(one, Variable):
        return isinstance(other, Variable) and names.setdefault(one, other) == other
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(_is_copy(a, b, names) for a, b in zip(one, other, strict=True))
    kind = type(one)
    if kind is not type(other):
        return False
    if has(kind):
        return all(_is_copy(getattr(one, x.name), getattr(other, x.name), names) for x in fields(kind))
    return one == other


def _is_equality(literal: Literal) -> bool:
    if not isinstance(literal, Comparison) or literal.op != "=":
        return False
    return isinstance(literal.left, Variable) and isinstance(literal.right, Variable)


def _agree(literal: Literal, names: dict[Variable, Variable]) -> bool:
    """Whether both sides of an equality have one name; gives it to a side that has none."""
    assert isinstance(literal, Comparison)
    left, right = literal.left, literal.right
    assert isinstance(left, Variable)
    assert isinstance(right, Variable)
    known = names.get(left, names.get(right))
    return known is not None and names.setdefault(left, known) == names.setdefault(right, known)
