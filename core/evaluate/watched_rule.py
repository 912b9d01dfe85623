"""A rule that Python runs, planned anew when it does far more than was expected.

Its code counts its turns and the elements of its set operations; past a limit it stops.  Then the
rule is planned with rows of all its relations that are looked up (`core.codegen.trial_joins`), not
with what estimates make of samples, and begins again.  What it has derived stands.

Source: Markl et al., SIGMOD 2004 (progressive optimisation).
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from everlog.core.evaluate.native.rule_task import MORE, TIMES
from everlog.core.ir.compile import Compiled, Run
from everlog.core.ir.uses import Meter
from everlog.core.program import Atom, Rule
from everlog.core.storage.shape import Facts

WORTH = 20_000  # steps that a rule may always make: planning again takes about as long
_TURN = 10  # elements of a set operation in the time of one turn of a loop, which is a step
_UNION = 2  # the same for one key of a union

Compile = Callable[[Meter, bool], Compiled]  # the rule; thoroughly: with rows that are looked up
Size = Callable[[Facts], int]


class TooMuchWork(Exception):
    """A rule has reached the limit of its work."""


def is_watched(rule: Rule) -> bool:
    """Whether a rule has orders of very different cost."""
    return sum(isinstance(literal, Atom) for literal in rule.body) > 2


class WatchedRule:
    """One version of a rule.  `size` counts the facts of Δ; `bind` finds the indexes of code."""

    def __init__(self, compile_: Compile, bind: Callable[[Compiled], Run], size: Size) -> None:
        self._compile, self._bind, self._size = compile_, bind, size
        self._counter = [0, 0, 0, sys.maxsize]  # work, two that are not used, limit
        self._meter = Meter(self._counter, TooMuchWork, "_t", _TURN, "_t = 0", "{0}[0] += _t", union=_UNION)
        self.replanned = 0
        self._best = False  # whether planning again would give the same plan
        self.compiled = compile_(self._meter, False)
        self._run: Run | None = None

    def __call__(self, delta: Facts | None, out: Facts) -> None:
        for _ in range(TIMES):
            self._counter[3] = self._limit(delta)
            try:
                self._bound()(delta, out)
                return
            except TooMuchWork:
                self._plan_anew()
        self._counter[3] = sys.maxsize
        self._bound()(delta, out)

    def _bound(self) -> Run:
        if self._run is None:
            self._run = self._bind(self.compiled)
        return self._run

    def _limit(self, delta: Facts | None) -> int:
        plan = self.compiled.plan
        if self._best:
            return sys.maxsize
        expected = plan.cost
        if delta is not None and plan.estimates:
            expected *= self._size(delta) / max(plan.estimates[0].rows, 1.0)
        return _TURN * max(WORTH, int(min(MORE * expected, 1e15)))

    def _plan_anew(self) -> None:
        before, self.compiled = self.compiled, self._compile(self._meter, True)
        self._run = None
        self._best = before.plan.operations == self.compiled.plan.operations
        self.replanned += not self._best
