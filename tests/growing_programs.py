"""Programs whose recursion goes through sums, counts, lattices, or values of several orders."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from everlog.core.program import Program
from everlog.dsl.check import compile_text
from everlog.functors import bind

Rows = list[tuple[Any, ...]]
Step = list[tuple[str, tuple[Any, ...], bool]]

BASE = """.decl share(x:number, y:number, n:unsigned)  .decl arc(x:number, y:number)  .decl at(x:number, v:number)
.decl shut(x:number)
.type Bits = number
.functor both(a:Bits, b:Bits):Bits  .functor moved(a:Bits, n:number):Bits  .functor has(a:Bits, n:number):number
.lattice Bits<> { Bottom -> 0, Lub -> @both(_, _), Top -> 255 }
"""
COLUMNS = {"share": "nnw", "arc": "nn", "at": "nb", "shut": "n"}
COMPANY = "company(x) :- share(x, _, _) ; share(_, x, _).  controls(x, x) :- company(x).  "
FORMS = {
    "company control": ".decl company(x:number)  .decl r(x:number, y:number)  r(x, x) :- company(x).  "
    "company(x) :- share(x, _, _) ; share(_, x, _).  "
    "r(x, z) :- company(x), company(z), s = sum n : { r(x, y), share(y, z, n) }, s > 3.",
    "the cores that are left": ".decl r(x:number)  r(x) :- arc(x, _), d = count : { arc(x, _) }, "
    "n = count : { arc(x, y), r(y) }, d - n < 2.",
    "signed addends": ".decl r(x:number)  r(x) :- shut(x).  "
    "r(x) :- arc(x, _), s = sum v : { arc(x, y), r(y), at(y, v), v >= 0 }, s >= 2.",
    "nothing is enough": ".decl r(x:number)  r(x) :- arc(x, _), at(x, b), s = count : { arc(x, y), r(y) }, s >= b.",
    "two totals": ".decl r(x:number)  r(x) :- shut(x).  r(x) :- arc(x, _), n = count : { arc(x, y), r(y) }, "
    "m = count : { arc(y, x), r(y) }, n + m > 1.",
    "two relations": ".decl r(x:number)  .decl q(x:number)  r(x) :- shut(x).  r(x) :- q(x), !shut(x).  "
    "q(y) :- arc(_, y), n = count : { r(x), arc(x, y) }, n >= 2.  q(y) :- r(x), arc(x, y), at(y, 1).",
    "votes in a head": ".decl company(x:number)  .decl r(x:number, y:number)  "
    ".decl votes(x:number, y:number, n:unsigned)  company(x) :- share(x, _, _) ; share(_, x, _).  "
    "r(x, x) :- company(x).  votes(x, z, sum(n)) :- r(x, y), share(y, z, n).  r(x, z) :- votes(x, z, s), s > 3.",
    "several rules with heads": ".decl r(x:number)  .decl t(x:number, n:number, s:unsigned)  "
    "t(y, count(), sum(n)) :- r(x), share(x, y, n).  t(y, count(), sum(2)) :- shut(y).  r(x) :- arc(x, _), shut(x).  "
    "r(y) :- t(y, n, s), s > 2, n > 1.  r(y) :- arc(x, y), t(x, _, s), t(y, n, _), s >= 4, n >= 1.",
    "totals that are read as facts": ".decl r(x:number)  .decl t(x:number, n:number)  "
    "t(y, count()) :- r(x), arc(x, y).  r(x) :- shut(x).  r(x) :- t(x, n), at(x, b), n + 1 > b.  "
    "r(y) :- t(x, _), arc(x, y), at(y, 1).",
    "negation inside": ".decl r(x:number)  r(x) :- shut(x).  "
    "r(y) :- arc(_, y), n = count : { r(x), arc(x, y), !at(x, 1) }, n > 1.",
    "bits that flow": ".decl r(x:number, v:Bits<>)  r(x, v) :- at(x, v).  r(y, v) :- r(x, v), arc(x, y), !shut(y).",
    "bits that move": ".decl r(x:number, v:Bits<>)  r(x, v) :- at(x, v).  r(y, @moved(v, 1)) :- r(x, v), arc(x, y).",
    "own facts": ".decl r(x:number, v:Bits<>)  r(1, 2).  r(1, 4).  r(y, @both(v, w)) :- r(x, v), at(x, w), arc(x, y).",
    "tests of bits": ".decl r(x:number, v:Bits<>)  r(x, v) :- at(x, v).  "
    "r(y, w) :- r(x, v), arc(x, y), @has(v, 1) = 1, at(y, w).",
    "two lattice columns": ".decl r(v:Bits<>, x:number, w:Bits<>)  r(v, x, 1) :- at(x, v).  "
    "r(w, y, v) :- r(v, x, w), arc(x, y).",
    "not recursive": ".decl r(v:Bits<>)  r(v) :- at(_, v).",
    "beside sets": ".decl r(x:number, v:Bits<>)  .decl q(x:number)  r(x, v) :- at(x, v).  "
    "q(x) :- r(x, v), @has(v, 2) = 1.  r(y, 1) :- q(x), arc(x, y).",
}
# Maps to a least or greatest value that no one order of values settles.
MAPS = {
    "doubling": ".decl r(x:number, y:number, d:unsigned)  r(x, y, min(n)) :- share(x, y, n).  "
    "r(x, z, min(d + e)) :- r(x, y, d), r(y, z, e).",
    "with a set": ".decl r(x:number, d:number)  .decl near(x:number)  r(x, min(v)) :- at(x, v).  "
    "near(x) :- r(x, d), d < 2.  r(y, min(1)) :- near(x), arc(x, y).",
    "both ends": ".decl r(x:number, d:number)  .decl far(x:number, d:number)  r(x, min(d)) :- at(x, d).  "
    "far(y, max(0 - d)) :- r(x, d), arc(x, y).  r(y, min(0 - d)) :- far(x, d), arc(x, y).",
}
# Sums that read themselves: a relation `r.enough` tells whether they pass their tests.
SHARES = "r(x, y, sum(n)) :- share(x, y, n).  "
DIRECT = {
    "owns": f".decl r(x:number, z:number, s:unsigned)  {SHARES}"
    "r(x, z, sum(n)) :- r(x, y, s), s > 3, share(y, z, n).",
    "counts": ".decl r(x:number, n:number)  r(x, count()) :- shut(x) ; at(x, _).  "
    "r(y, count()) :- r(x, n), n > 1, arc(x, y), !shut(y).",
    "bounds of others": f".decl r(x:number, z:number, s:unsigned)  {SHARES}"
    "r(x, z, sum(n)) :- r(x, y, s), at(y, b), c = b / 2, s >= to_unsigned(c), share(y, z, n).",
    "two in one test": f".decl r(x:number, z:number, s:unsigned)  {SHARES}"
    "r(x, z, sum(n)) :- r(x, y, s), r(y, w, t), s + t > 3, share(w, z, n), n > 0.",
    "two apart": f".decl r(x:number, z:number, s:unsigned)  {SHARES}"
    "r(x, z, sum(n)) :- r(x, y, s), s > 2, r(y, w, t), t > 3, share(w, z, n).",
    "mutual": ".decl r(x:number, s:unsigned)  .decl q(x:number, n:number)  r(x, sum(n)) :- share(x, _, n).  "
    "r(x, sum(n)) :- q(y, c), c > 1, share(x, y, n).  q(x, count()) :- r(y, s), u = s + 1, u > 3, arc(x, y).",
    "never tested": f".decl r(x:number, z:number, s:unsigned)  {SHARES}"
    "r(x, z, sum(n)) :- r(x, _, _), r(_, x, s), (s > 2 ; shut(x)), share(x, z, n).",
    "several columns": ".decl r(x:number, n:number, s:unsigned)  r(x, count(), sum(n)) :- share(x, _, n).  "
    "r(y, count(), sum(n)) :- r(x, c, s), c > 1, s > 2, share(x, y, n).",
}
VALUES = {"n": st.integers(0, 4), "w": st.integers(0, 4), "b": st.integers(0, 7)}


def bits(a: int, n: int) -> int:
    return (a << n) & 255


@lru_cache(maxsize=64)
def program_of(text: str) -> Program:
    functions = {"both": lambda a, b: a | b, "moved": bits, "has": lambda a, n: a >> n & 1}
    return bind(compile_text(BASE + text), functions)


@st.composite
def histories(draw: st.DrawFn, text: str, steps: int = 8) -> tuple[dict[str, Rows], list[Step]]:
    names = [name for name in COLUMNS if f"{name}(" in text]
    row = {name: st.tuples(*(VALUES[kind] for kind in COLUMNS[name])) for name in names}
    inputs = {name: draw(st.lists(row[name], max_size=9, unique=True)) for name in names}
    change = st.sampled_from(names).flatmap(lambda n: st.tuples(st.just(n), row[n], st.booleans()))
    there = [(n, r, False) for n, rows in inputs.items() for r in rows]
    known = st.sampled_from(there) if there else change
    return inputs, draw(st.lists(st.lists(change | known, min_size=1, max_size=3), max_size=steps))
