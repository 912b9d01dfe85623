"""Recursive units that carry a column along: sets flow along the steps of a graph.

`path(x, z) :- path(x, y), edge(y, z)` passes every x that y has on to z.  So z has what its
*sources* bring (`path(x, z) :- edge(x, z)`), and all elements of its predecessors.  Nodes that
reach each other have the same set, and with the strongly connected components in topological order
(`condensation`) each is settled once:

*Losses*: a component may lose what a lost step brought, what a component before it has lost, and
what a source no longer brings.  It loses those that nothing else brings: everything before it is
settled already, so no element supports itself.  *Gains* likewise, and in the same pass.

The nodes of a component share one set in the table (`core.storage.shared_values`).  No witness is
kept, so a closure costs no more memory than its distinct sets, and a step that changes no fact
costs little.  A proof is found on demand: the shortest path back to a source.

`core.engine.planning.flow_rules` brings the unit's rules into two forms:

    r(c, n) :- s(c, n).                    a source
    r(c, to) :- r(c, from), t(from, to).   steps
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING

from everlog.core.engine.keepers.flow.condensation import Condensation
from everlog.core.engine.keepers.flow.flow_graph import NOTHING, Graph, Sources
from everlog.core.engine.keepers.flow.flow_pass import Pass
from everlog.core.engine.keepers.flow.places import Component
from everlog.core.engine.keepers.keeper import Derivation, Keeper
from everlog.core.engine.planning.flow_rules import sources_and_steps
from everlog.core.engine.planning.plan import PlannedUnit
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.engine.stepping.step import Listener, Readers
from everlog.core.engine.stepping.store import Store
from everlog.core.evaluate.flow import flow
from everlog.core.program import Row, Value
from everlog.core.storage.shape import Facts, PairFacts
from everlog.core.storage.shared_values import SharedTable
from everlog.core.storage.table_shapes import PairShape

if TYPE_CHECKING:
    from everlog.core.engine.stepping.step import Step

Pair = tuple[Value, Value]
MANY = 10_000  # facts between two checks of the limits


class FlowKeeper(Keeper):
    """Keeps recursion that carries a column along.

    Invariants:
      I1  a node has the elements of its sources, of the base facts, and of the nodes one step
          before it, and each element comes from a source or a base fact;
      I2  `parts`, if not None, is the condensation of the steps, and exactly the nodes of a
          component share a set.
    """

    about = "sets that flow along steps, settled from the sources on"
    no_rule = "what is behind the change is settled, component by component"

    def __init__(self, store: Store, planned: PlannedUnit, number: int) -> None:
        super().__init__(store, planned, number)
        (self.name,) = self.relations
        shape = store.shapes[self.name]
        assert isinstance(shape, PairShape)
        self.shape = shape
        self.sources, self.steps = sources_and_steps(planned.unit, self.shape)
        self.parts: Condensation | None = None  # built when first needed
        self._lost: dict[str, Facts] = {}
        self._gained: dict[str, Facts] = {}
        self._base_gone: list[Row] = []
        self._base_new: list[Row] = []
        self._merged: list[Component] = []  # in this turn
        self._paths: dict[Pair, Value] = {}  # element and node → the node before it on a shortest path
        self._bind()

    def _bind(self) -> None:
        """Bind the indexes to follow; tables change in place, so they stay current."""
        tables = self.store.tables
        table = tables[self.name]
        assert isinstance(table, SharedTable)
        self.table = table
        self.facts: PairFacts = table.facts
        self._base_at: PairFacts = self.shape.facts_of(self.given[self.name])
        self._base_nodes: PairFacts = PairShape(self.shape.key).facts_of(self.given[self.name])
        self.graph = Graph(
            tuple(tables[s.relation].steps(s.start, s.end) for s in self.steps),
            tuple(tables[s.relation].steps(s.end, s.start) for s in self.steps),
        )
        self.brought = Sources(
            (self._base_at, *(tables[s.relation].steps(s.key, s.value) for s in self.sources)),
            (self._base_nodes, *(tables[s.relation].steps(s.value, s.key) for s in self.sources)),
        )

    def use(self, store: Store) -> None:
        super().use(store)
        self._bind()
        self._stale()

    def _stale(self) -> None:
        self.parts = None
        self._paths.clear()

    # ── hearing of changes ───────────────────────────────────────────────────────────────────

    def listen(self, readers: dict[str, Readers]) -> None:
        for relation in dict.fromkeys([s.relation for s in self.sources] + [s.relation for s in self.steps]):
            entry = readers.setdefault(relation, Readers())
            entry.losses.append(self._hears(relation, self._lost))
            entry.gains.append(self._hears(relation, self._gained))

    def _hears(self, relation: str, log: dict[str, Facts]) -> Listener:
        def listener(step: Step, delta: Facts) -> None:
            log[relation] = delta  # a relation changes once in a step
            step.wake(self)

        return listener

    def change_given(self, relation: str, gone: list[Row], new: list[Row]) -> None:
        super().change_given(relation, gone, new)
        for shape, facts in ((self.shape, self._base_at), (PairShape(self.shape.key), self._base_nodes)):
            shape.take_facts(facts, shape.facts_of(gone))
            shape.add_facts(facts, shape.facts_of(new))

    def give(self, step: Step, relation: str, gone: list[Row], new: list[Row]) -> None:
        self._base_gone, self._base_new = gone, new
        step.wake(self)

    def forget(self) -> None:
        self._lost.clear()
        self._gained.clear()
        self._base_gone, self._base_new = [], []

    # ── a turn ───────────────────────────────────────────────────────────────────────────────

    def turn(self, step: Step) -> None:
        began = perf_counter()
        change = self._followed(step)
        self._took(perf_counter() - began)
        if change.lost or change.gained:
            step.guard.derived(self.name, change.gained.size())
            step.spread(self.name, change.lost, change.gained)
        for part in self._merged:
            self._share(step, part)
        self._merged = []

    def _followed(self, step: Step) -> Pass:
        """The effect of the changes that were received."""
        step.undo.append((self._stale, ()))
        gone, new = self._moved(self._lost, False), self._moved(self._gained, True)
        away, here = self._sourced(self._lost, self._base_gone), self._sourced(self._gained, self._base_new)
        self.forget()
        self._paths.clear()
        split: list[list[Component]] = []
        if self.parts is None:
            self.parts = Condensation(self.graph)
            self._merged = self._aligned(self.parts)
        else:
            split = self.parts.remove(gone)
            for parts in split:
                self._part(part.nodes for part in parts[1:])
            self._merged = self.parts.add(new)
        change = Pass(self.graph, self.brought, self.parts, self.facts)
        if len(gone) == len(split) == 1 and not new:
            self._limit(change, split[0], away)
        for start, end in gone:
            change.goes(start, end)
        for start, end in new:
            change.comes(start, end)
        for node, element in away:
            if not self.brought.brings(node, element):
                change.may_lose(node, element)
        for node, element in here:
            change.may_gain(node, element)
        for part in self._merged:
            change.wait(part)
        change.run()
        return change

    def _limit(self, change: Pass, parts: list[Component], away: Iterable[Pair]) -> None:
        """Bound what the largest part of a broken component may lose.

        Elements that come to its own nodes, from a source or from outside, still do.
        """
        largest, *others = parts
        fallen = [node for part in others for node in part.nodes]
        if 4 * len(fallen) < len(largest.nodes):
            came = [element for _, element in away]
            around = self.graph.before_any(fallen).difference(largest.nodes, fallen)
            sets = [values for index in self.brought.at for values in map(index.get, fallen) if values is not None]
            sets += [values for values in map(self.facts.get, around) if values is not None]
            change.limits[largest] = set(came).union(*sets)

    # ── shared sets ──────────────────────────────────────────────────────────────────────────

    def _aligned(self, parts: Condensation) -> list[Component]:
        """Give each component a set of its own; those with several sets count as merged."""
        found = []
        seen: set[int] = set()
        untouched = [Component((node,)) for node in self.facts.keys() - parts.of.keys()]  # without steps
        for part in (*parts.components(), *untouched):
            groups: dict[int, list[Value]] = {}
            for node in part.nodes:
                groups.setdefault(id(self.facts.get(node)), []).append(node)
            self._part(nodes for values, nodes in groups.items() if values in seen)
            seen.update(groups)
            if len(groups) > 1:
                part.parts = list(groups.values())
                found.append(part)
        return found

    def _part(self, groups: Iterable[Collection[Value]]) -> None:
        for nodes in groups:
            if next(iter(nodes)) in self.facts:
                self.table.part(nodes)

    def _share(self, step: Step, part: Component) -> None:
        """Let the nodes of a merged component share a set: they have the same facts now."""
        largest = max(part.parts, key=len)
        others = [node for nodes in part.parts if nodes is not largest for node in nodes]
        part.parts = []
        values = self.facts.get(next(iter(largest)))
        if values is not None:
            step.undo.append((self.facts.update, ({node: self.facts[node] for node in others},)))
            self.facts.update(dict.fromkeys(others, values))

    def _moved(self, log: dict[str, Facts], insert: bool) -> list[Pair]:
        """The steps among some changes, except those that another rule takes as well."""
        out: dict[Pair, None] = {}
        for rule in self.steps:
            facts = log.get(rule.relation)
            if facts:
                shape = self.store.shapes[rule.relation]
                out |= dict.fromkeys((row[rule.start], row[rule.end]) for row in shape.rows_of(facts))
        if len(self.steps) == 1:
            return list(out)
        if not insert:
            return [(start, end) for start, end in out if end not in self.graph.after(start)]
        return [pair for pair in out if not self._was_step(*pair)]

    def _was_step(self, start: Value, end: Value) -> bool:
        """Whether there was a step before the present changes, too."""
        for rule, forth in zip(self.steps, self.graph.forth, strict=True):
            row = (start, end) if rule.start == 0 else (end, start)
            shape = self.store.shapes[rule.relation]
            came = shape.has_row(self._gained.get(rule.relation, {}), row)
            went = shape.has_row(self._lost.get(rule.relation, {}), row)
            if went or (end in forth.get(start, NOTHING) and not came):
                return True
        return False

    def _sourced(self, log: dict[str, Facts], rows: list[Row]) -> list[Pair]:
        """Nodes and elements whose source or base fact has changed."""
        shape = self.shape
        out = [(row[shape.key], row[shape.value]) for row in rows]
        for rule in self.sources:
            facts = log.get(rule.relation)
            if facts:
                changed = self.store.shapes[rule.relation].rows_of(facts)
                out += [(row[rule.key], row[rule.value]) for row in changed]
        return out

    # ── as a whole ───────────────────────────────────────────────────────────────────────────

    def rebuild(self, step: Step) -> Mapping[str, Facts]:
        began = perf_counter()
        self.forget()
        self._stale()
        facts: PairFacts = {}
        new = 0
        for nodes, values in flow(self.brought.together(), self.graph.forth):
            shared = set(values)  # a copy: later components may have the same
            facts.update(dict.fromkeys(nodes, shared))
            new += len(nodes) * len(values)
            if new > MANY:
                step.guard.derived(self.name, new)
                new = 0
        step.guard.derived(self.name, new)
        self.table.replace(facts)
        self._took(perf_counter() - began)
        return {}

    def told_code(self, only: str | None, ir: bool = False) -> Iterator[str]:
        yield from super().told_code(only, ir)
        if only is None or only in self.relations or any(rule.name == only for rule in self.planned.unit.rules):
            yield f"# {self.planned.name}: no rule runs; {self.no_rule} (core.engine.keepers.flow.flowing)"

    def snapshot_besides(self) -> Callable[[], None]:
        return self._stale

    def state(self) -> Columns:
        return self.table.columns()

    def restore(self, columns: Columns) -> None:
        self.forget()
        self._stale()
        if len(columns) == 4:
            self.table.restore(iter(columns))
        else:  # older files have a set for each key
            self.table.replace(self.shape.from_columns(iter(columns)))

    # ── proofs ───────────────────────────────────────────────────────────────────────────────

    def derivation_of(self, relation: str, row: Row) -> Derivation | None:
        node, element = row[self.shape.key], row[self.shape.value]
        if row in self.given[relation]:
            return None
        for source, at in zip(self.sources, self.brought.at[1:], strict=True):
            if element in at.get(node, NOTHING):
                return source.rule, {}
        if (element, node) not in self._paths:
            self._find_path(element, node)
        before = self._paths[element, node]
        for rule, forth in zip(self.steps, self.graph.forth, strict=True):
            if node in forth.get(before, NOTHING):
                return rule.rule, rule.binding(before, node)
        raise AssertionError(f"no step from {before} to {node}")

    def _find_path(self, element: Value, node: Value) -> None:
        """Record a shortest path from a source of the element to a node."""
        towards: dict[Value, Value | None] = {node: None}  # each visited node, with its successor
        front = [node]
        while front:
            new = []
            for at in front:
                for before in self.graph.before(at):
                    if before not in towards and element in self.facts.get(before, NOTHING):
                        towards[before] = at
                        if self.brought.brings(before, element):
                            while (following := towards[before]) is not None:
                                self._paths[element, following] = before
                                before = following
                            return
                        new.append(before)
            front = new
        raise AssertionError(f"I1: {element} does not come from a source to {node}")

    def check(self) -> None:
        expected = {
            node: values for nodes, values in flow(self.brought.together(), self.graph.forth) for node in nodes
        }
        assert self.facts == expected, f"I1: {self.name}"
        if self.parts is not None:
            self.parts.check()
            sets = [{id(self.facts.get(node)) for node in part.nodes} for part in self.parts.components()]
            assert all(len(one) == 1 for one in sets), "I2: a component has several sets"
            shared = set().union(*sets) - {id(None)}
            assert len(shared) == sum(one != {id(None)} for one in sets), "I2: components share a set"
