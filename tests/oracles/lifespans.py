"""Lifespans as segment-tree nodes: time intersection becomes prefix equality.

Insert-delete maintenance gives each tuple a lifespan [born, died].  A join result is alive while
all its tuples are, so the join must intersect intervals.  Here an interval is named by a few nodes
of a binary tree over time; two intervals meet exactly when a node of one is a prefix of a node of
the other.  Cutting each node's bit string into parts turns "is a prefix of" into equality of the
parts, so an ordinary join on variables Z1, Z2, … does the work: the multivariate extension.

Source: Abo Khamis, Kara, Olteanu, Suciu, PACMMOD 2(5), 2024, Sections 6.1 and 7.1, Appendix B.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, pairwise
from typing import TypeAlias

from everlog.core.classify.query import Query
from everlog.core.program import Row

Lifespan: TypeAlias = tuple[int, int]  # born and died, both within it; times count from 1
Node: TypeAlias = str  # a node of the segment tree: the bits of the way from the root
Lived: TypeAlias = tuple[Lifespan, Row]  # a tuple of the time extension


def canonical_partition(born: int, died: int, depth: int) -> tuple[Node, ...]:
    """Cover the lifespan by the fewest tree nodes, from left to right.

    >>> canonical_partition(2, 8, depth=3)       # Eq. (15) of the paper
    ('001', '01', '1')
    >>> canonical_partition(2, 5, depth=3)
    ('001', '01', '100')

    Cost: O(depth), at most two nodes per level.
    """
    left: list[Node] = []
    right: list[Node] = []
    low, high, level = born - 1, died, depth  # [low, high) counted in nodes of this level
    while low < high:
        if low & 1:
            left.append(_bits(low, level))
            low += 1
        if high & 1:
            high -= 1
            right.append(_bits(high, level))
        low, high, level = low >> 1, high >> 1, level - 1
    return (*left, *reversed(right))


def _bits(number: int, length: int) -> Node:
    return format(number, f"0{length}b") if length else ""


def interval(node: Node, depth: int) -> Lifespan:
    """The times below a node.

    >>> interval("01", 3), interval("", 3)
    ((3, 4), (1, 8))
    """
    width = 1 << (depth - len(node))
    first = int(node or "0", 2) * width + 1
    return first, first + width - 1


def splits(node: Node, parts: int) -> Iterator[tuple[Node, ...]]:
    """All ways to cut a bit string into this number of parts, which may be empty.

    >>> list(splits("01", 2))
    [('', '01'), ('0', '1'), ('01', '')]
    """
    for cuts in combinations_with_replacement(range(len(node) + 1), parts - 1):
        ends = (0, *cuts, len(node))
        yield tuple(node[a:b] for a, b in pairwise(ends))


def partition_of_tuple(lived: Lived, parts: int, depth: int) -> set[Row]:
    """CP_N^(i) of one tuple (Definition B.1): all cuts of its nodes into i parts.

    >>> sorted(partition_of_tuple(((3, 5), ("a",)), 1, 3))
    [('01', 'a'), ('100', 'a')]
    """
    (born, died), row = lived
    return {(*cut, *row) for node in canonical_partition(born, died, depth) for cut in splits(node, parts)}


def partition_of_database(
    query: Query, order: Sequence[int], database: Mapping[int, Iterable[Lived]], depth: int
) -> list[set[Row]]:
    """CP_N^σ of a database (Definition B.2): the instance of each atom for Q̂σ."""
    out: list[set[Row]] = [set() for _ in query.atoms]
    for position, atom in enumerate(order, 1):
        for lived in database.get(atom, ()):
            out[atom] |= partition_of_tuple(lived, position, depth)
    return out


def glued(row: Row, parts: int) -> Row:
    """G_k of Theorem B.3: the parts of a node put together again.

    >>> glued(("", "01", "", "a1"), 3)
    ('01', 'a1')
    """
    return "".join(map(str, row[:parts])), *row[parts:]


def time_join(query: Query, database: Mapping[int, Iterable[Lived]]) -> set[Lived]:
    """The time extension of a query: answers with the time when all tuples are alive."""
    found: list[tuple[Lifespan, dict[str, object]]] = [((1, 1 << 62), {})]
    for number, atom in enumerate(query.atoms):
        tuples = list(database.get(number, ()))
        found = [
            ((max(span[0], born), min(span[1], died)), {**binding, **dict(zip(atom.variables, row, strict=True))})
            for span, binding in found
            for (born, died), row in tuples
            if max(span[0], born) <= min(span[1], died)
            and all(binding.get(v, x) == x for v, x in zip(atom.variables, row, strict=True))
        ]
    return {(span, tuple(binding[v] for v in query.variables)) for span, binding in found}  # type: ignore[misc]
