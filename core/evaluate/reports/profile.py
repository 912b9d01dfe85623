"""What a whole evaluation did: time and facts of each unit, round and rule.

A profile is recorded only where one is asked for: then each run of a rule is timed, and the facts
that it adds are counted.  Recursion that is computed at once, without rounds (`flow`, `ordered`,
`best_first`), runs no rule by itself; its time is that of the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from attrs import define, field

from everlog.core.evaluate.reports.shown_plans import WITHOUT_EFFECT, ShownPlan
from everlog.core.program import Rule, atoms_of
from everlog.core.program.dependencies import Unit


@define
class RuleRuns:
    """A rule: how often and how long it ran, and how many facts it found first.

    `reads` are the relations of its body; `found` counts each fact for the rule of its round that
    found it first.
    """

    rule: Rule
    reads: tuple[str, ...]
    runs: int = 0
    seconds: float = 0.0
    found: int = 0
    plans: list[ShownPlan] = field(factory=list)


@define
class UnitRuns:
    """A unit: who ran it, how long, and what each round found."""

    relations: tuple[str, ...]
    recursive: bool
    machine: str  # empty: the compiled machine; else why Python ran it
    rules: dict[str, RuleRuns]
    seconds: float = 0.0
    rounds: list[tuple[int, int, float]] = field(factory=list)  # number, new facts, seconds


@define
class RunProfile:
    """The units of an evaluation, in order."""

    units: list[UnitRuns] = field(factory=list)

    def plan_lines(self, only: str | None = None) -> Iterator[str]:
        """The plans that rules were run with, as text; of one relation or rule with `only`."""
        for unit in self.units:
            rules = [one for one in unit.rules.values() if only in (None, one.rule.name, one.rule.head.relation)]
            if not rules:
                continue
            machine = f"Python: {unit.machine}" if unit.machine else "the compiled machine"
            yield f"{', '.join(unit.relations)}: evaluated by {machine}, {unit.seconds:.3f} s"
            for one in rules:
                yield f"  {one.rule.name}" + (f"   {one.seconds:.3f} s, {one.runs} runs" if one.runs else "")
                for plan in one.plans:
                    yield from (f"    {line}" for line in plan.lines())
                if not one.plans:
                    told = f"; {WITHOUT_EFFECT}" if one.rule.orders else ""
                    yield f"    run at once with its unit, in no order of joins{told}"

    @contextmanager
    def unit(self, unit: Unit, machine: str) -> Iterator[UnitRuns]:
        """Time a unit; a second try replaces the first."""
        rules = {
            rule.name: RuleRuns(rule, tuple(dict.fromkeys(atom.relation for atom, _ in atoms_of(rule.body))))
            for rule in unit.rules
        }
        found = UnitRuns(unit.relations, unit.recursive, machine, rules)
        self.units = [each for each in self.units if each.relations != unit.relations] + [found]
        start = perf_counter()
        try:
            yield found
        finally:
            found.seconds = perf_counter() - start


def timed(runs: RuleRuns, run: Callable[[], None], size: Callable[[], int]) -> None:
    """Run a rule; `size` counts what its round has found so far."""
    before, start = size(), perf_counter()
    run()
    runs.seconds += perf_counter() - start
    runs.runs += 1
    runs.found += size() - before
