"""The plans of a program's rules, as text, and the machine that runs each unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from attrs import evolve

from everlog.core.evaluate.machines import machines
from everlog.core.evaluate.native.unit_rounds import grouped, planned
from everlog.core.evaluate.parts.body_parts import BodyParts, guessed
from everlog.core.evaluate.seminaive import without_facts
from everlog.core.evaluate.value_columns import shapes_of
from everlog.core.ir.listing import listing
from everlog.core.ir.set_listing import set_listing
from everlog.core.native.coverage import uncovered
from everlog.core.program import Program, Rule, draws_numbers
from everlog.core.program.dependencies import Unit, units
from everlog.core.storage.table_statistics import SAMPLE, Guess, Statistics


def explain_ir(program: Program, only: str | None = None) -> str:
    """Each unit with its machine, and its rules as plans; of one relation or rule with `only`.

    The order of joins is that for the facts in the program's text.
    """
    in_python = without_facts(program)
    parts = []
    for unit, why_python in machines(program, shapes_of(program, units(program))):
        rules = [rule for rule in unit.rules if only in (None, rule.name, rule.head.relation)]
        if not rules:
            continue
        machine = f"Python: {why_python}" if why_python else "the compiled machine"
        parts.append(f"{', '.join(unit.relations)}: evaluated by {machine}")
        for rule in rules:
            if why_python:
                if not draws_numbers(rule):
                    parts += [set_listing(compiled.plan) for compiled in in_python.versions(rule, unit)]
            elif not uncovered(rule, named=True):
                parts += _plans(program, unit, rule, partial(_known, program, unit))
    return "\n\n".join(parts)


def _plans(program: Program, unit: Unit, rule: Rule, known: Callable[[str], Statistics]) -> Iterator[str]:
    """The plans of a rule, after those for the bodies of its aggregates."""
    rewritten, new = grouped(rule, known, BodyParts(program.relations))
    relations = {one.relation.name: one.relation for one in new}
    program = evolve(program, relations={**program.relations, **relations})
    guesses = {one.relation.name: guessed(one) for one in new}
    places: list[int | None] = [*unit.positions(rule)] if unit.recursive else []
    for one in new:
        yield listing(planned(program, unit, one.rule, None, known))
    for place in places or [None]:
        yield listing(
            planned(
                program, unit, rewritten, place, lambda name: guesses[name] if name in guesses else known(name)
            )
        )


def _known(program: Program, unit: Unit, name: str) -> Statistics:
    rows = () if name in unit.relations else program.facts.get(name, ())
    return Statistics(len(rows), list(rows[:SAMPLE])) if rows else Guess(program.relations[name].arity)
