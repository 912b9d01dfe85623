"""What one update costs along a variable order, as a power of D, also where degrees are bounded.

An update of an atom binds the variables above it, node after node, by the joins that a view tree
runs there.  A *band* (low, high) of a variable says: each of its values has at most D^high rows in
every atom, and, if low is above zero, at least D^low rows in some atom, so that there are at most
D^(1 - low) such values.  The number of bindings is bounded by a chain of steps, each through one
atom:

    from a bound variable with a high below 1 to the other variables of the atom:  D^high
    to a variable with a low above 0:                                             D^(1 - low)
    to all variables of an atom:                                                  D

The cheapest chain that reaches the bound variables is a shortest path over sets of variables.

Exponents are whole numbers of twelfths here: halves, thirds and quarters are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from fractions import Fraction
from functools import cache, lru_cache
from heapq import heappop, heappush
from itertools import islice, permutations, product
from math import factorial

from attrs import field, frozen

from everlog.core.classify.classes import is_hierarchical
from everlog.core.classify.query import Query, QueryAtom
from everlog.core.joins.generic_join import binding_order
from everlog.core.joins.variable_orders import Order, OrderNode, order_of, variable_order

UNIT = 12  # the exponent 1
MOST_SHARED = 5  # variables that stand in several atoms
MOST_ORDERS = 300
Band = tuple[int, int]
WHOLE: Band = (0, UNIT)
Reach = Callable[[int, int, int, int], int]


def canonical(query: Query) -> Query:
    """The same query with variables named by their place, so that equal shapes are equal.

    >>> print(canonical(Query.of("R(x, y)", "S(y, x)")))
    Q(v0, v1) = r(v0, v1), r(v1, v0)
    """
    names = {v: f"v{n}" for n, v in enumerate(query.variables)}
    atoms = tuple(QueryAtom("r", tuple(names[v] for v in atom.variables)) for atom in query.atoms)
    return Query(atoms, frozenset(names.values()))


def best_order(query: Query) -> tuple[Order, Fraction | None]:
    """The variable order with the smallest exponent of an update, and that exponent.

    It is unknown (None) where there are too many orders to try.

    >>> order, exponent = best_order(Query.of("R(a, b)", "S(b, c)", "T(c, d)", "U(a, d)"))
    >>> print(*order, exponent)
    a(c(b, d)) 1
    """
    if is_hierarchical(query):
        return variable_order(query), Fraction(0)
    costs = costs_of(canonical(query))
    if costs is None:
        return variable_order(query), None
    exponents = {n: costs.exponent(tried, {}) for n, tried in enumerate(costs.orders)}
    best = min(exponents, key=lambda n: (exponents[n], costs.space(costs.orders[n], {})))
    return order_of(query, _renamed(costs.orders[best].sequence, query)), Fraction(exponents[best], UNIT)


def shown_first(query: Query) -> tuple[Order, Fraction, Fraction] | None:
    """The order that stores least, of those with free variables above all others.

    Along it each answer over the free variables comes once.  With the exponents of what is stored,
    and of an update; None if there are too many orders to try.

    >>> order, space, update = shown_first(Query.of("R(a, b)", "S(b, c)", "T(c, d)"))
    >>> print(*order, space, update)
    b(c(d), a) 1 1
    >>> order, space, _ = shown_first(Query.of("R(a, b)", "S(b, c)", free="ac"))
    >>> print(*order, space)
    a(c(b)) 2
    """
    shared = shared_variables(query)
    own = [tuple(v for v in atom.variables if v not in shared) for atom in query.atoms]
    groups = []
    for part in (query.free, frozenset(query.variables) - query.free):
        first = [v for v in query.variables if v in shared and v in part]
        last = [tuple(v for v in group if v in part) for group in own]
        if factorial(len(first)) > MOST_ORDERS:
            return None
        groups.append([[(v,) for v in chosen] + [*filter(None, last)] for chosen in permutations(first)])
    sequences = [tuple(shown + hidden) for shown, hidden in islice(product(*groups), MOST_ORDERS + 1)]
    if len(sequences) > MOST_ORDERS:
        return None
    costs = OrderCosts(query, tuple(sequences))
    found = [(costs.space(tried, {}), costs.exponent(tried, {}), n) for n, tried in enumerate(costs.orders)]
    space, update, best = min(found)
    return order_of(query, list(sequences[best])), Fraction(space, UNIT), Fraction(update, UNIT)


def _renamed(sequence: tuple[tuple[str, ...], ...], query: Query) -> list[tuple[str, ...]]:
    names = {f"v{n}": v for n, v in enumerate(query.variables)}
    return [tuple(names[v] for v in group) for group in sequence]


@lru_cache(maxsize=256)
def costs_of(query: Query) -> OrderCosts | None:
    """The orders of a canonical query; None if there are too many."""
    if not query.variables or len(shared_variables(query)) > MOST_SHARED:
        return None
    found = dict.fromkeys(_sequences(query))
    return OrderCosts(query, tuple(found)) if len(found) <= MOST_ORDERS else None


def shared_variables(query: Query) -> tuple[str, ...]:
    """The variables that stand in more than one atom."""
    return tuple(v for v in query.variables if sum(v in atom.variables for atom in query.atoms) > 1)


def _sequences(query: Query) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Nodes from the root down, for every variable order that is worth a try.

    A node has one shared variable, or all that are left of a connected part of the query.  Other
    variables stand below all others of their atom, where they only count rows.
    """
    shared = shared_variables(query)
    own = [tuple(v for v in atom.variables if v not in shared) for atom in query.atoms]
    scopes = [frozenset(atom.variables) for atom in query.atoms]
    place = {v: n for n, v in enumerate(query.variables)}

    def parts(left: frozenset[str]) -> list[frozenset[str]]:
        found = []
        while left:
            part = frozenset([min(left, key=place.__getitem__)])
            while (more := part.union(*(s & left for s in scopes if s & part))) != part:
                part = more
            found.append(part)
            left -= part
        return found

    @cache
    def trees(part: frozenset[str]) -> list[tuple[tuple[str, ...], ...]]:
        listed = sorted(part, key=place.__getitem__)
        found = [((v,), *below) for v in listed for below in forests(part - {v})]
        return found if len(part) == 1 or len(found) > MOST_ORDERS else [*found, (tuple(listed),)]

    def forests(left: frozenset[str]) -> list[tuple[tuple[str, ...], ...]]:
        return [sum(chosen, ()) for chosen in product(*map(trees, parts(left)))]

    return ((*forest, *filter(None, own)) for forest in forests(frozenset(shared)))


@frozen
class Bound:
    """One variable that an update binds: the sets of atoms of which one is walked for it."""

    fixed: int
    bound: int
    walked: tuple[int, ...]
    known: int  # the variables that a chain may use: bound, or below a part that was joined


@frozen(eq=False)
class TriedOrder:
    """A variable order with what each update binds, and what is stored."""

    sequence: tuple[tuple[str, ...], ...]
    updates: tuple[Bound, ...]
    stored: tuple[tuple[int, int], ...]  # variables and atoms of each view


class OrderCosts:
    """The variable orders of a query, and the exponents of their updates under bands."""

    def __init__(self, query: Query, sequences: tuple[tuple[tuple[str, ...], ...], ...]) -> None:
        self.query = query
        self.bit = {v: 1 << n for n, v in enumerate(query.variables)}
        self.masks = [self._mask(atom.variables) for atom in query.atoms]
        self.orders = [self._tried(sequence) for sequence in sequences]
        self._reach: tuple[Mapping[str, Band], Reach] | None = None  # the last one

    def _mask(self, variables: Collection[str]) -> int:
        return sum(self.bit[v] for v in variables)

    def _tried(self, sequence: tuple[tuple[str, ...], ...]) -> TriedOrder:
        nodes: list[Placed] = []

        def place(node: OrderNode, parent: Placed | None) -> Placed:
            made = Placed(node, parent)
            nodes.append(made)
            made.parts.extend((self.query.atoms[i].variables, 1 << i) for i in node.atoms)
            for child in (place(below, made) for below in node.children):
                made.parts.append((child.node.key, child.atoms))
            return made

        for root in order_of(self.query, list(sequence)):
            place(root, None)
        stored = [(self._mask((*node.node.variables, *node.node.key)), node.atoms) for node in nodes]
        updates = [bound for node in nodes for i in node.node.atoms for bound in self._update(node, i)]
        return TriedOrder(sequence, tuple(dict.fromkeys(updates)), tuple(stored))

    def _update(self, node: Placed | None, atom: int) -> Iterator[Bound]:
        """What an update of an atom binds, from its node to the root."""
        known = list(self.query.atoms[atom].variables)
        fixed, part = self.masks[atom], 1 << atom
        joined = part
        while node is not None:
            others = [(schema, atoms) for schema, atoms in node.parts if atoms != part]
            left = dict.fromkeys(v for schema, _ in others for v in schema if v not in known)
            for schema, atoms in others:
                joined |= atoms if set(schema) <= set(known) else 0
            for v in binding_order([schema for schema, _ in others], known, left):
                del left[v]
                having = [atoms for schema, atoms in others if v in schema]
                known.append(v)
                walked = tuple(joined | atoms for atoms in having)
                yield Bound(fixed, self._mask(tuple(known)), walked, ~self._mask(tuple(left)))
                joined |= sum(having)  # disjoint sets
            part, node = node.atoms, node.parent

    def exponent(self, order: TriedOrder, bands: Mapping[str, Band], most: int = 10**6) -> int:
        """The exponent of D in one update's work, in twelfths; above `most` it may be too small."""
        reach = self.reach(bands)
        worst = 0
        for one in order.updates:
            worst = max(worst, min(reach(one.fixed, one.bound, atoms, one.known) for atoms in one.walked))
            if worst > most:
                break
        return worst

    def space(self, order: TriedOrder, bands: Mapping[str, Band], answers: bool = True) -> int:
        """The exponent of D in the rows of the views, in twelfths; with or without answers."""
        reach = self.reach(bands)
        everything = sum(1 << i for i, mask in enumerate(self.masks) if mask)
        stored = (pair for pair in order.stored if answers or pair[1] != everything)
        return max((reach(0, variables, atoms, -1) for variables, atoms in stored), default=0)

    def extensions(self, fixed: Collection[str], bound: Collection[str], bands: Mapping[str, Band]) -> int:
        """The exponent of D in the rows that fit one row over other variables, in twelfths."""
        everything = (1 << len(self.masks)) - 1
        return self.reach(bands)(self._mask(fixed), self._mask(bound), everything, -1)

    def reach(self, bands: Mapping[str, Band]) -> Reach:
        """How many bindings of some variables extend others, in twelfths of an exponent of D."""
        if self._reach is None or self._reach[0] != bands:
            self._reach = dict(bands), self._shortest(bands)
        return self._reach[1]

    def _shortest(self, bands: Mapping[str, Band]) -> Reach:
        steps = []
        for mask in self.masks:
            own = [(bit, bands.get(v, WHOLE)) for v, bit in self.bit.items() if mask & bit]
            light = [(bit, high) for bit, (_, high) in own if high < UNIT]
            heavy = [(bit, UNIT - low) for bit, (low, _) in own if low]
            steps.append((mask, light, heavy))

        @cache
        def reach(start: int, goal: int, atoms: int, known: int) -> int:
            heap, seen = [(0, start)], set()
            while heap:
                done, here = heappop(heap)
                if not goal & ~here:
                    return done
                if here in seen:
                    continue
                seen.add(here)
                for number, (mask, light, heavy) in enumerate(steps):
                    if atoms >> number & 1 and mask & known & ~here:
                        through = min((high for bit, high in light if here & bit), default=UNIT)
                        heappush(heap, (done + through, here | mask & known))
                        for bit, few in heavy:
                            if bit & known & ~here:
                                heappush(heap, (done + few, here | bit))
            raise AssertionError("the joined atoms have all bound variables")

        return reach


@frozen(eq=False)
class Placed:
    """A node of an order under construction, with what it joins: schemas, and the atoms below."""

    node: OrderNode
    parent: Placed | None
    parts: list[tuple[tuple[str, ...], int]] = field(factory=list)

    @property
    def atoms(self) -> int:
        return sum(atoms for _, atoms in self.parts)  # disjoint sets
