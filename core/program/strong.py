"""Strongly connected components of any graph that has a successor function.

Tarjan's algorithm with a stack of its own: graphs are deeper than Python may nest calls.

Source: Tarjan, Depth-first search and linear graph algorithms, SIAM J. Comput. 1(2), 1972.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

_Node = TypeVar("_Node", bound=Hashable)
_DONE = sys.maxsize  # later than any node that was met


def strong_components(roots: Iterable[_Node], successors: Callable[[_Node], Iterable[_Node]]) -> list[list[_Node]]:
    """The components of all nodes that the roots reach, each after those it points to.

    >>> strong_components([1], {1: [2], 2: [1, 3], 3: []}.__getitem__)
    [[3], [2, 1]]

    Cost: O(nodes + edges).
    """
    found: list[list[_Node]] = []
    met: dict[_Node, int] = {}  # when a node was first met; `_DONE` once its component is complete
    low: dict[_Node, int] = {}  # the earliest node on `path` that it is known to reach
    path: list[_Node] = []
    for root in roots:
        if root in met:
            continue
        met[root] = low[root] = len(met)
        path.append(root)
        calls = [(root, iter(successors(root)))]
        while calls:
            node, rest = calls[-1]
            for successor in rest:
                at = met.get(successor)
                if at is None:
                    met[successor] = low[successor] = len(met)
                    path.append(successor)
                    calls.append((successor, iter(successors(successor))))
                    break
                if at < low[node]:
                    low[node] = at
            else:
                calls.pop()
                if calls and low[node] < low[calls[-1][0]]:
                    low[calls[-1][0]] = low[node]
                if low[node] == met[node]:
                    found.append(_popped(path, node))
                    for one in found[-1]:
                        met[one] = _DONE
    return found


def _popped(path: list[_Node], node: _Node) -> list[_Node]:
    """Pop the path from its end down to a node."""
    component = [path.pop()]
    while component[-1] != node:
        component.append(path.pop())
    return component
