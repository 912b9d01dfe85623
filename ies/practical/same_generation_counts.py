"""Same generation on acyclic graphs by counts on the product graph.

Two nodes are of the same generation if walks of the same length lead to them from one node.  Such a
pair of walks is one walk in the product graph, where (a, b) → (x, y) if a → x and b → y, that
begins on the diagonal.  The system stores their number beside sg(x, y):

    count(x, y) = [x = y] + Σ count(a, b) over edges a → x and b → y.

An edge e = u → v of the graph is many edges of the product.  With E the edges but e, those that
change are 2·(e ⊗ E) + e ⊗ e up to exchanging the two sides, halved.  So the algorithm begins in the
row of v with 2·count(u, b) at the y of each other edge b → y, and count(u, u) at v itself, carries
rows on through the nodes that v reaches, sources first, and adds the result to its own mirror
image, halved.  It visits only counts that change.

Source: Libkin and Wong, Proposition 4, with counts on the product graph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from everlog.core.runtime.collector import collector_paused
from everlog.ies.practical.acyclic import refuse_cycle, refuse_cycles, sinks_first, successors_of
from everlog.ies.practical.protocol import Changes, Described, Practical, Row, Rows, kept
from everlog.ies.practical.tc_counts import pairs


class CountedGenerations(Practical):
    """Same generation by counts of walk pairs.

    Invariants, verified by `check`:
      I1  `after` has the base edges, and no nodes but theirs; `entering` counts the edges into a
          node;
      I2  `counts[x][y]` satisfies the equation above, and is stored only if it is not zero;
      I3  `counts` is symmetric.
    """

    described = Described(
        name="same_generation_counts",
        title="Same generation on acyclic graphs by counts on the product graph",
        theorem="Libkin and Wong, Proposition 4, with counts instead of sets of walks",
        about="For each pair the number of pairs of walks of equal length from a common node.  An edge that would "
        "close a cycle is refused.",
        inputs=(kept("edge", "x y", "an acyclic graph"),),
        answer=kept("sg", "x y", "walks of the same length, or of none, lead from some node to x and to y"),
        auxiliaries=(kept("pairs", "x y number:num", "number of such pairs of walks"),),
        growth="as many rows as the answer, at most n²; a count has at most 2n bits",
        cost="the counts that change, times the edges out of their nodes, and a search of what the edge leads to",
        query="sg(x, x) :- edge(x, _). sg(x, x) :- edge(_, x). sg(x, y) :- sg(a, b), edge(a, x), edge(b, y).",
        acyclic=True,
    )

    def _permit(self, relation: str, row: Row) -> None:
        refuse_cycle(relation, row, self.after)

    def _permit_all(self, rows: Mapping[str, Collection[Row]]) -> None:
        refuse_cycles("edge", rows["edge"])

    def _load(self) -> None:
        with collector_paused():
            self.after = successors_of(self.base["edge"])
            self.entering = dict.fromkeys(self.after, 0)
            self.counts: dict[Any, dict[Any, int]] = {x: {x: 1} for x in self.after}
            for a in reversed(sinks_first(self.after, self.after)):
                if self.after[a]:
                    carried = self._carried(self.counts[a])
                    for x in self.after[a]:
                        self.entering[x] += 1
                        _add(self.counts[x], carried)

    def _carried(self, row: Mapping[Any, int]) -> dict[Any, int]:
        """Σ row(b) at the y of each edge b → y."""
        out: dict[Any, int] = {}
        get = out.get
        for b, number in row.items():
            for y in self.after[b]:
                out[y] = get(y, 0) + number
        return out

    # ── updates ──────────────────────────────────────────────────────────────────────────────

    def _insert(self, relation: str, row: Row) -> Changes:
        u, v = row
        alone: dict[Any, Collection[Any]] = {}
        for node in row:
            if node not in self.after:
                self.after[node], self.entering[node], self.counts[node] = set(), 0, {node: 1}
                alone[node] = (node,)
        seed = self._seed(u, v)
        self.after[u].add(v)
        self.entering[v] += 1
        return self._changed(v, seed, 1, alone)

    def _delete(self, relation: str, row: Row) -> Changes:
        u, v = row
        self.after[u].remove(v)
        self.entering[v] -= 1
        seed = self._seed(u, v)
        alone: dict[Any, Collection[Any]] = {}
        for node in row:
            if not self.after[node] and not self.entering[node]:
                alone[node] = (node,)
        return self._changed(v, seed, -1, alone)

    def _seed(self, u: Any, v: Any) -> dict[Any, int]:
        """The contribution of the edge u → v, which is not in `after`, to the row of v."""
        out = {y: 2 * number for y, number in self._carried(self.counts[u]).items()}
        out[v] = out.get(v, 0) + self.counts[u][u]
        return out

    def _changed(self, v: Any, seed: dict[Any, int], sign: int, alone: dict[Any, Collection[Any]]) -> Changes:
        """Carry the row of v on; change counts by the result plus its mirror, halved."""
        half: dict[Any, dict[Any, int]] = {v: seed}
        for a in reversed(sinks_first(self.after, [v])):
            if a in half and self.after[a]:
                carried = self._carried(half[a])
                if carried:
                    for x in self.after[a]:
                        _add(half.setdefault(x, {}), carried)
        delta: dict[Any, dict[Any, int]] = {}
        for x, row in half.items():
            _add(delta.setdefault(x, {}), row)
            for y, number in row.items():
                other = delta.setdefault(y, {})
                other[x] = other.get(x, 0) + number
        return self._applied(delta, sign, alone)

    def _applied(self, delta: dict[Any, dict[Any, int]], sign: int, alone: dict[Any, Collection[Any]]) -> Changes:
        """Apply changed counts.

        `alone` are nodes that appear or disappear with the edge: each is of its own generation,
        counted once.
        """
        touched = self._touched(delta, alone)
        before = {(x, y): self.counts[x].get(y, 0) for x, y in touched}
        if sign > 0:
            before.update({(node, node): 0 for node in alone if touched})
        flipped: dict[Any, list[Any]] = {}
        for x, row in delta.items():
            counts = self.counts[x]
            for y, twice in row.items():
                old = counts.get(y, 0)
                now = old + sign * (twice >> 1)
                if now:
                    counts[y] = now
                else:
                    del counts[y]
                if not old or not now:
                    flipped.setdefault(x, []).append(y)
        for node in alone:
            flipped.setdefault(node, []).append(node)
            if sign < 0:
                del self.after[node], self.entering[node], self.counts[node]
        changed = pairs(flipped)
        out: Changes = {"sg": ((), changed) if sign > 0 else (changed, ())}
        if touched:
            after = {(x, y): self.counts.get(x, {}).get(y, 0) for x, y in touched}
            out["pairs"] = (
                [(x, y, number) for (x, y), number in before.items() if number],
                [(x, y, number) for (x, y), number in after.items() if number],
            )
        return out

    def _touched(self, delta: dict[Any, dict[Any, int]], alone: Mapping[Any, object]) -> set[Row]:
        """The pairs whose counts change; none if changes are not tracked."""
        if not self.track_auxiliaries:
            return set()
        return {(x, y) for x, row in delta.items() for y in row} | {(node, node) for node in alone}

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    def _view(self, name: str) -> Collection[Row]:
        if name == "sg":
            return pairs({x: tuple(row) for x, row in self.counts.items()})
        counted = {x: tuple(row.items()) for x, row in self.counts.items()}
        size = sum(map(len, counted.values()))
        return Rows(size, lambda: ((x, y, number) for x, row in counted.items() for y, number in row))

    def check(self) -> None:
        assert self.after == successors_of(self.base["edge"]), "I1"
        entering = dict.fromkeys(self.after, 0)
        expected: dict[Any, dict[Any, int]] = {x: {x: 1} for x in self.after}
        for a, x in self.base["edge"]:
            entering[x] += 1
            _add(expected[x], self._carried(self.counts[a]))
        assert self.entering == entering, "I1"
        assert self.counts == expected, "I2"
        assert all(self.counts[y][x] == n for x, row in self.counts.items() for y, n in row.items()), "I3"


def _add(row: dict[Any, int], more: Mapping[Any, int]) -> None:
    get = row.get
    for y, number in more.items():
        row[y] = get(y, 0) + number
