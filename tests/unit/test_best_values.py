"""Maps to a best value: endless recursion, values without order, and what `explain` says."""

from __future__ import annotations

import pytest

from everlog.core.engine import Engine
from everlog.core.evaluate import reference, seminaive
from everlog.core.program.executor import Update
from everlog.core.program.values import EvaluationError
from everlog.core.proofs.missing import why_not
from everlog.dsl.check import compile_text
from everlog.functors import bind

SHORTEST = """.decl arc(x:number, y:number, w:number)  .decl dist(x:number, d:number)
    dist(0, 0).  dist(y, min(d + w)) :- dist(x, d), arc(x, y, w)."""
LATTICE = """.functor least(a:number, b:number):number  .lattice Low<> { Lub -> @least(_, _) }
    .type Low = number  .decl at(x:number, v:Low)  .decl low(x:number, v:Low<>)  low(x, v) :- at(x, v)."""
CYCLE = [(0, 1, 1), (1, 2, -3), (2, 1, 1), (2, 3, 1)]


def test_a_cycle_that_improves_on_itself_is_named() -> None:
    with pytest.raises(EvaluationError, match=r"dist\(._?.*\) → .*smaller for ever") as raised:
        seminaive.evaluate(compile_text(SHORTEST), {"arc": CYCLE})
    assert "dist(1, _)" in str(raised.value)
    assert "dist(2, _)" in str(raised.value)
    assert "dist(3, _)" not in str(raised.value)


def test_a_step_that_closes_such_a_cycle_changes_nothing() -> None:
    engine = Engine(compile_text(SHORTEST))
    engine.insert({"arc": CYCLE[:2] + CYCLE[3:]})
    before = engine.view("dist")
    with pytest.raises(EvaluationError, match="for ever"):
        engine.apply([Update("arc", CYCLE[2], True)])
    assert engine.view("dist") == before == {(0, 0), (1, 1), (2, -2), (3, -1)}
    engine.apply([Update("arc", (0, 3, -5), True)])
    assert engine.view("dist") == {(0, 0), (1, 1), (2, -2), (3, -5)}
    engine.check()


def test_values_in_order_come_back_when_negative_arcs_are_gone() -> None:
    engine = Engine(compile_text(SHORTEST))
    engine.insert({"arc": [(0, 1, 1), (1, 2, -3)]})
    engine.apply([Update("arc", (1, 2, -3), False), Update("arc", (1, 2, 3), True)])
    engine.apply([Update("arc", (0, 1, 1), False)])
    assert engine.view("dist") == {(0, 0)}
    engine.check()


NAN = """.decl f(x:number, v:float)  .decl g(x:number, v:float)
    g(x, max(v)) :- f(x, v).  g(y, max(v * 0.5)) :- g(x, v), y = x - 1, y > 0."""


def test_a_value_without_a_place_in_the_order_is_an_error_everywhere() -> None:
    program, facts = compile_text(NAN), {"f": [(3, float("nan")), (3, 1.0)]}
    for evaluate in (reference.evaluate, seminaive.evaluate):
        with pytest.raises(EvaluationError, match="NaN"):
            evaluate(program, facts)
    engine = Engine(program)
    engine.insert({"f": [(3, 1.0)]})
    with pytest.raises(EvaluationError, match="NaN"):
        engine.apply([Update("f", (3, float("nan")), True)])
    assert engine.view("g") == {(3, 1.0), (2, 0.5), (1, 0.25)}


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("best(y, x, min(d)) :- best(x, y, d).  .limitsize best(n=100)", "size limit"),
    ],
)
def test_explain_says_why_a_map_is_computed_again(rule: str, why: str) -> None:
    text = f""".decl arc(x:number, y:number, w:number)  .decl best(x:number, y:number, d:number)
        best(x, y, min(w)) :- arc(x, y, w).  {rule}"""
    strategy, reason = Engine(compile_text(text)).strategy_of("best")
    assert strategy == "recompute"
    assert why in reason


def test_subsumption_that_is_not_monotone_is_computed_again() -> None:
    text = """.decl arc(x:number, y:number, w:number)  .decl best(x:number, d:number)  best(0, 0).
        best(y, d + w) :- best(x, d), arc(x, y, w), d != 3.  best(x, d) <= best(x, e) :- e < d."""
    strategy, reason = Engine(compile_text(text)).strategy_of("best")
    assert strategy == "recompute"
    assert "may cease to hold" in reason


def test_a_new_derivation_does_not_hide_the_one_that_went() -> None:
    """In one step: the arc to 2 goes, and one from 2 becomes shorter."""
    engine = Engine(compile_text(SHORTEST), large=10**9)
    engine.insert({"arc": [(0, 2, 0), (2, 1, 1)]})
    engine.apply([Update("arc", (2, 1, 0), True), Update("arc", (0, 2, 0), False)])
    assert engine.view("dist") == {(0, 0)}
    engine.check()


def test_why_not_tells_the_best_there_is() -> None:
    engine = Engine(compile_text(SHORTEST))
    engine.insert({"arc": [(0, 1, 5), (0, 2, 1), (2, 1, 1)]})
    for value in (1, 5):  # better than there is, and derived, but not the best
        told = why_not(engine, "dist", (1, value)).remarks
        assert told == ("its key has dist(1, 2), the best that is derived for it",)
    assert not why_not(engine, "dist", (9, 1)).remarks
    engine = Engine(bind(compile_text(LATTICE), {"least": min}))
    engine.insert({"at": [(1, 7), (1, 4)]})
    told = why_not(engine, "low", (1, 7)).remarks
    assert told == ("its key has low(1, 4), joined of all that is derived for it",)
