"""Values that go through recursion are used in one direction only.

`best_values` says which uses are monotone.  This module checks the recursive relations
with `min` or `max` in their heads, those with sums or lattices (`growth_uses`), and
finds the place in the text to report.
"""

from __future__ import annotations

from collections.abc import Mapping

from everlog.core import program as core
from everlog.core.program.aggregates.best_values import Misuse, best_maps, misuse_of
from everlog.core.program.aggregates.growth_uses import misuse_of_growth
from everlog.core.program.bodies import variables_of_literal
from everlog.core.program.dependencies import units
from everlog.dsl import ast
from everlog.dsl.checks.clauses import FlatClause, Hoisted, Literal, names_of, names_of_literal
from everlog.dsl.checks.declarations import Declarations
from everlog.dsl.checks.head_aggregates import Best
from everlog.dsl.diagnostics import Report


def check_monotone(
    program: core.Program,
    maps: list[Best],
    clauses: Mapping[str, FlatClause],
    declared: Declarations,
    report: Report,
) -> bool:
    """Whether recursion uses the values of `maps` soundly; `clauses` are those of the rules."""
    checked = {best.relation for best in maps if best.recursive}
    sound = True
    for unit in units(program):
        found = misuse_of_growth(program, unit)
        if found is None and not checked.isdisjoint(unit.relations):
            found = misuse_of(program, unit, best_maps(program, unit.relations))
        if found is not None:
            sound = False
            why = found.why
            for name in unit.relations:  # no author knows the relation of a test
                why = why.replace(f"`{name}`", f"`{declared.relations[name].tests or name}`")
            report.error("DL132", why, _place(found, clauses[found.rule.name]), hint=found.hint)
    return sound


def _place(misuse: Misuse, clause: FlatClause) -> object:
    """The literal of the text that a misuse is about."""
    if misuse.literal is None:
        return clause.head
    wanted = {v.name for v in variables_of_literal(misuse.literal)} | {misuse.variable}
    form = _form(misuse.literal)
    alike = [x for x in clause.body if isinstance(x, form)]
    op = misuse.literal.op if isinstance(misuse.literal, core.Comparison) else ""
    return max(alike, key=lambda x: (getattr(x, "op", "") == op, len(wanted & _names(x))), default=clause.origin)


def _form(literal: core.Literal) -> type:
    match literal:
        case core.Atom():
            return ast.Atom
        case core.Negation():
            return ast.Not
        case core.Comparison():
            return ast.Constraint
        case _:
            return Hoisted


def _names(literal: Literal) -> set[str]:
    found = {name.name for name in names_of_literal(literal)}
    if isinstance(literal, Hoisted):
        found |= set(literal.outer) | {n.name for n in names_of(literal.node)}
    return found
