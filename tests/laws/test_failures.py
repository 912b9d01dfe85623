"""A failing functor means the same for all executors, in any order of a body."""

from __future__ import annotations

from typing import Any

import generators
import partial_programs
import pytest
from engines import EXECUTORS
from generators import Case
from hypothesis import example, given
from hypothesis import strategies as st
from living import examples, first_step, follows, program_of, updates

from everlog import Database
from everlog.core.engine import Engine
from everlog.core.evaluate import reference, seminaive
from everlog.core.program import Program, Row
from everlog.core.program.values import EvaluationError
from everlog.core.proofs import verify, why
from everlog.dsl.check import compile_text

DECLARED = """.decl r(x:number) .decl q(x:number, y:number) .decl t(x:number) .decl p(x:number, y:number)
    r(0). r(5). r(2). q(2, 7). q(5, 1). t(5). """
EXCLUDED = {  # nothing fails here: what would, another literal excludes
    "p(x, s) :- r(x), s = strlen(to_string(10 / x)), x != 0.": [(2, 1), (5, 1)],
    "p(x, s) :- r(x), s = 10 / x, x != 0.": [(2, 5), (5, 2)],
    "p(x, 10 / x) :- r(x), t(x).": [(5, 2)],
    "p(x, y) :- r(x), q(10 / x, y), y > 100.": [],
    "p(x, y) :- r(x), q(10 / x, y), t(x).": [(5, 7)],
    "p(x, x) :- r(x), !q(10 / x, _), x > 1.": [],
    "p(x, i) :- r(x), i = range(0, 10 / x), t(x).": [(5, 0), (5, 1)],
    "p(x, n) :- r(x), n = sum 10 / y : { r(y), y <= x }, x > 100.": [],
    "p(x, n) :- r(x), n = sum z : { t(y), z = 10 / x + y }, x > 1.": [(2, 10), (5, 7)],
    "p(x, n) :- r(x), x > 1, n = count : { q(_, y), 10 / x > y }.": [(2, 1), (5, 1)],
    "p(x, n) :- r(x), s = 10 / x, n = count : { q(_, y), y > s }, t(x).": [(5, 1)],
    "p(x, y) :- r(x), r(y), x < y, 10 / x > 1, 10 / y > 7.": [],  # what one excludes, the other may fail on
}
FAILING = [
    "p(x, s) :- r(x), s = 10 / x.",
    "p(x, s) :- r(x), s = 10 / x, q(s, _).",
    "p(x, y) :- r(x), r(y), (x land (10 / y)) = 1.",
    "p(x, x) :- r(x), !q(10 / x, _).",
    "p(x, i) :- r(x), i = range(0, 10 / x).",
    "p(x, n) :- r(x), n = sum z : { t(y), z = 10 / x + y }, 10 / x > 1.",
    "p(x, n) :- r(x), n = count : { q(_, y), 10 / x > y }, n > 5.",
    "p(x, n) :- r(x), s = 10 / x, n = count : { q(_, y), y > s }.",
]


def _evaluations(program: Program) -> Any:
    yield lambda: reference.evaluate(program)["p"]
    yield lambda: seminaive.evaluate(program).relation("p")
    for executor in EXECUTORS.values():
        yield lambda executor=executor: executor.start(program).view("p")


@pytest.mark.parametrize("rule", EXCLUDED)
def test_what_a_filter_excludes_is_not_computed(rule: str) -> None:
    for evaluated in _evaluations(compile_text(DECLARED + rule)):
        assert sorted(evaluated()) == EXCLUDED[rule]


@pytest.mark.parametrize("rule", FAILING)
def test_what_nothing_excludes_fails(rule: str) -> None:
    for evaluated in _evaluations(compile_text(DECLARED + rule)):
        with pytest.raises(EvaluationError):
            evaluated()


def _outcome(program: Program, inputs: Any) -> dict[str, frozenset[Row]] | None:
    try:
        return reference.evaluate(program, inputs)
    except EvaluationError:
        return None


def _keep(rule: str) -> tuple[Case]:
    """An example that hypothesis found, with facts on which its rule may fail."""
    text = f".decl e(c0:number, c1:number) .decl w(c0:number, c1:symbol) .decl r0(c0:number)\n{rule}\n"
    facts = [("w", (0, "a"), True), ("e", (1, 2), True), ("w", (2, "1"), True), ("e", (11, 2), True)]
    return ((text, {}, [[fact] for fact in facts]),)


@examples(25)
@example(*_keep('r0(to_number(cat(p, "1"))) :- w(y, p), e(to_number(cat(p, "1")), x), e(y / y, x).'))
@given(partial_programs.cases())
def test_whole_evaluation_fails_where_the_reference_does_and_only_there(case: Case) -> None:
    text, _, stream = case
    program = program_of(text)
    facts: dict[str, dict[Row, None]] = {}
    for step in stream:
        for name, row, insert in step:
            held = facts.setdefault(name, {})
            held.update({row: None}) if insert else held.pop(row, None)
        try:
            evaluation = seminaive.evaluate(program, facts)
            found = {name: evaluation.relation(name) for name in program.relations}
        except EvaluationError:
            found = None
        assert found == _outcome(program, facts)


TWO_WAYS_TO_FAIL = (
    ".decl v(c0:number) .decl w(c0:number) .decl r0(c0:number)\n"
    "r0(x) :- w(x), 9 / x > 99, n = count : { v(y), strlen(to_string(2 / y)) != x, 1 / y != y }.\n",
    {},
    [[("w", (1,), True)], [("v", (0,), True)], [("w", (2,), True)], [("v", (0,), False)], [("w", (1,), False)]],
)


@examples(12)
@example(TWO_WAYS_TO_FAIL, "view_tree")
@given(partial_programs.cases(), st.sampled_from(sorted(EXECUTORS)))
def test_a_living_engine_refuses_the_steps_that_fail_and_no_others(case: Case, executor: str) -> None:
    text, inputs, stream = case
    follows(program_of(text), inputs, stream, dict.fromkeys(["follow", executor]))


@examples(12)
@given(partial_programs.cases(), st.randoms(use_true_random=False))
def test_the_order_of_a_body_does_not_matter(case: Case, random: Any) -> None:
    text, _, stream = case
    program = program_of(text)
    facts = [change for step in stream for change in step]
    inputs: dict[str, list[Row]] = {}
    for name, row, insert in facts:
        if insert:
            inputs.setdefault(name, []).append(row)
    rules = [_shuffled(rule, random) for rule in program.rules]
    assert _outcome(program, inputs) == _outcome(Program(program.relations, tuple(rules)), inputs)


def _shuffled(rule: Any, random: Any) -> Any:
    from attrs import evolve

    return evolve(rule, body=tuple(random.sample(rule.body, len(rule.body))))


@examples(12)
@given(partial_programs.cases())
def test_every_fact_of_a_program_that_might_have_failed_has_a_proof(case: Case) -> None:
    text, inputs, stream = case
    engine = Engine(program_of(text))
    for step in [first_step(inputs), *stream]:
        try:
            engine.apply(updates(step))
        except EvaluationError:
            continue
        for name in engine.program.relations:
            for row in list(engine.rows(name))[:2]:
                verify(engine, why(engine, name, row))


@examples(12)
@given(partial_programs.cases())
def test_a_query_fails_where_a_rule_with_its_body_does(case: Case) -> None:
    text, _, stream = case
    program_of(text)
    declared = "\n".join(line for line in text.splitlines() if ":-" not in line)
    db = Database.from_text(declared)
    for name, row, insert in (change for step in stream for change in step if change[0] in generators.BASE):
        db.insert(name, row) if insert else db.delete(name, row)
    given_facts = {name: db.given(name) for name in db.relations}
    for rule in (line for line in text.splitlines() if ":-" in line and "r0(" not in line.partition(":-")[2]):
        body = rule.partition(":-")[2].strip().removesuffix(".")
        asked = program_of(f"{declared}\n.decl asked()\nasked() :- {body}.")
        try:
            found: bool | None = bool(list(db.query(body)))
        except EvaluationError:
            found = None
        expected = _outcome(asked, given_facts)
        assert found == (None if expected is None else bool(expected["asked"]))
