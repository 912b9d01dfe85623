"""Estimates that look few rows up instead (core.codegen.trial_joins)."""

from __future__ import annotations

import math

from attrs import evolve

from everlog.core.codegen.join_estimates import LEFT_BY, LEFT_BY_NEGATION, Estimates, Prefix
from everlog.core.codegen.trial_joins import NOTHING, Extension, Trial, extended, given, tested, weighed
from everlog.core.program import Aggregate, Atom


class TriedEstimates(Estimates):
    """Adds atoms to prefixes, of which some rows are known: `begin` has those of the empty one."""

    begin: Trial | None = None
    first: int | None = None  # the atom that comes first

    def first_trial(self) -> Trial | None:
        trial, left = self.begin or NOTHING, 1.0
        if self.first is not None:
            atom = self._atom(self.first)
            found = extended(NOTHING, atom, self._known(atom), sampled=True)
            if found is None:
                return None
            trial, left = found.trial, found.left
        trial, _ = self.tested_trial(trial, left)
        return trial if trial.can_go_on else None

    def tried(self, trial: Trial | None, prefix: Prefix, position: int) -> Extension | None:
        """One more atom, tried on the rows of a trial; None if that cannot be."""
        literal = self.body[position]
        if trial is None or not isinstance(literal, Atom) or self.observed:
            return None
        if any(v in prefix.sources and v not in trial.columns for v in self.variables[position]):
            return None
        found = extended(trial, literal, self._known(literal))
        return found if found is None or found.trial.can_go_on else self._unmatched(trial, found, prefix, position)

    def _unmatched(self, trial: Trial, found: Extension, prefix: Prefix, position: int) -> Extension:
        """None of a sample has matched: few rows do, each with as many as a frequent value has."""
        most = math.inf
        columns = [c for c, argument in self.columns[position] if argument in trial.columns]
        if len(columns) == 1:
            known = self._looked_up(position)
            shares = [*known.frequent(columns[0]).values(), known.rare(columns[0])]
            most = known.rows * max(shares) / len(trial.rows)
        matches = min(self._matches(prefix, position)[1], most)
        return evolve(found, tried=max(found.tried, matches), matches=matches, left=trial.total * matches)

    def tested_trial(self, trial: Trial, left: float) -> tuple[Trial, float]:
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
                        passed = weighed(trial, LEFT_BY.get(getattr(literal, "op", ""), LEFT_BY_NEGATION))
                else:
                    passed = given(trial, literal)
                if passed is not None:
                    trial, found = passed, True
                    waiting.remove(position)
        if before.rows:
            left *= trial.total / before.total if trial.rows or trial.exact else 0.5 / len(before.rows)
        return evolve(trial, done=frozenset(self.tests).difference(waiting)), left
