"""The strategy of each unit on Spark, and why; refuses what cannot run there.

| way          | serves                                 | what happens                             |
|--------------|----------------------------------------|------------------------------------------|
| `given`      | no rules                               | the input                                |
| `plan`       | rules that are not recursive           | one DataFrame plan, optimized as a whole |
| `decomposed` | recursion that carries a column along  | the whole fixpoint inside each task      |
| `iterated`   | any other recursion                    | semi-naive rounds, one job per relation  |
| `in process` | what depends on one order of all facts | computed in the driver, through Arrow    |

A program with recursion is evaluated in process if all its inputs turn out to be small, and a
recursive unit if its own are: this is decided, and reported, when it runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from attrs import evolve, field, frozen

from everlog.core import program as p
from everlog.core.program import Atom, Program, Rule, Variable
from everlog.core.program.aggregates.best_values import only_maps
from everlog.core.program.aggregates.growing import grows_through
from everlog.core.program.carried import carried_from
from everlog.core.program.dependencies import Unit, units
from everlog.spark_backend.best_rounds import why_not_grouped
from everlog.spark_backend.cyclic.cyclic_joins import CyclicJoin, cyclic_join
from everlog.spark_backend.frames.expressions import NotOnSpark, refuse
from everlog.spark_backend.in_process import program_of
from everlog.spark_backend.settings import DEFAULT, Settings

GIVEN, PLAN, DECOMPOSED, ITERATED, IN_PROCESS = "given", "plan", "decomposed", "iterated", "in process"

_CUBE = "; a cyclic join, inside the tasks where many rows would lie between two joins"


@frozen
class Planned:
    """A unit with its strategy; a decomposed one has carried columns."""

    unit: Unit
    way: str
    why: str
    carried: Mapping[str, int] = field(factory=dict)

    @property
    def name(self) -> str:
        return ", ".join(self.unit.relations)

    @property
    def reads(self) -> tuple[str, ...]:
        """The relations of other units that this one reads."""
        bodies = [rule.body for rule in self.unit.rules] + [s.body for s in self.unit.subsumptions]
        found = dict.fromkeys(atom.relation for body in bodies for atom, _ in p.atoms_of(body))
        return tuple(name for name in found if name not in self.unit.relations)


@frozen
class SparkPlan:
    """A program with the ways of its units, in order, and the rules that are cyclic joins.  A run
    makes one, and every evaluation in it uses that.
    """

    program: Program
    settings: Settings
    units: tuple[Planned, ...]
    cyclic: Mapping[Rule, CyclicJoin]

    def needed(self, wanted: Collection[str] | None) -> tuple[Planned, ...]:
        """The units that these relations need (None: all)."""
        if wanted is None:
            return self.units
        needed = set(wanted)
        kept = []
        for one in reversed(self.units):
            if needed.intersection(one.unit.relations):
                kept.append(one)
                needed.update(one.reads)
        return tuple(reversed(kept))

    def of(self, planned: Sequence[Planned]) -> Program:
        """The program of some units, as written; its facts come with an evaluation."""
        written = set(map(id, self.program.rules))  # without those that spell out an equivalence
        rules = tuple(rule for one in planned for rule in one.unit.rules if id(rule) in written)
        dominance = tuple(s for one in planned for s in one.unit.subsumptions)
        return evolve(self.program, rules=rules, subsumptions=dominance, facts={}, inputs=())

    def alone(self, one: Planned) -> SparkPlan:
        """The plan of one unit: what it reads is given."""
        written = set(map(id, self.program.rules))  # without those that spell out an equivalence
        program = program_of(self.program, one.unit, [rule for rule in one.unit.rules if id(rule) in written])
        given = [Planned(Unit((name,), (), False, ()), GIVEN, "read") for name in one.reads]
        return SparkPlan(program, self.settings, (*given, one), self.cyclic)

    def without_facts(self) -> SparkPlan:
        """The same plan for a program whose facts come with each evaluation."""
        return evolve(self, program=evolve(self.program, facts={}))


def plan(program: Program, settings: Settings = DEFAULT) -> SparkPlan:
    """How each unit of a program runs.  NotOnSpark if the program has what cannot."""
    _refuse(program)
    cyclic = {rule: join for rule in program.rules if (join := cyclic_join(rule)) is not None}
    planned = tuple(_planned(program, unit, settings, cyclic) for unit in units(program))
    return SparkPlan(program, settings, planned, cyclic)


def explain(program: Program, settings: Settings = DEFAULT) -> str:
    """The strategy of each unit on Spark, one per line."""
    lines = []
    for one in plan(program, settings).units:
        small = one.way in (DECOMPOSED, ITERATED) and settings.recursion == "auto"
        also = f"; in process if it reads at most {settings.small} rows" if small else ""
        lines.append(f"{one.name}: {one.way} ({one.why}{also})")
    return "\n".join(lines)


def _refuse(program: Program) -> None:
    for rule in program.rules:
        for call in p.calls_of(rule):
            refuse(call, program, f"in the rule  {rule.written}  at {rule.origin}")
    for subsumption in program.subsumptions:
        for call in p.calls_of(Rule(subsumption.dominated, subsumption.body)):
            refuse(call, program, f"in  {subsumption}  at {subsumption.origin}")
    read = {
        atom.relation: f"in the rule  {r.written}  at {r.origin}"
        for r in program.rules
        for atom, _ in p.atoms_of(r.body)
    }
    read |= {directive.relation: "an output" for directive in (*program.outputs, *program.printsizes)}
    for name, where in read.items():
        if program.relations[name].auxiliary_of:
            raise NotOnSpark(
                f"`{name}` is kept by a system of auxiliary relations, which runs in process ({where})"
            )


def _planned(program: Program, unit: Unit, settings: Settings, cyclic: Collection[Rule]) -> Planned:
    relations = [program.relations[name] for name in unit.relations]
    if any(relation.choices for relation in relations):
        return Planned(unit, IN_PROCESS, "a choice domain admits facts in one order")
    if unit.subsumptions:
        return _with_subsumptions(program, unit, settings)
    if any(relation.lattices for relation in relations):
        return Planned(unit, IN_PROCESS, "the values of lattices are joined")
    if any(True for _ in grows_through(unit)):
        return Planned(unit, IN_PROCESS, "its recursion goes through running totals")
    if not unit.recursive:
        if not unit.rules:
            return Planned(unit, GIVEN, "no rules")
        in_tasks = settings.cyclic != "plan" and any(rule in cyclic for rule in unit.rules)
        return Planned(unit, PLAN, f"not recursive{_CUBE if in_tasks else ''}")
    if any(name in program.limits for name in unit.relations):
        return Planned(unit, IN_PROCESS, "`.limitsize` stops between two rounds")
    if settings.recursion == IN_PROCESS:
        return Planned(unit, IN_PROCESS, "as was asked")
    carried = carried_columns(unit)
    if any(relation.equivalence for relation in relations):
        return Planned(evolve(unit, rules=(*unit.rules, *_closing(program, unit))), ITERATED, "an equivalence")
    if carried is not None and settings.recursion != ITERATED:
        columns = ", ".join(f"{name} carries column {column + 1}" for name, column in carried.items())
        return Planned(unit, DECOMPOSED, columns, carried)
    if carried is not None:
        return Planned(unit, ITERATED, "as was asked")
    return Planned(unit, ITERATED, "no column is carried along by every recursive atom")


def _with_subsumptions(program: Program, unit: Unit, settings: Settings) -> Planned:
    maps = only_maps(program, unit)
    if isinstance(maps, str):
        return Planned(unit, IN_PROCESS, maps)
    why = "as was asked" if settings.recursion == IN_PROCESS else why_not_grouped(program, maps)
    if why:
        return Planned(unit, IN_PROCESS, why)
    return Planned(unit, ITERATED, "the best value of each key, by grouping")


def _closing(program: Program, unit: Unit) -> Iterator[Rule]:
    """The rules that make a relation an equivalence."""
    x, y, z = Variable("x"), Variable("y"), Variable("z")
    for name in unit.relations:
        if program.relations[name].equivalence:
            yield Rule(Atom(name, (x, x)), (Atom(name, (x, y)),), f"{name} is reflexive")
            yield Rule(Atom(name, (y, x)), (Atom(name, (x, y)),), f"{name} is symmetric")
            yield Rule(Atom(name, (x, z)), (Atom(name, (x, y)), Atom(name, (y, z))), f"{name} is transitive")


def carried_columns(unit: Unit) -> dict[str, int] | None:
    """For each relation a column that recursive rules pass on unchanged, or None.

    Facts with different values there are independent, so the unit splits into many fixpoints.

    Cost: one test for each choice of a column per relation, at most 4096.
    """
    recursive = [(rule, unit.positions(rule)) for rule in unit.rules if unit.positions(rule)]
    arities = {rule.head.relation: len(rule.head.args) for rule in unit.rules}
    if any(arities.get(name, 0) == 0 for name in unit.relations) or prod(arities.values()) > 4096:
        return None
    for columns in product(*(range(arities[name]) for name in unit.relations)):
        chosen = dict(zip(unit.relations, columns, strict=True))
        if all(_carries(rule, places, chosen) for rule, places in recursive):
            return chosen
    return None


def _carries(rule: Rule, places: list[int], chosen: Mapping[str, int]) -> bool:
    """Whether every atom of the unit in a rule has the chosen column of the head in its own."""
    found = carried_from(rule, chosen[rule.head.relation], chosen)
    return all(any(atom is rule.body[n] and at == chosen[atom.relation] for atom, at in found) for n in places)
