"""The plan of a rule for readers: order, index, expected rows, and what a run has counted.

    scan call(s, f)                       expected 40 000   tried 40 000   kept 40 000
    index on f: infunc(f, m)              expected 40 000   tried 40 000   kept 40 000

Tried are the rows that an index or a scan gives, kept those that also pass all tests before the
next atom.  The compiled machine counts both.  Python works on sets: rules that it joins as a whole
are counted afterwards (core.evaluate.reports.counted_rows), if their rows are not too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import asdict, frozen

from everlog.core.codegen.join_estimates import Estimate
from everlog.core.evaluate.native.rule_task import NativeTask
from everlog.core.program import Atom, Constant, Literal, Rule, Variable

WITHOUT_EFFECT = "its `.plan` has no effect"


@frozen
class ShownStep:
    """An atom or a range of a body, in the order of the plan; counts are None if unknown."""

    atom: str
    by: str
    expected: float
    tried: int | None = None
    kept: int | None = None
    within: int = 0  # aggregates around it


@frozen
class ShownPlan:
    """One version of a rule; `anew` says how often it was planned again.

    `written`: the order is that of the rule's `.plan`.  `instead` says what is done where no order
    is chosen.
    """

    rule: str
    delta: int | None
    compiled: bool
    steps: tuple[ShownStep, ...]
    anew: int = 0
    written: bool = False
    instead: str = ""

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """The plan as lines of text."""
        version = "" if self.delta is None else f"   Δ at body atom {self.delta + 1}"
        again = f"   planned anew {self.anew} ×" if self.anew else ""
        written = "   order as written in .plan" if self.written else ""
        yield f"{self.rule}{version}{written}{again}"
        if self.instead:
            yield f"  {self.instead}"
        texts = ["  " * (step.within + 1) + f"{step.by} {step.atom}" for step in self.steps]
        width = max(map(len, texts), default=0)
        for text, step in zip(texts, self.steps, strict=True):
            counted = "" if step.tried is None else f"   tried {step.tried:>10}   kept {step.kept:>10}"
            per = "each " if step.within else ""
            yield f"{text:<{width}}   {per}expected {_rounded(step.expected):>10}{counted}"


def plan_of_task(task: NativeTask) -> ShownPlan:
    """The plan that a task of the compiled machine has come to, with its counts."""
    plan = task.made.plan
    steps = tuple(
        ShownStep(str(step.literal), _by(step.literal, step.bound), step.tried, tried, kept, step.within)
        for step, (_, tried, kept) in zip(plan.steps, task.made.counted(), strict=True)
    )
    changed, written = _changed(steps, plan.delta), bool(plan.rule.order_of(plan.delta))
    return ShownPlan(str(plan.rule), plan.delta, True, changed, task.replanned, written)


def plan_of_estimates(
    rule: Rule, delta: int | None, estimates: Sequence[Estimate], counts: Sequence[tuple[int, int]] | None = None
) -> ShownPlan:
    """The plan of a rule that Python runs; `counts` has the rows tried and kept by its steps."""
    known: Sequence[tuple[int | None, int | None]] = counts or [(None, None)] * len(estimates)
    steps = tuple(
        ShownStep(str(rule.body[one.position]), _by(rule.body[one.position], one.bound), one.tried, tried, kept)
        for one, (tried, kept) in zip(estimates, known, strict=True)
    )
    written = bool(rule.order_of(delta))
    return ShownPlan(str(rule), delta, False, _changed(steps, delta), written=written)


def _changed(steps: tuple[ShownStep, ...], delta: int | None) -> tuple[ShownStep, ...]:
    """The steps, of which the first one reads Δ."""
    if delta is None or not steps:
        return steps
    first = steps[0]
    return (
        ShownStep(f"Δ {first.atom}", "scan", first.expected, first.tried, first.kept, first.within),
        *steps[1:],
    )


def _by(literal: Literal, bound: Iterable[Variable]) -> str:
    """How the rows of an atom are found."""
    if not isinstance(literal, Atom):
        return "range"
    known = {*bound}
    key = [str(a) for a in literal.args if isinstance(a, Constant) or (isinstance(a, Variable) and a in known)]
    if len(key) == len(literal.args):
        return "test"
    return f"index on {', '.join(key)}:" if key else "scan"


def _rounded(rows: float) -> str:
    return f"{rows:.0f}" if rows >= 10 else f"{rows:.1f}"
