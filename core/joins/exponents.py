"""The exponent of D in what one update costs, by strategy: what `explain` may promise.

An update costs a *search* for the matches that change, and a step for each *match*.  A match that
the head tells is paid by its reader.  A match that the head does not tell, because it hides a
variable or because a condition above the join rejects it, is not: then the number of matches that
one row can have is part of the cost.

| strategy | exponent of the search | source |
|---|---|---|
| `delta` | matches of the longest prefix of any order of the other atoms | each is a loop |
| `view_tree` | 0 if hierarchical, else that of the best order | Berkholz et al. 2017; F-IVM |
| `calibrated` | 1 on a join tree, else w: all support may change | CROWN; Section 5 of the paper |
| `generations` | ŵ - 1 | Theorem 4.4 of Abo Khamis et al. 2024 |
| `heavy_light` | that of the splits that are found | Kara et al. 2020 |
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from functools import lru_cache

from everlog.core.classify.classes import is_acyclic
from everlog.core.classify.covers import agm_exponent, fractional_cover
from everlog.core.classify.multivariate import multivariate_width
from everlog.core.classify.query import Query
from everlog.core.classify.widths import fractional_hypertree_width
from everlog.core.joins.join_strategies import (
    AUTO,
    CALIBRATED,
    DELTA,
    GENERATIONS,
    HEAVY_LIGHT,
    JOINS,
    VIEW_TREE,
)
from everlog.core.joins.order_costs import best_order
from everlog.core.joins.splits import split_exponent

MOST_SUBSETS = 4096


def refuge_of(query: Query) -> str:
    """The view with the smallest exponent for facts that come and go: where `auto` moves to.

    Delta if there is none that stays about as large as the relations.

    >>> triangle = Query.of("r(a, b)", "s(b, c)", "t(a, c)")
    >>> path = Query.of("r(a)", "s(a, b)", "t(b)")
    >>> refuge_of(triangle), refuge_of(path)
    ('heavy_light', 'heavy_light')
    >>> refuge_of(Query.of("r(a, b)", "s(b, c)", "t(c, d)", "u(d, e)", "v(a, e)"))
    'generations'
    """
    return next(iter(refuges_of(query)), DELTA)


def refuges_of(query: Query) -> tuple[str, ...]:
    """All views with the smallest exponent: which of them is quicker, the stream decides.

    >>> refuges_of(Query.of("r(a, b)", "s(b, c)", "t(a, c)"))
    ('heavy_light', 'generations')
    """
    views = [CALIBRATED] if is_acyclic(query) else []  # of a cyclic query its bags may be large
    views = [view for view in (HEAVY_LIGHT, *views, GENERATIONS) if not JOINS[view].refusal(query)]
    exponents = {view: search_exponent(view, query) for view in views}
    return tuple(view for view in views if exponents[view] == min(exponents.values()))


def growing_refuge_of(query: Query) -> str:
    """The view to move to while no fact has gone: where it stays small, one that only grows.

    On a join tree, calibrated bags are as large as the relations; one bag for everything is as
    large as the answer.  Several bags of a cyclic query may be larger than both.

    >>> growing_refuge_of(Query.of("r(a, b)", "s(b, c)", "t(c, d)"))
    'calibrated'
    """
    small = is_acyclic(query) or len(fractional_hypertree_width(query).decomposition.bags) == 1
    return CALIBRATED if small else refuge_of(query)


def search_exponent(strategy: str, query: Query) -> Fraction:
    """The exponent of D in the work for one update that finds no match.

    >>> triangle = Query.of("r(a, b)", "s(b, c)", "t(a, c)")
    >>> names = "delta", "generations", "heavy_light", "calibrated"
    >>> [str(search_exponent(name, triangle)) for name in names]
    ['1', '1/2', '1/2', '3/2']
    """
    if strategy == AUTO:
        strategy = refuge_of(query)
    if strategy == DELTA:
        return Fraction(_delta_exponent(query))
    if strategy == HEAVY_LIGHT and (found := split_exponent(query)) is not None:
        return found
    if strategy == GENERATIONS:
        return multivariate_width(query).value - 1
    if strategy == CALIBRATED:
        return Fraction(1) if is_acyclic(query) else fractional_hypertree_width(query).value
    if strategy == VIEW_TREE and (known := best_order(query)[1]) is not None:
        return known
    return agm_exponent(query)


def match_exponent(query: Query, shown: Collection[str]) -> Fraction:
    """How many rows over the `shown` variables one row of an atom can be part of, as a power of D.

    >>> one, other = Query.of("r(a, b)", "s(b)"), Query.of("r(a, b)", "s(a, c)")
    >>> match_exponent(one, "a"), match_exponent(other, "a")
    (Fraction(1, 1), Fraction(0, 1))
    """
    widest = Fraction(0)
    for number, fixed in enumerate(query.atoms):
        others = [frozenset(a.variables) for n, a in enumerate(query.atoms) if n != number]
        left = frozenset(v for v in shown if v not in fixed.variables)
        widest = max(widest, fractional_cover(others, left).number)
    return widest


@lru_cache(maxsize=1024)
def _delta_exponent(query: Query) -> int:
    """Delta joins atom after atom in an order that depends on sizes, so any order may come.

    Partial matches of some atoms are at most as many as the rows of those among them that cover all
    their variables; of all such covers without a superfluous atom, the largest counts.

    >>> _delta_exponent(Query.of("r(a, b)", "s(b, c)", "t(c, d)", "u(d, e)", "v(e, f)"))
    3
    """
    return max(
        largest_cover(
            [frozenset(a.variables) - frozenset(fixed.variables) for n, a in enumerate(query.atoms) if n != number]
        )
        for number, fixed in enumerate(query.atoms)
    )


def largest_cover(scopes: Sequence[frozenset[str]]) -> int:
    """The most scopes of which each has a variable that the others have not."""
    wanted = [scope for scope in dict.fromkeys(scopes) if scope]
    most, tried = min(len(wanted), len(frozenset().union(*wanted))), 0

    def larger(chosen: list[frozenset[str]], rest: Sequence[frozenset[str]], best: int) -> int:
        nonlocal tried
        tried += 1
        best = max(best, len(chosen))
        for n, scope in enumerate(rest):
            if best == most or tried > MOST_SUBSETS or len(chosen) + len(rest) - n <= best:
                break
            new = [*chosen, scope]
            if all(one - frozenset().union(*(o for o in new if o is not one)) for one in new):
                best = larger(new, rest[n + 1 :], best)
        return best

    found = larger([], wanted, 0)
    return most if tried > MOST_SUBSETS else found
