"""Heavy and light values for any query, found by search (IVM^ε).

The degree of a value is the largest number of rows that it has in an atom: values below D^ε are
light, those above heavy.  A *class* has one band of degrees for each variable.  Within a class some
variable order may have a smaller exponent than any order has for all values: light values have few
rows, and there are few heavy values.  An answer belongs to one class, so the query is the disjoint
union of its classes, each kept by a view tree of its own.

The literature finds such splits by hand, query by query.  Here the exponents 0, 1/2, 2/3 and 3/4
are tried in turn, with cuts at halves, thirds and quarters: is there, for every combination of
bands, a variable order that keeps within it (`order_costs`)?  If so, neighbouring classes that one
order serves are merged.

Bodies of more than six atoms have no generations to fall back on.  For them 1, 3/2 and 2 are tried,
too, with orders that store no more rows than the relations and the answers have.

Source: Kara, Ngo, Nikolic, Olteanu, Zhang, "Maintaining triangle queries under updates", TODS
45(3), 2020; Figure 4 of Abo Khamis et al. 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product

from attrs import frozen

from everlog.core.classify.query import Query
from everlog.core.joins.order_costs import (
    UNIT,
    WHOLE,
    Band,
    OrderCosts,
    TriedOrder,
    canonical,
    costs_of,
    shared_variables,
)
from everlog.core.joins.variable_orders import Order, order_of

MOST_CLASSES = 300  # that are looked at for one exponent
TRIED = ((0, ()), (6, (6,)), (8, (4, 8)), (9, (3, 6, 9)))  # exponents and cuts, in twelfths
OF_LARGE_BODIES = ((12, ()), (12, (6,)), (18, ()), (24, ()))
LARGE = 7  # atoms


@frozen
class SplitClass:
    """A band for each variable that is split, and the variable order for answers in these bands."""

    bands: dict[str, Band]
    order: Order


@frozen
class Splits:
    """An exponent that splits keep, and where bands begin and end, in twelfths."""

    exponent: Fraction
    cuts: tuple[int, ...]
    variables: tuple[str, ...]


def split_exponent(query: Query) -> Fraction | None:
    """The exponent of an update with heavy and light values; None if no splits are found.

    >>> four = Query.of("R(a, b)", "S(b, c)", "T(c, d)", "U(a, d)")
    >>> print(split_exponent(Query.of("R(a, b)", "S(b, c)", "T(a, c)")), split_exponent(four))
    1/2 2/3
    """
    found = splits_of(canonical(query))
    return None if found is None else found.exponent


@lru_cache(maxsize=256)
def splits_of(query: Query) -> Splits | None:
    """The splits of a canonical query, without its classes."""
    costs = costs_of(query)
    if costs is None:
        return None
    variables = shared_variables(query)
    for exponent, cuts in (*TRIED, *(OF_LARGE_BODIES if len(query.atoms) >= LARGE else ())):
        if (len(cuts) + 1) ** len(variables) > MOST_CLASSES:
            break
        search = Search(costs, variables, exponent, cuts)
        if all(search.order(dict(zip(variables, bands, strict=True))) for bands in search.smallest()):
            return Splits(Fraction(exponent, UNIT), cuts, variables)
    return None


@lru_cache(maxsize=64)
def classes_of(query: Query) -> tuple[SplitClass, ...]:
    """The classes of a canonical query that has splits.

    >>> [str(*c.order) for c in classes_of(canonical(Query.of("R(a)", "S(a, b)", "T(b)")))]
    ['v1(v0)', 'v0(v1)']
    """
    costs, found = costs_of(query), splits_of(query)
    assert costs is not None
    assert found is not None
    search = Search(costs, found.variables, int(found.exponent * UNIT), found.cuts)
    search.save_space()
    return tuple(search.classes(dict.fromkeys(found.variables, WHOLE)))


class Search:
    """Looks for variable orders that keep within an exponent, class by class."""

    def __init__(
        self, costs: OrderCosts, variables: tuple[str, ...], exponent: int, cuts: tuple[int, ...]
    ) -> None:
        self.costs, self.variables, self.exponent, self.cuts = costs, variables, exponent, cuts
        self.orders = list(costs.orders)
        self.space = 10**6  # the most that the lightest class may take, in twelfths of an exponent

    def smallest(self) -> Iterator[tuple[Band, ...]]:
        """All combinations of bands without a cut inside; the heaviest first: they fail early."""
        bands = list(pairwise((0, *self.cuts, UNIT)))[::-1]
        return product(bands, repeat=len(self.variables))

    def save_space(self) -> None:
        """From now on, accept only orders that store few rows while all values are light."""
        bands = self._lightest()
        good = (o for o in self.orders if self.costs.exponent(o, bands, self.exponent) <= self.exponent)
        self.space = max(UNIT, min(self.costs.space(order, bands, answers=False) for order in good))

    def order(self, bands: dict[str, Band]) -> TriedOrder | None:
        """An order that keeps within the exponent; those that did so before are tried first."""
        for number, order in enumerate(self.orders):
            if self.costs.exponent(order, bands, self.exponent) <= self.exponent and self._is_small(order, bands):
                self.orders.insert(0, self.orders.pop(number))
                return order
        return None

    def _is_small(self, order: TriedOrder, bands: dict[str, Band]) -> bool:
        if self.exponent >= UNIT:
            return self.costs.space(order, bands, answers=False) <= UNIT
        if any(low for low, _ in bands.values()):
            return True
        return self.costs.space(order, self._lightest(), answers=False) <= self.space

    def _lightest(self) -> dict[str, Band]:
        return dict.fromkeys(self.variables, (0, (*self.cuts, UNIT)[0]))

    def classes(self, bands: dict[str, Band]) -> Iterator[SplitClass]:
        """These bands as one class if one order serves them, else cut in two and tried again."""
        order = self.order(bands)
        if order is not None:
            yield SplitClass(bands, order_of(self.costs.query, list(order.sequence)))
            return
        most, chosen = -1, None
        for v, (low, high) in bands.items():
            for cut in self.cuts:
                if low < cut < high:
                    sides = {**bands, v: (low, cut)}, {**bands, v: (cut, high)}
                    served = sum(self.order(side) is not None for side in sides)
                    if served > most:
                        most, chosen = served, sides
        assert chosen is not None, "bands without a cut inside are served"
        for side in chosen:
            yield from self.classes(side)
