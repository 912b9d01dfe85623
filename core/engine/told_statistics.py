"""Statistics as users know the program: parts that the planner made count for what they serve.

The planner splits rules: hidden columns and aggregates become relations of its own (`emp/0`,
`@sum1 of total#1`; core.engine.planning.normal).  Their names mean nothing to a user, so their
time, work and bytes are added to the first rule that was written and reads them; where a part has
moved to another strategy, its move is told of that rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from everlog.core.engine.planning.told_rules import is_made
from everlog.core.engine.statistics import RelationStatistics, RuleStatistics, Statistics
from everlog.core.program import Rule, atoms_of


def told(found: Statistics, rules: Iterable[Rule], written: Mapping[str, Rule]) -> Statistics:
    """The statistics of relations and rules that were written, with those of their parts.

    `rules` are those that run, `written` those of the program.
    """
    rules = list(rules)
    owners = _owners(rules, written)
    by_rule: dict[str, RuleStatistics] = {each.name: each for each in found.rules if each.name in written}
    for part in found.rules:
        owner = by_rule.get(owners.get(part.name, ""))
        if part.name not in written and owner is not None:
            by_rule[owner.name] = evolve(
                owner,
                seconds=owner.seconds + part.seconds,
                compiling=owner.compiling + part.compiling,
                work=owner.work + part.work,
                strategy=part.strategy if part.moved else owner.strategy,
                moved=part.moved or owner.moved,
            )
    by_relation: dict[str, RelationStatistics] = {
        each.name: each for each in found.relations if not is_made(each.name)
    }
    serves = {rule.head.relation: owners[rule.name] for rule in rules if rule.name in owners}
    for each in found.relations:
        rule = written.get(serves.get(each.name, ""))
        if is_made(each.name) and rule is not None and rule.head.relation in by_relation:
            mine = by_relation[rule.head.relation]
            more = evolve(mine, bytes=mine.bytes + each.bytes, seconds=mine.seconds + each.seconds)
            by_relation[mine.name] = more
    units = tuple(unit for unit in found.units if not is_made(unit.name))
    return evolve(found, relations=tuple(by_relation.values()), rules=tuple(by_rule.values()), units=units)


def _owners(rules: list[Rule], written: Mapping[str, Rule]) -> dict[str, str]:
    """For each rule that was made, the written rule that reads it first, also indirectly."""
    reader: dict[str, Rule] = {}
    for rule in rules:
        for atom, _ in atoms_of(rule.body):
            if is_made(atom.relation):
                reader.setdefault(atom.relation, rule)
    owners: dict[str, str] = {}
    for rule in rules:
        owner: Rule | None = rule
        while owner is not None and owner.name not in written:
            owner = reader.get(owner.head.relation)
        if owner is not None and owner is not rule:
            owners[rule.name] = owner.name
    return owners
