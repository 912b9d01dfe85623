"""Transitive closure of any graph by the inverse of a matrix over a prime field.

Give each edge a random weight from Z_p, and let A be the matrix of weights.  (I − A)⁻¹ − I is the
sum over all walks of one edge or more of the product of their weights.  As a polynomial in the
weights its entry at (x, y) is zero if and only if x does not reach y.  So an unreachable pair
always has an entry of zero, and a reachable pair has one only for unlucky weights.  One edge
changes the inverse by rank one in any graph: an update costs at most n² multiplications,
independent of how much of the closure depends on the edge.

The probability of unlucky weights is small and known.  Times the determinant of I − A, an entry is
a polynomial of degree n at most with coefficients 1 and −1, so it vanishes for at most n out of p −
1 weightings (Schwartz and Zippel).  The weights are such that no determinant so far was zero, which
excludes at most a `risk` of all weightings, the sum of n/(p − 1) over the determinants; so the
probability is n/(p − 1)/(1 − risk).  Two independent weightings are stored; a pair is missing only
if both miss it, and the probability is squared.  When `risk` reaches a half, new weights are drawn.
The bound assumes that updates do not depend on the weights.

If an insert makes the matrix singular, the edge gets another weight; if a delete does, all edges
get new weights.

Source: Sankowski, FOCS 2004; Datta, Kulkarni, Mukherjee, Schwentick, Zeume, J. ACM 65(5), 2018.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Collection, Iterator
from functools import partial
from math import ceil, floor, log10
from typing import Any

from everlog.ies.practical.acyclic import sinks_first
from everlog.ies.practical.fans import Numbering, estimated_pairs
from everlog.ies.practical.field_matrices import (
    FIELDS,
    DenseMatrix,
    Entry,
    Flips,
    Matrix,
    P,
    SparseMatrix,
    dense_of,
    inverse,
    numpy_or_none,
    sparse_of,
)
from everlog.ies.practical.protocol import Changes, Described, Practical, Row, Rows, kept

DENSE = 32  # arrays if at least one entry in DENSE is present, dictionaries below an 8th of that
LEAST = 4096  # with fewer entries, always dictionaries
BEARABLE = 0.5  # the risk at which new weights are drawn
EXAMPLES = (100, 1_000, 10_000)  # numbers of nodes for which the bound is shown


class AlgebraicClosure(Practical):
    """Transitive closure by a matrix inverse.

    Invariants, verified by `check`:
      I1  `weights` has nonzero weights, one per field, for each base edge, and for no other;
      I2  (M + I)·(I − A) = I in both fields, with M the stored matrix;
      I3  nodes are those of edges, and the rows and columns of free numbers are empty;
      I4  the number of pairs is that of the entries.
    """

    described = Described(
        name="tc_algebra",
        title="Transitive closure of arbitrary graphs by a matrix inverse over a prime field",
        theorem="Sankowski 2004; Datta et al. 2018: reachability by one join and one expression an update",
        about="The inverse of I − A with random weights modulo 2³¹ − 1, twice.  Never a pair too many; one too "
        "few with a probability that `error_bound` computes.",
        inputs=(kept("edge", "x y", "the graph"),),
        answer=kept("path", "x y", "y is reached from x by one edge or more"),
        auxiliaries=(
            kept("weight", "x y first:num second:num", "the random weights of an edge, one for each weighting"),
            kept("inverse", "x y first:num second:num", "the entries of (I − A)⁻¹ − I, one for each weighting"),
        ),
        growth="as many rows as answer and input together, at most 2n²",
        cost="nodes that reach the edge times nodes that it reaches, at most n², whatever the graph",
        query="path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).",
        exact=False,
    )

    def __init__(self, *, track_auxiliaries: bool = False, seed: int | None = None) -> None:
        """Weights come from the operating system, or, for experiments, from a seed."""
        self._draw = random.SystemRandom() if seed is None else random.Random(seed)
        self.refreshes = 0
        super().__init__(track_auxiliaries=track_auxiliaries)

    # ── how sure it is ───────────────────────────────────────────────────────────────────────

    def pair_error_bound(self) -> float:
        """An upper bound on the probability that a given pair is missing now."""
        return self._pair_bound(len(self._nodes.numbers), self.risk, self.drawn)

    @staticmethod
    def _pair_bound(nodes: int, risk: float, drawn: int) -> float:
        if risk >= 1:
            return 1.0
        one: float = nodes / (P - 1) * (1 + 1 / (P - 2)) ** drawn / (1 - risk)
        return min(1.0, one**FIELDS)

    def error_bound(self) -> float:
        """An upper bound on the probability that any pair is missing now.

        >>> system = AlgebraicClosure()
        >>> system.load({"edge": [(x, x + 1) for x in range(999)]})
        >>> system.error_bound() < 1e-6
        True
        """
        return min(1.0, len(self._nodes.numbers) ** 2 * self.pair_error_bound())

    @classmethod
    def highest_error_bound(cls, nodes: int) -> float:
        """The largest `error_bound` before new weights are drawn, in a million inserts.

        It can be exceeded only if many edges on cycles, about p/(4n), are loaded at once without
        numpy.

        >>> [f"{AlgebraicClosure.highest_error_bound(nodes):.1e}" for nodes in (100, 1_000, 10_000)]
        ['8.7e-11', '8.7e-07', '8.7e-03']
        """
        return min(1.0, nodes**2 * cls._pair_bound(nodes, BEARABLE + nodes / (P - 1), 1_000_000))

    @classmethod
    def prospects(cls) -> list[str]:
        bounds = [f"{_rounded_up(cls.highest_error_bound(nodes))} for {nodes:,} nodes" for nodes in EXAMPLES]
        return [f"the chance that any pair is missing from the answer is at most {', '.join(bounds)}"]

    def remarks(self) -> list[str]:
        nodes = len(self._nodes.numbers)
        bound = _rounded_up(self.error_bound())
        return [f"the chance that any pair is missing from this answer is at most {bound} ({nodes:,} nodes)"]

    # ── state ────────────────────────────────────────────────────────────────────────────────

    def _load(self) -> None:
        self._nodes = Numbering()
        for edge in self.base["edge"]:
            for name in edge:
                if name not in self._nodes.numbers:
                    self._nodes.take(name)
        self.degree = [0] * len(self._nodes)
        for edge in self.base["edge"]:
            for name in edge:
                self.degree[self._nodes.numbers[name]] += 1
        self._weigh()

    def _weigh(self) -> None:
        """Draw all weights, and compute their matrix."""
        numbers = self._nodes.numbers
        after: list[list[int]] = [[] for _ in self._nodes.names]
        for x, y in self.base["edge"]:
            after[numbers[x]].append(numbers[y])
        np = numpy_or_none()
        nodes = len(after)
        expected = estimated_pairs(after) if nodes else 0
        dense = np is not None and expected > LEAST and expected * DENSE >= nodes * nodes
        edges = [(x, y) for x, successors in enumerate(after) for y in successors]
        self.matrix: Matrix
        while True:
            self.risk = 0.0
            self.drawn = 0
            matrix: Matrix | None
            if dense:
                weights = self._many_weights(len(edges))
                self.risk = nodes * nodes / (P - 1)  # one pivot per node
                matrix = inverse(np, nodes, edges, weights)
            else:
                self.matrix = matrix = SparseMatrix()
                weights = []
                # sinks first: then few paths lead to an edge when it is added
                graph = dict(enumerate(after))
                edges = [(x, y) for x in sinks_first(graph, graph) for y in after[x]]
                for u, v in edges:
                    weights.append(self._joined(u, v)[0])
            if matrix is not None:
                break
        self.matrix = matrix
        self.bearable = max(BEARABLE, 2 * self.risk)
        self.weights: dict[tuple[int, int], Entry] = dict(zip(edges, weights, strict=True))
        self._fit()

    def _weight(self) -> Entry:
        return tuple(self._draw.randrange(1, P) for _ in range(FIELDS))

    def _many_weights(self, number: int) -> list[Entry]:
        """Like `_weight`, `number` times: of 31 random bits, all but 0 and p are weights."""
        found: list[int] = []
        while len(found) < FIELDS * number:
            words = array("I", self._draw.randbytes(array("I").itemsize * (FIELDS * number - len(found))))
            found += [w for w in map(P.__and__, words) if 0 < w < P]
        return list(zip(*(found[k::FIELDS] for k in range(FIELDS)), strict=True))

    def _fit(self, more: int = 0) -> None:
        """Make room for all nodes, in the form that fits with `more` entries."""
        nodes, matrix = len(self._nodes), self.matrix
        if isinstance(matrix, DenseMatrix):
            if nodes > matrix.capacity:
                room = 2 * nodes
                sparse = matrix.size * DENSE * 8 < room * room
                self.matrix = sparse_of(matrix) if sparse else matrix.grown(room)
        elif matrix.size + more > LEAST and (matrix.size + more) * DENSE >= nodes * nodes:
            np = numpy_or_none()
            if np is not None:
                self.matrix = dense_of(np, matrix, nodes + nodes // 8)

    # ── updates ──────────────────────────────────────────────────────────────────────────────

    def _insert(self, relation: str, row: Row) -> Changes:
        for name in row:
            if name not in self._nodes.numbers and self._nodes.take(name) == len(self.degree):
                self.degree.append(0)
            self.degree[self._nodes.numbers[name]] += 1
        u, v = (self._nodes.numbers[name] for name in row)
        self._fit(self.matrix.touched(u, v))
        if self.risk > self.bearable:
            return self._refreshed()
        before = self._touched(u, v)
        weight, (gone, new) = self._joined(u, v)
        self.weights[u, v] = weight
        changes = self._changes(gone, new, before)
        if self.track_auxiliaries:
            changes["weight"] = (), ((*row, *weight),)
        return changes

    def _delete(self, relation: str, row: Row) -> Changes:
        u, v = (self._nodes.numbers[name] for name in row)
        weight = self.weights[u, v]
        scales = self._scales(u, v, tuple(P - w for w in weight))
        if scales is None or self.risk > self.bearable:
            changes = self._refreshed()
        else:
            before = self._touched(u, v)
            del self.weights[u, v]
            gone, new = self.matrix.change(u, v, scales)
            changes = self._changes(gone, new, before)
            if self.track_auxiliaries:
                changes["weight"] = ((*row, *weight),), ()
        for name in row:
            self.degree[self._nodes.numbers[name]] -= 1
        for name in set(row):
            if not self.degree[self._nodes.numbers[name]]:
                self._nodes.drop(name)
        return changes

    def _joined(self, u: int, v: int) -> tuple[Entry, tuple[Flips, Flips]]:
        """Give an edge weights that leave the matrix regular, and change it."""
        self.drawn += 1
        while True:
            weight = self._weight()
            scales = self._scales(u, v, weight)
            if scales is not None:
                return weight, self.matrix.change(u, v, scales)

    def _scales(self, u: int, v: int, weight: Entry) -> Entry | None:
        """weight / (1 − weight·(M + I)[v, u]) in each field; None on division by zero."""
        entry = self.matrix.entry(v, u)
        if u == v:
            entry = tuple((value + 1) % P for value in entry)
        if any(entry):  # otherwise the determinant does not change
            self.risk += len(self._nodes.numbers) / (P - 1)
        below = [(1 - w * value) % P for w, value in zip(weight, entry, strict=True)]
        if not all(below):
            return None
        return tuple(w * pow(b, -1, P) % P for w, b in zip(weight, below, strict=True))

    def _refreshed(self) -> Changes:
        """New weights for the current edges; the changes since the state before."""
        names = self._nodes.names
        before = [set(self._view(name)) for name in ("weight", "inverse")] if self.track_auxiliaries else []
        was = set(self.matrix.pairs())
        self.refreshes += 1
        self._weigh()
        now = set(self.matrix.pairs())
        out: Changes = {
            "path": ([(names[x], names[y]) for x, y in was - now], [(names[x], names[y]) for x, y in now - was])
        }
        for name, rows in zip(("weight", "inverse"), before, strict=False):
            held = set(self._view(name))
            out[name] = rows - held, held - rows
        return out

    # ── telling ──────────────────────────────────────────────────────────────────────────────

    def _touched(self, u: int, v: int) -> dict[tuple[int, int], Entry]:
        """The entries that are about to change; none if changes are not tracked."""
        if not self.track_auxiliaries:
            return {}
        xs, ys = self.matrix.changes_in(u, v)
        return {(x, y): self.matrix.entry(x, y) for x in xs for y in ys}

    def _changes(self, gone: Flips, new: Flips, before: dict[tuple[int, int], Entry]) -> Changes:
        names = self._nodes.names
        out: Changes = {"path": (_named(gone, names), _named(new, names))}
        if before:
            after = {(x, y): self.matrix.entry(x, y) for x, y in before}
            was, now = (
                {(names[x], names[y], *entry) for (x, y), entry in entries.items() if any(entry)}
                for entries in (before, after)
            )
            out["inverse"] = was - now, now - was
        return out

    def _view(self, name: str) -> Collection[Row]:
        names = self._nodes.names
        if name == "path":
            return _named(self.matrix.pairs(), names)
        if name == "weight":
            weights = dict(self.weights)
            return Rows(len(weights), lambda: ((names[x], names[y], *w) for (x, y), w in weights.items()))
        entries = list(self.matrix.entries())
        return Rows(len(entries), lambda: ((names[x], names[y], *entry) for x, y, entry in entries))

    def check(self) -> None:
        numbers = self._nodes.numbers
        edges = {(numbers[x], numbers[y]) for x, y in self.base["edge"]}
        assert self.weights.keys() == edges, "I1"
        assert all(0 < w < P for weight in self.weights.values() for w in weight), "I1"
        assert set(numbers.values()) == {n for edge in edges for n in edge}, "I3"
        assert [n for n, degree in enumerate(self.degree) if degree] == sorted(numbers.values()), "I3"
        found = {(x, y): entry for x, y, entry in self.matrix.entries()}
        assert self.matrix.size == len(found) == len(set(self.matrix.pairs())), "I4"
        assert set(numbers.values()) >= {n for pair in found for n in pair}, "I3"
        into: dict[int, list[tuple[int, Entry]]] = {}
        for (u, v), weight in self.weights.items():
            into.setdefault(v, []).append((u, weight))
        for x in numbers.values():  # M = A + M·A
            for y in numbers.values():
                for k in range(FIELDS):
                    sum_ = sum(w[k] * (self.matrix.entry(x, u)[k] + (x == u)) for u, w in into.get(y, ()))
                    assert self.matrix.entry(x, y)[k] == sum_ % P, "I2"


def _rounded_up(chance: float) -> str:
    """The number rounded up to two digits.

    >>> _rounded_up(0.00121), _rounded_up(0.0), _rounded_up(1.0)
    ('1.3e-03', '0', '1')
    """
    if chance in (0, 1):
        return str(int(chance))
    step = 10.0 ** (floor(log10(chance)) - 1)
    return f"{ceil(chance / step) * step:.1e}"


def _named(pairs: Flips, names: list[Any]) -> Collection[Row]:
    """Pairs of numbers, which get their names when they are read."""

    def rows() -> Iterator[Row]:
        return ((names[x], names[y]) for x, y in pairs)

    return Rows(pairs.size, rows, {key: partial(pairs.by_key, key, names) for key in (0, 1)}) if pairs.size else ()
