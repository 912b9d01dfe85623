"""Which strategy maintains which unit, why, and the rules that it runs.

A *unit* is a strongly connected component of the predicate graph.  The rules of a unit decide its
strategy; a user may ask for another one that fits.  If no incremental strategy fits, the unit is
recomputed when something that it reads has changed, and the plan says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import evolve, field, frozen

from everlog.core import program as p
from everlog.core.classify.query import query_of
from everlog.core.engine.planning.demand_parts import (
    DEMAND,
    Demands,
    asked_values,
    in_parts,
    with_answers,
)
from everlog.core.engine.planning.flow_rules import Flow, NoFlow, classes_of, flow_of
from everlog.core.engine.planning.kept_parts import reading_kept
from everlog.core.engine.planning.normal import Group, NeedsItself, Normaliser
from everlog.core.engine.planning.ranked_rules import why_not_ranked
from everlog.core.engine.planning.systems import Fit, NoSuchStrategy, systems, with_auxiliaries
from everlog.core.engine.planning.view_rules import VIEW, how_read, named_wildcards
from everlog.core.evaluate.value_columns import shapes_of
from everlog.core.joins.join_strategies import AUTO, DELTA, JOINS
from everlog.core.joins.strategy_choice import (
    JoinChoice,
    Wanted,
    choose,
    growing_relations,
    refusal_of,
    wanted,
)
from everlog.core.program import Program
from everlog.core.program.aggregates.best_values import best_map, only_maps
from everlog.core.program.aggregates.growing import GrowingUnit, as_joined_maps, growing_unit
from everlog.core.program.containment import Covering
from everlog.core.program.dependencies import Unit, units
from everlog.core.program.live_demand import LiveDemand
from everlog.core.storage.shape import Shape
from everlog.core.storage.table_shapes import PairShape, shape_of

GIVEN, COUNTS, GROUPS, RECOMPUTE = "given", "counts", "groups", "recompute"
FLOW, BEST, CLASSES = "flow", "best", "classes"
ORDERED, GROWING = "ordered", "growing"
RANKED, RANKED_PYTHON = "ranked", "ranked_python"  # on the compiled machine, and in Python
RECURSIVE = (FLOW, RANKED, RANKED_PYTHON, RECOMPUTE)  # a user may ask for these, or systems, for recursion
ALL = tuple(dict.fromkeys((*JOINS, *RECURSIVE, DEMAND)))
VIEWS = tuple(name for name in JOINS if name not in (DELTA, RECOMPUTE, AUTO))  # with a view at once
_SYSTEMS = "and the systems of `everlog ies list`"
MOST_ATOMS = 48  # in one body with delta rules


@frozen
class PlannedUnit:
    """A unit and its strategy.  Rules are in normal form unless it is `recompute`."""

    unit: Unit
    strategy: str
    why: str
    group: Group | None = None
    joins: Mapping[str, JoinChoice] = field(factory=dict)  # of the rules of a counted unit
    fit: Fit | None = field(default=None, eq=False)  # of a unit that a system keeps
    growing: GrowingUnit | None = None

    @property
    def name(self) -> str:
        return ", ".join(self.unit.relations)


@frozen
class Plan:
    """Units in the order of their turns, each after those it reads.

    `program` has the auxiliary relations and the rules in normal form; `written` maps the name of a
    rule to the rule as it was checked, or as a part of a relation on demand has it.  `coverings`
    has, for a rule that reads relations instead of parts of its body, what it reads and why it may.
    """

    program: Program
    units: tuple[PlannedUnit, ...]
    shapes: Mapping[str, Shape]
    written: Mapping[str, p.Rule]
    demand: LiveDemand | None = None  # where some relations are on demand
    given: Mapping[str, tuple[p.Row, ...]] = field(factory=dict)  # what is asked for of their parts
    coverings: Mapping[str, tuple[Covering, ...]] = field(factory=dict)

    @property
    def read_instead(self) -> frozenset[str]:
        """The relations that rules read instead of parts of their bodies."""
        return frozenset(each.by.relation for found in self.coverings.values() for each in found)

    @property
    def failing(self) -> frozenset[str]:
        """The groups whose value may be a failure."""
        groups = [planned.group for planned in self.units if planned.group is not None]
        return frozenset(group.name for group in groups if group.may_fail)

    def __str__(self) -> str:
        lines = []
        for planned in self.units:
            lines.append(f"{planned.name}: {planned.strategy} ({planned.why})")
            lines += [f"  {rule.name}  {rule}" for rule in planned.unit.rules]
        return "\n".join(lines)


def make_plan(
    program: Program,
    asked: Mapping[str, str] | None = None,
    demands: Demands | None = None,
    own: Collection[str] = (),
) -> Plan:
    """The plan of a checked program.

    `asked` names strategies for relations, for rules (`path#2`), or for all that fit (`*`); it
    overrides the program's text.  `demands` has what is asked for of relations on demand, `own`
    the derived relations that have facts of their own.  Raises NoSuchStrategy if a strategy does
    not fit.
    """
    plan, refused = _made(program, dict(asked or {}), demands or {}, own)
    if refused:
        message, hint = next(iter(refused.values()))
        raise NoSuchStrategy(f"{message} ({hint})" if hint else message)
    return plan


def refusals(program: Program) -> dict[str, tuple[str, str]]:
    """The rules whose `.strategy` does not fit: what is wrong, and a hint."""
    return _made(program, {}, {}, ())[1]


def _made(
    program: Program, asked: dict[str, str], demands: Demands, own_facts: Collection[str]
) -> tuple[Plan, dict[str, tuple[str, str]]]:
    reading = reading_kept(with_auxiliaries(_named(program), asked), asked, own_facts)
    program, asked, demand = in_parts(reading.program, asked, demands)
    wishes = Wishes(program, asked)
    normaliser = Normaliser(program)
    chosen: dict[str, tuple[str, str]] = {}
    fits: dict[str, Fit] = {}
    growing: dict[str, tuple[GrowingUnit, str]] = {}
    pairs: dict[str, PairShape] = {}  # of relations through which sets flow: their values are carried
    rules: list[p.Rule] = []
    computed, joined = with_answers(units(program), demand, asked)
    for unit in computed:
        strategy, why, own, fit = _planned(program, unit, normaliser, wishes)
        if strategy == RANKED:
            shared = {name for name, (kept, _) in chosen.items() if kept in (FLOW, CLASSES)}
            reason = why_not_ranked(program, own, shared)
            if reason:
                strategy, why = RANKED_PYTHON, f"{why}; {reason}"
        if isinstance(fit, Flow):
            normaliser.relations.update(fit.relations)
            normaliser.rules += fit.added
            pairs[unit.relations[0]], own = PairShape(fit.value), list(fit.rules)
        elif isinstance(fit, Fit):
            fits.update(dict.fromkeys(unit.relations, fit))
        rules += own
        chosen.update(dict.fromkeys(unit.relations, (strategy, why)))
        if isinstance(fit, GrowingUnit):
            growing |= dict.fromkeys((*unit.relations, *fit.relations), (fit, why))
            rules += fit.links
    chosen |= _of_made(normaliser)
    normal = evolve(
        program,
        relations={**program.relations, **normaliser.relations, **_added(growing)},
        rules=(*rules, *normaliser.rules),
        facts={},
    )
    chosen |= {name: (GROWING, why) for name, (_, why) in growing.items()}
    ordered = with_answers(units(normal), demand, asked, joined)[0]
    insert_only = growing_relations(normal)
    planned = []
    for unit in ordered:
        strategy, why = chosen[unit.relations[0]]
        kept, fit = normaliser.groups.get(unit.relations[0]), fits.get(unit.relations[0])
        joins = {}
        if strategy in (COUNTS, GROUPS):
            for r in unit.rules:
                choice = wishes.join(r, normal, insert_only, wanted_of(r, kept))
                joins[r.name] = looking_up(r, choice, normaliser.groups)
        elif strategy == VIEW:
            joins = {rule.name: how_read(rule, normal) for rule in unit.rules}
        grown = growing[unit.relations[0]][0] if unit.relations[0] in growing else None
        planned.append(PlannedUnit(unit, strategy, why, kept, joins, fit, grown))
    groups = {name: shape_of(normaliser.relations[name].arity, 1) for name in normaliser.groups}
    shapes = {**shapes_of(normal, ordered), **groups, **pairs}
    written = {rule.name: reading.written.get(rule.name, rule) for rule in program.rules}
    given = {} if demand is None else asked_values(demand, demands)
    return Plan(normal, tuple(planned), shapes, written, demand, given, reading.coverings), wishes.refused


def _of_made(normaliser: Normaliser) -> dict[str, tuple[str, str]]:
    """The strategies of the relations that the normaliser made, and why."""
    found = dict.fromkeys(normaliser.relations, (COUNTS, "auxiliary, not recursive"))
    for name, group in normaliser.groups.items():
        found[name] = GROUPS if group.ordered is None else ORDERED, f"of {group.written}"
    return found


def looking_up(rule: p.Rule, choice: JoinChoice, groups: Mapping[str, Group]) -> JoinChoice:
    """The choice for a join, told as what it is where best values are looked up beside it."""
    read = (x.body[0] for x in rule.body if isinstance(x, p.Aggregate))
    if not any(isinstance(x, p.Atom) and x.relation in groups and groups[x.relation].best for x in read):
        return choice
    if choice.strategy == DELTA and len(query_of(rule).atoms) < 2:
        return JoinChoice(DELTA, "the best value of the rest is looked up")
    return evolve(choice, why=f"{choice.why}; the best value of the rest is looked up")


def _added(growing: Mapping[str, tuple[GrowingUnit, str]]) -> dict[str, p.Relation]:
    """The relations of running totals and their contributions."""
    return {name: relation for unit, _ in growing.values() for name, relation in unit.relations.items()}


class Wishes:
    """The requested strategies, from the program's text or from outside.

    `refused` collects, by rule, those that do not fit; nothing falls back silently.
    """

    def __init__(self, program: Program, asked: dict[str, str]) -> None:
        self.refused: dict[str, tuple[str, str]] = {}
        self._asked = asked
        self._names = {rule.name for rule in program.rules}
        outputs = [directive.relation for directive in (*program.outputs, *program.printsizes)]
        self._read_by = dict.fromkeys(outputs, "an output")
        for rule in program.rules:
            self._read_by |= {atom.relation: rule.name for atom, _ in p.atoms_of(rule.body)}
        for name, strategy in asked.items():
            if strategy not in ALL and strategy not in systems():
                raise NoSuchStrategy(
                    f"no strategy `{strategy}` to ask for; there are {', '.join(ALL)}, {_SYSTEMS}"
                )
            if name != "*" and name not in program.relations and name not in self._names:
                what = "there is no such rule" if "#" in name else "which is not declared"
                raise NoSuchStrategy(f"a strategy for `{name}`, {what}")

    def _of(self, rule: p.Rule) -> str:
        return self._asked.get(rule.name) or self._asked.get(rule.head.relation) or rule.strategy

    def any_for(self, rule: p.Rule) -> bool:
        """Whether a strategy for joins was asked for: then the join stays as written."""
        return bool(self._of(rule) or self._asked.get("*"))

    def unit(self, unit: Unit) -> str:
        """The strategy requested for a unit as a whole."""
        found = ""
        for rule in unit.rules:
            wish = self._of(rule)
            if not wish:
                continue
            system = wish not in ALL and wish in systems()
            if wish not in ALL and not system:
                self.refused[rule.name] = (
                    f"there is no strategy `{wish}`",
                    f"there are {', '.join(ALL)}, {_SYSTEMS}",
                )
            elif unit.recursive and wish not in RECURSIVE and not system:
                message = f"`{wish}` cannot keep {rule.name}: it is recursive"
                self.refused[rule.name] = (
                    message,
                    f"recursive rules are kept by {', '.join(RECURSIVE)}, {_SYSTEMS}",
                )
            elif not unit.recursive and wish not in JOINS:
                message = f"`{wish}` cannot keep {rule.name}: it is not recursive"
                self.refused[rule.name] = message, f"such rules are kept by {', '.join(JOINS)}"
            elif found and found != wish and (unit.recursive or RECOMPUTE in (found, wish)):
                message = f"`{wish}` cannot keep {rule.name}: a rule that is computed with it asks for `{found}`"
                self.refused[rule.name] = message, "ask for one strategy"
            elif unit.recursive or wish == RECOMPUTE:
                found = wish
        star = self._asked.get("*", "")
        if not found and unit.recursive:
            found = star if star in RECURSIVE or star not in JOINS else ""
        return found

    def nothing_to_keep(self, unit: Unit) -> None:
        """Refuse a system for a relation without rules."""
        for name in unit.relations:
            wish = self._asked.get(name, "")
            if wish in systems():
                self.refused[name] = f"`{wish}` cannot keep `{name}`: no rule derives it", ""

    def fit(self, unit: Unit, program: Program, name: str, special: str) -> Fit | None:
        """How a requested system keeps a unit; records a refusal if it cannot."""
        base = [relation for relation in unit.relations if program.facts.get(relation)]
        found = special or systems()[name].fit(program, unit)
        if base:
            found = f"`{base[0]}` has facts of its own"
        if isinstance(found, Fit):
            return found
        rule = next((rule for rule in unit.rules if self._of(rule) == name), None)
        if rule is not None:  # else it was requested for all that fit
            self.refused[rule.name] = f"`{name}` cannot keep {', '.join(unit.relations)}: {found}", ""
        return None

    def no_flow(self, unit: Unit, why: str) -> None:
        """Record that no sets flow through a unit, if its author asked for that."""
        rule = next((rule for rule in unit.rules if self._of(rule) == FLOW), None)
        if rule is not None:
            self.refused[rule.name] = f"`{FLOW}` cannot keep {', '.join(unit.relations)}: {why}", ""

    def unkept(self, unit: Unit, program: Program, strategy: str) -> None:
        """Record reads of an auxiliary relation whose system does not keep the unit."""
        if any(rule.name in self.refused for rule in unit.rules):
            return
        kept: set[str] = set()
        if strategy in systems():
            kept = {
                a.name for name in unit.relations for a in systems()[strategy].auxiliaries(program.relations[name])
            }
        for name in unit.relations:
            owner = program.relations[name].auxiliary_of
            if owner and name not in kept and name in self._read_by:
                message = f"{self._read_by[name]} reads `{name}`, which would be empty: another system keeps it"
                hint = f"`{owner}` is kept by `{strategy or RANKED}`"
                self.refused[program.rules_of(owner)[-1].name] = message, hint

    def join(self, rule: p.Rule, program: Program, growing: frozenset[str], want: Wanted) -> JoinChoice:
        """The strategy for the join of a nonrecursive rule in normal form."""
        wish = self._of(rule) if rule.name in self._names else ""
        if wish in JOINS:
            refusal = refusal_of(rule, program, wish)
            if refusal:
                self.refused[rule.name] = f"`{wish}` cannot keep {rule.name}: {refusal}", ""
                wish = ""
            return choose(rule, program, growing, wish, want)
        star = self._asked.get("*", "")
        if star in JOINS and star != RECOMPUTE and len(query_of(rule).atoms) > 1:
            refusal = refusal_of(rule, program, star)
            if not refusal:
                return choose(rule, program, growing, star, want)
            return evolve(choose(rule, program, growing, want=want), why=f"`{star}` cannot: {refusal}")
        return choose(rule, program, growing, want=want)


def wanted_of(rule: p.Rule, group: Group | None) -> Wanted:
    """What a rule wants of its join, as a rule of a relation or of an aggregate."""
    return wanted(rule) if group is None else wanted(rule, group.op, group.target)


def _named(program: Program) -> Program:
    """The program with a unique name for every rule."""
    seen: dict[str, int] = {}
    rules = []
    for rule in program.rules:
        name = rule.name or rule.head.relation
        seen[name] = seen.get(name, 0) + 1
        unique = name if rule.name and seen[name] == 1 else f"{name}#{seen[name]}"
        rules.append(rule if rule.name == unique else evolve(rule, name=unique))
    return evolve(program, rules=tuple(rules))


def _planned(
    program: Program, unit: Unit, normaliser: Normaliser, wishes: Wishes
) -> tuple[str, str, list[p.Rule], Fit | Flow | GrowingUnit | None]:
    """The strategy of a unit and why, its rules in normal form, and what its keeper needs to know.

    The first strategy that fits is taken, in this order: `view`, `growing`, `given`, a system that
    was asked for, `classes`, `best`, `recompute`, `counts`, `flow`, `ranked`.
    """
    if program.relations[unit.relations[0]].view:
        return VIEW, "declared `.view`", [named_wildcards(rule) for rule in unit.rules], None
    special = special_reason(program, unit)
    grown = growing_unit(program, unit)
    if grown is not None:
        return _grown(unit, grown, special, normaliser, wishes)
    if not unit.rules and not special:
        wishes.nothing_to_keep(unit)
        return GIVEN, "no rule derives it", [], None
    asked = wishes.unit(unit)
    if asked not in (*RECURSIVE, *JOINS, ""):
        fit = wishes.fit(unit, program, asked, special)
        if fit is not None:
            wishes.unkept(unit, program, asked)
            return asked, "recursive, asked for", list(unit.rules), fit
        asked = ""
    wishes.unkept(unit, program, asked)
    own = frozenset(unit.relations)
    if special and asked != RECOMPUTE and follows_pairs(program, unit):
        rules = [normaliser.rule(rule, own) for rule in unit.rules]
        return CLASSES, special, rules, classes_of(program, unit, rules)
    best = ""
    if unit.subsumptions and asked != RECOMPUTE:
        best, special = _best_of(program, unit, special)
        maps = None if best else as_joined_maps(program, unit)
        if maps is not None:
            return _grown(unit, maps, "", normaliser, wishes)
    if special:
        return RECOMPUTE, special, list(unit.rules), None
    before = dict(normaliser.relations), list(normaliser.rules), dict(normaliser.groups)
    try:
        named = [named_wildcards(rule, own) for rule in unit.rules] if best else unit.rules
        rules = [normaliser.rule(rule, own) for rule in named]
    except NeedsItself as reason:
        normaliser.relations, normaliser.rules, normaliser.groups = before
        return RECOMPUTE, str(reason), list(unit.rules), None
    if asked == RECOMPUTE:
        normaliser.relations, normaliser.rules, normaliser.groups = before
        return RECOMPUTE, "asked for", list(unit.rules), None
    if best:
        return BEST, best, rules, None
    if not unit.recursive:
        rules = [rule if rule.orders or wishes.any_for(rule) else normaliser.existential(rule) for rule in rules]
        return COUNTS, "not recursive", rules, None
    if asked in ("", FLOW):
        try:
            flow = flow_of(program, unit, rules)
        except NoFlow as reason:
            wishes.no_flow(unit, str(reason))
            return RANKED, "recursive", rules, None
        return FLOW, f"recursive, column {flow.value + 1} is carried along", rules, flow
    return asked, "recursive, asked for", rules, None


def _grown(
    unit: Unit, grown: GrowingUnit, special: str, normaliser: Normaliser, wishes: Wishes
) -> tuple[str, str, list[p.Rule], GrowingUnit | None]:
    """A unit with running totals or joined values: kept as such, unless something forbids it."""
    if special or wishes.unit(unit) == RECOMPUTE:
        return RECOMPUTE, special or "asked for", list(unit.rules), None
    own = frozenset((*unit.relations, *grown.relations))
    before = dict(normaliser.relations), list(normaliser.rules), dict(normaliser.groups)
    try:
        rules = [normaliser.rule(named_wildcards(rule, own), own) for rule in grown.rules]
    except NeedsItself as reason:
        normaliser.relations, normaliser.rules, normaliser.groups = before
        return RECOMPUTE, str(reason), list(unit.rules), None
    return GROWING, grown.why, rules, evolve(grown, rules=tuple(rules))


def _best_of(program: Program, unit: Unit, special: str) -> tuple[str, str]:
    """Why a unit is kept as maps to a best value, and the reason against it: one is empty."""
    maps = only_maps(program, unit)
    if isinstance(maps, str):
        known = best_map(program, unit.subsumptions[0].dominated.relation)
        return "", special if known is None else f"{special}; {maps}"
    word = "least" if next(iter(maps.values())).op == "min" else "greatest"
    return f"a map to the {word} value of its column", ""


def follows_pairs(program: Program, unit: Unit) -> bool:
    """Whether a unit is an equivalence relation whose pairs do not depend on it."""
    if len(unit.relations) > 1 or unit.relations[0] in unit.reads:
        return False
    (name,) = unit.relations
    relation = program.relations[name]
    plain = evolve(program, relations={**program.relations, name: evolve(relation, equivalence=False)})
    return relation.equivalence and not special_reason(plain, unit)


def special_reason(program: Program, unit: Unit) -> str:
    """Why a unit cannot be maintained; empty if it can."""
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
        if p.draws_numbers(rule):
            return f"`autoinc()` in {rule.name} numbers facts in sorted order"
    return ""
