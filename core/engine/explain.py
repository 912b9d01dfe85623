"""What the engine will do, for those who want to read it: the plan, the delta rules, their Python.

Reads: core.engine.plan, core.engine.network, core.dbsp.  Read by: `everlog explain`, `Database.explain`.
"""

from __future__ import annotations

from collections.abc import Iterator

from everlog.core.dbsp import each_delta_rule
from everlog.core.engine.keeper import outside_relations
from everlog.core.engine.network import Network
from everlog.core.engine.plan import GIVEN, RECOMPUTE, STRATEGIES, PlannedUnit, make_plan
from everlog.core.program import Program


def explain_plan(program: Program, deltas: bool = False) -> str:
    """Every unit with its strategy and the reason for it; with `deltas` also the delta rules.

    >>> from everlog.dsl.check import compile_text
    >>> print(explain_plan(compile_text('''
    ...   .decl edge(x:number, y:number)  .decl path(x:number, y:number)
    ...   path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z).''')))
    facts: edge
    unit 1: path
      kept by witness: one well-founded witness for each fact (recursive)
      path#1  path(x, y) :- edge(x, y).
      path#2  path(x, z) :- path(x, y), edge(y, z).
    """
    plan = make_plan(program)
    bare = [unit.name for unit in plan.units if unit.strategy == GIVEN]
    lines = [f"facts: {', '.join(bare)}"] if bare else []
    computed = [unit for unit in plan.units if unit.strategy != GIVEN]
    for number, unit in enumerate(computed, 1):
        lines.append(f"unit {number}: {unit.name}")
        lines.append(f"  kept by {unit.strategy}: {STRATEGIES[unit.strategy]} ({unit.why})")
        for rule in unit.unit.rules:
            written = plan.written.get(rule.name)
            lines.append(f"  {rule.name}  {rule}")
            if written is not None and str(written) != str(rule):
                lines.append(f"    from  {written}")
        if deltas:
            lines += [f"    {line}" for line in _deltas(unit)]
    return "\n".join(lines)


def _deltas(unit: PlannedUnit) -> Iterator[str]:
    """The delta rules of a unit, for each relation that it reads."""
    if unit.strategy == RECOMPUTE:
        return
    for rule in unit.unit.rules:
        for relation in outside_relations(rule, ()):
            for delta in each_delta_rule(rule, relation):
                yield f"on {delta.event} of {relation}:  {delta}"


def explain_delta_code(program: Program) -> str:
    """The Python of every version of every rule that small steps may run."""
    network = Network(make_plan(program), program.relations)
    parts: dict[str, None] = {}
    for keeper in network.keepers:
        for task in keeper.tasks():
            parts[task.code().source] = None
    return "\n\n".join(parts)
