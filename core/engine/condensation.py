"""The strongly connected components of a graph whose steps come and go, in an order that every step follows.

What flows along the steps of a graph is the same for all nodes that lead to each other, and may be settled from
the sources on, component by component.  So one wants to know the components at any time, and an order of them
in which no step leads back.

*A step goes* from u to v inside a component: it stays whole exactly if u still leads to v, which two searches
find out, one from either side, the smaller one first.  If not, these searches have found two of its parts, and
the parts take places between its own and the next one.

*A step comes* from u to v in another component: if v's place is the later one, nothing is to be done.
Otherwise what v leads to before u's place, and what leads to u behind v's place, changes places; what is among
both lies on a circle, and becomes one component.

The graph itself lives elsewhere (in tables): it is asked for the nodes after and before a node, and shows the
state after all changes of a step.

Reads: core.strong.  Read by: core.engine.flowing.
Source: Pearce, Kelly, A dynamic topological sort algorithm for directed acyclic graphs, JEA 11, 2006.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Protocol

from sortedcontainers import SortedList

from everlog.core.strong import strong_components

_GAP = 1 << 128  # between two places at first: room for a hundred splits, one inside the other


class Steps(Protocol):
    """A graph: the nodes that one step leads to, and those it comes from; of one node, or of any of several."""

    def after(self, node: Any) -> Collection[Any]: ...
    def before(self, node: Any) -> Collection[Any]: ...
    def after_any(self, nodes: Iterable[Any]) -> set[Any]: ...
    def before_any(self, nodes: Iterable[Any]) -> set[Any]: ...
    def nodes(self) -> Iterable[Any]: ...


class Component:
    """Nodes that lead to each other.

    `parts` is not empty while the component is made of several that were apart before the present changes.
    """

    __slots__ = ("nodes", "parts", "place")

    def __init__(self, nodes: Collection[Any], place: int) -> None:
        self.nodes, self.place = nodes, place  # nodes are a set, or one alone in a tuple
        self.parts: list[Collection[Any]] = []

    def __lt__(self, other: Component) -> bool:
        return self.place < other.place


class Condensation:
    """Invariants:
    I1  `of` has each node that some step touches, in the component that has it;
    I2  the nodes of a component lead to each other, and those of different ones do not;
    I3  a step from one component to another leads to a later place; no two are at one place.
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.of: dict[Any, Component] = {}
        groups = strong_components(steps.nodes(), steps.after)
        place = 0
        for group in reversed(groups):
            place += _GAP
            self._make(group, place)
        self.places = SortedList(range(_GAP, place + 1, _GAP))

    def _make(self, nodes: Collection[Any], place: int) -> Component:
        component = Component(set(nodes) if len(nodes) > 1 else tuple(nodes), place)
        for node in nodes:
            self.of[node] = component
        return component

    # ── neighbours ───────────────────────────────────────────────────────────────────────────

    def after(self, component: Component) -> Iterable[Component]:
        """The components that a step from this one leads to."""
        return self._others(component, self.steps.after, self.steps.after_any)

    def before(self, component: Component) -> Iterable[Component]:
        """The components that a step to this one comes from."""
        return self._others(component, self.steps.before, self.steps.before_any)

    def _others(
        self, component: Component, of_one: Callable[[Any], Collection[Any]], of_any: Callable[[Any], set[Any]]
    ) -> Iterable[Component]:
        nodes, of = component.nodes, self.of
        if len(nodes) == 1:
            (node,) = nodes
            return [there for other in of_one(node) if (there := of[other]) is not component]
        return {of[other] for other in of_any(nodes).difference(nodes)}

    # ── steps that go ────────────────────────────────────────────────────────────────────────

    def remove(self, gone: Iterable[tuple[Any, Any]]) -> None:
        """Follow steps that went."""
        inside: dict[Component, list[tuple[Any, Any]]] = {}
        touched: set[Any] = set()
        for start, end in gone:
            touched.add(start)
            touched.add(end)
            if len(self.of[start].nodes) > 1 and self.of[start] is self.of[end]:
                inside.setdefault(self.of[start], []).append((start, end))
        for component, lost in inside.items():
            if len(lost) == 1:
                self._cut(component, *lost[0])
            # as many searches as there are nodes would be more than sorting them anew
            elif len(lost) * 16 > len(component.nodes) or any(self._parted(component, *one) for one in lost):
                self._split(component)
        for node in touched:
            if not self.steps.after(node) and not self.steps.before(node):
                self.places.remove(self.of.pop(node).place)

    def _cut(self, component: Component, start: Any, end: Any) -> None:
        """One step inside of a component went.

        No simple way to its start, and none from its end, took that step: so its end still leads to every node,
        and every node to its start.  Unless the start leads to the end, what leads to the end is therefore
        one component, what the start leads to is another, and the rest lies between them.
        """
        found = self._parted(component, start, end)
        if found is not None:
            assert isinstance(component.nodes, set)
            forth, back = found
            self._replace(component, [back, *self._sorted(component.nodes - forth - back), forth])

    def _parted(self, component: Component, start: Any, end: Any) -> tuple[set[Any], set[Any]] | None:
        """What a node leads to inside of a component, and what leads to another; None as soon as these meet."""
        nodes, after, before = component.nodes, self.steps.after_any, self.steps.before_any
        assert isinstance(nodes, set)
        forth, back = {start}, {end}
        new_forth, new_back = forth, back
        while new_forth or new_back:
            if new_forth and (len(new_forth) <= len(new_back) or not new_back):
                new_forth = (after(new_forth) & nodes) - forth
                if not new_forth.isdisjoint(back):
                    return None
                forth = forth | new_forth
            else:
                new_back = (before(new_back) & nodes) - back
                if not new_back.isdisjoint(forth):
                    return None
                back = back | new_back
        return forth, back

    def _split(self, component: Component) -> None:
        """Several steps inside of a component went: its nodes are sorted anew."""
        assert isinstance(component.nodes, set)
        groups = self._sorted(component.nodes)
        if len(groups) > 1:
            self._replace(component, groups)

    def _sorted(self, nodes: set[Any]) -> list[list[Any]]:
        """The components of some nodes among themselves, in order."""
        after = self.steps.after
        return strong_components(nodes, lambda node: nodes.intersection(after(node)))[::-1]

    def _replace(self, component: Component, groups: Sequence[Collection[Any]]) -> None:
        if self._next(component.place) - component.place <= len(groups):
            self._renumber()
        room = (self._next(component.place) - component.place) // len(groups)
        self.places.remove(component.place)
        for number, group in enumerate(groups):
            place = component.place + number * room
            self._make(group, place)
            self.places.add(place)

    def _next(self, place: int) -> int:
        """The place behind this one; of the last one, some way off."""
        at = self.places.bisect_right(place)
        return int(self.places[at]) if at < len(self.places) else place + _GAP

    def _renumber(self) -> None:
        """As much room as at first between any two."""
        by_place = sorted(set(self.of.values()))
        for number, component in enumerate(by_place, 1):
            component.place = number * _GAP
        self.places = SortedList(component.place for component in by_place)

    # ── steps that come ──────────────────────────────────────────────────────────────────────

    def add(self, new: Collection[tuple[Any, Any]]) -> list[Component]:
        """Follow steps that came; the components that were made of several."""
        of = self.of
        merged: dict[Component, None] = {}
        for node in chain.from_iterable(new):
            if node not in of:
                place = self._next(self.places[-1]) if self.places else _GAP
                self._make((node,), place)
                self.places.add(place)
        for start, end in new:
            tail, head = of[start], of[end]
            if tail.place > head.place:
                found = self._reorder(tail, head)
                if found is not None:
                    merged[found] = None
        return [one for one in merged if one.parts and of[next(iter(one.nodes))] is one]

    def _reorder(self, tail: Component, head: Component) -> Component | None:
        """Make room for a step from `tail` back to `head`; the component that has become of both, if one has."""
        behind = self._reached(head, self.after, lambda one: head.place <= one.place <= tail.place)
        ahead = self._reached(tail, self.before, lambda one: head.place <= one.place <= tail.place)
        circle = behind & ahead
        pool = sorted(one.place for one in behind | ahead)
        lower, upper = sorted(ahead - circle), sorted(behind - circle)
        for component, place in zip(lower, pool, strict=False):
            component.place = place
        for component, place in zip(reversed(upper), reversed(pool), strict=False):
            component.place = place
        if not circle:
            return None
        left = pool[len(lower) : len(pool) - len(upper)]
        for place in left[1:]:
            self.places.remove(place)
        return self._merge(circle, left[0])

    @staticmethod
    def _reached(
        start: Component, next_to: Callable[[Component], Iterable[Component]], allowed: Callable[[Component], bool]
    ) -> set[Component]:
        found = {start}
        waiting = [start]
        while waiting:
            for other in next_to(waiting.pop()):
                if other not in found and allowed(other):
                    found.add(other)
                    waiting.append(other)
        return found

    def _merge(self, circle: set[Component], place: int) -> Component:
        """One component of several: the largest one takes in the others."""
        whole = max(circle, key=lambda one: len(one.nodes))
        circle.remove(whole)
        parts, nodes = whole.parts or [whole.nodes], set(whole.nodes)
        for other in circle:
            parts += other.parts or [other.nodes]
            nodes.update(other.nodes)
            for node in other.nodes:
                self.of[node] = whole
        whole.nodes, whole.parts, whole.place = nodes, parts, place
        return whole

    # ── for tests ────────────────────────────────────────────────────────────────────────────

    def components(self) -> Iterator[Component]:
        return iter(set(self.of.values()))

    def check(self) -> None:
        """Assert every invariant."""
        nodes = {node for one in self.steps.nodes() for node in (one, *self.steps.after(one))}
        assert nodes == set(self.of), "I1: other nodes"
        groups = {frozenset(group) for group in strong_components(self.steps.nodes(), self.steps.after)}
        assert groups == {frozenset(one.nodes) for one in self.components()}, "I2: other components"
        for node in nodes:
            for other in self.steps.after(node):
                here, there = self.of[node], self.of[other]
                assert here is there or here.place < there.place, "I3: a step leads back"
        assert sorted(one.place for one in self.components()) == list(self.places), "I3: places"
