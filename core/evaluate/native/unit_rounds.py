"""A unit on the compiled machine: the same rounds, by plans over rows of words.

Rules are planned when their unit begins, as in Python, with the sizes of the relations that they
read.  A derived fact goes straight to its relation: its row number says that it is of this round,
so that no rule reads it before the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING

from attrs import define, evolve, frozen

from everlog.core import program as p
from everlog.core.codegen.join_estimates import Estimate, Observed
from everlog.core.codegen.join_order import Ordering
from everlog.core.evaluate.counters import Counting
from everlog.core.evaluate.native.rule_task import NativeTask
from everlog.core.evaluate.parts.body_parts import Bindings, BodyParts
from everlog.core.evaluate.parts.grouped_bodies import Grouping
from everlog.core.evaluate.parts.split_bodies import Splitting
from everlog.core.evaluate.reports.shown_plans import plan_of_task
from everlog.core.evaluate.rounds import Collected, Rounds, RoundTask, may_never_end, source_of
from everlog.core.evaluate.run_relations import Relations, statistics_of_words
from everlog.core.ir.lowering import lower
from everlog.core.ir.operations import Plan
from everlog.core.native.words import empty_words
from everlog.core.program import Literal, Program, Row, Rule, Variable
from everlog.core.program.bodies import rule_may_fail, variables_of_literal
from everlog.core.program.dependencies import Unit
from everlog.core.runtime.guards import Guard, Progress
from everlog.core.storage.shape import Facts
from everlog.core.storage.table_statistics import Guess, Statistics, is_other_size

if TYPE_CHECKING:
    from everlog.core.native import _machine as machine
    from everlog.core.native.assembly import Assembled

_FEW = 1000  # facts: statistics of a growing relation with fewer say little of what it will be


def planned(
    program: Program,
    unit: Unit,
    rule: Rule,
    delta: int | None,
    known: Callable[[str], Statistics],
    observed: Observed | None = None,
) -> Plan:
    """The plan of a rule; `known` has statistics of the relations that it reads."""
    statistics = _statistics(rule, known)

    def order(body: Sequence[Literal], bound: Set[Variable], first: int | None) -> Sequence[Estimate]:
        variables = frozenset(v for literal in body for v in variables_of_literal(literal))
        if body is not rule.body:  # of an aggregate
            return Ordering(body, statistics, bound, first, kept=variables, observed=observed).chosen()
        shown = None if rule_may_fail(rule) else {v for arg in rule.head.args for v in p.variables_of(arg)}
        fixed = rule.order_of(delta)
        return Ordering(
            body, statistics, bound, first, kept=variables, observed=observed, fixed=fixed, shown=shown
        ).chosen()

    return lower(rule, order, program.relations, unit.positions(rule), delta)


def _statistics(rule: Rule, known: Callable[[str], Statistics]) -> dict[str, Statistics]:
    return {atom.relation: known(atom.relation) for atom, _ in p.atoms_of(rule.body)}


def grouped(rule: Rule, known: Callable[[str], Statistics], parts: BodyParts) -> tuple[Rule, list[Bindings]]:
    """The rule with aggregates over relations where that is cheaper, and the relations it adds."""
    before = len(parts.made)
    rewritten = Grouping(parts).rewritten(rule, _statistics(rule, known))
    return rewritten, list(parts.made.values())[before:]


@frozen
class NativeContext:
    """What a unit needs on the compiled machine, whatever its rules are."""

    program: Program
    relations: Relations
    counting: Counting
    guard: Guard
    progress: Progress | None = None
    jobs: int = 1  # threads


@define
class _Numbered:
    """A rule with `autoinc()`."""

    rule: Rule
    run: Callable[[], None]
    source: str | None = None

    def __call__(self, delta: Facts | None, out: Facts) -> None:
        self.run()


class NativeRounds(Rounds):
    """The rounds of one unit on the compiled machine.

    What a rule derives goes straight to its relation, or, where only some facts are chosen, to
    `candidates`, one relation for each rule.
    """

    def __init__(self, context: NativeContext, unit: Unit) -> None:
        program, relations = context.program, context.relations
        name = ", ".join(unit.relations)
        super().__init__(name, relations.shapes, context.guard, may_never_end(program, unit))
        self.program, self.unit, self.relations = program, unit, relations
        self.counting, self.progress, self.jobs = context.counting, context.progress, context.jobs
        self.own = {name: relations.native(name) for name in unit.relations}
        self.candidates: dict[int, machine.Relation] = {}  # rule → what it has derived in this round
        self.recursive: list[tuple[Rule, int]] = []  # rules, with the atom that reads Δ
        self.tasks: list[RoundTask] = []  # of the recursion
        self.planned_for = 0  # facts of the unit
        self.parts = BodyParts(program.relations)
        self.splitting = Splitting(self.parts)
        self.bindings: dict[str, machine.Relation] = {}  # of parts of bodies
        self.made: list[NativeTask] = []

    def run(self) -> None:
        rules = [(rule, self.unit.positions(rule) if self.unit.recursive else []) for rule in self.unit.rules]
        self.round([self._task(rule, None) for rule, places in rules if not places], {}, 1)
        delta: dict[str, Facts] = {name: rows for name, one in self.own.items() if (rows := one.restart())}
        self.recursive = [(rule, place) for rule, places in rules for place in places]
        if delta and self.recursive:
            self.run_until_settled((), delta)
        if self.profile is not None:
            for task in self.made:
                self.profile.rules[task.owner].plans.append(plan_of_task(task))

    def _task(self, rule: Rule, delta: int | None) -> RoundTask:
        out = self._out(rule)
        if p.draws_numbers(rule):
            return _Numbered(rule, lambda: out.fill(self._numbered(rule)))
        rewritten, new = grouped(rule, self._known, self.parts)
        for bindings in new:
            self._bind(bindings)
        assemble = partial(self._assembled, out)
        task = NativeTask(rewritten, delta, source_of(rule, delta), assemble, self.jobs, rule.name)
        self.made.append(task)
        return task

    def _assembled(self, out: machine.Relation, rule: Rule, delta: int | None, observed: Observed) -> Assembled:
        from everlog.core.native.assembly import assemble  # here: only where the machine was built

        plan = self._plan(rule, delta, observed)
        names = {rule.head.relation, *(atom.relation for atom, _ in p.atoms_of(plan.rule.body))}
        words = {name: self._words(name) for name in names}
        return assemble(plan, words, self.program.functors, self.relations.symbols, self.guard.look, out)

    def _plan(self, rule: Rule, delta: int | None, observed: Observed) -> Plan:
        """The plan of a rule, after the parts of its body that are better computed first."""
        while True:
            program = evolve(self.program, relations=self.parts.relations) if self.parts.made else self.program
            plan = planned(program, self.unit, rule, delta, self._known, observed)
            if delta is not None or self.unit.positions(rule):
                return plan
            before = len(self.parts.made)
            split = self.splitting.split(rule, plan.steps, _statistics(rule, self._known))
            if split is None:
                return plan
            for bindings in list(self.parts.made.values())[before:]:
                self._bind(bindings)
            rule = split

    def _bind(self, bindings: Bindings) -> None:
        """Compute a part of the body of a rule."""
        out = empty_words(bindings.relation, self.relations.symbols)
        self.bindings[bindings.relation.name] = out
        task = NativeTask(bindings.rule, None, None, partial(self._assembled, out), self.jobs, bindings.owner)
        task(None, ())
        self.made.append(task)
        out.advance()

    def _words(self, name: str) -> machine.Relation:
        return self.bindings[name] if name in self.bindings else self.relations.native(name)

    def _known(self, name: str) -> Statistics:
        if name in self.own and len(self.own[name]) < _FEW:
            return Guess(self.program.relations[name].arity)
        if name in self.own:
            return statistics_of_words(self.own[name])
        if name not in self.bindings:
            return self.relations.statistics(name)
        return statistics_of_words(self.bindings[name])

    def _out(self, rule: Rule) -> machine.Relation:
        """The relation that a rule adds to."""
        name = rule.head.relation
        if not self.program.relations[name].choices:
            return self.own[name]
        if id(rule) not in self.candidates:
            self.candidates[id(rule)] = empty_words(self.program.relations[name], self.relations.symbols)
        return self.candidates[id(rule)]

    def _numbered(self, rule: Rule) -> set[Row]:
        """The facts of a rule with `autoinc()`: the reference numbers its bindings."""
        names = {atom.relation for atom, _ in p.atoms_of(rule.body)}
        return self.counting.derive(rule, {name: set(self.relations.rows(name)) for name in names})

    # ── a round ──────────────────────────────────────────────────────────────────────────────

    def round(self, tasks: Iterable[RoundTask], delta: dict[str, Facts], number: int) -> dict[str, Facts]:
        """Run the tasks; in a recursion, by plans for relations of about their present size."""
        if number > 1:
            facts = sum(map(len, self.own.values()))
            if not self.tasks or is_other_size(self.planned_for, facts):
                self.planned_for = facts
                before = {(task.owner, task.delta): task for task in self.tasks if isinstance(task, NativeTask)}
                self.made = [task for task in self.made if task not in self.tasks]
                self.tasks = [self._task(rule, place) for rule, place in self.recursive]
                for task in self.tasks:
                    if isinstance(task, NativeTask) and (task.owner, task.delta) in before:
                        task.follow(before[task.owner, task.delta])
            tasks = self.tasks
        return super().round(tasks, delta, number)

    def collector(self, task: RoundTask, new: Collected) -> Facts:
        return ()

    def found(self, task: RoundTask, out: Facts) -> int:
        return len(self._out(task.rule))

    def keep(self, new: Collected) -> dict[str, Facts]:
        for rule in self.unit.rules:
            if id(rule) in self.candidates:
                self.relations.admit(rule.head.relation, self.candidates[id(rule)])
                self.candidates[id(rule)].clear()
        return {name: rows for name, one in self.own.items() if (rows := one.advance())}

    def size(self, delta: dict[str, Facts]) -> int:
        return sum(map(len, delta.values()))

    def end_round(self, new: Collected, number: int) -> dict[str, Facts]:
        delta = super().end_round(new, number)
        if self.progress is not None:
            self.progress(self.name, number, self.size(delta))
        return delta

    def is_full(self) -> bool:
        limits = self.program.limits
        return any(name in limits and len(one) >= limits[name] for name, one in self.own.items())
