"""A parameter means its value, whatever the value is and however it is written."""

from __future__ import annotations

import math
from typing import Any

import generators
import pytest
from hypothesis import assume, example, given, note
from hypothesis import strategies as st

from everlog import Database, FactError, QueryError
from everlog.core.program.values import EvaluationError
from everlog.dsl import ast
from everlog.dsl.diagnostics import DatalogError, Report
from everlog.dsl.lexer import lex
from everlog.dsl.source import Source

PROGRAM = """
    .decl said(who:symbol, what:symbol)
    .decl n(x:number)  .decl u(x:unsigned)  .decl f(x:float)
    .decl secret(x:symbol)  secret("key").
"""
NASTY = [
    "",
    '"',
    '\\"',
    "\\",
    "$who",
    "'; --",
    '", _); secret(x), p("',
    "a\nb",
    "\x00",
    "\r\n\t\v",
    "?- said(x, y).",
    "{x}",
    "%s",
    "ü€😀",
    "\udc80",  # a byte that is not UTF-8, as files and arguments have it
    "a" * 5000,
]
texts = st.sampled_from(NASTY) | st.text(max_size=20) | st.text(alphabet='"\\$(),.?-_xy\n \x00', max_size=12)


def storable(text: str) -> bool:
    """Whether a text has a form in UTF-8; other surrogates are refused as facts."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


@given(said=st.lists(st.tuples(texts, texts), max_size=8), value=texts)
def test_a_symbol_is_found_whatever_its_characters_are(said: list[tuple[str, str]], value: str) -> None:
    """In an atom, a conjunction, under `!`, in an aggregate, a functor and a head."""
    assume(storable(value) and all(storable(text) for row in said for text in row))
    db = Database.from_text(PROGRAM, facts={"said": [*said, (value, "me")]})
    rows = {(who, what) for who, what in db.view("said")}
    [(kept,)] = db.query("x = $v", v=value)  # as it is stored: the bytes of a character are that character
    assert (kept, "me") in rows
    whats = sorted({(what,) for who, what in rows if who == kept})
    assert db.facts("said($v, what)", v=value) == sorted(row for row in rows if row[0] == kept)
    assert db.query("said($v, what)", v=value) == whats
    assert db.query("said($v, what), true", v=value) == whats
    assert db.query("said(who, what), who = $v", v=value) == sorted(row for row in rows if row[0] == kept)
    assert db.query("said(who, _), !said(who, $v)", v=value) == sorted(
        {(who,) for who, _ in rows if (who, kept) not in rows}
    )
    assert db.query("c = count : { said($v, _) }", v=value) == [(len(whats),)]
    assert db.query("x = cat($v, $w)", v=value, w="!") == [(f"{kept}!",)]
    assert db.holds("said($v, $w)", v=value, w="me")
    assert db.why("said($v, $w)", v=value, w="me").text()
    assert db.view("secret") == [("key",)]


@given(value=st.text(alphabet=st.characters(categories=["Cs"]), min_size=1, max_size=3))
@example("\ud800")
def test_what_cannot_be_stored_is_refused_as_a_fact_would_be(value: str) -> None:
    db = Database.from_text(PROGRAM)
    if storable(value):
        assert db.query("secret($v)", v=value) == []
        return
    with pytest.raises(FactError, match="no UTF-8 form"):
        db.insert("secret", (value,))
    for text in ("secret($v)", "secret($v), true", "x = $v"):
        with pytest.raises(QueryError, match=r"parameter `\$v`.*no UTF-8 form"):
            db.query(text, v=value)


@given(
    relation=st.sampled_from("nuf"),
    value=st.integers(-(2**65), 2**65)
    | st.floats()
    | st.booleans()
    | st.none()
    | st.text(max_size=3)
    | st.binary(),
)
@example("f", math.nan)
@example("f", -0.0)
@example("n", True)
def test_a_value_is_taken_exactly_if_it_is_as_a_fact(relation: str, value: Any) -> None:
    """The rules of kinds, and the form that is stored, are those of facts from Python."""
    db = Database.from_text(PROGRAM)
    try:
        db.insert(relation, (value,))
    except FactError:
        for text in (f"{relation}($v)", f"{relation}(x), x = $v"):
            with pytest.raises(QueryError, match=r"parameter `\$v`"):
                db.query(text, v=value)
        return
    assert len(db.query(f"{relation}($v)", v=value)) == 1
    assert len(db.query(f"{relation}($v), true", v=value)) == 1
    assert len(db.query(f"{relation}(x), x = $v", v=value)) == 1


# ── random programs ──────────────────────────────────────────────────────────────────────────


def with_parameters(body: str) -> tuple[str, dict[str, object]]:
    """A body with a parameter in place of each literal, and their values.

    A literal after `-` or `as(` stays, since its kind depends on what is beside it.
    """
    words = list(lex(body, Report(Source(body))))
    values: dict[str, object] = {}
    for at in range(len(words) - 1, -1, -1):
        word = words[at]
        before = {getattr(other, "value", "") for other in words[max(0, at - 2) : at]}
        if not isinstance(word, ast.Number | ast.Float | ast.String) or before & {"-", "as"}:
            continue
        name = f"p{at}"
        text = getattr(word, "text", None)
        values[name] = (
            word.value
            if isinstance(word, ast.String)
            else float(text or 0)
            if isinstance(word, ast.Float)
            else int(text or 0, 0)
        )
        body = f"{body[: word.pos]}${name} {body[word.end :]}"
    return body, values


@given(text=generators.programs(), inputs=generators.facts())
def test_a_query_with_parameters_finds_what_it_finds_with_their_values(text: str, inputs: Any) -> None:
    """The bodies of random rules, with literals in the text, and as parameters."""
    try:
        db = Database.from_text(text, facts=inputs)
    except (DatalogError, EvaluationError):
        assume(False)
    lines = [line for line in text.splitlines() if line.startswith("r") and ":-" in line]
    for body in (line.partition(":-")[2].strip().removesuffix(".") for line in lines):
        asked, values = with_parameters(f"{body}, true")
        note(f"{asked} {values}")
        try:
            expected = db.query(f"{body}, true").rows()
        except (QueryError, EvaluationError):
            continue
        try:
            assert db.query(asked, **values).rows() == expected
        except EvaluationError:  # whether an error is met depends on the order of a body
            continue
