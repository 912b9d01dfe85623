"""Aggregates over bodies that are joined once mean what aggregates by group mean."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import generators
import pytest
from agreeing import agrees_run_with
from hypothesis import given

from everlog.core.evaluate import reference, seminaive
from everlog.core.evaluate.parts import grouped_bodies
from everlog.core.evaluate.reports.listed_plans import explain_ir
from everlog.dsl.check import compile_text

DECLARATIONS = """
.decl pay(a:number, b:number, x:number)  .decl home(a:number, c:number)  .decl pair(c:number, d:number)
"""
RULES = [
    "out(c, d, t) :- pair(c, d), t = sum x : { pay(a, b, x), x > 3, home(a, c), home(b, d) }.",
    "out(c, d, t) :- pair(c, d), t = count : { pay(a, b, x), home(a, c), home(b, d) }.",
    "out(c, d, t) :- pair(c, d), t = min x : { pay(a, b, x), home(a, c), home(b, d), !pair(a, b) }.",
    "out(c, d, t) :- pair(c, d), t = max x + c : { pay(a, b, x), home(a, c), home(b, _) }.",
    "out(c, d, t) :- pair(c, d), t = sum x + y : { pay(a, b, x), home(a, c), y = x + 1, y != d }.",
    "out(c, d, t) :- pair(c, d), t = count : { home(a, c), home(b, e), e != d }.",
    "out(c, d, t) :- pair(c, d), t = max n : { home(a, c), pay(a, b, x), n = count : { home(b, e), e != d } }.",
    "out(c, d, t) :- pair(c, d), t = sum x : { home(a, c), pay(a, a, x) },"
    " 0 < count : { home(a, d), pay(a, a, x) }.",
]


@given(generators.programs(), generators.facts())
def test_random_programs_with_grouped_bodies_agree_with_the_reference(text: str, inputs: Any) -> None:
    agrees_run_with(text, inputs, patch.object(grouped_bodies, "is_cheaper", lambda *_: True))


@pytest.mark.parametrize("rule", RULES)
def test_bodies_of_every_form_are_joined_once(rule: str) -> None:
    program = compile_text(DECLARATIONS + ".decl out(c:number, d:number, t:number)\n" + rule)
    inputs = {
        "pay": [(a, b, (a * 5 + b * 3) % 11) for a in range(8) for b in range(8) if (a + b) % 3 < 2],
        "home": [(a, a % 4) for a in range(8)] + [(1, 3), (2, 3)],
        "pair": [(c, d) for c in range(5) for d in range(5)],
    }
    with patch.object(grouped_bodies, "is_cheaper", lambda *_: True):
        assert "bindings 1 of out#1" in explain_ir(program)
        found = seminaive.evaluate(program, inputs).relation("out")
    assert found == reference.evaluate(program, inputs)["out"]
    assert len(found) > 4


def test_the_same_body_is_joined_once_for_two_aggregates() -> None:
    program = compile_text(
        DECLARATIONS + ".decl both(c:number, d:number, s:number, n:number)\n"
        "both(c, d, s, n) :- pair(c, d), s = sum x : { pay(a, b, x), home(a, c), home(b, d) },"
        " n = count : { pay(e, f, x), home(e, c), home(f, d) }."
    )
    with patch.object(grouped_bodies, "is_cheaper", lambda *_: True):
        text = explain_ir(program)
    assert "bindings 1 of both#1" in text
    assert "bindings 2" not in text
