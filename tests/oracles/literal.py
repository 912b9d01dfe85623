"""Algorithm 1, to the letter: one calibrated decomposition per order of the atoms.

At time τ an inserted tuple begins to live, without an end; a delete at τ ends its lifespan there.
The canonical partition of all lifespans feeds each component Q̂σ, which Theorem 4.1 maintains
(`core.joins.calibrated`).  A truncation keeps the join partners of the tuple: later tuples do not
exist yet.  With each update the tuple is also put at the single moment τ (C.2): the answers at that
moment are the change.

A delete at τ ends the lifespan at τ, so what holds after it is what lives at τ + 1.

Every |D| / 2 updates the clock restarts with the tuples that are alive (C.3), so that the cost
follows the database and not the length of the stream.

This is a reference: it is short, keeps k! structures, and scans the answers for those of one
moment.

Source: Algorithm 1, Lemma 7.1, Appendix C of Abo Khamis, Kara, Olteanu, Suciu, PACMMOD 2(5), 2024.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import permutations

from everlog.core.classify.multivariate import component
from everlog.core.classify.query import Query
from everlog.core.classify.widths import fractional_hypertree_width
from everlog.core.joins.calibrated import Calibrated
from everlog.core.joins.view import Asked, CountedView, Weighted
from everlog.core.program import Row
from oracles.lifespans import Lived, canonical_partition, partition_of_tuple


def components(query: Query) -> Iterator[tuple[tuple[int, ...], Query]]:
    """Every order σ of the atoms, and Q̂σ with its atoms in that order."""
    for order in permutations(range(len(query.atoms))):
        yield order, component(query, order)


class Literal(CountedView):
    """Algorithm 1.

    Invariants:
      I1  every component holds the canonical partition of the lifespans in `lived`;
      I2  a tuple is alive exactly if its lifespan ends with time itself.
    """

    def __init__(self, query: Query) -> None:
        super().__init__()
        self.query = query
        self.resets = 0
        self.alive: list[dict[Row, int]] = [{} for _ in query.atoms]  # tuple → when it was born
        self._begin(8)

    def _begin(self, most: int) -> None:
        """Start an empty time of this many moments, a power of two."""
        self.depth = most.bit_length() - 1
        self.now = 0
        self.until_reset = 0
        self.lived: list[set[Lived]] = [set() for _ in self.query.atoms]
        self.moments: list[set[Lived]] = [set() for _ in self.query.atoms]  # what C.2 adds
        self.components: list[tuple[tuple[int, ...], Calibrated]] = []
        for order, extended in components(self.query):
            decomposition = fractional_hypertree_width(extended).decomposition
            self.components.append((order, Calibrated(Asked.full(extended), decomposition)))

    @property
    def end(self) -> int:
        """The last moment of time, which means for ever."""
        return 1 << self.depth

    # ── updates ──────────────────────────────────────────────────────────────────────────────

    def insert(self, atom: int, row: Row) -> bool:
        if row in self.alive[atom]:
            return False
        self._tick()
        self.alive[atom][row] = self.now
        self._live(atom, ((self.now, self.end), row))
        self._moment(atom, row)
        return True

    def delete(self, atom: int, row: Row) -> bool:
        if row not in self.alive[atom]:
            return False
        self._tick()
        born = self.alive[atom].pop(row)
        self._truncate(atom, ((born, self.end), row), ((born, self.now), row))
        self._moment(atom, row)
        return True

    def _tick(self) -> None:
        if (self.until_reset == 0 and self.now) or self.now + 2 > self.end:
            self._reset()
        self.now += 1
        self.until_reset -= 1

    def _reset(self) -> None:
        """Restart the clock with the living tuples (C.3)."""
        alive = [list(rows) for rows in self.alive]
        size = sum(map(len, alive))
        self.resets += 1
        self._begin(1 << (2 * size + 8).bit_length())
        for atom, rows in enumerate(alive):
            for row in rows:
                self.now += 1
                self.alive[atom][row] = self.now
                self._live(atom, ((self.now, self.end), row))
        self.until_reset = max(4, size // 2)

    def _live(self, atom: int, lived: Lived) -> None:
        self.lived[atom].add(lived)
        for order, view in self.components:
            for row in partition_of_tuple(lived, order.index(atom) + 1, self.depth):
                view.insert(order.index(atom), row)

    def _truncate(self, atom: int, before: Lived, after: Lived) -> None:
        self.lived[atom].remove(before)
        self.lived[atom].add(after)
        for order, view in self.components:
            position = order.index(atom) + 1
            had = partition_of_tuple(before, position, self.depth)
            has = partition_of_tuple(after, position, self.depth)
            for moment in self.moments[atom]:
                if moment[1] == before[1]:
                    had -= partition_of_tuple(moment, position, self.depth)
            for row in had - has:
                view.delete(order.index(atom), row)
            for row in has - had:
                view.insert(order.index(atom), row)

    def _moment(self, atom: int, row: Row) -> None:
        """C.2: the tuple at the moment of its update."""
        lived = ((self.now, self.now), row)
        self.moments[atom].add(lived)
        for order, view in self.components:
            for part in partition_of_tuple(lived, order.index(atom) + 1, self.depth):
                view.insert(order.index(atom), part)

    # ── answers ──────────────────────────────────────────────────────────────────────────────

    def _at(self, moment: int, whole: bool) -> set[Row]:
        """The answers at a moment, whose nodes lead to it, or (`not whole`) end there.

        Two tuples at one node are in either order, so two components may have the same answer.
        """
        found: set[Row] = set()
        (leaf,) = canonical_partition(moment, moment, self.depth)
        for _, view in self.components:
            names = view.asked.query.variables
            times = [names.index(v) for v in names if v not in self.query.variables]
            values = [names.index(v) for v in self.query.variables]
            for answer, _ in view.answers():
                node = "".join(str(answer[t]) for t in times)
                if leaf.startswith(node) if whole else node == leaf:
                    found.add(tuple(answer[v] for v in values))
        return found

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        """The answers that the last update brought or took: Eq. (30)."""
        return ((answer, 1) for answer in self._at(self.now, whole=False))

    def answers(self) -> Iterator[Weighted]:
        return ((answer, 1) for answer in self._at(self.now + 1, whole=True))

    def rows(self, atom: int) -> Collection[Row]:
        return self.alive[atom]

    @property
    def steps(self) -> int:
        return sum(view.steps for _, view in self.components)

    def check(self) -> None:
        for atom, lived in enumerate(self.lived):
            assert {row for (_, died), row in lived if died == self.end} == set(self.alive[atom]), "I2"
        for order, view in self.components:
            for atom in order:
                rows = view.held[order.index(atom)]
                expected = {
                    part
                    for lived in (*self.lived[atom], *self.moments[atom])
                    for part in partition_of_tuple(lived, order.index(atom) + 1, self.depth)
                }
                assert rows == expected, "I1"
            view.check()
