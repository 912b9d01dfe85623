"""The multivariate extension of a query: its width is the cost of updates with deletes.

Under deletes every fact has a lifespan, and the joined facts must have been alive together.  The
multivariate extension Q̂ says so with equalities: for each order σ of the k atoms, the atom in
place i also has the variables Z1, …, Zi.  The width w(Q̂) is the largest w(Q̂σ) over all k! orders,
and an update costs about |D| to the power w(Q̂) - 1.

Few of the orders need a search.  Q̂σ is known, up to names and twins, by the set of the
*signatures* of its variables: the places of the variable's atoms.  Orders with the same
set have the same width.  So do orders that differ in the last two places, since Zk, in one atom
only, adds nothing.  And Q is made small before: a variable in one atom only is an ear in every Q̂σ,
one that all atoms have belongs to every bag, and of two atoms over the same variables (or an atom
without any) the earlier one lies inside a later one in Q̂σ.  At last, only what exceeds the largest
width so far is searched for, and nothing exceeds w(Q) + 1.

Source: Abo Khamis, Kara, Olteanu, Suciu, PACMMOD 2(5), 2024, Definition 3.3 and Section 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import permutations

from attrs import frozen

from everlog.core.classify.classes import atoms_of, is_hierarchical, loomis_whitney
from everlog.core.classify.covers import Signature, bits
from everlog.core.classify.query import Query, QueryAtom
from everlog.core.classify.widths import ONE, Search, fractional_hypertree_width

MOST_ATOMS = 6  # after the query is made small: 720 orders
MOST_WORK = 400_000  # of the searches over all orders together: a few seconds


@frozen
class MultivariateWidth:
    """w(Q̂), and an order σ (atom indexes) that has it; None if every order does.

    If not exact, w(Q̂) is between `lower` and `value`, and `worst` is an order with at least
    `lower`, if known.
    """

    value: Fraction
    exact: bool
    worst: tuple[int, ...] | None
    lower: Fraction


def component(query: Query, order: Sequence[int]) -> Query:
    """Q̂σ of one order σ, Eq. (6).  The names Z1, Z2, … get underscores until they are new."""
    stem = "Z"
    while any(f"{stem}{i + 1}" in query.variables for i in range(len(order))):
        stem += "_"
    names = tuple(f"{stem}{i + 1}" for i in range(len(order)))
    ordered = [query.atoms[i] for i in order]
    atoms = tuple(QueryAtom(a.relation, names[: i + 1] + a.variables) for i, a in enumerate(ordered))
    return Query(atoms, query.free | frozenset(names))


@lru_cache(maxsize=1024)
def multivariate_width(query: Query) -> MultivariateWidth:
    """w(Q̂): 1 exactly if the query is hierarchical, else between 3/2 and w(Q) + 1.

    >>> multivariate_width(Query.of("R(A, B, C)", "S(A)", "T(B)", "U(C)")).value
    Fraction(5, 3)

    Cost: for each of the at most k!/2 orders that differ, that of a width.  After MOST_WORK the
    other orders are bounded greedily; if there are more than MOST_ATOMS atoms, all are bounded by
    w(Q) + 1.
    """
    if is_hierarchical(query):
        return MultivariateWidth(ONE, True, None, ONE)
    static = fractional_hypertree_width(query)
    upper = static.value + 1
    least = max(Fraction(3, 2), static.value if static.exact else ONE)
    small, dropped = reduced(query)
    if len(small) > MOST_ATOMS:
        if loomis_whitney(query):
            return MultivariateWidth(Fraction(3, 2), True, None, Fraction(3, 2))  # Section 4.2
        return MultivariateWidth(upper, False, None, least)
    best = highest = ONE  # the largest exact width, and the largest upper bound of one
    worst, work = None, 0
    for signatures, order in essential_orders(small):
        search = Search(hypergraph(signatures))
        found = search.best((1 << len(signatures)) - 1, best, MOST_WORK - work)
        work += search.work
        highest = max(highest, found.cost)
        if found.exact and found.cost > best:
            best, worst = found.cost, dropped + order
        if best == upper:
            break
    value = min(highest, upper)
    return MultivariateWidth(value, value == best, worst, max(best, least))


# ── making it small ──────────────────────────────────────────────────────────────────────────────


def reduced(query: Query) -> tuple[dict[int, frozenset[str]], tuple[int, ...]]:
    """The part of the query that w(Q̂) depends on, and the dropped atoms.

    In a worst order the dropped atoms come first.

    >>> small, dropped = reduced(Query.of("R(A, B)", "S(B, C)", "T(C, D)", "U(C)"))
    >>> {atom: sorted(variables) for atom, variables in small.items()}, dropped
    ({0: ['B'], 1: ['B', 'C'], 3: ['C']}, (2,))
    """
    atoms = {i: frozenset(atom.variables) for i, atom in enumerate(query.atoms)}
    dropped: list[int] = []
    while True:
        everywhere = [sum(v in schema for schema in atoms.values()) for v in query.variables]
        kept = {v for v, n in zip(query.variables, everywhere, strict=True) if 1 < n < len(atoms)}
        restricted = {i: schema & kept for i, schema in atoms.items()}
        last = {schema: i for i, schema in restricted.items() if schema}
        dropped += [i for i, schema in restricted.items() if last.get(schema) != i]
        small = {i: restricted[i] for i in sorted(last.values())}
        if small == atoms:
            return small, tuple(dropped)
        atoms = small


def essential_orders(
    atoms: dict[int, frozenset[str]],
) -> Iterator[tuple[tuple[Signature, ...], tuple[int, ...]]]:
    """One order σ for each possible set of signatures of Q̂σ, with that set."""
    query = Query(tuple(QueryAtom("", tuple(sorted(schema))) for schema in atoms.values()), frozenset())
    columns = [list(bits(at)) for at in sorted(set(atoms_of(query).values()))]
    names, k = list(atoms), len(atoms)
    prefix = {(1 << k) - (1 << i) for i in range(1, k - 1)}  # Z2 … Zk-1; all atoms have Z1, one has Zk
    last_two = 3 << k - 2
    seen: set[frozenset[Signature]] = set()
    for places in permutations(range(k)):  # places[j]: where σ puts atom j
        signatures = frozenset(sum(1 << places[j] for j in column) for column in columns)
        if signatures in seen:
            continue
        swapped = {s ^ last_two if (s & last_two).bit_count() == 1 else s for s in signatures}
        seen |= {signatures, frozenset(swapped)}
        order = sorted(range(k), key=lambda j: places[j])
        yield tuple(sorted(signatures | prefix)), tuple(names[j] for j in order)


def hypergraph(signatures: Sequence[Signature]) -> tuple[int, ...]:
    """The edges over variables 0, 1, … with these signatures: one for each place."""
    k = max(signatures).bit_length()
    return tuple(sum(1 << v for v, s in enumerate(signatures) if s >> i & 1) for i in range(k))
