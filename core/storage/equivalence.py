"""Equivalence relations (`eqrel`), stored as classes, never as pairs.

A class of n values has n² pairs.  All members of a class share one set, so a class costs n.
Merging two classes builds a new set; the old ones stay unchanged and serve as the Δ of their
members.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import chain, islice

from everlog.core.program import Value
from everlog.core.storage.shape import Column, Columns, Index, PairFacts, SavedColumns, ValueSet
from everlog.core.storage.tables import TableOf

_NONE: frozenset[Value] = frozenset()  # one object: classes are compared by identity


class EquivalenceTable(TableOf[PairFacts]):
    """A binary table in which the members of a class share one set."""

    def find(self, key: Columns, rest: Columns) -> Index | PairFacts | None:
        if len(key) == len(rest) == 1:  # symmetric: one table serves both directions
            return self.facts
        return super().find(key, rest)

    def difference(self, before: PairFacts) -> tuple[PairFacts, PairFacts]:
        return lacking(before, self.facts), lacking(self.facts, before)

    def columns(self) -> SavedColumns:
        """The sizes of the classes, and the members of one after the other.

        >>> from everlog.core.storage.table_shapes import PairShape
        >>> Classes(PairShape(), {1: {1, 2}, 2: {1, 2}, 3: {3}}).columns()
        [[2, 1], [1, 2, 3]]
        """
        classes: list[ValueSet] = []
        seen: ValueSet = set()
        for member, members in self.facts.items():
            if member not in seen:
                classes.append(members)
                seen |= members
        return [list(map(len, classes)), list(chain.from_iterable(classes))]

    def restore(self, columns: Iterator[Column]) -> None:
        lengths, members = next(columns), iter(next(columns))
        facts: PairFacts = {}
        for length in lengths:
            together = set(islice(members, length))
            facts.update(dict.fromkeys(together, together))
        self.replace(facts)


class Equivalence(EquivalenceTable):
    """A binary table closed under reflexivity, symmetry and transitivity.

    Invariant: `facts[x] is facts[y]` exactly when x and y are equivalent, and it holds both.
    """

    def merge(self, new: PairFacts) -> PairFacts:
        """Add pairs and what follows from them; return the new pairs.

        Cost: linear in the sizes of the classes that are merged, smaller into larger.
        """
        before: dict[Value, Set[Value]] = {}
        touched: dict[int, ValueSet] = {}
        for key, values in new.items():
            for value in values:
                self._join(key, value, before, touched)
        delta: PairFacts = {}
        gained: dict[tuple[int, int], ValueSet] = {}
        for value, old in before.items():
            now = self.facts[value]
            pair = (id(old), id(now))
            if pair not in gained:
                gained[pair] = now - old
            if gained[pair]:
                delta[value] = gained[pair]
        for (key_columns, rest), index in self.indexes.items():
            self.shape.extend(index, key_columns, rest, delta)
        return delta

    def _join(self, a: Value, b: Value, before: dict[Value, Set[Value]], touched: dict[int, ValueSet]) -> None:
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
        if id(left) not in touched:  # a Δ or an earlier state uses it: do not change it
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


class Classes(EquivalenceTable):
    """An equivalence relation whose classes are computed elsewhere.

    Between the delta rules of a step it passes through states that are not equivalences, so it
    replaces sets rather than changing them: members of a class share theirs.
    """

    def share(self, classes: PairFacts) -> None:
        """Give values other classes; an empty one to those that go."""
        for value, members in classes.items():
            if members:
                self.facts[value] = members
            else:
                self.facts.pop(value, None)

    def follow(self, gone: PairFacts, new: PairFacts) -> None:
        """Change the indexes after `share`; one that omits a column is rebuilt."""
        for (key, rest), index in self.indexes.items():
            if len(key) + len(rest) < self.shape.arity:
                index.clear()
                self.shape.extend(index, key, rest, self.facts)
            else:
                self.shape.shrink(index, key, rest, gone)
                self.shape.extend(index, key, rest, new)

    def reassign(self, classes: PairFacts) -> None:
        """The same as `share`, with all indexes, whatever state they are in."""
        self.share(classes)
        self.rebuild()

    def remove(self, gone: PairFacts) -> None:
        for key, values in gone.items():
            left = self.facts.pop(key, values) - values
            if left:
                self.facts[key] = left
        self.rebuild()

    def merge(self, new: PairFacts) -> PairFacts:
        for key, values in new.items():
            known = self.facts.get(key, _NONE)
            if not values <= known:
                self.facts[key] = values | known
        self.rebuild()
        return new


def lacking(facts: PairFacts, other: PairFacts) -> PairFacts:
    """The pairs of one equivalence that another lacks; one difference per two classes.

    >>> lacking({1: {1, 2}, 2: {1, 2}}, {1: {1}, 2: {2}})
    {1: {2}, 2: {1}}
    """
    known: dict[tuple[int, int], ValueSet] = {}
    out = {}
    for key, values in facts.items():
        against = other.get(key, _NONE)
        pair = id(values), id(against)
        if pair not in known:
            known[pair] = values - against
        if known[pair]:
            out[key] = known[pair]
    return out
