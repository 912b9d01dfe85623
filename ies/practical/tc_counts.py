"""Transitive closure of acyclic graphs by path counts.

The system stores the number of paths from x to y beside path(x, y).  In an acyclic graph a path
passes an edge at most once, so an edge u → v adds or removes, for each pair, the number of paths
from x to u times the number from v to y.  A pair is in the answer while its count is not zero.
Counts are exact integers of any size.

Source: Dong and Su, Information and Computation 120(1), 1995 (acyclic graphs); with counts: Dong,
Libkin, Su and Wong, Maintaining transitive closure of graphs in SQL, 1999.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain, repeat
from typing import Any

from everlog.core.runtime.collector import collector_paused
from everlog.ies.practical.acyclic import refuse_cycles, route, sinks_first, successors_of
from everlog.ies.practical.protocol import Changes, Described, Practical, Row, Rows, cycle_refused, kept


class CountedClosure(Practical):
    """Transitive closure by path counts.

    Invariants, verified by `check`:
      I1  `after` has the base edges, and no nodes but theirs;
      I2  `counts[x][y]` is the number of paths from x to y, and is stored only if it is not zero;
      I3  `origins[y]` are the x with a count for y;
      I4  `pairs` is the number of pairs.
    """

    described = Described(
        name="tc_counts",
        title="Transitive closure of acyclic graphs by path counts",
        theorem="The matrix (I − A)⁻¹ of an acyclic graph counts paths; one edge changes it by a product",
        about="The number of paths for each pair.  An edge that would close a cycle is refused.",
        inputs=(kept("edge", "x y", "an acyclic graph"),),
        answer=kept("path", "x y", "y is reached from x by one edge or more"),
        auxiliaries=(kept("ways", "x y number:num", "number of paths from x to y"),),
        growth="as many rows as the answer, at most n²/2; a count has at most n bits",
        cost="the nodes before the edge times the nodes after it",
        query="path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).",
        acyclic=True,
    )

    def _permit(self, relation: str, row: Row) -> None:
        u, v = row
        if u == v or u in self.counts.get(v, ()):
            raise cycle_refused(relation, row, route(self.after, v, u))

    def _permit_all(self, rows: Mapping[str, Collection[Row]]) -> None:
        refuse_cycles("edge", rows["edge"])

    def _load(self) -> None:
        with collector_paused():
            self.after = successors_of(self.base["edge"])
            self.counts: dict[Any, dict[Any, int]] = {}
            self.origins: dict[Any, set[Any]] = {x: set() for x in self.after}
            for x in sinks_first(self.after, self.after):
                counts: dict[Any, int] = dict.fromkeys(self.after[x], 1)
                get = counts.get
                for y in self.after[x]:
                    for z, number in self.counts[y].items():
                        counts[z] = get(z, 0) + number
                self.counts[x] = counts
                for z in counts:
                    self.origins[z].add(x)
            self.pairs = sum(map(len, self.counts.values()))

    def _insert(self, relation: str, row: Row) -> Changes:
        u, v = row
        for node in row:
            if node not in self.after:
                self.after[node], self.counts[node], self.origins[node] = set(), {}, set()
        self.after[u].add(v)
        behind = {v: 1, **self.counts[v]}
        old = self._old(u, behind)
        added: dict[Any, Collection[Any]] = {}
        # count(x, y) += count(x, u) · count(v, y)
        for x, times in self._before(u):
            counts = self.counts[x]
            fresh = behind.keys() - counts.keys()
            if fresh:
                added[x] = fresh
                self.pairs += len(fresh)
                for y in fresh:
                    self.origins[y].add(x)
            get = counts.get
            for y, number in behind.items():
                counts[y] = get(y, 0) + times * number
        return self._changes({}, added, old)

    def _delete(self, relation: str, row: Row) -> Changes:
        u, v = row
        self.after[u].remove(v)
        behind = {v: 1, **self.counts[v]}
        old = self._old(u, behind)
        gone: dict[Any, Collection[Any]] = {}
        # count(x, y) -= count(x, u) · count(v, y)
        for x, times in self._before(u):
            counts = self.counts[x]
            lost = []
            for y, number in behind.items():
                left = counts[y] - times * number
                if left:
                    counts[y] = left
                else:
                    lost.append(y)
            if lost:
                gone[x] = lost
                self.pairs -= len(lost)
                for y in lost:
                    del counts[y]
                    self.origins[y].remove(x)
        changes = self._changes(gone, {}, old)
        for node in row:
            if not self.after[node] and not self.origins[node]:
                del self.after[node], self.counts[node], self.origins[node]
        return changes

    def _before(self, u: Any) -> list[tuple[Any, int]]:
        """The nodes with paths to u, with their number; u itself with one."""
        return [(u, 1), *((x, self.counts[x][u]) for x in self.origins[u])]

    # ── telling ──────────────────────────────────────────────────────────────────────────────

    def _old(self, u: Any, behind: Iterable[Any]) -> dict[Row, int]:
        """The counts that are about to change."""
        if not self.track_auxiliaries:
            return {}
        return {(x, y): self.counts[x].get(y, 0) for x, _ in self._before(u) for y in behind}

    def _changes(
        self, gone: dict[Any, Collection[Any]], added: dict[Any, Collection[Any]], old: dict[Row, int]
    ) -> Changes:
        out: Changes = {"path": (pairs(gone), pairs(added))}
        if old:
            now = {(x, y): self.counts[x].get(y, 0) for x, y in old}
            out["ways"] = (
                [(x, y, number) for (x, y), number in old.items() if number],
                [(x, y, number) for (x, y), number in now.items() if number],
            )
        return out

    def _view(self, name: str) -> Collection[Row]:
        if name == "path":
            return pairs({x: tuple(counts) for x, counts in self.counts.items()})
        counted = {x: tuple(counts.items()) for x, counts in self.counts.items()}
        return Rows(self.pairs, lambda: ((x, y, number) for x, row in counted.items() for y, number in row))

    def check(self) -> None:
        assert self.after == successors_of(self.base["edge"]), "I1"
        for x, after in self.after.items():
            number: dict[Any, int] = dict.fromkeys(after, 1)
            for y in after:
                for z, times in self.counts[y].items():
                    number[z] = number.get(z, 0) + times
            assert self.counts[x] == number, "I2"
        for y, origins in self.origins.items():
            assert origins == {x for x in self.counts if y in self.counts[x]}, "I3"
        assert self.counts.keys() == self.origins.keys() == self.after.keys(), "I1"
        assert self.pairs == sum(map(len, self.counts.values())), "I4"


def pairs(sets: Mapping[Any, Collection[Any]]) -> Collection[Row]:
    """The pairs of each key with its values; neither may change afterwards.

    >>> sorted(pairs({1: [2, 3]}))
    [(1, 2), (1, 3)]
    """
    if not sets:
        return ()
    return Rows(
        sum(map(len, sets.values())),
        lambda: chain.from_iterable(zip(repeat(x), ys) for x, ys in sets.items()),
        {0: lambda: {x: set(ys) for x, ys in sets.items() if ys}},
    )
