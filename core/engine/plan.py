"""Which strategy maintains which unit, why, and what the rules look like that it runs.

A *unit* is a strongly connected component of the predicate graph.  The strategy follows from what
the unit's rules need; a user may ask for another one where the table below allows it.  Where no
incremental strategy serves, the unit is computed again when something that it reads has changed,
and the plan says so.

Reads: core.dependencies, core.engine.normal, core.shapes.  Read by: core.engine.engine, explanations.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from everlog.core import program as p
from everlog.core.dependencies import Unit, units
from everlog.core.engine.normal import Group, NeedsItself, Normaliser
from everlog.core.program import Program
from everlog.core.shapes import shapes_of
from everlog.core.tables import Shape

GIVEN, COUNTS, GROUPS, WITNESS, RECOMPUTE = "given", "counts", "groups", "witness", "recompute"
DRED, DIFFERENTIAL = "dred", "differential"
STRATEGIES: Mapping[str, str] = {
    GIVEN: "facts that are given, and nothing else",
    COUNTS: "the number of derivations of each fact",
    GROUPS: "a running total or an ordered multiset for each group",
    WITNESS: "one well-founded witness for each fact",
    DRED: "delete all that a lost fact may have supported, then derive again",
    DIFFERENTIAL: "the number of derivations of each fact at each iteration",
    RECOMPUTE: "computed again when something that it reads has changed",
}
RECURSIVE = (WITNESS, DRED, DIFFERENTIAL, RECOMPUTE)  # what a user may ask for, of a recursive unit
MOST_ATOMS = 48  # in one body, for which delta rules are made


class NoSuchStrategy(ValueError):
    """A strategy was asked for that does not exist, or that cannot serve the relation."""


@frozen
class PlannedUnit:
    """A unit with its strategy.  `unit.rules` are in normal form unless the strategy is `recompute`."""

    unit: Unit
    strategy: str
    why: str
    group: Group | None = None

    @property
    def name(self) -> str:
        return ", ".join(self.unit.relations)


@frozen
class Plan:
    """Units in the order of their turns, what a unit reads before it.

    `program` has the auxiliary relations and the rules in normal form; `written` maps the name of a
    rule to the rule as it was checked.
    """

    program: Program
    units: tuple[PlannedUnit, ...]
    shapes: Mapping[str, Shape]
    written: Mapping[str, p.Rule]

    def __str__(self) -> str:
        lines = []
        for planned in self.units:
            lines.append(f"{planned.name}: {planned.strategy} ({planned.why})")
            lines += [f"  {rule.name}  {rule}" for rule in planned.unit.rules]
        return "\n".join(lines)


def make_plan(program: Program, asked: Mapping[str, str] | None = None) -> Plan:
    """The plan of a checked program; `asked` names other strategies for some relations (`*`: all recursive)."""
    wanted = dict(asked or {})
    _check_names(program, wanted)
    program = _named(program)
    normaliser = Normaliser(program)
    chosen: dict[str, tuple[str, str]] = {}
    rules: list[p.Rule] = []
    for unit in units(program):
        strategy, why, own = _planned(program, unit, normaliser, wanted)
        rules += own
        chosen.update(dict.fromkeys(unit.relations, (strategy, why)))
    for name in normaliser.relations:
        if name in normaliser.groups:
            chosen[name] = GROUPS, f"of {normaliser.groups[name].written}"
        else:
            chosen[name] = COUNTS, "auxiliary, not recursive"
    normal = evolve(
        program,
        relations={**program.relations, **normaliser.relations},
        rules=(*rules, *normaliser.rules),
        facts={},
    )
    ordered = units(normal)
    planned = tuple(
        PlannedUnit(unit, *chosen[unit.relations[0]], normaliser.groups.get(unit.relations[0])) for unit in ordered
    )
    shapes = dict(shapes_of(normal, ordered))
    shapes.update({name: Shape(normaliser.relations[name].arity, 1) for name in normaliser.groups})
    return Plan(normal, planned, shapes, {rule.name: rule for rule in program.rules})


def _named(program: Program) -> Program:
    """Every rule with a name of its own, also where a program was made without text."""
    seen: dict[str, int] = {}
    rules = []
    for rule in program.rules:
        name = rule.name or rule.head.relation
        seen[name] = seen.get(name, 0) + 1
        unique = name if rule.name and seen[name] == 1 else f"{name}#{seen[name]}"
        rules.append(rule if rule.name == unique else evolve(rule, name=unique))
    return evolve(program, rules=tuple(rules))


def _check_names(program: Program, wanted: Mapping[str, str]) -> None:
    for relation, strategy in wanted.items():
        if strategy not in RECURSIVE:
            raise NoSuchStrategy(f"no strategy `{strategy}` to ask for; there are {', '.join(RECURSIVE)}")
        if relation != "*" and relation not in program.relations:
            raise NoSuchStrategy(f"a strategy for `{relation}`, which is not declared")


def _planned(
    program: Program, unit: Unit, normaliser: Normaliser, wanted: Mapping[str, str]
) -> tuple[str, str, list[p.Rule]]:
    special = _special(program, unit)
    if special:
        return RECOMPUTE, special, list(unit.rules)
    if not unit.rules:
        return GIVEN, "no rule derives it", []
    own = frozenset(unit.relations)
    before = dict(normaliser.relations), list(normaliser.rules), dict(normaliser.groups)
    try:
        rules = [normaliser.rule(rule, own) for rule in unit.rules]
    except NeedsItself as reason:
        normaliser.relations, normaliser.rules, normaliser.groups = before
        return RECOMPUTE, str(reason), list(unit.rules)
    asked = next((wanted[name] for name in unit.relations if name in wanted), wanted.get("*", WITNESS))
    if asked == RECOMPUTE and any(name in wanted for name in unit.relations):
        normaliser.relations, normaliser.rules, normaliser.groups = before
        return RECOMPUTE, "asked for", list(unit.rules)
    if not unit.recursive:
        return COUNTS, "not recursive", rules
    if asked == RECOMPUTE:
        normaliser.relations, normaliser.rules, normaliser.groups = before
        return RECOMPUTE, "asked for", list(unit.rules)
    return asked, "recursive" if asked == WITNESS else "recursive, asked for", rules


def _special(program: Program, unit: Unit) -> str:
    """What keeps a unit from being maintained, or nothing."""
    for name in unit.relations:
        if program.relations[name].equivalence:
            return f"`{name}` is an equivalence relation"
        if program.relations[name].choices:
            return f"`{name}` has a choice domain"
        if name in program.limits:
            return f"`{name}` has a size limit"
    if unit.subsumptions:
        return f"facts of `{unit.subsumptions[0].dominated.relation}` subsume each other"
    for rule in unit.rules:
        if sum(1 for _ in p.atoms_of(rule.body)) > MOST_ATOMS:
            return f"{rule.name} has more than {MOST_ATOMS} atoms, each of which would need a rule of its own"
        if any(call.name == "autoinc" for call in p.calls_of(rule)):
            return f"`autoinc()` in {rule.name} numbers facts in sorted order"
    return ""
