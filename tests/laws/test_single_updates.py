"""Single updates, which have fast paths of their own, agree with the reference."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from unittest.mock import patch

import generators
import pytest
from generators import BASE, PROGRAMS
from hypothesis import assume, given, note, settings
from recomputing import Recomputing

from everlog.core.engine import Engine
from everlog.core.evaluate import reference
from everlog.core.ir import printer
from everlog.core.program import Program
from everlog.core.program.executor import Update
from everlog.core.program.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.dsl.diagnostics import DatalogError

DECLARATIONS = "\n".join(
    f".decl {n}({', '.join(f'c{i}:{k}' for i, k in enumerate(kinds))})" for n, kinds in BASE.items()
)
COUNTED = {
    "join and count": """.decl q(a:number, b:number)  .decl n(a:number, k:number)
        q(x, z) :- e(x, y), t(y, z, _).
        n(x, k) :- q(x, _), k = count : { q(x, _) }.""",
    "negation of a join": """.decl q(a:number)  .decl p(a:number, b:number)
        q(x) :- e(x, y), v(y).
        p(x, y) :- e(x, y), !q(y).
        p(x, 7) :- v(x), !q(_).""",
    "count of everything": ".decl n(k:number)\nn(k) :- k = count : { e(x, y), v(x), x <= y }.",
    "division": ".decl p(x:number, y:number)\np(x, 6 / x) :- e(x, y), v(y).",
    "chain": """.decl a(x:number)  .decl b(x:number, y:number)  .decl c(x:number, y:number, z:number)
        a(x) :- e(x, _).  a(x) :- e(_, x).
        b(y, x) :- a(x), w(x, s), s(s), y = x * 2.
        c(x, y, z) :- b(x, y), t(y, z, x).  c(x, x, x) :- a(x), !v(x).""",
    "two counts": """.decl d(x:number, i:number, o:number)
        d(x, i, o) :- v(x), i = count : { e(_, x) }, o = count : { e(x, _) }.""",
}


def follows_singly(program: Program, inputs: Any, stream: Any) -> None:
    """One update at a time, on the engine and on the reference; they agree after each."""
    oracle = Recomputing(reference.evaluate).start(program)
    engine = Engine(program)
    updates = [Update(name, row) for name, rows in inputs.items() for row in rows]
    updates += [Update(*update) for step in stream for update in step]
    for update in updates:
        before = {name: engine.view(name) for name in program.relations}
        expected = None
        with suppress(EvaluationError):
            expected = oracle.apply([update])
        if expected is None:
            with pytest.raises(EvaluationError):
                engine.apply([update])
            assert {name: engine.view(name) for name in program.relations} == before, "a failed step left a trace"
            engine.check()
            continue
        told = engine.apply([update])
        assert {n: dict(c) for n, c in told.items()} == {n: dict(c) for n, c in expected.items()}, update
        for name in program.relations:
            assert engine.view(name) == oracle.view(name), f"{name} after {update}"
    engine.check()


@settings(max_examples=settings().max_examples // 2)
@given(generators.programs(), generators.facts(), generators.streams(steps=12, size=2))
def test_random_programs_follow_single_updates(text: str, inputs: Any, stream: Any) -> None:
    note(text)
    try:
        program = compile_text(text)
    except DatalogError:
        assume(False)
        raise
    follows_singly(program, inputs, stream)


@settings(max_examples=settings().max_examples // 2)
@given(generators.programs(), generators.facts(), generators.streams(steps=12, size=2))
def test_sets_that_are_intersected_at_once_give_the_same(text: str, inputs: Any, stream: Any) -> None:
    """Delta rules intersect large sets; here, sets of one value as well."""
    note(text)
    try:
        program = compile_text(text)
    except DatalogError:
        assume(False)
        raise
    with patch.object(printer, "FEW", 1):
        follows_singly(program, inputs, stream)


@settings(max_examples=max(6, settings().max_examples // 5))
@pytest.mark.parametrize("name", [*COUNTED, *PROGRAMS])
@given(inputs=generators.facts(), stream=generators.streams(steps=20, size=2))
def test_each_shape_follows_single_updates(name: str, inputs: Any, stream: Any) -> None:
    text = COUNTED.get(name) or PROGRAMS[name]
    follows_singly(compile_text(f"{DECLARATIONS}\n{text}\n"), inputs, stream)
