"""A binary table in which keys may share one fan, and changes that are told once for all that
share.

Of a closure, most keys have the same set: those that reach each other.  Shared, it is stored once,
and changed once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, repeat
from typing import Any

from everlog.core.program import Row
from everlog.core.storage.tables import Facts, Shape, Table

Fan = set[Any]


class SharedDelta(dict[Any, Fan]):
    """Facts that come or go, by key, as others read them; and the same by the fans of the table.

    Invariant: the keys of `together` and `apart` are those of the dict, each once.
    """

    __slots__ = ("apart", "together")

    def __init__(self) -> None:
        super().__init__()
        self.together: list[tuple[Collection[Any], Fan]] = []  # all keys that share a fan
        self.apart: list[tuple[Collection[Any], Fan]] = []  # keys with a fan of their own, each

    def put(self, key: Any, elements: Fan) -> None:
        """One key, with a fan of its own."""
        self[key] = elements
        self.apart.append(((key,), elements))

    def put_together(self, keys: Collection[Any], elements: Fan) -> None:
        self.update(dict.fromkeys(keys, elements))
        self.together.append((keys, elements))

    def put_apart(self, keys: Collection[Any], elements: Fan) -> None:
        self.update(dict.fromkeys(keys, elements))
        self.apart.append((keys, elements))

    def size(self) -> int:
        """How many facts."""
        return sum(len(keys) * len(elements) for keys, elements in chain(self.together, self.apart))

    def rows(self, shape: Shape) -> Iterator[Row]:
        """The facts as rows, in no order."""
        return chain.from_iterable(self._runs(turned=shape.fan == 0))

    def _runs(self, turned: bool) -> Iterator[Iterable[Row]]:
        """The longer side of each block in C, for each of the shorter one."""
        for keys, elements in chain(self.together, self.apart):
            if len(keys) < len(elements):
                for key in keys:
                    yield zip(elements, repeat(key)) if turned else zip(repeat(key), elements)
            else:
                for element in elements:
                    yield zip(repeat(element), keys) if turned else zip(keys, repeat(element))


class SharedTable(Table):
    """Invariant: whatever is done to it, keys that share a fan have the same facts.

    Who keeps the table says by a `SharedDelta` how fans are shared; of any other change it knows
    nothing, and makes new fans.

    >>> from everlog.core.storage.tables import Shape
    >>> fan = {7}
    >>> table = SharedTable(Shape(2), {1: fan, 2: fan})
    >>> delta = SharedDelta()
    >>> delta.put_together((1, 2), {8})
    >>> table.merge(delta)
    >>> table.merge({1: {9}})
    >>> table.facts == {1: {7, 8, 9}, 2: {7, 8}}
    True
    """

    def _add(self, new: Facts) -> None:
        facts = self.facts
        if isinstance(new, SharedDelta):
            for keys, elements in new.together:
                known = facts.get(next(iter(keys)))
                if known is None:
                    fan = set(elements)
                    facts.update(dict.fromkeys(keys, fan))
                else:
                    known |= elements
            for keys, elements in new.apart:
                for key in keys:
                    known = facts.get(key)
                    if known is None:
                        facts[key] = set(elements)
                    else:
                        known |= elements
        else:
            for key, fan in new.items():
                facts[key] = fan.union(facts.get(key, ()))

    def _take(self, gone: Facts) -> None:
        facts = self.facts
        if isinstance(gone, SharedDelta):
            for keys, elements in gone.together:
                known = facts.get(next(iter(keys)))
                if known is not None:
                    known -= elements
                    if not known:
                        for key in keys:
                            del facts[key]
            for keys, elements in gone.apart:
                for key in keys:
                    known = facts.get(key)
                    if known is not None:
                        known -= elements
                        if not known:
                            del facts[key]
        else:
            for key, fan in gone.items():
                left = facts.pop(key, fan) - fan
                if left:
                    facts[key] = left

    def part(self, keys: Collection[Any]) -> None:
        """Some keys, which share a fan with others, have one of their own from now on."""
        self.facts.update(dict.fromkeys(keys, self.facts[next(iter(keys))].copy()))
