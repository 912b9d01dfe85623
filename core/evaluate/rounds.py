"""Semi-naive rounds: each derives only from the facts that the last one found.

Whole evaluation collects facts, a living unit facts with the number of their derivations.  Both run
this loop; a subclass says how to collect derived facts, and which of them are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from time import perf_counter
from typing import Any, Protocol, TypeAlias

from everlog.core import program as p
from everlog.core.evaluate.reports.profile import UnitRuns, timed
from everlog.core.program import Program, Rule
from everlog.core.program.dependencies import Unit
from everlog.core.runtime.guards import Guard
from everlog.core.storage.shape import Facts, Shape

Collected: TypeAlias = dict[str, Any]  # relation → what a round derives, in the form of the subclass


class RoundTask(Protocol):
    """One version of a rule: reads Δ of the relation `source` (None: no Δ)."""

    rule: Rule
    source: str | None

    def __call__(self, delta: Facts | None, out: Facts) -> None:
        """Collect in `out` what the rule derives from Δ."""


class Rounds:
    """The rounds of one unit.

    Invariant: the tasks of a round read the state at its start; `keep` changes it at the end.
    """

    def __init__(self, name: str, shapes: Mapping[str, Shape], guard: Guard, invents: bool) -> None:
        self.name, self.shapes, self.guard, self.invents = name, shapes, guard, invents
        self.profile: UnitRuns | None = None

    def collector(self, task: RoundTask, new: Collected) -> Facts:
        """The container for the facts that a task derives, in `new` or elsewhere."""
        raise NotImplementedError

    def keep(self, new: Collected) -> dict[str, Facts]:
        """Add new facts to the state; return the next round's Δ, without empty entries."""
        raise NotImplementedError

    def size(self, delta: dict[str, Facts]) -> int:
        """The number of facts that a round counts against the limits of its step."""
        return sum(self.shapes[name].size_of(facts) for name, facts in delta.items())

    def is_full(self) -> bool:
        """Whether the rounds end although something is new."""
        return False

    def run_until_settled(self, tasks: Iterable[RoundTask], delta: dict[str, Facts]) -> None:
        """Run rounds until one finds nothing new; `delta` is what the first round found."""
        number = 1
        while delta and not self.is_full():
            number += 1
            delta = self.round(tasks, delta, number)

    def round(self, tasks: Iterable[RoundTask], delta: dict[str, Facts], number: int) -> dict[str, Facts]:
        """Run the tasks on the present state, then keep new facts: the next round's Δ."""
        new: Collected = {}
        start = perf_counter()
        for task in tasks:
            if task.source is None or task.source in delta:
                self._run(task, delta.get(task.source or ""), self.collector(task, new))
        found = self.end_round(new, number)
        if self.profile is not None:
            self.profile.rounds.append((number, self.size(found), perf_counter() - start))
        return found

    def _run(self, task: RoundTask, delta: Facts | None, out: Facts) -> None:
        if self.profile is None:
            task(delta, out)
        else:
            timed(self.profile.rules[task.rule.name], partial(task, delta, out), partial(self.found, task, out))

    def found(self, task: RoundTask, out: Facts) -> int:
        """The number of facts that a round has collected for the relation of a task."""
        return self.shapes[task.rule.head.relation].size_of(out)

    def end_round(self, new: Collected, number: int) -> dict[str, Facts]:
        """Keep the facts of a round, and check the limits."""
        delta = self.keep(new)
        if delta:
            self.guard.round(self.name, number, self.size(delta), self.invents)
        return delta


def source_of(rule: Rule, delta: int | None) -> str | None:
    """The relation whose Δ a rule reads; None if it reads none."""
    atom = None if delta is None else rule.body[delta]
    return atom.relation if isinstance(atom, p.Atom) else None


def may_never_end(program: Program, unit: Unit) -> bool:
    """Whether the rules of a unit make new values, and no limit of size stops them."""
    limited = any(name in program.limits for name in unit.relations)
    return not limited and any(p.invents(rule) for rule in unit.rules)
