"""Transitive closure of any graph: a spanning tree for each source.

The system stores, beside path(x, z), one node y from which the last edge came.  For a fixed x that
is a tree with root x.  An inserted edge attaches newly reached nodes below it.  A deleted edge
removes its subtree from the trees that use it, not from the others; the removed nodes are attached
again under nodes that are still in the tree, and the rest is lost.

All sources are handled together: `parents[z][y]` is the set of sources in whose trees z hangs below
y, so an edge of the graph is read once for all trees, and the sets are those of `fans`.

Source: Italiano, Theoretical Computer Science 48, 1986 (trees under inserts).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain, repeat
from typing import Any

from everlog.core.runtime.collector import collector_paused
from everlog.ies.practical.fans import NodeSet, Numbering, converted, estimated_pairs, fitting
from everlog.ies.practical.protocol import Changes, Described, Practical, Row, Rows, kept


class WitnessClosure(Practical):
    """Transitive closure by one witness per pair.

    Invariants, verified by `check`:
      I1  `before` is `after` backwards, and both are the base edges;
      I2  the sets of `parents[z]` are disjoint, not empty, and together `sources[z]`;
      I3  a source x in `parents[z][y]` is y or in `sources[y]`, and y → z is an edge;
      I4  from z up the tree of x one comes to x: the witnesses are well-founded;
      I5  x reaches y by an edge of y → z only if x is in `sources[z]`: nothing is missing;
      I6  `pairs` is the number of pairs.
    """

    described = Described(
        name="tc_witness",
        title="Transitive closure of arbitrary graphs, one witness for each pair",
        theorem="A polynomial form of Libkin and Wong's Proposition 1: one path instead of every path",
        about="For each node x a spanning tree of the nodes it reaches.  A delete affects trees with the edge.",
        inputs=(kept("edge", "x y", "the graph"),),
        answer=kept("path", "x y", "y is reached from x by one edge or more"),
        auxiliaries=(kept("tree", "x y parent", "the parent of y in the spanning tree of x"),),
        growth="as many rows as the answer, at most n²",
        cost="insert: the edges out of newly reached nodes; delete: the subtrees of the edge, for all "
        "sources together; a set of n nodes counts as n/64 steps",
        query="path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).",
    )

    # ── state ────────────────────────────────────────────────────────────────────────────────

    def _load(self) -> None:
        with collector_paused():
            self._nodes = Numbering()
            self.after: list[set[int]] = []
            self.before: list[set[int]] = []
            edges = [(self._taken(x), self._taken(y)) for x, y in self.base["edge"]]
            for y, z in edges:
                self.after[y].add(z)
                self.before[z].add(y)
            nodes = len(self.after)
            self.form = form = fitting(None, estimated_pairs(self.after) if nodes else 0, nodes)
            self.sources: list[NodeSet] = [form.of(before) for before in self.before]
            self.parents: list[dict[int, NodeSet]] = [{y: form.one(y) for y in before} for before in self.before]
            self.touched: dict[int, dict[int, NodeSet]] | None = None
            self.pairs = len(edges)
            self._count(self._spread({z: members for z, members in enumerate(self.sources) if members}), 1)
            self._fit()

    def _taken(self, name: Any) -> int:
        """The number of a node that may be new."""
        number = self._nodes.numbers.get(name)
        if number is None:
            number = self._nodes.take(name)
            if number == len(self.after):
                self.after.append(set())
                self.before.append(set())
                if hasattr(self, "sources") and len(self.sources) == number:
                    self.sources.append(self.form.empty)
                    self.parents.append({})
        return number

    def _fit(self) -> None:
        """Convert the sets if the size of the closure calls for the other form."""
        old, new = self.form, fitting(self.form, self.pairs, len(self.after))
        if old is not new:
            numbers = range(len(self.after))
            self.sources = [converted(members, old, new, numbers) for members in self.sources]
            self.parents = [
                {y: converted(was, old, new, numbers) for y, was in above.items()} for above in self.parents
            ]
            self.form = new

    def _count(self, changed: dict[int, NodeSet], sign: int) -> None:
        self.pairs += sign * sum(map(self.form.size, changed.values()))

    # ── updates ──────────────────────────────────────────────────────────────────────────────

    def _insert(self, relation: str, row: Row) -> Changes:
        u, v = map(self._taken, row)
        self.after[u].add(v)
        self.before[v].add(u)
        self.touched = {} if self.track_auxiliaries else None
        # path(x, v) :- edge(u, v), (x = u; path(x, u)).
        came = self.sources[u] | self.form.one(u)
        came ^= came & self.sources[v]
        added: dict[int, NodeSet] = {}
        if came:
            self._hang(v, u, came)
            added = self._spread({v: came})
            added[v] = added.get(v, self.form.empty) | came
        return self._changes(row, {}, added)

    def _delete(self, relation: str, row: Row) -> Changes:
        u, v = (self._nodes.numbers[name] for name in row)
        self.after[u].remove(v)
        self.before[v].remove(u)
        self.touched = {} if self.track_auxiliaries else None
        lost = self.parents[v].get(u)
        gone: dict[int, NodeSet] = {}
        if lost:
            self._touch(v)
            del self.parents[v][u]
            below = self._below(v, lost)
            left = self._rehung(v, lost, below)
            if left:
                if left != lost:
                    below = {z: kept_ for z, members in below.items() if (kept_ := members & left)}
                gone = self._dropped(below)
        return self._changes(row, gone, {})

    def _below(self, v: int, lost: NodeSet) -> dict[int, NodeSet]:
        """For each node the sources of `lost` in whose trees it is v or below v.

        Visits each pair once, on the way down its tree.  (x, x) has nothing below it in the tree of
        x: its root is x by itself, not as a node that is reached.
        """
        after, parents, one = self.after, self.parents, self.form.one
        below = {v: lost}
        level = {v: lost}
        while level:
            deeper: dict[int, NodeSet] = {}
            for y, members in level.items():
                root = one(y)
                if members & root:
                    members ^= root
                for z in after[y]:
                    hung = parents[z].get(y)
                    if hung:
                        hung = hung & members
                        if hung:
                            below[z] = below[z] | hung if z in below else hung
                            deeper[z] = deeper[z] | hung if z in deeper else hung
            level = deeper
        return below

    def _rehung(self, v: int, lost: NodeSet, below: dict[int, NodeSet]) -> NodeSet:
        """Attach v elsewhere in each tree where a node outside its subtree leads to it.

        The subtree of v moves with it.  Returns the sources without such a node.
        """
        empty = self.form.empty
        for y in self.before[v]:
            here = self.sources[y]
            here = (here ^ (here & below.get(y, empty)) | self.form.one(y)) & lost
            if here:
                above = self.parents[v]
                above[y] = above.get(y, empty) | here
                lost ^= here
                if not lost:
                    break
        return lost

    def _dropped(self, below: dict[int, NodeSet]) -> dict[int, NodeSet]:
        """Remove pairs, restore those that are still derived, and return the others."""
        sources, parents, one = self.sources, self.parents, self.form.one
        for z, members in below.items():
            self._touch(z)
            sources[z] ^= members
            above = parents[z]
            for y, hung in list(above.items()):
                if hung & members:
                    hung ^= hung & members
                    if hung:
                        above[y] = hung
                    else:
                        del above[y]
        back: dict[int, NodeSet] = {}
        for z, members in below.items():
            left = members
            for y in self.before[z]:
                here = left & (sources[y] | one(y))
                if here:
                    self._hang(z, y, here)
                    left ^= here
                    if not left:
                        break
            if left != members:
                back[z] = members ^ left
        self._spread(back)
        out: dict[int, NodeSet] = {}
        for z, members in below.items():
            members ^= members & sources[z]
            if members:
                out[z] = members
        return out

    def _hang(self, z: int, y: int, members: NodeSet) -> None:
        """Attach z below y in the trees of these sources, which did not reach it."""
        self._touch(z)
        self.sources[z] |= members
        above = self.parents[z]
        above[y] = above[y] | members if y in above else members

    def _spread(self, level: dict[int, NodeSet]) -> dict[int, NodeSet]:
        """Follow edges from new pairs; return the other new pairs, by node."""
        # path(x, z) :- Δpath(x, y), edge(y, z).
        after, sources, hang = self.after, self.sources, self._hang
        added: dict[int, NodeSet] = {}
        while level:
            further: dict[int, NodeSet] = {}
            for y, members in level.items():
                for z in after[y]:
                    new = members ^ (members & sources[z])
                    if new:
                        hang(z, y, new)
                        further[z] = further[z] | new if z in further else new
            for z, new in further.items():
                added[z] = added[z] | new if z in added else new
            level = further
        return added

    # ── telling ──────────────────────────────────────────────────────────────────────────────

    def _touch(self, z: int) -> None:
        if self.touched is not None and z not in self.touched:
            self.touched[z] = dict(self.parents[z])

    def _changes(self, row: Row, gone: dict[int, NodeSet], added: dict[int, NodeSet]) -> Changes:
        out: Changes = {}
        if gone or added:
            self._count(gone, -1)
            self._count(added, 1)
            out["path"] = self._pairs(gone), self._pairs(added)
        if self.touched:
            out["tree"] = self._hung_and_unhung()
            self.touched = None
        for name in set(row):  # removed nodes
            number = self._nodes.numbers[name]
            if not self.after[number] and not self.before[number]:
                self._nodes.drop(name)
        self._fit()
        return out

    def _hung_and_unhung(self) -> tuple[list[Row], list[Row]]:
        gone: list[Row] = []
        new: list[Row] = []
        names, empty, members = self._nodes.names, self.form.empty, self.form.members
        for z, old in (self.touched or {}).items():
            now = self.parents[z]
            for y in old.keys() | now.keys():
                was: NodeSet = old.get(y, empty)
                is_: NodeSet = now.get(y, empty)
                both = was & is_
                gone += [(x, names[z], names[y]) for x in members(was ^ both, names)]
                new += [(x, names[z], names[y]) for x in members(is_ ^ both, names)]
        return gone, new

    def _pairs(self, sets: dict[int, NodeSet]) -> Collection[Row]:
        """Pairs that are decoded lazily; sets and names do not change meanwhile."""
        if not sets:
            return ()
        names, form = self._nodes.names, self.form
        return Rows(
            sum(map(form.size, sets.values())),
            lambda: chain.from_iterable(
                zip(form.members(members, names), repeat(names[z])) for z, members in sets.items() if members
            ),
            {1: lambda: {names[z]: set(form.members(members, names)) for z, members in sets.items() if members}},
        )

    def _view(self, name: str) -> Collection[Row]:
        names, form = self._nodes.names, self.form
        if name == "path":
            return self._pairs(dict(enumerate(self.sources)))
        parents = [dict(above) for above in self.parents]

        def rows() -> Iterable[Row]:
            for z, above in enumerate(parents):
                for y, members in above.items():
                    for x in form.members(members, names):
                        yield x, names[z], names[y]

        return Rows(self.pairs, rows)

    def route(self, x: Any, y: Any) -> list[Any]:
        """The nodes of one path from x to y, by the tree of x; empty if there is none.

        >>> system = WitnessClosure()
        >>> system.load({"edge": [(1, 2), (2, 3), (3, 1)]})
        >>> system.route(1, 3), system.route(1, 1), system.route(1, 4)
        ([1, 2, 3], [1, 2, 3, 1], [])
        """
        numbers, names = self._nodes.numbers, self._nodes.names
        if x not in numbers or y not in numbers:
            return []
        source, at = self.form.one(numbers[x]), numbers[y]
        out = [names[at]]
        while True:
            above = next((z for z, members in self.parents[at].items() if members & source), None)
            if above is None:
                return []
            out.append(names[above])
            if above == numbers[x]:
                return out[::-1]
            at = above

    def check(self) -> None:
        form, numbers = self.form, self._nodes.numbers
        edges = {(numbers[x], numbers[y]) for x, y in self.base["edge"]}
        assert {(y, z) for y, after in enumerate(self.after) for z in after} == edges, "I1"
        assert {(y, z) for z, before in enumerate(self.before) for y in before} == edges, "I1"
        assert set(numbers.values()) == {n for edge in edges for n in edge}, "I1"
        for z, above in enumerate(self.parents):
            union = form.empty
            for y, members in above.items():
                assert members, "I2"
                assert not members & union, "I2"
                union |= members
                assert (y, z) in edges, "I3"
                assert members & (self.sources[y] | form.one(y)) == members, "I3"
            assert union == self.sources[z], "I2"
        founded = [form.empty] * len(self.after)
        level = {y: form.one(y) for y in range(len(self.after))}
        while level:  # down from the roots
            deeper: dict[int, NodeSet] = {}
            for y, members in level.items():
                for z in self.after[y]:
                    hung = members & self.parents[z].get(y, form.empty)
                    hung ^= hung & founded[z]
                    if hung:
                        founded[z] |= hung
                        deeper[z] = deeper.get(z, form.empty) | hung
            level = deeper
        assert founded == self.sources, "I4"
        for y, z in edges:
            came = self.sources[y] | form.one(y)
            assert came & self.sources[z] == came, "I5"
        assert self.pairs == sum(map(form.size, self.sources)), "I6"
