"""Aggregates over intervals of an order: every executor equals the reference, under any stream."""

from __future__ import annotations

import math
import random
from bisect import bisect_left, insort
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from living import examples, follows, on_a_machine, program_of

from everlog.core.engine.planning.plan import GROUPS, ORDERED, make_plan
from everlog.core.evaluate import reference, seminaive
from everlog.core.program import Kind
from everlog.core.storage.ordered_totals import OrderedBlocks, OrderedGroup
from everlog.dsl.check import compile_text

Rows = list[tuple[Any, ...]]
Step = list[tuple[str, tuple[Any, ...], bool]]

BASE = """.decl o(c:number, t:number, v:number)  .decl w(a:number, b:number)  .decl q(t:number)
.decl f(t:float, v:float)  .decl s(n:symbol, v:unsigned)
"""
COLUMNS = {"o": "nnn", "w": "nn", "q": "n", "f": "ff", "s": "su"}
HEAD = ".decl r(x:number, y:number, n:number)  r(c, t, n) :- o(c, t, _), "
FORMS = {
    "rank": HEAD + "n = count : { o(c, u, _), u > t }.",
    "rank in all": HEAD + "n = count : { o(_, u, _), u > t }.",
    "first three": HEAD + "n = count : { o(c, u, _), t < u }, n < 3.",
    "the third": HEAD + "n = count : { o(c, u, _), t <= u }, n = 3.",
    "few": HEAD + "n = count : { o(c, u, _), u < t }, n + 1 <= 2.",
    "previous": HEAD + "n = max u : { o(c, u, _), u < t }.",
    "next": HEAD + "n = min u : { o(c, u, _), u > t }.",
    "the best so far": HEAD + "n = max v : { o(c, u, v), u <= t }.",
    "the best to come": HEAD + "n = min v : { o(c, u, v), t < u }.",
    "running": HEAD + "n = sum v : { o(c, u, v), u <= t }.",
    "rolling": HEAD + "n = sum v : { o(c, u, v), u <= t, u > t - 3 }.",
    "the best of a window": HEAD + "n = max v : { o(c, u, v), u <= t + 1, u >= t - 1 }.",
    "after a sum": HEAD + "n = sum v - 2 : { o(c, z, v), u = z + v, u < t }.",
    "computed places": HEAD + "n = count : { o(c, u, v), u + v < t }.",
    "selected": HEAD + "n = sum v : { o(c, u, v), u >= t, v != 2, !q(u) }.",
    "joined": HEAD + "n = sum v : { o(c, u, v), w(u, b), b > t }.",
    "two orders": HEAD + "m = count : { o(c, u, _), u > t }, k = count : { o(d, t, _), d < c }, n = m + k.",
    "open": ".decl r(a:number, n:number)  r(a, n) :- w(a, b), n = count : { q(t), t >= a, t < b }.",
    "open best": ".decl r(a:number, n:number)  r(a, n) :- w(a, b), n = max v : { o(_, t, v), t >= a, t < b }.",
    "of a number": ".decl r(n:number)  r(n) :- q(x), x > 1, n = sum v : { o(_, t, v), t < x }.",
    "nested": ".decl r(t:number, n:number)  r(t, n) :- q(t), "
    "n = sum m : { w(a, b), m = count : { q(u), u > a }, b < t }.",
    "floats": ".decl r(t:float, x:float, y:float)  r(t, x, y) :- f(t, _), x = sum v : { f(u, v), u < t }, "
    "y = max v : { f(u, v), u < t }.",
    "mean of floats": ".decl r(t:float, x:float)  r(t, x) :- f(t, _), "
    "x = mean v : { f(u, v), u <= t, u > t - 2.0 }.",
    "symbols": ".decl r(n:symbol, m:unsigned, k:unsigned)  r(n, m, k) :- s(n, _), m = max v : { s(x, v), x < n }, "
    "k = sum v : { s(x, v), x <= n }.",
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "n": st.integers(0, 5) | st.sampled_from([-(2**63), 2**63 - 1]),
    "u": st.integers(0, 3) | st.just(2**64 - 1),
    "s": st.sampled_from(["", "a", "b", "c", "é"]),
    "f": st.sampled_from([0.0, 1.0, 2.5, -1.0, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan]),
}


@st.composite
def histories(draw: st.DrawFn, text: str, steps: int = 8) -> tuple[dict[str, Rows], list[Step]]:
    names = [name for name in COLUMNS if f"{name}(" in text]
    row = {name: st.tuples(*(VALUES[kind] for kind in COLUMNS[name])) for name in names}
    inputs = {name: draw(st.lists(row[name], max_size=8, unique_by=repr)) for name in names}
    change = st.sampled_from(names).flatmap(lambda n: st.tuples(st.just(n), row[n], st.booleans()))
    there = [(n, r, False) for n, rows in inputs.items() for r in rows]
    known = st.sampled_from(there) if there else change
    return inputs, draw(st.lists(st.lists(change | known, min_size=1, max_size=3), max_size=steps))


@pytest.mark.parametrize("name", FORMS)
@examples(6)
@given(st.data())
def test_every_executor_follows(name: str, data: st.DataObject) -> None:
    inputs, stream = data.draw(histories(FORMS[name]))
    with on_a_machine(data):
        follows(program_of(BASE + FORMS[name]), inputs, stream, ["follow", "mixed", "bulk"])


@pytest.mark.parametrize("name", FORMS)
@examples(6)
@given(st.data())
def test_whole_evaluation_equals_the_reference(name: str, data: st.DataObject) -> None:
    program = program_of(BASE + FORMS[name])
    inputs, _ = data.draw(histories(FORMS[name], steps=0))
    with on_a_machine(data):
        evaluation = seminaive.evaluate(program, inputs)
    expected = reference.evaluate(program, inputs)
    assert {n: sorted(map(repr, evaluation.relation(n))) for n in program.relations} == {
        n: sorted(map(repr, rows)) for n, rows in expected.items()
    }


@pytest.mark.parametrize("name", FORMS)
def test_they_are_kept_in_order(name: str) -> None:
    units = make_plan(compile_text(BASE + FORMS[name])).units
    kept = {planned.strategy for planned in units if planned.group is not None}
    assert ORDERED in kept


@pytest.mark.parametrize(
    "body",
    ["o(c, u, _), u != t", "o(c, u, _), u + t > 3", "o(c, u, v), u > t, v > t * t", "o(c, u, _), u > 3 / t"],
)
def test_other_bodies_are_joined(body: str) -> None:
    units = make_plan(compile_text(f"{BASE}{HEAD} n = count : {{ {body} }}.")).units
    assert {planned.strategy for planned in units if planned.group is not None} == {GROUPS}


@examples(15)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 9))), st.randoms(use_true_random=False))
def test_blocks_keep_totals_of_intervals(given_items: Rows, chance: random.Random) -> None:
    """Against a list of all places, with blocks that split and vanish."""
    blocks, known, order = OrderedBlocks(max), dict[int, int](), list[int]()
    items = [*given_items, *[(chance.randrange(400), chance.randrange(9)) for _ in range(400)]]
    for place, weight in items:
        if place in known and chance.random() < 0.6:
            blocks.drop(place)
            del known[place], order[bisect_left(order, place)]
        else:
            if place not in known:
                insort(order, place)
            known[place] = weight
            blocks.put(place, weight)
        low, high = sorted((chance.randrange(400), chance.randrange(400)))
        inside = [known[x] for x in order if low < x <= high]
        assert blocks.total(low, True, high, False) == max(inside, default=None)
        assert blocks.total(None, True, high, True) == max((known[x] for x in order if x < high), default=None)
    blocks.check()


@examples(15)
@given(st.lists(st.tuples(st.integers(0, 3), VALUES["f"], st.integers(1, 3)), max_size=12))
def test_sums_of_floats_are_exact_in_any_order(items: Rows) -> None:
    group = OrderedGroup("mean", Kind.FLOAT)
    for place, target, number in items:
        group.change({(place, target): number}, 1)
    for place, target, number in items[:-1]:
        group.change({(place, target): number}, -1)
    group.check()
    if items:
        last = items[-1][1]
        found = group.value(None, False, None, False)
        assert found == last or math.isnan(last) or (found == last / items[-1][2] * items[-1][2])
