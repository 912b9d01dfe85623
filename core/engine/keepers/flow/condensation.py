"""Strongly connected components of a changing graph, in topological order.

Nodes that reach each other have the same set of a flow, and components can be settled one by one
from the sources on.  So the keeper needs the components at any time, in an order in which no step
leads back.

*A step from u to v is deleted* inside a component: it stays whole exactly if u still reaches v.
Two searches decide that, one from either side, the smaller one first.  If not, one of them has
found a part that split off, and its neighbours tell whether others did; the parts take places
between that of the whole and the next one.

*A step from u to v is inserted*, v in another component: if v's place is later, nothing changes.
Otherwise either the components that v reaches before u's place move behind u, or those that reach u
behind v's place move ahead of v.  Both are searched for side by side, and the set that is complete
first, at less cost, moves.  If v reaches u, the components on a path between them become one.

The graph itself is in tables: it has the nodes after and before a node, in the state after all
changes of a step.

Sources: Pearce, Kelly, A dynamic topological sort algorithm for directed acyclic graphs, JEA 11,
2006; Bender, Fineman, Gilbert, Tarjan, A new approach to incremental cycle detection, TALG 12(2),
2015.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol

from everlog.core.engine.keepers.flow.places import Component, Places
from everlog.core.program import Value
from everlog.core.program.strong import strong_components

_FEW = 32  # searches to try before a whole component is sorted
_MANY = 64  # nodes from which a large component is searched for before all are sorted


class Steps(Protocol):
    """A graph: the nodes one step after and before a node, or any of several."""

    def after(self, node: Value) -> set[Value]: ...
    def before(self, node: Value) -> set[Value]: ...
    def after_any(self, nodes: Iterable[Value]) -> set[Value]: ...
    def before_any(self, nodes: Iterable[Value]) -> set[Value]: ...
    def nodes(self) -> Iterable[Value]: ...


Links = dict[Component, list[Component]]
AnyNext = Callable[[Iterable[Value]], set[Value]]  # the nodes next to any of these


class Condensation:
    """The components of a changing graph, and their order.

    Invariants:
      I1  `of` maps each node of a step to its component;
      I2  the nodes of a component reach each other, and those of different ones do not;
      I3  a step between components leads to a later place; no two have the same place;
      I4  `together` has the nodes of all components with several nodes;
      I5  `leads_to` and `comes_from`, if not None, have the nodes one step away.
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.of: dict[Value, Component] = {}
        self.together: set[Value] = set()
        groups = strong_components(steps.nodes(), steps.after)
        self.places = Places([self._make(group) for group in reversed(groups)])

    def _make(self, nodes: Collection[Value]) -> Component:
        component = Component(set(nodes) if len(nodes) > 1 else tuple(nodes))
        self.of.update(dict.fromkeys(nodes, component))
        if len(nodes) > 1:
            self.together.update(nodes)
        else:
            self.together.difference_update(nodes)
        return component

    # ── neighbours ───────────────────────────────────────────────────────────────────────────

    def after(self, component: Component) -> Iterable[Component]:
        """The components one step after this one."""
        of = self.of
        return {of[node] for node in self.nodes_after(component)}

    def before(self, component: Component) -> Iterable[Component]:
        """The components one step before this one."""
        of = self.of
        return {of[node] for node in self.nodes_before(component)}

    def nodes_after(self, component: Component) -> set[Value]:
        """The nodes of other components one step after this one; read-only."""
        nodes = component.nodes
        if len(nodes) == 1:
            (node,) = nodes
            found = self.steps.after(node)
            return found.difference(nodes) if node in found else found
        if component.leads_to is None:
            component.leads_to = self.steps.after_any(nodes).difference(nodes)
        return component.leads_to

    def nodes_before(self, component: Component) -> set[Value]:
        """The nodes of other components one step before this one; read-only."""
        nodes = component.nodes
        if len(nodes) == 1:
            (node,) = nodes
            found = self.steps.before(node)
            return found.difference(nodes) if node in found else found
        if component.comes_from is None:
            component.comes_from = self.steps.before_any(nodes).difference(nodes)
        return component.comes_from

    def _step_went(self, start: Value, end: Value) -> None:
        """Update the neighbours of components after a step was deleted."""
        tail, head = self.of[start], self.of[end]
        if tail is not head:
            if tail.leads_to is not None and self.steps.before(end).isdisjoint(tail.nodes):
                tail.leads_to.discard(end)
            if head.comes_from is not None and self.steps.after(start).isdisjoint(head.nodes):
                head.comes_from.discard(start)

    def _step_came(self, start: Value, end: Value) -> None:
        tail, head = self.of[start], self.of[end]
        if tail is not head:
            if tail.leads_to is not None:
                tail.leads_to.add(end)
            if head.comes_from is not None:
                head.comes_from.add(start)

    def _shrink(self, component: Component, lost: set[Value]) -> None:
        """Remove nodes from a component."""
        steps = self.steps
        component.nodes = nodes = set(component.nodes) - lost  # a new set: reported changes use the old
        if component.leads_to is not None:
            around = steps.after_any(lost)
            component.leads_to -= {node for node in around if steps.before(node).isdisjoint(nodes)}
            component.leads_to |= {node for node in lost if not steps.before(node).isdisjoint(nodes)}
        if component.comes_from is not None:
            around = steps.before_any(lost)
            component.comes_from -= {node for node in around if steps.after(node).isdisjoint(nodes)}
            component.comes_from |= {node for node in lost if not steps.after(node).isdisjoint(nodes)}

    # ── deleted steps ────────────────────────────────────────────────────────────────────────

    def remove(self, gone: Collection[tuple[Value, Value]]) -> list[list[Component]]:
        """Follow deleted steps; return the parts of each broken component, largest first."""
        inside: dict[Component, list[tuple[Value, Value]]] = {}
        touched: set[Value] = set()
        for start, end in gone:
            touched.add(start)
            touched.add(end)
            self._step_went(start, end)
            if len(self.of[start].nodes) > 1 and self.of[start] is self.of[end]:
                inside.setdefault(self.of[start], []).append((start, end))
        split = []
        for component, lost in inside.items():
            if len(lost) == 1:
                groups = self._cut(component, *lost[0])
            # a search per step would cost more than sorting all nodes again
            elif len(lost) * 16 > len(component.nodes) or self._broken(component, lost):
                groups = self._sorted(set(component.nodes))
            else:
                continue
            if len(groups) > 1:
                split.append(self._replace(component, groups))
        for node in touched:
            if not self.steps.after(node) and not self.steps.before(node):
                self.places.remove(self.of.pop(node))
        return split

    def _cut(self, component: Component, start: Value, end: Value) -> Sequence[Collection[Value]]:
        """The parts, in order, into which a component breaks when one inner step goes.

        No simple path to its start, and none from its end, uses that step: so its end still reaches
        every node, and every node reaches its start.  Unless the start reaches the end, the nodes
        that reach the end (`back`) are one component, those that the start reaches (`forth`) are
        another, and the rest lies between them.
        """
        nodes, after, before = component.nodes, self.steps.after_any, self.steps.before_any
        assert isinstance(nodes, set)
        found = self._search(nodes, start, end)
        if found is None:
            return ()
        forth, back, by_forth = found
        if by_forth:
            held = self._held(nodes, forth, end, before)
            if held is not None:
                return [held, *self._sorted(nodes - held - forth), forth]
            back = self._within(nodes - forth, end, before)
        else:
            held = self._held(nodes, back, start, after)
            if held is not None:
                return [back, *self._sorted(nodes - held - back), held]
            forth = self._within(nodes - back, start, after)
        # Both have split off, and perhaps more at either side of the rest.
        rest = nodes - forth - back
        anchor = next(iter(rest), start)
        led = self._held(rest | forth, forth, anchor, before) if rest else None
        held = self._held(led | back, back, anchor, after) if led else None
        if led is None or held is None:
            return [back, *self._sorted(rest), forth]
        return [back, *self._sorted(led - held), held, *self._sorted(rest - led), forth]

    def _held(self, nodes: set[Value], fallen: set[Value], anchor: Value, next_to: AnyNext) -> set[Value] | None:
        """The nodes that stay connected when nodes next to a lost step split off.

        Only that step led into the nodes that split off at its end.  So all nodes stay connected
        that the `anchor`, its start or any other remaining node, still reaches; and it reaches all
        if it reaches the neighbours of what split off.  If nodes split off at the step's start, the
        same holds for the nodes that reach the anchor.  None if unknown: the anchor itself may
        split off.
        """
        forwards = next_to == self.steps.after_any
        held, new = nodes - fallen, fallen
        while new:
            neighbours = next_to(new) & held
            if len(neighbours) > _FEW:
                return None
            new = set()
            for node in neighbours:
                if node in new:
                    continue
                found = self._search(held, *((anchor, node) if forwards else (node, anchor)))
                if found is not None:
                    forth, back, by_forth = found
                    if by_forth is forwards:  # the search from the anchor ended: it is cut off itself
                        return None
                    new |= back if forwards else forth
            held -= new
        return held

    def _broken(self, component: Component, lost: Iterable[tuple[Value, Value]]) -> bool:
        """Whether a component is no longer connected without these inner steps."""
        nodes = set(component.nodes)
        return any(self._search(nodes, start, end) is not None for start, end in lost)

    def _search(self, nodes: set[Value], start: Value, end: Value) -> tuple[set[Value], set[Value], bool] | None:
        """None if a node reaches another within `nodes`; else what either search found.

        That is: the nodes that the first reaches and those that reach the second, as far as known.
        One of them is complete: the first if the answer's last part is True.
        """
        after, before = self.steps.after_any, self.steps.before_any
        forth, back = {start}, {end}
        if start in back:
            return None
        new_forth, new_back = {start}, {end}
        while new_forth and new_back:
            if len(new_forth) <= len(new_back):
                new_forth = (after(new_forth) & nodes) - forth
                if not new_forth.isdisjoint(back):
                    return None
                forth |= new_forth
            else:
                new_back = (before(new_back) & nodes) - back
                if not new_back.isdisjoint(forth):
                    return None
                back |= new_back
        return forth, back, not new_forth

    def _sorted(self, nodes: set[Value]) -> list[Collection[Value]]:
        """The components of some nodes among themselves, in order.

        A large one is found faster as the nodes that one node reaches and is reached by.
        """
        if len(nodes) > _MANY:
            some = next(iter(nodes))
            forth = self._within(nodes, some, self.steps.after_any)
            back = self._within(nodes, some, self.steps.before_any)
            whole = forth & back
            if len(whole) * 2 > len(nodes):
                rest = nodes - forth - back
                return [*self._sorted(back - whole), whole, *self._sorted(rest), *self._sorted(forth - whole)]
        after = self.steps.after
        return list(reversed(strong_components(nodes, lambda node: nodes.intersection(after(node)))))

    @staticmethod
    def _within(nodes: set[Value], start: Value, next_to: AnyNext) -> set[Value]:
        """The nodes within `nodes` that a node reaches, itself included; in C."""
        found, new = {start}, {start}
        while new:
            new = (next_to(new) & nodes) - found
            found |= new
        return found

    def _replace(self, component: Component, groups: Sequence[Collection[Value]]) -> list[Component]:
        """Split a component into groups, given in order; return the parts, largest first.

        The largest part keeps the identity of the whole.
        """
        behind = self.places.behind(component, len(groups) - 1)
        places = [component.place, *behind]
        self.places.remove(component)
        largest = max(groups, key=len)
        goes_on = len(largest) > 1
        if goes_on:
            self._shrink(component, set(component.nodes).difference(largest))
        made = [component if goes_on and group is largest else self._make(group) for group in groups]
        for part, place in zip(made, places, strict=True):
            self.places.put(part, place)
        return sorted(made, key=lambda part: -len(part.nodes))

    # ── inserted steps ───────────────────────────────────────────────────────────────────────

    def add(self, new: Collection[tuple[Value, Value]]) -> list[Component]:
        """Follow inserted steps; return the components that were merged."""
        of = self.of
        merged: dict[Component, None] = {}
        for node in chain.from_iterable(new):
            if node not in of:
                self.places.put(self._make((node,)), self.places.last())
        for start, end in new:
            self._step_came(start, end)
        for start, end in new:
            tail, head = of[start], of[end]
            if tail.place > head.place:
                found = self._reorder(tail, head)
                if found is not None:
                    merged[found] = None
        return [one for one in merged if one.parts and of[next(iter(one.nodes))] is one]

    def _reorder(self, tail: Component, head: Component) -> Component | None:
        """Make room for a step from `tail` back to `head`; return their merged component.

        None if they stay separate.
        """
        forwards, found, links = self._nearer(tail, head)
        at, room = (tail, self.places.behind) if forwards else (head, self.places.ahead)
        circle = _linked(at, links) if at in found else set()
        found -= circle
        self.places.move(found, room(at, len(found)))
        return self._merge(circle, at) if circle else None

    def _nearer(self, tail: Component, head: Component) -> tuple[bool, set[Component], Links]:
        """The components that `head` reaches before `tail`, or the reverse if cheaper.

        True for the first.  Both are searched for side by side, until one of them is complete; a
        search does not continue beyond the other end.  Links lead back to where a search came from.
        """
        low, high = head.place, tail.place
        forth, back = {head}, {tail}
        new_forth, new_back = [head], [tail]
        links_forth: Links = {}
        links_back: Links = {}
        cost_forth = cost_back = 0
        while new_forth and new_back:
            if cost_forth + len(new_forth[-1].nodes) <= cost_back + len(new_back[-1].nodes):
                component = new_forth.pop()
                cost_forth += len(component.nodes)
                next_to, found, new, links, end = self.after(component), forth, new_forth, links_forth, tail
            else:
                component = new_back.pop()
                cost_back += len(component.nodes)
                next_to, found, new, links, end = self.before(component), back, new_back, links_back, head
            for other in next_to:
                if low <= other.place <= high:
                    links.setdefault(other, []).append(component)
                    if other not in found:
                        found.add(other)
                        if other is not end:
                            new.append(other)
        return (False, back, links_back) if new_forth else (True, forth, links_forth)

    def _merge(self, circle: set[Component], at: Component) -> Component:
        """Merge components at the place of one of them; the largest absorbs the others."""
        place = at.place
        for other in circle:
            self.places.remove(other)
        whole = max(circle, key=lambda one: len(one.nodes))
        circle.remove(whole)
        parts, nodes = whole.parts or [whole.nodes], set(whole.nodes)
        if len(nodes) == 1:
            self.together |= nodes
        for other in circle:
            parts += other.parts or [other.nodes]
            nodes.update(other.nodes)
            self.of.update(dict.fromkeys(other.nodes, whole))
            self.together.update(other.nodes)
            if whole.leads_to is not None:
                whole.leads_to |= self.steps.after_any(other.nodes)
            if whole.comes_from is not None:
                whole.comes_from |= self.steps.before_any(other.nodes)
        for around in (whole.leads_to, whole.comes_from):
            if around is not None:
                around -= nodes
        whole.nodes, whole.parts = nodes, parts
        self.places.put(whole, place)
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
        assert sorted(self.components()) == list(self.places), "I3: places"
        assert self.together == {node for one in self.components() if len(one.nodes) > 1 for node in one.nodes}, (
            "I4"
        )
        for one in self.components():
            assert one.leads_to in (None, self.steps.after_any(one.nodes).difference(one.nodes)), "I5: after"
            assert one.comes_from in (None, self.steps.before_any(one.nodes).difference(one.nodes)), "I5: before"


def _linked(start: Component, links: Links) -> set[Component]:
    found = {start}
    waiting = [start]
    while waiting:
        for other in links.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found
