"""Bodies of rules that would hold, or fail, if some facts came or went.

An *instance* of a body gives its variables values.  Its positive atoms are facts, some of which may
be missing; its negated atoms may be violated.  So an instance has *wants*: facts that must come and
facts that must go for it to hold.  `Instances.makes` finds instances with their wants, fewest
missing facts first; `Instances.breaks` finds the wants of which each makes an instance fail.

An aggregate has another value only if a match of its body comes or goes.  Which value it then has
shows only afterwards: so its wants are those of one such match, and the search goes on from there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

from attrs import frozen

from everlog.core.program import Aggregate, Atom, Literal, Negation, Row, Term, Value, Variable, Wildcard
from everlog.core.program.bodies import Binding
from everlog.core.program.values import NoValue
from everlog.core.proofs.evidence import named_wildcards
from everlog.core.proofs.solve import Solver, can_solve, is_known
from everlog.core.repairs.domain import Domain


@frozen
class Want:
    """A fact that must come, or one that must go.

    A fact that must come may have None in columns that rules compute: its value shows only then.
    """

    relation: str
    row: tuple[Value | None, ...]
    comes: bool


Wants: TypeAlias = frozenset[Want]
NONE: Wants = frozenset()


class OutOfWork(Exception):
    """The search in one state has taken its share of the work."""


class Work:
    """Counts the steps of a search, and ends it."""

    def __init__(self, most: int) -> None:
        self.left = most

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OutOfWork


class Instances:
    """Instances of bodies over the facts of one state."""

    def __init__(self, solver: Solver, domain: Domain, computed: Collection[tuple[str, int]], work: Work) -> None:
        self.solver, self.domain, self.computed, self.work = solver, domain, computed, work
        self.cut = False  # whether instances of too many missing facts were left out

    # ── that would hold ──────────────────────────────────────────────────────────────────────

    def makes(self, body: Sequence[Literal], start: Binding, most: int) -> Iterator[Wants]:
        """The wants of instances of a body that do not hold now, of at most `most` missing facts.

        Complete over the domain: if a body holds in some state and not in this one, the change
        between them fulfils the wants of one of these.
        """
        body = tuple(named_wildcards(body))
        atoms = [n for n, literal in enumerate(body) if isinstance(literal, Atom)]
        self.cut = self.cut or len(atoms) > most
        for number in range(min(len(atoms), most) + 1):
            for missing in combinations(atoms, number):
                lacking = [atom for n in missing if isinstance(atom := body[n], Atom)]
                rest = [literal for n, literal in enumerate(body) if n not in missing]
                for wants in self._ground(rest, lacking, start, NONE, most):
                    if wants:
                        yield wants

    def _ground(
        self, rest: list[Literal], missing: list[Atom], binding: Binding, wants: Wants, most: int
    ) -> Iterator[Wants]:
        """The wants of each way to give all variables values."""
        self.work.step()
        literal = self._next(rest, binding)
        if literal is None:
            yield from self._without_literals(rest, missing, binding, wants, most)
            return
        left = [other for other in rest if other is not literal]
        if isinstance(literal, Negation):
            there = next(self._rows(literal.atom, binding), None)
            more = wants if there is None else wants | {Want(literal.atom.relation, there, comes=False)}
            yield from self._ground(left, missing, binding, more, most)
            return
        for wider in self.solver.matches(literal, binding):
            yield from self._ground(left, missing, wider, wants, most)
        if isinstance(literal, Aggregate):
            for changed in self.changes(literal, binding, most):
                yield wants | changed

    def _without_literals(
        self, rest: list[Literal], missing: list[Atom], binding: Binding, wants: Wants, most: int
    ) -> Iterator[Wants]:
        """Give a value to the next variable of a missing fact, or end."""
        for atom in missing:
            for column, arg in enumerate(atom.args):
                place = atom.relation, column
                if isinstance(arg, Variable) and arg.name not in binding and place not in self.computed:
                    for value in self.domain.values(*place):
                        yield from self._ground(rest, missing, {**binding, arg.name: value}, wants, most)
                    return
        found = set(wants)
        for atom in missing:
            row = self._row(atom, binding)
            if row is None or self._is_there(atom.relation, row):
                return  # it cannot be, or it is an instance with fewer missing facts
            found.add(Want(atom.relation, row, comes=True))
        if rest and not any(None in want.row for want in found):
            return  # a variable that only an absent fact could bind
        if not any(Want(want.relation, want.row, not want.comes) in found for want in found):
            yield frozenset(found)

    def _is_there(self, relation: str, row: Sequence[Value | None]) -> bool:
        known = tuple(value for value in row if value is not None)
        return len(known) == len(row) and self.solver.has(relation, known)

    def _row(self, atom: Atom, binding: Binding) -> tuple[Value | None, ...] | None:
        """The row of a missing fact, with None for values not known; None if it has none."""
        try:
            return tuple(self.solver.value(arg, binding) if is_known(arg, binding) else None for arg in atom.args)
        except NoValue:
            return None

    def _next(self, rest: Sequence[Literal], binding: Binding) -> Literal | None:
        """The literal to look at next: those that bind at most one value first."""
        ready = [literal for literal in rest if can_solve(literal, binding)]
        known = set(binding)
        return min(ready, key=lambda literal: self.solver.cost(literal, known), default=None)

    def _rows(self, atom: Atom, binding: Binding) -> Iterator[Row]:
        """The facts that violate a negated atom."""
        try:
            yield from self.solver.facts_of(atom, binding)
        except NoValue:
            return

    # ── that would fail ──────────────────────────────────────────────────────────────────────

    def breaks(self, body: Sequence[Literal], binding: Binding, most: int) -> Iterator[Wants]:
        """Wants of which each makes an instance that holds fail."""
        for literal in body:
            match literal:
                case Atom(relation, args):
                    if all(is_known(arg, binding) for arg in args):
                        yield frozenset([Want(relation, self.solver.row(args, binding), comes=False)])
                    else:
                        for row in self._rows(literal, binding):
                            yield frozenset([Want(relation, row, comes=False)])
                case Negation(atom):
                    for absent in self._candidates(atom, binding):
                        yield frozenset([Want(atom.relation, absent, comes=True)])
                case Aggregate():
                    yield from self.changes(literal, binding, most)
                case _:
                    pass

    def _candidates(self, atom: Atom, binding: Binding) -> Iterator[tuple[Value | None, ...]]:
        """The absent facts that a negated atom forbids."""

        def completed(args: Sequence[Term], row: tuple[Value | None, ...]) -> Iterator[tuple[Value | None, ...]]:
            self.work.step()
            if len(row) == len(args):
                yield row
                return
            arg = args[len(row)]
            if isinstance(arg, Wildcard) and (atom.relation, len(row)) in self.computed:
                yield from completed(args, (*row, None))
            elif isinstance(arg, Wildcard):
                for value in self.domain.values(atom.relation, len(row)):
                    yield from completed(args, (*row, value))
            else:
                yield from completed(args, (*row, self.solver.value(arg, binding)))

        yield from completed(atom.args, ())

    # ── aggregates ───────────────────────────────────────────────────────────────────────────

    def changes(self, literal: Aggregate, binding: Binding, most: int) -> Iterator[Wants]:
        """Wants of which each changes the matches of an aggregate."""
        outer = {variable.name: binding[variable.name] for variable in literal.outer}
        for match in self.solver.solve(literal.body, outer):
            self.work.step()
            yield from self.breaks(literal.body, match, most)
        yield from self.makes(literal.body, outer, most)
