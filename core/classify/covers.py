"""Fractional edge covers: how large a join can get, exact, and with a certificate.

The exponent ρ* of a join is the value of a linear program.  Floating point would give 1.4999999,
and a width is compared for equality.  Here the number is a Fraction that carries its proof: weights
on the edges that cover every vertex (ρ* is at most that), and weights on the vertices that overload
no edge, a packing (ρ* is at least that).  The two sums are equal, and all of it is checked before
it is returned.

First the hypergraph is made small: an edge inside another is of no use to a cover, and a vertex in
all the edges of another one is covered with it.  Mostly only single vertices are left, and
the answer is their number.  What is left falls into connected kernels, which are solved once each,
under a canonical name:  small ones by an exact simplex over integers, large ones by HiGHS, whose
floats are turned into fractions; if these prove nothing, by the simplex as well.  (Loading
scipy takes longer than solving a thousand small ones.)

Source: Atserias, Grohe, Marx, FOCS 2008 (the bound); Abo Khamis, Kara, Olteanu, Suciu, PACMMOD
2(5), 2024, Section 2; Edmonds 1967 (division without remainder in the simplex).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import exp, inf, log

from attrs import frozen

from everlog.core.classify.query import Query

SMALL = 400  # cells of a kernel (vertices × edges) up to which the simplex is quicker than a call of HiGHS
PRECISION = 1 << 40  # of logarithms in `agm_bound`

Edge = int  # a bit set of vertices
Signature = int  # a bit set of edges: those that have a vertex
Solution = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]  # weights of edges, packing of vertices


@frozen
class Cover:
    """ρ* with its proof: edge weights that cover each vertex, vertex weights that fit each edge."""

    number: Fraction
    weights: tuple[Fraction, ...]
    packing: Mapping[str, Fraction]


def fractional_cover(edges: Sequence[frozenset[str]], vertices: frozenset[str]) -> Cover:
    """The fractional edge cover number of the hypergraph restricted to `vertices`, certified.

    >>> triangle = [frozenset("AB"), frozenset("BC"), frozenset("AC")]
    >>> fractional_cover(triangle, frozenset("ABC")).number
    Fraction(3, 2)
    >>> fractional_cover(triangle, frozenset("AB")).weights
    (Fraction(1, 1), Fraction(0, 1), Fraction(0, 1))
    """
    assert vertices <= frozenset().union(*edges), "a vertex without an edge cannot be covered"
    names = sorted(vertices)
    masks = [sum(1 << i for i, name in enumerate(names) if name in edge) for edge in edges]
    weights, packing = [Fraction(0)] * len(edges), [Fraction(0)] * len(names)
    for kernel in kernels(masks):
        label, order, rows = canonical(kernel)
        solved = solve(label)
        for (edge, _), weight in zip(rows, solved[0], strict=True):
            weights[edge] = weight
        for vertex, share in zip(order, solved[1], strict=True):
            packing[vertex] = share
    assert proves(masks, len(names), weights, packing)
    return Cover(sum(weights, Fraction(0)), tuple(weights), dict(zip(names, packing, strict=True)))


def cover_number(vertices: Iterable[Signature]) -> Fraction:
    """ρ* as a number, of vertices given by their edges: for searches.

    >>> cover_number([0b1001, 0b0011, 0b0110, 0b1100])            # the square
    Fraction(2, 1)

    Each kernel is certified, and the whole is their sum.
    """
    distinct = set(vertices)
    return _cover_number(frozenset(s for s in distinct if not any(s & t == t != s for t in distinct)))


@lru_cache(maxsize=1 << 16)
def _cover_number(vertices: frozenset[Signature]) -> Fraction:
    if len(vertices) < 2:
        return Fraction(len(vertices))
    edges = [
        sum(1 << v for v, signature in enumerate(vertices) if signature >> e & 1)
        for e in range(max(vertices).bit_length())
    ]
    return sum((sum(solve(canonical(kernel)[0])[0], Fraction(0)) for kernel in kernels(edges)), Fraction(0))


def proves(edges: Sequence[Edge], n: int, weights: Sequence[Fraction], packing: Sequence[Fraction]) -> bool:
    """Whether weights and packing prove each other optimal.

    The weights must cover all n vertices, the packing overload no edge, and the sums be equal.
    """
    return (
        min([*weights, *packing], default=0) >= 0
        and all(sum(w for e, w in zip(edges, weights, strict=True) if e >> v & 1) >= 1 for v in range(n))
        and all(sum(packing[v] for v in bits(e)) <= 1 for e in edges)
        and sum(weights) == sum(packing)
    )


# ── bounds on data ───────────────────────────────────────────────────────────────────────────────


def agm_exponent(query: Query) -> Fraction:
    """ρ*(Q): a join of relations of size N has at most N to this power rows.

    >>> agm_exponent(Query.of("R(A, B)", "S(B, C)", "T(A, C)"))
    Fraction(3, 2)
    """
    return fractional_cover([frozenset(a.variables) for a in query.atoms], frozenset(query.variables)).number


def agm_bound(query: Query, sizes: Sequence[int]) -> float:
    """The most rows that the join can have if the relations have these sizes, one for each atom.

    >>> round(agm_bound(Query.of("R(A, B)", "S(B, C)", "T(A, C)"), [100, 100, 100]))
    1000
    >>> round(agm_bound(Query.of("R(A, B)", "S(B, C)", "T(A, C)"), [2, 100, 100]))
    141
    """
    assert len(sizes) == len(query.atoms)
    if min(sizes, default=1) == 0:
        return 0.0
    place = {name: i for i, name in enumerate(query.variables)}
    best: dict[Edge, int] = {}  # of atoms over the same variables, the smallest
    for atom, size in zip(query.atoms, sizes, strict=True):
        edge = sum(1 << place[name] for name in atom.variables)
        best[edge] = min(size, best.get(edge, size))
    best.pop(0, None)
    capacities = [round(log(size) * PRECISION) for size in best.values()]
    weights, _ = simplex(list(best), len(place), capacities)
    exponent = sum(float(weight) * log(size) for weight, size in zip(weights, best.values(), strict=True))
    return exp(exponent) if exponent < 700 else inf


# ── kernels ──────────────────────────────────────────────────────────────────────────────────────


def bits(mask: int) -> Iterator[int]:
    """The members of a bit set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def kernels(edges: Iterable[Edge]) -> list[list[tuple[int, Edge]]]:
    """The connected parts, without edges inside others and vertices covered with others.

    >>> kernels([0b0111, 0b0011, 0b1000])            # an edge, one inside it, and one apart
    [[(0, 1)], [(2, 8)]]
    """
    left = list(enumerate(edges))
    vertices = -1
    while True:
        distinct: dict[Edge, int] = {}
        for i, edge in left:
            distinct.setdefault(edge & vertices, i)
        left = [(i, e) for e, i in distinct.items() if e and not any(e & f == e != f for f in distinct)]
        incidence: dict[int, int] = {}  # the edges of a vertex → the first vertex that has just these
        for vertex in bits(_union(left)):
            at = sum(1 << k for k, (_, e) in enumerate(left) if e >> vertex & 1)
            incidence.setdefault(at, vertex)
        kept = sum(1 << v for at, v in incidence.items() if not any(at & a == a != at for a in incidence))
        if kept == _union(left):
            return _connected(left)
        vertices = kept


def _union(edges: Iterable[tuple[int, Edge]]) -> int:
    union = 0
    for _, edge in edges:
        union |= edge
    return union


def _connected(edges: Sequence[tuple[int, Edge]]) -> list[list[tuple[int, Edge]]]:
    parts: list[tuple[int, list[tuple[int, Edge]]]] = []
    for numbered in edges:
        met = [part for part in parts if part[0] & numbered[1]]
        parts = [part for part in parts if not part[0] & numbered[1]]
        joined = [e for part in met for e in part[1]] + [numbered]
        parts.append((_union(joined), joined))
    return [part for _, part in parts]


def canonical(kernel: Sequence[tuple[int, Edge]]) -> tuple[tuple[Edge, ...], list[int], list[tuple[int, Edge]]]:
    """A name that most isomorphic kernels share, with the kernel's vertices and edges in order."""
    near = {v: sorted(e.bit_count() for _, e in kernel if e >> v & 1) for v in bits(_union(kernel))}
    order = sorted(near, key=lambda v: (len(near[v]), near[v], v))
    rank = {v: i for i, v in enumerate(order)}
    rows = sorted(((i, sum(1 << rank[v] for v in bits(e))) for i, e in kernel), key=lambda row: row[1])
    return tuple(e for _, e in rows), order, rows


# ── linear programs ──────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=1 << 16)
def solve(edges: tuple[Edge, ...]) -> Solution:
    """A cover and a packing of a kernel with vertices 0, 1, …, that prove each other optimal."""
    n = max(edges).bit_length()
    if n == 1:
        return (Fraction(1),), (Fraction(1),)
    if n * len(edges) > SMALL:
        weights, packing = highs(edges, n)
        if proves(edges, n, weights, packing):
            return weights, packing
    weights, packing = simplex(edges, n, [1] * len(edges))
    assert proves(edges, n, weights, packing)
    return weights, packing


def highs(edges: Sequence[Edge], n: int) -> Solution:
    """A solution in floats, as simple fractions, still to be proved; None without scipy."""
    try:
        from scipy.optimize import linprog  # type: ignore[import-untyped]  # scipy has no types
    except ImportError:
        return (), ()
    matrix = [[-(e >> v & 1) for e in edges] for v in range(n)]
    found = linprog([1] * len(edges), A_ub=matrix, b_ub=[-1] * n, method="highs")

    def fractions(values: Iterable[float]) -> tuple[Fraction, ...]:
        return tuple(Fraction(float(value)).limit_denominator(1000) for value in values)

    return fractions(found.x), fractions(-found.ineqlin.marginals)


def simplex(edges: Sequence[Edge], n: int, capacities: Sequence[int]) -> Solution:
    """The largest packing of n vertices into edges of these capacities, and the cheapest cover.

    >>> simplex([0b011, 0b110, 0b101], 3, [1, 1, 1])[1]
    (Fraction(1, 2), Fraction(1, 2), Fraction(1, 2))

    Rows are the edges, and last the objective; columns are the vertices, the slacks of the edges,
    and the capacities.  All entries are integers over one denominator, the last pivot.  Bland's
    rule: no cycling.
    """
    m = len(edges)
    table = [
        [e >> v & 1 for v in range(n)] + [int(i == j) for j in range(m)] + [capacity]
        for i, (e, capacity) in enumerate(zip(edges, capacities, strict=True))
    ]
    table.append([-1] * n + [0] * (m + 1))
    basis, denominator = list(range(n, n + m)), 1
    while (column := next((c for c in range(n + m) if table[m][c] < 0), None)) is not None:
        rows = [r for r in range(m) if table[r][column] > 0]
        assert rows, "a vertex in no edge"
        chosen = min(rows, key=lambda r: (Fraction(table[r][-1], table[r][column]), basis[r]))
        pivot, pivot_row = table[chosen][column], table[chosen]
        for r, row in enumerate(table):
            if r != chosen:
                factor = row[column]
                table[r] = [(pivot * x - factor * y) // denominator for x, y in zip(row, pivot_row, strict=True)]
        basis[chosen], denominator = column, pivot
    packing = dict(zip(basis, (Fraction(row[-1], denominator) for row in table), strict=False))
    weights = tuple(Fraction(x, denominator) for x in table[m][n : n + m])
    return weights, tuple(packing.get(v, Fraction(0)) for v in range(n))
