"""What a step would change is what it changes, and asking leaves no trace."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import generators
import pytest
from engines import EXECUTORS
from generators import SHAPES, Case
from hypothesis import given
from hypothesis import strategies as st
from last_steps import assert_explained
from living import examples, first_step, plain, program_of, state_of_engine, updates

from everlog import Changes, Database, LimitExceeded, Limits, NestedWrite
from everlog.core.program import Program
from everlog.core.program.values import EvaluationError

CLOSURE = """.decl edge(x:number, y:number)  .decl path(x:number, y:number)
path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z).
"""


def would_be_told(program: Program, inputs: Any, stream: Iterable[Any], executor: str) -> None:
    """Ask before each step; compare with what the step then tells."""
    engine = EXECUTORS[executor].start(program)
    for step in [first_step(inputs), *stream]:
        before, asked = state_of_engine(engine), None
        with contextlib.suppress(EvaluationError):
            asked = engine.what_if(updates(step), lambda told: (plain(told), state_of_engine(engine)))
        assert state_of_engine(engine) == before
        engine.check()
        assert_explained(engine)
        try:
            told = engine.apply(updates(step))
        except EvaluationError:
            assert asked is None, "only the step itself fails"
        else:
            assert asked is not None, "only the question fails"
            assert asked == (plain(told), state_of_engine(engine))
        engine.check()


@pytest.mark.parametrize("executor", EXECUTORS)
@examples(10)
@given(generators.cases())
def test_a_question_has_the_answer_of_the_step(executor: str, case: Case) -> None:
    text, inputs, stream = case
    would_be_told(program_of(text), inputs, stream, executor)


@pytest.mark.parametrize("executor", EXECUTORS)
@examples(10)
@given(generators.dense_cases())
def test_dense_programs_leave_no_trace(executor: str, case: Case) -> None:
    text, inputs, stream = case
    would_be_told(program_of(text), inputs, stream, executor)


@pytest.mark.parametrize("name", SHAPES)
@examples(3, share=20)
@given(st.data())
def test_each_shape_leaves_no_trace(name: str, data: st.DataObject) -> None:
    text, inputs, stream = data.draw(generators.shaped_cases(name, steps=8))
    for executor in ("follow", "mixed"):
        would_be_told(program_of(text), inputs, stream, executor)


# ── databases ────────────────────────────────────────────────────────────────────────────────


def test_no_subscriber_hears_of_it_and_the_last_changes_stay() -> None:
    db = Database.from_text(CLOSURE)
    heard: list[Changes] = []
    db.subscribe(None, heard.append)
    last = db.insert("edge", [(1, 2), (2, 3)])
    would = db.what_if([("edge", (2, 3), -1)])
    assert (heard, db.changes) == ([last], last)
    assert would == db.delete("edge", (2, 3))
    assert db.check() == []


def test_nothing_is_written_to_the_file(tmp_path: Path) -> None:
    with Database.open(tmp_path / "a.db", text=CLOSURE) as db:
        db.insert("edge", [(1, 2)])
        before = (tmp_path / "a.db").read_bytes(), db.step
        assert db.what_if("+edge(2, 3).")["path"] == {(1, 3): 1, (2, 3): 1}
        assert ((tmp_path / "a.db").read_bytes(), db.step) == before
    with Database.open(tmp_path / "a.db", read_only=True) as db:
        assert db.what_if("-edge(1, 2).")["path"] == {(1, 2): -1}
        assert db.view("edge") == [(1, 2)]


def test_in_a_transaction_the_collected_updates_count() -> None:
    db = Database.from_text(CLOSURE)
    with db.transaction() as tx:
        tx.insert("edge", (1, 2))
        would = db.what_if("+edge(2, 3).")
        alone = db.what_if()
        tx.insert("edge", (2, 3))
    assert tx.changes == would
    assert alone["path"] == {(1, 2): 1}


def test_a_discarded_transaction_leaves_nothing() -> None:
    db = Database.from_text(CLOSURE)

    def discarded() -> None:
        with db.transaction():
            db.insert("edge", (1, 2))
            db.what_if("+edge(2, 3).")
            raise KeyError

    with pytest.raises(KeyError):
        discarded()
    assert db.view("path") == []
    db.insert("edge", (1, 2))
    assert db.check() == []


def test_limits_hold_and_undo() -> None:
    db = Database.from_text(CLOSURE, facts={"edge": [(n, n + 1) for n in range(50)]})
    db.limits = Limits(facts=10)
    with pytest.raises(LimitExceeded):
        db.what_if([("edge", (50, n), 1) for n in range(51, 80)])
    db.limits = Limits()
    assert db.check() == []
    assert db.size("edge") == 50


def test_ctrl_c_undoes_it() -> None:
    def interrupt(unit: str, iteration: int, facts: int) -> None:
        raise KeyboardInterrupt

    text = ".decl n(x:number)  .decl m(x:number)  m(x) :- n(x).  m(x + 1) :- m(x), x < 100."
    db = Database.from_text(text)
    db.progress = interrupt
    with pytest.raises(KeyboardInterrupt):
        db.what_if("+n(1).")
    db.progress = None
    assert db.view("m") == []
    assert db.check() == []


def test_a_lazy_result_keeps_its_state() -> None:
    db = Database.from_text(CLOSURE, facts={"edge": [(1, 2), (2, 3)]})
    result = db.query("path(1, x)")
    rows = iter(result)
    first = next(rows)
    db.what_if("-edge(2, 3).")
    assert sorted([first, *rows]) == [(2,), (3,)]


def test_a_subscriber_may_not_ask() -> None:
    db = Database.from_text(CLOSURE)
    db.subscribe(None, lambda changes: db.what_if("+edge(7, 8)."))
    with pytest.raises(ExceptionGroup) as found:
        db.insert("edge", (1, 2))
    assert isinstance(found.value.exceptions[0], NestedWrite)
    assert db.view("edge") == [(1, 2)]
