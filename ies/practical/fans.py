"""Sets of nodes in two forms with the same operators: bit sets and frozen sets.

A closure is a set of sources for each node.  Where most nodes reach most others, a Python int with
one bit for each node is the best set: an intersection of two thousand nodes takes some thirty
nanoseconds, and a node takes a bit rather than sixty bytes.  Where nodes reach few others out of
very many, an int would be mostly zeros, and a frozen set is smaller.

`&`, `|` and `^` mean intersection, union and symmetric difference for both, the empty set is false
for both, and `a ^ (a & b)` is a minus b.  An algorithm that uses only these works on either form.
Both forms are immutable, so a set that is put aside does not change.

Nodes are numbered from 0; `Numbering` assigns numbers, and reuses those of removed nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import compress
from typing import Any, TypeAlias

from attrs import field, frozen

NodeSet: TypeAlias = Any  # an int with a bit for each node, or a frozenset of node numbers

_DIGITS = bytes(c == ord("1") for c in range(256))  # binary digits as truth values

FEW = 8  # bits that are found one by one
SMALL = 2048  # nodes up to which bits are always as good
SPARSE = 32  # bits if a set has one node in SPARSE on average; frozen sets below an 8th of that


def _bits(fan: int, names: Sequence[Any]) -> Iterable[Any]:
    if fan.bit_count() <= FEW:
        out = []
        while fan:
            number = fan.bit_length() - 1
            out.append(names[number])
            fan ^= 1 << number
        return out
    return compress(names, f"{fan:b}".encode().translate(_DIGITS)[::-1])


@frozen
class Form:
    """One form of sets: its empty set, singletons, size, and nodes by name."""

    name: str
    empty: NodeSet
    one: Callable[[int], NodeSet]
    size: Callable[[NodeSet], int]
    members: Callable[[NodeSet, Sequence[Any]], Iterable[Any]]
    of: Callable[[Iterable[int]], NodeSet]


BITS = Form("bits", 0, (1).__lshift__, int.bit_count, _bits, lambda numbers: sum(1 << n for n in numbers))
SETS = Form(
    "sets",
    frozenset(),
    lambda number: frozenset((number,)),
    len,
    lambda fan, names: map(names.__getitem__, fan),
    frozenset,
)


def fitting(now: Form | None, pairs: int, nodes: int) -> Form:
    """The form for `nodes` sets with `pairs` elements in total.

    >>> fitting(None, 5_000_000, 10_000).name, fitting(None, 20_000, 10_000).name
    ('bits', 'sets')
    """
    share = pairs * SPARSE
    if nodes <= SMALL or share >= nodes * nodes:
        return BITS
    return BITS if now is BITS and share * 8 >= nodes * nodes else SETS


def converted(fan: NodeSet, old: Form, new: Form, numbers: range) -> NodeSet:
    """A set in another form."""
    return fan if old is new else new.of(old.members(fan, numbers))


@frozen
class Numbering:
    """Names of nodes by number, and numbers by name.

    The list `names` may be kept: reusing a number makes a new list.  The name of a removed node
    stays in it until then.

    >>> numbering = Numbering()
    >>> numbering.take("a"), numbering.take("b"), numbering.drop("a"), numbering.take("c")
    (0, 1, None, 0)
    >>> numbering.names
    ['c', 'b']
    """

    _held: list[list[Any]] = field(factory=lambda: [[]], init=False)
    numbers: dict[Any, int] = field(factory=dict, init=False)
    free: list[int] = field(factory=list, init=False)

    @property
    def names(self) -> list[Any]:
        return self._held[0]

    def __len__(self) -> int:
        """The number of numbers ever assigned."""
        return len(self._held[0])

    def take(self, name: Any) -> int:
        """Assign a number to a new node: a free one, or the next."""
        if self.free:
            number = self.free.pop()
            self._held[0] = names = self._held[0].copy()
            names[number] = name
        else:
            number = len(self._held[0])
            self._held[0].append(name)
        self.numbers[name] = number
        return number

    def drop(self, name: Any) -> None:
        self.free.append(self.numbers.pop(name))


def estimated_pairs(after: Sequence[Collection[int]], samples: int = 32) -> int:
    """The approximate size of a closure, by searching from a few nodes.

    >>> estimated_pairs([[1], [2], []])
    3
    """
    nodes = len(after)
    chosen = range(0, nodes, max(1, nodes // samples))
    met = 0
    for source in chosen:
        seen = set(after[source])
        todo = list(seen)
        while todo and len(seen) < nodes:
            new = set(after[todo.pop()]) - seen
            seen |= new
            todo += new
        met += len(seen)
    return met * nodes // max(1, len(chosen))
