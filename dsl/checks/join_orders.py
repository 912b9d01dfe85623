"""The orders of joins that `.plan` gives, as places in the bodies of core rules.

Soufflé numbers the versions of a recursive rule by its recursive atoms; version k reads what is
new in the k-th of them.  Here what is new is always joined first.  What cannot be followed is a
warning: an order never changes an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve

from everlog.core import program as core
from everlog.core.program.dependencies import units
from everlog.dsl import ast
from everlog.dsl.checks.clauses import FlatClause
from everlog.dsl.diagnostics import Report


def with_orders(program: core.Program, clauses: Mapping[str, FlatClause], report: Report) -> core.Program:
    """The program, each rule with the orders of its plan; `clauses` by the names of their rules."""
    plans = {name: clause.origin.plan for name, clause in clauses.items() if clause.origin.plan is not None}
    if not plans:
        return program
    places = {rule.name: unit.positions(rule) for unit in units(program) for rule in unit.rules}
    rules = [
        evolve(rule, orders=tuple(_Orders(rule, plans[rule.name], places[rule.name], report).found()))
        if rule.name in plans
        else rule
        for rule in program.rules
    ]
    _warn_of_units(program, plans, report)
    return evolve(program, rules=tuple(rules))


def _warn_of_units(program: core.Program, plans: Mapping[str, ast.Plan], report: Report) -> None:
    """Some recursion is not joined rule by rule."""
    from everlog.core.evaluate.machines import joined_at_once  # here: only for programs with plans
    from everlog.core.evaluate.value_columns import shapes_of

    every = units(program)
    shapes = shapes_of(program, every)
    for unit in every:
        planned = [
            rule
            for rule in unit.rules
            if rule.name in plans and sum(isinstance(x, core.Atom) for x in rule.body) > 1
        ]
        why = joined_at_once(program, unit, shapes) if planned else ""
        for rule in planned if why else ():
            report.warn("DL063", f"the plan is not used: {why}", plans[rule.name])


def warn_of_subsumption(clause: FlatClause, report: Report) -> None:
    """A plan of a rule with two heads is read and not followed."""
    if clause.origin.plan is not None:
        report.warn(
            "DL063", "the plan is not used: subsumption compares facts of one relation", clause.origin.plan
        )


class _Orders:
    """The plan of one rule, which reads Δ at `places`."""

    def __init__(self, rule: core.Rule, plan: ast.Plan, places: list[int], report: Report) -> None:
        self.rule, self.plan, self.places, self.report = rule, plan, places, report
        self.atoms = [place for place, literal in enumerate(rule.body) if isinstance(literal, core.Atom)]

    def found(self) -> Iterator[tuple[int | None, tuple[int, ...]]]:
        if core.draws_numbers(self.rule):
            self.report.warn("DL063", "the plan is not used: a rule with `autoinc()` is not joined", self.plan)
            return
        for version, numbers in self.plan.orders:
            if sorted(numbers) != list(range(1, len(self.atoms) + 1)):
                self._refuse(version, f"the rule that is joined has {len(self.atoms)} atom(s)")
            elif version >= max(len(self.places), 1):
                self._refuse(version, "the rule is not recursive and has version 0 alone")
            else:
                order = tuple(self.atoms[number - 1] for number in numbers)
                delta = self.places[version] if self.places else None
                if delta not in (None, order[0]):
                    self._moved(version, numbers[0], self.atoms.index(delta) + 1)
                yield delta, order

    def _refuse(self, version: int, why: str) -> None:
        self.report.warn("DL063", f"the order for version {version} is not used: {why}", self.plan)

    def _moved(self, version: int, first: int, new: int) -> None:
        message = (
            f"the order for version {version} begins with atom {first}; what is new in atom {new} is joined "
            "before it, the others in this order"
        )
        self.report.warn("DL063", message, self.plan, hint=f"begin the order with {new}")
