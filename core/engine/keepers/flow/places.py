"""An order of components under moves: each has a number, with gaps between them.

Only numbers are compared, so moving one component touches no other.  When a gap is full, all
components get new places, evenly spaced; that is rare.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from sortedcontainers import SortedDict

from everlog.core.program import Value

GAP = 1 << 512  # between two places at first: room for some eighty moves between the last two
SHARE = 64  # a move takes this part of a gap: thousands of moves to the same place fit


class Component:
    """Nodes that reach each other.

    `parts` is not empty while the component consists of several that were separate before the
    present changes.  `leads_to` and `comes_from` cache the neighbours of a component with several
    nodes.
    """

    __slots__ = ("comes_from", "leads_to", "nodes", "parts", "place")

    def __init__(self, nodes: Collection[Value], place: int = 0) -> None:
        self.nodes, self.place = nodes, place  # nodes are a set, or a tuple of one
        self.parts: list[Collection[Value]] = []
        self.leads_to: set[Value] | None = None
        self.comes_from: set[Value] | None = None

    def __lt__(self, other: Component) -> bool:
        return self.place < other.place


class Places:
    """Invariant: each component is at its own place."""

    def __init__(self, components: Iterable[Component]) -> None:
        """The components in their order."""
        self._at: SortedDict[int, Component] = SortedDict()
        self._spread(components)

    def __iter__(self) -> Iterator[Component]:
        return iter(self._at.values())

    def put(self, component: Component, place: int) -> None:
        component.place = place
        self._at[place] = component

    def remove(self, component: Component) -> None:
        del self._at[component.place]

    def last(self) -> int:
        """A place behind all others."""
        return int(self._at.peekitem()[0]) + GAP if self._at else GAP

    def behind(self, component: Component, number: int) -> list[int]:
        """Free places between a component and the next one.  Cost: usually logarithmic."""
        at = self._at.bisect_right(component.place)
        gap = self._at.keys()[at] - component.place if at < len(self._at) else GAP
        if gap <= number:
            self._spread(list(self))
            gap = GAP
        share = _share(gap, number)  # near the next one: later moves behind this one need room, too
        return _evenly(component.place + gap - share, share, number)

    def ahead(self, component: Component, number: int) -> list[int]:
        """Free places between a component and the one before.  Cost: usually logarithmic."""
        at = self._at.bisect_left(component.place)
        gap = component.place - self._at.keys()[at - 1] if at else GAP
        if gap <= number:
            self._spread(list(self))
            gap = GAP
        return _evenly(component.place - gap, _share(gap, number), number)

    def move(self, components: Iterable[Component], places: Iterable[int]) -> None:
        """Move components to other places, in their present order."""
        moved = sorted(components)
        for component in moved:
            self.remove(component)
        for component, place in zip(moved, places, strict=True):
            self.put(component, place)

    def _spread(self, components: Iterable[Component]) -> None:
        self._at.clear()
        for number, component in enumerate(components, 1):
            component.place = number * GAP
        self._at.update({component.place: component for component in components})


def _share(gap: int, number: int) -> int:
    """The room that some places take of a gap."""
    return gap // SHARE if gap // SHARE > number else gap


def _evenly(start: int, room: int, number: int) -> list[int]:
    """
    >>> _evenly(100, 40, 3)
    [110, 120, 130]
    """
    return [start + room // (number + 1) * (n + 1) for n in range(number)]
