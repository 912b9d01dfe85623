"""Whole-program evaluation: unit by unit, each on the machine that suits it.

`machines` says which machine runs a unit.  Python runs it as a `UnitRun`, the compiled machine as
one of the classes in `core/evaluate/native/`.  A unit begins when the relations that it reads are
complete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

from attrs import define

from everlog.core import program as p
from everlog.core.codegen.code_lines import comment
from everlog.core.evaluate.machines import machines, why_python
from everlog.core.evaluate.native.best_maps import NativeMaps
from everlog.core.evaluate.native.subsumption import NativeSubsumed
from everlog.core.evaluate.native.unit_rounds import NativeContext, NativeRounds
from everlog.core.evaluate.reports.profile import RunProfile, UnitRuns
from everlog.core.evaluate.run_context import Context
from everlog.core.evaluate.run_relations import Relations
from everlog.core.evaluate.subsume import dominances
from everlog.core.evaluate.unit_run import UnitRun
from everlog.core.evaluate.value_columns import shapes_of
from everlog.core.native.availability import NotAWord, Undefined, why_not
from everlog.core.native.words import is_words
from everlog.core.program import Program, Row
from everlog.core.program.aggregates.best_values import only_maps
from everlog.core.program.dependencies import Unit, units
from everlog.core.runtime.collector import collector_paused
from everlog.core.runtime.guards import Guard, Limits, Progress
from everlog.core.storage.equivalence import Equivalence
from everlog.core.storage.shape import Shape
from everlog.core.storage.shared_values import SharedTable
from everlog.core.storage.table_statistics import Sampled
from everlog.core.storage.tables import Table

_WORTH_WORDS = 10_000  # facts that a unit reads: for fewer, planning takes as long as Python's sets


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


def run_unit(context: Context, unit: Unit, base: Mapping[str, Collection[Row]]) -> dict[str, Table]:
    """The relations of a unit, in new tables, from base facts and the tables it reads."""
    found = _run_unit_natively(context, unit, base)
    if found is not None:
        return found
    for name in unit.relations:
        context.load(name, base[name])
    UnitRun(context, unit).run()
    return {name: context.tables[name] for name in unit.relations}


def _run_unit_natively(
    context: Context, unit: Unit, base: Mapping[str, Collection[Row]]
) -> dict[str, Table] | None:
    """The same on the compiled machine; None where it cannot, or where words do not pay."""
    program, shapes = context.program, context.shapes
    read = {name: context.tables[name] for name in unit.reads.difference(unit.relations)}
    facts = sum(map(len, read.values())) + sum(len(base[name]) for name in unit.relations)
    shared = {name for name, table in read.items() if isinstance(table, Equivalence | SharedTable)}
    if facts < _WORTH_WORDS or why_not() or why_python(program, unit, shapes, shared):
        return None
    relations = Relations(program, shapes, base)
    relations.begin = context.loaded
    relations.tables.update(read)
    before = context.guard.facts
    try:
        if not _run_natively(context, unit, relations, None, 1):
            return None
    except NotAWord:
        context.guard.facts = before
        return None
    return {name: relations.tables[name] for name in unit.relations}
