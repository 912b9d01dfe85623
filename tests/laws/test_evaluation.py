"""Semi-naive evaluation by compiled rules means what the reference evaluator says."""

from __future__ import annotations

from typing import Any

import generators
import pytest
from hypothesis import assume, example, given, note

from everlog.core import reference, seminaive
from everlog.core.program import Program
from everlog.core.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.dsl.diagnostics import DatalogError


def agree(program: Program, inputs: Any) -> None:
    try:
        expected = reference.evaluate(program, inputs)
    except EvaluationError:
        expected = None  # whether an error is met depends on the order of a body
    try:
        result = seminaive.evaluate(program, inputs)
    except EvaluationError:
        return
    if expected is None:
        return
    for table in result.tables.values():
        table.check()
    for name in program.relations:
        assert result.relation(name) == expected[name], name
        assert list(result.rows(name)) == sorted(expected[name]), f"{name}: order"


@given(generators.programs(), generators.facts())
def test_semi_naive_evaluation_agrees_with_the_reference(text: str, inputs: Any) -> None:
    """Random programs of every construct, on random facts."""
    note(text)
    try:
        program = compile_text(text)
    except DatalogError as error:
        # A random aggregate may use a variable as a witness of count or sum, which is an error.
        unexpected = {d.code for d in error.report.errors} - {"DL041", "DL042", "DL040", "DL057"}
        if unexpected:
            raise
        assume(False)
    agree(program, inputs)


PROGRAMS = {
    "closure, non-linear": ".decl p(a:number, b:number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), p(y, z).",
    "closure, right-linear": ".decl p(a:number, b:number)\np(x, y) :- e(x, y).\np(x, z) :- e(x, y), p(y, z).",
    "same generation": ".decl g(a:number, b:number)\ng(x, x) :- v(x).\ng(x, y) :- e(a, x), g(a, b), e(b, y).",
    "mutual": ".decl a(x:number) .decl b(x:number)\na(x) :- v(x).\nb(y) :- a(x), e(x, y).\na(y) :- b(x), e(x, y).",
    "counter": ".decl n(i:number, x:number)\nn(autoinc(), x) :- e(x, _), !v(x).\nn(autoinc() + 10, x) :- v(x).",
    "subsumption": """.decl d(x:number, n:number) btree_delete
        d(0, 0).
        d(y, n + 1) :- d(x, n), e(x, y), n < 9.
        d(x, a) <= d(x, b) :- b < a.""",
    "subsumption of facts": """.decl d(x:number, y:number) btree_delete
        d(x, y) :- e(x, y).
        d(x, a) <= d(x, b) :- a < b.""",
    "limit": ".decl p(a:number, b:number)\n.limitsize p(n=5)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).",
    "equivalence": """.decl q(a:number, b:number) eqrel
        q(x, y) :- e(x, y).
        .decl c(n:number)
        c(n) :- n = count : { q(_, _) }.""",
    "equivalence in a cycle": """.decl q(a:number, b:number) eqrel
        .decl p(a:number, b:number)
        q(x, y) :- e(x, y).  q(x, y) :- p(x, y), v(x).
        p(x, z) :- q(x, y), t(y, z, _).""",
    "choice in recursion": """.decl tree(a:number, b:number) choice-domain b
        tree(0, 0).
        tree(x, y) :- tree(_, x), e(x, y).""",
    "witness": ".decl m(x:number, y:number)\nm(x, y) :- x = max a : { e(a, y), a < 4 }.",
    "nested aggregates": """.decl m(x:number, n:number)
        m(x, n) :- v(x), n = max c : { e(x, y), c = count : { e(y, z), z > x } }.""",
    "functor in an atom": ".decl p(x:number)\np(x) :- e(x, x + 1).\np(y) :- v(x), e(x * 1, y).",
    "arithmetic wraps": ".decl p(x:number)\np(x * 9223372036854775807 + x) :- v(x).",
    "product": ".decl p(x:number, y:symbol)\np(x, y) :- v(x), s(y).",
    "nullary": ".decl a() .decl b()\na() :- e(_, _), !flag().\nb() :- a().\nb() :- flag().",
}


@pytest.mark.parametrize("name", PROGRAMS)
@given(inputs=generators.facts())
@example(inputs={})
def test_each_shape_agrees_with_the_reference(name: str, inputs: Any) -> None:
    declarations = "\n".join(
        f".decl {n}({', '.join(f'c{i}:{k}' for i, k in enumerate(kinds))})" for n, kinds in generators.BASE.items()
    )
    agree(compile_text(f"{declarations}\n{PROGRAMS[name]}\n"), inputs)


def test_a_body_of_many_atoms_is_cut_into_functions() -> None:
    """More loops than Python nests in one function: a walk of 40 steps on a path of 60."""
    walk = ", ".join(f"e(x{i}, x{i + 1})" for i in range(40))
    text = (
        f".decl e(a:number, b:number)\n.decl p(a:number, b:number)\np(x0, x40) :- {walk}, x0 < x39, !e(x40, x0).\n"
    )
    agree(compile_text(text), {"e": [(i, i + 1) for i in range(60)]})
