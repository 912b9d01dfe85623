"""One random input fact deleted, then inserted, in recursion that carries no column along.

Same generation, Andersen's points-to analysis, matching brackets on the paths of a graph (Dyck),
subsumption in the description logic EL, and the closure by `path(x, y), path(y, z)`.

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

from _common import options, random_graph
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

DYCK = """.decl open(x:number, y:number, k:number)
.decl close(x:number, y:number, k:number)
.decl dyck(x:number, y:number)
dyck(x, y) :- open(x, z, k), close(z, y, k).
dyck(x, y) :- open(x, z, k), dyck(z, w), close(w, y, k).
dyck(x, z) :- dyck(x, y), dyck(y, z).
"""

EL = """.decl concept(x:number)
.decl sub(c:number, d:number)                      // c ⊑ d
.decl both(c:number, d:number, e:number)           // c ⊓ d ⊑ e
.decl some(c:number, r:number, d:number)           // c ⊑ ∃r.d
.decl of_some(r:number, c:number, d:number)        // ∃r.c ⊑ d
.decl below(x:number, c:number)
.decl linked(r:number, x:number, y:number)
below(x, x) :- concept(x).
below(x, d) :- below(x, c), sub(c, d).
below(x, e) :- below(x, c), below(x, d), both(c, d, e).
linked(r, x, d) :- below(x, c), some(c, r, d).
below(x, d) :- linked(r, x, y), below(y, c), of_some(r, c, d).
"""

NONLINEAR = """.decl edge(x:number, y:number)
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
"""

Rows = list[tuple[int, int]]
Given = dict[str, list[tuple[int, ...]]]

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


def brackets(nodes: int) -> Given:
    """Random edges that open or close one of three kinds of brackets."""
    draw = random.Random(7)
    out: dict[str, set[tuple[int, ...]]] = {"open": set(), "close": set()}
    for _ in range(2 * nodes):
        edge = draw.randrange(nodes), draw.randrange(nodes), draw.randrange(3)
        out[draw.choice(("open", "close"))].add(edge)
    return {name: sorted(rows) for name, rows in out.items()}


def ontology(concepts: int) -> Given:
    """Concepts below two earlier ones each, with random axioms of the other kinds."""
    draw = random.Random(8).randrange
    some = range(concepts // 2)
    return {
        "concept": [(c,) for c in range(concepts)],
        "sub": sorted({(c, draw(c)) for c in range(1, concepts) for _ in range(2)}),
        "both": sorted({(draw(concepts), draw(concepts), draw(concepts)) for _ in some}),
        "some": sorted({(draw(concepts), draw(3), draw(concepts)) for _ in range(concepts)}),
        "of_some": sorted({(draw(3), draw(concepts), draw(concepts)) for _ in some}),
    }


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
        ("Dyck", DYCK, brackets(size // 10), None),
        ("EL", EL, ontology(size // 16), None),
        ("closure, not linear", NONLINEAR, {"edge": random_graph(size // 10, size // 5)}, None),
    ]
    for title, text, base, bar in cases:
        compare(f"{title} {size}", text, base, asked.facts, asked.rounds, bar, asked.small)


if __name__ == "__main__":
    main()
