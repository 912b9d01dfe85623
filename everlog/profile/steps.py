"""Time and work of the steps of a living database, beside what was promised.

A promise is a power of D, the size of the joined relations, for each row that comes or goes in one
of them, and most promises are amortized.  So what is compared is a sum: the work of a rule in all
steps, over the sum of D^e of all rows that it heard of.  Work is counted in units that do not
depend on the machine, and a promise hides a constant: the ratio is that constant, and what matters
is that it does not grow with D.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from time import perf_counter
from typing import Any

from attrs import define, field, frozen

from everlog.api.database import Database
from everlog.core.engine.planning.costs import RuleCost, rule_costs
from everlog.core.engine.planning.plan import make_plan

SLOWEST = 50  # steps that are told one by one
_POINTS = 400  # in the picture of all steps


def _base(relation: str) -> str:
    """The relation that a projection of the engine belongs to.

    >>> _base("edge/0"), _base("edge")
    ('edge', 'edge')
    """
    return relation.partition("/")[0]


@define
class RuleSteps:
    """A rule over all steps."""

    cost: RuleCost
    reads: frozenset[str]  # its joined relations
    steps: int = 0  # in which it ran
    seconds: float = 0.0
    work: int = 0
    rows: int = 0  # that came or went in its joined relations
    promised: float = 0.0  # the sum of D^e over these rows
    worst: tuple[float, int] = (0.0, 0)  # work per row, in a step

    def to_json(self, size: int) -> dict[str, Any]:
        promise = self.cost.promise
        exponent = None if promise is None else str(promise.exponent)
        return {
            "name": self.cost.rule.name,
            "rule": (self.cost.shown or self.cost.rule).written,
            "class": self.cost.query_class,
            "strategy": self.cost.in_use.strategy,
            "promise": self.cost.cost_in_use,
            "exponent": exponent,
            "size": size,
            "steps": self.steps,
            "seconds": self.seconds,
            "work": self.work,
            "rows": self.rows,
            "work_per_row": self.work / self.rows if self.rows else None,
            "most_work_per_row": self.worst[0],
            "in_step": self.worst[1],
            "ratio": self.work / self.promised if self.promised and exponent is not None else None,
        }


@frozen(order=True)
class Step:
    """One step; `rules` are (seconds, name), the slowest first."""

    seconds: float
    number: int
    updates: int
    changes: int
    rules: tuple[tuple[float, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "seconds": self.seconds,
            "updates": self.updates,
            "changes": self.changes,
            "blow_up": self.changes / self.updates if self.updates else None,
            "rules": [{"name": name, "seconds": seconds} for seconds, name in self.rules],
        }


@define
class StepRecorder:
    """Records the steps that are made inside of `step`."""

    database: Database
    rules: dict[str, RuleSteps]
    owner: dict[str, str]  # of a rule as it is run: the rule that was written
    slowest: list[Step] = field(factory=list)  # a heap
    number: int = 0
    seconds: float = 0.0
    points: list[tuple[float, int]] = field(factory=list)  # each is the slowest of several steps
    width: int = 1

    @staticmethod
    def of(database: Database) -> StepRecorder:
        rules: dict[str, RuleSteps] = {}
        owner: dict[str, str] = {}
        for cost in rule_costs(make_plan(database.program, database._strategies)):
            name = cost.rule.name
            rules[name] = RuleSteps(cost, frozenset(_base(atom.relation) for atom in cost.query.atoms))
            owner[name] = name
            parts = list(cost.parts)
            for part in parts:  # grows during the iteration
                owner.setdefault(part.rule.name, name)
                parts += part.parts
        return StepRecorder(database, rules, owner)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Record one step; one that fails is not recorded."""
        before, start = self.database._engine.rule_figures(), perf_counter()
        yield
        seconds = perf_counter() - start
        self.number += 1
        self.seconds += seconds
        changed = {name: len(rows) for name, rows in self.database.changes.items()}
        given = sum(size for name, size in changed.items() if not self.database.program.rules_of(name))
        spent = self._ran(before, changed)
        slow = tuple(heapq.nlargest(3, ((took, name) for name, took in spent.items() if took > 0)))
        step = Step(seconds, self.number, given, sum(changed.values()) - given, slow)
        (heapq.heappush if len(self.slowest) < SLOWEST else heapq.heappushpop)(self.slowest, step)
        self._draw(seconds)

    def _ran(self, before: dict[str, tuple[int, float, int]], changed: dict[str, int]) -> dict[str, float]:
        """Add what the rules did in a step; their seconds."""
        spent: dict[str, list[float]] = {}
        for name, (runs, seconds, work) in self.database._engine.rule_figures().items():
            old = before.get(name, (0, 0.0, 0))
            if runs != old[0] or work != old[2]:
                sums = spent.setdefault(self.owner.get(name, name), [0.0, 0.0])
                sums[0] += seconds - old[1]
                sums[1] += work - old[2]
        for name, (took, work_done) in spent.items():
            known = self.rules.get(name)
            if known is not None:
                self._add(known, took, int(work_done), changed)
        return {name: took for name, (took, _) in spent.items()}

    def _add(self, known: RuleSteps, seconds: float, work: int, changed: dict[str, int]) -> None:
        rows = sum(changed.get(name, 0) for name in known.reads)
        known.steps += 1
        known.seconds += seconds
        known.work += work
        known.rows += rows
        promise = known.cost.promise
        if promise is not None:
            known.promised += rows * float(max(self._size(known), 1)) ** float(Fraction(promise.exponent))
        if rows:
            known.worst = max(known.worst, (work / rows, self.number))

    def _size(self, known: RuleSteps) -> int:
        """D: the size of the joined relations now."""
        return sum(self.database.size(name) for name in known.reads if name in self.database.relations)

    def _draw(self, seconds: float) -> None:
        """Add a step to the picture, which has a bounded number of points."""
        if self.points and self.points[-1][1] < self.width:
            slowest, steps = self.points[-1]
            self.points[-1] = max(slowest, seconds), steps + 1
        else:
            self.points.append((seconds, 1))
        if len(self.points) > _POINTS:
            pairs = zip(self.points[::2], [*self.points[1::2], (0.0, 0)], strict=False)
            self.points = [(max(a[0], b[0]), a[1] + b[1]) for a, b in pairs]
            self.width *= 2

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "seconds": self.seconds,
            "points": [seconds for seconds, _ in self.points],
            "steps_per_point": self.width,
            "slowest": [step.to_json() for step in sorted(self.slowest, reverse=True)],
            "rules": [each.to_json(self._size(each)) for each in self.rules.values()],
        }
