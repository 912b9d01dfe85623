"""A two-way join with a group-by count against triggers written by hand.

    q(a, c) :- r(a, b), s(b, c).
    n(a, k) :- q(a, _), k = count : { q(a, _) }.

There are 100 000 single-tuple steps.  A step inserts an absent tuple (60 %) or deletes a present
one (40 %), of r or s at random, with a fixed seed; r and s grow to 10 000 tuples each, ten per `b`.
Every step returns its changes as {relation: {row: ±1}}.  The triggers are Python dicts and sets for
this one program; ours are `Database.insert` and `delete`, and `Engine.apply` below them. All
changes are compared, in a separate pass; then the sides are timed in turn, in shares of the steps.

    python -P bench/triggers.py [--small] [--steps 100000] [--rounds 3]
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import JOIN_COUNT, at_most, fail, options, ratio_of

from everlog import Database, Update, compile_text
from everlog.core.engine import Engine

Pair = tuple[int, int]
Told = dict[str, dict[Pair, int]]
Apply = Callable[[str, Pair, bool], Told]
Step = tuple[str, Pair, bool]

SHARE = 5_000  # steps of one side before the next has its turn


class Triggers:
    """The views of the program and their triggers, written without a database."""

    def __init__(self) -> None:
        self.r: set[Pair] = set()
        self.s: set[Pair] = set()
        self.a_of: dict[int, set[int]] = {}  # b → a with r(a, b)
        self.c_of: dict[int, set[int]] = {}  # b → c with s(b, c)
        self.q: dict[Pair, int] = {}  # (a, c) → number of b
        self.n: dict[int, int] = {}  # a → number of c

    def apply(self, relation: str, row: Pair, insert: bool) -> Told:
        if relation == "r":
            return self.insert_r(row) if insert else self.delete_r(row)
        return self.insert_s(row) if insert else self.delete_s(row)

    def insert_r(self, row: Pair) -> Told:
        if row in self.r:
            return {}
        self.r.add(row)
        a, b = row
        self.a_of.setdefault(b, set()).add(a)
        told: Told = {"r": {row: 1}}
        q, new = self.q, {}
        for c in self.c_of.get(b, ()):
            pair = a, c
            if pair in q:
                q[pair] += 1
            else:
                q[pair] = 1
                new[pair] = 1
        if new:
            told["q"] = new
            told["n"] = {}
            self.count(a, len(new), told["n"])
        return told

    def delete_r(self, row: Pair) -> Told:
        if row not in self.r:
            return {}
        self.r.remove(row)
        a, b = row
        self.a_of[b].remove(a)
        told: Told = {"r": {row: -1}}
        q, gone = self.q, {}
        for c in self.c_of.get(b, ()):
            pair = a, c
            if q[pair] > 1:
                q[pair] -= 1
            else:
                del q[pair]
                gone[pair] = -1
        if gone:
            told["q"] = gone
            told["n"] = {}
            self.count(a, -len(gone), told["n"])
        return told

    def insert_s(self, row: Pair) -> Told:
        if row in self.s:
            return {}
        self.s.add(row)
        b, c = row
        self.c_of.setdefault(b, set()).add(c)
        told: Told = {"s": {row: 1}}
        q, new = self.q, {}
        counts: dict[Pair, int] = {}
        for a in self.a_of.get(b, ()):
            pair = a, c
            if pair in q:
                q[pair] += 1
            else:
                q[pair] = 1
                new[pair] = 1
                self.count(a, 1, counts)
        if new:
            told["q"] = new
            told["n"] = counts
        return told

    def delete_s(self, row: Pair) -> Told:
        if row not in self.s:
            return {}
        self.s.remove(row)
        b, c = row
        self.c_of[b].remove(c)
        told: Told = {"s": {row: -1}}
        q, gone = self.q, {}
        counts: dict[Pair, int] = {}
        for a in self.a_of.get(b, ()):
            pair = a, c
            if q[pair] > 1:
                q[pair] -= 1
            else:
                del q[pair]
                gone[pair] = -1
                self.count(a, -1, counts)
        if gone:
            told["q"] = gone
            told["n"] = counts
        return told

    def count(self, a: int, more: int, told: dict[Pair, int]) -> None:
        old = self.n.get(a, 0)
        new = old + more
        if old:
            told[a, old] = -1
        if new:
            told[a, new] = 1
            self.n[a] = new
        else:
            del self.n[a]


# ── the sides ────────────────────────────────────────────────────────────────────────────────


def triggers() -> Apply:
    return Triggers().apply


def database() -> Apply:
    """Updates of a Database that read every changed row: an unread one costs nothing."""
    opened = Database(compile_text(JOIN_COUNT))
    insert, delete = opened.insert, opened.delete

    def apply(relation: str, row: Pair, is_insert: bool) -> Told:
        changes = insert(relation, row) if is_insert else delete(relation, row)
        return {name: changes[name] for name in changes}

    return apply


def engine() -> Apply:
    step = Engine(compile_text(JOIN_COUNT)).apply

    def apply(relation: str, row: Pair, is_insert: bool) -> Told:
        changes = step([Update(relation, row, is_insert)])
        return {name: changes[name] for name in changes}

    return apply


SIDES: dict[str, Callable[[], Apply]] = {"triggers": triggers, "database": database, "engine": engine}


def make_steps(number: int) -> list[Step]:
    draw = random.Random(2)
    domain = max(10, number // 100)  # number of b; there are twice as many a and c
    present: list[tuple[str, Pair]] = []
    known: set[tuple[str, Pair]] = set()
    out: list[Step] = []
    while len(out) < number:
        if present and draw.random() < 0.4:
            place = draw.randrange(len(present))
            present[place], present[-1] = present[-1], present[place]
            relation, row = gone = present.pop()
            known.remove(gone)
            out.append((relation, row, False))
        else:
            relation = draw.choice("rs")
            outer, b = draw.randrange(2 * domain), draw.randrange(domain)
            new = relation, ((outer, b) if relation == "r" else (b, outer))
            if new not in known:
                known.add(new)
                present.append(new)
                out.append((*new, True))
    return out


def check(steps: Sequence[Step]) -> float:
    """Check that all sides agree in every step; return the changed rows per step."""
    hand, others = triggers(), {name: make() for name, make in SIDES.items() if name != "triggers"}
    told = 0
    for number, step in enumerate(steps):
        expected = hand(*step)
        told += sum(map(len, expected.values()))
        for name, apply in others.items():
            found = apply(*step)
            if found != expected:
                fail(f"step {number}, {step}: {name} gave {found}, the triggers {expected}")
    return told / len(steps)


def measure(steps: Sequence[Step]) -> dict[str, float]:
    """CPU seconds of each side for all steps."""
    sides = {name: make() for name, make in SIDES.items()}
    seconds = dict.fromkeys(sides, 0.0)
    for first in range(0, len(steps), SHARE):
        share = steps[first : first + SHARE]
        for name, apply in sides.items():
            start = time.process_time()
            for relation, row, insert in share:
                apply(relation, row, insert)
            seconds[name] += time.process_time() - start
    return seconds


def main() -> None:
    asked = options(__doc__, steps=100_000, rounds=3)
    steps = make_steps(5_000 if asked.small else asked.steps)
    told = check(steps)
    print(f"{len(steps)} steps, {told:.1f} changed rows per step, the same by all sides in each step")
    rounds = [measure(steps) for _ in range(asked.rounds)]
    for name in SIDES:
        times = ", ".join(f"{one[name] / len(steps) * 1e6:.1f}" for one in rounds)
        print(f"  {name:<10} {times} µs a step")
    hand = [one["triggers"] for one in rounds]
    for name, what in (("database", "Database.insert/delete"), ("engine", "Engine.apply")):
        ratio = ratio_of([one[name] for one in rounds], hand)
        at_most(f"join with count, {what} against triggers", ratio, 6, small=asked.small)


if __name__ == "__main__":
    main()
