"""The layout of a rule graph: a layered drawing, for a graph with cycles.

The graph is drawn from left to right, a relation before its readers.  Relations in a cycle cannot
be ordered so; therefore the strongly connected components are layered, and the members of one share
a layer, one below another.  An arrow over several layers crosses each at its own place, shared by
all arrows of its kind from the same relation, so that all links connect neighbouring layers.  Then,
as in Sugiyama's method, each layer is sorted by the median of its neighbours, back and forth, and
the order with fewest crossings wins; in that order every node moves as near to its neighbours as
the distances allow, by isotonic regression.

Sources: Sugiyama, Tagawa, Toda, IEEE Trans. SMC 11(2), 1981; pool adjacent violators: Ayer et al.
1955.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from attrs import frozen

from everlog.core.program.dependencies import components

HEIGHT, PASSING = 46.0, 6.0  # of a box, of an arrow that crosses a layer
GAP, MEMBER_GAP, FRAME = 18.0, 34.0, 12.0  # below a box, between members of a component, around them
ROUND = 28.0  # for arrows on the right of a component, around its members
SWEEPS = 12
Node: TypeAlias = tuple[str, int, str]  # a relation in its layer; or a layer that its arrows of one kind cross
Point: TypeAlias = tuple[float, float]


@frozen
class Box:
    """A rectangle; x and y are its upper left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> Point:
        return self.x + self.width / 2, self.y + self.height / 2

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height


@frozen
class Layered:
    """A layout; `routes` maps (relation, reader) to the points of the arrow.

    Arrows inside a component have no points.  `frames` surround the components of more than one
    relation.
    """

    width: float
    height: float
    boxes: Mapping[str, Box]
    routes: Mapping[tuple[str, str], tuple[Point, ...]]
    frames: tuple[Box, ...]


def layered(widths: Mapping[str, float], reads: Mapping[str, Mapping[str, str]]) -> Layered:
    """The layout of relations with these widths, each with what it reads and how."""
    if not widths:
        return Layered(0, 0, {}, {}, ())
    groups = components(reads)
    home = {name: number for number, group in enumerate(groups) for name in group}
    layer = layers(groups, reads)
    own: dict[str, Node] = {name: (name, layer[name], "") for name in home}
    chains = {
        (read, reader): (
            own[read],
            *((read, at, use) for at in range(layer[read] + 1, layer[reader])),
            own[reader],
        )
        for reader in widths
        for read, use in reads[reader].items()
        if home[read] != home[reader]
    }
    columns: list[list[Node]] = [[] for _ in range(max(layer.values()) + 1)]
    for node in dict.fromkeys([*own.values(), *(node for chain in chains.values() for node in chain)]):
        columns[node[1]].append(node)
    links = sorted({pair for chain in chains.values() for pair in pairwise(chain)})
    real = {node: home[name] for name, node in own.items()}
    grouped = [group for group in groups if len(group) > 1]
    columns = _with_few_crossings(columns, links, real)
    centre = _settled(columns, links, real, {home[group[0]] for group in grouped})
    return _measured(widths, columns, links, chains, centre, grouped, own)


def layers(groups: Sequence[Sequence[str]], reads: Mapping[str, Collection[str]]) -> dict[str, int]:
    """The layer of each relation: after all that its component reads.

    A relation that reads nothing is just before its readers.

    >>> reads = {"a": [], "b": [], "p": ["a", "q"], "q": ["p"], "r": ["p", "b"]}
    >>> layers([["a"], ["p", "q"], ["b"], ["r"]], reads)
    {'a': 0, 'p': 1, 'q': 1, 'b': 1, 'r': 2}
    """
    layer: dict[str, int] = {}
    first_reader: dict[str, int] = {}
    for group in groups:
        read = [name for member in group for name in reads[member] if name not in group]
        at = max((layer[name] + 1 for name in read), default=0)
        layer.update(dict.fromkeys(group, at))
        for name in read:
            first_reader[name] = min(at, first_reader.get(name, at))
    for name in layer:
        if not reads[name] and name in first_reader:
            layer[name] = first_reader[name] - 1
    return layer


# ── the order within each layer ──────────────────────────────────────────────────────────────


def _with_few_crossings(
    columns: list[list[Node]], links: Sequence[tuple[Node, Node]], home: Mapping[Node, int]
) -> list[list[Node]]:
    before, after = _neighbours(links)
    best, fewest = columns, _crossings(columns, links)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        columns = [list(column) for column in columns]
        for column in columns if forward else reversed(columns):
            place = {node: at / len(row) for row in columns for at, node in enumerate(row)}
            _sort(column, before if forward else after, place, home)
        found = _crossings(columns, links)
        if found < fewest:
            best, fewest = columns, found
    return best


def _sort(
    column: list[Node],
    beside: Mapping[Node, Sequence[Node]],
    place: Mapping[Node, float],
    home: Mapping[Node, int],
) -> None:
    """Sort a layer by the median of the neighbours; components stay together."""
    middle = {}
    for node in column:
        near = beside.get(node, ())
        middle[node] = sum(place[other] for other in near) / len(near) if near else place[node]
    members: dict[int, list[float]] = {}
    for node in column:
        if node in home:
            members.setdefault(home[node], []).append(middle[node])

    def key(node: Node) -> tuple[float, int, float]:
        if node not in home:
            return middle[node], -1, place[node]
        together = members[home[node]]
        return sum(together) / len(together), home[node], middle[node]

    column.sort(key=key)


def _neighbours(links: Sequence[tuple[Node, Node]]) -> tuple[dict[Node, list[Node]], dict[Node, list[Node]]]:
    before: dict[Node, list[Node]] = {}
    after: dict[Node, list[Node]] = {}
    for left, right in links:
        before.setdefault(right, []).append(left)
        after.setdefault(left, []).append(right)
    return before, after


def _crossings(columns: Sequence[Sequence[Node]], links: Sequence[tuple[Node, Node]]) -> int:
    """The number of crossings, as inversions between neighbouring layers."""
    place = {node: at for column in columns for at, node in enumerate(column)}
    ends: dict[int, list[tuple[int, int]]] = {}
    for left, right in links:
        ends.setdefault(left[1], []).append((place[left], place[right]))
    crossed = 0
    for pairs in ends.values():
        met: list[int] = []
        for _, right_end in sorted(pairs):
            crossed += len(met) - bisect_right(met, right_end)
            insort(met, right_end)
    return crossed


# ── coordinates ──────────────────────────────────────────────────────────────────────────────


def _settled(
    columns: Sequence[Sequence[Node]],
    links: Sequence[tuple[Node, Node]],
    home: Mapping[Node, int],
    framed: set[int],
) -> dict[Node, float]:
    """The vertical position of the middle of each node."""
    before, after = _neighbours(links)

    def least_distance(upper: Node, lower: Node) -> float:
        tall = sum(HEIGHT if node in home else PASSING for node in (upper, lower)) / 2
        if home.get(upper, -1) == home.get(lower, -2):
            return tall + MEMBER_GAP
        return tall + GAP + FRAME * sum(home.get(node) in framed for node in (upper, lower))

    distances = [[least_distance(*pair) for pair in pairwise(column)] for column in columns]
    centre: dict[Node, float] = {}
    for column, gaps in zip(columns, distances, strict=True):
        centre.update(zip(column, _isotonic([0.0] * len(column), gaps), strict=True))
    for sweep in range(SWEEPS):
        rows = list(zip(columns, distances, strict=True))
        for column, gaps in rows if sweep % 2 == 0 else reversed(rows):
            wanted = []
            for node in column:
                near = (*before.get(node, ()), *after.get(node, ()))
                wanted.append(sum(centre[other] for other in near) / len(near) if near else centre[node])
            centre.update(zip(column, _isotonic(wanted, gaps), strict=True))
    return centre


def _isotonic(wanted: Sequence[float], distances: Sequence[float]) -> Iterator[float]:
    """The nearest positions, by least squares, that keep the order and the distances.

    >>> list(_isotonic([0, 0, 50], [10, 10]))
    [-5.0, 5.0, 50.0]
    """
    offset, offsets = 0.0, []
    blocks: list[tuple[float, int]] = []  # sum and number of nodes that touch each other
    for number, want in enumerate(wanted):
        offset += distances[number - 1] if number else 0.0
        offsets.append(offset)
        total, size = want - offset, 1
        while blocks and blocks[-1][0] * size >= total * blocks[-1][1]:
            more, others = blocks.pop()
            total, size = total + more, size + others
        blocks.append((total, size))
    levels = (total / size for total, size in blocks for _ in range(size))
    return (level + offset for level, offset in zip(levels, offsets, strict=True))


def _measured(
    widths: Mapping[str, float],
    columns: Sequence[Sequence[Node]],
    links: Sequence[tuple[Node, Node]],
    chains: Mapping[tuple[str, str], Sequence[Node]],
    centre: Mapping[Node, float],
    grouped: Sequence[Sequence[str]],
    own: Mapping[str, Node],
) -> Layered:
    """The layout in coordinates: all boxes of a layer are as wide as the widest."""
    half = {node: HEIGHT / 2 if node == own[node[0]] else PASSING for node in centre}
    top = min(centre[node] - half[node] for node in centre) - FRAME
    lefts, rights, x = [], [], FRAME
    for number, column in enumerate(columns):
        lefts.append(x)
        rights.append(x + max((widths[node[0]] for node in column if node == own[node[0]]), default=0.0))
        x = rights[-1] + 58 + 3 * min(14, sum(left[1] == number for left, _ in links))
    boxes = {
        name: Box(lefts[node[1]], centre[node] - HEIGHT / 2 - top, rights[node[1]] - lefts[node[1]], HEIGHT)
        for name, node in own.items()
    }
    frames = tuple(
        Box(
            boxes[group[0]].x - FRAME,
            min(boxes[name].y for name in group) - FRAME,
            boxes[group[0]].width + 2 * FRAME + (ROUND if len(group) > 2 else 0),
            max(boxes[name].bottom for name in group) - min(boxes[name].y for name in group) + 2 * FRAME,
        )
        for group in grouped
    )
    ports = _ports(boxes, chains, centre)
    routes = {}
    for (read, reader), chain in chains.items():
        passed = [(x, centre[node] - top) for node in chain[1:-1] for x in (lefts[node[1]], rights[node[1]])]
        start = boxes[read].right, boxes[read].middle[1]
        routes[read, reader] = (start, *passed, (boxes[reader].x, ports[read, reader]))
    height = max(centre[node] + half[node] for node in centre) - top + FRAME
    width = max([rights[-1], *(frame.right for frame in frames)]) + FRAME
    return Layered(width, height, boxes, routes, frames)


def _ports(
    boxes: Mapping[str, Box], chains: Mapping[tuple[str, str], Sequence[Node]], centre: Mapping[Node, float]
) -> dict[tuple[str, str], float]:
    """The height at which each arrow meets its reader's left side."""
    arriving: dict[str, list[tuple[float, str]]] = {}
    for (read, reader), chain in chains.items():
        arriving.setdefault(reader, []).append((centre[chain[-2]], read))
    ports = {}
    for reader, arrows in arriving.items():
        step = min(10.0, (HEIGHT - 14) / max(1, len(arrows) - 1))
        for number, (_, read) in enumerate(sorted(arrows)):
            ports[read, reader] = boxes[reader].middle[1] + (number - (len(arrows) - 1) / 2) * step
    return ports
