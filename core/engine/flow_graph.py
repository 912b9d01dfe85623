"""What sets flow along, and where they come from: steps and sources, as the tables have them now.

Reads: core.tables (indexes).  Read by: core.engine.flowing, core.engine.flow_pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

Fan = set[Any]
Index = Mapping[Any, Fan]
NOTHING: Any = frozenset()  # a Fan that nobody changes
FEW = 4  # elements, up to which a large component is asked for each of them by itself


@frozen
class Graph:
    """The steps of all rules, as the tables have them now."""

    forth: tuple[Index, ...]
    back: tuple[Index, ...]

    def after(self, node: Any) -> Collection[Any]:
        return _along(self.forth, node)

    def before(self, node: Any) -> Collection[Any]:
        return _along(self.back, node)

    def after_any(self, nodes: Iterable[Any]) -> Fan:
        return _along_any(self.forth, nodes)

    def before_any(self, nodes: Iterable[Any]) -> Fan:
        return _along_any(self.back, nodes)

    def nodes(self) -> Iterator[Any]:
        """Every node from which a step leads, perhaps more than once."""
        for step in self.forth:
            yield from step


def _along(steps: tuple[Index, ...], node: Any) -> Collection[Any]:
    if len(steps) == 1:
        found: Collection[Any] = steps[0].get(node, NOTHING)
        return found
    return set().union(*[step.get(node, NOTHING) for step in steps])


def _along_any(steps: tuple[Index, ...], nodes: Iterable[Any]) -> Fan:
    """All of it in C: a component may have thousands of nodes."""
    return set().union(*[fan for step in steps for fan in filter(None, map(step.get, nodes))])


@frozen
class Sources:
    """What comes to nodes from outside: `at` has elements by node, one index for each rule; `nodes` turns them."""

    at: tuple[Index, ...]
    nodes: tuple[Index, ...]

    def brings(self, node: Any, element: Any) -> bool:
        return any(element in index.get(node, NOTHING) for index in self.at)

    def together(self) -> dict[Any, Fan]:
        """All that is brought, by node.  Sets may be those of the indexes."""
        out: dict[Any, Fan] = {}
        for index in self.at:
            for node, fan in index.items():
                out[node] = out[node] | fan if node in out else fan
        return out

    def not_brought(self, nodes: Collection[Any], elements: Fan) -> Fan:
        """Those of some elements that come to none of some nodes."""
        if len(nodes) > FEW and len(elements) <= FEW:
            return {
                one for one in elements if all(index.get(one, NOTHING).isdisjoint(nodes) for index in self.nodes)
            }
        left = elements.copy()
        for index in self.at:
            for fan in map(index.get, nodes):
                if fan is not None:
                    left -= fan
                    if not left:
                        return left
        return left
