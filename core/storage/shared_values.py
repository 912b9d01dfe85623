"""A binary table whose keys may share sets of values.

In a closure most keys have the same set: those that reach each other.  A shared set is stored once
and changed once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice, repeat

from everlog.core.program import Row, Value
from everlog.core.storage.equivalence import lacking
from everlog.core.storage.shape import Column, PairFacts, SavedColumns, ValueSet
from everlog.core.storage.table_shapes import PairShape
from everlog.core.storage.tables import TableOf


class SharedDelta(dict[Value, ValueSet]):
    """Facts that come or go, by key, and the same facts by the sets that keys share.

    Invariant: the keys of `together` and `separate` are those of the dict, each once.
    """

    __slots__ = ("separate", "together")

    def __init__(self) -> None:
        super().__init__()
        self.together: list[tuple[Collection[Value], ValueSet]] = []  # all keys that share a set
        self.separate: list[tuple[Collection[Value], ValueSet]] = []  # keys with a set of their own, each

    def put(self, key: Value, elements: ValueSet) -> None:
        """Add one key with a set of its own."""
        self[key] = elements
        self.separate.append(((key,), elements))

    def put_together(self, keys: Collection[Value], elements: ValueSet) -> None:
        self.update(dict.fromkeys(keys, elements))
        self.together.append((keys, elements))

    def put_separate(self, keys: Collection[Value], elements: ValueSet) -> None:
        self.update(dict.fromkeys(keys, elements))
        self.separate.append((keys, elements))

    def size(self) -> int:
        """The number of facts."""
        return sum(len(keys) * len(elements) for keys, elements in chain(self.together, self.separate))

    def rows(self, shape: PairShape) -> Iterator[Row]:
        """The facts as rows, in no order."""
        return chain.from_iterable(self._runs(turned=shape.value == 0))

    def _runs(self, turned: bool) -> Iterator[Iterable[Row]]:
        """For each element of a block's shorter side, the pairs with its longer side."""
        for keys, elements in chain(self.together, self.separate):
            if len(keys) < len(elements):
                for key in keys:
                    yield zip(elements, repeat(key)) if turned else zip(repeat(key), elements)
            else:
                for element in elements:
                    yield zip(repeat(element), keys) if turned else zip(keys, repeat(element))


class SharedTable(TableOf[PairFacts]):
    """Invariant: whatever is done to it, keys that share a set have the same facts.

    A keeper passes a `SharedDelta` to say how sets are shared; for any other change the table makes
    new sets.

    >>> values = {7}
    >>> table = SharedTable(PairShape(), {1: values, 2: values})
    >>> delta = SharedDelta()
    >>> delta.put_together((1, 2), {8})
    >>> _ = table.merge(delta)
    >>> _ = table.merge({1: {9}})
    >>> table.facts == {1: {7, 8, 9}, 2: {7, 8}}
    True
    """

    def _add(self, new: PairFacts) -> None:
        facts = self.facts
        if isinstance(new, SharedDelta):
            for keys, elements in new.together:
                known = facts.get(next(iter(keys)))
                if known is None:
                    shared = set(elements)
                    facts.update(dict.fromkeys(keys, shared))
                else:
                    known |= elements
            for keys, elements in new.separate:
                for key in keys:
                    known = facts.get(key)
                    if known is None:
                        facts[key] = set(elements)
                    else:
                        known |= elements
        else:
            for key, values in new.items():
                facts[key] = values.union(facts.get(key, ()))

    def _take(self, gone: PairFacts) -> None:
        facts = self.facts
        if isinstance(gone, SharedDelta):
            for keys, elements in gone.together:
                known = facts.get(next(iter(keys)))
                if known is not None:
                    known -= elements
                    if not known:
                        for key in keys:
                            del facts[key]
            for keys, elements in gone.separate:
                for key in keys:
                    known = facts.get(key)
                    if known is not None:
                        known -= elements
                        if not known:
                            del facts[key]
        else:
            for key, values in gone.items():
                left = facts.pop(key, values) - values
                if left:
                    facts[key] = left

    def part(self, keys: Collection[Value]) -> None:
        """Give some keys, which share a set with others, a set of their own."""
        self.facts.update(dict.fromkeys(keys, self.facts[next(iter(keys))].copy()))

    def columns(self) -> SavedColumns:
        """Keys by the set that they share, then the sets.

        >>> values = {7}
        >>> SharedTable(PairShape(), {1: values, 2: {8, 9}, 3: values}).columns()
        [[2, 1], [1, 3, 2], [1, 2], [7, 8, 9]]
        """
        groups: dict[int, list[Value]] = {}
        for key, values in self.facts.items():
            groups.setdefault(id(values), []).append(key)
        sets = [self.facts[keys[0]] for keys in groups.values()]
        return [
            list(map(len, groups.values())),
            list(chain.from_iterable(groups.values())),
            list(map(len, sets)),
            list(chain.from_iterable(sets)),
        ]

    def restore(self, columns: Iterator[Column]) -> None:
        numbers, keys, lengths, values = next(columns), iter(next(columns)), next(columns), iter(next(columns))
        facts: PairFacts = {}
        for number, length in zip(numbers, lengths, strict=True):
            shared = set(islice(values, length))
            facts.update(dict.fromkeys(islice(keys, number), shared))
        self.replace(facts)

    def difference(self, before: PairFacts) -> tuple[PairFacts, PairFacts]:
        return lacking(before, self.facts), lacking(self.facts, before)
