"""How the rules of a living program join the facts that are there now.

Rules that are followed by delta rules have an order of joins as a whole, and one from the change of
each atom.  Where a unit works in another way, no order is chosen, and what is done instead is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everlog.core.codegen.join_estimates import Estimate
from everlog.core.codegen.join_order import Ordering
from everlog.core.engine.network import Network
from everlog.core.engine.planning.plan import (
    BEST,
    CLASSES,
    COUNTS,
    FLOW,
    GROWING,
    RANKED,
    RANKED_PYTHON,
    RECOMPUTE,
)
from everlog.core.engine.stepping.store import Store
from everlog.core.evaluate.reports.counted_rows import counted
from everlog.core.evaluate.reports.shown_plans import WITHOUT_EFFECT, ShownPlan, plan_of_estimates
from everlog.core.ir.compile import planned
from everlog.core.ir.uses import Action, Use
from everlog.core.joins.join_strategies import DELTA
from everlog.core.program import Atom, Rule
from everlog.core.program.bodies import variables_of_literal

_INSTEAD = {
    FLOW: "no order of joins: sets flow through the components of a graph, all rules at once",
    CLASSES: "no order of joins: facts are merged into classes",
    BEST: "joined from one fact at a time, in the order of the values that are best",
    GROWING: "joined from what has grown, round by round",
}


def join_plans(network: Network, only: str | None = None) -> Iterator[ShownPlan]:
    """The orders of the rules as they are run; `only` names one relation or one rule."""
    store = network.store
    for rule in store.plan.program.rules:
        if only not in (None, rule.name, rule.head.relation):
            continue
        kept = network.home[rule.head.relation].planned
        atoms = [place for place, literal in enumerate(rule.body) if isinstance(literal, Atom)]
        if len(atoms) < 2 and not kept.unit.recursive:
            continue
        strategy = network.strategy_now(rule)
        if strategy in (DELTA, COUNTS, RANKED, RANKED_PYTHON, RECOMPUTE):
            for delta in (None,) if strategy == RECOMPUTE else (None, *atoms):
                found = _estimates(store, rule, delta, strategy)
                order = [one.position for one in found]
                counts = None if delta is not None else _counts(store, rule, order)
                yield plan_of_estimates(rule, delta, found, counts)
        elif rule.name in store.plan.written:
            yield ShownPlan(str(rule), None, False, (), instead=_instead(rule, strategy, kept.why))


def _estimates(store: Store, rule: Rule, delta: int | None, strategy: str) -> Sequence[Estimate]:
    """The order that a version of a rule was compiled with, or would be now."""
    known = store.statistics(rule)
    if strategy in (DELTA, COUNTS):
        use = Use(Action.COUNT, living=True, failing=store.failing)
        used = store.plans.get((rule.name, delta))
        if used is not None and used.rule.body[: len(rule.body)] == rule.body:
            return used.estimates
        return planned(rule, delta, store.shapes, known, use).estimates
    every = frozenset(v for literal in rule.body for v in variables_of_literal(literal))
    return Ordering(rule.body, known, first=delta, kept=every, fixed=rule.order_of(delta)).chosen()


def _counts(store: Store, rule: Rule, order: Sequence[int]) -> list[tuple[int, int]] | None:
    """The rows that an order tries and keeps, with the facts that are there."""
    tables = store.tables
    return counted(
        store.plan.program, rule, order, lambda name: tables[name].rows(), lambda name: len(tables[name])
    )


def _instead(rule: Rule, strategy: str, why: str) -> str:
    told = _INSTEAD.get(strategy)
    if told is None:
        told = f"no order of joins: `{strategy}` keeps it" + (f" ({why})" if why else "")
    return told + (f"; {WITHOUT_EFFECT}" if rule.orders else "")
