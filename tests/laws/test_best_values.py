"""Aggregates in heads, through recursion and without: every executor equals the reference."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from living import examples, follows, on_a_machine, program_of

from everlog.core.engine import Engine
from everlog.core.engine.planning.plan import BEST
from everlog.core.evaluate import reference, seminaive
from everlog.core.program.executor import Update
from everlog.dsl.check import compile_text

Rows = list[tuple[int, ...]]
Step = list[tuple[str, tuple[int, ...], bool]]

BASE = """.decl arc(x:number, y:number, w:number)  .decl at(x:number, d:number)  .decl shut(x:number)
"""
ARITIES = {"arc": 3, "at": 2, "shut": 1}

# Kept in the order of values.  `best` is the map.
KEPT = {
    "shortest": ".decl best(x:number, d:number)  best(x, min(d)) :- at(x, d).  "
    "best(y, min(d + w)) :- best(x, d), arc(x, y, w).",
    "widest": ".decl best(x:number, d:number)  best(x, max(d)) :- at(x, d).  "
    "best(y, max(min(d, w))) :- best(x, d), arc(x, y, w).",
    "labels": ".decl best(x:number, l:number)  best(x, min(x)) :- arc(x, _, _) ; arc(_, x, _).  "
    "best(y, min(l)) :- best(x, l), (arc(x, y, _) ; arc(y, x, _)).",
    "arrivals": ".decl best(x:number, t:number)  best(x, min(t)) :- at(x, t).  "
    "best(y, min(t + w)) :- best(x, s), arc(x, y, w), at(y, t), s <= t.",
    "shut": ".decl best(x:number, d:number)  best(x, min(d)) :- at(x, d).  "
    "best(y, min(d + w)) :- best(x, d), arc(x, y, w), !shut(y).",
    "own facts": ".decl best(x:number, d:number)  best(1, 0).  best(y, min(d + w)) :- best(x, d), arc(x, y, w).",
    "computed keys": ".decl best(x:number, d:number)  best(x, min(d)) :- at(x, d).  "
    "best(x + 1, min(d + 1)) :- best(x, d), x < 4, arc(x, _, _).",
    "pairs": ".decl best(d:number, x:number, y:number)  best(min(w), x, y) :- arc(x, y, w).  "
    "best(min(d + w), x, z) :- best(d, x, y), arc(y, z, w).",
    "two maps": ".decl best(x:number, d:number)  .decl other(d:number, x:number)  best(x, min(d)) :- at(x, d).  "
    "other(min(d + w), y) :- best(x, d), arc(x, y, w).  best(y, min(d)) :- other(d, x), arc(x, y, _), !shut(x).",
    "subsumed": ".decl best(x:number, d:number)  best(x, d) :- at(x, d).  "
    "best(y, d + w) :- best(x, d), arc(x, y, w), d < 9.  best(x, d) <= best(x, e) :- e < d.",
    "counted out": ".decl best(x:number, d:number)  best(x, min(d)) :- at(x, d).  "
    "best(y, min(d + n)) :- best(x, d), arc(x, y, _), n = count : { arc(y, _, _) }.",
    "no key": ".decl best(d:number)  best(min(d)) :- at(_, d).   best(min(d + w)) :- best(d), arc(_, _, w).",
    "undone": ".decl best(x:number, d:number)  best(x, min(d)) :- at(x, d).  "
    "best(y, min(d + w)) :- best(x, d), arc(x, y, w).  .decl part(x:number, q:number)  part(x, 12 / d) :- best(x, d).",
    "several rules": ".decl best(x:number, d:number)  best(x, min(d)) :- at(x, d).  best(x, min(w)) :- arc(x, _, w).",
    "downhill": ".decl best(x:number, d:number)  best(x, min(d)) :- at(x, d).  "
    "best(y, min(d + w - 3)) :- best(x, d), arc(x, y, w), x < y.",
    "floats": ".decl best(x:number, d:float)  best(x, max(to_float(d) / 3)) :- at(x, d).  "
    "best(y, max(min(d, to_float(w) * 0.7))) :- best(x, d), arc(x, y, w).",
    "unsigned": ".decl best(d:unsigned, x:number)  best(max(to_unsigned(d)), x) :- at(x, d).  "
    "best(max(min(d, to_unsigned(w))), y) :- best(d, x), arc(x, y, w), d > 1.",
    "symbols": ".decl best(x:number, s:symbol)  best(x, min(to_string(d))) :- at(x, d).  "
    "best(y, min(s)) :- best(x, s), arc(x, y, _).",
    "constant keys": ".decl best(x:number, d:number)  best(x, min(d)) :- at(x, d).  "
    "best(2, min(d + w)) :- best(1, d), arc(_, _, w).  best(x, min(d)) :- best(2, d), at(x, _).",
    "products": ".decl best(x:number, d:number)  best(x, max(d)) :- at(x, d).  "
    "best(y, max(d / 2 * w)) :- best(x, d), arc(x, y, w), w >= 0, w <= 2.",
}
# Evaluated in rounds; what depended on a loss is derived again.
COMPUTED = {
    "doubling": ".decl best(x:number, y:number, d:number)  best(x, y, min(w)) :- arc(x, y, w).  "
    "best(x, z, min(d + e)) :- best(x, y, d), best(y, z, e).",
    "with a set": ".decl best(x:number, d:number)  .decl near(x:number)  best(x, min(d)) :- at(x, d).  "
    "near(x) :- best(x, d), d < 4.  best(y, min(w)) :- near(x), arc(x, y, w).",
    "both ends": ".decl best(x:number, d:number)  .decl far(x:number, d:number)  best(x, min(d)) :- at(x, d).  "
    "far(y, max(0 - d)) :- best(x, d), arc(x, y, _).  best(y, min(0 - d)) :- far(x, d), arc(x, y, _).",
}
# Not recursive.
PLAIN = {
    "all five": ".decl t(x:number, n:number, s:number, a:number, z:number, m:float)  "
    "t(x, count(), sum(w), min(w), max(w), mean(w)) :- arc(x, _, w).",
    "joined": ".decl t(x:number, s:number)  t(x, sum(w * d)) :- arc(x, y, w), at(y, d), !shut(y).",
    "two sums": ".decl t(x:number, n:number, s:number, m:float)  "
    "t(x, count(), sum(w), mean(w)) :- arc(x, _, w).  t(x, count(), sum(d), mean(d)) :- at(x, d).",
    "of all": ".decl t(n:number)  t(count()) :- arc(_, _, w), w > 1.",
    "computed groups": ".decl t(x:number, y:number, s:number)  t(x % 2, 7, sum(w)) :- arc(x, _, w).",
    "twice": ".decl t(x:number, y:number, n:number)  t(x, x, count()) :- arc(x, _, _) ; at(x, _).",
}


@st.composite
def histories(draw: st.DrawFn, text: str, steps: int = 8) -> tuple[dict[str, Rows], list[Step]]:
    """Facts to begin with, and steps of inserts and deletes."""
    value = st.integers(0, 4)
    names = [name for name in ARITIES if f"{name}(" in text]
    row = {name: st.tuples(*[value] * ARITIES[name]) for name in names}
    inputs = {name: draw(st.lists(row[name], max_size=8, unique=True)) for name in names}
    change = st.sampled_from(names).flatmap(lambda n: st.tuples(st.just(n), row[n], st.booleans()))
    known = st.sampled_from(
        [(n, r, False) for n, rows in inputs.items() for r in rows] or [(names[0], (0,) * ARITIES[names[0]], True)]
    )
    stream = draw(st.lists(st.lists(change | known, min_size=1, max_size=3), max_size=steps))
    return inputs, stream


@pytest.mark.parametrize("name", KEPT | COMPUTED | PLAIN)
@examples(25)
@given(st.data())
def test_every_executor_follows(name: str, data: st.DataObject) -> None:
    rules = (KEPT | COMPUTED | PLAIN)[name]
    program = program_of(BASE + rules)
    inputs, stream = data.draw(histories(rules))
    with on_a_machine(data):
        follows(program, inputs, stream, ["follow", "mixed", "bulk", "ranked_python"])


@pytest.mark.parametrize("name", sorted((KEPT | COMPUTED | PLAIN).keys() - {"undone"}))
@examples(25)
@given(st.data())
def test_whole_evaluation_equals_the_reference(name: str, data: st.DataObject) -> None:
    rules = (KEPT | COMPUTED | PLAIN)[name]
    program = program_of(BASE + rules)
    inputs, _ = data.draw(histories(rules, steps=0))
    with on_a_machine(data):
        evaluation = seminaive.evaluate(program, inputs)
    expected = reference.evaluate(program, inputs)
    assert {name: evaluation.relation(name) for name in program.relations} == expected


@pytest.mark.parametrize("name", KEPT | COMPUTED)
def test_which_units_are_kept(name: str) -> None:
    engine = Engine(compile_text(BASE + (KEPT | COMPUTED)[name]))
    assert (engine.strategy_of("best")[0] == BEST) is (name in KEPT)


# ── against other algorithms ─────────────────────────────────────────────────────────────────


def distances(arcs: set[tuple[int, ...]], sources: set[tuple[int, ...]]) -> dict[int, int]:
    """Bellman and Ford."""
    found: dict[int, int] = {}
    offers = list(sources)
    while offers:
        offers = [(x, d) for x, d in offers if x not in found or d < found[x]]
        for x, d in offers:
            found[x] = min(d, found.get(x, d))
        offers = [(y, found[x] + w) for x, y, w in arcs if x in found]
        offers = [(y, d) for y, d in offers if y not in found or d < found[y]]
    return found


def labels(arcs: set[tuple[int, ...]], _: set[tuple[int, ...]]) -> dict[int, int]:
    """Union and find."""
    parent = {x: x for arc in arcs for x in arc[:2]}

    def find(x: int) -> int:
        while parent[x] != x:
            x = parent[x]
        return x

    for x, y, _w in arcs:
        one, other = sorted((find(x), find(y)))
        parent[other] = one
    return {x: find(x) for x in parent}


@pytest.mark.parametrize(("name", "oracle"), [("shortest", distances), ("labels", labels)])
@examples(40)
@given(st.data())
def test_live_maps_equal_the_textbook(name: str, oracle: Any, data: st.DataObject) -> None:
    inputs, stream = data.draw(histories(KEPT[name], steps=20))
    engine = Engine(program_of(BASE + KEPT[name]), large=10**9)
    facts = {relation: set(inputs.get(relation, ())) for relation in ("arc", "at")}
    engine.insert(inputs)
    for step in [[], *stream]:
        engine.apply([Update(*change) for change in step])
        for relation, row, insert in step:
            (facts[relation].add if insert else facts[relation].discard)(row)
        assert dict(engine.view("best")) == oracle(facts["arc"], facts["at"])
        engine.check()


@examples(40)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=12, unique=True))
@example([(0, 0, 2), (0, 1, 2)])
def test_each_match_of_a_body_counts_once(rows: Rows) -> None:
    """Also where `_` and equal values hide which facts matched."""
    program = compile_text(
        BASE + ".decl t(x:number, n:number, s:number)  t(x, count(), sum(w)) :- arc(x, _, w), arc(_, _, _)."
    )
    number, total = Counter[int](), Counter[int]()
    for x, _, w in rows:
        number[x] += len(rows)
        total[x] += w * len(rows)
    expected = {(x, number[x], total[x]) for x in number}
    assert reference.evaluate(program, {"arc": rows})["t"] == expected
