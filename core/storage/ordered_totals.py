"""Values by their places in an order, with the total of any interval of places.

`OrderedBlocks` stores weights at places in sorted blocks of bounded size, and a tree over the
totals of blocks.  So a change costs a search, a change within one block, and the way up in the
tree; so does the total of an interval.

`OrderedGroup` makes an aggregate of it: what the weight of a place is, and what the total of an
interval means.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sortedcontainers import SortedDict

from everlog.core.program import Kind, Value
from everlog.core.program.exact import packed_float, unpacked_mean, unpacked_sum
from everlog.core.program.functors import one_nan
from everlog.core.program.order import Ordered, rank
from everlog.core.program.values import MASK, wrap

_MOST = 128  # places of a block: from then on it is split
_FEW = 16  # targets of one place that are compared one by one
Weight = Any
Totals = Callable[[list[Weight]], Weight]  # of a list that is not empty


class OrderedBlocks:
    """Weights at places, and the totals of intervals.

    >>> blocks = OrderedBlocks(sum)
    >>> blocks.load([(1, 10), (3, 30), (5, 50)])
    >>> blocks.put(4, 40); blocks.drop(1)
    >>> blocks.total(None, False, 4, False), blocks.total(3, True, None, False)
    (70, 90)
    >>> blocks.total(7, False, 9, False) is None
    True

    Invariants, verified by `check`:
      I1  places are sorted, and each block has at least one of them;
      I2  `lasts` has the last place of each block;
      I3  each node of `tree` has the total of the blocks below it.
    """

    __slots__ = ("blocks", "lasts", "size", "together", "tree", "weights")

    def __init__(self, together: Totals) -> None:
        self.together = together
        self.blocks: list[list[Ordered]] = []
        self.weights: list[list[Weight]] = []
        self.lasts: list[Ordered] = []
        self.tree: list[Weight] = []  # node n has the children 2n and 2n + 1; leaves from `size` on
        self.size = 0

    def load(self, items: Iterable[tuple[Ordered, Weight]]) -> None:
        """Replace what is there by sorted places with weights."""
        known = list(items)
        half = _MOST // 2
        parts = [known[n : n + half] for n in range(0, len(known), half)]
        self.blocks = [[place for place, _ in part] for part in parts]
        self.weights = [[weight for _, weight in part] for part in parts]
        self._grow()

    def put(self, place: Ordered, weight: Weight) -> None:
        """Give a place a weight, in place of the one that it has."""
        if not self.blocks:
            self.blocks, self.weights = [[place]], [[weight]]
            self._grow()
            return
        at = min(bisect_left(self.lasts, place), len(self.lasts) - 1)
        places, weights = self.blocks[at], self.weights[at]
        inner = bisect_left(places, place)
        if inner < len(places) and places[inner] == place:
            weights[inner] = weight
        else:
            places.insert(inner, place)
            weights.insert(inner, weight)
            if len(places) > _MOST:
                self._split(at)
                return
            self.lasts[at] = places[-1]
        self._climb(at)

    def drop(self, place: Ordered) -> None:
        """Remove a place that is there."""
        at = bisect_left(self.lasts, place)
        places, weights = self.blocks[at], self.weights[at]
        inner = bisect_left(places, place)
        assert places[inner] == place
        del places[inner], weights[inner]
        if not places:
            del self.blocks[at], self.weights[at]
            self._grow()
            return
        self.lasts[at] = places[-1]
        self._climb(at)

    def total(self, low: Ordered | None, after: bool, high: Ordered | None, before: bool) -> Weight:
        """The total from `low` (with `after`: behind it) to `high` (with `before`: in front of it).

        None for an end: there is none.  None as the result: no place lies there.
        """
        lasts = self.lasts
        if not lasts:
            return None
        first = 0 if low is None else (bisect_right if after else bisect_left)(lasts, low)
        if first == len(lasts):
            return None
        last = len(lasts) - 1 if high is None else min(bisect_left(lasts, high), len(lasts) - 1)
        if first > last:
            return None
        places = self.blocks[first]
        begin = 0 if low is None else (bisect_right if after else bisect_left)(places, low)
        places = self.blocks[last]
        end = len(places) if high is None else (bisect_left if before else bisect_right)(places, high)
        if first == last:
            part = self.weights[first][begin:end]
            return self.together(part) if part else None
        parts = self.weights[first][begin:]
        parts += self.weights[last][:end]
        if last - first > 1:
            self._between(first + 1, last, parts)
        return self.together(parts) if parts else None

    def _between(self, left: int, right: int, parts: list[Weight]) -> None:
        """Add the totals of the blocks from `left` to `right` to some weights."""
        tree, left, right = self.tree, left + self.size, right + self.size
        while left < right:
            if left & 1:
                parts.append(tree[left])
                left += 1
            if right & 1:
                right -= 1
                parts.append(tree[right])
            left >>= 1
            right >>= 1

    def _split(self, at: int) -> None:
        places, weights, half = self.blocks[at], self.weights[at], len(self.blocks[at]) // 2
        self.blocks[at : at + 1] = [places[:half], places[half:]]
        self.weights[at : at + 1] = [weights[:half], weights[half:]]
        self._grow()

    def _grow(self) -> None:
        """Make the tree anew: the number of blocks has changed."""
        self.lasts = [places[-1] for places in self.blocks]
        size = self.size = len(self.blocks)
        self.tree = [None] * size + [self.together(weights) for weights in self.weights]
        for node in range(size - 1, 0, -1):
            self.tree[node] = self.together(self.tree[2 * node : 2 * node + 2])

    def _climb(self, at: int) -> None:
        tree, node = self.tree, at + self.size
        tree[node] = self.together(self.weights[at])
        while node > 1:
            node >>= 1
            tree[node] = self.together(tree[2 * node : 2 * node + 2])

    def check(self) -> None:
        flat = [place for places in self.blocks for place in places]
        assert all(self.blocks), "I1"
        assert all(a < b for a, b in itertools.pairwise(flat)), "I1"
        assert self.lasts == [places[-1] for places in self.blocks], "I2"
        copy = OrderedBlocks(self.together)
        copy.blocks, copy.weights = self.blocks, self.weights
        copy._grow()
        assert copy.tree == self.tree, "I3"


# ── aggregates ───────────────────────────────────────────────────────────────────────────────


class OrderedGroup:
    """The facts of one group, by place.

    >>> group = OrderedGroup("sum", Kind.NUMBER)
    >>> group.change({(1, 10): 1, (2, 20): 2, (3, 30): 1}, 1)
    >>> group.value(2, False, None, False), group.value(None, False, 1, True)
    (70, 0)
    """

    __slots__ = ("blocks", "kind", "op", "states")

    def __init__(self, op: str, kind: Kind) -> None:
        self.op, self.kind = op, kind
        together: Totals = sum if op not in ("min", "max") else min if op == "min" else max
        self.blocks = OrderedBlocks(together)
        self.states: dict[Ordered, Any] = {}  # by place: the number and weight of its targets, or those

    def __len__(self) -> int:
        return len(self.states)

    def change(self, targets: Mapping[tuple[Ordered, Value], int], sign: int) -> None:
        """Add or take (place, target), each a number of times."""
        places = self._changed(targets, sign)
        if len(places) * 4 > len(self.states):
            weights = {place: self._weight(state) for place, state in self.states.items()}
            self.blocks.load(sorted(weights.items(), key=lambda item: item[0]))
            return
        for place in places:
            state = self.states.get(place)
            if state is None:
                self.blocks.drop(place)
            else:
                self.blocks.put(place, self._weight(state))

    def _changed(self, targets: Mapping[tuple[Ordered, Value], int], sign: int) -> set[Ordered]:
        """Change the states of places; those whose weight changed, if they were or are there."""
        best, before, states = self.op in ("min", "max"), set(), self.states
        changed: set[Ordered] = set()
        for (place, target), number in targets.items():
            if place != place:  # NaN is in no interval
                continue
            if place in states:
                before.add(place)
            changed.add(place)
            state = states.get(place)
            if best:
                self._change_best(place, state, rank(target) if self.kind is Kind.FLOAT else target, sign * number)
                continue
            if state is None:
                state = states[place] = [0, 0]
            state[0] += sign * number
            state[1] += sign * number * self.amount(target)
            if not state[0]:
                del states[place]
        return {place for place in changed if place in before or place in states}

    def _change_best(self, place: Ordered, state: Any, target: Ordered, number: int) -> None:
        if state is None:
            self.states[place] = {target: number}
            return
        after = state.get(target, 0) + number
        if after:
            state[target] = after
            if len(state) > _FEW and type(state) is dict:
                self.states[place] = SortedDict(state)
            return
        del state[target]
        if not state:
            del self.states[place]

    def amount(self, target: Value) -> int:
        """What a target adds to a total."""
        if self.op == "count":
            return 1
        if self.op == "mean" or self.kind is Kind.FLOAT:
            return packed_float(float(target))
        return int(target)

    def _weight(self, state: Any) -> Weight:
        if type(state) is list:
            return state[1]
        if type(state) is dict:
            return self.blocks.together(state)  # type: ignore[arg-type]  # of its keys
        return state.peekitem(0 if self.op == "min" else -1)[0]

    def value(self, low: Ordered | None, after: bool, high: Ordered | None, before: bool) -> Value | None:
        """The aggregate over an interval; None if it has no value there."""
        return self.meaning(self.blocks.total(low, after, high, before))

    def meaning(self, total: Weight) -> Value | None:
        """The value that a total stands for."""
        op, kind = self.op, self.kind
        if op in ("min", "max"):
            if total is None or kind is not Kind.FLOAT:
                return total  # type: ignore[no-any-return]
            return total[1]  # type: ignore[no-any-return]
        if op == "mean":
            return None if total is None else one_nan(unpacked_mean(total))
        if kind is Kind.FLOAT:
            return unpacked_sum(total or 0) if op == "sum" else float(total or 0)
        return (total or 0) & MASK if kind is Kind.UNSIGNED else wrap(total or 0)

    def check(self) -> None:
        self.blocks.check()
        flat = {
            place: weight
            for places, weights in zip(self.blocks.blocks, self.blocks.weights, strict=True)
            for place, weight in zip(places, weights, strict=True)
        }
        assert flat == {place: self._weight(state) for place, state in self.states.items()}
