"""Variable orders: the forest of variables along which a view tree keeps its counts.

A variable order is a forest over the variables in which the variables of each atom lie on one path
from a root.  A node of ours holds all variables that stand in the same atoms.  The *key* of a node
are the variables above it on which its subtree depends.  In the canonical order of a hierarchical
query, the key of a node has all variables above it, and every atom ends at a node with exactly the
variables of its path.  So an update is a walk to the root.

Source: Olteanu, Závodný, TODS 40(1), 2015 (d-trees); Berkholz, Keppeler, Schweikardt, PODS 2017
(q-trees).
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from everlog.core.classify.classes import is_hierarchical
from everlog.core.classify.query import Query
from everlog.core.classify.widths import fractional_hypertree_width


@frozen
class OrderNode:
    """A node: its variables, its key (from the root down), its atoms, and the nodes below."""

    variables: tuple[str, ...]
    key: tuple[str, ...]
    atoms: tuple[int, ...]
    children: tuple[OrderNode, ...]

    def __str__(self) -> str:
        below = ", ".join(map(str, self.children))
        name = " ".join(self.variables)
        return f"{name}({below})" if below else name


Order = tuple[OrderNode, ...]  # the roots of a forest


def variable_order(query: Query) -> Order:
    """The roots of a good variable order.

    It is canonical for a hierarchical query, else that of an optimal decomposition.

    >>> query = Query.of("R(a, b, c)", "S(a, b, d)", "T(a, e)", "U(f)")
    >>> [str(root) for root in variable_order(query)]
    ['a(b(c, d), e)', 'f']
    >>> [str(root) for root in variable_order(Query.of("R(a, b)", "S(b, c)", "T(a, c)"))]
    ['a(b(c))']
    """
    if is_hierarchical(query):
        count = {v: sum(v in atom.variables for atom in query.atoms) for v in query.variables}
        sequence = sorted(query.variables, key=lambda v: -count[v])
    else:
        sequence = _from_decomposition(query)
    return order_of(query, _twins(query, sequence))


def _from_decomposition(query: Query) -> list[str]:
    """The variables, bag by bag from the root of an optimal decomposition."""
    decomposition = fractional_hypertree_width(query).decomposition
    out: dict[str, None] = {}
    for number, bag in enumerate(decomposition.bags):
        later = {v for other in decomposition.bags[number + 1 :] for v in other}
        out.update(dict.fromkeys(v for v in query.variables if v in bag and v in later))
        out.update(dict.fromkeys(v for v in query.variables if v in bag))
    return list(out)


def _twins(query: Query, sequence: Sequence[str]) -> list[tuple[str, ...]]:
    """Variables that stand in the same atoms together, in the place of the first of them."""
    groups: dict[frozenset[int], list[str]] = {}
    for v in sequence:
        groups.setdefault(frozenset(i for i, a in enumerate(query.atoms) if v in a.variables), []).append(v)
    return [tuple(group) for group in groups.values()]


def order_of(query: Query, groups: Sequence[tuple[str, ...]]) -> Order:
    """The forest of a sequence of nodes; each is below the last one that it depends on."""
    scopes = [set(atom.variables) for atom in query.atoms]
    keys: list[set[str]] = [set() for _ in groups]
    parents: list[int | None] = [None] * len(groups)
    place = {v: number for number, group in enumerate(groups) for v in group}
    for number in reversed(range(len(groups))):
        own = set(groups[number])
        touching = [scope for scope in scopes if scope & own]
        key = {v for scope in touching for v in scope} - own
        assert all(place[v] < number for v in key)
        keys[number] = key
        parents[number] = max((place[v] for v in key), default=None)
        scopes = [scope for scope in scopes if not scope & own]
        if key:
            scopes.append(key)
    ends = [max((place[v] for v in atom.variables), default=-1) for atom in query.atoms]

    def node(number: int) -> OrderNode:
        key = tuple(v for group in groups for v in group if v in keys[number])
        atoms = tuple(i for i, end in enumerate(ends) if end == number)
        below = tuple(node(child) for child in range(len(groups)) if parents[child] == number)
        return OrderNode(groups[number], key, atoms, below)

    return tuple(node(number) for number in range(len(groups)) if parents[number] is None)
