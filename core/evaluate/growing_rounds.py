"""Rounds over running totals and joined values: see `program.aggregates.growing`.

A unit's relations are sets, maps whose facts of one key are joined into one, and running totals of
contributions.  A round derives rows from the facts that changed in the round before, and takes
them in: a new row, a key whose fact becomes another one, a total that grows.  Facts that were
replaced are gone, because all rules derive at least as much from the better ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import define, field

from everlog.core.program import Row, Value
from everlog.core.program.aggregates.growing import GrowingUnit, RunningTotal
from everlog.core.program.aggregates.joined_values import Joined
from everlog.core.runtime.guards import Guard
from everlog.core.storage.ordered_totals import OrderedGroup
from everlog.core.storage.shape import Facts, Shape
from everlog.core.storage.tables import Table

Rows = set[Row]
Derive = Callable[[Facts | None, set[Row]], None]  # from Δ, into a set of rows
Cell = tuple[str, Row]  # a relation, and a key of it
Change = Callable[[Table, Facts, Facts], None]  # of a table: what goes, what comes


def _changed(table: Table, gone: Facts, new: Facts) -> None:
    if gone:
        table.remove(gone)
    if new:
        table.merge(new)


class Total:
    """The contributions of one running total: by key their number and sum."""

    def __init__(self, spec: RunningTotal) -> None:
        self.spec = spec
        self.sums: dict[Row, tuple[int, int]] = {}
        self._meaning = OrderedGroup(spec.op, spec.kind)

    def add(self, rows: Iterable[Row], width: int, sign: int) -> dict[Row, tuple[int, int]]:
        """Add or take contributions; the state that each changed key had before."""
        before: dict[Row, tuple[int, int]] = {}
        for row in rows:
            key = row[:width]
            number, total = self.sums.get(key, (0, 0))
            before.setdefault(key, (number, total))
            self.sums[key] = number + sign, total + sign * self._meaning.amount(row[-1])
        for key in before:
            if not self.sums[key][0]:
                del self.sums[key]
        return before

    def value(self, state: tuple[int, int]) -> Value | None:
        return self._meaning.meaning(state[1]) if state[0] else None

    def restore(self, before: Mapping[Row, tuple[int, int]]) -> None:
        for key, state in before.items():
            self.sums.pop(key, None)
            if state[0]:
                self.sums[key] = state


@define
class Growth:
    """The state of a unit, and the rounds that let it grow.

    `touched` has, for each cell that changed, the row that it had; None: it had none.
    """

    name: str
    unit: GrowingUnit
    tables: Mapping[str, Table]
    shapes: Mapping[str, Shape]
    forward: Sequence[tuple[str, str, Derive]]  # source, head and rule
    guard: Guard
    change: Change = _changed
    rows: dict[str, dict[Row, Row]] = field(factory=dict)  # of joined relations and totals, by key
    totals: dict[str, Total] = field(factory=dict)  # by the relation of contributions
    touched: dict[Cell, Row | None] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.totals = {spec.contributions: Total(spec) for spec in self.unit.totals}
        self.rows = {name: {} for name in (*self.unit.joined, *(spec.totals for spec in self.unit.totals))}

    def key_of(self, name: str, row: Row) -> Row:
        joined = self.unit.joined.get(name)
        if joined is not None:
            return joined.key_of(row)
        return row[:-1] if name in self.rows else row

    # ── rounds ───────────────────────────────────────────────────────────────────────────────

    def run(self, found: Mapping[str, Rows]) -> None:
        """Take in derived rows, and all that follows from them."""
        delta, number = self.absorb(found), 1
        while delta:
            number += 1
            self.guard.round(self.name, number, sum(map(len, delta.values())), True)
            more: dict[str, Rows] = {}
            for source, head, derive in self.forward:
                if source in delta:
                    derive(self.shapes[source].facts_of(delta[source]), more.setdefault(head, set()))
            delta = self.absorb(more)

    def absorb(self, found: Mapping[str, Rows]) -> dict[str, Rows]:
        """Take in derived rows; the facts that are new or have changed."""
        delta: dict[str, Rows] = {}
        for name, rows in found.items():
            joined = self.unit.joined.get(name)
            if joined is not None:
                self._join(name, joined, rows, delta)
                continue
            table = self.tables[name]
            new = {row for row in rows if row not in table}
            if not new:
                continue
            self.put(name, (), new)
            delta[name] = new
            if name in self.totals:
                self.add_up(name, new, 1, delta)
        return delta

    def _join(self, name: str, joined: Joined, rows: Rows, delta: dict[str, Rows]) -> None:
        known, gone, new = self.rows[name], set[Row](), set[Row]()
        for key, row in joined.facts(rows).items():
            old = known.get(key)
            if old is not None:
                row = joined.together(old, row)
                if row == old:
                    continue
                gone.add(old)
            new.add(row)
        if new:
            self.put(name, gone, new)
            delta[name] = new

    def add_up(self, contributions: str, rows: Rows, sign: int, delta: dict[str, Rows]) -> None:
        """Change the totals of contributions that came or went."""
        total = self.totals[contributions]
        name = total.spec.totals
        gone, new = set[Row](), set[Row]()
        for key in total.add(rows, self.shapes[name].arity - 1, sign):
            old, value = self.rows[name].get(key), total.value(total.sums.get(key, (0, 0)))
            if old is not None and value is not None and old[-1] == value:
                continue
            if old is not None:
                gone.add(old)
            if value is not None:
                new.add((*key, value))
        if gone or new:
            self.put(name, gone, new)
            delta[name] = delta.get(name, set()) | new

    def put(self, name: str, gone: Iterable[Row], new: Iterable[Row]) -> None:
        """Change facts of a relation, and note what their cells had before."""
        known = self.rows.get(name)
        gone, new = list(gone), list(new)
        for row in gone:
            key = self.key_of(name, row)
            self.touched.setdefault((name, key), row)
            if known is not None:
                del known[key]
        for row in new:
            key = self.key_of(name, row)
            self.touched.setdefault((name, key), None)
            if known is not None:
                known[key] = row
        shape = self.shapes[name]
        self.change(self.tables[name], shape.facts_of(gone), shape.facts_of(new))
