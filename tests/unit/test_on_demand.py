"""Relations on demand from Python, in files and at the prompt."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from everlog import Database, EvaluationError, NoSuchStrategy

CLOSURE = """.decl edge(x:number, y:number)
.decl path(x:number, y:number) magic
path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z).
edge(1, 2).  edge(2, 3).  edge(3, 4).  edge(7, 8).
"""


def test_nothing_is_computed_until_somebody_asks() -> None:
    db = Database.from_text(CLOSURE)
    assert db.kept("path") == 0
    assert db.query("path(1, x)") == [(2,), (3,), (4,)]
    assert db.kept("path") == 0
    assert db.strategy_of("path") == "demand"
    assert db.view("path") == Database.from_text(CLOSURE.replace("magic", "")).view("path")
    assert db.check() == []


def test_a_subscription_asks_as_long_as_it_lasts() -> None:
    db, told = Database.from_text(CLOSURE), []
    with db.subscribe("path(1, x)", told.append):
        db.insert("edge", [(4, 5), (8, 9)])
        db.delete("edge", (2, 3))
        db.insert("edge", (9, 10))
        assert db.kept("path") == 1
    assert [str(changes) for changes in told] == [
        "+path(1, 5).",
        "-path(1, 3).\n-path(1, 4).\n-path(1, 5).",
    ]
    assert db.kept("path") == 0


def test_subscriptions_to_facts_of_any_relation() -> None:
    db, told = Database.from_text(".decl e(x:number, y:number)"), []
    with db.subscribe("e(1, x)", told.append), db.subscribe("e(x, x)", told.append):
        db.insert("e", [(1, 2), (2, 1)])
        db.insert("e", (3, 3))
        db.insert("e", (4, 5))
    assert list(map(str, told)) == ["+e(1, 2).", "+e(3, 3)."]


def test_watching_facts() -> None:
    async def read() -> list[str]:
        db = Database.from_text(CLOSURE)
        async with db.watch("path(7, x)") as steps:
            db.insert("edge", (8, 1))
            return str(await anext(steps)).splitlines()

    assert asyncio.run(read()) == ["+path(7, 1).", "+path(7, 2).", "+path(7, 3).", "+path(7, 4)."]


def test_proofs_of_what_nobody_asked_for() -> None:
    db = Database.from_text(CLOSURE)
    assert "edge(3, 4)   given" in db.why("path(1, 4)").text()
    assert "no fact edge(4, 1)" in db.why_not("path(4, 1)").text()
    assert [answer.step for answer in db.how("-path(1, 3)")]
    assert db.kept("path") == 0


def test_a_rule_fails_only_for_those_who_ask() -> None:
    text = ".decl n(x:number)  .decl q(x:number, y:number) magic  q(x, 10 / x) :- n(x)."
    db = Database.from_text(text)
    db.insert("n", [(0,), (2,)])
    assert db.query("q(2, y)") == [(5,)]
    with pytest.raises(EvaluationError):
        list(db.query("q(0, y)"))
    assert db.query("q(2, y)") == [(5,)]


def test_files_know_nothing_of_what_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "db.everlog"
    with Database.open(file, text=CLOSURE) as db:
        db.subscribe("path(1, x)", print)
        db.insert("edge", (8, 9))
        step = db.step
        assert db.query("path(7, x)") == [(8,), (9,)]
        assert db.step == step
        db.checkpoint(state=True)
    with Database.open(file) as db:
        assert db.kept("path") == 0
        assert db.query("path(7, x)") == [(8,), (9,)]
        assert db.check() == []


def test_rules_that_change_while_facts_are_watched() -> None:
    db, told = Database.from_text(CLOSURE), []
    with db.subscribe("path(1, x)", told.append):
        db.add_rule("path(x, x) :- edge(x, _).")
        db.drop_rule("path#2")
    assert list(map(str, told)) == ["+path(1, 1).", "-path(1, 3).\n-path(1, 4)."]


CROSSED = """.decl n(x:number, y:number)
.decl a(x:number)  a(x) :- n(x, y), c(y), d(y).  a(x) :- n(x, x).
.decl c(x:number)  c(x) :- n(x, y), !g(y).
.decl d(x:number)  d(x) :- n(x, y), a(y).
.decl g(x:number)  g(x) :- n(x, x).
.decl z(x:number)  z(x) :- n(x, _).
n(1, 2).  n(2, 3).  n(3, 4).  n(4, 4).
"""


def test_demand_through_a_negation_of_its_own_makes_relations_whole() -> None:
    """Asking shows it: the question is answered, and answered again."""
    whole = Database.from_text(CROSSED)
    for first in ("a(1), n(1, _)", "a(1)", "c(x), n(x, _)", "g(x), !a(x)"):
        db = Database.from_text(CROSSED, strategies={"*": "demand"})
        for question in (first, "a(x), n(x, _)", "c(x), n(x, _)", "g(x), !a(x)", "d(2)"):
            assert db.query(question) == whole.query(question)
            assert db.query(question) == whole.query(question)
    assert "through its own negation" in db.explain()


def test_base_facts_have_no_demand() -> None:
    with pytest.raises(NoSuchStrategy, match="no rule derives it"):
        Database.from_text(CLOSURE, strategies={"edge": "demand"})


def test_outputs_are_whole() -> None:
    db = Database.from_text(CLOSURE + ".output path")
    assert db.kept("path") == 7
    assert "not on demand: path, since it is an output" in db.explain()
