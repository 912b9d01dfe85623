"""Bags of a tree decomposition, kept consistent by counted semijoins in both directions.

Each bag holds the join of the atoms, projected to its variables.  A row that is inserted into an
atom adds the rows of a worst-case optimal join in which it is fixed.  Each bag sends its neighbour
the values of their common variables for which it has a row that all its *other* neighbours support.
A row is *alive* when all neighbours support it: then it is part of an answer, and enumeration
visits only alive rows.  So answers come with constant delay from any bag, also those that contain
a given row.

Inserts only add rows and support, and the support of a row changes at most once for each neighbour:
the total work is that of computing the bags once, O(N^w).  On a join tree, where each
bag is an atom, it is linear.

Support is counted, so rows can be deleted, too (on a join tree this is CROWN).  Then a stream that
switches much support on and off pays for it each time, and the bound above does not hold.

Source: Theorem 4.1, Examples 5.3 to 5.5 of Abo Khamis et al. 2024; Wang, Hu, Dai, Yi, SIGMOD 2023
(CROWN).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import repeat
from typing import Any

from attrs import define, field

from everlog.core.classify.covers import fractional_cover
from everlog.core.classify.decompositions import Decomposition
from everlog.core.classify.query import Query
from everlog.core.ir.python_text import tuple_text
from everlog.core.joins.code import MOST_LOOPS, Code, local
from everlog.core.joins.generic_join import write_join
from everlog.core.joins.tries import Input, picker, row_picker
from everlog.core.joins.view import Asked, CannotServe, CountedView, Weighted
from everlog.core.program import Row

Key = Any


@define(eq=False)
class Side:
    """One neighbour of a bag; `support` counts its rows for each value of the common variables."""

    bag: Bag
    bit: int
    key: Callable[[Row], Key]
    back: Side = field(init=False)  # the neighbour's side of the same edge
    support: dict[Key, int] = field(factory=dict)
    rows: dict[Key, set[Row]] = field(factory=dict)
    alive: dict[Key, dict[Row, None]] = field(factory=dict)


@define(eq=False)
class Bag:
    """Rows over some variables, each with the bits of the neighbours that do not support it."""

    number: int
    schema: tuple[str, ...]
    inputs: list[Input] = field(factory=list)
    sides: dict[int, Side] = field(factory=dict)  # by the number of the neighbour
    rows: dict[Row, int] = field(factory=dict)
    alive: dict[Row, None] = field(factory=dict)
    found: dict[int, tuple[Callable[[Row], Row], dict[Row, dict[Row, None]]]] = field(factory=dict)  # by atom


@define(eq=False)
class Feed:
    """The rows of one atom in one bag, projected to the bag's variables."""

    bag: Bag
    source: Input
    project: Callable[[Row], Row]
    join: Callable[..., Iterator[Row]] = field(init=False)


class Calibrated(CountedView):
    """Invariants:
    I1  the rows of a bag are the join of its inputs;
    I2  the support of a value of the common variables is the number of rows of the neighbour that
        all its other neighbours support;
    I3  a row's bits are the neighbours without support for it; alive rows are those with no bit.
    """

    def __init__(self, asked: Asked, decomposition: Decomposition) -> None:
        super().__init__()
        if len(asked.query.variables) >= MOST_LOOPS:
            raise CannotServe(f"it has {MOST_LOOPS} variables or more, and each would be a nested loop")
        self.asked, self.decomposition = asked, decomposition
        query = asked.query
        self.held: list[set[Row]] = [set() for _ in query.atoms]
        self.bags = [
            Bag(n, tuple(v for v in query.variables if v in bag)) for n, bag in enumerate(decomposition.bags)
        ]
        self._link(decomposition)
        self.home = decomposition.home(query)
        self.feeds: list[list[Feed]] = [[] for _ in query.atoms]
        for bag in self.bags:
            self._feed(query, bag)
        for number, place in enumerate(self.home):
            bag = self.bags[place]
            bag.found[number] = row_picker(bag.schema, query.atoms[number].variables), {}
        self._deltas: list[Callable[..., Iterator[Row]]] = []
        self._all: Callable[[], Iterator[Row]]
        self._write()

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _link(self, decomposition: Decomposition) -> None:
        """Make both sides of every edge; further roots become children of the first one."""
        for child, parent in enumerate(decomposition.parents):
            if parent is None:
                if child == 0:
                    continue
                parent = 0
            one, other = self.bags[parent], self.bags[child]
            common = [v for v in one.schema if v in other.schema]
            here = Side(other, 1 << len(one.sides), picker(one.schema, common))
            there = Side(one, 1 << len(other.sides), picker(other.schema, common))
            here.back, there.back = there, here
            one.sides[child], other.sides[parent] = here, there

    def _feed(self, query: Query, bag: Bag) -> None:
        """The inputs of a bag: atoms inside it, and projections of others that its cover needs."""
        inside = [i for i, atom in enumerate(query.atoms) if set(atom.variables) <= set(bag.schema)]
        scopes = [frozenset(atom.variables) & frozenset(bag.schema) for atom in query.atoms]
        used = [i for i in inside if self.home[i] == bag.number or scopes[i]]
        if bag.schema:
            weights = fractional_cover(scopes, frozenset(bag.schema)).weights
            used += [i for i, weight in enumerate(weights) if weight and i not in used]
        for i in sorted(used):
            variables = tuple(v for v in query.atoms[i].variables if v in bag.schema)
            source = Input(variables)
            bag.inputs.append(source)
            self.feeds[i].append(Feed(bag, source, row_picker(query.atoms[i].variables, variables)))

    def _write(self) -> None:
        code = Code(_count=self._count)
        for bag in self.bags:
            for number, source in enumerate(bag.inputs):
                code.define(f"join{bag.number}_{number}", ", ".join(map(local, source.schema)))
                others = [other for other in bag.inputs if other is not source]
                ranges = [b for b in self.asked.ranges if b.variable in bag.schema]
                ranges = [b for b in ranges if b.constant or b.other in bag.schema]
                write_join(code, others, set(source.schema), ranges, self.asked.counting)
                code.line(f"yield {tuple_text(map(local, bag.schema))}")
        for number in range(len(self.held)):
            bag = self.bags[self.home[number]]
            code.define(f"delta{number}", "row")
            self._write_walk(code, bag, f"{code.name('found', bag.found[number][1])}.get(row, ())")
        code.define("answers", "")
        self._write_walk(code, self.bags[0], code.name("alive", self.bags[0].alive))
        scope = code.compiled()
        for feeds in self.feeds:
            for feed in feeds:
                number = next(n for n, source in enumerate(feed.bag.inputs) if source is feed.source)
                feed.join = scope[f"join{feed.bag.number}_{number}"]
        self._deltas = [scope[f"delta{number}"] for number in range(len(self.held))]
        self._all = scope["answers"]

    def _write_walk(self, code: Code, start: Bag, rows: str) -> None:
        """Write loops over alive rows, from bag to bag; each row matches one of the next bag."""
        places: dict[str, str] = {}
        waiting: list[tuple[Bag, Bag | None, str]] = [(start, None, rows)]
        while waiting:
            bag, before, offered = waiting.pop(0)
            code.loop(f"r{bag.number}", offered)
            if self.asked.counting:
                code.line("_count[0] += 1")
            for column, v in enumerate(bag.schema):
                places.setdefault(v, f"r{bag.number}[{column}]")
            for side in bag.sides.values():
                if side.bag is not before:
                    key = f"{code.name('key', side.key)}(r{bag.number})"
                    waiting.append((side.bag, bag, f"{code.name('alive', side.back.alive)}[{key}]"))
        code.line(f"yield {tuple_text(places[v] for v in self.asked.kept)}")

    # ── updates ──────────────────────────────────────────────────────────────────────────────

    def insert(self, atom: int, row: Row) -> bool:
        if row in self.held[atom]:
            return False
        self.held[atom].add(row)
        for feed in self.feeds[atom]:
            projected = feed.project(row)
            self._count[0] += 1
            if not feed.source.add(projected, 1):
                for new in feed.join(*projected):
                    self._add(feed.bag, new)
        return True

    def delete(self, atom: int, row: Row) -> bool:
        if row not in self.held[atom]:
            return False
        self.held[atom].remove(row)
        for feed in self.feeds[atom]:
            projected = feed.project(row)
            self._count[0] += 1
            if feed.source.add(projected, -1) == 1:
                for gone in list(feed.join(*projected)):
                    self._remove(feed.bag, gone)
        return True

    def _add(self, bag: Bag, row: Row) -> None:
        self._count[0] += 1 + len(bag.sides)
        missing = 0
        for side in bag.sides.values():
            key = side.key(row)
            side.rows.setdefault(key, set()).add(row)
            if key not in side.support:
                missing |= side.bit
        bag.rows[row] = missing
        if not missing:
            self._revive(bag, row)
        for side in bag.sides.values():
            if not missing & ~side.bit:
                self._send(side, side.key(row))

    def _remove(self, bag: Bag, row: Row) -> None:
        self._count[0] += 1 + len(bag.sides)
        missing = bag.rows.pop(row)
        if not missing:
            self._bury(bag, row)
        for side in bag.sides.values():
            key = side.key(row)
            rows = side.rows[key]
            rows.discard(row)
            if not rows:
                del side.rows[key]
        for side in bag.sides.values():
            if not missing & ~side.bit:
                self._withdraw(side, side.key(row))

    def _send(self, side: Side, key: Key) -> None:
        """Add 1 to the support of this value at the neighbour."""
        back, bag = side.back, side.bag
        number = back.support.get(key, 0)
        back.support[key] = number + 1
        if number:
            return
        for row in back.rows.get(key, ()):
            self._count[0] += 1
            bag.rows[row] = missing = bag.rows[row] & ~back.bit
            if not missing:
                self._revive(bag, row)
            for other in bag.sides.values():
                if other is not back and not missing & ~other.bit:
                    self._send(other, other.key(row))

    def _withdraw(self, side: Side, key: Key) -> None:
        """Take 1 from the support of this value at the neighbour."""
        back, bag = side.back, side.bag
        number = back.support[key] - 1
        if number:
            back.support[key] = number
            return
        del back.support[key]
        for row in back.rows.get(key, ()):
            self._count[0] += 1
            before = bag.rows[row]
            bag.rows[row] = before | back.bit
            if not before:
                self._bury(bag, row)
            for other in bag.sides.values():
                if other is not back and not before & ~other.bit:
                    self._withdraw(other, other.key(row))

    def _revive(self, bag: Bag, row: Row) -> None:
        bag.alive[row] = None
        for side in bag.sides.values():
            side.alive.setdefault(side.key(row), {})[row] = None
        for pick, found in bag.found.values():
            found.setdefault(pick(row), {})[row] = None

    def _bury(self, bag: Bag, row: Row) -> None:
        del bag.alive[row]
        for side in bag.sides.values():
            _drop(side.alive, side.key(row), row)
        for pick, found in bag.found.values():
            _drop(found, pick(row), row)

    # ── as a view ────────────────────────────────────────────────────────────────────────────

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        return zip(self._deltas[atom](row), repeat(1))

    def answers(self) -> Iterator[Weighted]:
        return zip(self._all(), repeat(1))

    def rows(self, atom: int) -> Collection[Row]:
        return self.held[atom]

    def check(self) -> None:
        fresh = Calibrated(self.asked, self.decomposition)
        fresh.load(dict(enumerate(self.held)))
        for bag, other in zip(self.bags, fresh.bags, strict=True):
            assert bag.rows == other.rows, f"I1 or I3: {bag.schema}"
            alive = {row for row, missing in bag.rows.items() if not missing}
            assert bag.alive.keys() == alive, f"I3: {bag.schema}"
            assert bag.found.keys() == other.found.keys()
            for number, (_, found) in bag.found.items():
                assert found == other.found[number][1], f"I3: {bag.schema}"
            for name, side in bag.sides.items():
                again = other.sides[name]
                assert side.support == again.support, f"I2: {bag.schema}"
                assert side.rows == again.rows, f"I1: {bag.schema}"
                assert side.alive == again.alive, f"I3: {bag.schema}"
            for source in bag.inputs:
                source.check()


def _drop(index: dict[Key, dict[Row, None]], key: Key, row: Row) -> None:
    rows = index[key]
    del rows[row]
    if not rows:
        del index[key]
