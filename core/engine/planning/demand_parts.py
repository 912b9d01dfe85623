"""Relations on demand in a plan: their parts, and the strategies of these.

A relation is on demand if it is declared `magic`, or if the strategy `demand` is asked for it.  Its
parts are planned like any other relations.  Recursion in a part follows facts (`ranked`) unless its
author asks for something else: what is asked for is a small part of the graph, and a flow would
keep the components of all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from attrs import evolve

from everlog.core.engine.planning.systems import NoSuchStrategy
from everlog.core.program import Program, Row, atoms_of, draws_numbers
from everlog.core.program.demand import Adorned
from everlog.core.program.dependencies import Unit, units
from everlog.core.program.live_demand import LiveDemand, live_demand

DEMAND = "demand"
FOLLOWED = "ranked"  # the strategy of recursion in a part
Demands: TypeAlias = Mapping[Adorned, Collection[Row]]  # part → the values that are asked for


def on_demand(program: Program, asked: Mapping[str, str]) -> list[str]:
    """The relations that should be on demand, with rules, in the order of declaration."""
    for name, strategy in asked.items():
        if strategy == DEMAND and name != "*" and not program.rules_of(name):
            raise NoSuchStrategy(f"`{DEMAND}` cannot keep `{name}`: no rule derives it")
    wished = {rule.head.relation for rule in program.rules if rule.strategy == DEMAND}
    names = []
    for name, relation in program.relations.items():
        strategy = asked.get(name) or ("" if name in wished else asked.get("*", ""))
        asks = strategy == DEMAND or (not strategy and (relation.on_demand or name in wished))
        if asks and program.rules_of(name):
            names.append(name)
    return names


def in_parts(
    program: Program, asked: dict[str, str], demands: Demands
) -> tuple[Program, dict[str, str], LiveDemand | None]:
    """The program with parts for its relations on demand, and the strategies asked for then."""
    names = on_demand(program, asked)
    asked = {name: strategy for name, strategy in asked.items() if strategy != DEMAND}
    if not names:
        return program, asked, None
    plain = tuple(evolve(r, strategy="") if r.strategy == DEMAND else r for r in program.rules)
    found = live_demand(evolve(program, rules=plain), names, demands)
    return found.program, _strategies(found, asked), found


def only_asked_for(program: Program, asked: dict[str, str]) -> tuple[Program, dict[str, tuple[Row, ...]]]:
    """The program that computes of relations on demand what its rules ask for, and its base facts.

    For one evaluation: outputs ask for all of a relation.  Where numbers are drawn, they depend on
    all that is computed, and the program stays as it is.
    """
    if any(map(draws_numbers, program.rules)):
        return program, {}
    made, _, found = in_parts(program, asked, {})
    return made, {} if found is None else asked_values(found, {})


def _strategies(found: LiveDemand, asked: dict[str, str]) -> dict[str, str]:
    """The strategies for parts: those asked for their relations and rules, or `ranked`."""
    own: dict[str, str] = {}
    for part_rule, rule in found.written.items():
        wish = asked.get(rule.name) or rule.strategy
        if wish:
            own[part_rule] = wish
    for name, parts in found.parts.items():
        if name in asked:
            own |= dict.fromkeys((part.name for part in parts), asked[name])
    names = {rule.name for rule in found.program.rules} | {"*", *found.program.relations}
    kept = {name: strategy for name, strategy in asked.items() if name in names and name not in found.parts}
    for unit in units(found.program):
        wishes = [
            kept.get(r.name) or kept.get(r.head.relation) or r.strategy or own.get(r.name) for r in unit.rules
        ]
        if unit.recursive and not any(wishes) and not found.made.isdisjoint(unit.relations):
            own |= {name: FOLLOWED for name in unit.relations if name in found.made and name not in own}
    return kept | own


def with_answers(
    ordered: tuple[Unit, ...],
    found: LiveDemand | None,
    asked: Mapping[str, str],
    only: Collection[str] | None = None,
) -> tuple[tuple[Unit, ...], set[str]]:
    """The units, where parts whose demand is followed are computed with it; and these parts.

    A part `path^bf` that is not recursive reads what a demand leads to, `path>bf`.  In one unit
    both share the copies of what they read.  That is possible where no unit between them needs the
    demand, and the part needs it without a negation or an aggregate.
    """
    units_now, joined = list(ordered), set[str]()
    for carrier, part in {} if found is None else found.carriers.items():
        home = {name: n for n, unit in enumerate(units_now) for name in unit.relations}
        first, last = home[carrier], home[part]
        one, other = units_now[first], units_now[last]
        if first >= last or other.recursive or other.subsumptions or (only is not None and part not in only):
            continue
        uses = {use for rule in other.rules for atom, use in atoms_of(rule.body) if atom.relation in one.relations}
        needed = any(not unit.reads.isdisjoint(one.relations) for unit in units_now[first + 1 : last])
        if asked.get(carrier) != FOLLOWED or part in asked or needed or uses != {"positive"}:
            continue
        both = Unit((*one.relations, *other.relations), (*one.rules, *other.rules), True, one.subsumptions)
        units_now[last] = both
        del units_now[first]
        joined.add(part)
    return tuple(units_now), joined


def asked_values(found: LiveDemand, demands: Demands) -> dict[str, tuple[Row, ...]]:
    """The base facts of what is asked for, by relation."""
    given: dict[str, tuple[Row, ...]] = {}
    for parts in found.parts.values():
        for part in parts:
            rows = [*found.always.get(part, ()), *demands.get(part, ())]
            given[part.magic] = tuple(dict.fromkeys(rows))
    return given
