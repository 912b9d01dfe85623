"""Proofs where relations are on demand: what is asked for is all that a proof needs.

While a fact is asked for, the parts have all facts of its derivations.  So a proof reads, for each
relation on demand, its base facts and the facts of all of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from attrs import evolve

from everlog.core.engine.demands import part_of
from everlog.core.engine.engine import Engine
from everlog.core.engine.planning.demand_parts import DEMAND
from everlog.core.engine.reads import LastStep
from everlog.core.program import Program, Row, Rule
from everlog.core.program.live_demand import LiveDemand
from everlog.core.proofs.evidence import Evidence
from everlog.core.storage.tables import Table, TableOf

_T = TypeVar("_T")


class DemandedFacts:
    """The evidence of an engine, with relations on demand as far as somebody asks for them."""

    def __init__(self, engine: Engine, live: LiveDemand) -> None:
        self._engine, self._live = engine, live
        self._tables: dict[str, Table] = dict(engine.tables)
        for name, parts in live.parts.items():
            table = engine.tables[name]
            rows = {row for part in parts for row in engine.tables[part.name].rows()}
            rows.update(table.rows())
            self._tables[name] = TableOf(table.shape, table.shape.facts_of(rows))

    @property
    def program(self) -> Program:
        return self._engine.program

    @property
    def tables(self) -> Mapping[str, Table]:
        return self._tables

    def given(self, relation: str) -> Collection[Row]:
        return self._engine.given(relation)

    def last_step(self, relation: str, row: Row) -> LastStep | None:
        """The derivation that one of the parts keeps: of those that have the fact, the only one.

        Derivations of several parts may lead from one to the other and back.
        """
        parts = self._live.parts.get(relation)
        if parts is None:
            return self._as_written(self._engine.last_step(relation, row))
        having = [part for part in parts if row in self._engine.tables[part.name]]
        return self._as_written(self._engine.last_step(having[0].name, row)) if len(having) == 1 else None

    def _as_written(self, last: LastStep | None) -> LastStep | None:
        if last is None:
            return None
        rule = self._rule(last.rule.name)
        return None if rule is None else LastStep(rule, last.binding)

    def _rule(self, name: str) -> Rule | None:
        known = self._live.written.get(name)
        wanted = name if known is None else known.name
        return next((rule for rule in self.program.rules if rule.name == wanted), None)


def with_evidence(engine: Engine, relation: str, row: Row, prove: Callable[[Evidence, str, Row], _T]) -> _T:
    """What `prove` makes of a fact, which is asked for meanwhile."""
    demands = engine.demands
    if demands.is_on_demand(relation) and len(row) == engine.program.relations[relation].arity:
        part, values = part_of(relation, len(row), dict(enumerate(row)))
        demands.prepare([part])
        if demands.is_on_demand(relation):
            with demands.asking(part, [values]):
                return _proved(engine, relation, row, prove)
    return _proved(engine, relation, row, prove)


def _proved(engine: Engine, relation: str, row: Row, prove: Callable[[Evidence, str, Row], _T]) -> _T:
    live = engine.plan.demand
    return prove(engine if live is None else DemandedFacts(engine, live), relation, row)


def with_everything(engine: Engine) -> Engine:
    """The engine, or a copy that has all facts of relations on demand.

    Cost: that of an evaluation of the whole program, where a relation is on demand.
    """
    if engine.plan.demand is None:
        return engine
    program = engine.program
    relations = {name: evolve(relation, on_demand=False) for name, relation in program.relations.items()}
    rules = tuple(evolve(r, strategy="") if r.strategy == DEMAND else r for r in program.rules)
    asked = {name: strategy for name, strategy in engine.asked_strategies.items() if strategy != DEMAND}
    given = {name: list(engine.given(name)) for name in relations}
    plain = evolve(program, relations=relations, rules=rules)
    return Engine(plain, limits=engine.limits, strategies=asked, given=given)
