"""Tree decompositions: a cyclic query seen as an acyclic one over bags of variables.

An engine joins inside a bag first, then passes messages along the tree.  What a bag costs is ρ* of
the query restricted to it.  Every useful decomposition comes from an order in which the
variables are eliminated: the bag of a variable is the variable with its neighbours at that time,
and these are neighbours of each other from then on.

The tree is a forest: parts of a query without a common variable have a root each.  A query without
variables has one empty bag.  No width is below 1, for the input must be read.

Source: Abo Khamis, Kara, Olteanu, Suciu, PACMMOD 2(5), 2024, Definitions 2.1 to 2.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from attrs import frozen

from everlog.core.classify.classes import ear_removal
from everlog.core.classify.covers import fractional_cover
from everlog.core.classify.query import Query, QueryAtom


@frozen
class Decomposition:
    """The bags of a forest, each after its parent (None: a root), and its width.

    Invariants, verified by `check`:
      I1  every atom lies inside a bag, and every bag consists of variables of the query;
      I2  the bags that have a variable are connected;
      I3  a parent stands before its children, and shares a variable with each.
    """

    bags: tuple[frozenset[str], ...]
    parents: tuple[int | None, ...]
    width: Fraction

    def check(self, query: Query) -> None:
        """Assert all invariants for this query."""
        assert all(any(bag.issuperset(a.variables) for bag in self.bags) for a in query.atoms), "I1"
        assert frozenset().union(*self.bags) == frozenset(query.variables), "I1"
        for variable in query.variables:
            tops = [
                i
                for i, (bag, parent) in enumerate(zip(self.bags, self.parents, strict=True))
                if variable in bag and (parent is None or variable not in self.bags[parent])
            ]
            assert len(tops) == 1, f"I2: {variable} has {len(tops)} topmost bags"
        for i, parent in enumerate(self.parents):
            assert parent is None or (0 <= parent < i and self.bags[parent] & self.bags[i]), "I3"
        assert self.width == width_of(query, self.bags)

    def home(self, query: Query) -> tuple[int, ...]:
        """For each atom, the first bag that contains it.

        >>> query = Query.of("R(A, B)", "S(B, C)", "T(B)")
        >>> from_elimination(query, "ABC").home(query)
        (1, 0, 0)
        """
        return tuple(
            next(i for i, bag in enumerate(self.bags) if bag.issuperset(atom.variables)) for atom in query.atoms
        )


def width_of(query: Query, bags: Iterable[frozenset[str]]) -> Fraction:
    """The largest ρ* of the query restricted to a bag, and at least 1."""
    edges = [frozenset(atom.variables) for atom in query.atoms]
    return max((fractional_cover(edges, bag).number for bag in bags), default=Fraction(1)) or Fraction(1)


def from_elimination(query: Query, order: Sequence[str]) -> Decomposition:
    """The bags of an elimination order of all variables; no bag lies inside its neighbour.

    If the query is not full and its bound variables go first, the decomposition is free-connex: the
    bags without bound variables stand above all others and have all free variables.  They are kept
    as they are, so one of them may lie inside a bag below it.

    >>> square = Query.of("R(A, B)", "S(B, C)", "T(C, D)", "U(A, D)")
    >>> [sorted(bag) for bag in from_elimination(square, "ABCD").bags]
    [['B', 'C', 'D'], ['A', 'B', 'D']]
    """
    assert sorted(order) == sorted(query.variables)
    edges = [frozenset(atom.variables) for atom in query.atoms]
    place = {variable: i for i, variable in enumerate(order)}
    bags: list[frozenset[str]] = []
    parents: list[int | None] = []
    for variable in order:
        bag = frozenset({variable}).union(*(edge for edge in edges if variable in edge))
        edges = [edge for edge in edges if variable not in edge] + [bag - {variable}]
        bags.append(bag)
        parents.append(min((place[other] for other in bag - {variable}), default=None))
    shown = [variable in query.free for variable in order]
    return _forest(query, bags, parents, query.free if shown == sorted(shown) else frozenset())


def join_tree(query: Query) -> Decomposition | None:
    """A decomposition of width 1 with one bag per maximal atom; None if the query is cyclic.

    >>> tree = join_tree(Query.of("R(A, B)", "S(B, C)", "T(C, D)", "U(D)"))
    >>> [sorted(bag) for bag in tree.bags], tree.parents
    ([['C', 'D'], ['B', 'C'], ['A', 'B']], (None, 0, 1))
    """
    maximal: dict[frozenset[str], QueryAtom] = {}
    for atom in query.atoms:
        schema = frozenset(atom.variables)
        if not any(schema < frozenset(other.variables) for other in query.atoms):
            maximal.setdefault(schema, atom)
    ears = ear_removal(Query(tuple(maximal.values()), query.free))
    return None if ears.remaining else _forest(query, list(maximal), list(ears.parents), frozenset())


def _forest(
    query: Query, bags: list[frozenset[str]], parents: list[int | None], top: frozenset[str]
) -> Decomposition:
    """Cut links without a common variable, merge bags inside a neighbour, and sort.

    A bag inside `top` is merged only with another one inside it.
    """
    for i, parent in enumerate(parents):
        if parent is not None and not bags[i] & bags[parent]:
            parents[i] = None
    gone: set[int] = set()
    while (pair := _nested(bags, parents, gone, top)) is not None:
        child, parent = pair
        bags[parent] |= bags[child]
        parents[:] = [parent if p == child else p for p in parents]
        gone.add(child)
    children: dict[int | None, list[int]] = {}
    for i, above in enumerate(parents):
        if i not in gone:
            children.setdefault(above, []).append(i)
    sequence = children.get(None, [])[:]
    for i in sequence:  # grows while it is read: parents first
        sequence += children.get(i, [])
    rank: dict[int | None, int | None] = {None: None} | {old: new for new, old in enumerate(sequence)}
    kept = tuple(bags[i] for i in sequence) or (frozenset(),)
    return Decomposition(kept, tuple(rank[parents[i]] for i in sequence) or (None,), width_of(query, kept))


def _nested(
    bags: Sequence[frozenset[str]], parents: Sequence[int | None], gone: set[int], top: frozenset[str]
) -> tuple[int, int] | None:
    for child, parent in enumerate(parents):
        if parent is not None and child not in gone and (bags[parent] <= top) == (bags[child] <= top):
            small, large = sorted((bags[child], bags[parent]), key=len)
            if small <= large:
                return child, parent
    return None
