"""Leapfrog: the common values of several sorted sets, between two bounds.

Each set in turn seeks the least value that is not below the greatest one found so far; when all
agree, that value is common.  A comparison of the rule such as `x < y` bounds the search, so values
outside are never read.

Source: Veldhuizen, "Leapfrog Triejoin", ICDT 2014.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen
from sortedcontainers import SortedDict


@frozen
class Bound:
    """`variable op other`; `other` is a variable, or a constant if `constant` is true."""

    variable: str
    op: str
    other: Any
    constant: bool = False

    def turned(self) -> Bound:
        """The same bound, written for the other variable."""
        assert not self.constant
        return Bound(self.other, {"<": ">", ">": "<", "<=": ">=", ">=": "<="}[self.op], self.variable)


def leapfrog(sets: Sequence[SortedDict[Any, int]], bounds: Sequence[tuple[str, Any]] = ()) -> Iterator[Any]:
    """The common keys of sorted dicts within the bounds, in order.

    >>> evens, threes = SortedDict.fromkeys(range(0, 30, 2)), SortedDict.fromkeys(range(0, 30, 3))
    >>> list(leapfrog([evens, threes], [(">", 0), ("<=", 18)]))
    [6, 12, 18]

    Cost: for k sets of at most n values each and a smallest one with m values between the bounds,
    O(k · m · log n).
    """
    low = low_open = high = high_open = None
    for op, value in bounds:
        if op in (">", ">=") and (low is None or value > low or (value == low and op == ">")):
            low, low_open = value, op == ">"
        if op in ("<", "<=") and (high is None or value < high or (value == high and op == "<")):
            high, high_open = value, op == "<"
    keys = [d.keys() for d in sets]
    places = [0] * len(keys)
    if low is not None:
        places = [d.bisect_right(low) if low_open else d.bisect_left(low) for d in sets]
    if any(place >= len(k) for place, k in zip(places, keys, strict=True)):
        return
    greatest = max(k[place] for k, place in zip(keys, places, strict=True))
    agreed = turn = 0
    while True:
        d, k = sets[turn], keys[turn]
        if places[turn] < len(k) and k[places[turn]] < greatest:
            places[turn] = d.bisect_left(greatest)
        if places[turn] >= len(k):
            return
        found = k[places[turn]]
        agreed = agreed + 1 if found == greatest else 1
        greatest = found
        if agreed == len(sets):
            if high is not None and (found > high or (high_open and found == high)):
                return
            yield found
            places[turn] += 1
            if places[turn] >= len(k):
                return
            greatest, agreed = k[places[turn]], 1
            if len(sets) == 1:
                agreed = 0
        turn = (turn + 1) % len(sets)
