"""Answer one query from base facts, and compute only what it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from everlog.core.evaluate.seminaive import Evaluation, evaluate
from everlog.core.program import Column, Program, Relation, Row, Rule
from everlog.core.program.demand import Demand, base_names, demanded
from everlog.core.runtime.guards import Limits, Progress


def demand_of(program: Program, query: Sequence[Rule], columns: tuple[Column, ...]) -> Demand:
    """The part of a program that a query needs; its rules have one head."""
    return demanded(program, query, Relation(query[0].head.relation, columns))


def answers(
    program: Program,
    demand: Demand,
    inputs: Mapping[str, Iterable[Row]] | None = None,
    progress: Progress | None = None,
    limits: Limits | None = None,
) -> Evaluation:
    """The relations that a query needs; its answers are those of `demand.goal`."""
    given = inputs or {}
    names = base_names(demand, program)
    base = {name: given[plain] for plain, found in names.items() if plain in given for name in found}
    return evaluate(demand.program, base, progress, limits)
