"""Alternating paths: an and-or graph with counters, for every target at once.

apath(x, y) is the least relation with

    (1)  apath(x, x) for each node x;
    (2)  apath(x, y) if x is universal, has an edge, and apath(z, y) for all its edges x → z;
    (3)  apath(x, y) if x is not universal, and apath(z, y) for some edge x → z.

For a fixed target y this is an and-or graph.  A universal x counts the successors that do not have
y yet; it has y when none is left.  An existential x stores one successor through which it has y,
its support, as in ies.practical.tc_witness.

*Gains* spread backwards along edges: they lower counters, and give existential nodes new targets.
*Losses* spread the same way, by supports alone: a universal node loses y when one successor does,
an existential node only if that successor was its support.  This removes too much where y has
another derivation.  So each node that lost a target then reads its successors once more, and
targets that they still have come back and spread.  A support existed before the fact it supports,
so the result is the least relation, without facts that support each other in a circle.

An update may do both: an edge out of a universal node is one more successor to satisfy.

Source: Libkin and Wong, Section 4 (the definition); Dowling and Gallier, J. Logic Programming 1(3),
1984 (counters).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from everlog.core.runtime.collector import collector_paused
from everlog.ies.practical.acyclic import route
from everlog.ies.practical.protocol import Changes, Described, Practical, Row, Rows, kept
from everlog.ies.practical.tc_counts import pairs

Targets = dict[Any, set[Any]]  # targets by node


class AlternatingPaths(Practical):
    """Alternating paths, with counters and supports.

    Invariants, verified by `check`:
      I1  `before` is `after` backwards; nodes are those of edges and universal ones;
      I2  `targets[x]` are the y with apath(x, y), by the definition from the targets of successors;
      I3  `unsatisfied[x][y]` of a universal x is the number of its successors without y; it exists
          if and only if some successor has y;
      I4  `through[x]` of an existential x maps each target but x itself to a successor that has it;
      I5  the supports are well-founded.
    """

    described = Described(
        name="alternating_counters",
        title="Alternating paths of arbitrary and-or graphs, with counters of unsatisfied successors",
        theorem="Libkin and Wong, Proposition 2, with counters and one support for each pair",
        about="A universal node has a path to y when all its successors do, and there is one; another node when "
        "some successor does.  Universal nodes count successors that do not; others keep one that does.",
        inputs=(kept("edge", "x y", "the graph"), kept("universal", "x", "the universal nodes")),
        answer=kept("apath", "x y", "there is an alternating path from x to y"),
        auxiliaries=(
            kept(
                "unsatisfied",
                "x y number:num",
                "number of successors of the universal node x without y; some have it",
            ),
            kept("through", "x y z", "x, which is not universal, has y through its successor z"),
        ),
        growth="at most n² rows in both together",
        cost="the edges into nodes that lose or gain a target, even temporarily, for each such target",
        query=""".decl place(x: node)  .decl first(x: node, z: node)  .decl last(x: node, z: node)
.decl next(x: node, z: node, w: node)  .decl upto(x: node, z: node, y: node)
place(x) :- edge(x, _). place(x) :- edge(_, x). place(x) :- universal(x).
first(x, z) :- edge(x, z), z = min w : { edge(x, w) }.
last(x, z) :- edge(x, z), z = max w : { edge(x, w) }.
next(x, z, w) :- edge(x, z), edge(x, w), w = min t : { edge(x, t), t > z }.
apath(x, x) :- place(x).
apath(x, y) :- edge(x, z), !universal(x), apath(z, y).
apath(x, y) :- upto(x, z, y), last(x, z).
upto(x, z, y) :- universal(x), first(x, z), apath(z, y).
upto(x, w, y) :- upto(x, z, y), next(x, z, w), apath(w, y).""",
    )

    def _load(self) -> None:
        with collector_paused():
            self.after: dict[Any, set[Any]] = {}
            self.before: dict[Any, set[Any]] = {}
            self.universal = {x for (x,) in self.base["universal"]}
            for x, y in self.base["edge"]:
                self.after.setdefault(x, set()).add(y)
                self.before.setdefault(y, set()).add(x)
            nodes = self.after.keys() | self.before.keys() | self.universal
            for x in nodes:
                self.after.setdefault(x, set())
                self.before.setdefault(x, set())
            self.targets: Targets = {x: {x} for x in nodes}
            self.unsatisfied: dict[Any, dict[Any, int]] = {x: {} for x in self.universal}
            self.through: dict[Any, Targets] = {x: {} for x in nodes - self.universal}
            self._began()
            self._gain({x: {x} for x in nodes})

    # ── updates ──────────────────────────────────────────────────────────────────────────────

    def _insert(self, relation: str, row: Row) -> Changes:
        self._began()
        for node in row:
            if node not in self.targets:
                self.after[node], self.before[node] = set(), set()
                self.targets[node] = {node}
                self.through[node] = {}
                self.added[node] = {node}
        if relation == "universal":
            self._become_universal(row[0])
        else:
            self._link(*row)
        return self._changes()

    def _delete(self, relation: str, row: Row) -> Changes:
        self._began()
        if relation == "universal":
            self._become_existential(row[0])
        else:
            self._unlink(*row)
        for node in set(row):
            if not self.after[node] and not self.before[node] and node not in self.universal:
                self._touch(node)
                self.lost.setdefault(node, set()).add(node)
                for kept_ in (self.after, self.before, self.targets, self.through):
                    del kept_[node]
        return self._changes()

    def _link(self, u: Any, v: Any) -> None:
        self._touch(u)
        self.after[u].add(v)
        self.before[v].add(u)
        have, mine = self.targets[v], self.targets[u]
        if u not in self.universal:
            self._gain(self._add_targets(u, v, have - mine))
            return
        number, counters = len(self.after[u]), self.unsatisfied[u]
        lost = mine - {u}
        if lost and not route(self.after, v, u):
            lost -= have  # v has these without u; the others may depend on u alone
        for y in counters.keys() - have:
            counters[y] += 1
        for y in have - counters.keys():
            counters[y] = number - 1
        if number == 1:
            self._gain(self._add_targets(u, None, have - mine))
        else:
            self._lose({u: lost})

    def _unlink(self, u: Any, v: Any) -> None:
        self._touch(u)
        self.after[u].remove(v)
        self.before[v].remove(u)
        have, mine = self.targets[v], self.targets[u]
        if u not in self.universal:
            self._lose({u: self.through[u].pop(v, set())})
            return
        number, counters = len(self.after[u]), self.unsatisfied[u]
        if not number:
            counters.clear()
            self._lose({u: mine - {u}})
            return
        ready = set()
        for y, left in list(counters.items()):
            if y not in have:
                counters[y] = left - 1
                if left == 1 and y not in mine:
                    ready.add(y)
            elif left == number:
                del counters[y]
        self._gain(self._add_targets(u, None, ready))

    def _become_universal(self, x: Any) -> None:
        self._touch(x)
        self.universal.add(x)
        del self.through[x]
        number = len(self.after[x])
        counters = self.unsatisfied[x] = {}
        for z in self.after[x]:
            for y in self.targets[z]:
                counters[y] = counters.get(y, number) - 1
        self._lose({x: self.targets[x] - {x}})

    def _become_existential(self, x: Any) -> None:
        self._touch(x)
        self.universal.remove(x)
        del self.unsatisfied[x]
        held = self.targets[x] - {x}
        # all successors had them before x did, so any one is a support
        self.through[x] = {next(iter(self.after[x])): held} if held else {}
        came: Targets = {}
        for z in self.after[x]:
            came = self._add_targets(x, z, self.targets[z] - self.targets[x], came)
        self._gain(came)

    # ── gains and losses ─────────────────────────────────────────────────────────────────────

    def _add_targets(self, x: Any, z: Any, came: set[Any], record: Targets | None = None) -> Targets:
        """Give x more targets, through z if it is existential; add them to `record`."""
        record = {} if record is None else record
        if came:
            self._touch(x)
            self.targets[x] |= came
            if x not in self.universal:
                self.through[x].setdefault(z, set()).update(came)
            record.setdefault(x, set()).update(came)
        return record

    def _gain(self, level: Targets) -> None:
        """Spread new targets to predecessors; `added` collects all."""
        while level:
            for x, came in level.items():
                self.added.setdefault(x, set()).update(came)
            further: Targets = {}
            for z, came in level.items():
                for x in self.before[z]:
                    if x in self.universal:
                        self._add_targets(x, None, self._satisfied(x, came), further)
                    else:
                        self._add_targets(x, z, came - self.targets[x], further)
            level = further

    def _satisfied(self, x: Any, came: Iterable[Any]) -> set[Any]:
        """The targets that all successors of a universal node have now, and x has not."""
        self._touch(x)
        number, counters, mine = len(self.after[x]), self.unsatisfied[x], self.targets[x]
        ready = set()
        for y in came:
            left = counters[y] = counters.get(y, number) - 1
            if not left and y not in mine:
                ready.add(y)
        return ready

    def _lose(self, level: Targets) -> None:
        """Remove targets without support; restore those still derived.  `lost` collects."""
        suspects: Targets = {}
        while level:
            further: Targets = {}
            for z, gone in level.items():
                self.targets[z] -= gone
                suspects.setdefault(z, set()).update(gone)
            for z, gone in level.items():
                for x in self.before[z] if gone else ():
                    hit = self._unsupported(x, z, gone)
                    if hit:
                        further.setdefault(x, set()).update(hit)
            level = further
        back: Targets = {}
        for x, left in suspects.items():
            self.lost.setdefault(x, set()).update(left)
            if x in self.universal:
                counters = self.unsatisfied[x]
                self._add_targets(x, None, {y for y in left if counters.get(y) == 0} - self.targets[x], back)
                continue
            for z in self.after[x]:
                self._add_targets(x, z, (left & self.targets[z]) - self.targets[x], back)
        self._gain(back)

    def _unsupported(self, x: Any, z: Any, gone: set[Any]) -> set[Any]:
        """The targets of x that relied on its successor z, which has just lost some."""
        self._touch(x)
        if x not in self.universal:
            held = self.through[x].get(z)
            hit = held & gone if held else set()
            if held and hit:
                held -= hit
                if not held:
                    del self.through[x][z]
            return hit
        number, counters, mine = len(self.after[x]), self.unsatisfied[x], self.targets[x]
        out = set()
        for y in gone:
            left = counters[y] + 1
            if left == number:
                del counters[y]
            else:
                counters[y] = left
            if left == 1 and y != x and y in mine:
                out.add(y)
        return out

    # ── telling ──────────────────────────────────────────────────────────────────────────────

    def _began(self) -> None:
        self.lost: Targets = {}
        self.added: Targets = {}
        self.touched: dict[Any, tuple[set[Row], set[Row]]] | None = {} if self.track_auxiliaries else None

    def _touch(self, x: Any) -> None:
        if self.touched is not None and x not in self.touched:
            self.touched[x] = self._counters_of(x), self._supports_of(x)

    def _counters_of(self, x: Any) -> set[Row]:
        return {(x, y, number) for y, number in self.unsatisfied.get(x, {}).items()}

    def _supports_of(self, x: Any) -> set[Row]:
        return {(x, y, z) for z, held in self.through.get(x, {}).items() for y in held}

    def _changes(self) -> Changes:
        gone: Targets = {}
        new: Targets = {}
        nothing: set[Any] = set()
        for x, rows in self.lost.items():
            left = rows - self.targets.get(x, nothing)
            if left:
                gone[x] = left
        for x, rows in self.added.items():
            left = rows - self.lost.get(x, nothing)
            if left:
                new[x] = left
        out: Changes = {"apath": (pairs(gone), pairs(new))}
        if self.touched:
            for at, (name, rows_of) in enumerate(
                (("unsatisfied", self._counters_of), ("through", self._supports_of))
            ):
                was = {row for kept_ in self.touched.values() for row in kept_[at]}
                now = {row for x in self.touched for row in rows_of(x)}
                out[name] = was - now, now - was
        self._began()
        return out

    def _view(self, name: str) -> Collection[Row]:
        if name == "apath":
            return pairs({x: frozenset(ys) for x, ys in self.targets.items()})
        if name == "unsatisfied":
            counters = {x: tuple(row.items()) for x, row in self.unsatisfied.items()}
            size = sum(map(len, counters.values()))
            return Rows(size, lambda: ((x, y, number) for x, row in counters.items() for y, number in row))
        held = [(x, frozenset(ys), z) for x, supports in self.through.items() for z, ys in supports.items()]
        return Rows(sum(len(ys) for _, ys, _ in held), lambda: ((x, y, z) for x, ys, z in held for y in ys))

    def check(self) -> None:
        edges = self.base["edge"]
        assert {(x, y) for x, ys in self.after.items() for y in ys} == edges, "I1"
        assert {(x, y) for y, xs in self.before.items() for x in xs} == edges, "I1"
        assert self.universal == {x for (x,) in self.base["universal"]} == set(self.unsatisfied), "I1"
        nodes = {x for edge in edges for x in edge} | self.universal
        assert self.targets.keys() == self.after.keys() == self.before.keys() == nodes, "I1"
        assert self.through.keys() == nodes - self.universal, "I1"
        for x, after in self.after.items():
            have = [self.targets[z] for z in after]
            some = set().union(*have)
            if x in self.universal:
                counters = {y: sum(y not in one for one in have) for y in some}
                assert self.unsatisfied[x] == counters, "I3"
                assert self.targets[x] == {x} | {y for y in some if not counters[y]}, "I2"
            else:
                assert self.targets[x] == {x} | some, "I2"
                held = [(y, z) for z, ys in self.through[x].items() for y in ys]
                assert all(y in self.targets[z] and z in after for y, z in held), "I4"
                assert len({y for y, _ in held}) == len(held) == len(self.targets[x]) - 1, "I4"
                assert x not in {y for y, _ in held}, "I4"
        self._check_supports()

    def _check_supports(self) -> None:
        """I5: from the diagonal on, supports alone derive every pair."""
        founded = {(x, x) for x in self.targets}
        by = {(x, y): z for x, supports in self.through.items() for z, ys in supports.items() for y in ys}
        while True:
            more = {
                (x, y)
                for x, ys in self.targets.items()
                for y in ys
                if (x, y) not in founded
                and (
                    all((z, y) in founded for z in self.after[x])
                    if x in self.universal
                    else (by[x, y], y) in founded
                )
            }
            if not more:
                break
            founded |= more
        assert founded == {(x, y) for x, ys in self.targets.items() for y in ys}, "I5"
