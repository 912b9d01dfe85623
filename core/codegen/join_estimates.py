"""Estimates of the steps that one more atom takes, and of the rows that it leaves.

The rows of a prefix are known by the statistics of the relations that gave values to its variables.
What an atom adds to it follows from how its columns match those values; tests leave a share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import TypeAlias

from attrs import frozen

from everlog.core import program as p
from everlog.core.codegen.trial_joins import Extension
from everlog.core.program import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    Range,
    Term,
    Value,
    Variable,
)
from everlog.core.program.bodies import variables_of_literal
from everlog.core.program.functors import COMPARISONS
from everlog.core.storage.shape import Columns
from everlog.core.storage.table_statistics import Guess, Selection, Statistics

EXHAUSTIVE = 8  # atoms and ranges of a body, of which all orders are looked at
FEW_PASS = 0.001  # the share of rows that pass a test which none of a sample passes
LEFT_BY = {"<": 1 / 3, "<=": 1 / 3, ">": 1 / 3, ">=": 1 / 3, "=": 0.1, "!=": 0.9}
LEFT_BY_NEGATION = 0.5
_IN_A_SET = 0.1  # steps for a value that a set operation goes through in C
_UNION = 0.2
_RANGE = 20.0  # values of a range

Source: TypeAlias = tuple[Statistics, int, int]  # where a variable's values are drawn from: atom, column


@frozen
class Estimate:
    """One atom in the chosen order: rows tried per row before it; rows tried, and left, in all."""

    position: int
    matches: float
    tried: float
    rows: float
    bound: frozenset[Variable]  # those of its variables that have values before


# What a run has told about a literal whose `bound` variables had values: rows tried for each row
# before it, and rows left.
Observed: TypeAlias = Mapping[tuple[Literal, frozenset[Variable]], tuple[float, float]]


@frozen
class Prefix:
    """Literals that have been joined: steps so far, rows, and where variables got their values."""

    cost: float
    rows: float
    sources: dict[Variable, Source | None]
    order: tuple[Estimate, ...]
    tested: frozenset[int]


class Estimates:
    """Adds atoms of one body to prefixes.

    With `shown`, a loop ends at its first row when all of these variables have values.
    """

    def __init__(
        self,
        body: Sequence[Literal],
        statistics: Mapping[str, Statistics],
        set_variable: Variable | None,
        kept: Set[Variable],
        observed: Observed | None,
        shown: Set[Variable] | None,
    ) -> None:
        self.body, self.statistics, self.set_variable = body, statistics, set_variable
        self.observed, self.shown = observed or {}, shown
        self.joined = [i for i, x in enumerate(body) if isinstance(x, Atom | Range)]
        self.tests = [i for i, x in enumerate(body) if not isinstance(x, Atom | Range)]
        self.variables = [frozenset(variables_of_literal(x)) for x in body]
        self.columns = [_variable_columns(x) if isinstance(x, Atom) else () for x in body]
        uses: dict[Variable, int] = {}
        for names in self.variables:
            for variable in names:
                uses[variable] = uses.get(variable, 0) + 1
        others = set().union(*(self.variables[i] for i in self.tests))
        self.passing = {v for v, n in uses.items() if n == 2 and v not in kept and v not in others}
        self.simple = _simple_comparisons(body)
        self.inside: set[int] = set()  # comparisons that one atom can decide by itself
        self._looked: dict[int, Statistics] = {}
        self._passed: dict[int, Statistics] = {}

    def _next(self, prefix: Prefix, position: int) -> Prefix:
        """The prefix with one more atom, and with the tests that become ready."""
        return self._joined(*self._estimated(prefix, position), prefix, position)

    def _estimated(
        self, prefix: Prefix, position: int, found: Extension | None = None
    ) -> tuple[float, float, float]:
        """All steps, the rows left, and the rows tried for each row before, with one more atom."""
        literal = self.body[position]
        new = self.variables[position].difference(prefix.sources)
        tried, matches = self._matches(prefix, position) if found is None else (found.tried, found.matches)
        if self._ends(prefix):
            tried, matches = min(tried, max(tried / max(matches, FEW_PASS), 1.0)), min(matches, 1.0)
        rows, weight = prefix.rows * max(matches, FEW_PASS), 1.0
        if self.set_variable in new:
            if len(new) == 1 and prefix.sources:  # sets are intersected: their values are not run through
                rows, weight = prefix.rows * min(matches, 1.0), _IN_A_SET
            elif len(new) > 1 and isinstance(literal, Atom):
                others = tuple(c for c, a in enumerate(literal.args) if a in new and a != self.set_variable)
                rows = prefix.rows * min(matches, self._known(literal).distinct(others))
        elif len(new) == 1 and new <= self.passing and prefix.sources:
            weight = _UNION
        return prefix.cost + prefix.rows + weight * prefix.rows * tried, rows, tried

    def _joined(self, cost: float, rows: float, tried: float, prefix: Prefix, position: int) -> Prefix:
        literal = self.body[position]
        sources = dict(prefix.sources)
        if isinstance(literal, Atom):
            known = self._left(position)
            if len(prefix.order) < len(self.joined) - 1 < EXHAUSTIVE:
                for place, (other, mine, theirs) in self._drawn(prefix, position).items():
                    met = other.meeting(theirs, known, mine)
                    known = known.meeting(mine, other, theirs)
                    if met is not other:
                        for variable, source in sources.items():
                            if source is not None and source[2] == place:
                                sources[variable] = met, source[1], place
            for column, argument in self.columns[position]:
                if argument not in sources:
                    sources[argument] = known, column, position
        for variable in self.variables[position]:
            sources.setdefault(variable, None)
        bound = self._bound(prefix, position)
        order = (*prefix.order, Estimate(position, tried, prefix.rows * tried, rows, bound))
        return self._tested(Prefix(cost, rows, sources, order, prefix.tested))

    def _drawn(self, prefix: Prefix, position: int) -> dict[int, tuple[Statistics, Columns, Columns]]:
        """The columns whose values come from atoms before: by atom, with its columns."""
        found: dict[int, tuple[Statistics, Columns, Columns]] = {}
        for column, argument in self.columns[position]:
            source = prefix.sources.get(argument)
            if source is not None:
                _, mine, theirs = found.get(source[2], (source[0], (), ()))
                found[source[2]] = source[0], (*mine, column), (*theirs, source[1])
        return found

    def _atom(self, position: int) -> Atom:
        literal = self.body[position]
        assert isinstance(literal, Atom)
        return literal

    def _known(self, atom: Atom) -> Statistics:
        found = self.statistics.get(atom.relation)
        return Guess(len(atom.args)) if found is None else found

    def _looked_up(self, position: int) -> Statistics:
        """The rows of an atom that have its constants: an index gives them."""
        if position not in self._looked:
            atom = self._atom(position)
            self._looked[position] = self._known(atom).selected(Selection(_constants(atom)))
        return self._looked[position]

    def _left(self, position: int) -> Statistics:
        """The rows of an atom that pass all tests that need nothing else."""
        if position not in self._passed:
            atom = self._atom(position)
            self._passed[position] = self._known(atom).selected(self._selection(atom))
        return self._passed[position]

    def _selection(self, atom: Atom) -> Selection:
        columns: dict[Variable, int] = {}
        same = []
        for column, argument in enumerate(atom.args):
            if isinstance(argument, Variable):
                if argument in columns:
                    same.append((columns[argument], column))
                columns.setdefault(argument, column)
        comparisons = []
        for position in sorted({x for variable in columns for x in self.simple.get(variable, ())}):
            literal = self.body[position]
            assert isinstance(literal, Comparison)
            left, right = _side(literal.left, columns), _side(literal.right, columns)
            if left is not None and right is not None:
                comparisons.append((literal.op, left, right))
                self.inside.add(position)
        return Selection(_constants(atom), tuple(same), tuple(comparisons))

    def _matches(self, prefix: Prefix, position: int) -> tuple[float, float]:
        """The rows of an atom that an index gives for one row of the prefix, and those that match.

        They differ where a variable without a value stands twice, or a comparison excludes rows.
        """
        literal = self.body[position]
        if self.observed:
            seen = self.observed.get((literal, self._bound(prefix, position)))
            if seen is not None:
                return seen
        if not isinstance(literal, Atom):
            return _RANGE, _RANGE
        looked, left = self._looked_up(position), self._left(position)
        tried = self._matched(prefix, position, looked)
        return tried, tried if left is looked else min(tried, self._matched(prefix, position, left))

    def _matched(self, prefix: Prefix, position: int, known: Statistics) -> float:
        """The rows among those known that match one row of the prefix."""
        atom = self._atom(position)
        columns: list[int] = []
        shares: list[float] = []
        for column, argument in self.columns[position]:
            if argument in prefix.sources:
                columns.append(column)
                if prefix.sources[argument] is None:
                    shares.append(1.0 / known.distinct((column,)))
        for other, mine, theirs in self._drawn(prefix, position).values():
            shares.append(known.matching(mine, other, theirs))
        rows = known.rows * known.together(shares, tuple(columns))
        if rows > 1 and any(isinstance(a, p.Wildcard) for a in atom.args):  # once per value, not per row
            shown = tuple(c for c, a in enumerate(atom.args) if not isinstance(a, p.Wildcard))
            rows *= min(1.0, known.distinct(shown) / max(known.rows, 1.0))
        return rows

    # ── tests ────────────────────────────────────────────────────────────────────────────────

    def _tested(self, prefix: Prefix) -> Prefix:
        """Apply the tests whose variables have values, and the equalities that give values."""
        if len(prefix.tested) == len(self.tests):
            return prefix
        sources, rows, cost = dict(prefix.sources), prefix.rows, prefix.cost
        tested = set(prefix.tested)
        changed = True
        while changed:
            changed = False
            for position in self.tests:
                if position in tested:
                    continue
                left = self._test(self.body[position], sources)
                if left is not None:
                    rows *= 1.0 if position in self.inside else left
                    tested.add(position)
                    changed = True
        return Prefix(cost, rows, sources, prefix.order, frozenset(tested))

    def _test(self, literal: Literal, sources: dict[Variable, Source | None]) -> float | None:
        """The share of rows that pass a test; None if it is not ready yet."""
        match literal:
            case Comparison(op, left, right, _):
                open_left = [v for v in p.variables_of(left) if v not in sources]
                open_right = [v for v in p.variables_of(right) if v not in sources]
                if not open_left and not open_right:
                    return self._passing(op, left, right, sources)
                for one, other, open_one, open_other in (
                    (left, right, open_left, open_right),
                    (right, left, open_right, open_left),
                ):
                    if op == "=" and isinstance(one, Variable) and open_one and not open_other:
                        sources[one] = sources.get(other) if isinstance(other, Variable) else None
                        return 1.0
                return None
            case Negation(atom):
                ready = all(v in sources for a in atom.args for v in p.variables_of(a))
                return self._missing(atom, sources) if ready else None
            case Aggregate(result=result, outer=outer):
                if any(v not in sources for v in outer):
                    return None
                if result in sources:
                    return LEFT_BY["="]
                sources[result] = None
                return 1.0
            case _:
                return None

    def _missing(self, atom: Atom, sources: Mapping[Variable, Source | None]) -> float:
        """The share of rows for which a relation has no fact."""
        argument = atom.args[0] if len(atom.args) == 1 else None
        source = sources.get(argument) if isinstance(argument, Variable) else None
        if source is None:
            return LEFT_BY_NEGATION
        known = self._known(atom)
        return max(1.0 - known.rows * known.matching((0,), source[0], (source[1],)), FEW_PASS)

    def _passing(self, op: str, left: p.Term, right: p.Term, sources: Mapping[Variable, Source | None]) -> float:
        if left == right:
            return 1.0 if op in ("=", "<=", ">=") else FEW_PASS
        for one, other, turned in ((left, right, False), (right, left, True)):
            if isinstance(one, Variable) and isinstance(other, Constant):
                source = sources.get(one)
                if source is not None:
                    return source[0].passing(source[1], _comparing(op, other.value, turned))
        if op == "=" and isinstance(left, Variable) and isinstance(right, Variable):
            known = [source for v in (left, right) if (source := sources.get(v)) is not None]
            if len(known) == 2:
                return known[0][0].matching((known[0][1],), known[1][0], (known[1][1],))
        return LEFT_BY.get(op, 0.5)

    def _bound(self, prefix: Prefix, position: int) -> frozenset[Variable]:
        """The variables of a literal that have values; an intersection would look at all values."""
        return frozenset(v for v in self.variables[position] if v in prefix.sources)

    def _ends(self, prefix: Prefix) -> bool:
        """Whether one row of each further atom is enough."""
        return self.shown is not None and self.shown <= prefix.sources.keys()


def _variable_columns(atom: Atom) -> tuple[tuple[int, Variable], ...]:
    return tuple((column, a) for column, a in enumerate(atom.args) if isinstance(a, Variable))


def _constants(atom: Atom) -> tuple[tuple[int, Value], ...]:
    return tuple((column, a.value) for column, a in enumerate(atom.args) if isinstance(a, Constant))


def _simple_comparisons(body: Sequence[Literal]) -> dict[Variable, list[int]]:
    """The comparisons of variables and constants, by their variables."""
    found: dict[Variable, list[int]] = {}
    for position, literal in enumerate(body):
        if isinstance(literal, Comparison) and literal.left != literal.right:
            sides = literal.left, literal.right
            if all(isinstance(term, Variable | Constant) for term in sides):
                for term in sides:
                    if isinstance(term, Variable):
                        found.setdefault(term, []).append(position)
    return found


def _side(term: Term, columns: Mapping[Variable, int]) -> tuple[int, Value] | None:
    """A side of a comparison as a column of an atom, or as -1 and a constant; None if neither."""
    if isinstance(term, Constant):
        return -1, term.value
    return (columns[term], 0) if isinstance(term, Variable) and term in columns else None


def _comparing(op: str, constant: Value, turned: bool) -> Callable[[Value], bool]:
    compare = COMPARISONS[op]
    return (lambda value: compare(constant, value)) if turned else (lambda value: compare(value, constant))
