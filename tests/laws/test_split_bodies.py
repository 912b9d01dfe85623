"""Rules with parts that are computed first mean what they mean without."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import generators
import pytest
from agreeing import agrees_run_with
from hypothesis import example, given

from everlog.core.evaluate import reference, seminaive
from everlog.core.evaluate.parts import split_bodies
from everlog.core.evaluate.reports.profile import RunProfile
from everlog.core.native.availability import why_not
from everlog.dsl.check import compile_text

DECLARATIONS = """
.decl e(x:number, y:number)  .decl w(x:number, y:number, z:number)  .decl s(x:number)
.decl q(x:number, y:number)
"""


@contextmanager
def always_split() -> Iterator[None]:
    """Every part that there could be is computed first."""
    with patch.object(split_bodies, "WORTH", -1), patch.object(split_bodies, "BETTER", -1):
        yield


def parts_of(text: str, inputs: Any) -> list[str]:
    """The rules of the parts that a program is run with."""
    profile = RunProfile()
    found = seminaive.evaluate(compile_text(text), inputs, profile=profile)
    expected = reference.evaluate(compile_text(text), inputs)["q"]
    assert found.relation("q") == expected
    plans = [plan for unit in profile.units for rule in unit.rules.values() for plan in rule.plans]
    return [plan.rule for plan in plans if plan.rule.startswith("bindings")]


@given(generators.programs(), generators.facts())
@example(DECLARATIONS + "q(x, y) :- e(x, y), w(x, _, z), w(_, z, _), s(a), e(a, b), e(b, b).", {"e": [(1, 1)]})
@example(DECLARATIONS + ".decl p() p() :- e(_, _), i = range(0, 1).", {"e": [(0, 0), (0, 1)]})
def test_random_programs_with_parts_agree_with_the_reference(text: str, inputs: Any) -> None:
    agrees_run_with(text, inputs, always_split())


RULES = [
    "q(x, y) :- e(x, a), e(a, b), e(b, c), e(c, y), x < y.",
    "q(x, y) :- e(x, a), e(a, b), !e(a, a), c = b + 1, e(c, y), s(y).",
    "q(x, y) :- w(x, _, z), w(y, z, _), x != y.",
    "q(x, y) :- w(_, x, _), w(_, _, y), e(a, b), e(b, a), a < b.",
    "q(x, n) :- w(x, _, _), n = count : { e(x, b), w(b, _, z) }.",
    "q(x, t) :- s(x), t = sum z : { e(a, b), w(b, _, z), a != x }, e(c, c).",
    "q(x, t) :- e(x, _), t = max n : { e(x, b), n = count : { e(b, c), w(c, _, _) } }.",
    "q(x, sum(z)) :- e(x, y), w(y, _, z), s(x).",
    "q(x, sum(z)) :- e(x, y), e(y, z), z != 3.",
    "q(x, y) :- s(x), n = range(1, 3), e(y, n), e(a, b), w(b, a, _).",
]


@pytest.mark.skipif(bool(why_not()), reason="the compiled machine is not there")
@pytest.mark.parametrize("rule", RULES)
def test_bodies_of_every_form_have_parts(rule: str) -> None:
    inputs = {
        "e": [(x, (x * 7 + k) % 9) for x in range(9) for k in range(3)],
        "w": [(x, y, (x + y) % 5) for x in range(7) for y in range(6)],
        "s": [(x,) for x in range(1, 6)],
    }
    with always_split():
        assert parts_of(DECLARATIONS + rule, inputs)


@pytest.mark.skipif(bool(why_not()), reason="the compiled machine is not there")
@pytest.mark.parametrize(
    ("rule", "part"),
    [
        # an independent part is computed once
        ("q(x, x) :- s(x), e(a, b), e(b, a), a != b.", "bindings 1 of q#1() :- e(a, b), e(b, a), a != b."),
        # what a head aggregates is joined once
        (
            "q(x, sum(z)) :- e(x, y), w(y, _, z).",
            "bindings 1 of q#1(x, y, _, z, x) :- e(x, y), w(y, _, z), x = x.",
        ),
        # each value once, where many rows have it
        ("q(x, y) :- w(_, _, x), w(_, _, y), x < y.", "bindings 1 of q#1(x) :- w(_, _, x)."),
        # the rows of a path, of which only the ends are needed
        ("q(x, y) :- e(x, a), f(a, b), g(b, y).", "bindings 1 of q#1(b, x) :- f(a, b), e(x, a)."),
    ],
)
def test_parts_are_found_where_they_pay(rule: str, part: str) -> None:
    inputs = {
        "e": [(x, a) for x in range(50) for a in range(100)],
        "f": [(a, b) for a in range(100) for b in range(20)],
        "g": [(b, y) for b in range(20) for y in range(200)],
        "w": [(x, x % 10, x % 7) for x in range(20_000)],
        "s": [(x,) for x in range(50)],
    }
    more = ".decl f(x:number, y:number)  .decl g(x:number, y:number)\n"
    profile = RunProfile()
    seminaive.evaluate(compile_text(DECLARATIONS + more + rule), inputs, profile=profile)
    plans = [plan.rule for unit in profile.units for one in unit.rules.values() for plan in one.plans]
    assert part in [re.sub(r"@[0-9@]*", "", plan) for plan in plans], plans
