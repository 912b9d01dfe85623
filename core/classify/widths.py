"""Fractional hypertree width, exact: the best order in which to eliminate the variables.

The width of a query is that of its best tree decomposition, and the best one comes from an
elimination order.  The set of eliminated variables decides what the rest looks like, so the
orders of n variables are paths through 2ⁿ sets.  The best path is the one whose most expensive bag
is cheapest: Dijkstra's search with `max` instead of `+`.  Four facts keep it short.

- Variables in the same atoms (twins) are in the same bags at no cost: one of them is searched for
  all.
- If the neighbours of a variable all meet each other, then they and it are in one bag of every
  decomposition, so it may go first, and nothing else need be tried (ear removal is the case of one
  atom).
- If one bag with all variables that are left costs no more than the bags so far, the search ends.
- Parts without a common variable are searched one by one.

For the free-connex width all bound variables go before the free ones; the same facts hold for those
whose turn it is.

Source: Abo Khamis, Kara, Olteanu, Suciu, PACMMOD 2(5), 2024, Definition 2.3; Bodlaender, Fomin,
Koster, Kratsch, Thilikos, ACM TALG 9(1), 2012 (sets of eliminated vertices); Abo Khamis, Ngo,
Rudra, PODS 2016.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush
from itertools import count

from attrs import Factory, define, field, frozen

from everlog.core.classify.classes import atoms_of
from everlog.core.classify.covers import Edge, Signature, bits, cover_number
from everlog.core.classify.decompositions import Decomposition, from_elimination
from everlog.core.classify.query import Query

MOST_VARIABLES = 13  # after twins and ears are gone; beyond, the search is given up after LITTLE_WORK
LITTLE_WORK = 30_000  # about a tenth of a second; a unit is one look at a vertex from a state of the search
ONE = Fraction(1)


@frozen
class Width:
    """A width, or an upper bound of it if not exact, and the decomposition that has it."""

    value: Fraction
    exact: bool
    decomposition: Decomposition


def fractional_hypertree_width(query: Query) -> Width:
    """w(Q), with an optimal decomposition; 1 exactly if the query is acyclic.

    >>> fractional_hypertree_width(Query.of("R(A, B)", "S(B, C)", "T(C, D)", "U(A, D)")).value
    Fraction(2, 1)

    Cost: O(2ⁿ n²) at worst, for n ≤ MOST_VARIABLES variables in the cyclic rest of the query.
    """
    return _width(query.full)


def free_connex_width(query: Query) -> Width:
    """The width of decompositions whose upper part is over the free variables, and only these.

    >>> free_connex_width(Query.of("R(A, B)", "S(B, C)", free="AC")).value
    Fraction(2, 1)
    """
    return _width(query)


@lru_cache(maxsize=1024)
def _width(query: Query) -> Width:
    twins: dict[tuple[int, bool], list[str]] = {}
    for variable, at in atoms_of(query).items():
        twins.setdefault((at, variable in query.free), []).append(variable)
    groups = list(twins.values())
    edges = [sum(1 << g for g, (at, _) in enumerate(twins) if at >> i & 1) for i in range(len(query.atoms))]
    first = sum(1 << g for g, (_, free) in enumerate(twins) if not free)
    search = Search(tuple(edges), first)
    found = [search.best(part) for part in search.parts()]
    proved = max((part.cost for part in found if part.exact), default=ONE)
    order = [g for part in found for g in part.order]
    order.sort(key=lambda g: not first >> g & 1)  # over all parts; stable, so no bag changes
    decomposition = from_elimination(query, [v for g in order for v in groups[g]])
    return Width(decomposition.width, decomposition.width == proved, decomposition)


# ── the search ───────────────────────────────────────────────────────────────────────────────────


@frozen
class Order:
    """An elimination order, the cost of its most expensive bag, and whether that is the least."""

    cost: Fraction
    order: tuple[int, ...]
    exact: bool


Graph = tuple[int, ...]  # the neighbours of each vertex, eliminated ones included


@define
class Search:
    """A search for elimination orders in which the vertices in `first` precede all others."""

    edges: tuple[Edge, ...]
    first: int = 0
    work: int = 0  # done so far
    _costs: dict[Edge, Fraction] = Factory(dict)
    _at: list[Signature] = field(init=False)

    @_at.default
    def _signatures(self) -> list[Signature]:
        n = max((edge.bit_length() for edge in self.edges), default=0)
        return [sum(1 << i for i, edge in enumerate(self.edges) if edge >> v & 1) for v in range(n)]

    def cost(self, bag: Edge) -> Fraction:
        """ρ* of a bag."""
        found = self._costs.get(bag)
        if found is None:
            found = self._costs[bag] = cover_number(self._at[v] for v in bits(bag))
        return found

    def parts(self) -> Iterator[int]:
        """The connected components."""
        graph = self.graph()
        left = (1 << len(graph)) - 1
        while left:
            part, seen = left & -left, 0
            while part != seen:
                new, seen = part & ~seen, part
                for v in bits(new):
                    part |= graph[v]
            yield part
            left &= ~part

    def graph(self) -> Graph:
        """The neighbours of each vertex: those that share an edge with it."""
        near = [0] * len(self._at)
        for edge in self.edges:
            for v in bits(edge):
                near[v] |= edge
        return tuple(around & ~(1 << v) for v, around in enumerate(near))

    def best(self, part: int, floor: Fraction = ONE, most_work: int | None = None) -> Order:
        """An order of the vertices of `part` with the least cost, or with any cost up to `floor`.

        When `most_work` is done, the rest is greedy and likely not exact.  Without that limit, at
        most MOST_VARIABLES vertices, after simplification, are searched to the end.

        >>> Search((0b0011, 0b0110, 0b1100, 0b1001)).best(0b1111).cost       # the square
        Fraction(2, 1)
        """
        rest, graph, taken, cost = self._simplified(part, self.graph(), floor)
        if most_work is None and rest.bit_count() > MOST_VARIABLES:
            most_work = LITTLE_WORK
        serial = count()  # so that the heap never compares graphs
        heap = [(cost, rest.bit_count(), next(serial), rest, graph, taken)]
        done: set[int] = set()
        limit = None if most_work is None else self.work + most_work
        while heap:
            cost, _, _, rest, graph, taken = heappop(heap)
            if not rest or self.cost(rest) <= cost:
                return Order(cost, taken + self._any_order(rest), True)
            if rest in done:
                continue
            done.add(rest)
            self.work += rest.bit_count() * len(graph)
            if limit is not None and self.work > limit:
                return self._greedy(rest, graph, taken, cost, cost)
            for v in bits(rest & self.first or rest):
                dearer = max(cost, self.cost(graph[v] & rest | 1 << v))
                new = self._simplified(rest & ~(1 << v), filled(graph, v, rest), dearer)
                if new[0] not in done:
                    item = (new[3], new[0].bit_count(), next(serial), new[0], new[1], (*taken, v, *new[2]))
                    heappush(heap, item)
        raise AssertionError("some order eliminates all")

    def _simplified(self, rest: int, graph: Graph, cost: Fraction) -> tuple[int, Graph, tuple[int, ...], Fraction]:
        """Eliminate vertices whose neighbours all meet each other, as long as there are any."""
        taken: list[int] = []
        again = True
        while again:
            again = False
            for v in bits(rest & self.first or rest):
                around = graph[v] & rest
                if all(around & ~graph[u] == 1 << u for u in bits(around)):
                    cost = max(cost, self.cost(around | 1 << v))
                    taken.append(v)
                    rest &= ~(1 << v)
                    again = True
                    break
        return rest, graph, tuple(taken), cost

    def _greedy(self, rest: int, graph: Graph, taken: tuple[int, ...], cost: Fraction, least: Fraction) -> Order:
        """Eliminate the vertex with the cheapest bag, then the smallest.

        No order of these vertices costs less than `least`."""
        while rest:
            bags = {v: graph[v] & rest | 1 << v for v in bits(rest & self.first or rest)}
            v = min(bags, key=lambda v: (self.cost(bags[v]), bags[v].bit_count()))
            rest, graph, more, cost = self._simplified(
                rest & ~(1 << v), filled(graph, v, rest), max(cost, self.cost(bags[v]))
            )
            taken = (*taken, v, *more)
        return Order(cost, taken, cost == least)

    def _any_order(self, rest: int) -> tuple[int, ...]:
        return (*bits(rest & self.first), *bits(rest & ~self.first))


def filled(graph: Graph, v: int, rest: int) -> Graph:
    """The graph without v, whose neighbours become neighbours of each other."""
    around = graph[v] & rest
    return tuple(near | around & ~(1 << u) if around >> u & 1 else near for u, near in enumerate(graph))
