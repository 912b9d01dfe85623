"""Which machine runs which unit of a whole evaluation, and why.

The compiled machine derives row by row, fast and in little memory.  Python derives set by set: that
is faster where every rule of a recursion carries a column along.  Where sets flow through
components they are also shared, and a unit that reads them stays in Python, too: as rows they would
be far larger.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from everlog.core.evaluate.flow import flow_steps
from everlog.core.evaluate.native.best_maps import why_not_settled
from everlog.core.evaluate.ordered import key_steps
from everlog.core.evaluate.subsume import dominances
from everlog.core.evaluate.value_columns import shapes_of
from everlog.core.native.availability import why_not
from everlog.core.native.coverage import uncovered
from everlog.core.program import Program, draws_numbers
from everlog.core.program.aggregates.best_values import only_maps
from everlog.core.program.aggregates.growing import grows_through
from everlog.core.program.carried import carried_from, is_plain_binary
from everlog.core.program.dependencies import Unit, units
from everlog.core.storage.shape import Shape
from everlog.core.storage.table_shapes import PairShape


def machines(program: Program, shapes: Mapping[str, Shape]) -> Iterator[tuple[Unit, str]]:
    """Every unit in order, with the reason why Python runs it; empty: the compiled machine."""
    shared: set[str] = set()
    absent = why_not()
    for unit in units(program):
        if any(program.relations[name].equivalence for name in unit.relations) or _flows(program, unit, shapes):
            shared.update(unit.relations)
        yield unit, absent or why_python(program, unit, shapes, shared)


def read_as_words(program: Program) -> set[str]:
    """The relations that only the compiled machine reads."""
    native: set[str] = set()
    in_python: set[str] = set()
    for unit, why in machines(program, shapes_of(program, units(program))):
        if unit.rules or unit.subsumptions:
            (in_python if why else native).update(unit.reads, unit.relations)
    return native - in_python


def joined_at_once(program: Program, unit: Unit, shapes: Mapping[str, Shape]) -> str:
    """Why the rules of a unit are joined in no order of their own; empty if they are."""
    if _flows(program, unit, shapes):
        return "sets flow through the components of a graph, all rules at once"
    if unit.recursive and key_steps(program, unit, shapes):
        return "each key is settled once, in order"
    return ""


def _flows(program: Program, unit: Unit, shapes: Mapping[str, Shape]) -> bool:
    return bool(unit.recursive and flow_steps(program, unit, shapes))


def _carries_sets(program: Program, unit: Unit, shapes: Mapping[str, Shape]) -> bool:
    """Whether a unit is one binary relation, and each of its rules moves sets of its values."""
    shape = shapes[unit.relations[0]]
    if not is_plain_binary(program, unit) or not isinstance(shape, PairShape):
        return False
    recursive = [rule for rule in unit.rules if unit.positions(rule)]
    return all(
        any(place == shape.value for _, place in carried_from(rule, shape.value, unit.relations))
        for rule in recursive
    )


def why_python(program: Program, unit: Unit, shapes: Mapping[str, Shape], shared: Collection[str]) -> str:
    """Why the compiled machine does not run a unit; empty if it does."""
    for name in unit.relations:
        relation = program.relations[name]
        if relation.equivalence:
            return f"{name} is an equivalence relation"
        if relation.auxiliary_of:
            return f"{name} is an auxiliary relation"
    if any(program.relations[name].lattices for name in unit.relations):
        return "it joins the values of lattices"
    if any(True for _ in grows_through(unit)):
        return "its recursion goes through running totals"
    if unit.subsumptions:
        maps = only_maps(program, unit)
        why = _why_not_subsumed(program, unit) if isinstance(maps, str) else why_not_settled(program, unit, maps)
        return _why_not_read(unit, shared) or why
    if at_once := joined_at_once(program, unit, shapes):
        return at_once
    if unit.recursive and _carries_sets(program, unit, shapes):
        return "each recursive rule carries a column along, so that whole sets move at once"
    uncovered_rules = filter(None, (uncovered(rule, named=True) for rule in unit.rules if not draws_numbers(rule)))
    return _why_not_read(unit, shared) or next(uncovered_rules, "")


def _why_not_subsumed(program: Program, unit: Unit) -> str:
    """Why the compiled machine does not run a unit with subsumption; empty if it does."""
    if any(draws_numbers(rule) for rule in unit.rules):
        return "its facts are numbered, and a subsumption takes some away"
    if any(program.relations[name].choices for name in unit.relations):
        return "its facts are chosen, and a subsumption takes some away"
    found = dominances(unit.subsumptions)
    circle = next((name for name, dominance in found.items() if dominance.in_pairs), "")
    if circle:
        return f"facts of {circle} may dominate each other in a circle"
    rules = (*unit.rules, *(rule for dominance in found.values() for rule in dominance.rules))
    return next(filter(None, map(uncovered, rules)), "")


def _why_not_read(unit: Unit, shared: Collection[str]) -> str:
    """Why the compiled machine does not read what a unit reads; empty if it does."""
    for name in sorted(unit.reads):
        if name in shared:
            return f"it reads {name}, whose keys share sets"
    return ""
