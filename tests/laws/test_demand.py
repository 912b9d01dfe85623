"""What a query computes on demand is what it finds in the whole program."""

from __future__ import annotations

from typing import Any

import generators
from attrs import evolve
from generators import SHAPES, Case
from hypothesis import assume, given, note
from hypothesis import strategies as st
from living import examples, program_of
from random_queries import query_of

from everlog.core.evaluate import reference
from everlog.core.evaluate.on_demand import answers, demand_of
from everlog.core.program import Column, Program, Relation, Rule
from everlog.core.program.values import EvaluationError


def agrees(program: Program, inputs: dict[str, list[Any]], query: Rule, columns: tuple[Column, ...]) -> None:
    note(str(query))
    relations = {**program.relations, "?-": Relation("?-", columns)}
    try:
        whole = reference.evaluate(evolve(program, relations=relations, rules=(*program.rules, query)), inputs)
    except EvaluationError:
        assume(False)
    demand = demand_of(program, [query], columns)
    note(demand.text())
    found = answers(program, demand, inputs)
    assert found.relation("?-") == whole["?-"]
    for name in demand.program.relations:  # what is computed besides is true, too
        plain = name.partition("^")[0]
        if "^" in name and plain in whole:
            assert found.relation(name) <= whole[plain]


@examples(60)
@given(generators.cases(), st.data())
def test_a_query_on_demand_has_the_answers_of_the_whole_program(case: Case, data: st.DataObject) -> None:
    text, inputs, _ = case
    program = program_of(text)
    agrees(program, inputs, *query_of(program, data))


@examples(60)
@given(generators.dense_cases(), st.data())
def test_dense_programs_on_demand(case: Case, data: st.DataObject) -> None:
    text, inputs, _ = case
    program = program_of(text)
    agrees(program, inputs, *query_of(program, data))


NUMBERED = """.decl e(x:number, y:number)  .decl n(i:number, x:number)  .decl m(i:number, x:number)
n(autoinc(), x) :- e(x, _).  m(autoinc(), y) :- e(_, y).  m(i, y) :- m(i, x), e(x, y)."""


@examples(20)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6), st.data())
def test_numbers_are_those_of_the_whole_program(rows: list[Any], data: st.DataObject) -> None:
    program = program_of(NUMBERED)
    agrees(program, {"e": rows}, *query_of(program, data))


LINEAR = """.decl e(x:number, y:number)  .decl v(x:number)  .decl l(x:number, y:number)  .decl r(x:number, y:number)
.decl t(x:number, y:number, z:number)
l(x, y) :- e(x, y).  l(x, z) :- l(x, y), e(y, z).  l(x, z) :- l(x, y), e(z, y), !v(y).
r(x, y) :- e(x, y).  r(x, z) :- e(x, y), r(y, z).  r(x, z) :- e(y, x), r(y, z), x < y.  r(x, x) :- v(x).
r(x, z) :- v(x), r(y, z), !v(y).
t(x, y, y) :- e(x, y).  t(x, y, z) :- e(x, u), t(u, y, z).  t(x, y, z) :- v(z), e(x, y).
"""


@examples(60)
@given(
    st.fixed_dictionaries(
        {
            name: st.lists(st.tuples(*[st.integers(0, 3)] * arity), max_size=6)
            for name, arity in {"e": 2, "v": 1, "l": 2, "r": 2, "t": 3}.items()
        }
    ),
    st.data(),
)
def test_one_source_of_linear_recursion(inputs: dict[str, list[Any]], data: st.DataObject) -> None:
    """Both directions, with base facts of the relations themselves, filters and negation."""
    program = program_of(LINEAR)
    agrees(program, inputs, *query_of(program, data))


@examples(40, share=10)
@given(st.sampled_from(sorted(SHAPES)), st.data())
def test_shapes_on_demand(name: str, data: st.DataObject) -> None:
    text, inputs, _ = data.draw(generators.shaped_cases(name))
    program = program_of(text)
    agrees(program, inputs, *query_of(program, data))
