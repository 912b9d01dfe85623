"""Proofs for people and programs: an indented tree, JSON, Graphviz.

All three walk a graph of *branches* with an explicit stack and visit every branch once, in time
linear in branches and edges: proofs share parts, and may be deeper than Python can nest calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

DEPTH, LINES = 50, 500


class Branch(Protocol):
    """A node that can be shown: a label, a remark, and branches below it."""

    @property
    def label(self) -> str: ...
    @property
    def remark(self) -> str: ...
    @property
    def branches(self) -> Sequence[Branch]: ...
    def data(self) -> Mapping[str, object]:
        """Its JSON, without branches."""


def graph_of(root: Branch) -> list[Branch]:
    """Every branch once, in the order of the first visit, the root first."""
    found: list[Branch] = []
    seen: set[int] = set()
    stack = [root]
    while stack:
        branch = stack.pop()
        if id(branch) not in seen:
            seen.add(id(branch))
            found.append(branch)
            stack.extend(reversed(branch.branches))
    return found


# ── text ─────────────────────────────────────────────────────────────────────────────────────


def as_text(root: Branch, depth: int | None = DEPTH, lines: int | None = LINES) -> str:
    """An indented tree.

    A branch shown before is "(above)".  Below `depth`, and after `lines`, the text says how many
    more branches there are.

    Cost: linear in the branches and edges, times the width of the indentation.
    """
    out: list[str] = []
    shown: set[int] = set()
    counted: set[int] = set()
    stack: list[tuple[Branch, str, str, int]] = [(root, "", "", 0)]
    while stack:
        if lines is not None and len(out) >= lines:
            left = sum(_count_new(branch, shown, counted) for branch, _, _, _ in reversed(stack))
            out.append(f"… {left} more")
            break
        branch, first, rest, level = stack.pop()
        again = id(branch) in shown and bool(branch.branches)
        remark = "(above)" if again else branch.remark
        out.append(f"{first}{branch.label}   {remark}" if remark else f"{first}{branch.label}")
        shown.add(id(branch))
        below = () if again else branch.branches
        if below and depth is not None and level >= depth:
            left = sum(_count_new(one, shown, counted) for one in below)
            if left:
                out.append(f"{rest}└── … {left} more")
            continue
        for place, one in reversed(list(enumerate(below, 1))):
            corner, bar = ("└── ", "    ") if place == len(below) else ("├── ", "│   ")
            stack.append((one, rest + corner, rest + bar, level + 1))
    return "\n".join(out)


def _count_new(root: Branch, shown: set[int], counted: set[int]) -> int:
    """The number of branches from here on that were neither shown nor counted."""
    number = 0
    stack = [root]
    while stack:
        branch = stack.pop()
        if id(branch) in shown or id(branch) in counted:
            continue
        counted.add(id(branch))
        number += 1
        stack.extend(branch.branches)
    return number


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────


def as_json(root: Branch) -> dict[str, object]:
    """A flat list of nodes, the root first; `children` are ids."""
    graph = graph_of(root)
    number = {id(branch): position for position, branch in enumerate(graph)}
    nodes = [
        {"id": position, **branch.data(), "children": [number[id(one)] for one in branch.branches]}
        for position, branch in enumerate(graph)
    ]
    return {"root": 0, "nodes": nodes}


def json_value(value: object) -> object:
    """A value that JSON has: infinities and NaN become text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


# ── Graphviz ─────────────────────────────────────────────────────────────────────────────────


def as_dot(root: Branch, name: str = "proof") -> str:
    """A directed graph in Graphviz's language, one box per branch."""
    return "\n".join(_dot_lines(root, name)) + "\n"


def _dot_lines(root: Branch, name: str) -> Iterator[str]:
    yield f"digraph {_dot_text(name)} {{"
    yield '  node [shape=box, fontname="monospace"];'
    graph = graph_of(root)
    number = {id(branch): position for position, branch in enumerate(graph)}
    for position, branch in enumerate(graph):
        label = f"{branch.label}\n{branch.remark}" if branch.remark else branch.label
        style = "" if branch.branches else ", style=rounded"
        yield f"  n{position} [label={_dot_text(label)}{style}];"
    for position, branch in enumerate(graph):
        for below in branch.branches:
            yield f"  n{position} -> n{number[id(below)]};"
    yield "}"


def _dot_text(text: str) -> str:
    r"""A quoted string of Graphviz.

    >>> print(_dot_text('p("a\\n")'))
    "p(\"a\\n\")"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + "".join(c if c.isprintable() or c == " " else "\N{REPLACEMENT CHARACTER}" for c in escaped) + '"'
