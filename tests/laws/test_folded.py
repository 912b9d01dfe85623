"""Functions of the user as aggregates: every executor equals the reference, failures too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from living import examples, follows

from everlog.core.evaluate import reference, seminaive
from everlog.core.program import Program
from everlog.core.program.aggregates.folded import broken_fold_laws
from everlog.core.program.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.functors import bind

BASE = """.decl sale(shop:number, day:number, price:number)  .decl shop(x:number)
    .functor both(a:number, b:number):number  .functor digits(a:number, b:number):number
    .functor split(a:number, b:number):number  .functor text(a:symbol, b:number):symbol
    .functor scale(a:float, b:float):float
"""
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "both": lambda a, b: a | b,
    "digits": lambda a, b: 10 * a + b,  # depends on the order
    "split": lambda a, b: a // b,  # fails on 0
    "text": lambda a, b: f"{a}{b}",
    "scale": lambda a, b: a * b,
}
PROGRAMS = {
    "by group": "t(x, v) :- shop(x), v = @@both p : 0, { sale(x, _, p) }.",
    "of all": "t(0, v) :- v = @@digits p : 7, { sale(_, _, p) }.",
    "computed targets": "t(x, v) :- shop(x), v = @@digits p * 2 - 1 : 0, { sale(x, d, p), d > 0 }.",
    "joined": "t(x, v) :- shop(x), v = @@both p + q : 0, { sale(x, d, p), sale(_, d, q) }.",
    "failing": "t(x, v) :- shop(x), v = @@split p : 100, { sale(x, _, p) }.",
    "failing, excluded": "t(x, v) :- shop(x), v = @@split p : 100, { sale(x, _, p) }, !sale(x, _, 0).",
    "bound from outside": "t(x, v) :- shop(x), v = @@digits d : 0, { sale(_, d, p), p < x }.",
    "another type": 't(x, strlen(v)) :- shop(x), v = @@text p : "", { sale(x, _, p) }.',
    "floats": "t(x, ftoi(v * 1000.0)) :- shop(x), v = @@scale itof(p) / 3 : 1.0, { sale(x, _, p) }.",
    "in another": "t(x, v) :- shop(x), v = @@both n : 0, { shop(y), n = @@digits p : 0, { sale(y, _, p) } }.",
    "compared": "t(x, 1) :- shop(x), @@both p : 0, { sale(x, _, p) } = x.",
}


def program_of(name: str) -> Program:
    program = compile_text(BASE + ".decl t(x:number, v:number)  " + PROGRAMS[name])
    return bind(program, {used: FUNCTIONS[used] for used in program.functors})


VALUE = st.integers(0, 3)
ROWS = {"sale": st.tuples(VALUE, VALUE, VALUE), "shop": st.tuples(VALUE)}
CHANGE = st.sampled_from(sorted(ROWS)).flatmap(lambda n: st.tuples(st.just(n), ROWS[n], st.booleans()))
INPUTS = st.fixed_dictionaries({name: st.lists(rows, max_size=8, unique=True) for name, rows in ROWS.items()})


@pytest.mark.parametrize("name", PROGRAMS)
@examples(25)
@given(INPUTS, st.lists(st.lists(CHANGE, min_size=1, max_size=3), max_size=8))
def test_every_executor_follows(name: str, inputs: Any, stream: Any) -> None:
    follows(program_of(name), inputs, stream, ["follow", "mixed", "bulk"])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("machine", ["compiled", "Python"])
@examples(25)
@given(INPUTS)
def test_whole_evaluation_equals_the_reference(name: str, machine: str, inputs: Any) -> None:
    program = program_of(name)
    with pytest.MonkeyPatch.context() as patch:
        if machine == "Python":
            patch.setenv("EVERLOG_PURE", "1")
        try:
            expected = reference.evaluate(program, inputs)["t"]
        except EvaluationError:
            with pytest.raises(EvaluationError):
                seminaive.evaluate(program, inputs)
        else:
            assert seminaive.evaluate(program, inputs).relation("t") == expected


@given(st.lists(st.integers(0, 50), min_size=1, unique=True))
def test_laws_that_hold_are_not_broken(values: list[int]) -> None:
    program = program_of("by group")
    functor = program.functors["both"]
    assert not list(broken_fold_laws(functor, 0, values))
    assert not list(broken_fold_laws(evolve(functor, function=lambda a, b: a + b), 0, values))


def test_broken_laws_are_told() -> None:
    functors = program_of("by group").functors
    assert "order of 1 and 2" in next(broken_fold_laws(functors["digits"], 0, [1, 2]))
    assert "not associative" in next(broken_fold_laws(functors["split"], 100, [0, 1, 2]))
    mean = evolve(functors["both"], function=lambda a, b: (a + b) // 2)
    assert list(broken_fold_laws(mean, 0, [1, 7]))
