"""The steps and sources of a flow, as indexes of the present tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from everlog.core.program import Value
from everlog.core.storage.shape import PairFacts, ValueSet

Index = Mapping[Value, ValueSet]
NOTHING: Any = frozenset()  # read as a set, never changed


@frozen
class Graph:
    """The steps of all rules in the present tables."""

    forth: tuple[Index, ...]
    back: tuple[Index, ...]

    def after(self, node: Value) -> ValueSet:
        return _along(self.forth, node)

    def before(self, node: Value) -> ValueSet:
        return _along(self.back, node)

    def after_any(self, nodes: Iterable[Value]) -> ValueSet:
        return _along_any(self.forth, nodes)

    def before_any(self, nodes: Iterable[Value]) -> ValueSet:
        return _along_any(self.back, nodes)

    def nodes(self) -> Iterator[Value]:
        """Every node from which a step leads, with repetitions."""
        for step in self.forth:
            yield from step


def _along(steps: tuple[Index, ...], node: Value) -> ValueSet:
    if len(steps) == 1:
        found: ValueSet = steps[0].get(node, NOTHING)
        return found
    return set().union(*[step.get(node, NOTHING) for step in steps])


def _along_any(steps: tuple[Index, ...], nodes: Iterable[Value]) -> ValueSet:
    """All in C: a component may have thousands of nodes."""
    return set().union(*[values for step in steps for values in filter(None, map(step.get, nodes))])


@frozen
class Sources:
    """Elements from outside, an index per rule: `at` by node, `nodes` by element."""

    at: tuple[Index, ...]
    nodes: tuple[Index, ...]

    def brings(self, node: Value, element: Value) -> bool:
        return any(element in index.get(node, NOTHING) for index in self.at)

    def together(self) -> PairFacts:
        """All elements of sources, by node.  Sets may be those of the indexes."""
        out: PairFacts = {}
        for index in self.at:
            for node, values in index.items():
                out[node] = out[node] | values if node in out else values
        return out

    def not_brought(self, nodes: Collection[Value], elements: ValueSet) -> ValueSet:
        """The elements that no source brings to any of the nodes."""
        if len(elements) < len(nodes):
            return {
                one for one in elements if all(index.get(one, NOTHING).isdisjoint(nodes) for index in self.nodes)
            }
        left = elements
        for index in self.at:
            left = without_any(left, map(index.get, nodes))
        return left


def without_any(elements: ValueSet, sets: Iterable[ValueSet | None]) -> ValueSet:
    """Some elements without those of other sets.

    >>> sorted(without_any({1, 2, 3}, [{1}, None, {3, 4}]))
    [2]

    Cost: of each set the smaller of its size and that of what is left.
    """
    left = elements.copy()
    for values in filter(None, sets):
        if len(values) > len(left):
            left = left - values
        else:
            left -= values
        if not left:
            break
    return left
