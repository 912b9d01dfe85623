"""The front door: `everlog.Database`, and the stream mode of `everlog run`."""

from __future__ import annotations

import enum
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import everlog
from everlog import (
    Changes,
    Database,
    DatalogError,
    EvaluationError,
    FactError,
    FactsError,
    FunctorError,
    LimitExceeded,
    Limits,
    NestedWrite,
    RuleError,
    Update,
)
from everlog.core.evaluate import reference
from everlog.core.proofs import verify

PATHS = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.output path
"""
VALUES = ".decl v(n:number, u:unsigned, f:float, s:symbol)"
DIVIDE = ".decl n(x:number)  .decl q(x:number)  q(100 / x) :- n(x).  n(5)."


@pytest.fixture
def db() -> Database:
    return Database.from_text(PATHS)


def rows_of(db: Database) -> dict[str, list[tuple[object, ...]]]:
    return {name: db.view(name) for name in db.relations}


# ── opening ──────────────────────────────────────────────────────────────────────────────────


def test_everything_that_is_exported_is_there() -> None:
    for name in everlog.__all__:
        assert getattr(everlog, name) is not None


def test_a_program_with_mistakes_is_refused_with_all_of_them() -> None:
    with pytest.raises(DatalogError) as caught:
        Database.from_text(".decl p(x:number)\np(y) :- q(y).\np(x) :- r(x).")
    assert len(caught.value.report.errors) == 2


def test_a_file_with_the_facts_that_its_inputs_name(tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "edge.facts").write_text("1\t2\n2\t3\n")
    (tmp_path / "p.dl").write_text(PATHS + ".input edge\n")
    assert Database.from_file(tmp_path / "p.dl").view("path") == []
    db = Database.from_file(tmp_path / "p.dl", facts=tmp_path / "facts")
    assert db.view("path") == [(1, 2), (1, 3), (2, 3)]
    assert db.given("edge") == [(1, 2), (2, 3)]
    assert not db.changes
    with pytest.raises(FactsError):
        Database.from_file(tmp_path / "p.dl", facts=tmp_path / "nowhere")
    with pytest.raises(OSError, match=r"missing\.dl"):
        Database.from_file(tmp_path / "missing.dl")


def test_initial_facts_are_checked() -> None:
    db = Database.from_text(PATHS, facts={"edge": [(1, 2), [2, 3]]})
    assert db.view("path") == [(1, 2), (1, 3), (2, 3)]
    with pytest.raises(FactError):
        Database.from_text(PATHS, facts={"edge": [(1, "a")]})
    with pytest.raises(FactError):
        Database.from_text(PATHS, facts={"edges": []})


def test_the_facts_of_the_text_are_base_facts(db: Database) -> None:
    db = Database.from_text(PATHS + "edge(1, 2).")
    assert db.given("edge") == [(1, 2)]
    assert db.delete("edge", (1, 2)) == {"edge": {(1, 2): -1}, "path": {(1, 2): -1}}


def test_a_checked_program_is_enough() -> None:
    db = Database(everlog.compile_text(PATHS))
    db.insert("edge", (1, 2))
    assert db.view("path") == [(1, 2)]
    with pytest.raises(RuleError, match="from_text"):
        db.add_rule("path(1, 1).")


def test_functors_are_python_functions(tmp_path: Path) -> None:
    text = ".functor twice(number):number  .decl p(x:number)  .decl q(x:number)  q(@twice(x)) :- p(x)."
    db = Database.from_text(text, functors={"twice": lambda x: 2 * x})
    assert db.insert("p", (21,))["q"] == {(42,): 1}
    with pytest.raises(FunctorError, match="@twice"):
        Database.from_text(text)
    (tmp_path / "p.dl").write_text(text)
    (tmp_path / "functors.py").write_text("def twice(x): return x + x\n")
    db = Database.from_file(tmp_path / "p.dl")
    assert db.insert("p", (4,))["q"] == {(8,): 1}


def test_macros_and_includes(tmp_path: Path) -> None:
    (tmp_path / "more.dl").write_text("p(N).\n")
    text = '.decl p(x:number)\n.include "more.dl"\n'
    db = Database.from_text(text, include_dirs=[tmp_path], macros={"N": "7"})
    assert db.view("p") == [(7,)]
    db.add_rule("p(N + 1).")
    assert db.view("p") == [(7,), (8,)]
    (tmp_path / "others.dl").write_text("p(N + 2).\n")
    db.add_rule('.include "others.dl"')
    assert db.view("p") == [(7,), (8,), (9,)]


# ── inserting and deleting ───────────────────────────────────────────────────────────────────


def test_rows_come_in_many_forms(db: Database) -> None:
    db.insert("edge", (1, 2))
    db.insert("edge", [2, 3])
    db.insert("edge", [(3, 4), [4, 5]])
    db.insert("edge", ((5, 6), (6, 7)))
    db.insert("edge", {(7, 8)})
    db.insert("edge", (pair for pair in [(8, 9)]))
    db.insert("edge(9, 10)")
    db.insert(" edge(10, 11). ")
    assert db.view("edge") == [(i, i + 1) for i in range(1, 11)]
    assert db.size("path") == 55
    db.delete("edge", [(1, 2), (2, 3)])
    db.delete("edge(3, 4)")
    db.delete("edge", (9, 10))
    db.delete("edge", [10, 11])
    assert db.view("edge") == [(i, i + 1) for i in range(4, 9)]


def test_no_rows_are_no_change(db: Database) -> None:
    for nothing in ([], (), set(), iter(())):
        assert not db.insert("edge", nothing)
    assert str(db.changes) == "(no change)"


def test_relations_without_columns() -> None:
    db = Database.from_text(".decl on()  .decl off()  off() :- !on().")
    assert db.view("off") == [()]
    assert db.insert("on", ()) == {"on": {(): 1}, "off": {(): -1}}
    assert not db.insert("on", [()])
    assert not db.insert("on", [])
    assert db.holds("on()")
    assert db.delete("on", [()]) == {"on": {(): -1}, "off": {(): 1}}


def test_redundant_updates_change_nothing(db: Database) -> None:
    db.insert("edge", (1, 2))
    assert not db.insert("edge", (1, 2))
    assert not db.delete("edge", (8, 9))
    assert not db.delete("path", (1, 2)), "derived, not given"
    assert db.view("path") == [(1, 2)]


def test_facts_may_be_given_to_a_relation_with_rules(db: Database) -> None:
    db.insert("edge", (2, 3))
    assert db.insert("path", (1, 2)) == {"path": {(1, 2): 1, (1, 3): 1}}
    assert db.given("path") == [(1, 2)]
    assert db.delete("path", (1, 2)) == {"path": {(1, 2): -1, (1, 3): -1}}


def test_a_step_is_ordered_and_its_changes_are_net(db: Database) -> None:
    assert db.apply(["+edge(1, 2).", "-edge(1, 2).", "+edge(3, 4)."]) == {"edge": {(3, 4): 1}, "path": {(3, 4): 1}}
    assert not db.apply(["-edge(3, 4).", "+edge(3, 4)"])
    assert not db.apply("")


def test_updates_come_in_many_forms(db: Database) -> None:
    step = [Update("edge", (1, 2)), "+edge(2, 3).", "edge(3, 4)", ("edge", [4, 5], 1), ("edge", (1, 2), -1)]
    db.apply(step)
    assert db.view("edge") == [(2, 3), (3, 4), (4, 5)]
    db.apply("-edge(2, 3).\n\n  +edge(5, 6)   // and a comment\n")
    assert db.view("edge") == [(3, 4), (4, 5), (5, 6)]


@pytest.mark.parametrize(
    "wrong",
    [5, ("edge", (1, 2)), ("edge", (1, 2), 2), ("edge", (1, 2), True), "+edge(1, x).", "+edge(1)", ("e", (), 1)],
)
def test_an_update_that_is_none(db: Database, wrong: object) -> None:
    before = rows_of(db)
    with pytest.raises(FactError):
        db.apply([("edge", (7, 7), 1), wrong])  # type: ignore[list-item]
    assert rows_of(db) == before


def test_an_error_in_a_step_leaves_no_trace() -> None:
    db = Database.from_text(DIVIDE)
    before = rows_of(db)
    told: list[Changes] = []
    db.subscribe("*", told.append)
    with pytest.raises(EvaluationError, match="division by zero"):
        db.insert("n", [(1,), (0,), (2,)])
    assert rows_of(db) == before
    assert db.given("n") == [(5,)]
    assert told == []
    assert db.insert("n", (1,)) == {"n": {(1,): 1}, "q": {(100,): 1}}


# ── values ───────────────────────────────────────────────────────────────────────────────────


class Colour(enum.IntEnum):
    RED = 3


class Name(str):
    pass


def test_values_are_stored_in_one_form() -> None:
    db = Database.from_text(VALUES)
    db.insert("v", (Colour.RED, 2**64 - 1, 7, Name("a")))
    (row,) = db.view("v")
    assert row == (3, 2**64 - 1, 7.0, "a")
    assert [type(value) for value in row] == [int, int, float, str]
    db.delete("v", row)
    db.insert("v", (-(2**63), 0, -0.0, "é\x80\n"))
    (row,) = db.view("v")
    assert math.copysign(1, row[2]) == 1.0  # type: ignore[arg-type]
    assert db.delete("v", (-(2**63), 0, 0, "é\x80\n"))


def test_every_nan_is_the_same() -> None:
    db = Database.from_text(".decl f(x:float)")
    assert db.insert("f", (float("nan"),))
    assert not db.insert("f", (math.nan,))
    assert db.holds("f", (float("nan"),))
    assert db.delete("f", (float("nan"),))
    assert db.size("f") == 0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("1", 1, 1.0, "a"), "v: column 1 (`n`:number): '1' is not a number"),
        ((True, 1, 1.0, "a"), "v: column 1 (`n`:number): True is not a number"),
        ((1.0, 1, 1.0, "a"), "v: column 1 (`n`:number): 1.0 is not a number"),
        ((None, 1, 1.0, "a"), "v: column 1 (`n`:number): None is not a number"),
        (
            (2**63, 1, 1.0, "a"),
            "v: column 1 (`n`:number): 9223372036854775808 is out of range for a 64-bit number",
        ),
        ((1, -1, 1.0, "a"), "v: column 2 (`u`:unsigned): -1 is out of range for a 64-bit unsigned"),
        ((1, 1, "x", "a"), "v: column 3 (`f`:float): 'x' is not a float"),
        ((1, 1, False, "a"), "v: column 3 (`f`:float): False is not a float"),
        ((1, 1, 10**400, "a"), "is out of range for a 64-bit float"),
        ((1, 1, 10**5000, "a"), "is out of range for a 64-bit float"),
        (
            (1, 1, 2**53 + 1, "a"),
            "v: column 3 (`f`:float): no float is exactly 9007199254740993; the nearest one is 9007199254740992",
        ),
        ((1, 1, 1.0, 5), "v: column 4 (`s`:symbol): 5 is not a symbol"),
        ((1, 1, 1.0, b"a"), "v: column 4 (`s`:symbol): b'a' is not a symbol"),
        ((1, 1, 1.0, "\ud800"), "has no UTF-8 form"),
        ((1, 1, 1.0), "has 4 column(s), 3 given: (1, 1, 1.0)"),
        ((1, 1, 1.0, "a", "b"), "has 4 column(s), 5 given"),
        ("abcd", "v: 'abcd' is not a row; write it as a tuple, such as (1, 1, 1.5, 'a')"),
        (7, "v: 7 is not a row"),
        (["abcd"], "has 4 column(s), 1 given"),
        (iter(["abcd"]), "'abcd' is not a row"),
    ],
)
def test_a_value_that_does_not_fit_is_reported_with_its_column(row: object, message: str) -> None:
    db = Database.from_text(VALUES)
    rows = row if isinstance(row, Iterator) else list(row) if isinstance(row, tuple) else row
    with pytest.raises(FactError) as caught:
        db.insert("v", row)
    assert message in str(caught.value)
    if not isinstance(rows, Iterator):
        with pytest.raises(FactError):
            db.delete("v", rows)
    assert db.size("v") == 0


def test_one_wrong_row_refuses_all(db: Database) -> None:
    with pytest.raises(FactError, match="column 2"):
        db.insert("edge", [(1, 2), (2, "b"), (3, 4)])
    assert db.size("edge") == 0


def test_a_unary_relation_says_how_rows_are_written() -> None:
    db = Database.from_text(".decl n(x:number)")
    with pytest.raises(FactError, match="several rows are a list of tuples"):
        db.insert("n", [1, 2, 3])
    db.insert("n", [1])
    assert db.view("n") == [(1,)]


def test_an_undefined_relation_is_reported_with_the_nearest_one(db: Database) -> None:
    for ask in (
        lambda: db.insert("edges", (1, 2)),
        lambda: db.delete("edges", (1, 2)),
        lambda: db.view("edges"),
        lambda: db.given("edges"),
        lambda: db.size("edges"),
        lambda: db.holds("edges", (1, 2)),
        lambda: db.subscribe("edges", print),
        lambda: db.apply([("edges", (1, 2), 1)]),
    ):
        with pytest.raises(FactError, match="undefined relation `edges`; did you mean `edge`"):
            ask()
    with pytest.raises(FactError, match="undefined relation"):
        db.insert("nothing(1)")


# ── transactions ─────────────────────────────────────────────────────────────────────────────


def test_a_transaction_is_one_step(db: Database) -> None:
    told: list[Changes] = []
    db.subscribe("path", told.append)
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2), (2, 3)])
        tx.insert("edge(3, 4)")
        tx.delete("edge", (3, 4))
        tx.apply(["+edge(4, 5).", "-edge(1, 2)."])
        assert db.view("edge") == []
        assert db.query("path(x, y)") == []
    assert tx.changes == {"edge": {(2, 3): 1, (4, 5): 1}, "path": {(2, 3): 1, (4, 5): 1}}
    assert db.changes is tx.changes
    assert told == [{"path": {(2, 3): 1, (4, 5): 1}}]


def test_an_exception_discards_a_transaction(db: Database) -> None:
    with pytest.raises(ZeroDivisionError), db.transaction() as tx:  # noqa: PT012  # the insert is the point
        tx.insert("edge", (1, 2))
        raise ZeroDivisionError
    assert db.view("edge") == []
    with pytest.raises(RuntimeError, match="discarded"):
        _ = tx.changes
    db.insert("edge", (3, 4))
    assert db.view("edge") == [(3, 4)]


def test_a_wrong_fact_is_reported_at_its_place(db: Database) -> None:
    with db.transaction() as tx:
        tx.insert("edge", (1, 2))
        with pytest.raises(FactError):
            tx.insert("edge", [(5, 6), (1, "b")])
        with pytest.raises(FactError):
            tx.apply(["+edge(7, 8).", "+edge(9)."])
        with pytest.raises(RuntimeError, match="open"):
            _ = tx.changes
    assert db.view("edge") == [(1, 2)]


def test_a_step_that_fails_at_the_end_of_a_transaction() -> None:
    db = Database.from_text(DIVIDE)
    with pytest.raises(EvaluationError), db.transaction() as tx:
        tx.insert("n", (0,))
    assert db.view("n") == [(5,)]
    with pytest.raises(RuntimeError, match="discarded"):
        _ = tx.changes
    db.insert("n", (1,))


def test_what_the_thread_writes_joins_its_open_transaction(db: Database, tmp_path: Path) -> None:
    """With any method, in order; nothing changes or is reported before the end."""
    db.insert("edge", [(1, 2), (5, 6)])
    db.save(tmp_path)
    told: list[Changes] = []
    db.subscribe("edge", told.append)
    with db.transaction() as tx:
        assert not db.insert("edge", (3, 4))
        assert not db.insert("edge", [(7, 7), (8, 8)])
        assert not db.insert("edge(9, 9)")
        tx.delete("edge", (7, 7))
        db.delete("edge", (1, 2))
        db.insert_all({"edge": [(1, 2), (2, 3)]})
        db.apply("-edge(1, 2).")
        db["edge"] += [(4, 4)]
        db["edge"] -= (4, 4)
        assert db.view("edge") == [(1, 2), (5, 6)]
        assert db.facts("path(5, x)") == [(5, 6)]
        assert told == []
    assert db.view("edge") == [(2, 3), (3, 4), (5, 6), (8, 8), (9, 9)]
    assert told == [tx.changes.only(["edge"])]
    assert tx.changes is db.changes
    with db.transaction():
        db.insert("edge", (0, 1))
        db["edge"] = [(0, 1), (5, 6)]  # replaces the base facts of that moment
    assert db.view("edge") == [(0, 1), (5, 6)]
    with db.transaction():
        db.delete("edge", (5, 6))
        db.load(tmp_path)
    assert db.view("edge") == [(1, 2), (5, 6)]


def test_an_exception_discards_all_that_joined_a_transaction(db: Database) -> None:
    def failing() -> None:
        with db.transaction() as tx:
            tx.insert("edge", (1, 2))
            db.insert("edge", (3, 4))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    with db.transaction(), pytest.raises(FactError):
        db.insert("edge", [(1, 2), (3, "4")])  # all of a call, or none
    assert db.view("edge") == []
    db.insert("edge", (5, 6))
    assert db.view("edge") == [(5, 6)]


def test_rules_are_not_changed_in_a_transaction_and_none_is_in_another(db: Database) -> None:
    with db.transaction() as tx:
        for write in (
            lambda: db.add_rule("edge(1, 1)."),
            lambda: db.drop_rule("path#1"),
            lambda: db.drop_relation("path"),
            lambda: db.transaction().__enter__(),
        ):
            with pytest.raises(NestedWrite, match="transaction is open"):
                write()
        tx.insert("edge", (3, 4))
    assert db.view("edge") == [(3, 4)]


def test_a_transaction_is_used_once_and_inside_its_block(db: Database) -> None:
    tx = db.transaction()
    with pytest.raises(NestedWrite, match="not open"):
        tx.insert("edge", (1, 2))
    with tx:
        tx.insert("edge", (1, 2))
    with pytest.raises(NestedWrite, match="not open"):
        tx.insert("edge", (2, 3))
    with pytest.raises(NestedWrite, match="used only once"), tx:
        pass
    db.insert("edge", (5, 6))


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def test_queries(db: Database) -> None:
    db.insert("edge", [(1, 2), (2, 3), (3, 1), (4, 1)])
    assert db.facts("path(4, x)") == [(4, 1), (4, 2), (4, 3)]
    assert db.facts("path(x, x)") == [(1, 1), (2, 2), (3, 3)]
    assert db.facts("path(_, 4)") == []
    assert db.facts("edge(_, _).") == db.facts("edge(x, y)") == db.view("edge")
    assert db.facts("edge(4, 1)") == [(4, 1)]
    assert db.facts("edge(1, 1)") == []
    db.delete("edge", (3, 1))
    assert db.facts("path(x, x)") == []
    assert db.facts("path(4, x)") == [(4, 1), (4, 2), (4, 3)]


def test_queries_with_values_of_every_kind() -> None:
    db = Database.from_text(VALUES)
    db.insert("v", [(-1, 2, 0.5, 'a "b"'), (-1, 3, float("inf"), "é"), (7, 3, float("nan"), "")])
    assert db.facts("v(-1, x, y, z)") == [(-1, 2, 0.5, 'a "b"'), (-1, 3, math.inf, "é")]
    assert db.facts("v(_, 3, _, s)") == [(-1, 3, math.inf, "é"), db.facts("v(7, _, _, _)")[0]]
    assert db.facts('v(_, _, 0.5, "a \\"b\\"")') == [(-1, 2, 0.5, 'a "b"')]
    assert db.facts("v(x, _, _, _)")[0][0] == -1


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("pth(1, x)", "undefined relation `pth`"),
        ("path(1)", "has 2 column"),
        ('path("a", x)', "number"),
        ("path(1, x", "path(1, x"),
        ("path(1, x), !edge(y, x)", "<query>:1:19"),
        ("path(x, y) :- edge(x, y)", "unexpected `:-`"),
        ("", "unexpected end of the query"),
        ("path(9223372036854775808, x)", "does not fit"),
    ],
)
def test_a_query_that_is_wrong(db: Database, pattern: str, message: str) -> None:
    with pytest.raises(FactError) as caught:
        db.query(pattern)
    assert message in str(caught.value)


def test_a_view_is_sorted_and_a_copy(db: Database) -> None:
    db.insert("edge", [(3, 1), (1, 2)])
    view = db.view("edge")
    db.insert("edge", (2, 2))
    assert view == [(1, 2), (3, 1)]
    assert list(db.rows("edge")) == [(1, 2), (2, 2), (3, 1)]


def test_what_a_database_says_about_itself(db: Database) -> None:
    db.insert("edge", [(1, 2), (2, 3)])
    assert list(db.relations) == ["edge", "path"]
    assert str(db.relations["edge"]) == "edge(x:number, y:number)"
    assert db.size("path") == 3
    assert db.holds("path(1, 3)")
    assert db.holds("path", [1, 3])
    assert not db.holds("path(3, 1)")
    assert db.rules == {
        "path#1": "path(x, y) :- edge(x, y).",
        "path#2": "path(x, z) :- path(x, y), edge(y, z).",
    }
    assert repr(db) == "<Database: 2 relations, 2 rules, 5 facts>"
    assert db.program.outputs[0].relation == "path"


# ── changes ──────────────────────────────────────────────────────────────────────────────────


def test_changes_print_retractions_then_additions_as_the_language_writes_them() -> None:
    db = Database.from_text('.decl b(x:float)  .decl a(s:symbol, u:unsigned)  a("old", 1).  b(2.5).')
    step = [("a", ("z", 1), 1), ("a", ('q"\n', 2), 1), ("a", ("old", 1), -1), ("b", (1e30,), 1), ("b", (2.5,), -1)]
    changes = db.apply(step)
    assert changes.text() == '-b(2.5).\n-a("old", 1u).\n+b(1.0e+30).\n+a("q\\"\\n", 2u).\n+a("z", 1u).'
    assert str(changes) == changes.text()
    assert changes.text(["b"]) == "-b(2.5).\n+b(1.0e+30)."
    assert changes.text(()) == "(no change)"


def test_changes_are_a_mapping(db: Database) -> None:
    changes = db.insert("edge", [(2, 3), (1, 2)])
    assert list(changes) == ["edge", "path"]
    assert len(changes) == 2
    assert "path" in changes
    assert dict(changes["edge"]) == {(1, 2): 1, (2, 3): 1}
    assert changes.inserted("path") == [(1, 2), (1, 3), (2, 3)]
    assert changes.deleted("path") == []
    assert repr(db.delete("edge", (2, 3)).only(["edge"])) == "Changes({'edge': {(2, 3): -1}})"
    nothing = db.apply([])
    assert not nothing
    assert nothing["path"] == {}
    assert "path" not in nothing
    with pytest.raises(KeyError):
        _ = nothing["undefined"]
    assert changes.inserted("edge") == [(1, 2), (2, 3)], "later steps leave them alone"


# ── subscriptions ────────────────────────────────────────────────────────────────────────────


def test_subscribers_get_changes_of_their_relation_in_order(db: Database) -> None:
    heard: list[tuple[str, Changes]] = []
    db.subscribe("path", lambda c: heard.append(("first", c)))
    db.subscribe("*", lambda c: heard.append(("all", c)))
    db.subscribe("edge", lambda c: heard.append(("edge", c)))
    db.subscribe(None, lambda c: heard.append(("none", c)))
    step = db.insert("edge", (1, 2))
    assert [who for who, _ in heard] == ["first", "all", "edge", "none"]
    assert heard[0][1] == {"path": {(1, 2): 1}}
    assert heard[1][1] == step
    heard.clear()
    db.insert("edge", (1, 2))
    assert heard == [], "no change, no call"
    db.insert("path", (7, 8))
    assert [who for who, _ in heard] == ["first", "all", "none"]


def test_a_subscription_ends_when_it_is_cancelled(db: Database) -> None:
    heard: list[Changes] = []
    subscription = db.subscribe("edge", heard.append)
    db.insert("edge", (1, 2))
    assert subscription.active
    subscription.cancel()
    subscription.cancel()
    assert not subscription.active
    db.insert("edge", (2, 3))
    with db.subscribe("edge", heard.append):
        db.insert("edge", (3, 4))
    db.insert("edge", (4, 5))
    assert heard == [{"edge": {(1, 2): 1}}, {"edge": {(3, 4): 1}}]


def test_a_subscription_cancelled_in_a_round_is_not_called_in_it(db: Database) -> None:
    heard: list[str] = []

    def first(changes: Changes) -> None:
        heard.append("first")
        second.cancel()
        db.subscribe("edge", lambda c: heard.append("third"))

    db.subscribe("edge", first)
    second = db.subscribe("edge", lambda c: heard.append("second"))
    db.insert("edge", (1, 2))
    assert heard == ["first"]
    db.insert("edge", (2, 3))
    assert heard == ["first", "first", "third"]


def test_failing_subscribers_hide_nothing_and_break_nothing(db: Database) -> None:
    heard: list[Changes] = []

    def fails(changes: Changes) -> None:
        raise ValueError("mine")

    def fails_too(changes: Changes) -> None:
        raise KeyError("also mine")

    db.subscribe("edge", fails)
    db.subscribe("edge", heard.append)
    db.subscribe("path", fails_too)
    with pytest.raises(ExceptionGroup, match="the step stays applied") as caught:
        db.insert("edge", (1, 2))
    assert [type(e) for e in caught.value.exceptions] == [ValueError, KeyError]
    assert heard == [{"edge": {(1, 2): 1}}]
    assert db.view("path") == [(1, 2)]
    assert db.changes == {"edge": {(1, 2): 1}, "path": {(1, 2): 1}}
    with pytest.raises(ExceptionGroup), db.transaction() as tx:
        tx.insert("edge", (2, 3))
    assert tx.changes["edge"] == {(2, 3): 1}
    with pytest.raises(ExceptionGroup):
        db.add_rule("edge(3, 4).  path(0, 0).")
    assert (3, 4) in db.view("path")
    assert (0, 0) in db.view("path")


def test_a_subscriber_reads_the_state_after_the_step_and_does_not_write(db: Database) -> None:
    seen: list[object] = []

    def reads(changes: Changes) -> None:
        seen.append(db.facts("path(1, x)"))
        with pytest.raises(NestedWrite, match="subscribers"):
            db.insert("edge", (5, 6))
        with pytest.raises(NestedWrite), db.transaction():
            pass

    db.subscribe("edge", reads)
    db.insert("edge", [(1, 2), (2, 3)])
    assert seen == [[(1, 2), (1, 3)]]
    db.insert("edge", (9, 9))


def test_a_functor_does_not_write() -> None:
    def spoil(x: int) -> int:
        db.insert("p", (x + 1,))
        return x

    text = ".functor spoil(number):number  .decl p(x:number)  .decl q(x:number)  q(@spoil(x)) :- p(x)."
    db = Database.from_text(text, functors={"spoil": spoil})
    with pytest.raises(Exception, match="a step is in progress"):
        db.insert("p", (1,))
    assert db.size("p") == db.size("q") == 0


# ── rules that come and go ───────────────────────────────────────────────────────────────────


def test_rules_are_added(db: Database) -> None:
    db.insert("edge", [(1, 2), (2, 3)])
    changes = db.add_rule("path(y, x) :- edge(x, y).")
    assert changes.inserted("path") == [(2, 1), (2, 2), (3, 2), (3, 3)]
    assert list(db.rules) == ["path#1", "path#2", "path#3"]
    assert db.changes is changes


def test_declarations_facts_and_directives_are_added(db: Database) -> None:
    changes = db.add_rule(
        ".decl far(x:number)\nfar(y) :- path(1, y), y > 2.\n.output far\nedge(1, 2). edge(2, 3)."
    )
    assert changes["far"] == {(3,): 1}
    assert db.given("edge") == [(1, 2), (2, 3)]
    assert [d.relation for d in db.program.outputs] == ["path", "far"]
    assert db.insert("far", (9,))["far"] == {(9,): 1}


def test_a_dropped_rule_takes_what_followed_from_it_and_leaves_names_alone(db: Database) -> None:
    db.insert("edge", [(1, 2), (2, 3)])
    db.add_rule("path(y, x) :- edge(x, y).")
    assert db.drop_rule("path#2").deleted("path") == [(1, 3), (2, 2), (3, 3)]
    assert list(db.rules) == ["path#1", "path#3"]
    db.drop_rule("path#1")
    assert db.view("path") == [(2, 1), (3, 2)]
    db.add_rule("path(x, x) :- edge(x, _).")
    assert list(db.rules) == ["path#3", "path#4"]
    assert db.view("edge") == [(1, 2), (2, 3)]


def test_a_rule_is_dropped_by_its_text_however_it_is_spaced(db: Database) -> None:
    db.insert("edge", [(1, 2), (2, 3)])
    assert db.drop_rule("path(x,z):-path(x,y),\n  edge(y,z).") == {"path": {(1, 3): -1}}
    with pytest.raises(RuleError, match="no statement"):
        db.drop_rule("path(x, z) :- path(x, y), edge(y, z).")


def test_statements_of_any_kind_are_dropped_by_their_text(db: Database) -> None:
    db.add_rule("edge(1, 2).\nedge(2, 3).\n.printsize edge\n.type node <: number")
    assert db.drop_rule("edge(1, 2).") == {"edge": {(1, 2): -1}, "path": {(1, 2): -1, (1, 3): -1}}
    db.drop_rule(".printsize edge")
    db.drop_rule(".type node <: number")
    assert db.program.printsizes == ()


def test_what_was_given_stays_when_rules_change(db: Database) -> None:
    db = Database.from_text(PATHS + "edge(1, 2).\nedge(2, 3).")
    db.delete("edge", (1, 2))
    db.insert("edge", (7, 8))
    db.insert("path", (0, 0))
    db.add_rule(".decl extra(x:number)  extra(x) :- edge(x, _).")
    assert db.view("edge") == [(2, 3), (7, 8)]
    assert db.view("extra") == [(2,), (7,)]
    db.drop_relation("extra")
    assert db.view("edge") == [(2, 3), (7, 8)]
    assert db.given("path") == [(0, 0)]
    assert db.delete("edge", (2, 3))["path"] == {(2, 3): -1}


def test_a_change_that_does_not_check_is_refused_with_diagnostics(db: Database) -> None:
    db.insert("edge", (1, 2))
    before, rules = rows_of(db), dict(db.rules)
    for wrong, code in [
        ("path(x, y) :- edge(x, _).", "DL040"),
        (".decl edge(x:number)", "DL02"),
        (".decl n(x:number)  n(x) :- edge(x, _), !m(x).  .decl m(x:number)  m(x) :- n(x).", "DL045"),
        ("path(x, ", "DL010"),
        ("#include <nothing.dl>\n", "DL10"),
    ]:
        with pytest.raises(DatalogError) as caught:
            db.add_rule(wrong)
        assert code in str(caught.value), str(caught.value)
    with pytest.raises(DatalogError) as caught:
        db.add_rule("\n\npath(x, y) :- edge(x, _).")
    assert "<added 1>:3:9" in str(caught.value)
    with pytest.raises(RuleError, match="relation `edge` is used by path#1, path#2: drop what uses it first"):
        db.drop_relation("edge")
    assert rows_of(db) == before
    assert dict(db.rules) == rules
    db.insert("edge", (2, 3))
    assert db.size("path") == 3


def test_a_change_that_fails_to_evaluate_leaves_everything(db: Database) -> None:
    db.insert("edge", (0, 2))
    before, rules = rows_of(db), dict(db.rules)
    with pytest.raises(EvaluationError, match="division by zero"):
        db.add_rule(".decl q(x:number)  q(1 / x) :- edge(x, _).")
    assert rows_of(db) == before
    assert dict(db.rules) == rules
    db.add_rule(".decl q(x:number)  q(1 / y) :- edge(_, y).")
    assert db.view("q") == [(0,)]


def test_relations_are_dropped_with_all_that_is_theirs() -> None:
    db = Database.from_text("""
        .decl a, b(x:number)
        .decl c(x:number)
        .output a, c
        a(1).  b(2).
        c(x) :- a(x).
        a(x + 1), c(x) :- b(x).
        .decl d(x:number)  d(x) :- c(x).
    """)
    db.insert("c", (9,))
    assert db.view("c") == [(1,), (2,), (3,), (9,)]
    with pytest.raises(RuleError, match="relation `c` is used by d#1"):
        db.drop_relation("c")
    told: list[Changes] = []
    db.subscribe("d", told.append)
    assert db.drop_relation("d").deleted("d") == [(1,), (2,), (3,), (9,)]
    assert str(told[0]) == "-d(1).\n-d(2).\n-d(3).\n-d(9)."
    db.drop_relation("c")
    assert list(db.relations) == ["a", "b"]
    assert [d.relation for d in db.program.outputs] == ["a"]
    assert db.view("a") == [(1,), (3,)]
    db.drop_relation("a")
    assert list(db.relations) == ["b"]
    assert db.view("b") == [(2,)]
    with pytest.raises(FactError):
        db.view("a")
    db.add_rule('.decl a(x:symbol)  a("new").')
    assert db.view("a") == [("new",)]


def test_what_cannot_be_dropped_by_itself() -> None:
    db = Database.from_text("""
        .decl a(x:number)  .decl p(x:number)  .decl q(x:number)
        p(x), q(x) :- a(x).
        p(x) :- a(x); q(x).
        .comp C { .decl r(x:number)  r(x) :- a(x). }
        .init c = C
    """)
    db.insert("a", (1,))
    with pytest.raises(RuleError, match=r"several rules of one statement \(p#1, q#1\)"):
        db.drop_rule("p#1")
    with pytest.raises(RuleError, match=r"\(p#2, p#3\)"):
        db.drop_rule("p#3")
    with pytest.raises(RuleError, match="component"):
        db.drop_rule("c.r#1")
    with pytest.raises(RuleError, match="component"):
        db.drop_relation("c.r")
    with pytest.raises(RuleError, match="no rule is named `p#9`"):
        db.drop_rule("p#9")
    with pytest.raises(RuleError, match="undefined relation"):
        db.drop_relation("z")
    with pytest.raises(RuleError, match="not one statement"):
        db.drop_rule("a(1). a(2).")
    with pytest.raises(DatalogError):
        db.drop_rule("p(x")
    db.drop_rule("p(x), q(x) :- a(x).")
    assert list(db.rules) == ["p#2", "p#3", "c.r#1"]
    assert db.drop_rule(".init c = C").deleted("c.r") == [(1,)]
    assert list(db.relations) == ["a", "p", "q"]


def test_rules_that_stay_are_the_same_rules() -> None:
    """The checker numbers generated variables; that must not make a rule look changed."""
    db = Database.from_text("""
        .decl a(x:number, y:number)  .decl p(n:number)  .decl q(n:number)
        p(n) :- n = count : { a(_, _) }.
        q(n) :- a(n, _), 1 = sum y : { a(n, y), y > 0 }.
        q(n) :- n = count : { a(1, _) }, a(_, n).
    """)
    kept = [rule for rule in db.program.rules if rule.name != "p#1"]
    db.drop_rule("p#1")
    assert list(db.program.rules) == kept


def test_functors_come_with_the_rules_that_need_them(db: Database) -> None:
    with pytest.raises(FunctorError):
        db.add_rule(".functor next(number):number  edge(1, @next(1)).")
    db.add_rule(".functor next(number):number  edge(1, @next(1)).", functors={"next": lambda x: x + 1})
    assert db.view("path") == [(1, 2)]
    db.add_rule("edge(2, @next(2)).")
    assert db.size("path") == 3


def test_queries_follow_the_program(db: Database) -> None:
    with pytest.raises(FactError):
        db.query("far(x)")
    db.add_rule(".decl far(x:number)  far(1).")
    assert db.query("far(x)") == [(1,)]
    db.drop_relation("far")
    with pytest.raises(FactError):
        db.query("far(x)")


# ── files ────────────────────────────────────────────────────────────────────────────────────


def test_facts_are_saved_and_loaded(db: Database, tmp_path: Path) -> None:
    db.insert("edge", [(1, 2), (2, 3)])
    db.insert("path", (8, 9))
    db.save(tmp_path / "new" / "folder")
    assert (tmp_path / "new" / "folder" / "edge.facts").read_text() == "1\t2\n2\t3\n"
    other = Database.from_text(PATHS)
    other.insert("edge", [(2, 3), (5, 6)])
    changes = other.load(tmp_path / "new" / "folder")
    assert changes["edge"] == {(1, 2): 1, (5, 6): -1}
    assert rows_of(other) == rows_of(db)
    assert other.given("path") == [(8, 9)]
    assert not other.load(tmp_path / "new" / "folder")


def test_saving_again_leaves_no_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    db = Database.from_text(".decl s(x:symbol)  .decl on()  on().")
    (tmp_path / "mine.txt").write_text("untouched")
    db.insert("s", ("plain",))
    db.save(tmp_path)
    db.insert("s", ("with\ta tab",))
    db.save(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.txt", "on.facts", "s.json"]
    db.delete("s", ("with\ta tab",))
    db.save(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.txt", "on.facts", "s.facts"]


def test_a_failed_save_leaves_the_folder(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db.insert("edge", (1, 2))
    db.save(tmp_path)
    before = {p.name: p.read_text() for p in tmp_path.iterdir()}
    db.insert("edge", (2, 3))
    monkeypatch.setattr("everlog.files.location.write_bytes", _full_after(1))
    with pytest.raises(FactsError, match="disk full"):
        db.save(tmp_path)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == before
    monkeypatch.undo()
    (tmp_path / "file").write_text("")
    with pytest.raises(FactsError):
        db.save(tmp_path / "file")
    (tmp_path / "path.facts").unlink()
    (tmp_path / "path.facts").mkdir()
    with pytest.raises(FactsError, match="it is a folder"):
        db.save(tmp_path)
    assert (tmp_path / "edge.facts").read_text() == before["edge.facts"]


def _full_after(files: int) -> object:
    left = [files]

    def write(path: Path, data: bytes) -> None:
        if not left[0]:
            raise FactsError("disk full")
        left[0] -= 1
        path.write_bytes(data)

    return write


def test_loading_is_one_step_and_touches_only_what_has_a_file(db: Database, tmp_path: Path) -> None:
    db.insert("edge", (1, 2))
    db.insert("path", (7, 7))
    (tmp_path / "edge.facts").write_text("3\t4\n")
    (tmp_path / "other.facts").write_text("no relation of ours\n")
    told: list[Changes] = []
    db.subscribe("edge", told.append)
    db.load(tmp_path)
    assert told == [{"edge": {(1, 2): -1, (3, 4): 1}}]
    assert db.given("path") == [(7, 7)]
    (tmp_path / "edge.facts").write_text("3\tx\n")
    with pytest.raises(FactsError, match=r"edge\.facts:1"):
        db.load(tmp_path)
    with pytest.raises(FactsError, match="no such folder"):
        db.load(tmp_path / "nowhere")
    assert db.view("edge") == [(3, 4)]


_numbers = st.integers(-(2**63), 2**63 - 1)
_unsigned = st.integers(0, 2**64 - 1)
_symbols = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from('\t\n\r"\\\0\x1f\udc8b\udcff\u2028,[]')
).filter(lambda s: _sound(s))


def _sound(text: str) -> bool:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") == text


@given(
    rows=st.lists(st.tuples(_numbers, _unsigned, st.floats(), _symbols)),
    words=st.lists(st.tuples(_symbols)),
    on=st.booleans(),
)
def test_whatever_is_saved_comes_back(rows: list[object], words: list[object], on: bool) -> None:
    text = VALUES + "  .decl w(s:symbol)  .decl on()"
    db = Database.from_text(text, facts={"v": rows, "w": words, "on": [()] if on else []})
    with tempfile.TemporaryDirectory() as folder:
        db.save(folder)
        other = Database.from_text(text, facts={"w": [("old",)], "on": [()]})
        other.load(folder)
        assert not other.load(folder)
    assert str(rows_of(other)) == str(rows_of(db))


@given(rows=st.lists(st.tuples(_numbers, _unsigned, st.floats(), _symbols)))
def test_the_text_of_changes_is_a_step(rows: list[object]) -> None:
    db = Database.from_text(VALUES)
    told = db.insert("v", rows).text()
    other = Database.from_text(VALUES)
    if told != "(no change)":
        other.apply(told)
    assert str(rows_of(other)) == str(rows_of(db))


# ── guards, reasons, numbers ─────────────────────────────────────────────────────────────────


def test_limits_end_a_step_and_leave_no_trace() -> None:
    text = ".decl n(x:number)  n(x + 1) :- n(x)."
    for limits in (Limits(iterations=50), Limits(facts=50)):
        db = Database.from_text(text, limits=limits)
        with pytest.raises(LimitExceeded):
            db.insert("n", (1,))
        assert db.view("n") == []


def test_progress_is_reported() -> None:
    heard: list[tuple[str, int, int]] = []
    db = Database.from_text(PATHS, progress=lambda *told: heard.append(told))
    db.insert("edge", [(i, i + 1) for i in range(50)])
    assert any("path" in unit for unit, _, _ in heard)


def test_reasons_take_facts_in_both_forms(db: Database) -> None:
    db.insert("edge", [(1, 2), (2, 3)])
    assert db.why("path(1, 3)").text() == db.why("path", (1, 3)).text()
    assert db.why_not("path(3, 1)").text() == db.why_not("path", [3, 1]).text()
    with pytest.raises(FactError):
        db.why("pat(1, 3)")
    with pytest.raises(FactError):
        db.why_not("path", (1, "a"))


def test_explanations_name_the_strategy_of_each_unit(db: Database) -> None:
    lines = db.explain().splitlines()
    assert lines[:2] == ["facts: edge", "unit 1: path"]
    assert lines[2].startswith("  kept by flow: ")
    assert [line for line in lines[3:] if not line.startswith("    ")] == [
        "  path#1  path(x, y) :- edge(x, y).",
        "  path#2  path(x, z) :- path(x, y), edge(y, z).",
        "  systems of auxiliary relations that fit:",
    ]
    assert db.explain("path#2").startswith(
        "path#2  path(x, z) :- path(x, y), edge(y, z).\n  class        recursive"
    )


def test_statistics_are_a_table(db: Database) -> None:
    db.insert("edge", [(1, 2), (2, 3)])
    stats = db.stats()
    assert {r.name: r.facts for r in stats.relations} == {"edge": 2, "path": 3}
    assert all(r.bytes > 0 for r in stats.relations)
    assert "path#2" in str(stats)


# ── rules and facts that come and go, all together ───────────────────────────────────────────

_DECLARED = """
.decl a(x:number, y:number)
.decl b(x:number)
.decl p(x:number, y:number)
.decl q(x:number)
.decl s(x:number, n:number)
.decl e(x:number, y:number) eqrel
a(1, 2).
a(2, 3).
b(1).
"""
_STATEMENTS = [
    "p(x, y) :- a(x, y).",
    "p(x, z) :- p(x, y), a(y, z).",
    "p(x, z) :- p(x, y), p(y, z).",
    "p(x, 10 / y) :- a(x, y).",
    "p(x, y), q(x) :- e(x, y), y < 3.",
    "q(x) :- b(x), !p(x, _).",
    "q(x) :- p(x, x).",
    "q(x) :- b(x); a(x, x).",
    "q(y) :- e(1, y).",
    "q(x) :- s(x, n), n > 1.",
    "s(x, n) :- b(x), n = count : { p(x, _) }.",
    "s(x, n) :- b(x), n = sum y : { a(x, y) }.",
    "s(x, n) :- e(x, _), n = max y : { e(x, y) }.",
    "b(x) :- a(x, _), x > 2.",
    "e(x, y) :- a(x, y), b(x).",
    "a(4, 4).",
    "b(5).",
    "p(7, 7).",
]
_updates = st.tuples(
    st.sampled_from("abpe"), st.tuples(*[st.integers(0, 5)] * 2), st.sampled_from([1, 1, -1])
).map(lambda u: (u[0], u[1][:1] if u[0] == "b" else u[1], u[2]))


class Living(RuleBasedStateMachine):
    """One database under random changes.

    After each of them its relations are those of the reference evaluator on the base facts; the
    base facts are those inserted and not deleted; changes sum to the relations; a refused change
    left no trace.
    """

    def __init__(self) -> None:
        super().__init__()
        self.db = Database.from_text(_DECLARED)
        self.told = {name: set(self.db.view(name)) for name in self.db.relations}
        self.given = {name: set(self.db.given(name)) for name in self.db.relations}
        self.db.subscribe("*", self.hear)

    def hear(self, changes: Changes) -> None:
        for name in changes:
            assert self.told[name].isdisjoint(changes.inserted(name))
            assert self.told[name].issuperset(changes.deleted(name))
            self.told[name].difference_update(changes.deleted(name))
            self.told[name].update(changes.inserted(name))

    def attempt(self, change: Callable[[], object]) -> bool:
        before = rows_of(self.db), dict(self.db.rules)
        try:
            change()
        except (EvaluationError, DatalogError, RuleError):
            assert (rows_of(self.db), dict(self.db.rules)) == before
            return False
        return True

    @rule(step=st.lists(_updates, min_size=1, max_size=5))
    def small_step(self, step: list[tuple[str, tuple[int, ...], int]]) -> None:
        if self.attempt(lambda: self.db.apply(step)):
            for name, row, sign in step:
                (self.given[name].add if sign > 0 else self.given[name].discard)(row)

    @rule(rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=64, max_size=80, unique=True))
    def large_step(self, rows: list[tuple[int, int]]) -> None:
        if self.attempt(lambda: self.db.insert("a", rows)):
            self.given["a"].update(rows)

    @rule(text=st.sampled_from(_STATEMENTS))
    def add(self, text: str) -> None:
        if self.attempt(lambda: self.db.add_rule(text)) and ":-" not in text:
            self.given[text[0]].add(eval(text[1:-1].replace(")", ",)")))

    @rule(text=st.sampled_from(_STATEMENTS))
    def drop(self, text: str) -> None:
        if self.attempt(lambda: self.db.drop_rule(text)) and ":-" not in text:
            self.given[text[0]].discard(eval(text[1:-1].replace(")", ",)")))

    @rule(data=st.data())
    def drop_by_name(self, data: st.DataObject) -> None:
        if self.db.rules:
            name = data.draw(st.sampled_from(sorted(self.db.rules)))
            self.attempt(lambda: self.db.drop_rule(name))

    @rule(data=st.data())
    def prove(self, data: st.DataObject) -> None:
        facts = [(name, row) for name, rows in rows_of(self.db).items() for row in rows]
        if facts:
            name, row = data.draw(st.sampled_from(facts))
            verify(self.db._engine, self.db.why(name, row))

    @invariant()
    def is_current(self) -> None:
        self.db._engine.check()
        assert {name: set(self.db.given(name)) for name in self.db.relations} == self.given
        expected = reference.evaluate(evolve(self.db.program, facts={}), self.given)
        now = {name: set(self.db.view(name)) for name in self.db.relations}
        assert now == {name: set(rows) for name, rows in expected.items()}
        assert now == self.told


Living.TestCase.settings = settings(
    max_examples=max(10, settings().max_examples // 3), stateful_step_count=15, deadline=None
)
TestLiving = Living.TestCase


# ── the stream mode of `everlog run` ─────────────────────────────────────────────────────────


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.dl").write_text(PATHS + ".input edge\n.printsize edge\n")
    (tmp_path / "edge.facts").write_text("1\t2\n")
    return tmp_path


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "everlog", "run", "p.dl", "--updates", "-", *arguments],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().rstrip("\n") for _ in range(count)]


def test_a_live_pipe_is_answered_step_by_step(folder: Path) -> None:
    with started(folder) as process:
        assert process.stdin is not None
        process.stdin.write("+edge(2, 3).\n\n")
        assert lines(process, 2) == ["+path(1, 3).", "+path(2, 3)."]
        process.stdin.write("// nothing new\n+edge(2, 3)\n\n")
        assert lines(process, 1) == ["(no change)"]
        process.stdin.write("-edge(1, 2).\n+edge(3, 4).\n\n")
        assert lines(process, 4) == ["-path(1, 2).", "-path(1, 3).", "+path(2, 4).", "+path(3, 4)."]
        process.stdin.write("+edge(9, 9).\n")  # the end of the input ends the step
        out, err = process.communicate(timeout=30)
    assert (out, err, process.returncode) == ("+path(9, 9).\nedge\t3\n", "", 0)
    assert (folder / "path.csv").read_text() == "2\t3\n2\t4\n3\t4\n9\t9\n"


def test_an_interruption_leaves_the_files_of_the_last_complete_step(folder: Path) -> None:
    with started(folder) as process:
        assert process.stdin is not None
        process.stdin.write("+edge(2, 3).\n\n+edge(7, 8).\n")
        assert lines(process, 2) == ["+path(1, 3).", "+path(2, 3)."]
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)  # before the pipe is closed, which would end the stream as well
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == "interrupted\n"
    assert (folder / "path.csv").read_text() == "1\t2\n1\t3\n2\t3\n"


def test_a_reader_that_has_gone_ends_the_stream_quietly(folder: Path) -> None:
    with started(folder) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("+edge(2, 3).\n\n")
        lines(process, 2)
        process.stdout.close()
        process.stdin.write("+edge(3, 4).\n\n")
        process.stdin.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(timeout=30) == 1
    assert (folder / "path.csv").read_text().count("\n") == 6


def test_bytes_that_are_no_utf8_go_through(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(".decl s(x:symbol)\n.decl t(x:symbol)\n.output t\nt(x) :- s(x).\n")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "everlog", "run", "p.dl", "--updates", "-"],
        cwd=tmp_path,
        input=b'+s("\xff\xc3\xa9").\n\n-s("\xff\xc3\xa9").\n+s("\xe2\x80\xa8").',
        capture_output=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.stdout == b'+t("\xff\xc3\xa9").\n-t("\xff\xc3\xa9").\n+t("\xe2\x80\xa8").\n'
    assert (tmp_path / "t.csv").read_bytes() == b"\xe2\x80\xa8\n"


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ("w(9007199254740993)", "no float is exactly 9007199254740993"),
        ("w(-9007199254740993)", "no float is exactly -9007199254740993"),
        ("w(1.0e400)", "`1.0e400` is too large for a 64-bit float"),
        ("w(1.0e-400)", "`1.0e-400` is too small for a 64-bit float"),
    ],
)
def test_a_literal_that_is_no_float_is_refused_in_facts_and_programs(fact: str, message: str) -> None:
    db = Database.from_text(".decl w(x:float)")
    for write in (db.insert, lambda text: db.apply(f"+{text}.\n")):
        with pytest.raises(FactError, match=re.escape(message)):
            write(fact)
    assert db.size("w") == 0
    for program in (f".decl w(x:float)\n{fact}.", f".decl w(x:float)\n.decl v()\nv().\n{fact} :- v()."):
        with pytest.raises(DatalogError, match="DL035"):
            Database.from_text(program)
    assert Database.from_text(".decl w(x:float)\nw(9007199254740992). w(0.0e9).").size("w") == 2
