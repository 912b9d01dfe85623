"""One pass over the components that may change, each after all that come before it.

Tables are only read: `lost` and `gained` have what is to change in them.  Sets are shared between nodes
that lose or gain the same, and never changed.

Most components are one node, of which there may be hundreds behind a large one: they are settled without
a call for each thing that is asked.

Reads: core.engine.condensation, core.engine.flow_graph.  Read by: core.engine.flowing.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from everlog.core.engine.condensation import Component, Condensation
from everlog.core.engine.flow_graph import NOTHING, Fan, Graph, Sources


class Pass:
    """Invariant: what is settled has `facts`, less `lost`, and `gained`; these two are disjoint."""

    def __init__(self, graph: Graph, sources: Sources, parts: Condensation, facts: dict[Any, Fan]) -> None:
        self.graph, self.sources, self.parts, self.facts = graph, sources, parts, facts
        self.lost: dict[Any, Fan] = {}
        self.gained: dict[Any, Fan] = {}
        self._losing: dict[Component, Fan] = {}
        self._gaining: dict[Component, Fan] = {}
        self._new: dict[Component, list[Any]] = {}
        self._queue: list[tuple[int, Component]] = []
        self._waiting: set[Component] = set()
        self._alone: dict[Any, Component] = {}  # nodes that no step touches

    # ── what may change ──────────────────────────────────────────────────────────────────────

    def _of(self, node: Any) -> Component:
        found = self.parts.of.get(node) or self._alone.get(node)
        if found is None:
            found = self._alone[node] = Component((node,), 0)
        return found

    def wait(self, part: Component) -> None:
        """A component is to be looked at."""
        if part not in self._waiting:
            self._waiting.add(part)
            heappush(self._queue, (part.place, part))

    def comes(self, start: Any, end: Any) -> None:
        """There is a new step: its end may gain what its start has when it is settled."""
        part = self._of(end)
        if part is not self._of(start):
            self._new.setdefault(part, []).append(start)
            self.wait(part)

    def goes(self, start: Any, end: Any) -> None:
        """A step went: its end may lose what its start had."""
        part, fan = self._of(end), self.facts.get(start)
        if fan and part is not self._of(start):
            self._may(self._losing, part, fan)

    def may_lose(self, node: Any, element: Any) -> None:
        self._may(self._losing, self._of(node), {element})

    def may_gain(self, node: Any, element: Any) -> None:
        self._may(self._gaining, self._of(node), {element})

    def _may(self, log: dict[Component, Fan], part: Component, elements: Fan) -> None:
        known = log.get(part)
        if known is None:
            log[part] = elements
            self.wait(part)
        elif known is not elements:
            log[part] = known | elements

    # ── what does ────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        queue = self._queue
        while queue:
            part = heappop(queue)[1]
            for start in self._new.pop(part, ()):
                self._may(self._gaining, part, self._now(start))
            losing, gaining = self._losing.pop(part, None), self._gaining.pop(part, None)
            if len(part.nodes) == 1:
                self._settle_node(part, losing, gaining)
            else:
                self._settle(part, losing, gaining)

    def _now(self, node: Any) -> Fan:
        """What a node has that is settled."""
        fan: Fan = self.facts.get(node, NOTHING)
        lost, gained = self.lost.get(node), self.gained.get(node)
        kept = fan - lost if lost else fan
        return kept | gained if gained else kept

    def _settle_node(self, part: Component, losing: Fan | None, gaining: Fan | None) -> None:
        """Say what one node loses and gains, and what comes after it may lose and gain for that."""
        (node,) = part.nodes
        of, facts, all_lost, all_gained = self.parts.of, self.facts, self.lost, self.gained
        old = facts.get(node, NOTHING)
        lost = losing & old if losing else NOTHING
        if lost:
            for index in self.sources.at:
                fan = index.get(node)
                if fan is not None:
                    lost = lost - fan
            for steps in self.graph.back if lost else ():
                for before in steps.get(node, NOTHING):
                    if of[before] is not part:
                        lost = self._without(lost, before)
                        if not lost:
                            break
            if lost:
                all_lost[node] = lost
        gained = gaining - old if gaining else NOTHING  # none of it is lost: it is held by what brings it
        if gained:
            all_gained[node] = gained
        elif not lost:
            return
        for steps in self.graph.forth:
            for after in steps.get(node, NOTHING):
                other = of[after]
                if other is not part:
                    if lost:
                        self._may(self._losing, other, lost)
                    if gained:
                        self._may(self._gaining, other, gained)

    def _without(self, elements: Fan, node: Any) -> Fan:
        """Some elements without those that a settled node has."""
        fan, new = self.facts.get(node), self.gained.get(node)
        if fan is not None:
            gone = self.lost.get(node)
            elements = elements - fan if gone is None else (elements - fan) | (elements & gone)
        return elements if new is None else elements - new

    def _settle(self, part: Component, losing: Fan | None, gaining: Fan | None) -> None:
        """The same for several nodes, which have one set if they were together before."""
        groups, part.parts = part.parts or [part.nodes], []
        fans = [self.facts.get(next(iter(nodes)), NOTHING) for nodes in groups]
        old = fans[0] if len(fans) == 1 else set().union(*fans)
        lost = self._not_held(part, losing & old) if losing else NOTHING
        gained: Fan = NOTHING
        for nodes, fan in zip(groups, fans, strict=True):
            gone = lost if fan is old else lost & fan
            new = gaining - fan if gaining else NOTHING
            if fan is not old:
                new = new | (old - fan - lost)
            if gone:
                self.lost.update(dict.fromkeys(nodes, gone))
            if new:
                self.gained.update(dict.fromkeys(nodes, new))
                gained = gained | new
        if lost or gained:
            for other in self.parts.after(part):
                if lost:
                    self._may(self._losing, other, lost)
                if gained:
                    self._may(self._gaining, other, gained)

    def _not_held(self, part: Component, elements: Fan) -> Fan:
        """Those of some elements that neither a source nor a component before this one brings."""
        left = self.sources.not_brought(part.nodes, elements) if elements else elements
        if left:
            for other in self.parts.before(part):
                left = self._without(left, next(iter(other.nodes)))
                if not left:
                    break
        return left
