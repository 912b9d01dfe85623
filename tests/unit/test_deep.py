"""Deep and wide programs work, or end in a clear error."""

from __future__ import annotations

import pytest

from everlog.core.evaluate import seminaive
from everlog.dsl.check import compile_text, diagnose
from everlog.dsl.source import Source

BASE = ".decl e(x:number, y:number)\ne(1, 1).\ne(1, 2).\n.decl p(x:number)\n"
SHAPES = {
    "a body of 10 000 atoms": BASE + "p(x0) :- " + ", ".join(f"e(x{i}, x{i + 1})" for i in range(10_000)) + ".",
    "a body of 10 000 tests": BASE + "p(x) :- e(x, _), " + ", ".join(f"x != {i + 5}" for i in range(10_000)) + ".",
    "an equality chain of 5 000": BASE
    + "p(1) :- e(x0, _), "
    + ", ".join(f"x{i + 1} = x{i} + 1" for i in range(5_000))
    + ".",
    "1 000 parentheses around a term": BASE + f"p(x) :- e(x, y), y = {'(' * 1000}x{')' * 1000}.",
    "1 000 parentheses around a body": BASE + f"p(x) :- {'(' * 1000}e(x, 1){')' * 1000}.",
    "150 sums inside each other": BASE + f"p(151) :- e(x, _), y = {'(x + ' * 150}1{')' * 150}, y = 151.",
    "a sum of 10 000 terms": BASE + f"p(1) :- e(x, _), y = {' + '.join(['x'] * 10_000)}, y = 10000.",
    "150 negated groups": BASE + f"p(x) :- e(x, _), {'!(' * 150}e(x, 1){')' * 150}.",
    "50 aggregates inside each other": BASE
    + f"p(1) :- x = {'count : { e(x0, _), x0 < ' * 50}3{'}' * 50}, x >= 0.",
    "150 calls of cat": BASE
    + ".decl s(x:symbol)\ns("
    + 'cat("a", ' * 150
    + '"b"'
    + ")" * 150
    + ").\np(1) :- s(_).",
}


@pytest.mark.parametrize("name", SHAPES)
def test_deep_programs_run(name: str) -> None:
    result = seminaive.evaluate(compile_text(SHAPES[name]))
    assert result.size("p") == 1


def test_components_may_nest_200_deep() -> None:
    text = (
        "".join(f".comp C{i} {{ " for i in range(150))
        + ".decl a(x:number) a(1)."
        + " }" * 150
        + "\n.init c = C0\n"
    )
    program, report = diagnose(Source(text))
    assert program is not None, report.text()


def test_an_endless_instantiation_is_an_error_not_a_hang() -> None:
    _, report = diagnose(Source(".comp A { .init a = A }\n.init a = A\n"))
    assert [d.code for d in report.errors] == ["DL072"]


def test_a_disjunction_that_explodes_is_an_error() -> None:
    body = ", ".join("(e(x, 1) ; e(x, 2))" for _ in range(40))
    _, report = diagnose(Source(BASE + f"p(x) :- {body}."))
    assert [d.code for d in report.errors] == ["DL015"]


@pytest.mark.deep
def test_100_000_rules_run() -> None:
    rules = "".join(f"p({i}) :- e(x, {i % 3}), x > 0.\n" for i in range(100_000))
    assert seminaive.evaluate(compile_text(BASE + rules)).size("p") > 0


def test_a_chain_of_5_000_relations_runs() -> None:
    text = ".decl r0(x:number)\nr0(1).\n" + "".join(
        f".decl r{i + 1}(x:number)\nr{i + 1}(x) :- r{i}(x).\n" for i in range(5_000)
    )
    assert seminaive.evaluate(compile_text(text)).size("r5000") == 1
