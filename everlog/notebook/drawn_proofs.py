"""Proofs as trees of boxes: the fact above, what it follows from below.

A proof may have a hundred thousand facts, and its drawing as a page has room for some dozens, so it
is drawn breadth first until it is full; a box says how much is left out.  A fact that is drawn
already is a box without branches, marked "above".  The text of the proof is below the drawing, for
those who do not see it, and for what was left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from everlog.core.proofs.missing import WhyNot
from everlog.core.proofs.proof import GIVEN, Condition, Proof
from everlog.core.proofs.render import Branch
from everlog.explain.drawing import short, svg, wide
from everlog.explain.markup import Html, element
from everlog.explain.style import scoped
from everlog.explain.tree_layout import Box
from everlog.explain.trees import edge, placed

MOST = 60  # boxes in one drawing
_WIDEST = 44  # letters in a box
SCOPE = "everlog-drawing"


class DrawnProof(Proof):
    """A proof that a notebook draws."""

    def _repr_html_(self) -> str:
        return drawn(self, f"Proof of {self.fact}", self.text())


class DrawnWhyNot(WhyNot):
    """What is missing for a fact, as a notebook draws it."""

    def _repr_html_(self) -> str:
        return drawn(self, f"Why {self.label}", self.text())


def drawn_proof(found: Proof) -> DrawnProof:
    values = (found.relation, found.row, found.fact, found.reason, found.rule, found.binding)
    return DrawnProof(*values, children=found.children, dropped=found.dropped)


def drawn_why_not(found: WhyNot) -> DrawnWhyNot:
    return DrawnWhyNot(found.relation, found.row, found.fact, found.present, found.remarks, found.attempts)


@frozen
class Node:
    """A box: its text, the note below, its kind, and its parent."""

    label: str
    note: str
    kind: str
    parent: int | None


def nodes_of(root: Branch) -> list[Node]:
    """The boxes of a proof, breadth first, at most `MOST`, and what they leave out."""
    nodes: list[Node] = []
    waiting: list[tuple[Branch, int | None]] = [(root, None)]
    seen: set[int] = set()
    for branch, parent in waiting:  # grows during the iteration
        again = id(branch) in seen and bool(branch.branches)
        seen.add(id(branch))
        kind, note = _kind(branch)
        nodes.append(Node(branch.label, "above" if again else note, kind, parent))
        below = () if again else branch.branches
        if not below:
            continue
        if len(waiting) + len(below) > MOST:
            more = f"… {len(below)} more below" if len(below) > 1 else "… more below"
            nodes[-1] = Node(branch.label, f"{note}   {more}".strip(), kind, parent)
        else:
            waiting += [(one, len(nodes) - 1) for one in below]
    return nodes


def _kind(branch: Branch) -> tuple[str, str]:
    """The class of a box, and the note below its text."""
    if isinstance(branch, Proof):
        if branch.rule is not None:
            return "derived", branch.rule.name
        return ("given" if branch.reason == GIVEN else "derived"), branch.reason
    if isinstance(branch, Condition):
        return "condition", branch.remark
    return "condition", branch.remark


def drawn(root: Branch, title: str, text: str) -> Html:
    """The drawing, with the text below it."""
    nodes = nodes_of(root)
    boxes = placed([node.parent for node in nodes], [_size(node) for node in nodes], gap=16, drop=30)
    edges = [
        edge(boxes[node.parent], box) for node, box in zip(nodes, boxes, strict=True) if node.parent is not None
    ]
    drawing = svg(
        max(box.right for box in boxes) + 4,
        max(box.bottom for box in boxes) + 4,
        element("title", title),
        element("g", *edges, *_boxes(nodes, boxes), transform="translate(2 2)"),
        class_="graph tree",
        role="img",
        aria_label=title,
    )
    as_text = element("details", element("summary", "as text"), element("pre", text))
    return element("div", element("style", Html(scoped(SCOPE))), drawing, as_text, class_=SCOPE)


def _size(node: Node) -> tuple[float, float]:
    width = max(wide(short(node.label, _WIDEST)), wide(short(node.note, _WIDEST)) * 0.86) + 28
    return width, 46.0 if node.note else 30.0


def _boxes(nodes: list[Node], boxes: list[Box]) -> Iterator[Html]:
    for node, box in zip(nodes, boxes, strict=True):
        rounded = 2 if node.kind == "given" else 11
        dashed = "4 3" if node.kind == "condition" else None
        parts = [
            element("title", f"{node.label}   {node.note}".strip()),
            element(
                "rect",
                class_="box",
                x=box.x,
                y=box.y,
                width=box.width,
                height=box.height,
                rx=rounded,
                stroke_dasharray=dashed,
            ),
            _line(short(node.label, _WIDEST), "name" if node.kind != "condition" else "condition", box, 20),
        ]
        if node.note:
            parts.append(_line(short(node.note, _WIDEST), "under", box, 36))
        if node.kind == "given":
            parts.append(element("path", class_="stored", d=f"M{box.x + 5:.1f} {box.y:.1f}v{box.height:.1f}"))
        yield element("g", *parts, class_=node.kind)


def _line(text: str, kind: str, box: Box, down: float) -> Html:
    return element("text", text, class_=kind, x=box.middle[0], y=box.y + down, text_anchor="middle")
