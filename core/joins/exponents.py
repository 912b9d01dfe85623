"""The exponent of D in what one update costs, by strategy: what `explain` may promise.

An update costs a *search* for the matches that change, and a step for each *match*.  A match that
the head tells is paid by its reader; others are part of the cost (`untold`).

| strategy | exponent of the search | source |
|---|---|---|
| `delta` | matches of the longest prefix of any order of the other atoms | each is a loop |
| `view_tree` | 0 if hierarchical, else that of the best order | Berkholz et al. 2017; F-IVM |
| `calibrated` | 1 on a join tree, else w: all support may change | CROWN; Section 5 of the paper |
| `generations` | ŵ - 1 | Theorem 4.4 of Abo Khamis et al. 2024 |
| `heavy_light` | that of the splits that are found | Kara et al. 2020 |
| `factorized` | w of what is left when a row is fixed | Yannakakis 1981 |
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from everlog.core.classify.classes import is_acyclic, is_hierarchical
from everlog.core.classify.covers import agm_exponent
from everlog.core.classify.multivariate import multivariate_width
from everlog.core.classify.query import Query
from everlog.core.classify.widths import fractional_hypertree_width
from everlog.core.joins.factorized import rest_of
from everlog.core.joins.join_strategies import (
    AUTO,
    CALIBRATED,
    DELTA,
    FACTORIZED,
    GENERATIONS,
    HEAVY_LIGHT,
    JOINS,
    VIEW_TREE,
)
from everlog.core.joins.order_costs import best_order
from everlog.core.joins.splits import split_exponent
from everlog.core.joins.untold import Shown, untold_exponent

MOST_SUBSETS = 4096


def refuge_of(query: Query, shown: Shown | None = None) -> str:
    """The view with the smallest exponent for facts that come and go: where `auto` moves to.

    Delta if there is none that stays about as large as the relations.

    >>> triangle = Query.of("r(a, b)", "s(b, c)", "t(a, c)")
    >>> path = Query.of("r(a)", "s(a, b)", "t(b)")
    >>> refuge_of(triangle), refuge_of(path)
    ('heavy_light', 'heavy_light')
    >>> refuge_of(Query.of("r(a, b)", "s(b, c)", "t(c, d)", "u(d, e)", "v(a, e)"))
    'generations'
    """
    return next(iter(refuges_of(query, shown)), DELTA)


@lru_cache(maxsize=1024)
def refuges_of(query: Query, shown: Shown | None = None) -> tuple[str, ...]:
    """All views with the smallest exponent: which of them is quicker, the stream decides.

    >>> refuges_of(Query.of("r(a, b)", "s(b, c)", "t(a, c)"))
    ('heavy_light', 'generations')
    >>> refuges_of(Query.of(*[f"r{n}(x{n}, x{(n + 1) % 7})" for n in range(7)]))
    ('factorized',)
    """
    views = [VIEW_TREE] if is_hierarchical(query) else [HEAVY_LIGHT]
    views += [CALIBRATED] if is_acyclic(query) else []  # of a cyclic query its bags may be large
    views = [view for view in (*views, GENERATIONS) if not JOINS[view].refusal(query)]
    if not JOINS[FACTORIZED].refusal(query) and search_exponent(FACTORIZED, query) < search_exponent(DELTA, query):
        views.append(FACTORIZED)  # else it is delta with more bookkeeping
    exponents = {view: update_exponent(view, query, shown) for view in views}
    return tuple(view for view in views if exponents[view] == min(exponents.values()))


def growing_refuge_of(query: Query, shown: Shown | None = None) -> str:
    """The view to move to while no fact has gone: where it stays small, one that only grows.

    On a join tree, calibrated bags are as large as the relations; one bag for everything is as
    large as the answer.  Several bags of a cyclic query may be larger than both.

    >>> growing_refuge_of(Query.of("r(a, b)", "s(b, c)", "t(c, d)"))
    'calibrated'
    """
    refuge = refuge_of(query, shown)
    small = is_acyclic(query) or len(fractional_hypertree_width(query).decomposition.bags) == 1
    if not small or (refuge != DELTA and growing_exponent(query, shown) > update_exponent(refuge, query, shown)):
        return refuge
    return CALIBRATED


def growing_exponent(query: Query, shown: Shown | None = None) -> Fraction:
    """The exponent of N for one insert while no fact goes: Theorem 4.1, and all matches together.

    >>> path = Query.of("r(a, b)", "s(b, c)")
    >>> growing_exponent(path), growing_exponent(path, Shown(frozenset("b")))
    (Fraction(0, 1), Fraction(1, 1))
    """
    own = fractional_hypertree_width(query).value - 1
    return max(own, agm_exponent(query) - 1) if _untold(CALIBRATED, query, shown) else own


def update_exponent(strategy: str, query: Query, shown: Shown | None = None) -> Fraction:
    """The exponent of D in the work for one update, without facts that change."""
    if strategy == AUTO:
        strategy = refuge_of(query, shown)
    return max(search_exponent(strategy, query), _untold(strategy, query, shown))


def _untold(strategy: str, query: Query, shown: Shown | None) -> Fraction:
    return Fraction(0) if shown is None else untold_exponent(strategy, query, shown)


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
    if strategy == FACTORIZED:
        rests = (rest_of(query, frozenset(atom.variables)) for atom in query.atoms)
        return max((rest.value for rest in rests if rest is not None), default=Fraction(0))
    if strategy == VIEW_TREE and (known := best_order(query)[1]) is not None:
        return known
    return agm_exponent(query)


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
