"""Equivalence relations (`eqrel`): kept as classes, never as pairs.

A class of n values has n² pairs.  Here all members of a class share one set, which is the fan of
each of them, so a class costs n.  Merging two classes makes a new set; the old ones stay as they
were and serve as the Δ of their members.
"""

from __future__ import annotations

from typing import Any

from everlog.core.storage.tables import Columns, Facts, Table

_NONE: frozenset[Any] = frozenset()  # one object: classes are told apart by identity


class Equivalence(Table):
    """A binary table closed under reflexivity, symmetry and transitivity.

    Invariant: `facts[x] is facts[y]` exactly when x and y are equivalent, and it holds both.
    """

    def find(self, key: Columns, rest: Columns) -> Any:
        if len(key) == len(rest) == 1:  # symmetric: one table serves both directions
            return self.facts
        return super().find(key, rest)

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
                before[value] = _NONE
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


class Classes(Table):
    """An equivalence relation as others read it: the classes are computed elsewhere.

    While a change is spread it passes through states that are no equivalences, so fans are replaced
    rather than changed: members of a class share theirs.
    """

    def find(self, key: Columns, rest: Columns) -> Any:
        if len(key) == len(rest) == 1:
            return self.facts
        return super().find(key, rest)

    def remove(self, gone: Facts) -> None:
        for key, fan in gone.items():
            left = self.facts.get(key, _NONE) - fan
            if left:
                self.facts[key] = left
            else:
                self.facts.pop(key, None)
        self.rebuild()

    def merge(self, new: Facts) -> None:
        for key, fan in new.items():
            known = self.facts.get(key, _NONE)
            if not fan <= known:
                self.facts[key] = fan | known
        self.rebuild()


def lacking(facts: Facts, other: Facts) -> Facts:
    """The pairs of one equivalence relation that another has not; one difference per pair of
    classes.

    >>> lacking({1: {1, 2}, 2: {1, 2}}, {1: {1}, 2: {2}})
    {1: {2}, 2: {1}}
    """
    known: dict[tuple[int, int], Any] = {}
    out = {}
    for key, fan in facts.items():
        against = other.get(key, _NONE)
        pair = id(fan), id(against)
        if pair not in known:
            known[pair] = fan - against
        if known[pair]:
            out[key] = known[pair]
    return out
