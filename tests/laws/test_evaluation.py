"""Semi-naive evaluation by compiled rules means what the reference evaluator says."""

from __future__ import annotations

from typing import Any

import generators
import pytest
from generators import PROGRAMS
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


@pytest.mark.parametrize("name", PROGRAMS)
@given(inputs=generators.facts())
@example(inputs={})
def test_each_shape_agrees_with_the_reference(name: str, inputs: Any) -> None:
    declarations = "\n".join(
        f".decl {n}({', '.join(f'c{i}:{k}' for i, k in enumerate(kinds))})" for n, kinds in generators.BASE.items()
    )
    agree(compile_text(f"{declarations}\n{PROGRAMS[name]}\n"), inputs)


@given(generators.programs(), generators.facts())
@example(
    text=""".decl e(x:number, y:number)  .decl s(x:number, y:number)
.decl p(x:number, y:number)
p(x, y) :- e(x, y).
p(x, z) :- s(x, y), p(y, z).
p(x, z) :- s(x, y), p(y, w), p(w, z), x != z.
p(y, z) :- s(x, w), p(x, y), p(w, z).
""",
    inputs={"e": [(1, 2), (2, 3), (3, 1)], "s": [(1, 1), (2, 1), (3, 2)]},
)
def test_rules_that_read_what_is_new_late_agree_with_the_reference(text: str, inputs: Any) -> None:
    """Whether a rule goes from Δ outwards or through another atom is a matter of time, not of what it means."""
    try:
        program = compile_text(text)
    except DatalogError:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seminaive._EitherWay, "__call__", lambda self, changed, new: self.late(changed, new))
        agree(program, inputs)


def test_a_body_of_many_atoms_is_cut_into_functions() -> None:
    """More loops than Python nests in one function: a walk of 40 steps on a path of 60."""
    walk = ", ".join(f"e(x{i}, x{i + 1})" for i in range(40))
    text = (
        f".decl e(a:number, b:number)\n.decl p(a:number, b:number)\np(x0, x40) :- {walk}, x0 < x39, !e(x40, x0).\n"
    )
    agree(compile_text(text), {"e": [(i, i + 1) for i in range(60)]})
