"""Whole-program evaluation: unit by unit, compiled rules, semi-naive rounds.

A recursive unit runs in rounds.  First come the rules that do not need the unit itself.  Then, in
each round, every rule reads the state at its start; it runs once for each body atom of the unit,
with that atom reading only Δ, the facts of the round before (at first: all of them).  Results that
are not known yet are the Δ of the next round.  Some recursions need no rounds (core.evaluate.flow),
or need rounds for some of their keys only (core.evaluate.ordered).

Rules are compiled when their unit begins: by then the relations that they read are complete, and
their sizes decide the order of joins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sized
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from time import perf_counter

from attrs import define, evolve

from everlog.core import program as p
from everlog.core.codegen.code_lines import comment
from everlog.core.evaluate.best_first import Settling, forms_of, offering, only_adds
from everlog.core.evaluate.choice_domains import Chooser
from everlog.core.evaluate.counted_rows import counted
from everlog.core.evaluate.counters import Counting
from everlog.core.evaluate.flow import flow, flow_steps
from everlog.core.evaluate.growing_rounds import Growth
from everlog.core.evaluate.machines import machines, why_python
from everlog.core.evaluate.native_best import NativeMaps
from everlog.core.evaluate.native_rounds import NativeContext, NativeRounds
from everlog.core.evaluate.native_subsumed import NativeSubsumed
from everlog.core.evaluate.ordered import key_levels, key_steps
from everlog.core.evaluate.profile import RunProfile, UnitRuns
from everlog.core.evaluate.rounds import Collected, Rounds, RoundTask
from everlog.core.evaluate.run_relations import Relations
from everlog.core.evaluate.shown_plans import ShownPlan, plan_of_estimates
from everlog.core.evaluate.subsume import dominances
from everlog.core.evaluate.value_columns import shapes_of
from everlog.core.evaluate.watched_rule import WatchedRule, is_watched
from everlog.core.ir.compile import Compiled, Run, compile_late, compile_rule
from everlog.core.ir.printer import Access
from everlog.core.ir.set_operations import SetPlan
from everlog.core.ir.uses import Action, Meter, Use
from everlog.core.native.availability import NotAWord, Undefined, why_not
from everlog.core.native.words import is_words
from everlog.core.program import Program, Row, Rule, Value
from everlog.core.program.aggregates.best_values import BestMap, only_maps
from everlog.core.program.aggregates.growing import GrowingUnit, as_joined_maps, growing_unit
from everlog.core.program.carried import Steps
from everlog.core.program.dependencies import Unit, units
from everlog.core.program.values import EvaluationError
from everlog.core.runtime.collector import collector_paused
from everlog.core.runtime.guards import Guard, Limits
from everlog.core.storage.equivalence import Equivalence
from everlog.core.storage.shape import Facts, Key, Shape
from everlog.core.storage.shared_values import SharedTable
from everlog.core.storage.table_shapes import shape_of
from everlog.core.storage.table_statistics import Guess, Sampled, Statistics, Thorough
from everlog.core.storage.tables import Table, TableOf

Progress = Callable[[str, int, int], None]
_MANY = 10_000  # facts between two checks of the limits
_WORTH_WORDS = 10_000  # facts that a unit reads: for fewer, planning takes as long as Python's sets
_KEY = 1e-6  # seconds per key of an index, before any measurement


@define
class Evaluation:
    """The relations of a program after a run."""

    program: Program
    relations: Relations

    @property
    def tables(self) -> dict[str, Table]:
        """Every relation as a table."""
        return self.relations.all_tables()

    def size(self, relation: str) -> int:
        return self.relations.size(relation)

    def rows(self, relation: str) -> Iterable[Row]:
        """The facts of a relation in sorted order."""
        return self.relations.sorted_rows(relation)

    def relation(self, name: str) -> frozenset[Row]:
        return frozenset(self.relations.rows(name))


def evaluate(
    program: Program,
    inputs: Mapping[str, Iterable[Row]] | None = None,
    progress: Progress | None = None,
    limits: Limits | None = None,
    profile: RunProfile | None = None,
    jobs: int = 1,
) -> Evaluation:
    """Every relation of a program, from its own facts and `inputs`.

    `progress` gets each round: the unit's relations, the round, the number of new facts.  Exceeding
    `limits` raises `LimitExceeded`.  `profile` records time and facts of units, rounds and rules.
    The compiled machine uses as many threads as `jobs` says.

    >>> from everlog.dsl.check import compile_text
    >>> program = compile_text('''
    ...   .decl edge(x:number, y:number)  .decl path(x:number, y:number)
    ...   edge(1, 2).  edge(2, 3).
    ...   path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z).''')
    >>> list(evaluate(program).rows("path"))
    [(1, 2), (1, 3), (2, 3)]
    """
    base = _base_facts(program, inputs or {})
    with collector_paused(), Guard(limits or Limits()) as guard:
        shapes = shapes_of(program, units(program))
        order = list(machines(program, shapes))
        try:
            return _evaluated(program, shapes, base, order, guard, progress, profile, jobs)
        except NotAWord:  # values of other types than the columns': sets hold anything
            guard.facts = 0
            order = [(unit, "a value is not of its column's type") for unit, _ in order]
            return _evaluated(program, shapes, base, order, guard, progress, profile, jobs)


def _base_facts(program: Program, inputs: Mapping[str, Iterable[Row]]) -> dict[str, Iterable[Row]]:
    base: dict[str, Iterable[Row]] = {}
    for name in program.relations:
        given, own = inputs.get(name, ()), program.facts.get(name, ())
        is_ready = is_words(given) or isinstance(given, Collection)
        base[name] = given if is_ready and not own else [*own, *given]
    return base


def _evaluated(
    program: Program,
    shapes: Mapping[str, Shape],
    base: Mapping[str, Iterable[Row]],
    order: Iterable[tuple[Unit, str]],
    guard: Guard,
    progress: Progress | None,
    profile: RunProfile | None,
    jobs: int,
) -> Evaluation:
    context = Context(program, dict(shapes), {}, guard, progress)
    context.shares = True
    relations = Relations(program, context.shapes, base)
    relations.begin, context.tables = context.loaded, relations.tables
    order = list(order)
    waiting = _readers(unit for unit, _ in order)
    for unit, reason in order:
        joins = any(program.relations[name].lattices for name in unit.relations)
        if not (unit.rules or unit.recursive or unit.subsumptions or joins):
            continue
        if reason or not _run_natively(context, unit, relations, profile, jobs):
            with _recorded(profile, unit, reason or "a functor has no value") as runs:
                UnitRun(context, unit, runs).run()
            if runs is not None:
                context.tell_plans(unit, runs)
        relations.seal(name for name in {*unit.reads, *unit.relations} if waiting[name] is unit)
    return Evaluation(program, relations)


def _readers(order: Iterable[Unit]) -> dict[str, Unit]:
    """The last unit that reads each relation, or makes it."""
    return {name: unit for unit in order for name in (*unit.relations, *unit.reads)}


def _recorded(profile: RunProfile | None, unit: Unit, machine: str) -> AbstractContextManager[UnitRuns | None]:
    return nullcontext() if profile is None else profile.unit(unit, machine)


def _run_natively(
    context: Context, unit: Unit, relations: Relations, profile: RunProfile | None, jobs: int
) -> bool:
    """Run a unit on the compiled machine; False if a functor has no value: Python must run it."""
    facts, number = context.guard.facts, context.counting.next
    try:
        with _recorded(profile, unit, "") as runs:
            rounds = _native_rounds(context, unit, relations, jobs)
            rounds.profile = runs
            rounds.run()
    except Undefined:
        context.guard.facts = facts
        context.counting.restart(number)
        relations.forget(unit.relations)
        return False
    return True


def _native_rounds(context: Context, unit: Unit, relations: Relations, jobs: int) -> NativeRounds:
    program = context.program
    given = NativeContext(program, relations, context.counting, context.guard, context.progress, jobs)
    if not unit.subsumptions:
        return NativeRounds(given, unit)
    maps = only_maps(program, unit)
    if isinstance(maps, dict):
        return NativeMaps(given, unit, maps)
    return NativeSubsumed(given, unit, dominances(unit.subsumptions))


def explain_code(program: Program, only: str | None = None) -> str:
    """The Python code of a program's rules, or of those of one relation or name."""
    run = without_facts(program)
    parts = []
    for unit in units(program):
        for rule in unit.rules:
            if only is not None and only not in (rule.name, rule.head.relation):
                continue
            if p.draws_numbers(rule):
                parts.append(f"{comment(str(rule))}\n# is not compiled: it numbers its facts in sorted order")
            else:
                parts += [compiled.source for compiled in run.versions(rule, unit)]
    return "\n\n".join(parts)


def without_facts(program: Program) -> Context:
    """A run over the facts in the program's text alone, to show the code of its rules."""
    run = Context(program, dict(shapes_of(program, units(program))), {}, Guard(Limits()), None)
    run.sampled = Sampled(growing=True)
    run.load_all({})
    return run


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

    def run(self, unit: Unit, base: Mapping[str, Collection[Row]]) -> dict[str, Table]:
        """The relations of a unit, in new tables, from base facts and the tables it reads."""
        found = self._natively_run(unit, base)
        if found is not None:
            return found
        for name in unit.relations:
            self.load(name, base[name])
        UnitRun(self, unit).run()
        return {name: self.tables[name] for name in unit.relations}

    def _natively_run(self, unit: Unit, base: Mapping[str, Collection[Row]]) -> dict[str, Table] | None:
        """The same on the compiled machine, where that is worth making words of the facts."""
        read = {name: self.tables[name] for name in unit.reads.difference(unit.relations)}
        facts = sum(map(len, read.values())) + sum(len(base[name]) for name in unit.relations)
        shared = {name for name, table in read.items() if isinstance(table, Equivalence | SharedTable)}
        if facts < _WORTH_WORDS or why_not() or why_python(self.program, unit, self.shapes, shared):
            return None
        relations = Relations(self.program, self.shapes, base)
        relations.begin = self.loaded
        relations.tables.update(read)
        before = self.guard.facts
        try:
            if not _run_natively(self, unit, relations, None, 1):
                return None
        except NotAWord:
            self.guard.facts = before
            return None
        return {name: relations.tables[name] for name in unit.relations}

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

    def task(self, rule: Rule, delta: int | None, unit: Unit) -> _Task:
        """A compiled rule on the indexes it asks for."""
        early: Run
        if is_watched(rule) and not rule.order_of(delta):
            early, only_new = self._watched(rule, delta, unit), False
        else:
            compiled = self.compiled(rule, delta, unit)
            early, only_new = self._bound(compiled), compiled.only_new
        if delta is None:
            return _Task(rule, None, early, only_new)
        atom = rule.body[delta]
        assert isinstance(atom, p.Atom)
        if (id(rule), delta) not in self.late:
            known = self._statistics(rule, unit)
            functors, settled = self.program.functors, self._is_settled(rule)
            self.late[id(rule), delta] = compile_late(
                rule, delta, self.shapes, known, functors, Use(known=settled)
            )
        other = self.late[id(rule), delta]
        if other is None or other.driver is None:
            return _Task(rule, atom.relation, early, only_new)
        either = _EitherWay(early, self._bound(other), self.index(other.accesses[other.driver]))
        return _Task(rule, atom.relation, either, only_new and other.only_new)

    def _watched(self, rule: Rule, delta: int | None, unit: Unit) -> WatchedRule:
        """A rule that is planned anew when it does far more than was expected."""
        found = self.watched.get((id(rule), delta))
        if found is not None:
            return found[1]
        functors, settled = self.program.functors, self._is_settled(rule)

        def compile_(meter: Meter, thorough: bool) -> Compiled:
            known = self._thorough_statistics(rule) if thorough else self._statistics(rule, unit)
            return compile_rule(rule, delta, self.shapes, known, functors, Use(known=settled, meter=meter))

        source = None if delta is None else rule.body[delta]
        shape = self.shapes[source.relation if isinstance(source, p.Atom) else rule.head.relation]
        made = WatchedRule(compile_, self._bound, shape.size_of)
        self.watched[id(rule), delta] = rule, made
        return made

    def _thorough_statistics(self, rule: Rule) -> dict[str, Statistics]:
        """Statistics of the relations that a rule reads, as they are now."""
        names = {atom.relation for atom, _ in p.atoms_of(rule.body)}
        found = ((name, self.tables[name].statistics()) for name in names)
        return {name: Thorough.of(known) for name, known in found if known is not None}

    def offers(self, rule: Rule, delta: int | None, maps: Mapping[str, BestMap], unit: Unit) -> _Task:
        """A rule that offers values to a map."""
        known = maps[rule.head.relation]
        use = Use(Action.LEAST if known.op == "min" else Action.GREATEST)
        statistics, functors = self._statistics(rule, unit), self.program.functors
        made = offering(rule, known)
        compiled = compile_rule(made, delta, self.shapes, statistics, functors, use, sets=False)
        atom = None if delta is None else rule.body[delta]
        source = atom.relation if isinstance(atom, p.Atom) else None
        return _Task(rule, source, self._bound(compiled), only_new=False)

    def deriving(self, rule: Rule, delta: int | None, unit: Unit) -> _Task:
        """A rule that derives a set of rows."""
        statistics, functors = self._statistics(rule, unit), self.program.functors
        compiled = compile_rule(rule, delta, self.shapes, statistics, functors, Use(Action.ROWS), sets=False)
        atom = None if delta is None else rule.body[delta]
        source = atom.relation if isinstance(atom, p.Atom) else None
        return _Task(rule, source, self._bound(compiled), only_new=False)

    def direct(self, rule: Rule, delta: int, unit: Unit) -> _Task | None:
        """A rule that runs key by key and adds to its relation; None if it cannot."""
        compiled = self.compiled(rule, delta, unit)
        if not compiled.from_delta:
            return None
        return _Task(rule, rule.head.relation, self._bound(compiled), only_new=False)

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


class _EitherWay:
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
class _Task:
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


class UnitRun(Rounds):
    """One unit, from the relations it reads: rounds until nothing is new."""

    def __init__(self, run: Context, unit: Unit, profile: UnitRuns | None = None) -> None:
        invents = any(p.invents(rule) for rule in unit.rules)
        limited = any(name in run.program.limits for name in unit.relations)
        super().__init__(", ".join(unit.relations), run.shapes, run.guard, invents and not limited)
        self.context, self.unit, self.profile = run, unit, profile
        self.growing = growing_unit(run.program, unit) or as_joined_maps(run.program, unit)
        self.tables = run.tables
        self.steps = flow_steps(run.program, unit, run.shapes) if run.shares else None
        self.once: list[_Task] = []
        self.recursive: list[tuple[Rule, int]] = []  # with the atom to be read as Δ
        for rule in () if self.growing else unit.rules:
            positions = unit.positions(rule) if unit.recursive else []
            self.recursive += [(rule, position) for position in positions]
            if p.draws_numbers(rule):
                self.once.append(_Task(rule, None, self._numbered(rule), only_new=False))
            elif not positions:
                self.once.append(run.task(rule, None, unit))
        self.dominance = dominances(unit.subsumptions)
        self.mixed: set[str] = set()  # relations whose derived facts may not all be new
        self.candidates: list[tuple[Rule, Facts]] = []  # for relations with choice domains, by rule

    @cached_property
    def each(self) -> list[_Task]:
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
        forward: dict[str, list[tuple[str, _Task]]] = {name: [] for name in maps}
        whole: list[_Task] = []
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
        once: list[_Task] = []
        forward: list[tuple[str, str, _Task]] = []
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
        assert isinstance(task, _Task)
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
