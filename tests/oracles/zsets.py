"""Z-sets: sets with signed weights, so that a change is like a relation.

A relation has no inverse: nothing added to a set takes an element away.  Give every element a
weight in ℤ and it has one.  A relation is a Z-set with weights 1, an insert is weight 1, a delete
is weight -1, and the new relation is the sum of the old one and the change.

The trick is then to see which operators respect `+`.  Those that do (map, filter, count, sum) are
their own incremental form.  Those that do in each argument (join, product) have the incremental
form of a product.  Only `distinct` and the graph of an aggregate need a form of their own; both
look at nothing but the elements of the change.  `min` and `max` are not here: they have no inverse.

Source: Budiu et al., PVLDB 16(7), 2023, Sections 4 and 7.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, ItemsView, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
U = TypeVar("U", bound=Hashable)
V = TypeVar("V", bound=Hashable)
K = TypeVar("K", bound=Hashable)


class ZSet(Generic[T]):
    """An immutable function from elements to ℤ that is zero almost everywhere.

    Invariant, verified by `check`:
      I1  a stored weight is a nonzero integer; absence is the only form of zero.

    >>> old = ZSet({"a": 1, "b": 1})
    >>> change = ZSet({"b": -1, "c": 1})
    >>> old + change
    ZSet({'a': 1, 'c': 1})
    >>> (old + change)["b"]
    0
    """

    __slots__ = ("_weights",)

    def __init__(self, weights: Mapping[T, int] | None = None) -> None:
        self._weights: dict[T, int] = {x: w for x, w in weights.items() if w} if weights else {}

    @classmethod
    def of(cls, elements: Iterable[T]) -> ZSet[T]:
        """Each element as often as it occurs.

        >>> ZSet.of("abba")
        ZSet({'a': 2, 'b': 2})
        """
        return cls.summed((x, 1) for x in elements)

    @classmethod
    def summed(cls, pairs: Iterable[tuple[T, int]]) -> ZSet[T]:
        """The sum of weighted elements, which may repeat.  Cost: O(pairs)."""
        weights: dict[T, int] = {}
        for x, w in pairs:
            weights[x] = weights.get(x, 0) + w
        return cls(weights)

    # ── a finite function ────────────────────────────────────────────────────────────────────

    def __getitem__(self, x: T) -> int:
        return self._weights.get(x, 0)

    def __contains__(self, x: object) -> bool:
        return x in self._weights

    def __iter__(self) -> Iterator[T]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def items(self) -> ItemsView[T, int]:
        return self._weights.items()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZSet) and self._weights == other._weights

    def __hash__(self) -> int:
        return hash(frozenset(self._weights.items()))

    def __repr__(self) -> str:
        inside = ", ".join(f"{x}: {w}" for x, w in sorted((repr(x), w) for x, w in self.items()))
        return f"ZSet({{{inside}}})" if inside else "ZSet()"

    def check(self) -> None:
        assert all(type(w) is int and w for w in self._weights.values()), "I1"

    # ── an abelian group ─────────────────────────────────────────────────────────────────────

    def __add__(self, other: ZSet[T]) -> ZSet[T]:
        """Cost: a copy of the larger one, and a step for each element of the smaller one."""
        large, small = (self, other) if len(self) >= len(other) else (other, self)
        weights = large._weights.copy()
        for x, w in small.items():
            if total := weights.get(x, 0) + w:
                weights[x] = total
            else:
                del weights[x]
        return _trusted(weights)

    def __neg__(self) -> ZSet[T]:
        return _trusted({x: -w for x, w in self.items()})

    def __sub__(self, other: ZSet[T]) -> ZSet[T]:
        return self + -other

    def __mul__(self, factor: int) -> ZSet[T]:
        """Multiply all weights by a number.

        >>> ZSet({"a": 1, "b": -1}) * -2
        ZSet({'a': -2, 'b': 2})
        """
        return _trusted({x: factor * w for x, w in self.items()}) if factor else ZSet()

    __rmul__ = __mul__

    # ── which Z-sets are relations ───────────────────────────────────────────────────────────

    @property
    def is_set(self) -> bool:
        """Is every weight 1?"""
        return all(w == 1 for w in self._weights.values())

    @property
    def is_positive(self) -> bool:
        """Is this a multiset: is no weight negative?"""
        return all(w > 0 for w in self._weights.values())


def _trusted(weights: dict[T, int]) -> ZSet[T]:
    """A Z-set of weights that are known to satisfy I1: not looked through again."""
    made: ZSet[T] = ZSet()
    made._weights = weights
    return made


# ── distinct ─────────────────────────────────────────────────────────────────────────────────


def distinct(m: ZSet[T]) -> ZSet[T]:
    """The set of the elements with positive weight.

    >>> distinct(ZSet({"a": 3, "b": -2}))
    ZSet({'a': 1})
    """
    return _trusted({x: 1 for x, w in m.items() if w > 0})


def distinct_delta(state: ZSet[T], change: ZSet[T]) -> ZSet[T]:
    """The change of `distinct` if `change` is added to `state`: H of the paper.

    An element appears when its weight becomes positive, and disappears when it ceases to be.

    >>> distinct_delta(ZSet({"a": 2, "b": 1}), ZSet({"a": -1, "b": -1, "c": 5}))
    ZSet({'b': -1, 'c': 1})

    Cost: O(change), independent of the state.
    """
    weights: dict[T, int] = {}
    for x, w in change.items():
        before = state[x]
        if (before > 0) != (before + w > 0):
            weights[x] = -1 if before > 0 else 1
    return _trusted(weights)


# ── linear: f(a + b) = f(a) + f(b), so the incremental form is f itself ──────────────────────────


def mapped(m: ZSet[T], function: Callable[[T], U]) -> ZSet[U]:
    """The image of every element; weights of equal images are added: map, projection.

    >>> mapped(ZSet({(1, 2): 1, (1, 3): 1}), lambda row: row[0])
    ZSet({1: 2})
    """
    return ZSet.summed((function(x), w) for x, w in m.items())


def filtered(m: ZSet[T], predicate: Callable[[T], bool]) -> ZSet[T]:
    """The elements that satisfy the predicate, with their weights.

    >>> filtered(ZSet({1: 1, 2: -3}), lambda n: n > 1)
    ZSet({2: -3})
    """
    return _trusted({x: w for x, w in m.items() if predicate(x)})


# ── bilinear: linear in each argument ────────────────────────────────────────────────────────────


def join(
    left: ZSet[T], right: ZSet[U], left_key: Callable[[T], K], right_key: Callable[[U], K]
) -> ZSet[tuple[T, U]]:
    """Pairs with equal keys; weights multiply.

    >>> edge = ZSet.of([(1, 2), (2, 3)])
    >>> join(edge, edge, lambda e: e[1], lambda e: e[0])
    ZSet({((1, 2), (2, 3)): 1})

    Cost: O(left + right + result).
    """
    index: dict[K, list[tuple[U, int]]] = {}
    for y, w in right.items():
        index.setdefault(right_key(y), []).append((y, w))
    return _trusted({(x, y): v * w for x, v in left.items() for y, w in index.get(left_key(x), ())})


def product(left: ZSet[T], right: ZSet[U]) -> ZSet[tuple[T, U]]:
    """All pairs; weights multiply.

    >>> product(ZSet({"a": 2}), ZSet({"x": 1, "y": -1}))
    ZSet({('a', 'x'): 2, ('a', 'y'): -2})
    """
    return _trusted({(x, y): v * w for x, v in left.items() for y, w in right.items()})


# ── aggregates over an abelian group ─────────────────────────────────────────────────────────────
#
# A table of integers, one for each group, is itself a Z-set: the weight of a group is its number.
# So `group_count` and `group_sum` are linear.  `graph` makes a relation of rows (group, number) of
# them, which is not linear; it needs the counts to know which groups have elements at all, because
# a sum of zero is still a sum.


def group_count(m: ZSet[T], key: Callable[[T], K]) -> ZSet[K]:
    """The number of elements in each group, as weights.  Linear.

    >>> group_count(ZSet.of(["ant", "bee", "asp"]), lambda word: word[0])
    ZSet({'a': 2, 'b': 1})
    """
    return mapped(m, key)


def group_sum(m: ZSet[T], key: Callable[[T], K], value: Callable[[T], int]) -> ZSet[K]:
    """The sum of a value over each group, as weights.  Linear.

    >>> group_sum(ZSet.of([("a", 2), ("a", 3), ("b", 0)]), lambda p: p[0], lambda p: p[1])
    ZSet({'a': 5})
    """
    return ZSet.summed((key(x), w * value(x)) for x, w in m.items())


def graph(counts: ZSet[K], totals: ZSet[K]) -> ZSet[tuple[K, int]]:
    """The rows (group, total) of all groups that have elements.

    >>> graph(ZSet({"a": 2, "b": 1}), ZSet({"a": 5}))
    ZSet({('a', 5): 1, ('b', 0): 1})
    """
    return _trusted({(k, totals[k]): 1 for k, n in counts.items() if n > 0})


def graph_delta(
    counts: ZSet[K], totals: ZSet[K], counts_change: ZSet[K], totals_change: ZSet[K]
) -> ZSet[tuple[K, int]]:
    """The change of `graph` if counts and totals change: old rows out, new rows in.

    >>> counts, totals = ZSet({"a": 2, "b": 1}), ZSet({"a": 5})
    >>> graph_delta(counts, totals, ZSet({"a": -1, "b": -1}), ZSet({"a": -2}))
    ZSet({('a', 3): 1, ('a', 5): -1, ('b', 0): -1})

    Cost: O(groups touched).
    """
    rows: list[tuple[tuple[K, int], int]] = []
    for k in {*counts_change, *totals_change}:
        if counts[k] > 0:
            rows.append(((k, totals[k]), -1))
        if counts[k] + counts_change[k] > 0:
            rows.append(((k, totals[k] + totals_change[k]), 1))
    return ZSet.summed(rows)
