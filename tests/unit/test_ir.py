"""Rules as plans: the text of each, and the machine that runs each unit."""

from __future__ import annotations

import re

import pytest

from everlog.core.evaluate import machines
from everlog.core.evaluate.reports.listed_plans import explain_ir
from everlog.dsl.check import compile_text

DECLARED = """.decl e(x:number, y:number)  .decl t(x:number, y:number, z:number)  .decl s(a:symbol)
.decl p(x:number, y:number)  .decl o(x:number)  .decl flag()
"""


def shown(rules: str) -> list[str]:
    """The plans of some rules, without the rules."""
    text = explain_ir(compile_text(DECLARED + rules))
    return [re.sub("@[0-9]+", "", line) for line in text.splitlines() if line.startswith("  ")]


@pytest.fixture(autouse=True)
def _built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "why_not", lambda: "")


def test_columns_with_values_are_looked_up() -> None:
    assert shown("p(x, z) :- e(x, y), t(y, 3, z).") == [
        "  probe t(y, =3, z)",
        "    probe e(x, =y)",
        "      add p(x, z)",
    ]


def test_a_variable_that_stands_twice_is_compared() -> None:
    assert shown("o(x) :- t(x, _, x).") == ["  scan t(x, _, %x1)", "    test x = %x1", "    add o(x)"]


def test_conditions_stand_where_they_are_ready() -> None:
    assert shown('o(z) :- e(x, y), x < 3, z = (x + y) * 2, !e(z, _), !p(1, y), match("a.*", to_string(x)).') == [
        "  scan e(x, y)",
        "    test x < 3",
        "    let %1 = (x + y)",
        "    let z = (%1 * 2)",
        "    absent e(=z, _)",
        "    absent p(=1, =y)",
        "    let %2 = to_string(x)",
        '    test match("a.*", %2)',
        "    add o(z)",
    ]


def test_loops_that_the_head_does_not_need_end_at_the_first_row() -> None:
    assert shown("e(1, 2). o(x) :- e(x, y), t(y, z, _), z > 1.") == [
        "  scan e(x, y)",
        "    unless known o(x)",
        "    probe t(=y, z, _)",
        "      test z > 1",
        "      add o(x), leave 1 loop",
    ]


def test_a_recursive_rule_finds_each_derivation_once() -> None:
    found = shown("p(x, y) :- e(x, y). p(x, y) :- p(y, x). p(x, z) :- p(x, y), p(y, z), x != z.")
    assert found[4:] == [
        "  scan Δ p(x, y)",
        "    probe p(=y, z)",
        "      test x != z",
        "      add p(x, z)",
        "  scan Δ p(y, z)",
        "    probe old p(x, =y)",
        "      test x != z",
        "      add p(x, z)",
    ]


def test_an_aggregate_is_a_plan_of_its_own() -> None:
    assert shown("p(x, n) :- e(x, _), n = sum z : { t(x, y, z), !e(y, z) }.") == [
        "  scan e(x, _)",
        "    let sum = sum z for x of",
        "        probe t(=x, y, z)",
        "          absent e(=y, =z)",
        "    add p(x, sum)",
    ]


def test_what_may_fail_comes_last() -> None:
    assert shown("o(n) :- e(x, y), n = x / y, y != 0, t(x, _, _).") == [
        "  scan t(x, _, _)",
        "    probe e(=x, y)",
        "      test y != 0",
        "      let n = (x / y)",
        "      add o(n)",
    ]


def test_a_range_is_a_loop_or_a_test() -> None:
    assert shown("o(n) :- n = range(1, 4). o(y) :- e(x, y), y = range(0, x, 2).") == [
        "  count range = range(1, 4)",
        "    add o(range)",
        "  scan e(x, range)",
        "    test range = range(0, x, 2)",
        "    add o(range)",
    ]


def test_relations_without_columns() -> None:
    assert shown("flag() :- e(1, 2). o(1) :- flag(), !s(_).") == [
        "  exists e(=1, =2)",
        "  add flag()",
        "  absent s(_)",
        "  exists flag()",
        "  add o(1)",
    ]


@pytest.mark.parametrize(
    ("rules", "machine"),
    [
        ("p(x, y) :- e(x, y), !o(x).", "the compiled machine"),
        ("p(x, y) :- p(y, x). p(x, z) :- p(x, y), p(y, z).", "the compiled machine"),
        (
            "p(x, z) :- p(x, y), p(y, z).",
            "Python: each recursive rule carries a column along, so that whole sets move at once",
        ),
        ("p(x, z) :- p(x, y), e(y, z).", "Python: sets flow through the components of a graph, all rules at once"),
        ("p(x, y) :- e(p, x), p(p, q), e(q, y).", "Python: each key is settled once, in order"),
        ("o(n) :- n = count : { e(_, _) }.", "the compiled machine"),
        ("o(n) :- n = range(1, 4).", "the compiled machine"),
        (".decl f(x:float)  f(n) :- n = range(1.0, 4.0).", "Python: f#1 has a range of floats"),
        ("o(x / y) :- e(x, y).", "the compiled machine"),
        ("o(ord(a)) :- s(a).", "Python: o#1 uses the ordinals of symbols"),
        ("o(autoinc()) :- s(_).", "the compiled machine"),
        (".decl q(x:number, y:number) eqrel  q(x, y) :- e(x, y).", "Python: q is an equivalence relation"),
        (".decl q(x:number) choice-domain x  q(x) :- e(x, _).", "the compiled machine"),
        ("o(x) :- e(x, _). o(x) <= o(y) :- x < y, e(x, y).", "the compiled machine"),
        ("o(x) :- e(x, _). o(x) <= o(y) :- e(x, y).", "Python: facts of o may dominate each other in a circle"),
        ("o(x) :- e(x, _). o(x) <= o(y) :- x < y.", "the compiled machine"),
        (
            ".decl m(x:number, s:symbol)  m(x, min(s)) :- e(x, _), s(s).  m(y, min(s)) :- m(x, s), e(x, y).",
            "Python: the values of m are symbols, which the compiled machine does not order",
        ),
        (
            "p(x, z) :- p(x, y), e(y, z). o(x) :- p(x, x).",
            "Python: it reads p, whose keys share sets",
        ),
    ],
)
def test_each_unit_has_a_machine_and_a_reason(rules: str, machine: str) -> None:
    text = explain_ir(compile_text(DECLARED + rules))
    assert [line for line in text.splitlines() if "evaluated by" in line][-1].endswith(f"evaluated by {machine}")


def test_without_the_machine_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "why_not", lambda: "EVERLOG_PURE is set")
    assert explain_ir(compile_text(DECLARED + "o(x) :- e(x, _).")).startswith(
        "o: evaluated by Python: EVERLOG_PURE is set"
    )
