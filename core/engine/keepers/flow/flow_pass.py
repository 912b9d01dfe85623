"""One pass over the components that may change, in topological order.

Tables are only read: `lost` and `gained` collect their changes.  Nodes that lose or gain the same
share sets, which are never changed.

Behind a large component hundreds of nodes may lose or gain the same few elements.  So if nothing
else waits, `flow_wave` follows a few elements through all nodes at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heappop, heappush

from everlog.core.engine.keepers.flow.condensation import Condensation
from everlog.core.engine.keepers.flow.flow_graph import NOTHING, Graph, Sources, without_any
from everlog.core.engine.keepers.flow.flow_wave import Blocks, Wave
from everlog.core.engine.keepers.flow.places import Component
from everlog.core.program import Value
from everlog.core.storage.shape import PairFacts, ValueSet
from everlog.core.storage.shared_values import SharedDelta

Changed = tuple[Collection[Value], ValueSet, ValueSet]  # nodes that shared a set, their losses, gains
FEW = 12  # at most this many elements are followed one by one (`flow_wave`),
MANY = 6  # where at least this many nodes lie behind the component


class Pass:
    """Invariant: a settled node has `facts` - `lost` + `gained`; the two are disjoint."""

    def __init__(self, graph: Graph, sources: Sources, parts: Condensation, facts: PairFacts) -> None:
        self.graph, self.sources, self.parts, self.facts = graph, sources, parts, facts
        self.lost = SharedDelta()
        self.gained = SharedDelta()
        self._losing: dict[Component, ValueSet] = {}
        self._gaining: dict[Component, ValueSet] = {}
        self._new: dict[Component, list[Value]] = {}
        self._queue: list[tuple[int, Component]] = []
        self._waiting: set[Component] = set()
        self._alone: dict[Value, Component] = {}  # nodes without steps
        self.limits: dict[Component, ValueSet] = {}  # all that a component may lose, if that is little

    # ── possible changes ─────────────────────────────────────────────────────────────────────

    def _of(self, node: Value) -> Component:
        found = self.parts.of.get(node) or self._alone.get(node)
        if found is None:
            found = self._alone[node] = Component((node,))
        return found

    def wait(self, part: Component) -> None:
        """Queue a component to be settled."""
        if part not in self._waiting:
            self._waiting.add(part)
            heappush(self._queue, (part.place, part))

    def comes(self, start: Value, end: Value) -> None:
        """A step was inserted: its end may gain what its start has once settled."""
        part = self._of(end)
        if part is not self._of(start):
            self._new.setdefault(part, []).append(start)
            self.wait(part)

    def goes(self, start: Value, end: Value) -> None:
        """A step was deleted: its end may lose what its start had."""
        part, values = self._of(end), self.facts.get(start)
        if values and part is not self._of(start):
            self._may(self._losing, part, values)

    def may_lose(self, node: Value, element: Value) -> None:
        self._may(self._losing, self._of(node), {element})

    def may_gain(self, node: Value, element: Value) -> None:
        self._may(self._gaining, self._of(node), {element})

    def _may(self, log: dict[Component, ValueSet], part: Component, elements: ValueSet) -> None:
        known = log.get(part)
        if known is None:
            log[part] = elements
            self.wait(part)
        elif known is not elements:
            log[part] = known | elements

    # ── actual changes ───────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        queue = self._queue
        while queue:
            part = heappop(queue)[1]
            for start in self._new.pop(part, ()):
                self._may(self._gaining, part, self._now(start))
            losing, gaining = self._losing.pop(part, None), self._gaining.pop(part, None)
            settle = self._settle_node if len(part.nodes) == 1 else self._settle
            changed = settle(part, losing, gaining)
            if changed:
                self._hand_on(part, changed)

    def _hand_on(self, part: Component, changed: Iterable[Changed]) -> None:
        """Pass the losses and gains of a component on to the components after it.

        After a merge, a successor of one part had the elements of that part.
        """
        moved: list[tuple[set[Value], ValueSet, ValueSet]] = []
        elements = most = 0
        for nodes, lost, gained in changed:
            if 2 * len(nodes) > len(part.nodes):  # nearly all of it
                behind = self.parts.nodes_after(part)
            else:
                behind = self.graph.after_any(nodes).difference(part.nodes)
            if behind:
                moved.append((behind, lost, gained))
                elements += len(lost) + len(gained)
                most = max(most, len(behind))
        if not self._queue and elements <= FEW and most >= MANY:
            self._follow(part, moved)
            return
        of = self.parts.of
        for behind, lost, gained in moved:
            for other in {of[node] for node in behind}:
                if lost:
                    self._may(self._losing, other, lost)
                if gained:
                    self._may(self._gaining, other, gained)

    def _now(self, node: Value) -> ValueSet:
        """Current elements of a settled node."""
        values: ValueSet = self.facts.get(node, NOTHING)
        lost, gained = self.lost.get(node), self.gained.get(node)
        kept = values - lost if lost else values
        return kept | gained if gained else kept

    def _settle_node(self, part: Component, losing: ValueSet | None, gaining: ValueSet | None) -> list[Changed]:
        """The losses and gains of a single node."""
        (node,) = part.nodes
        of, old = self.parts.of, self.facts.get(node, NOTHING)
        lost = losing & old if losing else NOTHING
        if lost:
            for index in self.sources.at:
                values = index.get(node)
                if values is not None:
                    lost = lost - values
            for steps in self.graph.back if lost else ():
                for before in steps.get(node, NOTHING):
                    if of[before] is not part:
                        lost = self._without(lost, before)
                        if not lost:
                            break
            if lost:
                self.lost.put(node, lost)
        gained = gaining - old if gaining else NOTHING  # never lost as well: its source holds it
        if gained:
            self.gained.put(node, gained)
        return [(part.nodes, lost, gained)] if lost or gained else []

    def _without(self, elements: ValueSet, node: Value) -> ValueSet:
        """Some elements without those that a settled node has."""
        values, new = self.facts.get(node), self.gained.get(node)
        if values is not None:
            gone = self.lost.get(node)
            elements = elements - values if gone is None else (elements - values) | (elements & gone)
        return elements if new is None else elements - new

    def _settle(self, part: Component, losing: ValueSet | None, gaining: ValueSet | None) -> list[Changed]:
        """The losses and gains of several nodes, which share a set if they did before."""
        groups = part.parts or [part.nodes]
        sets = [self.facts.get(next(iter(nodes)), NOTHING) for nodes in groups]
        old = sets[0] if len(sets) == 1 else set().union(*sets)
        if losing and part in self.limits:
            losing = losing & self.limits[part]
        lost = self._not_held(part, losing & old) if losing else NOTHING
        changed = []
        for nodes, values in zip(groups, sets, strict=True):
            gone = lost if values is old else lost & values
            new = gaining - values if gaining else NOTHING
            if values is not old:
                new = new | (old - values - lost)
            if gone:
                self.lost.put_together(nodes, gone)
            if new:
                self.gained.put_together(nodes, new)
            if gone or new:
                changed.append((nodes, gone, new))
        return changed

    def _not_held(self, part: Component, elements: ValueSet) -> ValueSet:
        """The elements that neither a source nor a node before the component brings."""
        left = self.sources.not_brought(part.nodes, elements) if elements else elements
        if not left:
            return left
        outside = self.parts.nodes_before(part)
        changed = (
            [node for node in outside if node in self.lost or node in self.gained]
            if self.lost or self.gained
            else []
        )
        left = without_any(left, map(self.facts.get, outside.difference(changed)))
        for node in changed:
            left = self._without(left, node)
        return left

    # ── a few elements, all nodes at once ────────────────────────────────────────────────────

    def _follow(self, part: Component, moved: Iterable[tuple[set[Value], ValueSet, ValueSet]]) -> None:
        """Settle everything behind a component, which is the last one in the queue."""
        wave = Wave(self.graph, self.sources, self.parts, self.facts, self.lost, self.gained)
        losing: PairFacts = {}
        gaining: PairFacts = {}
        for behind, lost, gained in moved:
            for element in lost:
                losing[element] = behind | losing.get(element, NOTHING)
            for element in gained:
                gaining[element] = behind | gaining.get(element, NOTHING)
        losses, gains = Blocks(), Blocks()
        for element, behind in losing.items():
            losses.add(*wave.loses(element, behind, part.nodes), element)
        for element, behind in gaining.items():
            gains.add(*wave.gains(element, behind), element)
        losses.put(self.lost)
        gains.put(self.gained)
