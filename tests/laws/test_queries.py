"""A query means what a rule of the same body means."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import generators
import pytest
from hypothesis import assume, example, given, note
from hypothesis import strategies as st

from everlog import Database, QueryError, Update
from everlog.core.evaluate import reference
from everlog.core.program.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.dsl.diagnostics import DatalogError
from everlog.dsl.query_text import parameters_of

_WRONG = {"DL041", "DL042", "DL040", "DL057"}  # what a random aggregate may be: see test_evaluation


def _opened(text: str, inputs: Any) -> Database:
    try:
        return Database.from_text(text, facts=inputs)
    except DatalogError as error:
        if not _codes(error) <= _WRONG:
            raise
    except EvaluationError:
        pass
    assume(False)
    raise AssertionError


def _codes(error: DatalogError) -> set[str]:
    return {d.code for d in error.report.errors}


def _bodies(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.startswith("r") and ":-" in line]
    return [line.partition(":-")[2].strip().removesuffix(".") for line in lines]


def agree(db: Database, text: str, body: str) -> None:
    """The rows of a query are the facts of a rule that shows all of its variables."""
    try:
        result = db.query(body)
    except DatalogError as error:
        if not _codes(error) <= {*_WRONG, "DL044"}:
            raise
        return
    names, kinds = result.columns, result.kinds
    asked = f".decl asked({', '.join(map(':'.join, zip(names, kinds, strict=True)))})"
    given_facts = {name: db.given(name) for name in db.relations}
    program = compile_text(f"{text}\n{asked}\nasked({', '.join(names)}) :- {body}.")
    try:
        expected = sorted(reference.evaluate(program, given_facts)["asked"])
    except EvaluationError:
        with pytest.raises(EvaluationError):
            list(result)
        return
    found = list(result)
    assert sorted(found) == expected
    assert len(set(found)) == len(found), "an answer came twice"
    assert result == expected
    assert len(result) == len(expected)
    assert bool(result) is bool(expected)


@pytest.mark.parametrize("large", [-1, 10_000], ids=["indexes on the way", "indexes at once"])
@given(text=generators.programs(), inputs=generators.facts(), data=st.data())
def test_a_query_finds_what_a_rule_would_derive(large: int, text: str, inputs: Any, data: st.DataObject) -> None:
    """The bodies of random rules as queries of their program, before and after steps."""
    note(text)
    with patch("everlog.core.engine.stepping.store.LARGE", large):
        asked_before_and_after(_opened(text, inputs), text, inputs, data)


def asked_before_and_after(db: Database, text: str, inputs: Any, data: st.DataObject) -> None:
    bodies = [f"{body}, true" for body in _bodies(text)]
    for body in bodies:
        agree(db, text, body)
    name = data.draw(st.sampled_from(sorted(inputs)))
    for row in inputs[name]:
        try:
            db.delete(name, row)
        except EvaluationError:
            return
    for body in bodies:
        agree(db, text, body)


@given(st.data())
@example(None)
def test_a_result_is_of_the_state_in_which_it_was_asked(data: st.DataObject | None) -> None:
    """A result gives all rows of its state, each once, whatever steps come in between."""
    chance = random.Random(0) if data is None else data.draw(st.randoms())
    rows = {(chance.randrange(6), chance.randrange(6)) for _ in range(12)}
    db = Database.from_text(".decl e(x:number, y:number)", facts={"e": rows})
    query = chance.choice(["e(x, y)", "e(1, y)", "e(x, 1)", "e(x, x)", "e(x, y), e(y, z)", "e(x, _), !e(x, x)"])
    expected = db.query(query).rows()
    result = db.query(query)
    found = []
    for row in result:
        found.append(row)
        if chance.random() < 0.2:
            assert len(result) == len(expected)
        old, new = chance.choice(sorted(rows)), (chance.randrange(6), chance.randrange(6))
        db.apply([Update("e", old, insert=False), Update("e", new)])
    assert sorted(found) == expected == result.rows()


WORDS = [
    *["e(x, y)", "e(1, _)", "v(z)", "!v(x)", "small(x)", ",", ",", ",", ";", "(", ")", ".", "?", "?-", ":-"],
    *["x = 1", 'y > "a"', "_", "n = ", "count :", "{", "}", "max x :", "+", "@f(x)", "2", "//", "\n", "/*", '"'],
    *["$x", "e($x, $y)", "$", "$x(", "$.x", "$x.y", "as($x, number)"],
]


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_text_is_a_query_or_has_diagnostics_in_it(words: list[str]) -> None:
    """Any query has rows, or an error whose places lie in the text; never a crash."""
    db = Database.from_text(
        ".decl e(x:number, y:number)  e(1, 2).  .decl v(x:number)  v(2)."
        ".decl small(x:number) inline  small(x) :- x < 3.  .functor f(number):number",
        functors={"f": lambda x: x},
    )
    text = " ".join(words)
    try:
        db.query(text, **dict.fromkeys(parameters_of(text), 1)).rows()
    except QueryError as error:
        assert all(found.pos <= len(text) for found in error.report.errors)  # noqa: PT017
        assert str(error)  # noqa: PT017
    except EvaluationError:
        pass
