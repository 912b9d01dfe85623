"""Join trees, decompositions and variable orders as inline SVG.

All three are forests whose nodes have variables and atoms; they differ in the edges.  A node is as
wide as its text, a subtree as wide as its children, and a parent is centred above them.  Trees may
be as deep as a rule is long, so nothing here recurses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from everlog.explain.drawing import LONGEST, SMALLEST, scrolling, short, svg, wide
from everlog.explain.markup import Html, element, together
from everlog.explain.tree_layout import Box

PHONE = 300  # pixels that every screen has


@frozen
class Bag:
    """A node of a tree: its variables, its atoms, and what it shares with its parent."""

    variables: tuple[str, ...]
    atoms: tuple[str, ...]
    parent: int | None
    shared: tuple[str, ...] = ()


def bags_of(decomposition: Mapping[str, Any]) -> list[Bag]:
    bags = decomposition["bags"]
    found = []
    for bag in bags:
        above = () if bag["parent"] is None else bags[bag["parent"]]["variables"]
        shared = tuple(v for v in bag["variables"] if v in above)
        found.append(Bag(tuple(bag["variables"]), tuple(bag["atoms"]), bag["parent"], shared))
    return found


def order_of(roots: Sequence[Mapping[str, Any]], atoms: Sequence[Mapping[str, Any]]) -> list[Bag]:
    """A variable order as a tree; an atom's node is the one of its last variable."""
    found: list[Bag] = []
    bound: list[set[str]] = []
    waiting = list(atoms)
    nodes: list[tuple[Mapping[str, Any], int | None]] = [(root, None) for root in roots]
    for node, parent in nodes:  # grows during the iteration: breadth first
        here = set(node["variables"]) | (set() if parent is None else bound[parent])
        own = [atom for atom in waiting if here.issuperset(atom["variables"])]
        waiting = [atom for atom in waiting if not here.issuperset(atom["variables"])]
        texts = tuple(atom["text"] for atom in own)
        nodes += [(child, len(found)) for child in node["children"]]
        found.append(Bag(tuple(node["variables"]), texts, parent))
        bound.append(here)
    return found


def drawn_tree(bags: Sequence[Bag], free: Sequence[str], name: str, title: str) -> Html:
    """Boxes with atoms and variables, head's in bold; edges show what is shared."""
    rows = [list(_rows(bag.variables)) for bag in bags]
    sizes = [_size(bag, lines) for bag, lines in zip(bags, rows, strict=True)]
    labels = any(bag.shared for bag in bags)
    boxes = placed([bag.parent for bag in bags], sizes, drop=46 if labels else 30)
    edges = [
        edge(boxes[bag.parent], box, bag.shared)
        for bag, box in zip(bags, boxes, strict=True)
        if bag.parent is not None
    ]
    nodes = [_bag(bag, lines, box, free) for bag, lines, box in zip(bags, rows, boxes, strict=True)]
    width = max(box.right for box in boxes) + 4
    drawing = svg(
        width,
        max(box.bottom for box in boxes) + 4,
        element("title", title, id=f"{name}-title"),
        element("desc", " ".join(tree_lines(bags)), id=f"{name}-desc"),
        element("g", *edges, *nodes, transform="translate(2 2)"),
        class_="tree",
        role="img",
        aria_labelledby=f"{name}-title",
        aria_describedby=f"{name}-desc",
    )
    return scrolling(drawing, title) if width * SMALLEST > PHONE else drawing


def tree_lines(bags: Sequence[Bag]) -> Iterator[str]:
    """A tree in words, one sentence per node."""
    for bag in bags:
        words = f"{', '.join(bag.variables) or 'No variables'}"
        if bag.parent is not None:
            words += f", below {', '.join(bags[bag.parent].variables)}"
        if bag.shared:
            words += f", sharing {', '.join(bag.shared)}"
        yield words + (f": {', '.join(bag.atoms)}." if bag.atoms else ".")


def _rows(variables: Sequence[str]) -> Iterator[list[str]]:
    """Variables in lines of a readable length."""
    row: list[str] = []
    for variable in variables:
        if row and len(", ".join([*row, variable])) > LONGEST:
            yield row
            row = []
        row.append(variable)
    if row:
        yield row


def _size(bag: Bag, rows: Sequence[Sequence[str]]) -> tuple[float, float]:
    widest = max(
        [wide(", ".join(row)) for row in rows] + [wide(short(atom, 44)) * 0.93 for atom in bag.atoms] + [24]
    )
    tall = 14 + 19 * len(rows) + (17 * len(bag.atoms) + 10 if bag.atoms else 0)
    return widest + 28, float(tall)


def _bag(bag: Bag, rows: Sequence[Sequence[str]], box: Box, free: Sequence[str]) -> Html:
    middle, y = box.middle[0], box.y + 2
    parts = [element("rect", class_="bag", x=box.x, y=box.y, width=box.width, height=box.height, rx=10)]
    for row in rows:
        y += 19
        spans = [element("tspan", v, class_="free" if v in free else "bound") for v in row]
        parts.append(
            element("text", together(spans, ", "), class_="variables", x=middle, y=y, text_anchor="middle")
        )
    if bag.atoms:
        parts.append(element("path", class_="rule", d=f"M{box.x:.1f} {y + 9:.1f}h{box.width:.1f}"))
        y += 10
    for atom in bag.atoms:
        y += 17
        parts.append(element("text", short(atom, 44), class_="atom", x=middle, y=y, text_anchor="middle"))
    return element("g", *parts)


def edge(parent: Box, child: Box, shared: Sequence[str] = ()) -> Html:
    """A curve from a box to one below, with what they share."""
    (x, y), (to_x, to_y) = (parent.middle[0], parent.bottom), (child.middle[0], child.y)
    half = (y + to_y) / 2
    line = f"M{x:.1f} {y:.1f}C{x:.1f} {half:.1f} {to_x:.1f} {half:.1f} {to_x:.1f} {to_y:.1f}"
    parts = [element("path", class_="branch", d=line)]
    if shared:
        label = short(", ".join(shared))
        at = ((x + 2 * to_x) / 3 if x != to_x else x, half + (5 if x != to_x else 0))
        width = wide(label) * 0.86 + 12
        parts.append(
            element("rect", class_="label", x=at[0] - width / 2, y=at[1] - 9, width=width, height=18, rx=9)
        )
        parts.append(element("text", label, class_="shared", x=at[0], y=at[1] + 4, text_anchor="middle"))
    return element("g", *parts)


def placed(
    parents: Sequence[int | None], sizes: Sequence[tuple[float, float]], gap: float = 24.0, drop: float = 44.0
) -> list[Box]:
    """The boxes of a forest, roots on top, each parent centred above its children.

    >>> boxes = placed([None, 0, 0], [(10, 5), (10, 5), (10, 5)], gap=2, drop=20)
    >>> [(box.x, box.y) for box in boxes]
    [(6.0, 0.0), (0.0, 25.0), (12.0, 25.0)]
    """
    children: dict[int | None, list[int]] = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    order, depth = list(children.get(None, ())), dict.fromkeys(children.get(None, ()), 0)
    for node in order:  # grows during the iteration: breadth first
        order += children.get(node, ())
        depth.update(dict.fromkeys(children.get(node, ()), depth[node] + 1))
    span = dict.fromkeys(order, 0.0)
    for node in reversed(order):
        below = children.get(node, ())
        span[node] = max(sizes[node][0], sum(span[child] for child in below) + gap * (len(below) - 1))
    tops, y = [], 0.0
    for level in range(max(depth.values(), default=-1) + 1):
        tops.append(y)
        y += max(sizes[node][1] for node in order if depth[node] == level) + drop
    left: dict[int, float] = {}
    for parent in (None, *order):
        below = children.get(parent, ())
        x = 0.0
        if parent is not None:
            wide = sum(span[child] for child in below) + gap * (len(below) - 1)
            x = left[parent] + (span[parent] - wide) / 2
        for child in below:
            left[child] = x
            x += span[child] + gap
    return [
        Box(left[node] + (span[node] - sizes[node][0]) / 2, tops[depth[node]], *sizes[node])
        for node in range(len(parents))
    ]
