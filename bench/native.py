"""Whole programs on the compiled machine, in Python, and in Soufflé's interpreter.

Each program derives its relations once, from generated fact files, as a command of its own.  CPU
time and peak memory are those of the whole command, with files read and written.  The relations
that the sides write are compared.  Soufflé takes part if a `souffle` is on the path.

    python -P bench/native.py [--small] [--only NAME] [--seed 7]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

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


# ── programs ─────────────────────────────────────────────────────────────────────────────────

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


WORKLOADS = {
    "el": Workload(EL, ontology, 400, 60),
    "dyck": Workload(DYCK, arcs, 600, 30),
    "points_to": Workload(POINTS_TO, statements, 9_000, 200),
    "join": Workload(JOIN, two_tables, 270_000, 400),
    "generation": Workload(GENERATION, family, 2_000, 40),
    "registers": Workload(REGISTERS, functions, 400, 2),
}


# ── sides ────────────────────────────────────────────────────────────────────────────────────


class Run(NamedTuple):
    seconds: float
    megabytes: float
    digest: str


def everlog(program: Path, out: Path) -> list[str]:
    return [sys.executable, "-P", "-m", "everlog", "run", str(program), "-F", str(program.parent), "-D", str(out)]


def souffle(program: Path, out: Path) -> list[str]:
    return ["souffle", "-w", "-j1", str(program), "-F", str(program.parent), "-D", str(out)]


def run(command: list[str], out: Path, environment: dict[str, str]) -> Run:
    out.mkdir()
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}")
    digest = hashlib.sha256()
    for file in sorted(out.iterdir()):
        digest.update(b"".join(sorted(file.read_bytes().splitlines(keepends=True))))
    shutil.rmtree(out)
    return Run(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, digest.hexdigest())


def measured(name: str, workload: Workload, size: int, seed: int, folder: Path) -> dict[str, Run]:
    program = folder / f"{name}.dl"
    program.write_text(workload.program)
    for relation, rows in workload.facts(random.Random(f"{name} {seed}"), size).items():
        lines = sorted("\t".join(map(str, row)) for row in rows)
        (folder / f"{relation}.facts").write_text("".join(f"{line}\n" for line in lines))
    out = folder / "out"
    found = {
        "native": run(everlog(program, out), out, {"EVERLOG_PURE": ""}),
        "python": run(everlog(program, out), out, {"EVERLOG_PURE": "1"}),
    }
    if shutil.which("souffle"):
        found["souffle"] = run(souffle(program, out), out, {})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="sizes at which everything ends in a moment")
    parser.add_argument("--only", metavar="NAME", choices=WORKLOADS, help="one program")
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    for name, workload in WORKLOADS.items():
        if asked.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                size = workload.small if asked.small else workload.size
                found = measured(name, workload, size, asked.seed, Path(folder))
            native = found["native"]
            for side, one in found.items():
                same = "" if one.digest == native.digest else "   OTHER RELATIONS"
                times = f"{one.seconds / native.seconds:5.2f} x {one.megabytes / native.megabytes:5.2f} x"
                print(
                    f"{name:<12} {side:<8} {one.seconds:7.2f} s {one.megabytes:7.0f} MB   {times}{same}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
