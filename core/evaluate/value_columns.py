"""The choice of the value column of each binary relation.

A rule works on whole sets when the value column of its head comes as a set from its body.  The best
case is a recursive rule that carries a column along unchanged, as `path(x, z) :- path(x, y),
edge(y, z)` carries x: with x as the value, each step moves the whole set of sources from y to z.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everlog.core.ir.set_variables import settable
from everlog.core.program import Atom, Program, Rule, Variable
from everlog.core.program.carried import carried_from
from everlog.core.program.dependencies import Unit
from everlog.core.storage.shape import Shape
from everlog.core.storage.table_shapes import shape_of


def shapes_of(program: Program, units: Sequence[Unit]) -> Mapping[str, Shape]:
    out: dict[str, Shape] = {}
    for unit in units:
        for name in unit.relations:
            arity = program.relations[name].arity
            rules = [rule for rule in unit.rules if rule.head.relation == name]
            value = 1
            if arity == 2 and sum(_gain(r, 0, unit) for r in rules) > sum(_gain(r, 1, unit) for r in rules):
                value = 0
            out[name] = shape_of(arity, value)
    return out


def _gain(rule: Rule, column: int, unit: Unit) -> int:
    """The benefit for a rule if this column of its head is the value column."""
    variable = rule.head.args[column]
    if not isinstance(variable, Variable) or rule.head.args[1 - column] == variable:
        return 0
    if not settable(variable, rule.body):
        return 0
    if any(place == column for _, place in carried_from(rule, column, unit.relations)):
        return 4
    return int(any(isinstance(literal, Atom) and variable in literal.args for literal in rule.body))
