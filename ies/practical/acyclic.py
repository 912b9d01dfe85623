"""Directed acyclic graphs: routes, orders, and the cycle that an edge would close."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

from everlog.ies.practical.protocol import Row, cycle_refused

Node: TypeAlias = Any
Successors: TypeAlias = Mapping[Node, Collection[Node]]


def successors_of(edges: Iterable[Row]) -> dict[Node, set[Node]]:
    """The successors of each node that an edge names.

    >>> successors_of([(1, 2)])
    {1: {2}, 2: set()}
    """
    out: dict[Node, set[Node]] = {}
    for x, y in edges:
        out.setdefault(x, set()).add(y)
        out.setdefault(y, set())
    return out


def route(after: Successors, source: Node, target: Node) -> list[Node]:
    """The nodes of a path of zero or more edges; empty if there is none.

    Cost: the edges that the source reaches.

    >>> route({1: [2], 2: [3]}, 1, 3), route({}, 1, 1), route({1: [2]}, 2, 1)
    ([1, 2, 3], [1], [])
    """
    came: dict[Node, Node] = {source: source}
    todo = [source]
    while todo:
        node = todo.pop()
        if node == target:
            out = [node]
            while node != source:
                node = came[node]
                out.append(node)
            return out[::-1]
        for further in after.get(node, ()):
            if further not in came:
                came[further] = node
                todo.append(further)
    return []


def sinks_first(after: Successors, roots: Iterable[Node]) -> list[Node]:
    """The nodes that the roots reach, each after all its successors; acyclic graphs.

    >>> sinks_first({1: [2, 3], 2: [3]}, [1])
    [3, 2, 1]
    """
    out: list[Node] = []
    seen: set[Node] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(after.get(root, ())))]
        while stack:
            node, rest = stack[-1]
            for further in rest:
                if further not in seen:
                    seen.add(further)
                    stack.append((further, iter(after.get(further, ()))))
                    break
            else:
                out.append(node)
                stack.pop()
    return out


def refuse_cycle(relation: str, row: Row, after: Successors) -> None:
    """Raise if a new edge would close a cycle."""
    found = route(after, row[1], row[0])
    if found:
        raise cycle_refused(relation, row, found)


def refuse_cycles(relation: str, edges: Collection[Row]) -> None:
    """Raise if edges have a cycle; the error names one edge of it and the rest."""
    after = successors_of(edges)
    place = {node: n for n, node in enumerate(sinks_first(after, after))}
    for x, y in sorted(edges, key=repr):
        if place[y] >= place[x]:  # in an acyclic graph every edge leads to an earlier place
            raise cycle_refused(relation, (x, y), route(after, y, x))
