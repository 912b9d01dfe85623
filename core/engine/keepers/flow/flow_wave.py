"""One element followed through all nodes behind a component, as sets of nodes.

The effect on one element does not depend on any other.  So if a component loses or gains a few,
each is followed by itself: instead of a set of elements for each node there is a set of nodes for
each element, and a breadth-first search in C.

Nodes of one component have an element together: reaching one of them reaches all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from everlog.core.engine.keepers.flow.condensation import Condensation
from everlog.core.engine.keepers.flow.flow_graph import NOTHING, Graph, Sources
from everlog.core.program import Value
from everlog.core.storage.shape import PairFacts, ValueSet
from everlog.core.storage.shared_values import SharedDelta

Nodes = set[Value]
Found = tuple[Nodes, list[Nodes]]  # nodes that are components by themselves, and larger components


class Wave:
    """Follows elements from the nodes `behind` a component, which are not settled yet."""

    def __init__(
        self,
        graph: Graph,
        sources: Sources,
        parts: Condensation,
        facts: PairFacts,
        lost: Mapping[Value, ValueSet],
        gained: Mapping[Value, ValueSet],
    ) -> None:
        """`lost` and `gained` are the changes of settled nodes."""
        self.graph, self.sources, self.parts, self.facts = graph, sources, parts, facts
        self.lost, self.gained = lost, gained

    def gains(self, element: Value, behind: Nodes) -> Found:
        """The nodes that gain an element from the component."""
        get = self.facts.get
        return self._reached(behind, lambda nodes: [node for node in nodes if element not in get(node, NOTHING)])

    def loses(self, element: Value, behind: Nodes, settled: Collection[Value]) -> Found:
        """The nodes that had an element only from a component, whose nodes are `settled`.

        First it finds all nodes that may have it from there.  Those that have it from elsewhere
        (from a source, or from another node) keep it, and so do the nodes that they reach.
        """
        get, graph = self.facts.get, self.graph
        alone, larger = self._reached(
            behind, lambda nodes: [node for node in nodes if element in get(node, NOTHING)]
        )
        suspects = alone.union(*larger)
        around = graph.before_any(suspects).difference(suspects, settled)
        lost, gained = self.lost.get, self.gained.get
        holders = [
            node
            for node in around
            if (element in get(node, NOTHING) and element not in lost(node, NOTHING))
            or element in gained(node, NOTHING)
        ]
        kept = graph.after_any(holders) & suspects
        for nodes in self.sources.nodes:
            kept |= suspects & nodes.get(element, NOTHING)
        if not kept:
            return alone, larger
        safe, safe_larger = self._reached(kept, suspects.intersection)
        return alone - safe, [nodes for nodes in larger if nodes not in safe_larger]

    def _reached(self, front: Nodes, wanted: Callable[[Collection[Value]], Iterable[Value]]) -> Found:
        """The wanted nodes that a front reaches through wanted nodes."""
        of, together, after = self.parts.of, self.parts.together, self.graph.after_any
        alone: Nodes = set()
        larger: list[Nodes] = []
        met: Nodes = set()  # the nodes of larger components
        while front:
            inside = front & together
            new = set(wanted(front - inside if inside else front))
            alone |= new
            for node in wanted(inside):
                if node not in met:
                    nodes = of[node].nodes
                    assert isinstance(nodes, set)
                    met |= nodes
                    larger.append(nodes)
                    new |= nodes
            front = after(new).difference(alone, met)
        return alone, larger


class Blocks:
    """Groups of nodes that lose, or gain, the same few elements."""

    def __init__(self) -> None:
        self._alone: list[tuple[Nodes, ValueSet]] = []
        self._larger: dict[int, tuple[Nodes, ValueSet]] = {}

    def add(self, alone: Nodes, larger: list[Nodes], element: Value) -> None:
        """Add one element for some nodes, and for some components.

        Cost: a few set operations for each group, of which there are few.
        """
        blocks = []
        for nodes, elements in self._alone:
            both = nodes & alone
            if both:
                blocks.append((both, {element, *elements}))
            if len(both) < len(nodes):
                blocks.append((nodes - both, elements))
            alone = alone - both
        if alone:
            blocks.append((alone, {element}))
        self._alone = blocks
        for nodes in larger:
            self._larger.setdefault(id(nodes), (nodes, set()))[1].add(element)

    def put(self, delta: SharedDelta) -> None:
        for nodes, elements in self._alone:
            delta.put_separate(nodes, elements)
        for nodes, elements in self._larger.values():
            delta.put_together(nodes, elements)
