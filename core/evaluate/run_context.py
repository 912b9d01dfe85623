"""What the units of a run share, and their rules as tasks in Python.

A rule is compiled when its unit begins: by then the relations that it reads are complete, and their
sizes decide the order of its joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from time import perf_counter

from attrs import define, evolve

from everlog.core import program as p
from everlog.core.evaluate.best_first import offering
from everlog.core.evaluate.choice_domains import Chooser
from everlog.core.evaluate.counters import Counting
from everlog.core.evaluate.reports.counted_rows import counted
from everlog.core.evaluate.reports.profile import UnitRuns
from everlog.core.evaluate.reports.shown_plans import ShownPlan, plan_of_estimates
from everlog.core.evaluate.rounds import source_of
from everlog.core.evaluate.watched_rule import WatchedRule, is_watched
from everlog.core.ir.compile import Compiled, Run, compile_late, compile_rule
from everlog.core.ir.printer import Access
from everlog.core.ir.set_operations import SetPlan
from everlog.core.ir.uses import Action, Meter, Use
from everlog.core.program import Program, Row, Rule
from everlog.core.program.aggregates.best_values import BestMap
from everlog.core.program.dependencies import Unit
from everlog.core.program.values import EvaluationError
from everlog.core.runtime.guards import Guard, Progress
from everlog.core.storage.equivalence import Equivalence
from everlog.core.storage.shape import Facts, Shape
from everlog.core.storage.table_statistics import Guess, Sampled, Statistics, Thorough
from everlog.core.storage.tables import Table, TableOf

_KEY = 1e-6  # seconds per key of an index, before any measurement


class Context:
    """The shared state of a run: tables, choices, subsumed facts, the counter."""

    def __init__(
        self,
        program: Program,
        shapes: dict[str, Shape],
        tables: dict[str, Table],
        guard: Guard,
        progress: Progress | None = None,
    ) -> None:
        self.program, self.shapes, self.tables = program, shapes, tables
        self.guard, self.progress = guard, progress
        self.choosers: dict[str, Chooser] = {}
        self.gone: dict[str, set[Row]] = {}
        self.counting = Counting(program)
        self.cache: dict[tuple[int, int | None], tuple[Rule, Compiled]] = {}
        self.watched: dict[tuple[int, int | None], tuple[Rule, WatchedRule]] = {}
        self.late: dict[tuple[int, int], Compiled | None] = {}
        self.sampled = Sampled(growing=False)
        self.shares = False  # whether keys may share a set: only if no table changes afterwards

    def load_all(self, inputs: Mapping[str, Iterable[Row]]) -> None:
        for name in self.program.relations:
            self.load(name, [*self.program.facts.get(name, ()), *inputs.get(name, ())])

    def load(self, name: str, rows: Iterable[Row]) -> None:
        self.tables[name] = self.loaded(name, rows)

    def loaded(self, name: str, rows: Iterable[Row]) -> Table:
        """A relation with its base facts."""
        relation, shape = self.program.relations[name], self.shapes[name]
        self.choosers.pop(name, None)
        self.gone.pop(name, None)
        if relation.choices:
            self.choosers[name] = Chooser(relation)
            rows = self.choosers[name].admit(rows)
        if not relation.equivalence:
            return TableOf(shape, shape.facts_of(rows))
        table = Equivalence(shape)
        table.merge(shape.facts_of(rows))
        return table

    def _statistics(self, rule: Rule, unit: Unit) -> dict[str, Statistics]:
        """Statistics of the relations that a rule reads; guesses for those of its unit."""
        names = {atom.relation for atom, _ in p.atoms_of(rule.body)}
        guessed = {name: Guess(self.shapes[name].arity) for name in names.intersection(unit.relations)}
        return self.sampled.known((name, self.tables[name]) for name in names.difference(guessed)) | guessed

    def compiled(self, rule: Rule, delta: int | None, unit: Unit) -> Compiled:
        found = self.cache.get((id(rule), delta))
        if found is None:  # the rule is kept beside its code, so that its id stays its own
            known = self._statistics(rule, unit)
            functors, settled = self.program.functors, self._is_settled(rule)
            found = rule, compile_rule(rule, delta, self.shapes, known, functors, Use(known=settled))
            self.cache[id(rule), delta] = found
        return found[1]

    def tell_plans(self, unit: Unit, runs: UnitRuns) -> None:
        """Record the plans that Python has used for a unit."""
        for rule, compiled in self.cache.values():
            if rule.name in runs.rules and rule in unit.rules:
                runs.rules[rule.name].plans.append(self._shown(rule, compiled.plan))
        for rule, made in self.watched.values():
            if rule.name in runs.rules and rule in unit.rules:
                shown = self._shown(rule, made.compiled.plan)
                runs.rules[rule.name].plans.append(evolve(shown, anew=made.replanned))

    def _shown(self, rule: Rule, plan: SetPlan) -> ShownPlan:
        order = [one.position for one in plan.estimates]
        counts = None if plan.delta is not None else counted(self.program, rule, order, self._rows, self._size)
        return plan_of_estimates(rule, plan.delta, plan.estimates, counts)

    def _rows(self, name: str) -> Iterable[Row]:
        return self.tables[name].rows()

    def _size(self, name: str) -> int:
        return len(self.tables[name])

    def versions(self, rule: Rule, unit: Unit) -> list[Compiled]:
        """A rule as its unit runs it: from each atom of the unit, or as a whole."""
        places: list[int | None] = [*unit.positions(rule)] if unit.recursive else []
        return [self.compiled(rule, place, unit) for place in places or [None]]

    def task(self, rule: Rule, delta: int | None, unit: Unit) -> RuleTask:
        """A compiled rule on the indexes it asks for."""
        early: Run
        if is_watched(rule) and not rule.order_of(delta):
            early, only_new = self._watched(rule, delta, unit), False
        else:
            compiled = self.compiled(rule, delta, unit)
            early, only_new = self._bound(compiled), compiled.only_new
        source = source_of(rule, delta)
        if delta is None:
            return RuleTask(rule, source, early, only_new)
        if (id(rule), delta) not in self.late:
            known = self._statistics(rule, unit)
            functors, settled = self.program.functors, self._is_settled(rule)
            self.late[id(rule), delta] = compile_late(
                rule, delta, self.shapes, known, functors, Use(known=settled)
            )
        other = self.late[id(rule), delta]
        if other is None or other.driver is None:
            return RuleTask(rule, source, early, only_new)
        either = EitherWay(early, self._bound(other), self.index(other.accesses[other.driver]))
        return RuleTask(rule, source, either, only_new and other.only_new)

    def _watched(self, rule: Rule, delta: int | None, unit: Unit) -> WatchedRule:
        """A rule that is planned anew when it does far more than was expected."""
        found = self.watched.get((id(rule), delta))
        if found is not None:
            return found[1]
        functors, settled = self.program.functors, self._is_settled(rule)

        def compile_(meter: Meter, thorough: bool) -> Compiled:
            known = self._thorough_statistics(rule) if thorough else self._statistics(rule, unit)
            return compile_rule(rule, delta, self.shapes, known, functors, Use(known=settled, meter=meter))

        shape = self.shapes[source_of(rule, delta) or rule.head.relation]
        made = WatchedRule(compile_, self._bound, shape.size_of)
        self.watched[id(rule), delta] = rule, made
        return made

    def _thorough_statistics(self, rule: Rule) -> dict[str, Statistics]:
        """Statistics of the relations that a rule reads, as they are now."""
        names = {atom.relation for atom, _ in p.atoms_of(rule.body)}
        found = ((name, self.tables[name].statistics()) for name in names)
        return {name: Thorough.of(known) for name, known in found if known is not None}

    def offers(self, rule: Rule, delta: int | None, maps: Mapping[str, BestMap], unit: Unit) -> RuleTask:
        """A rule that offers values to a map."""
        known = maps[rule.head.relation]
        use = Use(Action.LEAST if known.op == "min" else Action.GREATEST)
        return self._row_by_row(rule, offering(rule, known), delta, unit, use)

    def deriving(self, rule: Rule, delta: int | None, unit: Unit) -> RuleTask:
        """A rule that derives a set of rows."""
        return self._row_by_row(rule, rule, delta, unit, Use(Action.ROWS))

    def _row_by_row(self, rule: Rule, made: Rule, delta: int | None, unit: Unit, use: Use) -> RuleTask:
        statistics, functors = self._statistics(rule, unit), self.program.functors
        compiled = compile_rule(made, delta, self.shapes, statistics, functors, use, sets=False)
        return RuleTask(rule, source_of(rule, delta), self._bound(compiled), only_new=False)

    def direct(self, rule: Rule, delta: int, unit: Unit) -> RuleTask | None:
        """A rule that runs key by key and adds to its relation; None if it cannot."""
        compiled = self.compiled(rule, delta, unit)
        if not compiled.from_delta:
            return None
        return RuleTask(rule, rule.head.relation, self._bound(compiled), only_new=False)

    def _is_settled(self, rule: Rule) -> bool:
        """Whether a rule need not derive facts that its head relation already has."""
        head = self.program.relations.get(rule.head.relation)
        return head is not None and not head.equivalence and not head.choices

    def _bound(self, compiled: Compiled) -> Run:
        for access in compiled.accesses:
            if access.key and access.rest:  # first: the keys of such an index are another one
                self.index(access)
        return compiled.bound_to(self.index)

    def index(self, access: Access) -> object:
        return self.tables[access.relation].index(access.key, access.rest)


class EitherWay:
    """A rule from Δ outwards, or through all of another atom: whichever is faster.

    At first both are assumed to take the same time per key; later rounds use measured times.
    """

    def __init__(self, early: Run, late: Run, driver: object) -> None:
        assert isinstance(driver, Sized)
        self.early, self.late, self.driver = early, late, driver
        self.early_key, self.late_key = _KEY, _KEY  # seconds

    def __call__(self, changed: Facts | None, new: Facts) -> None:
        assert changed is not None
        keys, start = len(changed), perf_counter()
        if self.early_key * keys > self.late_key * len(self.driver):
            self.late(changed, new)
            self.late_key = (perf_counter() - start) / max(len(self.driver), 1)
        else:
            self.early(changed, new)
            self.early_key = (perf_counter() - start) / max(keys, 1)


@define
class RuleTask:
    """One compiled version of a rule: reads Δ of `source` (None: no Δ)."""

    rule: Rule
    source: str | None
    run: Run
    only_new: bool  # whether it derives only new facts

    def __call__(self, delta: Facts | None, out: Facts) -> None:
        try:
            self.run(delta, out)
        except EvaluationError as error:
            raise error.with_rule(self.rule.written, str(self.rule.origin)) from error.__cause__
