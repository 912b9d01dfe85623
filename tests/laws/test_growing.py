"""Sums, counts and lattices through recursion: every executor equals the reference and oracles."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from living import examples, follows

from everlog.core.engine import Engine
from everlog.core.engine.planning.plan import GROWING
from everlog.core.evaluate import reference, seminaive
from everlog.core.program import Program
from everlog.core.program.executor import Update
from everlog.core.proofs.checker import verify
from everlog.core.proofs.search import why
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


@pytest.mark.parametrize("name", FORMS | MAPS | DIRECT)
@examples(8)
@given(st.data())
def test_every_executor_follows(name: str, data: st.DataObject) -> None:
    text = (FORMS | MAPS | DIRECT)[name]
    inputs, stream = data.draw(histories(text))
    follows(program_of(text), inputs, stream, ["follow", "mixed", "bulk"])


@pytest.mark.parametrize("name", FORMS | MAPS | DIRECT)
@examples(8)
@given(st.data())
def test_whole_evaluation_equals_the_reference(name: str, data: st.DataObject) -> None:
    text = (FORMS | MAPS | DIRECT)[name]
    program = program_of(text)
    inputs, _ = data.draw(histories(text, steps=0))
    evaluation = seminaive.evaluate(program, inputs)
    expected = reference.evaluate(program, inputs)
    assert {name: evaluation.relation(name) for name in program.relations} == expected


@pytest.mark.parametrize("name", FORMS | MAPS)
def test_which_units_are_kept(name: str) -> None:
    assert Engine(program_of((FORMS | MAPS)[name])).strategy_of("r")[0] == GROWING


@pytest.mark.parametrize("name", DIRECT)
def test_the_tests_of_sums_are_kept(name: str) -> None:
    engine = Engine(program_of(DIRECT[name]))
    tests = [relation for relation in engine.program.relations if ".enough" in relation]
    assert tests
    assert all(engine.strategy_of(relation)[0] == GROWING for relation in tests)


@pytest.mark.parametrize("name", FORMS | MAPS | DIRECT)
@examples(3)
@given(st.data())
def test_each_fact_has_a_proof(name: str, data: st.DataObject) -> None:
    text = (FORMS | MAPS | DIRECT)[name]
    inputs, stream = data.draw(histories(text))
    engine = Engine(program_of(text))
    engine.insert(inputs)
    for step in stream:
        engine.apply([Update(*change) for change in step])
    for row in engine.view("r"):
        verify(engine, why(engine, "r", row))


# ── against other algorithms ─────────────────────────────────────────────────────────────────


def controlled(shares: set[tuple[int, int, int]], most: int) -> set[tuple[int, int]]:
    """The companies that each company controls: shares of controlled ones count together."""
    companies = {c for x, y, _ in shares for c in (x, y)}
    found = set()
    for x in companies:
        own = {x}
        while True:
            held = Counter[int]()
            for y, z, n in shares:
                held[z] += n * (y in own)
            more = {z for z, n in held.items() if n > most} - own
            if not more:
                break
            own |= more
        found |= {(x, z) for z in own}
    return found


def owned(shares: set[tuple[int, int, int]], most: int) -> set[tuple[int, int, int]]:
    """What each company owns: directly, or by those of which it has enough."""
    held: dict[tuple[int, int], int] = {}
    while True:
        found = Counter[tuple[int, int]]()
        for y, z, n in shares:
            found[y, z] += n
            for (x, through), s in held.items():
                found[x, z] += n * (through == y and s > most)
        reached = {(y, z) for y, z, _ in shares}
        reached |= {(x, z) for (x, y), s in held.items() if s > most for w, z, _ in shares if w == y}
        if (new := {pair: found[pair] for pair in reached}) == held:
            return {(*pair, n) for pair, n in held.items()}
        held = new


def in_no_core(arcs: set[tuple[int, int]]) -> set[int]:
    """The nodes that are peeled off: fewer than two of their arcs lead to nodes that stay."""
    left = {x for x, _ in arcs}
    gone = set[int]()
    while True:
        weak = {x for x in left - gone if sum(1 for a, y in arcs if a == x and y not in gone) < 2}
        if not weak:
            return gone
        gone |= weak


@pytest.mark.parametrize(
    ("name", "relation", "oracle"),
    [
        ("owns", "share", lambda facts: owned(facts, 3)),
        ("company control", "share", lambda facts: controlled(facts, 3)),
        ("votes in a head", "share", lambda facts: controlled(facts, 3)),
        ("the cores that are left", "arc", lambda facts: {(x,) for x in in_no_core(facts)}),
    ],
)
@examples(25)
@given(st.data())
def test_live_totals_equal_the_textbook(name: str, relation: str, oracle: Any, data: st.DataObject) -> None:
    text = (FORMS | DIRECT)[name]
    inputs, stream = data.draw(histories(text, steps=15))
    engine, facts = Engine(program_of(text), large=10**9), set(inputs[relation])
    engine.insert(inputs)
    for step in [[], *stream]:
        engine.apply([Update(*change) for change in step])
        for _, row, insert in step:
            (facts.add if insert else facts.discard)(row)
        assert set(engine.view("r")) == oracle(facts)
        engine.check()
