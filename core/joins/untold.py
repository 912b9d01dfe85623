"""Matches that change no fact, as a power of D.

One row of an atom is part of many matches.  Where the head shows all variables, each is a fact that
changes, and its reader pays for it.  Else a match may change nothing: a hidden variable has another
value, or a condition above the join fails.  Then matches are part of the cost of an update.

Views with totals do not meet every match.  They bind the variables on the way from the updated atom
to the root of a variable order, and walk down only where something is shown: what is hidden counts
by its total.  So the rows that they meet are over fewer variables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fractions import Fraction
from typing import TypeAlias

from attrs import frozen

from everlog.core.classify.covers import fractional_cover
from everlog.core.classify.query import Query
from everlog.core.joins.factorized import rest_of, trees_of
from everlog.core.joins.join_strategies import FACTORIZED, HEAVY_LIGHT, JOINS
from everlog.core.joins.order_costs import UNIT, Band, best_order, canonical, costs_of
from everlog.core.joins.splits import classes_of
from everlog.core.joins.variable_orders import Order, OrderNode


@frozen
class Shown:
    """What a rule asks its join for: rows over some of its variables.

    `told`: each row over them that one update changes is a fact that changes.
    """

    variables: frozenset[str]
    told: bool = True


def untold_exponent(strategy: str, query: Query, shown: Shown) -> Fraction:
    """The exponent of D in the matches of one row that a strategy meets and no reader pays for.

    >>> triangle, nothing = Query.of("r(a, b)", "s(b, c)", "t(a, c)"), Shown(frozenset())
    >>> [str(untold_exponent(name, triangle, nothing)) for name in ("delta", "heavy_light")]
    ['1', '1/2']
    """
    if len(query.atoms) < 2 or (shown.told and shown.variables == frozenset(query.variables)):
        return Fraction(0)
    if not JOINS[strategy].totals and strategy != FACTORIZED:
        return match_exponent(query, query.variables)
    met = _met(strategy, query, shown)
    return max((most for bound, most in met if not _all_told(bound, shown)), default=Fraction(0))


def match_exponent(query: Query, shown: Collection[str]) -> Fraction:
    """How many rows over the `shown` variables one row of an atom can be part of, as a power of D.

    >>> one, other = Query.of("r(a, b)", "s(b)"), Query.of("r(a, b)", "s(a, c)")
    >>> match_exponent(one, "a"), match_exponent(other, "a")
    (Fraction(1, 1), Fraction(0, 1))
    """
    return max((_rows(query, number, frozenset(shown)) for number in range(len(query.atoms))), default=Fraction(0))


def _rows(query: Query, fixed: int, variables: frozenset[str]) -> Fraction:
    """Of rows over some variables that agree with one row of the fixed atom."""
    others = [frozenset(a.variables) for n, a in enumerate(query.atoms) if n != fixed]
    left = variables.difference(query.atoms[fixed].variables)
    return fractional_cover(others, left).number


def _all_told(bound: frozenset[str], shown: Shown) -> bool:
    return shown.told and bound <= shown.variables


def _met(strategy: str, query: Query, shown: Shown) -> Iterator[tuple[frozenset[str], Fraction]]:
    """For each tree and atom: the variables that are bound for one row, and how many such rows."""
    if strategy == FACTORIZED:
        yield from _met_in_bags(query, shown)
        return
    shape = canonical(query)
    costs = costs_of(shape)
    trees: list[tuple[dict[str, Band], Order]] = [({}, best_order(shape)[0])]
    if strategy == HEAVY_LIGHT:
        trees = [(one.bands, one.order) for one in classes_of(shape)]
    names = dict(zip(query.variables, shape.variables, strict=True))
    written = {new: old for old, new in names.items()}
    kept = frozenset(names[v] for v in shown.variables)
    for bands, order in trees:
        for number, bound in _bound(order, kept):
            own = frozenset(shape.atoms[number].variables)
            most = _rows(shape, number, bound)
            if costs is not None:
                most = min(most, Fraction(costs.extensions(own, bound, bands), UNIT))
            yield frozenset(written[v] for v in bound - own), most


def _met_in_bags(query: Query, shown: Shown) -> Iterator[tuple[frozenset[str], Fraction]]:
    """The same for bags: those that show something, with those above them, are walked."""
    for number, atom in enumerate(query.atoms):
        rest = rest_of(query, frozenset(atom.variables))
        if rest is not None:
            trees, walked = trees_of(rest, shown.variables), set[int]()
            for place, (bag, parent) in reversed(list(enumerate(trees))):
                new = bag if parent is None else bag - trees[parent][0]
                if place in walked or not new.isdisjoint(shown.variables):
                    walked.update({place} if parent is None else {place, parent})
            bound = frozenset().union(*(trees[place][0] for place in walked))
            yield bound, _rows(query, number, bound)


Bindings: TypeAlias = Iterator[tuple[int, frozenset[str]]]


def _bound(order: Order, kept: frozenset[str]) -> Bindings:
    """For each atom, the variables that a view tree binds: upwards, and down where it branches."""

    def below(node: OrderNode, above: frozenset[str], beside: frozenset[str]) -> Bindings:
        path = above.union(node.variables)
        walked = [_walked(child, kept) for child in node.children]
        for atom in node.atoms:
            yield atom, path.union(beside, *walked)
        for number, child in enumerate(node.children):
            yield from below(child, path, beside.union(*walked[:number], *walked[number + 1 :]))

    for root in order:
        others = (_walked(other, kept) for other in order if other is not root)
        yield from below(root, frozenset(), frozenset().union(*others))


def _walked(node: OrderNode, kept: frozenset[str]) -> frozenset[str]:
    """The variables of a subtree that are walked: down to the last one that is shown."""
    found = frozenset().union(*(_walked(child, kept) for child in node.children))
    return found.union(node.variables) if found or not kept.isdisjoint(node.variables) else found
