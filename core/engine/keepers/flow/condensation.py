"""Strongly connected components of a changing graph, in an order that its steps follow.

What flows along the steps of a graph is the same for all nodes that lead to each other, and may be
settled from the sources on, component by component.  So one wants to know the components at any
time, and an order of them in which no step leads back.

*A step goes* from u to v inside a component: it stays whole exactly if u still leads to v, which
two searches find out, one from either side, the smaller one first.  If not, one of them has found a
part that fell off, and its neighbours tell whether others did; the parts take places between that
of the whole and the next one.

*A step comes* from u to v in another component: if v's place is the later one, nothing is to be
done.  Otherwise there are two ways out: what v leads to before u's place may move behind u, or what
leads to u behind v's place may move ahead of v.  Both are searched for side by side, and the one
that is found first, at less cost, moves.  If v leads to u, what lies on a way between them becomes
one component.

The graph itself lives elsewhere (in tables): it is asked for the nodes after and before a node, and
shows the state after all changes of a step.

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

_FEW = 32  # searches, up to which they are tried before a whole component is gone through
_MANY = 64  # nodes, from which on a large component is looked for before all are sorted


class Steps(Protocol):
    """A graph: the nodes one step after and before a node, or any of several."""

    def after(self, node: Value) -> set[Value]: ...
    def before(self, node: Value) -> set[Value]: ...
    def after_any(self, nodes: Iterable[Value]) -> set[Value]: ...
    def before_any(self, nodes: Iterable[Value]) -> set[Value]: ...
    def nodes(self) -> Iterable[Value]: ...


Links = dict[Component, list[Component]]
AnyNext = Callable[[Iterable[Value]], set[Value]]  # the nodes next to any of some


class Condensation:
    """Invariants:
    I1  `of` has each node that some step touches, in the component that has it;
    I2  the nodes of a component lead to each other, and those of different ones do not;
    I3  a step from one component to another leads to a later place; no two are at one place;
    I4  `together` has the nodes of all components that have several;
    I5  `leads_to` and `comes_from`, where they are there, have the nodes one step away.
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
        """The components that a step from this one leads to."""
        of = self.of
        return {of[node] for node in self.nodes_after(component)}

    def before(self, component: Component) -> Iterable[Component]:
        """The components that a step to this one comes from."""
        of = self.of
        return {of[node] for node in self.nodes_before(component)}

    def nodes_after(self, component: Component) -> set[Value]:
        """The nodes of other components that a step from this one leads to; nobody changes them."""
        nodes = component.nodes
        if len(nodes) == 1:
            (node,) = nodes
            found = self.steps.after(node)
            return found.difference(nodes) if node in found else found
        if component.leads_to is None:
            component.leads_to = self.steps.after_any(nodes).difference(nodes)
        return component.leads_to

    def nodes_before(self, component: Component) -> set[Value]:
        """The nodes of other components that a step to this one comes from; nobody changes them."""
        nodes = component.nodes
        if len(nodes) == 1:
            (node,) = nodes
            found = self.steps.before(node)
            return found.difference(nodes) if node in found else found
        if component.comes_from is None:
            component.comes_from = self.steps.before_any(nodes).difference(nodes)
        return component.comes_from

    def _step_went(self, start: Value, end: Value) -> None:
        """Keep in mind what lies around components: there is no step between these nodes any more."""
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
        """Some nodes are no longer part of a component."""
        steps = self.steps
        component.nodes = nodes = set(component.nodes) - lost  # a new set: the old one may stand in what was told
        if component.leads_to is not None:
            around = steps.after_any(lost)
            component.leads_to -= {node for node in around if steps.before(node).isdisjoint(nodes)}
            component.leads_to |= {node for node in lost if not steps.before(node).isdisjoint(nodes)}
        if component.comes_from is not None:
            around = steps.before_any(lost)
            component.comes_from -= {node for node in around if steps.after(node).isdisjoint(nodes)}
            component.comes_from |= {node for node in lost if not steps.after(node).isdisjoint(nodes)}

    # ── steps that go ────────────────────────────────────────────────────────────────────────

    def remove(self, gone: Collection[tuple[Value, Value]]) -> list[list[Component]]:
        """Follow steps that went; the parts of each component that broke, largest first."""
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
            # as many searches as there are nodes would be more than sorting them anew
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

        No simple way to its start, and none from its end, took that step: so its end still leads to
        every node, and every node to its start.  Unless the start leads to the end, what leads to
        the end (`back`) is one component therefore, what the start leads to (`forth`) is another,
        and the rest lies between them.
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
        # Both have fallen off, and perhaps more at either side of what lies between them.
        rest = nodes - forth - back
        anchor = next(iter(rest), start)
        led = self._held(rest | forth, forth, anchor, before) if rest else None
        held = self._held(led | back, back, anchor, after) if led else None
        if led is None or held is None:
            return [back, *self._sorted(rest), forth]
        return [back, *self._sorted(led - held), held, *self._sorted(rest - led), forth]

    def _held(self, nodes: set[Value], fallen: set[Value], anchor: Value, next_to: AnyNext) -> set[Value] | None:
        """What holds together when nodes next to a lost step fall off a component.

        From elsewhere nothing but that step led into what fell off at its end: so all nodes hold
        together that the `anchor`, its start or any other node that did not fall off, still leads
        to; and it leads to all if it leads to the neighbours of what fell off.  If it fell off at
        the step's start, the same is true of what leads to the anchor.  None if nobody knows: the
        anchor itself may be about to fall off.
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
                    if by_forth is forwards:  # it is the anchor that leads nowhere, or that nothing leads to
                        return None
                    new |= back if forwards else forth
            held -= new
        return held

    def _broken(self, component: Component, lost: Iterable[tuple[Value, Value]]) -> bool:
        """Whether a component is no longer whole, now that steps inside of it are gone."""
        nodes = set(component.nodes)
        return any(self._search(nodes, start, end) is not None for start, end in lost)

    def _search(self, nodes: set[Value], start: Value, end: Value) -> tuple[set[Value], set[Value], bool] | None:
        """None if a node leads to another inside of `nodes`.

        If not, what the first leads to and what leads to the second, as far as they are known: one
        is complete, the first one if the answer says True.
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

        Where there is a large one, it is found faster by what leads to one of its nodes, and what
        this leads to.
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
        """The parts of a component that is no longer whole, given in order; the largest one first.

        It goes on as what the whole was.
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

    # ── steps that come ──────────────────────────────────────────────────────────────────────

    def add(self, new: Collection[tuple[Value, Value]]) -> list[Component]:
        """Follow steps that came; the components that were made of several."""
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
        """Make room for a step from `tail` back to `head`; their component, if they are one."""
        forwards, found, links = self._nearer(tail, head)
        at, room = (tail, self.places.behind) if forwards else (head, self.places.ahead)
        circle = _linked(at, links) if at in found else set()
        found -= circle
        self.places.move(found, room(at, len(found)))
        return self._merge(circle, at) if circle else None

    def _nearer(self, tail: Component, head: Component) -> tuple[bool, set[Component], Links]:
        """What `head` leads to before `tail`, or the reverse: the cheaper of the two.

        True for the first.  Both are searched for side by side, until one of them is complete;
        nothing beyond the other end is wanted, so that is not gone on from.  Links lead back to
        where a search has come from.
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
        """One component of several, at the place of one: the largest one takes in the others."""
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
