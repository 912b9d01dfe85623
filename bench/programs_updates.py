"""One random fact deleted, then inserted: same generation and points-to.

The data is generated, with fixed seeds, for 5 000 people and for a C program of 5 000 variables.
bench/_updates.py measures updates against recomputation.

`family`: twenty generations; couples marry within their generation, some of them strangers without
known parents; a child has both parents of a couple.  `tree`: a hierarchy in which each newcomer
reports to an earlier member, so that one deletion cuts off a whole branch.

`points_to` (Andersen's analysis): functions of about ten variables.  Of the statements 20 % are `v
= &o`, 50 % `v = w`, 18 % `v = *p`, 12 % `*p = v`: about what Hardekopf and Lin count in C programs
("The ant and the grasshopper", PLDI 2007).  Most stay within a function; copies between functions
pass arguments and results, and some functions are called from many places; a few variables are
global.

    python -P bench/programs_updates.py [--small] [--facts 100] [--rounds 5] [--size 5000]
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import options
from _updates import compare

SAME_GENERATION = """.decl parent(child:number, parent:number)
.decl same_generation(x:number, y:number)
same_generation(x, y) :- parent(x, p), parent(y, p), x != y.
same_generation(x, y) :- parent(x, p), parent(y, q), same_generation(p, q), x != y.
"""

POINTS_TO = """.decl address_of(v:number, o:number)   // v = &o
.decl assign(v:number, w:number)       // v = w
.decl load(v:number, p:number)         // v = *p
.decl store(p:number, v:number)        // *p = v
.decl points_to(v:number, o:number)
points_to(v, o) :- address_of(v, o).
points_to(v, o) :- assign(v, w), points_to(w, o).
points_to(v, o) :- load(v, p), points_to(p, q), points_to(q, o).
points_to(q, o) :- store(p, v), points_to(p, q), points_to(v, o).
"""

Rows = list[tuple[int, int]]

WIDTH = 20  # variables of a function
FAMILIES = 12  # of types
STATEMENTS = 1.8  # per variable
SHARES = {"address_of": 0.20, "assign": 0.50, "load": 0.18, "store": 0.12}


def family(people: int, strangers: float = 0.2) -> Rows:
    """(child, parent) pairs of twenty generations."""
    draw = random.Random(3)
    generation = people // 20
    out: Rows = []
    before: list[int] = []
    for first in range(0, people, generation):
        now = list(range(first, min(first + generation, people)))
        couples = list(zip(before[::2], before[1::2], strict=False))
        for child in now if couples else []:
            if draw.random() >= strangers:
                out += [(child, parent) for parent in draw.choice(couples)]
        draw.shuffle(now)
        before = now
    return sorted(out)


def tree(people: int) -> Rows:
    draw = random.Random(4)
    return [(child, draw.randrange(child)) for child in range(1, people)]


class Source:
    """A generated program: functions of variables, each variable of a type.

    A type is a family (a struct; few are used everywhere and most in few places) and a depth: 0 is
    the thing itself, 1 a pointer to it, 2 a pointer to such a pointer.
    """

    def __init__(self, variables: int) -> None:
        self.draw = draw = random.Random(5)
        self.functions = variables // WIDTH
        self.types: list[tuple[int, int]] = []
        for _ in range(self.functions):
            families = [int(FAMILIES * draw.random() ** 2) for _ in range(2)]
            self.types += [
                (draw.choice(families), draw.choices((0, 1, 2, 3), (30, 45, 20, 5))[0]) for _ in range(WIDTH)
            ]

    def within(self, function: int) -> int:
        return function * WIDTH + self.draw.randrange(WIDTH)

    def callee(self, caller: int) -> int:
        chance = self.draw.random()
        if chance < 0.10:  # a function with many callers
            return int(self.functions / 20 * self.draw.random() ** 2)
        if chance < 0.13:  # any function: recursion, callbacks
            return self.draw.randrange(self.functions)
        return (caller + 1 + int(self.draw.expovariate(1 / 8))) % self.functions

    def pair(self, across: float, deeper: int) -> tuple[int, int]:
        """Two variables, the first `deeper` levels above the second.

        They are in different functions with probability `across`.
        """
        while True:
            here = self.draw.randrange(self.functions)
            there = self.callee(here) if self.draw.random() < across else here
            left, right = self.within(here), self.within(there)
            (family, depth), (other, other_depth) = self.types[left], self.types[right]
            cast = self.draw.random() < 0.001
            if (
                left != right
                and min(depth, other_depth + deeper) > 0
                and (cast or (family == other and depth == other_depth + deeper))
            ):
                return left, right

    def statements(self, kind: str, number: int) -> Rows:
        out: set[tuple[int, int]] = set()
        while len(out) < number:
            match kind:
                case "address_of":  # v = &o
                    out.add(self.pair(0.1, 1))
                case "assign":  # v = w, or an argument or a result
                    left, right = self.pair(0.4, 0)
                    out.add((left, right) if self.draw.random() < 0.6 else (right, left))
                case "load":  # v = *p
                    p, v = self.pair(0.0, 1)
                    out.add((v, p))
                case "store":  # *p = v
                    out.add(self.pair(0.0, 1))
        return sorted(out)


def points_to(variables: int, statements: float = STATEMENTS) -> dict[str, Rows]:
    """The statements of a program, by kind, each at most once."""
    source = Source(variables)
    return {kind: source.statements(kind, int(variables * statements * share)) for kind, share in SHARES.items()}


def main() -> None:
    asked = options(__doc__, facts=100, rounds=5, size=5000)
    size = 500 if asked.small else asked.size
    cases = [
        ("same generation, family", SAME_GENERATION, {"parent": family(size)}, 100),
        (
            "same generation, tree",
            SAME_GENERATION,
            {"parent": tree(size)},
            None,
        ),  # 3 900 changes each
        ("points-to", POINTS_TO, points_to(size), 100),
    ]
    for title, text, base, bar in cases:
        compare(f"{title} {size}", text, base, asked.facts, asked.rounds, bar, asked.small)


if __name__ == "__main__":
    main()
