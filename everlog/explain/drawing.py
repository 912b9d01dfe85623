"""The rule graph as inline SVG, the signs of classes, and helpers of all drawings.

A drawing must say the same to readers who see it, who see no colours, and who use a screen reader.
So kinds differ by shape and by letters, colours come from the page's style sheet (light and dark),
and each drawing has a title and a description in words.  No script measures text: names are
monospaced, and their width is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unicodedata import east_asian_width

from everlog.explain.markup import Html, anchor, element, link_to
from everlog.explain.tree_layout import ROUND, Box, Layered, layered

LETTER = 8.0  # an upper bound of the width of a letter of 13 pixels
LONGEST = 26  # letters of a name in a box
SMALLEST = 0.74  # the smallest scale at which a drawing is readable
USES = {"positive": "", "negative": "not ", "aggregate": "an aggregate of "}

SHAPES: Mapping[str, Html] = {
    "hierarchical": element("circle", cx=10, cy=10, r=8.5),
    "acyclic": element("rect", x=2, y=2, width=16, height=16, rx=2),
    "cyclic": element("path", d="M10 .8 19.2 10 10 19.2 .8 10Z"),
    "recursive": element("path", d="M5.4 1.5h9.2L19.2 10l-4.6 8.5H5.4L.8 10Z"),
}


def sign(query_class: str) -> Html:
    """The shape of a class with its letter; the name is beside it as text."""
    letter = element("text", query_class[:1].upper(), x=10, y=14, text_anchor="middle")
    shape = SHAPES.get(query_class, SHAPES["acyclic"])
    return element("svg", shape, letter, class_="sign", viewBox="0 0 20 20", aria_hidden="true")


def wide(text: str) -> float:
    """The width of a text in pixels.

    >>> wide("edge"), wide("辺")
    (32.0, 16.0)
    """
    return LETTER * sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def short(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def scrolling(wide_one: Html, label: str, kind: str = "") -> Html:
    """A box around wide content, which scrolls by itself, also with the keyboard."""
    return element("div", wide_one, class_=f"{kind} scroll".strip(), tabindex=0, role="region", aria_label=label)


def svg(width: float, height: float, *children: str, **attributes: object) -> Html:
    """An SVG at its own size, or smaller where there is less room, but readable."""
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=round(width),
        height=round(height),
        style=f"min-width:{width * SMALLEST:.0f}px",
        **attributes,
    )


# ── the rule graph ───────────────────────────────────────────────────────────────────────────


def graph(relations: Sequence[Mapping[str, Any]]) -> Html:
    """Relations as boxes with links, and arrows from a relation to its readers.

    The arrows are one image with a title and a description; the boxes are outside of it, since
    screen readers do not follow links inside an image.
    """
    widths = {r["name"]: max(wide(short(r["name"])) + 34, wide(under(r)) * 0.86 + 24, 92) for r in relations}
    picture = layered(widths, {r["name"]: r["reads"] for r in relations})
    frames = [
        element("rect", class_="frame", x=f.x, y=f.y, width=f.width, height=f.height, rx=14)
        for f in picture.frames
    ]
    arrows = [
        _arrow(picture, read, r["name"], use)
        for r in relations
        for read, use in r["reads"].items()
        if read != r["name"]
    ]
    drawing = element(
        "g",
        element("title", "The rule graph", id="graph-title"),
        element("desc", " ".join(f"{line}." for line in graph_lines(relations)), id="graph-desc"),
        *frames,
        *arrows,
        role="img",
        aria_labelledby="graph-title",
        aria_describedby="graph-desc",
    )
    boxes = [_relation_box(picture.boxes[r["name"]], r) for r in relations]
    return svg(
        picture.width, picture.height, drawing, *boxes, class_="graph", role="group", aria_label="Rule graph"
    )


def graph_lines(relations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The graph in words: `q reads r, s, not t`."""
    for relation in relations:
        what = ", ".join(f"{USES.get(use, '')}{read}" for read, use in relation["reads"].items())
        if what:
            yield f"{relation['name']} reads {what}"


def under(relation: Mapping[str, Any]) -> str:
    """The text below the name in a box."""
    return str(relation["strategy"]) + (", only grows" if relation["insert_only"] else "")


def _relation_box(box: Box, relation: Mapping[str, Any]) -> Html:
    given = relation["strategy"] == "given"
    name, middle = relation["name"], box.middle[0]
    parts = [
        element("rect", class_="box", x=box.x, y=box.y, width=box.width, height=box.height, rx=2 if given else 11),
        element("text", short(name), class_="name", x=middle, y=box.y + 20, text_anchor="middle"),
        element("text", under(relation), class_="under", x=middle, y=box.y + 36, text_anchor="middle"),
    ]
    if given:
        parts.insert(1, element("path", class_="stored", d=f"M{box.x + 5:.1f} {box.y:.1f}v{box.height:.1f}"))
    if relation["recursive"]:
        parts.append(element("circle", class_="again", cx=box.right - 4, cy=box.y + 4, r=9))
        turn = f"M{box.right - 8:.1f} {box.y + 5.5:.1f}a4.3 4.3 0 1 0 2-5.2m2.6-2.6-2.9 2.5 3.1 2.1"
        parts.append(element("path", class_="turn", d=turn))
    kind = "given" if given else "derived"
    label = f"{name}, {under(relation)}{', recursive' if relation['recursive'] else ''}"
    return element("a", *parts, href=link_to(anchor("rel", name)), class_=kind, aria_label=label)


def _arrow(picture: Layered, read: str, reader: str, use: str) -> Html:
    line, head = arrow_paths(picture, read, reader)
    return element(
        "g",
        element("title", f"{reader} reads {USES.get(use, '')}{read}"),
        element("path", class_="line", d=line),
        element("path", class_="head", d=head),
        class_=f"arrow {use}",
    )


def arrow_paths(picture: Layered, read: str, reader: str) -> tuple[str, str]:
    """The line of an arrow and its head, as paths of SVG."""
    points = picture.routes.get((read, reader))
    if points is None:
        return _within(picture.boxes[read], picture.boxes[reader])
    (x, y), end = points[0], points[-1]
    line = f"M{x:.1f} {y:.1f}"
    for number, (to_x, to_y) in enumerate(points[1:]):
        to_x -= 8 if (to_x, to_y) == end else 0
        if number % 2:  # a straight line past a layer
            line += f"H{to_x:.1f}"
        else:
            half = (x + to_x) / 2
            line += f"C{half:.1f} {y:.1f} {half:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    return line, f"M{end[0] - 1:.1f} {end[1]:.1f}l-8-4.2v8.4Z"


def _within(read: Box, reader: Box) -> tuple[str, str]:
    """An arrow inside a component: straight between neighbours, else around it."""
    down = read.y < reader.y
    upper, lower = (read, reader) if down else (reader, read)
    if lower.y - upper.bottom < read.height:
        x = read.middle[0] + (-14 if down else 14)
        start, end = (upper.bottom, lower.y) if down else (lower.y, upper.bottom)
        sense = 1 if down else -1
        return f"M{x:.1f} {start:.1f}V{end - 8 * sense:.1f}", f"M{x:.1f} {end - sense:.1f}l-4.2{-8 * sense:+}h8.4Z"
    (x, y), to_y = (read.right, read.middle[1]), reader.middle[1] + (-8 if down else 8)
    out = x + min(ROUND + 18, 22 + (lower.y - upper.y) / 12)
    line = f"M{x:.1f} {y:.1f}C{out:.1f} {y:.1f} {out:.1f} {to_y:.1f} {x + 8:.1f} {to_y:.1f}"
    return line, f"M{x + 1:.1f} {to_y:.1f}l8-4.2v8.4Z"
