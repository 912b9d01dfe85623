"""Public analyses as programs, each with facts from a seed: what `bench/native.py` runs.

Sizes are such that Soufflé's interpreter takes seconds; `small` ones end in a moment.  As a command
it writes the program and the facts of one of them, or prints the digest of a folder:

    python -P bench/_analyses.py names
    python -P bench/_analyses.py write NAME size|small SEED FOLDER
    python -P bench/_analyses.py digest FOLDER
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parent))

from _java_points_to import JAVA, classes

from everlog.bench.workloads import borrow_check, value_flow

Rows = Iterable[tuple[object, ...]]
Made = dict[str, Rows]


class Workload(NamedTuple):
    """A program, and its facts from a source of chance and a size."""

    program: str
    facts: Callable[[random.Random, int], Made]
    size: int
    small: int


def pairs(chance: random.Random, count: int, nodes: int) -> set[tuple[int, int]]:
    return {(chance.randrange(nodes), chance.randrange(nodes)) for _ in range(count)}


EL = """
.decl p(x:number, y:number)  .decl q(x:number, r:number, y:number)
.decl u(w:number, r:number, z:number)  .decl c(y:number, w:number, z:number)
.decl s(r:number, e:number)  .decl r(y:number, u:number, e:number)
.input p, q, u, c, s, r
.output p, q
p(x, z) :- p(x, y), p(y, z).
q(x, r, z) :- p(x, y), q(y, r, z).
p(x, z) :- p(y, w), u(w, r, z), q(x, r, y).
p(x, z) :- c(y, w, z), p(x, w), p(x, y).
q(x, e, z) :- q(x, r, z), s(r, e).
q(x, e, o) :- q(x, y, z), r(y, u, e), q(z, u, o).
"""


def ontology(chance: random.Random, size: int) -> Made:
    """Classes in layers, with roles between them."""
    roles = 12

    def up(x: int) -> int:
        return max(0, x - 1 - chance.randrange(max(1, size // 40)))

    return {
        "p": {(x, up(x)) for x in range(1, size) for _ in range(1 + x % 2)},
        "q": {(chance.randrange(size), chance.randrange(roles), chance.randrange(size)) for _ in range(size)},
        "u": {(chance.randrange(size), chance.randrange(roles), chance.randrange(size)) for _ in range(size // 4)},
        "c": {(chance.randrange(size), chance.randrange(size), chance.randrange(size)) for _ in range(size // 2)},
        "s": {(r, r + 1) for r in range(0, roles - 1, 3)},
        "r": {(r, r, (r + 2) % roles) for r in range(0, roles, 6)},
    }


DYCK = """
.decl arc(x:number, y:number, c:number)  .decl d(x:number, y:number)
.input arc
.output d
.decl zero(x:number, y:number)  zero(x, y) :- arc(x, y, 0).
.decl one(x:number, y:number)  one(x, y) :- arc(x, y, 1).
d(x, y) :- zero(x, z), zero(z, y).
d(x, y) :- zero(x, z), d(z, w), zero(w, y).
d(x, y) :- one(x, z), one(z, y).
d(x, y) :- one(x, z), d(z, w), one(w, y).
d(x, y) :- d(x, z), d(z, y).
"""


def arcs(chance: random.Random, size: int) -> Made:
    return {"arc": {(*pair, chance.randrange(2)) for pair in pairs(chance, size * 5 // 2, size)}}


POINTS_TO = """
.decl new(v:symbol, h:symbol)  .decl assign(to:symbol, from:symbol)
.decl load(to:symbol, base:symbol, field:symbol)  .decl store(base:symbol, field:symbol, from:symbol)
.input new, assign, load, store
.decl points(v:symbol, h:symbol)  .decl heap(h:symbol, field:symbol, g:symbol)
.decl reach(v:symbol, field:symbol, h:symbol)
.output points, heap, reach
points(v, h) :- new(v, h).
points(v, h) :- assign(v, w), points(w, h).
heap(h, f, g) :- store(b, f, v), points(b, h), points(v, g).
points(v, g) :- load(v, b, f), points(b, h), heap(h, f, g).
reach(v, f, g) :- points(v, h), heap(h, f, g).
"""


def statements(chance: random.Random, size: int) -> Made:
    def variable() -> str:
        return f"method{chance.randrange(size // 20)}/variable{chance.randrange(20)}"

    def field() -> str:
        return f"field{chance.randrange(40)}"

    return {
        "new": {(variable(), f"object{n}") for n in range(size // 3)},
        "assign": {(variable(), variable()) for _ in range(size * 4 // 5)},
        "load": {(variable(), variable(), field()) for _ in range(size // 5)},
        "store": {(variable(), field(), variable()) for _ in range(size // 5)},
    }


JOIN = """
.decl r(a:number, b:number, c:number)  .decl s(b:number, c:number, d:number)  .decl t(a:number, b:number, d:number)
.input r, s
.output t
t(a, b, d) :- r(a, b, c), s(b, c, d).
"""


def two_tables(chance: random.Random, size: int) -> Made:
    def rows() -> Iterator[tuple[int, int, int]]:
        return ((chance.randrange(size), chance.randrange(size // 40), chance.randrange(5)) for _ in range(size))

    return {"r": set(rows()), "s": {(b, c, a) for a, b, c in rows()}}


GENERATION = """
.decl parent(x:number, y:number)  .decl same(x:number, y:number)
.input parent
.output same
same(x, y) :- parent(x, p), parent(y, p), x != y.
same(x, y) :- parent(x, p), same(p, q), parent(y, q).
"""


def family(chance: random.Random, size: int) -> Made:
    return {"parent": {(x, chance.randrange(max(0, x - size // 8), x)) for x in range(1, size) for _ in range(3)}}


REGISTERS = """
.decl flow(f:number, a:number, b:number)  .decl move(f:number, a:number, to:number, from:number)
.decl constant(f:number, a:number, reg:number, v:number)
.decl add(f:number, a:number, to:number, from:number, by:number, bits:number)
.input flow, move, constant, add
.decl defined(f:number, a:number, reg:number, kind:number)
.decl reaching(f:number, a:number, reg:number, at:number, kind:number)
.decl value(f:number, a:number, reg:number, at:number, base:number, v:number, steps:number)
.decl copied(f:number, a:number, to:number, from:number, at:number, v:number)
.decl clobbered(f:number, a:number, reg:number)
.output value, copied, reaching
defined(f, a, r, 1) :- move(f, a, r, _).
defined(f, a, r, 2) :- constant(f, a, r, _).
defined(f, a, r, 3) :- add(f, a, r, _, _, _).
clobbered(f, a, r) :- defined(f, a, r, _).
reaching(f, b, r, a, k) :- defined(f, a, r, k), flow(f, a, b).
reaching(f, b, r, at, k) :- reaching(f, a, r, at, k), flow(f, a, b), !clobbered(f, a, r).
value(f, a, r, a, 0, v, 0) :- constant(f, a, r, v).
value(f, a, to, at, from, v, n + 1) :-
    move(f, a, to, from), reaching(f, a, from, b, _), value(f, b, from, at, _, v, n), n < 4.
value(f, a, to, at, from, (v + by) band bits, n + 1) :-
    add(f, a, to, from, by, bits), reaching(f, a, from, b, _), value(f, b, from, at, _, v, n), n < 4.
copied(f, a, to, from, at, v) :- move(f, a, to, from), reaching(f, a, from, at, _), value(f, at, from, _, _, v, _).
"""


def functions(chance: random.Random, size: int) -> Made:
    made: dict[str, set[tuple[object, ...]]] = {"flow": set(), "move": set(), "constant": set(), "add": set()}
    for f in range(size):
        for a in range(60):
            made["flow"].add((f, a, a + 1))
            if chance.random() < 0.15:
                made["flow"].add((f, a, chance.randrange(60)))
            to, source = chance.randrange(12), chance.randrange(12)
            kind = chance.random()
            if kind < 0.35:
                made["move"].add((f, a, to, source))
            elif kind < 0.55:
                made["constant"].add((f, a, to, chance.randrange(1 << 16)))
            elif kind < 0.75:
                made["add"].add((f, a, to, source, chance.randrange(1, 64), (1 << 16) - 1))
    return dict(made)


CRDT = """
.decl insert(c:number, n:number, pc:number, pn:number)
.decl remove(c:number, n:number)
.input insert, remove
.decl later(pc:number, pn:number, c:number, n:number)
.decl first(pc:number, pn:number, c:number, n:number)
.decl sibling(c:number, n:number, dc:number, dn:number)
.decl later_sibling(c:number, n:number, dc:number, dn:number)
.decl later_but_one(c:number, n:number, dc:number, dn:number)
.decl next_sibling(c:number, n:number, dc:number, dn:number)
.decl has_child(c:number, n:number)  .decl has_next(c:number, n:number)
.decl next_of_ancestor(c:number, n:number, dc:number, dn:number)
.decl element(c:number, n:number, dc:number, dn:number)
.decl shown(c:number, n:number)
.decl visible(c:number, n:number, dc:number, dn:number)
.decl skipped(c:number, n:number, dc:number, dn:number)
.output element, visible
has_child(pc, pn) :- insert(_, _, pc, pn).
later(pc, pn, c, n) :- insert(c, n, pc, pn), insert(dc, _, pc, pn), dc > c.
later(pc, pn, c, n) :- insert(c, n, pc, pn), insert(c, dn, pc, pn), dn > n.
first(pc, pn, c, n) :- insert(c, n, pc, pn), !later(pc, pn, c, n).
sibling(c, n, dc, dn) :- insert(c, n, pc, pn), insert(dc, dn, pc, pn).
later_sibling(c, n, dc, dn) :- sibling(c, n, dc, dn), c > dc.
later_sibling(c, n, c, dn) :- sibling(c, n, c, dn), n > dn.
later_but_one(c, n, ec, en) :- later_sibling(c, n, dc, dn), later_sibling(dc, dn, ec, en).
next_sibling(c, n, dc, dn) :- later_sibling(c, n, dc, dn), !later_but_one(c, n, dc, dn).
has_next(c, n) :- later_sibling(c, n, _, _).
next_of_ancestor(c, n, dc, dn) :- next_sibling(c, n, dc, dn).
next_of_ancestor(c, n, dc, dn) :- insert(c, n, pc, pn), !has_next(c, n), next_of_ancestor(pc, pn, dc, dn).
element(c, n, dc, dn) :- first(c, n, dc, dn).
element(c, n, dc, dn) :- insert(c, n, _, _), !has_child(c, n), next_of_ancestor(c, n, dc, dn).
shown(c, n) :- insert(c, n, _, _), !remove(c, n).
skipped(c, n, dc, dn) :- element(c, n, dc, dn).
skipped(c, n, ec, en) :- element(c, n, dc, dn), !shown(dc, dn), skipped(dc, dn, ec, en).
visible(c, n, dc, dn) :- shown(c, n), skipped(c, n, dc, dn), shown(dc, dn).
visible(0, 0, dc, dn) :- skipped(0, 0, dc, dn), shown(dc, dn).
"""


def edits(chance: random.Random, size: int) -> Made:
    """Two authors who insert mostly behind what they wrote last, and remove a little."""
    at = [(0, 0), (0, 0)]
    all_of = [(0, 0)]
    insert: set[tuple[object, ...]] = set()
    for count in range(1, size + 1):
        author = chance.randrange(2)
        parent = chance.choice(all_of[-60:]) if chance.random() < 0.15 else at[author]
        at[author] = (count, author + 1)
        all_of.append(at[author])
        insert.add((*at[author], *parent))
    return {"insert": insert, "remove": {place for place in all_of[1:] if chance.random() < 0.1}}


REACH = """
.decl edge(x:number, y:number)  .decl source(x:number)  .decl reached(x:number)
.input edge, source
.output reached
reached(x) :- source(x).
reached(y) :- reached(x), edge(x, y).
"""


def network(chance: random.Random, size: int) -> Made:
    return {"edge": pairs(chance, size, size // 3), "source": {(chance.randrange(size // 3),) for _ in range(10)}}


def of_seed(make: Callable[[int], Made]) -> Callable[[random.Random, int], Made]:
    """Facts of a workload that has a seed of its own."""
    return lambda _, size: make(size)


WORKLOADS = {
    "el": Workload(EL, ontology, 400, 60),
    "dyck": Workload(DYCK, arcs, 600, 30),
    "registers": Workload(REGISTERS, functions, 1_600, 2),
    "points_to": Workload(POINTS_TO, statements, 150_000, 200),
    "java": Workload(JAVA, classes, 120, 2),
    "join": Workload(JOIN, two_tables, 800_000, 400),
    "crdt": Workload(CRDT, edits, 200_000, 300),
    "borrow_check": Workload(borrow_check.PROGRAM, of_seed(borrow_check.functions), 16_000, 4),
    "value_flow": Workload(value_flow.PROGRAM, of_seed(value_flow.statements), 60_000, 48),
    "generation": Workload(GENERATION, family, 2_000, 40),
    "reach": Workload(REACH, network, 1_000_000, 300),
}


def write(name: str, size: int, seed: str, folder: Path) -> None:
    (folder / f"{name}.dl").write_text(WORKLOADS[name].program)
    for relation, rows in WORKLOADS[name].facts(random.Random(f"{name} {seed}"), size).items():
        lines = sorted("\t".join(map(str, row)) for row in rows)
        (folder / f"{relation}.facts").write_text("".join(f"{line}\n" for line in lines))


def digest(folder: Path) -> str:
    """A digest of all files, whatever the order of their lines."""
    found = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        found.update(b"".join(sorted(file.read_bytes().splitlines(keepends=True))))
    return found.hexdigest()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["names"]:
            print(*WORKLOADS)
        case ["write", name, "size" | "small" as size, seed, folder]:
            write(name, getattr(WORKLOADS[name], size), seed, Path(folder))
        case ["digest", folder]:
            print(digest(Path(folder)))
        case _:
            sys.exit(__doc__)
