"""The order in which a body's atoms are joined: the one with the fewest estimated steps.

A step is one row tried.  Joining atom after atom, the rows of the prefix that has been joined
multiply by the matches that the next atom has for each of them; tests that have become ready
leave a share of the rows.  The cost of an order is the sum of the rows tried.

Up to `EXHAUSTIVE` atoms, dynamic programming over sets of atoms finds the best order (Selinger
et al., SIGMOD 1979): of two ways to join the same atoms, the cheaper one is kept.  A larger body
is ordered greedily, and an atom is looked at again only when one of its variables has been bound,
so that a body of thousands of atoms does not cost the square of them.  Greedily, too, where the
greedy order of a delta rule tries next to nothing (`QUICK`).  Where tables are so small (`FEW`)
that a search takes longer than any order, they are joined by size.

The code for a body works on sets.  A variable whose values are never run through, because whole
sets are intersected at the bottom (the set variable) or united on the way, costs a share of a step.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence, Set
from itertools import takewhile
from typing import NamedTuple

from attrs import evolve

from everlog.core import program as p
from everlog.core.codegen.join_estimates import EXHAUSTIVE, Estimate, Observed, Prefix
from everlog.core.codegen.trial_joins import Extension, Trial, sampled
from everlog.core.codegen.tried_estimates import TriedEstimates
from everlog.core.program import Atom, Literal, Range, Variable
from everlog.core.storage.table_statistics import Statistics

QUICK = 8  # rows tried for each row of Δ: an order that needs no search
FEW = 64  # combinations of rows: to try them all takes less time than to look at all orders
TINY = 24  # rows: such an atom may be joined before one that shares a variable with the others


class _Candidate(NamedTuple):
    """One more atom for a prefix: all steps, the rows left, and those tried for each row before."""

    cost: float
    rows: float
    tried: float
    prefix: Prefix
    position: int
    found: Extension | None  # by a trial

    def joins_at_least(self, rows: float) -> _Candidate:
        """The same candidate if at least `rows` are left: it tries each of them once or more."""
        return self._replace(cost=max(self.cost, self.prefix.cost + self.prefix.rows + rows))


class Ordering(TriedEstimates):
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
        super().__init__(body, statistics, set_variable, kept, observed, shown)
        self.bound, self.begin, self.first, self.late, self.fixed = bound, begin, first, late, fixed

    def chosen(self) -> tuple[Estimate, ...]:
        """The atoms and ranges of the body in the order to join them."""
        start = self._tested(Prefix(0.0, 1.0, dict.fromkeys(self.bound), (), frozenset()))
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

    def _given(self, prefix: Prefix) -> Prefix:
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

    def _exhaustive(self, start: Prefix, left: list[int]) -> Prefix:
        layer, trials = {0: start}, {0: self.first_trial()}
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
                    tried = self.tried(trial, prefix, position)
                    estimated = self._estimated(prefix, position, tried)
                    following.setdefault(mask | bit, []).append(_Candidate(*estimated, prefix, position, tried))
            layer = {}
            for mask, candidates in following.items():
                layer[mask], trials[mask] = self._best(candidates)
        return next(iter(layer.values()))

    def _best(self, candidates: list[_Candidate]) -> tuple[Prefix, Trial | None]:
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
        trial, left = self.tested_trial(known.trial, known.left)
        if are_all:
            best = evolve(best, rows=left)
        return best, trial if trial.can_go_on else None

    def _chosen(self, candidates: Sequence[_Candidate]) -> Prefix:
        best = min(candidates, key=_cost)
        return self._joined(best.cost, best.rows, best.tried, best.prefix, best.position)

    def _by_size(self, start: Prefix, left: list[int]) -> Prefix:
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
        return self._tested(Prefix(cost, rows, sources, tuple(order), start.tested))

    def _greedy(self, start: Prefix, left: list[int]) -> Prefix:
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

    def _is_ready(self, prefix: Prefix, position: int) -> bool:
        literal = self.body[position]
        if position == self.late:
            return bool(self._bound(prefix, position))
        if not isinstance(literal, Range):
            return True
        return all(v in prefix.sources for term in literal.bounds for v in p.variables_of(term))

    def _is_connected(self, prefix: Prefix, position: int) -> bool:
        variables = self.variables[position]
        return not variables or not prefix.sources or bool(self._bound(prefix, position))

    def _is_tiny(self, position: int) -> bool:
        """Whether an atom has so few rows that it may come before what it shares variables with."""
        return isinstance(self.body[position], Atom) and self._left(position).rows <= TINY

    def matches_of(self, position: int, bound: Set[Variable]) -> float:
        """The rows of an atom that match, if just these variables have values."""
        sources = {v: self.final.sources.get(v) for v in self.variables[position] if v in bound}
        return self._matches(Prefix(0.0, 1.0, sources, (), frozenset()), position)[0]


def _cost(candidate: _Candidate) -> float:
    return candidate.cost
