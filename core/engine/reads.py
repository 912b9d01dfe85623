"""What an engine answers: facts, derivations, plans, statistics, and the state to save."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from time import perf_counter

from attrs import frozen

from everlog.core.engine.demands import Demands
from everlog.core.engine.keepers.keeper import Keeper
from everlog.core.engine.keepers.views.view_table import ViewTable
from everlog.core.engine.net_change import BaseFacts
from everlog.core.engine.network import Network
from everlog.core.engine.planning.demand_parts import DEMAND
from everlog.core.engine.planning.plan import Plan, make_plan
from everlog.core.engine.shown_joins import join_plans
from everlog.core.engine.statistics import Statistics, statistics_of
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.engine.stepping.store import Store
from everlog.core.engine.stepping.word_table import WordTable
from everlog.core.engine.told_statistics import told
from everlog.core.engine.usage import Usage
from everlog.core.engine.watch import Move
from everlog.core.evaluate.reports.shown_plans import ShownPlan
from everlog.core.native.words import SortedWords
from everlog.core.program import Program, Row, Rule, Value, Variable
from everlog.core.program.containment import answering_rules
from everlog.core.program.dependencies import Unit
from everlog.core.runtime.collector import collector_paused
from everlog.core.runtime.guards import Guard
from everlog.core.storage.lazy_index import LazyIndex
from everlog.core.storage.tables import Table


@frozen
class LastStep:
    """A derivation of a fact: a rule of the program, and values of its variables."""

    rule: Rule
    binding: Mapping[str, Value]


class Reads:
    """The reading half of an engine: nothing here changes a fact."""

    program: Program
    guard: Guard
    usage: Usage
    demands: Demands
    own_facts: frozenset[str]  # derived relations that have, or had, facts of their own
    moved: dict[str, tuple[Move, ...]]  # rules that moved, with their last moves
    anew: dict[str, tuple[int, int]]  # unit → steps in which it gave up following, the last one
    proving: dict[str, tuple[int, float]]  # unit → step that made its ranks, seconds
    _asked: Mapping[str, str]
    _network: Network
    _steps: int
    _base: BaseFacts
    _answering: tuple[Rule, ...] | None

    @property
    def tables(self) -> dict[str, Table]:
        return self._network.store.tables

    @property
    def plan(self) -> Plan:
        return self._network.plan

    @property
    def asked_strategies(self) -> Mapping[str, str]:
        """The strategies that were asked for beside the program."""
        return self._asked

    @property
    def answering(self) -> tuple[Rule, ...]:
        """The rules whose relations may be read instead of their bodies."""
        if self._answering is None:
            is_on_demand = self.demands.is_on_demand
            found = answering_rules(self.program)
            views = {name for name, relation in self.program.relations.items() if relation.view}
            self._answering = tuple(
                rule for rule in found if rule.head.relation not in views and not is_on_demand(rule.head.relation)
            )
        return self._answering

    def read_all(self) -> None:
        """Fill the tables of all relations, auxiliary ones too."""
        for name in self._base.refused:
            self._network.home[name].ready(name)

    def _table(self, relation: str) -> Table:
        """The table of a relation, filled for a reader."""
        if self._base.refused:
            self._network.home[relation].ready(relation)
        return self.tables[relation]

    def store_for(self, relations: Iterable[str]) -> Store:
        """The store, with these relations filled for a reader."""
        for relation in relations:
            self._table(relation)
        return self._network.store

    def stream(self, relation: str) -> Iterator[Row]:
        """The facts of a relation in no order, to be read before the next step."""
        self.usage.read(relation, ())
        if self.demands.is_on_demand(relation):
            return iter(self.demands.lookup(relation, {}))
        return self._table(relation).rows()

    def view(self, relation: str) -> frozenset[Row]:
        return frozenset(self.stream(relation))

    def rows(self, relation: str) -> Iterable[Row]:
        """The facts of a relation in sorted order."""
        self.usage.read(relation, ())
        if self.demands.is_on_demand(relation):
            return sorted(self.demands.lookup(relation, {}))
        table = self._table(relation)
        return table.sorted_rows()

    def words(self, relation: str) -> SortedWords | None:
        """The facts of a relation as words, if the compiled machine keeps it."""
        if self.demands.is_on_demand(relation):
            return None
        table = self._table(relation)
        found = table.words() if isinstance(table, WordTable) else None
        if found is not None:
            self.usage.read(relation, ())
        return found

    def size(self, relation: str) -> int:
        if self.demands.is_on_demand(relation):
            return len(self.demands.lookup(relation, {}))
        return self._table(relation).size()

    def kept(self, relation: str) -> int:
        """The number of facts that are there: of a relation on demand, those asked for."""
        live = self._network.plan.demand
        parts = () if live is None else live.parts.get(relation, ())
        rows = {row for part in parts for row in self.tables[part.name].rows()} if len(parts) > 1 else ()
        if rows:
            return len(rows)
        return len(self.tables[parts[0].name]) if parts else len(self._table(relation))

    def given(self, relation: str) -> Collection[Row]:
        """The base facts of a relation."""
        return self._network.home[relation].given_rows(relation)

    def lookup(self, relation: str, bound: Mapping[int, Value]) -> Iterator[Row]:
        """The facts with these values in these columns, in no order.

        Cost: that of the facts found, once there is an index.
        """
        self.usage.lookup(relation, bound)
        if self.demands.is_on_demand(relation):
            yield from self.demands.lookup(relation, bound)
            return
        table = self._table(relation)
        key = tuple(sorted(bound))
        rest = tuple(c for c in range(table.shape.arity) if c not in bound)
        if not key:
            yield from table.rows()
        elif not rest:
            row = tuple(bound[c] for c in key)
            if row in table:
                yield row
        elif isinstance(table, ViewTable):
            yield from table.having(bound)
        else:
            columns = [*key, *rest]
            order = [columns.index(c) for c in range(len(columns))]
            wanted = tuple(bound[c] for c in key)
            for found in LazyIndex(table, key, rest).get(wanted[0] if len(key) == 1 else wanted):
                values = (*wanted, *found) if isinstance(found, tuple) else (*wanted, found)
                yield tuple(values[n] for n in order)

    # ── proofs and plans ─────────────────────────────────────────────────────────────────────

    def last_step(self, relation: str, row: Row) -> LastStep | None:
        """A derivation of a fact from earlier ones; None if none is known."""
        network = self._network
        keeper = network.home[relation]
        self._prove([keeper])
        known = keeper.derivation_of(relation, row)
        if known is None:
            return None
        name, binding = known
        written = network.store.plan.written[name]
        head = {a.name: value for a, value in zip(written.head.args, row, strict=True) if isinstance(a, Variable)}
        return LastStep(written, {**binding, **head})

    def strategy_of(self, relation: str) -> tuple[str, str]:
        """The strategy that maintains a relation, and why."""
        live = self._network.plan.demand
        if live is not None and relation in live.parts:
            return DEMAND, ", ".join(part.adornment for part in live.parts[relation]) or "nobody asks for it"
        planned = self._network.home[relation].planned
        return planned.strategy, planned.why

    def join_plans(self, only: str | None = None) -> Iterator[ShownPlan]:
        """How each rule joins the facts that are there now: as a whole, and from each change."""
        return join_plans(self._network, only)

    def statistics(self) -> Statistics:
        found = statistics_of(self._network, self.moved, self.proving, self.anew)
        plan = self._network.plan
        return told(found, plan.program.rules, plan.written)

    def rule_figures(self) -> dict[str, tuple[int, float, int]]:
        """Runs, seconds and work of each rule as it is run, so far."""
        network = self._network
        times = network.store.times
        return {
            rule.name: (time.runs, time.seconds, network.work_of(rule))
            for rule in network.plan.program.rules
            if (time := times.get(rule.name)) is not None
        }

    def state(self) -> Iterator[tuple[str, int, Columns]]:
        """The saved state of units with rules: name, number of facts, columns.

        Demands are not saved: readers of the opened file ask again.
        """
        asked = self._network.reached(self._network.plan.given)
        planned = self._planned_by_who_opens()
        for keeper in self._network.keepers:
            lasting = keeper not in asked or not self.program.relations.keys().isdisjoint(keeper.relations)
            lasting = lasting and (planned is None or keeper.planned.unit in planned)
            columns = keeper.state() if keeper.planned.unit.rules and lasting else None
            if columns is not None:
                yield keeper.planned.name, sum(len(self.tables[name]) for name in keeper.relations), columns

    def _planned_by_who_opens(self) -> list[Unit] | None:
        """The units as they are planned from the facts that are there, if that is another plan."""
        own = frozenset(name for name in self.own_facts if self.given(name))
        if own == self.own_facts:
            return None
        return [each.unit for each in make_plan(self.program, self._asked, own=own).units]

    def _prove(self, keepers: Iterable[Keeper]) -> None:
        unproven = [keeper for keeper in keepers if not keeper.proven]
        if unproven:
            with collector_paused(), self.guard:
                for keeper in unproven:
                    start = perf_counter()
                    keeper.prove(self.guard)
                    self.proving[keeper.planned.name] = self._steps, perf_counter() - start

    def check(self) -> None:
        """Assert every invariant of every unit and table."""
        for keeper in self._network.keepers:
            keeper.check()
        for table in self.tables.values():
            table.check()
