"""Equivalence relations (`eqrel`): kept as classes, never as pairs.

A class of n values has n² pairs.  Here all members of a class share one set, which is the fan of
each of them, so a class costs n.  Merging two classes makes a new set; the old ones stay as they
were and serve as the Δ of their members.

Reads: core.tables.  Read by: core.seminaive.
"""

from __future__ import annotations

from typing import Any

from everlog.core.tables import Columns, Facts, Table


class Equivalence(Table):
    """A binary table closed under reflexivity, symmetry and transitivity.

    Invariant: `facts[x] is facts[y]` exactly when x and y are equivalent, and it holds both.
    """

    def index(self, key: Columns, rest: Columns) -> Any:
        if len(key) == len(rest) == 1:  # symmetric: one table serves both directions
            return self.facts
        return super().index(key, rest)

    def merge(self, new: Facts) -> Facts:
        """Add pairs and what follows from them; the pairs that are new.

        Cost: linear in the sizes of the classes that are merged, smaller into larger.
        """
        before: dict[Any, Any] = {}
        touched: dict[int, set[Any]] = {}
        for key, fan in new.items():
            for value in fan:
                self._join(key, value, before, touched)
        delta: dict[Any, set[Any]] = {}
        gained: dict[tuple[int, int], set[Any]] = {}
        for value, old in before.items():
            now = self.facts[value]
            pair = (id(old), id(now))
            if pair not in gained:
                gained[pair] = now - old
            if gained[pair]:
                delta[value] = gained[pair]
        for (key_columns, rest), index in self.indexes.items():
            self._extend(index, key_columns, rest, delta)
        return delta

    def _join(self, a: Any, b: Any, before: dict[Any, Any], touched: dict[int, set[Any]]) -> None:
        facts = self.facts
        for value in (a, b):
            if value not in facts:
                before[value] = frozenset()
                facts[value] = own = {value}
                touched[id(own)] = own
        left, right = facts[a], facts[b]
        if left is right:
            return
        if len(left) < len(right):
            left, right = right, left
        if id(left) not in touched:  # somebody's Δ or fan of before: leave it as it is
            for value in left:
                before.setdefault(value, left)
            left = set(left)
            touched[id(left)] = left
            for value in left:
                facts[value] = left
        for value in right:
            before.setdefault(value, right)
            facts[value] = left
        left |= right
