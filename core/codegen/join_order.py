"""The order in which a body's atoms are joined: the one with the fewest estimated steps.

A step is one row tried.  Joining atom after atom, the rows of the prefix that has been joined
multiply by the matches that the next atom has for each of them; tests that have become ready
leave a share of the rows.  The cost of an order is the sum of the rows tried.

Up to `EXHAUSTIVE` atoms, dynamic programming over sets of atoms finds the best order (Selinger
et al., SIGMOD 1979): of two ways to join the same atoms, the dearer one is dropped.  A larger body
is ordered greedily, and an atom is looked at again only when one of its variables has been bound,
so that a body of thousands of atoms does not cost the square of them.  Greedily, too, where the
greedy order of a delta rule tries next to nothing (`QUICK`).  Where tables are so small (`FEW`)
that a search takes longer than any order, they are joined by size.

The code for a body works on sets.  A variable whose values are never run through, because whole
sets are intersected at the bottom (the set variable) or united on the way, costs a share of a step.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import takewhile
from typing import NamedTuple, TypeAlias

from attrs import evolve, frozen

from everlog.core import program as p
from everlog.core.codegen.trial_joins import NOTHING, Extension, Trial, extended, given, sampled, tested, weighed
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
QUICK = 8  # rows tried for each row of Δ: an order that needs no search
FEW = 64  # combinations of rows: to try them all takes less time than to look at all orders
TINY = 24  # rows: such an atom may be joined before one that shares a variable with the others
_IN_A_SET = 0.1  # steps for a value that a set operation goes through in C
_UNION = 0.2
_RANGE = 20.0  # values of a range
_LEFT_BY = {"<": 1 / 3, "<=": 1 / 3, ">": 1 / 3, ">=": 1 / 3, "=": 0.1, "!=": 0.9}
_LEFT_BY_NEGATION = 0.5
_FEW = 0.001  # the share of rows that pass a test which none of a sample passes

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
class _Prefix:
    """Literals that have been joined: steps so far, rows, and where variables got their values."""

    cost: float
    rows: float
    sources: dict[Variable, Source | None]
    order: tuple[Estimate, ...]
    tested: frozenset[int]


class _Candidate(NamedTuple):
    """One more atom for a prefix: all steps, the rows left, and those tried for each row before."""

    cost: float
    rows: float
    tried: float
    prefix: _Prefix
    position: int
    found: Extension | None  # by a trial

    def joins_at_least(self, rows: float) -> _Candidate:
        """The same candidate if at least `rows` are left: it tries each of them once or more."""
        return self._replace(cost=max(self.cost, self.prefix.cost + self.prefix.rows + rows))


class Ordering:
    """Orders one body.

    `bound` are the variables that have values before the body begins; `first` is the place of an
    atom that comes first, `late` of one that waits for one of its variables.  `fixed` has the
    places of all atoms, if their order is not to be chosen.  With `shown`, a loop ends at its first
    row when all of these variables have values.  `begin` has values of the bound variables.  The
    statistics of relations are looked up by name.
    """

    def __init__(
        self,
        body: Sequence[Literal],
        statistics: Mapping[str, Statistics],
        bound: Set[Variable] = frozenset(),
        first: int | None = None,
        set_variable: Variable | None = None,
        kept: Set[Variable] = frozenset(),
        late: int | None = None,
        observed: Observed | None = None,
        fixed: Sequence[int] = (),
        shown: Set[Variable] | None = None,
        begin: Trial | None = None,
    ) -> None:
        self.shown, self.begin = shown, begin
        self.observed, self.fixed = observed or {}, fixed
        self.body, self.statistics, self.first, self.late = body, statistics, first, late
        self.set_variable = set_variable
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
        self.bound = bound
        self.simple = _simple_comparisons(body)
        self.inside: set[int] = set()  # comparisons that one atom can decide by itself
        self._looked: dict[int, Statistics] = {}
        self._passed: dict[int, Statistics] = {}

    def chosen(self) -> tuple[Estimate, ...]:
        """The atoms and ranges of the body in the order to join them."""
        start = self._tested(_Prefix(0.0, 1.0, dict.fromkeys(self.bound), (), frozenset()))
        if self.fixed:
            self.final = self._given(start)
            return self.final.order
        left = list(self.joined)
        if self.first is not None:
            start = self._next(start, self.first)
            left.remove(self.first)
        if self._is_small(left):
            self.final = self._by_size(start, left)
            return self.final.order
        if self.first is not None:
            found = self._greedy(start, left)
            if found.cost - start.cost <= start.rows * (len(left) + QUICK):
                self.final = found
                return found.order
        self.final = (self._exhaustive if len(left) <= EXHAUSTIVE else self._greedy)(start, left)
        return self.final.order

    def _is_small(self, left: Sequence[int]) -> bool:
        """Whether no order of these atoms can try many rows."""
        combinations = 1.0
        for position in left:
            literal = self.body[position]
            if not isinstance(literal, Atom) or position == self.late:
                return False
            combinations *= max(self._known(literal).rows, 1.0)
        return combinations <= FEW

    @property
    def cost(self) -> float:
        """The estimated steps of the chosen order."""
        return self.final.cost

    @property
    def rows(self) -> float:
        """The estimated matches of the whole body."""
        return self.final.rows

    def trial_of(self, variables: Sequence[Variable]) -> Trial | None:
        """Values of some variables, as a mean row of the body has them; None if that is unknown."""
        sources = [source for v in variables if (source := self.final.sources.get(v)) is not None]
        if len(sources) < len(variables) or len({place for _, _, place in sources}) != 1:
            return None
        known = sources[0][0]
        return sampled({v: column for v, (_, column, _) in zip(variables, sources, strict=True)}, known)

    def values_of(self, variable: Variable) -> float:
        """About how many different values a variable has in the chosen order."""
        source = self.final.sources.get(variable)
        return self.final.rows if source is None else source[0].distinct((source[1],))

    def _given(self, prefix: _Prefix) -> _Prefix:
        """The atoms in the fixed order; each range as soon as its bounds have values."""
        ranges = [i for i in self.joined if isinstance(self.body[i], Range)]
        for position in (*self.fixed, None):
            for one in [i for i in ranges if position is None or self._is_ready(prefix, i)]:
                prefix = self._next(prefix, one)
                ranges.remove(one)
            if position is not None:
                prefix = self._next(prefix, position)
        return prefix

    # ── three ways to search ───────────────────────────────────────────────────────────────────

    def _exhaustive(self, start: _Prefix, left: list[int]) -> _Prefix:
        layer, trials = {0: start}, {0: self._first_trial(start)}
        for _ in left:
            following: dict[int, list[_Candidate]] = {}
            for mask, prefix in layer.items():
                trial = trials.pop(mask)
                open_ = [(1 << n, i) for n, i in enumerate(left) if not mask & 1 << n]
                ready = [x for x in open_ if self._is_ready(prefix, x[1])]
                if any(self._is_connected(prefix, x[1]) for x in ready):
                    ready = [x for x in ready if self._is_connected(prefix, x[1]) or self._is_tiny(x[1])]
                atoms = [x for x in open_ if isinstance(self.body[x[1]], Atom)]
                for bit, position in ready or atoms:
                    tried = self._tried(trial, prefix, position)
                    estimated = self._estimated(prefix, position, tried)
                    following.setdefault(mask | bit, []).append(_Candidate(*estimated, prefix, position, tried))
            layer = {}
            for mask, candidates in following.items():
                layer[mask], trials[mask] = self._best(candidates)
        return next(iter(layer.values()))

    def _best(self, candidates: list[_Candidate]) -> tuple[_Prefix, Trial | None]:
        """The best way to join a set of atoms, and a trial of them.

        All ways lead to the same rows, so what is known from a trial of one holds for all.
        """
        tried = [one.found for one in candidates if one.found is not None]
        if not tried:
            return self._chosen(candidates), None
        known = next((one for one in tried if one.trial.exact), tried[0])
        are_all = self.set_variable is None and not any(self._ends(one.prefix) for one in candidates)
        if are_all:
            candidates = [one.joins_at_least(known.left) for one in candidates]
        best = self._chosen(candidates)
        trial, left = self._tested_trial(known.trial, known.left)
        if are_all:
            best = evolve(best, rows=left)
        return best, trial if trial.can_go_on else None

    def _ends(self, prefix: _Prefix) -> bool:
        """Whether one row of each further atom is enough."""
        return self.shown is not None and self.shown <= prefix.sources.keys()

    def _chosen(self, candidates: Sequence[_Candidate]) -> _Prefix:
        best = min(candidates, key=_cost)
        return self._joined(best.cost, best.rows, best.tried, best.prefix, best.position)

    def _by_size(self, start: _Prefix, left: list[int]) -> _Prefix:
        """The smallest tables first, each after one that it shares a variable with."""
        sizes = {position: self._looked_up(position).rows for position in left}
        order, rows, cost = list(start.order), start.rows, start.cost
        sources = dict(start.sources)
        waiting = sorted(left, key=sizes.__getitem__)
        while waiting:
            place = next(
                (i for i in waiting if not sources or not self.variables[i].isdisjoint(sources)), waiting[0]
            )
            waiting.remove(place)
            bound = self.variables[place].intersection(sources)
            tried = sizes[place]
            for column, argument in self.columns[place]:
                if argument in bound:
                    tried /= self._known(self._atom(place)).distinct((column,))
            cost += rows * (1.0 + tried)
            rows *= tried
            order.append(Estimate(place, tried, rows, rows, bound))
            known = self._looked_up(place)
            for column, argument in self.columns[place]:
                sources.setdefault(argument, (known, column, place))
        return self._tested(_Prefix(cost, rows, sources, tuple(order), start.tested))

    def _greedy(self, start: _Prefix, left: list[int]) -> _Prefix:
        """The next atom is the one that leaves the fewest rows, looked up in a heap."""
        waiting: dict[Variable, list[int]] = {}
        for position in left:
            for variable in self.variables[position]:
                waiting.setdefault(variable, []).append(position)
        heap: list[tuple[bool, float, int]] = []
        done: set[int] = set()
        fresh, prefix, seen = left, start, set(start.sources)
        for _ in left:
            for position in fresh:
                if position not in done and self._is_ready(prefix, position):
                    connected = self._is_connected(prefix, position)
                    heapq.heappush(heap, (not connected, self._matches(prefix, position)[0], position))
            while heap and heap[0][2] in done:
                heapq.heappop(heap)
            if not heap:  # nothing but the late atom is there to begin with
                heap.append((True, 0.0, next(i for i in left if i not in done and isinstance(self.body[i], Atom))))
            position = heapq.heappop(heap)[2]
            done.add(position)
            prefix = self._next(prefix, position)
            new = list(takewhile(lambda v: v not in seen, reversed(prefix.sources)))  # they come last
            seen.update(new)
            fresh = [x for v in new for x in waiting.get(v, ())]
        return prefix

    def _is_ready(self, prefix: _Prefix, position: int) -> bool:
        literal = self.body[position]
        if position == self.late:
            return bool(self._bound(prefix, position))
        if not isinstance(literal, Range):
            return True
        return all(v in prefix.sources for term in literal.bounds for v in p.variables_of(term))

    def _is_connected(self, prefix: _Prefix, position: int) -> bool:
        variables = self.variables[position]
        return not variables or not prefix.sources or bool(self._bound(prefix, position))

    def _bound(self, prefix: _Prefix, position: int) -> frozenset[Variable]:
        """The variables of a literal that have values; an intersection would look at all values."""
        return frozenset(v for v in self.variables[position] if v in prefix.sources)

    def _is_tiny(self, position: int) -> bool:
        """Whether an atom has so few rows that it may come before what it shares variables with."""
        return isinstance(self.body[position], Atom) and self._left(position).rows <= TINY

    def matches_of(self, position: int, bound: Set[Variable]) -> float:
        """The rows of an atom that match, if just these variables have values."""
        sources = {v: self.final.sources.get(v) for v in self.variables[position] if v in bound}
        return self._matches(_Prefix(0.0, 1.0, sources, (), frozenset()), position)[0]

    # ── trials ───────────────────────────────────────────────────────────────────────────────

    def _first_trial(self, start: _Prefix) -> Trial | None:
        trial, left = self.begin or NOTHING, 1.0
        if self.first is not None:
            atom = self._atom(self.first)
            found = extended(NOTHING, atom, self._known(atom), sampled=True)
            if found is None:
                return None
            trial, left = found.trial, found.left
        trial, _ = self._tested_trial(trial, left)
        return trial if trial.can_go_on else None

    def _tried(self, trial: Trial | None, prefix: _Prefix, position: int) -> Extension | None:
        """One more atom, tried on the rows of a trial; None if that cannot be."""
        literal = self.body[position]
        if trial is None or not isinstance(literal, Atom) or self.observed:
            return None
        if any(v in prefix.sources and v not in trial.columns for v in self.variables[position]):
            return None
        found = extended(trial, literal, self._known(literal))
        return found if found is None or found.trial.can_go_on else self._unmatched(trial, found, prefix, position)

    def _unmatched(self, trial: Trial, found: Extension, prefix: _Prefix, position: int) -> Extension:
        """None of a sample has matched: few rows do, each with as many as a frequent value has."""
        most = math.inf
        columns = [c for c, argument in self.columns[position] if argument in trial.columns]
        if len(columns) == 1:
            known = self._looked_up(position)
            shares = [*known.frequent(columns[0]).values(), known.rare(columns[0])]
            most = known.rows * max(shares) / len(trial.rows)
        matches = min(self._matches(prefix, position)[1], most)
        return evolve(found, tried=max(found.tried, matches), matches=matches, left=trial.total * matches)

    def _tested_trial(self, trial: Trial, left: float) -> tuple[Trial, float]:
        """A trial, and the rows of its prefix, after the tests that are ready."""
        waiting, found, before = [i for i in self.tests if i not in trial.done], True, trial
        while found:
            found = False
            for position in list(waiting):
                literal = self.body[position]
                if isinstance(literal, Aggregate):
                    continue
                if self.variables[position] <= trial.columns.keys():
                    passed = tested(trial, literal, self._known)
                    if passed is None:
                        passed = weighed(trial, _LEFT_BY.get(getattr(literal, "op", ""), _LEFT_BY_NEGATION))
                else:
                    passed = given(trial, literal)
                if passed is not None:
                    trial, found = passed, True
                    waiting.remove(position)
        if before.rows:
            left *= trial.total / before.total if trial.rows or trial.exact else 0.5 / len(before.rows)
        return evolve(trial, done=frozenset(self.tests).difference(waiting)), left

    # ── one more literal ─────────────────────────────────────────────────────────────────────

    def _next(self, prefix: _Prefix, position: int) -> _Prefix:
        """The prefix with one more atom, and with the tests that become ready."""
        return self._joined(*self._estimated(prefix, position), prefix, position)

    def _estimated(
        self, prefix: _Prefix, position: int, found: Extension | None = None
    ) -> tuple[float, float, float]:
        """All steps, the rows left, and the rows tried for each row before, with one more atom."""
        literal = self.body[position]
        new = self.variables[position].difference(prefix.sources)
        tried, matches = self._matches(prefix, position) if found is None else (found.tried, found.matches)
        if self._ends(prefix):
            tried, matches = min(tried, max(tried / max(matches, _FEW), 1.0)), min(matches, 1.0)
        rows, weight = prefix.rows * max(matches, _FEW), 1.0
        if self.set_variable in new:
            if len(new) == 1 and prefix.sources:  # sets are intersected: their values are not run through
                rows, weight = prefix.rows * min(matches, 1.0), _IN_A_SET
            elif len(new) > 1 and isinstance(literal, Atom):
                others = tuple(c for c, a in enumerate(literal.args) if a in new and a != self.set_variable)
                rows = prefix.rows * min(matches, self._known(literal).distinct(others))
        elif len(new) == 1 and new <= self.passing and prefix.sources:
            weight = _UNION
        return prefix.cost + prefix.rows + weight * prefix.rows * tried, rows, tried

    def _joined(self, cost: float, rows: float, tried: float, prefix: _Prefix, position: int) -> _Prefix:
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
        return self._tested(_Prefix(cost, rows, sources, order, prefix.tested))

    def _drawn(self, prefix: _Prefix, position: int) -> dict[int, tuple[Statistics, Columns, Columns]]:
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

    def _matches(self, prefix: _Prefix, position: int) -> tuple[float, float]:
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

    def _matched(self, prefix: _Prefix, position: int, known: Statistics) -> float:
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

    def _tested(self, prefix: _Prefix) -> _Prefix:
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
        return _Prefix(cost, rows, sources, prefix.order, frozenset(tested))

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
                    return _LEFT_BY["="]
                sources[result] = None
                return 1.0
            case _:
                return None

    def _missing(self, atom: Atom, sources: Mapping[Variable, Source | None]) -> float:
        """The share of rows for which a relation has no fact."""
        argument = atom.args[0] if len(atom.args) == 1 else None
        source = sources.get(argument) if isinstance(argument, Variable) else None
        if source is None:
            return _LEFT_BY_NEGATION
        known = self._known(atom)
        return max(1.0 - known.rows * known.matching((0,), source[0], (source[1],)), _FEW)

    def _passing(self, op: str, left: p.Term, right: p.Term, sources: Mapping[Variable, Source | None]) -> float:
        if left == right:
            return 1.0 if op in ("=", "<=", ">=") else _FEW
        for one, other, turned in ((left, right, False), (right, left, True)):
            if isinstance(one, Variable) and isinstance(other, Constant):
                source = sources.get(one)
                if source is not None:
                    return source[0].passing(source[1], _comparing(op, other.value, turned))
        if op == "=" and isinstance(left, Variable) and isinstance(right, Variable):
            known = [source for v in (left, right) if (source := sources.get(v)) is not None]
            if len(known) == 2:
                return known[0][0].matching((known[0][1],), known[1][0], (known[1][1],))
        return _LEFT_BY.get(op, 0.5)


def _cost(candidate: _Candidate) -> float:
    return candidate.cost


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
