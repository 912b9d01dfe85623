"""One unit on Python's sets: in semi-naive rounds, or in a way that needs fewer.

First come the rules that do not need the unit itself.  Then, in each round, every rule reads the
state at its start; it runs once for each body atom of the unit, with that atom reading only Δ, the
facts of the round before (at first: all of them).  Results that are not known yet are the Δ of the
next round.

Some recursions need no rounds (core.evaluate.flow), or need rounds for some of their keys only
(core.evaluate.ordered); maps to a best value are settled in the order of values
(core.evaluate.best_first).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from attrs import evolve

from everlog.core import program as p
from everlog.core.evaluate.best_first import Settling, forms_of, only_adds
from everlog.core.evaluate.flow import flow, flow_steps
from everlog.core.evaluate.growing_rounds import Growth
from everlog.core.evaluate.ordered import key_levels, key_steps
from everlog.core.evaluate.reports.profile import UnitRuns
from everlog.core.evaluate.rounds import Collected, Rounds, RoundTask, may_never_end
from everlog.core.evaluate.run_context import Context, RuleTask
from everlog.core.evaluate.subsume import dominances
from everlog.core.ir.compile import Run, compile_rule
from everlog.core.program import Row, Rule, Value
from everlog.core.program.aggregates.best_values import BestMap, only_maps
from everlog.core.program.aggregates.growing import GrowingUnit, as_joined_maps, growing_unit
from everlog.core.program.carried import Steps
from everlog.core.program.dependencies import Unit
from everlog.core.program.values import EvaluationError
from everlog.core.storage.shape import Facts, Key
from everlog.core.storage.table_shapes import shape_of
from everlog.core.storage.tables import TableOf

_MANY = 10_000  # facts between two checks of the limits


class UnitRun(Rounds):
    """One unit, from the relations it reads: rounds until nothing is new."""

    def __init__(self, run: Context, unit: Unit, profile: UnitRuns | None = None) -> None:
        super().__init__(", ".join(unit.relations), run.shapes, run.guard, may_never_end(run.program, unit))
        self.context, self.unit, self.profile = run, unit, profile
        self.growing = growing_unit(run.program, unit) or as_joined_maps(run.program, unit)
        self.tables = run.tables
        self.steps = flow_steps(run.program, unit, run.shapes) if run.shares else None
        self.once: list[RuleTask] = []
        self.recursive: list[tuple[Rule, int]] = []  # with the atom to be read as Δ
        for rule in () if self.growing else unit.rules:
            positions = unit.positions(rule) if unit.recursive else []
            self.recursive += [(rule, position) for position in positions]
            if p.draws_numbers(rule):
                self.once.append(RuleTask(rule, None, self._numbered(rule), only_new=False))
            elif not positions:
                self.once.append(run.task(rule, None, unit))
        self.dominance = dominances(unit.subsumptions)
        self.mixed: set[str] = set()  # relations whose derived facts may not all be new
        self.candidates: list[tuple[Rule, Facts]] = []  # for relations with choice domains, by rule

    @cached_property
    def each(self) -> list[RuleTask]:
        """The tasks of each round."""
        return [self.context.task(rule, position, self.unit) for rule, position in self.recursive]

    def _spread(self, steps: list[Steps]) -> None:
        """Run all rounds at once, for recursion that only carries a column along."""
        table, new = self.tables[self.name], 0
        before, facts = len(table), {}
        graphs = [self.tables[one.relation].steps(one.start, one.end) for one in steps]
        for keys, values in flow(table.facts, graphs):
            facts.update(dict.fromkeys(keys, values))
            new += len(keys) * len(values)
            if new > before + _MANY:
                self.context.guard.round(self.name, 2, new - before, self.invents)
                before = new
        table.replace(facts)
        self.context.guard.round(self.name, 2, max(new - before, 0), self.invents)
        if self.context.progress is not None:
            self.context.progress(self.name, 2, new)

    def _settled_in_order(self) -> dict[str, Facts] | None:
        """Settle each key once, in order; return the Δ of keys that need rounds, or None.

        None: all keys need rounds.
        """
        steps = key_steps(self.context.program, self.unit, self.shapes)
        direct = [self.context.direct(rule, position, self.unit) for rule, position in self.recursive if steps]
        if not steps or None in direct:
            return None
        graphs = [self.tables[one.relation].steps(one.start, one.end) for one in steps]
        table = self.tables[self.name]
        facts, reported, settled = table.facts, len(table), 0
        levels, rest = key_levels(facts, graphs)
        for level in levels:
            delta = {key: facts[key] for key in level if key in facts}
            for task in direct:
                assert task is not None
                task(delta, facts)
            settled += table.shape.size_of(delta)
            if settled > reported + _MANY:
                self.context.guard.round(self.name, 2, settled - reported, self.invents)
                reported = settled
        table.rebuild()
        self.context.guard.round(self.name, 2, len(table) - reported, self.invents)
        if self.context.progress is not None:
            self.context.progress(self.name, 2, len(table))
        delta = {key: facts[key] for key in rest if key in facts}
        return {self.name: delta} if delta else {}

    def _settle_maps(self, maps: Mapping[str, BestMap]) -> None:
        """Settle a unit of maps to a best value in the order of their values."""
        forms = forms_of(self.context.program, maps, self.shapes)
        forward: dict[str, list[tuple[str, RuleTask]]] = {name: [] for name in maps}
        whole: list[RuleTask] = []
        for rule in self.unit.rules:
            positions = self.unit.positions(rule)
            task = self.context.offers(rule, positions[0] if positions else None, maps, self.unit)
            if task.source is None:
                whole.append(task)
            else:
                forward[task.source].append((rule.head.relation, task))
        settling = Settling(self.name, forms, forward, self.context.guard, only_adds(self.unit, maps))
        for name, form in forms.items():
            for row in self.tables[name].rows():
                settling.offer(name, form.key(row), row[form.column])
        for task in whole:
            found: dict[Key, Value] = {}
            task(None, found)
            for key, value in found.items():
                settling.offer(task.rule.head.relation, key, value)
        settling.run()
        for name, form in forms.items():
            self.tables[name].replace(form.shape.facts_of(form.rows(settling.best[name])))
            if self.context.progress is not None:
                self.context.progress(name, 2, len(self.tables[name]))

    def _grow(self, growing: GrowingUnit) -> None:
        """Let running totals and joined values grow, round by round."""
        context, names = self.context, (*self.unit.relations, *growing.relations)
        for name, relation in growing.relations.items():
            context.shapes[name] = shape_of(relation.arity)
            context.tables[name] = TableOf(context.shapes[name])
        base = {name: set(self.tables[name].rows()) for name in self.unit.relations}
        for name in self.unit.relations:
            self.tables[name].clear()
        whole = evolve(self.unit, relations=names, rules=growing.rules)
        once: list[RuleTask] = []
        forward: list[tuple[str, str, RuleTask]] = []
        for rule in growing.rules:
            positions: list[int | None] = [*whole.positions(rule)]
            for position in positions or [None]:
                task = context.deriving(rule, position, whole)
                if task.source is None:
                    once.append(task)
                else:
                    forward.append((task.source, rule.head.relation, task))
        growth = Growth(self.name, growing, self.tables, self.shapes, forward, context.guard)
        found = base
        for task in once:
            task(None, found.setdefault(task.rule.head.relation, set()))
        growth.run(found)
        for name in growing.relations:
            del context.tables[name], context.shapes[name]
        if context.progress is not None:
            context.progress(self.name, 2, sum(len(self.tables[name]) for name in self.unit.relations))

    def run(self) -> None:
        if self.growing is not None:
            self._grow(self.growing)
            return
        maps = only_maps(self.context.program, self.unit) if self.dominance else ""
        if isinstance(maps, dict):
            self._settle_maps(maps)
            return
        delta = self._everything()
        if self.dominance:
            self._subsumed(delta)
        self.round(self.once, {}, 1)
        delta = self._everything()
        if self.steps is not None and delta:
            self._spread(self.steps)
            return
        waiting = self._settled_in_order() if delta else None
        if waiting is not None:
            delta = waiting
        if delta and self.recursive:
            self.run_until_settled(self.each, delta)

    def _everything(self) -> dict[str, Facts]:
        return {name: self.tables[name].facts for name in self.unit.relations if self.tables[name].facts}

    # ── a round ──────────────────────────────────────────────────────────────────────────────

    def collector(self, task: RoundTask, new: Collected) -> Facts:
        head = task.rule.head.relation
        assert isinstance(task, RuleTask)
        if not task.only_new:
            self.mixed.add(head)
        if head in self.context.choosers:
            if not self.candidates or self.candidates[-1][0] is not task.rule:
                self.candidates.append((task.rule, self.shapes[head].empty()))
            return self.candidates[-1][1]
        if head not in new:
            new[head] = self.shapes[head].empty()
        found: Facts = new[head]
        return found

    def keep(self, new: Collected) -> dict[str, Facts]:
        self._choose(new)
        delta: dict[str, Facts] = {}
        for name, facts in new.items():
            fresh = self._fresh(name, facts, name in self.mixed)
            if fresh:
                delta[name] = self.tables[name].merge(fresh)
        self.mixed.clear()
        return self._subsumed(delta) if self.dominance and delta else delta

    def end_round(self, new: Collected, number: int) -> dict[str, Facts]:
        delta = super().end_round(new, number)
        if self.context.progress is not None:
            self.context.progress(self.name, number, self.size(delta))
        return delta

    def _choose(self, new: dict[str, Facts]) -> None:
        """Admit the candidates of relations with choice domains, rule by rule."""
        admitted: dict[str, list[Row]] = {}
        for rule, facts in self.candidates:
            name = rule.head.relation
            rows = self.shapes[name].rows_of(facts)
            admitted.setdefault(name, []).extend(self.context.choosers[name].admit(rows))
        self.candidates.clear()
        for name, rows_in in admitted.items():
            new[name] = self.shapes[name].facts_of(rows_in)

    def _fresh(self, name: str, facts: Facts, mixed: bool) -> Facts:
        """The derived facts that are not known yet; consumes `facts`."""
        shape, known = self.shapes[name], self.tables[name].facts
        gone = self.context.gone.get(name)
        if mixed:
            facts = shape.only_new(facts, known)
        if gone:
            facts = shape.facts_of(set(shape.rows_of(facts)) - gone)
        return facts

    def is_full(self) -> bool:
        limits = self.context.program.limits
        return any(name in limits and len(self.tables[name]) >= limits[name] for name in self.unit.relations)

    # ── subsumption ──────────────────────────────────────────────────────────────────────────

    def _subsumed(self, delta: dict[str, Facts]) -> dict[str, Facts]:
        """Remove dominated facts from the relations and from Δ."""
        for name, dominance in self.dominance.items():
            found: set[Row] = set()
            for rule in dominance.rules:
                found |= self._derived(rule, delta)
            removed = dominance.gone(found)
            if removed:
                self._remove(name, removed)
                if name in delta:
                    shape = self.shapes[name]
                    kept = shape.facts_of(set(shape.rows_of(delta[name])) - removed)
                    delta = {n: f for n, f in delta.items() if n != name} | ({name: kept} if kept else {})
        return delta

    def _derived(self, rule: Rule, delta: dict[str, Facts]) -> set[Row]:
        """What a rule for a relation of its own derives with something new."""
        head = rule.head.relation
        shapes = {**self.shapes, head: shape_of(len(rule.head.args))}
        names = {atom.relation for atom, _ in p.atoms_of(rule.body)}
        known = self.context.sampled.known((name, self.tables[name]) for name in names)
        found = shapes[head].empty()
        for position, atom in enumerate(rule.body):
            if not isinstance(atom, p.Atom) or atom.relation not in delta:
                continue
            compiled = compile_rule(rule, position, shapes, known, self.context.program.functors)
            try:
                compiled.bound_to(self.context.index)(delta[atom.relation], found)
            except EvaluationError as error:
                raise error.with_rule(rule.written, str(rule.origin)) from error.__cause__
        return set(shapes[head].rows_of(found))

    def _remove(self, name: str, rows: set[Row]) -> None:
        table = self.tables[name]
        self.context.gone.setdefault(name, set()).update(rows)
        table.remove(table.shape.facts_of(rows))

    # ── counters ─────────────────────────────────────────────────────────────────────────────

    def _numbered(self, rule: Rule) -> Run:
        """A task for a rule with `autoinc()`: the reference numbers its bindings."""
        shape = self.shapes[rule.head.relation]

        def run(_delta: Facts | None, new: Facts) -> None:
            state = {a.relation: set(self.tables[a.relation].rows()) for a, _ in p.atoms_of(rule.body)}
            shape.add_facts(new, shape.facts_of(self.context.counting.derive(rule, state)))

        return run
