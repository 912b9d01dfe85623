"""A rule on the compiled machine, planned anew when it tries far more rows than was expected.

The planner knows samples.  Where values go together in ways that a sample does not show, an order
may try thousands of times the rows that it was chosen for.  So a run has a number of rows; past it
the rule is planned with what the run has told about its steps, and begins again.  What it has
derived stands: a relation is a set.

Source: Markl et al., SIGMOD 2004 (progressive optimisation).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from everlog.core.codegen.join_estimates import Observed
from everlog.core.native.availability import TooManyRows
from everlog.core.program import Aggregate, Atom, Range, Rule
from everlog.core.storage.shape import Facts

if TYPE_CHECKING:
    from everlog.core.native.assembly import Assembled

MORE = 16  # times the expected rows are tried before a rule is planned anew
WORTH = 100_000  # rows that are tried in any case: planning takes about as long
TIMES = 4  # a run is planned anew at most this often
SELDOM = 1000  # a step that began less often may have been stopped early: its counts say little

Assemble = Callable[[Rule, int | None, Observed], "Assembled"]


class NativeTask:
    """One version of a rule: reads Δ of `source` (None: of nothing).

    `owner` is the name of the rule that a user knows.
    """

    def __init__(
        self, rule: Rule, delta: int | None, source: str | None, assemble: Assemble, jobs: int, owner: str
    ) -> None:
        self.rule, self.delta, self.source, self.owner = rule, delta, source, owner
        self._assemble, self.jobs = assemble, jobs
        joined = sum(isinstance(literal, Atom | Range) for literal in rule.body) - (delta is not None)
        chosen = joined > 1 and not rule.order_of(delta)
        self.has_choice = chosen or any(isinstance(literal, Aggregate) for literal in rule.body)
        self.observed: Observed = {}
        self.replanned = 0
        self.made = assemble(rule, delta, self.observed)

    def follow(self, other: NativeTask) -> None:
        """Take the place of a task whose relations have grown."""
        self.replanned = other.replanned + 1

    def __call__(self, delta: Facts | None, out: Facts) -> None:
        for _ in range(TIMES):
            try:
                self.made.code.run(self.jobs, self._most(delta))
                return
            except TooManyRows:
                self._learn()
        self.made.code.run(self.jobs)

    def _most(self, delta: Facts | None) -> int:
        """The rows that a run may try; 0 if there is no other order."""
        steps = [step for step in self.made.plan.steps if not step.within]
        if not self.has_choice:
            return 0
        expected = sum(step.tried for step in steps)
        if delta is not None and steps:
            expected *= len(delta) / max(steps[0].kept, 1.0)
        return max(WORTH, int(min(MORE * expected, 1e15)))

    def _learn(self) -> None:
        """Plan again, with what the steps have found so far.

        A step that began seldom may have been stopped in the middle: then what was expected of it
        counts where that is more.
        """
        observed, before = dict(self.observed), 1.0
        for step, (begun, tried, kept) in zip(self.made.plan.steps, self.made.counted(), strict=True):
            if begun:
                expected = step.tried / max(before, 1.0) if begun < SELDOM else 0.0
                matches = max(tried / begun, expected)
                observed[step.literal, step.bound] = matches, matches * kept / max(tried, 1)
            before = step.kept
        self.observed = observed
        self.replanned += 1
        self.made = self._assemble(self.rule, self.delta, observed)
