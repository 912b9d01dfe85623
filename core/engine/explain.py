"""The plan for readers: strategies, classes, costs, delta rules and their Python."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve

from everlog.core.engine.keepers.unit_strategies import keeper_type
from everlog.core.engine.network import Network
from everlog.core.engine.planning.costs import Costs, RuleCost, rule_costs
from everlog.core.engine.planning.demand_parts import DEMAND, Demands
from everlog.core.engine.planning.plan import (
    CLASSES,
    GIVEN,
    RECURSIVE,
    PlannedUnit,
    make_plan,
    special_reason,
)
from everlog.core.engine.planning.systems import Described, systems, with_auxiliaries
from everlog.core.engine.planning.told_rules import is_made
from everlog.core.engine.planning.view_rules import SEARCHED, VIEW
from everlog.core.engine.watch import Move
from everlog.core.joins.exponents import refuge_of
from everlog.core.joins.join_strategies import AUTO
from everlog.core.joins.strategy_choice import JoinChoice
from everlog.core.program import Program, atoms_of
from everlog.core.program.demand import Adorned
from everlog.core.program.dependencies import Unit

Asked = Mapping[str, str]
Moved = Mapping[str, Sequence[Move]]
_USES = ["positive", "aggregate", "negative"]


class NotInProgram(ValueError):
    """An explanation was asked for a relation or a rule that does not exist."""


def explain_plan(
    program: Program,
    deltas: bool = False,
    asked: Asked | None = None,
    only: str | None = None,
    moved: Moved | None = None,
    demands: Demands | None = None,
    own: Collection[str] = (),
) -> str:
    """Every unit with its strategy, and every rule with its class and cost.

    `only` names one relation or one rule; `moved` has the moves of each rule that moved, `demands`
    what is asked for of relations on demand, `own` the derived relations with facts of their own.

    >>> from everlog.dsl.check import compile_text
    >>> program = compile_text('''
    ...   .decl edge(x:number, y:number)  .decl path(x:number, y:number)
    ...   path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z).''')
    >>> print(explain_plan(program, only="path#2"))  # doctest: +ELLIPSIS
    path#2  path(x, z) :- path(x, y), edge(y, z).
      class        recursive: `path` depends on itself
      one update   no promise: follows the facts that change, ...
    """
    plan = make_plan(program, asked, demands, own)
    costs = Costs(plan, _choices(moved))
    program = with_auxiliaries(program, asked or {})
    asked_for = {} if plan.demand is None else plan.demand.parts
    bare = [unit.name for unit in plan.units if unit.strategy == GIVEN and unit.name not in asked_for]
    derived = [unit for unit in plan.units if unit.strategy != GIVEN]
    computed = derived if deltas else [unit for unit in derived if not all(map(is_made, unit.unit.relations))]
    if only is not None and only in plan.written:
        unit = next(u for u in computed if any(rule.name == only for rule in u.unit.rules))
        return "\n".join(_rule_lines(costs, only))
    if only is not None and only not in program.relations:
        raise NotInProgram(f"the program has no relation or rule `{only}`")
    lines = [f"facts: {', '.join(bare)}"] if bare and (only is None or only in bare) else []
    lines += [] if plan.demand is None else list(plan.demand.lines(only))
    for number, unit in enumerate(computed, 1):
        if only is not None and only not in unit.unit.relations and not _is_part(unit, only, asked_for):
            continue
        names = [name for name in unit.unit.relations if deltas or not is_made(name)]
        lines.append(f"unit {number}: {', '.join(names)}")
        lines += [f"  {line}" for line in keeper_type(unit).described(unit)]
        for rule in unit.unit.rules:
            if rule.name in plan.written:
                lines += [f"  {line}" for line in _rule_lines(costs, rule.name)]
            elif deltas:  # the rules as they run: with the names that the planner made
                lines.append(f"  {rule.name}  {rule}")
        lines += [f"  {line}" for line in _system_lines(program, unit)]
        if deltas:
            lines += [f"    {line}" for line in keeper_type(unit).told_deltas(unit)]
    return "\n".join(lines)


def _is_part(unit: PlannedUnit, relation: str, parts: Mapping[str, tuple[Adorned, ...]]) -> bool:
    """Whether a unit has a part of a relation on demand."""
    names = {name for part in parts.get(relation, ()) for name in (part.name, part.magic)}
    return not names.isdisjoint(unit.unit.relations)


def fitting_systems(program: Program, unit: PlannedUnit) -> Iterator[tuple[Described, str]]:
    """The systems for a recursive unit, each with the reason if it does not fit."""
    if unit.unit.recursive:
        alone = _alone(unit.unit, program)
        special = special_reason(program, alone)
        for offer in systems().values():
            found = special or offer.fit(program, alone)
            yield offer.described, found if isinstance(found, str) else ""


def _alone(unit: Unit, program: Program) -> Unit:
    """The unit with its rules as they were written, without auxiliary relations."""
    names = tuple(name for name in unit.relations if name in program.relations)
    rules = tuple(rule for rule in program.rules if rule.head.relation in names)
    own = tuple(name for name in names if not program.relations[name].auxiliary_of)
    return evolve(unit, relations=own, rules=rules)


def _system_lines(program: Program, unit: PlannedUnit) -> Iterator[str]:
    """The systems that fit, with their auxiliary relations; or why none does."""
    found = list(fitting_systems(program, unit))
    fitting = [described for described, refusal in found if not refusal]
    if fitting:
        yield "systems of auxiliary relations that fit:"
    for described in fitting:
        names = ", ".join(f"{name}/{arity}" for name, arity in described.auxiliaries)
        use = " (in use)" if described.name == unit.strategy else ""
        yield f"  {described.name:<22} {names + ': ' if names else ''}{described.growth}{use}"
    if found and not fitting:
        yield f"no system of auxiliary relations fits: {found[0][1]}"


def _choices(moved: Moved | None) -> dict[str, JoinChoice]:
    """The strategies of rules that moved, as choices with a reason."""
    return {
        name: JoinChoice(last.strategy, f"since step {last.step}: {last.why}", tuple(map(str, moves)))
        for name, moves in (moved or {}).items()
        for last in moves[-1:]
    }


def _rule_lines(costs: Costs, name: str) -> Iterator[str]:
    """A rule as it was written, what an update of it costs, and what it is run with."""
    cost = costs.of(name)
    yield f"{name}  {cost.text}"
    for covering in cost.coverings:
        yield f"  reads        {covering}"
    yield from cost_lines(cost)
    for part in cost.all_parts:
        yield f"  run with     {part.text}"
        if len(part.query.atoms) > 1:
            yield f"    {part.cost_in_use}, in use {part.in_use.strategy}: {_reason(part)}"


def cost_lines(cost: RuleCost) -> Iterator[str]:
    """Class, widths, decomposition and promises of a rule, a line each."""
    if cost.query_class == "recursive":
        yield f"  class        recursive: `{cost.rule.head.relation}` depends on itself"
        if cost.in_use.strategy in (*RECURSIVE, CLASSES):
            yield f"  one update   no promise: {cost.cost_in_use}"
        return
    if len(cost.query.atoms) < 2:
        why = "no join" if cost.cost_in_use == "O(1)" else "that of the rules it is run with"
        yield f"  one update   {cost.cost_in_use}: {why}"
        return
    yield f"  class        {cost.query_class}: {cost.reason}"
    yield f"  widths       {_widths(cost)}"
    if cost.order:
        yield f"  order        {', '.join(map(str, cost.order))}"
    else:
        name = "join tree" if cost.query_class == "acyclic" else "bags"
        yield f"  {name:<13}{_bags(cost)}"
    if cost.above:
        yield f"  above it     {', '.join(cost.above)}"
    yield f"  one update   {_promised(cost)}"
    yield from _insert_only_line(cost)
    yield from (f"  a row of     {literal}: {power}" for literal, power in cost.changes_above())
    yield f"  in use       {cost.in_use.strategy}: {_reason(cost)}"


def _promised(cost: RuleCost) -> str:
    """What one update costs, what comes on top, and who proved it."""
    promise = cost.promise
    if promise is None:
        return cost.cost_in_use
    if cost.in_use.strategy in (VIEW, SEARCHED):
        return f"{promise}; what changes is found when somebody reads it"
    plus = "plus the facts that change" if promise.told else "with every match of the join that changes"
    return f"{promise}, {plus}" + (f" ({promise.source})" if promise.source else "")


def _insert_only_line(cost: RuleCost) -> Iterator[str]:
    """What one insert costs while no fact goes, where that is less."""
    costs = cost.update_cost
    if cost.promise is not None and costs["insert_only"] != costs["insert_delete"] != "O(1)":
        yield f"  insert-only  {cost.insert_only} ({cost.insert_only.source})"


def _reason(cost: RuleCost) -> str:
    if cost.in_use.strategy != AUTO:
        return cost.in_use.why
    return f"{cost.in_use.why}; delta, until its work has paid for {refuge_of(cost.query, cost.wanted)}"


def _widths(cost: RuleCost) -> str:
    w, hat = cost.width, cost.multivariate
    at_most = "" if w.exact else "at most "
    at_most_hat = "" if hat.exact else "at most "
    return f"w = {at_most}{w.value}, ŵ = {at_most_hat}{hat.value}"


def cost_of(program: Program, name: str, asked: Asked | None = None, own: Collection[str] = ()) -> str:
    """Class and cost of a rule in one line.

    >>> from everlog.dsl.check import compile_text
    >>> print(cost_of(compile_text('''
    ...   .decl e(x:number, y:number)  .decl ring(x:number)
    ...   ring(x) :- e(x, y), e(y, z), e(z, x).'''), "ring#1"))
    cyclic, w = 3/2, ŵ = 3/2; one update costs O(D) amortized (auto)
    """
    plan = make_plan(program, asked, own=own)
    if name not in plan.written:
        raise NotInProgram(f"the program has no rule `{name}`")
    return _one_line(Costs(plan, {}).of(name))


def _one_line(cost: RuleCost) -> str:
    if cost.query_class == "recursive":
        follows = (
            cost.cost_in_use if cost.in_use.strategy in (*RECURSIVE, CLASSES) else f"costs {cost.cost_in_use}"
        )
        return f"recursive; one update {follows} ({cost.in_use.strategy})"
    names = ", ".join(dict.fromkeys(each.by.relation for each in cost.coverings))
    reads = f"reads {names}; " if names else ""
    if len(cost.query.atoms) < 2:
        return f"{reads or 'no join; '}one update costs {cost.cost_in_use}"
    found = f"{reads}{cost.query_class}, {_widths(cost)}; one update costs {cost.cost_in_use}"
    return f"{found} ({cost.in_use.strategy})"


def _bags(cost: RuleCost) -> str:
    """The bags of the decomposition, each below its parent: `{a, b, c} → {b, c, d}`."""
    decomposition = cost.width.decomposition
    names = ["{" + ", ".join(v for v in cost.query.variables if v in bag) + "}" for bag in decomposition.bags]

    def below(number: int) -> str:
        children = [below(n) for n, parent in enumerate(decomposition.parents) if parent == number]
        if not children:
            return names[number]
        return f"{names[number]} → " + (children[0] if len(children) == 1 else f"({', '.join(children)})")

    return ", ".join(below(n) for n, parent in enumerate(decomposition.parents) if parent is None)


def explanation(
    program: Program, asked: Asked | None = None, moved: Moved | None = None, own: Collection[str] = ()
) -> dict[str, Any]:
    """All that is known of a program before data is loaded, and which rules have moved since, as an
    object that JSON can hold.
    """
    plan = make_plan(program, asked, own=own)
    program = with_auxiliaries(program, asked or {})
    home = {name: unit for unit in plan.units for name in unit.unit.relations}
    parts = {} if plan.demand is None else plan.demand.parts
    on_demand = {name: [part.adornment for part in found] for name, found in parts.items()}
    reads: dict[str, dict[str, str]] = {name: {} for name in program.relations}
    for rule in program.rules:
        known = reads[rule.head.relation]
        for atom, use in atoms_of(rule.body):  # of several uses, the one furthest from a join
            known[atom.relation] = max(use, known.get(atom.relation, use), key=_USES.index)
    return {
        "facts": [n for n in program.relations if home[n].strategy == GIVEN and n not in on_demand],
        "relations": [
            {
                "name": name,
                "columns": [f"{c.name}:{c.type_name or c.kind}" for c in relation.columns],
                "strategy": DEMAND if name in on_demand else home[name].strategy,
                "why": ", ".join(on_demand[name]) if name in on_demand else home[name].why,
                "recursive": home[name].unit.recursive,
                "insert_only": relation.insert_only,
                "reads": reads[name],
            }
            for name, relation in program.relations.items()
        ],
        "rules": [cost.to_json() for cost in rule_costs(plan, _choices(moved))],
        "systems": [
            _system_json(described, unit, why)
            for unit in plan.units
            for described, why in fitting_systems(program, unit)
        ],
    }


def _system_json(described: Described, unit: PlannedUnit, refusal: str) -> dict[str, object]:
    return {
        "name": described.name,
        "unit": [name for name in unit.unit.relations if not is_made(name)],
        "fits": not refusal,
        "why_not": refusal,
        "in_use": described.name == unit.strategy,
        "auxiliaries": [{"name": name, "arity": arity} for name, arity in described.auxiliaries],
        "growth": described.growth,
        "update_cost": described.cost,
    }


def explain_delta_code(
    program: Program, asked: Asked | None = None, only: str | None = None, ir: bool = False
) -> str:
    """The Python of every version of the rules that small steps may run; their plans with `ir`.

    `only` names one relation or rule.
    """
    network = Network(make_plan(program, asked), program.relations)
    parts: dict[str, None] = {}
    for keeper in network.keepers:
        parts.update(dict.fromkeys(keeper.told_code(only, ir)))
    return "\n\n".join(parts)
