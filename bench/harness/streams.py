"""Updates: benign streams (`random`, `window`) and hostile ones (`undo`, `hubs`).

    random   a fact is inserted or deleted, by a coin
    window   first in, first out: an insert deletes the oldest fact
    undo     last in, first out: facts are inserted, then deleted in reverse order, and so on
    hubs     the facts whose values have most neighbours are deleted and inserted, in random order

Streams are deterministic.  Every update changes something: it inserts an absent fact or deletes a
present one.  If a workload has no new facts to insert (`fresh`), base facts are deleted and
inserted again: then a few are missing at any time.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import islice

from everlog.bench.harness.workload import Facts, Row, Update, Workload

Fact = tuple[str, Row]

_MISSING = 2  # facts missing at a time, without fresh ones
_DEPTH = 50  # of `undo`
_HUBS = 20  # facts that `hubs` toggles


def updates_of(kind: str, workload: Workload, facts: Facts, size: int) -> Iterator[Update]:
    """An endless stream that starts from `facts`."""
    return _KINDS[kind](workload, facts, size, random.Random(f"{workload.name} {kind}"))


def make_stream(kind: str, workload: Workload, facts: Facts, size: int, number: int) -> list[Update]:
    """The first `number` updates of a stream."""
    return list(islice(updates_of(kind, workload, facts, size), number))


class _State:
    """The current facts, with random draws in constant time."""

    def __init__(self, facts: Facts) -> None:
        self.facts: list[Fact] = [(name, row) for name, rows in facts.items() for row in rows]
        self.there = set(self.facts)

    def draw(self, draw: random.Random) -> Fact:
        place = draw.randrange(len(self.facts))
        self.facts[place], self.facts[-1] = self.facts[-1], self.facts[place]
        fact = self.facts.pop()
        self.there.remove(fact)
        return fact

    def add(self, fact: Fact) -> None:
        self.facts.append(fact)
        self.there.add(fact)


def _fresh(workload: Workload, size: int, draw: random.Random, there: set[Fact]) -> Fact:
    assert workload.fresh is not None
    while (fact := workload.fresh(draw, size)) in there:
        pass
    return fact


def _random(workload: Workload, facts: Facts, size: int, draw: random.Random) -> Iterator[Update]:
    state = _State(facts)
    missing: list[Fact] = []
    while True:
        if workload.fresh is None:
            if missing and (len(missing) >= 2 * _MISSING or draw.random() < 0.5):
                fact = missing.pop(draw.randrange(len(missing)))
            else:
                missing.append(gone := state.draw(draw))
                yield *gone, False
                continue
        elif state.facts and draw.random() < 0.5:
            yield *state.draw(draw), False
            continue
        else:
            fact = _fresh(workload, size, draw, state.there)
        state.add(fact)
        yield *fact, True


def _window(workload: Workload, facts: Facts, size: int, draw: random.Random) -> Iterator[Update]:
    order = deque(_State(facts).facts)
    draw.shuffle(order)
    there = set(order)
    if workload.fresh is None:
        missing: deque[Fact] = deque()
        while True:
            missing.append(gone := order.popleft())
            yield *gone, False
            if len(missing) > _MISSING:
                order.append(back := missing.popleft())
                yield *back, True
    while True:
        fact = _fresh(workload, size, draw, there)
        order.append(fact)
        there.add(fact)
        yield *fact, True
        there.remove(oldest := order.popleft())
        yield *oldest, False


def _undo(workload: Workload, facts: Facts, size: int, draw: random.Random) -> Iterator[Update]:
    state = _State(facts)
    while True:
        done: list[Fact] = []
        for _ in range(min(_DEPTH, len(state.facts))):
            if workload.fresh is None:
                fact = state.draw(draw)
            else:
                fact = _fresh(workload, size, draw, state.there)
                state.there.add(fact)
            done.append(fact)
            yield *fact, workload.fresh is not None
        for fact in reversed(done):
            if workload.fresh is None:
                state.add(fact)
            else:
                state.there.remove(fact)
            yield *fact, workload.fresh is None


def _hubs(workload: Workload, facts: Facts, size: int, draw: random.Random) -> Iterator[Update]:
    toggled = busiest(facts) if workload.hubs is None else workload.hubs(facts)
    base = {name: set(rows) for name, rows in facts.items()}
    there = {(name, row) for name, row in toggled if row in base[name]}
    while True:
        fact = draw.choice(toggled)
        yield *fact, fact not in there
        there ^= {fact}


def busiest(facts: Facts, number: int = _HUBS) -> list[Fact]:
    """The facts whose values occur in most facts, counted per column.

    >>> busiest({"e": [(1, 2), (1, 3), (1, 4), (5, 4), (6, 7)]}, 2)
    [('e', (1, 4)), ('e', (1, 2))]
    """
    scored: list[tuple[int, Fact]] = []
    for name, rows in facts.items():
        columns = [Counter(row[column] for row in rows) for column in range(len(rows[0]) if rows else 0)]
        scored += [(-sum(c[v] for c, v in zip(columns, row, strict=True)), (name, row)) for row in rows]
    return [fact for _, fact in heapq.nsmallest(number, scored)]


_KINDS: dict[str, Callable[[Workload, Facts, int, random.Random], Iterator[Update]]] = {
    "random": _random,
    "window": _window,
    "undo": _undo,
    "hubs": _hubs,
}
