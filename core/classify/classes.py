"""Which class a query is in, and why: hierarchical inside acyclic, else cyclic.

The class decides what an update can cost, before there is any data: constant time for hierarchical
queries, constant amortized time under inserts for acyclic ones, more for cyclic ones.  Each test
gives a reason that can be checked: two variables that break the hierarchy, a join tree, or the
cycle that is left when ear removal (GYO) finds no further ear.

Ear removal: an atom is an ear if what it shares with the other atoms lies inside one of them.  That
one becomes its parent.  A query is acyclic exactly if one ear after another can be removed.

Source: Abo Khamis, Kara, Olteanu, Suciu, PACMMOD 2(5), 2024, Section 2; Bagan, Durand, Grandjean,
CSL 2007 (free-connex); Berkholz, Keppeler, Schweikardt, PODS 2017 (q-hierarchical); Graham 1979, Yu
and Özsoyoğlu 1979 (ear removal).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import combinations

from attrs import frozen

from everlog.core.classify.query import Query, QueryAtom


class QueryClass(StrEnum):
    """From cheap to expensive.  Hierarchical queries are acyclic; all others are cyclic."""

    HIERARCHICAL = "hierarchical"
    ACYCLIC = "acyclic"
    CYCLIC = "cyclic"


def classify(query: Query) -> tuple[QueryClass, str]:
    """The class, and the reason for it in one sentence.

    >>> classify(Query.of("r(a, b)", "s(a, c)"))[0]
    <QueryClass.HIERARCHICAL: 'hierarchical'>
    >>> classify(Query.of("r(a, b)", "s(b, c)", "t(c, d)"))[1]
    '`b` and `c` break the hierarchy: both are in s(b, c), only `b` in r(a, b), only `c` in t(c, d)'
    >>> classify(Query.of("r(a, b)", "s(b, c)", "t(a, c)"))[1]
    'after ear removal the cycle a – b – c remains'
    """
    broken = hierarchy_break(query)
    if broken is None:
        reason = "the atoms of any two variables are disjoint or one set contains the other"
        return QueryClass.HIERARCHICAL, reason
    ears = ear_removal(query)
    if not ears.remaining:
        return QueryClass.ACYCLIC, _break_in_words(query, *broken)
    if loop := _chordless_cycle(_cores(query, ears.remaining)):
        return QueryClass.CYCLIC, f"after ear removal the cycle {' – '.join(loop)} remains"
    names, most = ", ".join(ears.cycle), len(ears.cycle) - 1
    return QueryClass.CYCLIC, f"after ear removal {names} remain: any {most} of them share an atom, but not all"


# ── hierarchical ─────────────────────────────────────────────────────────────────────────────────


def hierarchy_break(query: Query) -> tuple[str, str] | None:
    """Two variables whose sets of atoms overlap without inclusion; None if hierarchical.

    >>> hierarchy_break(Query.of("R(A, B)", "S(B, C)", "T(C, D)"))
    ('B', 'C')
    """
    at = atoms_of(query)
    for one, other in combinations(at, 2):
        if at[one] & at[other] not in (0, at[one], at[other]):
            return one, other
    return None


def is_hierarchical(query: Query) -> bool:
    """Are the atom sets of any two variables disjoint, or one inside the other?"""
    return hierarchy_break(query) is None


def is_q_hierarchical(query: Query) -> bool:
    """Hierarchical, and a variable with more atoms than a free one is free too.

    >>> is_q_hierarchical(Query.of("R(A, B)", "S(B)", free="A"))
    False
    >>> is_q_hierarchical(Query.of("R(A, B)", "S(B)", free="B"))
    True
    """
    at = atoms_of(query)
    return is_hierarchical(query) and all(
        more in query.free or at[free] & at[more] != at[free] or at[free] == at[more]
        for free in query.free
        for more in at
    )


def atoms_of(query: Query) -> dict[str, int]:
    """The atoms of each variable, as a bit set; variables in order of occurrence.

    >>> atoms_of(Query.of("R(A, B)", "S(B)"))
    {'A': 1, 'B': 3}
    """
    at = dict.fromkeys(query.variables, 0)
    for i, atom in enumerate(query.atoms):
        for variable in atom.variables:
            at[variable] |= 1 << i
    return at


def _break_in_words(query: Query, one: str, other: str) -> str:
    def first(has: str | None, hasnot: str | None) -> QueryAtom:
        return next(a for a in query.atoms if has in a.variables and hasnot not in a.variables)

    both = next(a for a in query.atoms if one in a.variables and other in a.variables)
    return (
        f"`{one}` and `{other}` break the hierarchy: both are in {both}, "
        f"only `{one}` in {first(one, other)}, only `{other}` in {first(other, one)}"
    )


# ── acyclic ──────────────────────────────────────────────────────────────────────────────────────


@frozen
class Ears:
    """What ear removal leaves: a join tree, or the atoms of a cycle.

    `parents` has the parent of each atom; None for the root and for the atoms in `remaining`.
    Parts of a query without a common variable are linked all the same, so an acyclic query has one
    root.  `cycle` names the variables around the cycle, each once.
    """

    parents: tuple[int | None, ...]
    remaining: tuple[int, ...]
    cycle: tuple[str, ...]


def ear_removal(query: Query) -> Ears:
    """Remove ears until none is left (GYO).

    >>> ear_removal(Query.of("R(A, B)", "S(B, C)", "T(C, D)"))
    Ears(parents=(1, 2, None), remaining=(), cycle=())
    >>> ear_removal(Query.of("R(A, B)", "S(B, C)", "T(A, C)", "U(C, D)"))
    Ears(parents=(None, None, None, 1), remaining=(0, 1, 2), cycle=('A', 'B', 'C'))

    Cost: cubic in the number of atoms.
    """
    schemas = [frozenset(atom.variables) for atom in query.atoms]
    parents: list[int | None] = [None] * len(schemas)
    left = list(range(len(schemas)))
    while len(left) > 1 and (found := _ear(schemas, left)) is not None:
        ear, parent = found
        parents[ear] = parent
        left.remove(ear)
    remaining = tuple(left) if len(left) > 1 else ()
    return Ears(tuple(parents), remaining, _cycle(_cores(query, remaining)))


def _ear(schemas: Sequence[frozenset[str]], left: Sequence[int]) -> tuple[int, int] | None:
    for ear in left:
        others = [i for i in left if i != ear]
        shared = schemas[ear] & frozenset().union(*(schemas[i] for i in others))
        for parent in others:
            if shared <= schemas[parent]:
                return ear, parent
    return None


def is_acyclic(query: Query) -> bool:
    """Is there a join tree (α-acyclicity)?"""
    return not ear_removal(query).remaining


def is_free_connex(query: Query) -> bool:
    """Acyclic, and still acyclic with one more atom over the free variables.

    >>> is_free_connex(Query.of("R(A, B)", "S(B, C)", free="AC"))
    False
    >>> is_free_connex(Query.of("R(A, B)", "S(B, C)", free="AB"))
    True
    """
    head = QueryAtom("", tuple(v for v in query.variables if v in query.free))
    return is_acyclic(query) and is_acyclic(Query((*query.atoms, head), query.free))


def loomis_whitney(query: Query) -> int | None:
    """The degree of a Loomis–Whitney query; None if it is not one.

    Of degree k ≥ 3, it has k variables, one atom for each k - 1 of them, and no others.

    >>> loomis_whitney(Query.of("R(A, B)", "S(B, C)", "T(A, C)"))
    3

    Atoms without variables do not count; a second atom over the same variables makes it another
    query.
    """
    schemas = [frozenset(atom.variables) for atom in query.atoms if atom.variables]
    k = len(query.variables)
    right = k >= 3 and len(schemas) == k == len(set(schemas)) and all(len(s) == k - 1 for s in schemas)
    return k if right else None


# ── the cycle that remains ───────────────────────────────────────────────────────────────────────


def _cores(query: Query, remaining: Sequence[int]) -> list[tuple[str, ...]]:
    """The remaining atoms without the variables that only one of them has."""
    schemas = [query.atoms[i].variables for i in remaining]
    return [tuple(v for v in s if sum(v in other for other in schemas) > 1) for s in schemas]


def _cycle(cores: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """A shortest chordless cycle; in a chordal graph, a clique that is in no atom."""
    return _chordless_cycle(cores) or (_uncovered_clique(cores) if cores else ())


def _neighbours(cores: Sequence[Sequence[str]]) -> dict[str, set[str]]:
    near: dict[str, set[str]] = {v: set() for core in cores for v in core}
    for core in cores:
        for v in core:
            near[v] |= set(core) - {v}
    return near


def _chordless_cycle(cores: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """A shortest chordless cycle; () if there is none.

    Three variables are a cycle if each two share an atom, and not all three.
    """
    near = _neighbours(cores)
    for a, b, c in combinations(near, 3):
        if b in near[a] and c in near[a] and c in near[b] and not any({a, b, c} <= set(core) for core in cores):
            return a, b, c
    best: tuple[str, ...] = ()
    for middle, around in near.items():
        for start, end in combinations([v for v in near if v in around], 2):
            if end not in near[start]:
                path = _shortest_path(near, start, end, (around | {middle}) - {end})
                if path and (not best or len(path) + 1 < len(best)):
                    best = (middle, *path)
    return best


def _shortest_path(near: Mapping[str, set[str]], start: str, end: str, closed: set[str]) -> tuple[str, ...]:
    """A shortest path around `closed`, which has no chords; () if there is none."""
    seen = closed | {start}
    paths: list[tuple[str, ...]] = [(start,)]
    for path in paths:  # grows while it is read: breadth first
        if path[-1] == end:
            return path
        for step in (v for v in near if v in near[path[-1]] and v not in seen):
            seen.add(step)
            paths.append((*path, step))
    return ()


def _uncovered_clique(cores: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """A least set of variables of which any two share an atom, but not all."""
    edges = [set(core) for core in cores]

    def covered(variables: set[str]) -> bool:
        return any(variables <= edge for edge in edges)

    near = _neighbours(cores)
    clique = next(c for c in _cliques_of_chordal(near) if not covered(c))
    for v in near:
        if v in clique and not covered(clique - {v}):
            clique = clique - {v}
    return tuple(v for v in near if v in clique)


def _cliques_of_chordal(near: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """All maximal cliques of a chordal graph, and some others: eliminate simplicial vertices."""
    left = list(near)
    while left:
        for v in left:
            around = near[v] & set(left)
            if all(around - {u} <= near[u] for u in around):
                yield around | {v}
                left.remove(v)
                break
        else:
            raise AssertionError("a graph without chordless cycles has a simplicial vertex")
