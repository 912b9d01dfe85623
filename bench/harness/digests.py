"""Answers as numbers, so that processes can compare millions of rows.

Rows are tuples of integers, whose hashes are the same in every process.  A relation's digest is its
size and two sums of hashes, independent of order.  The digest of a stream chains the changes of
each step, so that two chains agree up to the first step that differs.
"""

from __future__ import annotations

from collections.abc import Iterable

from everlog.bench.harness.workload import Row, Told

_MASK = 2**64 - 1

Digest = tuple[int, int, int]


def digest(rows: Iterable[Row]) -> Digest:
    """The digest of a set of rows; duplicates count once.

    >>> digest([(1, 2), (3, 4)]) == digest([(3, 4), (1, 2), (1, 2)])
    True
    >>> digest([(1, 2)]) == digest([(2, 1)])
    False
    """
    distinct = rows if isinstance(rows, set | frozenset) else set(rows)
    first = sum(map(hash, distinct)) & _MASK
    second = sum(hash((7, row)) for row in distinct) & _MASK
    return len(distinct), first, second


def chained(before: int, told: Told, answers: tuple[str, ...]) -> int:
    """The digest of a stream after one more step; only changes of answers count.

    >>> one = chained(0, {"p": {(1,): 1}}, ("p",))
    >>> one == chained(0, {"p": {(1,): 1}, "q": {(2,): 1}}, ("p",))
    True
    >>> one == chained(0, {"p": {(1,): -1}}, ("p",))
    False
    """
    total = 0
    for number, relation in enumerate(answers):
        for row, sign in told.get(relation, {}).items():
            total += hash((number, row, sign > 0))
    return hash((before, total & _MASK))
