"""Which pairs made two values equivalent, and since when.

An equivalence grows by one pair at a time.  Inside a recursion not every chain of pairs explains x
~ y: one of the pairs may itself have been derived from x ~ y.  So each pair has the time at which
it was added, and a chain uses only pairs that were there when x and y were first connected.

A union-find forest without path compression gives that time: stamps grow towards the root, so the
paths from x and y meet at the pair that joined them.
"""

from __future__ import annotations

from collections import deque

from everlog.core.program import Row, Value
from everlog.core.program.functors import COMPARISONS

same = COMPARISONS["="]  # NaN is itself


class Classes:
    """Values in classes, with the pairs that joined them.

    Invariant: on the way from a value to its root, stamps grow.
    """

    def __init__(self) -> None:
        self._parent: dict[Value, Value] = {}
        self._stamp: dict[Value, int] = {}  # when a value got its parent
        self._born: dict[Value, int] = {}
        self._members: dict[Value, list[Value]] = {}  # of each root
        self._pairs: dict[Value, list[tuple[int, Value, Row]]] = {}
        self._clock = 0

    def join(self, pair: Row, tell: bool = True) -> list[Row]:
        """Add a pair; with `tell`, return the new pairs.

        Cost: logarithmic, plus the pairs returned.
        """
        self._clock += 1
        a, b = pair
        new: list[Row] = []
        for value in dict.fromkeys(pair):
            if value not in self._born:
                self._born[value] = self._clock
                self._parent[value] = value
                self._members[value] = [value]
                self._pairs[value] = []
                new.append((value, value))
        self._pairs[a].append((self._clock, b, pair))
        if not same(a, b):
            self._pairs[b].append((self._clock, a, pair))
        one, other = self._root(a), self._root(b)
        if same(one, other):
            return new
        if tell:
            new += [row for x in self._members[one] for y in self._members[other] for row in ((x, y), (y, x))]
        if len(self._members[one]) < len(self._members[other]):
            one, other = other, one
        self._parent[other], self._stamp[other] = one, self._clock
        self._members[one] += self._members.pop(other)
        return new

    def since(self, a: Value, b: Value) -> int | None:
        """When two values became equivalent; None if they are not.  Cost: logarithmic.

        >>> classes = Classes()
        >>> for pair in [(1, 2), (3, 4), (2, 3)]:
        ...     _ = classes.join(pair)
        >>> classes.since(3, 4), classes.since(1, 4), classes.since(1, 1), classes.since(1, 5)
        (2, 3, 1, None)
        """
        if a not in self._born or b not in self._born:
            return None
        found = max(self._born[a], self._born[b])
        while not same(a, b):
            if b not in self._stamp or (a in self._stamp and self._stamp[a] <= self._stamp[b]):
                if a not in self._stamp:
                    return None
                found, a = self._stamp[a], self._parent[a]
            else:
                found, b = self._stamp[b], self._parent[b]
        return found

    def chain(self, a: Value, b: Value, latest: int | None = None) -> list[Row]:
        """A shortest chain of pairs between two values, of those added until `latest`.

        >>> classes = Classes()
        >>> for pair in [(1, 2), (3, 2), (3, 4), (1, 4)]:
        ...     _ = classes.join(pair)
        >>> classes.chain(1, 4, latest=3), classes.chain(1, 4), classes.chain(2, 2)
        ([(1, 2), (3, 2), (3, 4)], [(1, 4)], [(1, 2)])
        """
        if same(a, b):
            return [self._pairs[a][0][2]]
        came: dict[Value, tuple[Value, Row]] = {}
        queue = deque([a])
        while queue and b not in came:
            here = queue.popleft()
            for stamp, there, pair in self._pairs[here]:
                if there not in came and not same(there, a) and (latest is None or stamp <= latest):
                    came[there] = here, pair
                    queue.append(there)
        backwards: list[Row] = []
        while not same(b, a):
            b, pair = came[b]
            backwards.append(pair)
        return backwards[::-1]

    def _root(self, value: Value) -> Value:
        while value in self._stamp:
            value = self._parent[value]
        return value
