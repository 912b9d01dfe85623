"""The living engine: after every step it equals the reference evaluator."""

from __future__ import annotations

import math
import os
from random import Random
from typing import Any
from unittest.mock import patch

import generators
import pytest
from attrs import evolve
from engines import EXECUTORS
from generators import CLOSURE, SHAPES, Case
from hypothesis import given
from hypothesis import strategies as st
from last_steps import assert_explained
from living import Oracle, examples, first_step, follows, plain, program_of, summed, updates, views

from everlog.core.engine import Engine
from everlog.core.evaluate import seminaive
from everlog.core.program import Row
from everlog.core.program.executor import Changes, Update
from everlog.core.program.values import NAN
from everlog.core.proofs import verify, why
from everlog.dsl.check import compile_text
from everlog.functors import bind

# ── each step ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("executor", EXECUTORS)
@examples(15)
@given(generators.cases())
def test_every_relation_follows(executor: str, case: Case) -> None:
    """Random programs of every construct and kind of value."""
    text, inputs, stream = case
    follows(program_of(text), inputs, stream, [executor])


@pytest.mark.parametrize("executor", EXECUTORS)
@examples(25)
@given(generators.dense_cases())
def test_dense_programs_follow(executor: str, case: Case) -> None:
    """Random programs in which every rule derives facts, with self-joins and negation."""
    text, inputs, stream = case
    follows(program_of(text), inputs, stream, [executor])


@examples(25)
@given(st.one_of(generators.cases(), generators.dense_cases()))
def test_both_machines_follow(case: Case) -> None:
    """Recursion in Python and on the compiled machine, side by side: the same changes."""
    text, inputs, stream = case
    with patch.dict(os.environ, EVERLOG_PURE="1"):
        python = started(text, inputs, "follow")
    compiled = started(text, inputs, "ranked")
    for step in stream:
        told = [plain(engine.apply(updates(step))) for engine in (python, compiled)]
        assert told[0] == told[1], step
        compiled.check()


@pytest.mark.parametrize("name", SHAPES)
@examples(5, share=10)
@given(st.data())
def test_each_shape_follows(name: str, data: st.DataObject) -> None:
    text, inputs, stream = data.draw(generators.shaped_cases(name, steps=12))
    follows(program_of(text), inputs, stream)


@examples(8)
@given(st.integers(0, 10**6))
def test_classes_merge_and_split(seed: int) -> None:
    """Many pairs of an equivalence come and go at once, from several rules and as base facts."""
    random = Random(seed)
    nodes = range(-1, random.choice((3, 5, 9)))
    stream = []
    for _ in range(30):
        facts = [
            (random.choice("eeq"), (random.choice(nodes), random.choice(nodes)))
            for _ in range(random.choice((1, 2, 7)))
        ]
        stream.append([(name, row, random.random() < 0.5) for name, row in facts])
    text = f"{generators.DECLARATIONS}\n{SHAPES['equivalence of several sources']}\n"
    follows(program_of(text), {"v": [(1,), (2,)], "t": [(0, 1, 0)]}, stream, ["follow"])


EXTREMES = """.decl f(g:number, x:float)  .decl u(g:number, x:unsigned)  .decl i(g:number, x:number)
    .decl floats(g:number, x:float)  floats(g, x) :- f(g, _), x = sum y : { f(g, y) }.
    floats(g, x) :- f(g, _), x = mean y : { f(g, y) }.  floats(9, x) :- x = sum y * y : { f(_, y) }.
    .decl ends(g:number, x:float)  ends(g, x) :- f(g, _), x = min y : { f(g, y) }.
    ends(g, x) :- f(g, _), x = max y : { f(g, y) }.  ends(9, x) :- x = max -y : { f(_, y) }.
    .decl unsigneds(g:number, x:unsigned)  unsigneds(g, x) :- u(g, _), x = sum y : { u(g, y) }.
    .decl numbers(g:number, x:number)  numbers(g, x) :- i(g, _), x = sum y : { i(g, y) }.
    .decl c(n:number)  c(n) :- n = count : { floats(_, x), ends(_, x) }."""
_WIDE = {
    "f": [NAN, math.inf, -math.inf, 0.0, 1.5, 1e308, -1e308, 5e-324, 0.1, 0.2, 0.3, 1e16],
    "u": [0, 1, 2**64 - 1, 2**63],
    "i": [0, 1, -1, 2**63 - 1, -(2**63)],
}
_wide_updates = st.sampled_from([(n, (g, x)) for n, values in _WIDE.items() for x in values for g in (0, 1)])


@examples(15)
@given(st.lists(st.lists(st.tuples(_wide_updates, st.booleans()), min_size=1, max_size=4), max_size=12))
def test_aggregates_of_extreme_values_follow(stream: Any) -> None:
    """Floats are summed without rounding on the way, integers wrap, NaN has its place."""
    follows(program_of(EXTREMES), {}, [[(*fact, insert) for fact, insert in step] for step in stream])


# ── what steps are made of ───────────────────────────────────────────────────────────────────

any_case = st.one_of(generators.dense_cases(steps=4, size=6), generators.shaped_cases(steps=4, size=6))


def started(text: str, inputs: Any, executor: str) -> Engine:
    engine = EXECUTORS[executor].start(program_of(text))
    engine.apply(updates(first_step(inputs)))
    return engine


@pytest.mark.parametrize("executor", ["follow", "ranked_python", "hasty", "hasty python"])
@examples(20)
@given(any_case, st.randoms(use_true_random=False))
def test_a_batch_is_its_updates_one_by_one(executor: str, case: Case, random: Random) -> None:
    """In any order, for updates of distinct facts; the changes have the same sum."""
    text, inputs, stream = case
    batch, single = started(text, inputs, executor), started(text, inputs, executor)
    for step in stream:
        told = batch.apply(updates(step))
        one_by_one = updates(step)
        if len({(u.relation, u.row) for u in one_by_one}) == len(one_by_one):
            random.shuffle(one_by_one)
        sums = summed(single.apply([update]) for update in one_by_one)
        assert views(batch) == views(single), step
        assert plain(told) == sums, step
        single.check()
        assert_explained(single)


@pytest.mark.parametrize("executor", ["follow", "mixed", "ranked_python", "hasty"])
@examples(10)
@given(any_case)
def test_what_comes_and_goes_leaves_nothing(executor: str, case: Case) -> None:
    """A step and its inverse, apart or in one: the old state, and no net change."""
    text, inputs, stream = case
    engine = started(text, inputs, executor)
    for step in stream:
        before = views(engine), {name: set(engine.given(name)) for name in engine.program.relations}
        net = {(u.relation, u.row): u.insert for u in updates(step)}
        done = [Update(*fact, insert) for fact, insert in net.items() if insert != (fact[1] in before[1][fact[0]])]
        undone = [Update(u.relation, u.row, not u.insert) for u in reversed(done)]
        assert plain(engine.apply([*done, *undone])) == {}
        told = engine.apply(done), engine.apply(undone)
        assert plain(told[0]) == {n: {r: -s for r, s in c.items()} for n, c in told[1].items()}
        assert (views(engine), {name: set(engine.given(name)) for name in engine.program.relations}) == before
        engine.check()
        assert_explained(engine)
        engine.apply(updates(step))


@pytest.mark.parametrize("executor", ["follow", "mixed"])
@examples(10)
@given(any_case)
def test_redundant_updates_report_nothing(executor: str, case: Case) -> None:
    text, inputs, stream = case
    engine = started(text, inputs, executor)
    for step in stream:
        engine.apply(updates(step))
        state = views(engine)
        for name, kinds in generators.declared(text).items():
            given_rows = list(engine.given(name))
            absent = [row for row in generators.rows_of(kinds)[:8] if row not in given_rows]
            redundant = [Update(name, row) for row in given_rows] + [Update(name, row, False) for row in absent]
            assert plain(engine.apply(redundant)) == {}
            for update in redundant[:3] + redundant[-3:]:
                assert plain(engine.apply([update])) == {}
        assert views(engine) == state
    engine.check()


# ── errors ───────────────────────────────────────────────────────────────────────────────────


def _picky(number: int) -> int:
    if number == 3:
        raise ValueError("not three")
    return number + 1


FAILING = {
    "division in a head": ".decl q(x:number, y:number)  q(x, 12 / y) :- e(x, y).",
    "division above a closure": CLOSURE + ".decl q(x:number)  q(12 / (x - y)) :- p(x, y).",
    "division in a recursion": """.decl p(a:number, b:number)
        p(x, y) :- e(x, y).  p(x, 6 / y) :- p(x, y), y < 9.  p(x, z) :- p(x, y), e(y, z).""",
    "division under a closure": """.decl q(x:number, y:number)  q(x, 4 / y) :- e(x, y).
        .decl p(a:number, b:number)  p(x, y) :- q(x, y).  p(x, z) :- p(x, y), q(y, z).
        .decl c(n:number)  c(n) :- n = count : { p(_, _) }.""",
    "division where two relations meet": """.decl q(x:number)  q(12 / (x - y)) :- v(x), e(y, _).
        .decl r(x:number)  r(x) :- v(x), !q(x).""",
    "division of an aggregate": """.decl q(x:number, n:number)
        q(x, n) :- v(x), m = count : { e(x, _) }, n = 12 / m.
        .decl r(n:number)  r(12 / (n + 1)) :- n = sum x : { v(x) }.""",
    "division in groups that nobody asks for": """.decl q(x:number, n:number)
        q(x, n) :- v(x), n = sum 12 / y : { e(x, y) }.
        q(x, n) :- v(x), n = max y : { e(x, y), 1 < max 12 / z : { e(y, z) } }.""",
    "division in an equivalence": """.decl q(x:number, y:number) eqrel  q(x, 12 / y) :- e(x, y).
        .decl p(x:number, y:number)  p(x, z) :- q(x, y), q(y, z), v(x).""",
    "a bad conversion": '.decl q(x:number)  q(to_number(cat(p, "1"))) :- s(p).  .decl r(x:number)  r(x) :- q(x), v(x).',
    "a functor that raises": """.functor picky(number):number
        .decl q(x:number, y:number)  q(x, @picky(y)) :- e(x, y).
        .decl r(x:number, y:number)  r(x, y) :- q(x, y).  r(x, z) :- r(x, y), q(y, z).""",
    "a range without end": ".decl q(x:number)  q(i) :- e(x, y), i = range(x, 5, y).",
}


@pytest.mark.parametrize("name", FAILING)
@examples(6, share=10)
@given(st.data())
def test_a_step_that_fails_leaves_no_trace_and_the_stream_goes_on(name: str, data: st.DataObject) -> None:
    """These fail in any order of the body: engines fail where the reference does."""
    rules = FAILING[name]
    program = bind(program_of(f"{generators.DECLARATIONS}\n{rules}\n"), {"picky": _picky})
    read = {name: kinds for name, kinds in generators.BASE.items() if f" {name}(" in rules}
    inputs, stream = data.draw(generators.histories(read, generators.declared(rules), steps=8))
    follows(program, {}, [*([change] for change in first_step(inputs)), *stream])


def test_an_error_of_a_state_in_between_is_none() -> None:
    """While the step is under way 1 and 1 meet; before and after it they do not."""
    text = ".decl a(x:number) .decl b(x:number) .decl q(x:number)  q(12 / (x - y)) :- a(x), b(y).  a(1).  b(2)."
    for executor in EXECUTORS:
        engine = EXECUTORS[executor].start(compile_text(text))
        step = [("b", (1,), True), ("a", (1,), False), ("a", (4,), True), ("b", (2,), False)]
        assert plain(engine.apply(updates(step)))["q"] == {(-12,): -1, (4,): 1}
        engine.check()


# ── rules that come and go ───────────────────────────────────────────────────────────────────


@examples(25)
@given(any_case, st.data())
def test_rules_come_and_go(case: Case, data: st.DataObject) -> None:
    """An engine whose rules change equals a new one, and reports the difference."""
    text, inputs, stream = case
    program = program_of(text)
    engine = EXECUTORS["follow"].start(program)
    engine.apply(updates(first_step(inputs)))
    for step in stream:
        kept = data.draw(st.sets(st.sampled_from(program.rules or [None]), max_size=len(program.rules)))
        changed = evolve(program, rules=tuple(rule for rule in program.rules if rule in kept))
        before = views(engine)
        given_facts = {name: set(engine.given(name)) for name in program.relations}
        told = [engine.change_program(changed)]
        assert {name: set(engine.given(name)) for name in program.relations} == given_facts
        oracle = Oracle(evolve(changed, facts={name: tuple(rows) for name, rows in given_facts.items()}))
        assert views(engine) == oracle.state
        assert summed([{n: dict.fromkeys(rows, 1) for n, rows in before.items()}, *told]) == {
            n: dict.fromkeys(rows, 1) for n, rows in oracle.state.items() if rows
        }
        engine.check()
        assert_explained(engine)
        assert plain(engine.apply(updates(step))) == oracle.apply(updates(step))
        assert views(engine) == oracle.state
        engine.check()
        assert_explained(engine)


# ── reasons ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("executor", ["follow", "ranked_python", "hasty"])
@examples(12)
@given(any_case, st.randoms(use_true_random=False))
def test_every_fact_has_a_valid_proof(executor: str, case: Case, random: Random) -> None:
    text, inputs, stream = case
    engine = started(text, inputs, executor)
    for step in stream:
        engine.apply(updates(step))
        facts = [(name, row) for name in engine.program.relations for row in engine.rows(name)]
        for name, row in random.sample(facts, min(4, len(facts))):
            proof = why(engine, name, row)
            verify(engine, proof)
            assert all(leaf in engine.given(relation) for relation, leaf in proof.given())


# ── large graphs ─────────────────────────────────────────────────────────────────────────────

NODES, STEPS, EVERY = 300, 200, 50
GRAPHS = {
    "closure": CLOSURE,
    "closure, right-linear": SHAPES["closure, right-linear"],
    "closure, non-linear": SHAPES["closure, non-linear"],
    "same generation": SHAPES["same generation"],
    "mutual": SHAPES["two of one unit"],
    "read twice": SHAPES["closure, read twice"],
    "absence": SHAPES["a closure and its absence"],
    "aggregates": SHAPES["aggregates of a closure"],
}


def random_edge(random: Random, nodes: int) -> Row:
    """Most edges lead a little further, some back: large components, and long ways."""
    x = random.randrange(nodes)
    ahead = random.choice((1, 1, 2, 3, 5, -1, -4, nodes // 2))
    return x, (x + ahead) % nodes


def random_step(random: Random, present: dict[str, set[Row]], nodes: int) -> list[Update]:
    """A few edges, and now and then a fact that rules derive as well."""
    step = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        name = random.choice(sorted(present)) if random.random() < 0.1 else "e"
        rows = present[name]
        if rows and random.random() < 0.5:
            row = random.choice(sorted(rows))
            rows.discard(row)
            step.append(Update(name, row, False))
        else:
            row = random_edge(random, nodes)[: 1 if name == "v" else 2]
            rows.add(row)
            step.append(Update(name, row))
    return step


@pytest.mark.parametrize("name", GRAPHS)
@examples(2, share=60)  # the first is the simplest: seed 0
@given(st.integers(0, 10**6))
def test_large_graphs_follow(name: str, seed: int) -> None:
    """Hundreds of nodes and of steps, against semi-naive evaluation now and then."""
    random = Random(seed)
    nodes = NODES if name in ("closure", "closure, right-linear", "mutual") else NODES // 3
    program = program_of(f"{generators.DECLARATIONS}\n{GRAPHS[name]}\n")
    derived = generators.declared(GRAPHS[name])
    present: dict[str, set[Row]] = {n: set() for n, kinds in derived.items() if kinds == ("number",) * 2}
    present["v"] = {(x,) for x in range(0, nodes, 7)}
    present["e"] = {random_edge(random, nodes) for _ in range(nodes + nodes // 5)}
    engine = EXECUTORS["follow"].start(program)
    engine.apply([Update(n, row) for n, rows in present.items() for row in sorted(rows)])
    told: list[Changes] = [{n: dict.fromkeys(rows, 1) for n, rows in views(engine).items()}]
    for number in range(1, STEPS + 1):
        told.append(plain(engine.apply(random_step(random, present, nodes))))
        if number % EVERY == 0:
            expected = seminaive.evaluate(program, present)
            for relation in program.relations:
                assert engine.view(relation) == expected.relation(relation), f"{relation} after {number} steps"
            told = [summed(told)]
            assert told[0] == {n: dict.fromkeys(rows, 1) for n, rows in views(engine).items() if rows}
            assert_explained(engine)
    engine.check()
