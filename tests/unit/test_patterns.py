"""Rows by name, deletes and updates by pattern, upserts by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlog import Database, SharedDatabase
from everlog.api.lifecycle import NestedWrite
from everlog.core.program.fact_rows import FactError
from everlog.repl.loop import run_script
from everlog.repl.session import Session

TEXT = """
.decl emp(name:symbol, dept:symbol, salary:number)
.decl rich(name:symbol)
rich(n) :- emp(n, _, s), s > 3.
rich(n) :- emp(n, _, s), s > 10.
"""
ROWS = [("ann", "it", 5), ("bob", "it", 2), ("bob", "hr", 20)]


@dataclass
class Emp:
    name: str
    dept: str
    salary: int


@attrs.frozen
class Other:
    dept: str
    salary: int
    name: str


def database() -> Database:
    return Database.from_text(TEXT, facts={"emp": ROWS})


def said(*lines: str) -> list[str]:
    out = StringIO()
    session = Session(out=out)
    run_script(session, [*TEXT.split("\n"), *(f"emp{row}.".replace("'", '"') for row in ROWS)], "script")
    before = len(out.getvalue())
    run_script(session, lines, "script")
    return out.getvalue()[before:].rstrip().split("\n")


# ── rows by name ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "rows",
    [
        Emp("cy", "it", 1),
        [Emp("cy", "it", 1)],
        Other("it", 1, "cy"),
        {"salary": 1, "name": "cy", "dept": "it"},
        [{"salary": 1, "name": "cy", "dept": "it"}],
        iter([{"salary": 1, "name": "cy", "dept": "it"}]),
        [Emp("cy", "it", 1), ("cy", "it", 1)],
        {"name": ["cy"], "dept": ["it"], "salary": [1]},
    ],
    ids=range(8),
)
def test_rows_may_have_names(rows: object) -> None:
    db = Database.from_text(TEXT)
    assert db.insert("emp", rows)["emp"] == {("cy", "it", 1): 1}
    assert db["emp"].to_dicts() == [{"name": "cy", "dept": "it", "salary": 1}]
    assert db["emp"].to_objects(Emp) == [Emp("cy", "it", 1)]
    assert db["emp"].to_objects(Other) == [Other("it", 1, "cy")]


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda db: db.insert("emp", {"name": "d"}), "column `dept` is missing from {'name': 'd'}"),
        (lambda db: db.insert("emp", {"nam": "d"}), "no column is named `nam`; did you mean `name`?"),
        (lambda db: db.delete("emp", nam="d"), "no column is named `nam`; did you mean `name`?"),
        (lambda db: db.delete("emp", salary="d"), "column 3 (`salary`:number): 'd' is not a number"),
        (lambda db: db.delete("emp", ROWS, name="d"), "pass rows, or values of columns, not both"),
        (lambda db: db.delete("emp(x, _, 3)"), 'write "x" if it is a symbol, `_` for any value'),
        (lambda db: db.update("emp", {"wage": 3}, name="bob"), "no column is named `wage`"),
        (lambda db: db.upsert("emp", ROWS), "emp has no key: pass key=…, or declare one"),
        (lambda db: db.upsert("emp", ROWS, key="id"), "no column is named `id`"),
    ],
)
def test_what_does_not_fit_changes_nothing(act: Callable[[Database], object], told: str) -> None:
    db = database()
    with pytest.raises(FactError) as caught:
        act(db)
    assert told in str(caught.value)
    assert db.view("emp") == sorted(ROWS)


# ── patterns ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("delete", "gone"),
    [
        (lambda db: db.delete("emp", name="bob"), ROWS[1:]),
        (lambda db: db.delete("emp", name="bob", dept="it"), [ROWS[1]]),
        (lambda db: db.delete('emp("bob", _, _)'), ROWS[1:]),
        (lambda db: db.delete("emp(_, _, _)."), ROWS),
        (lambda db: db["emp"].delete(dept="it"), ROWS[:2]),
        (lambda db: db.delete("emp(x, x, _)"), []),
    ],
)
def test_all_base_facts_that_match_are_deleted(delete: Callable[[Database], Any], gone: list[Any]) -> None:
    db = database()
    changes = delete(db)
    assert changes.deleted("emp") == sorted(gone)
    assert db.view("emp") == sorted(set(ROWS) - set(gone))
    assert bool(changes.note) == (not gone)
    assert not db.check()


def test_a_pattern_that_matches_nothing_says_so() -> None:
    db = database()
    assert str(db.delete("emp", name="zed")) == "(no change: no base fact of `emp` matches)"
    assert str(db.update("emp", {"salary": 1}, name="zed")) == "(no change: no base fact of `emp` matches)"
    assert said('-emp("zed", _, _).') == ['`-emp("zed", _, _).`: no base fact of `emp` matches']


def test_a_delete_of_a_derived_fact_names_its_rules() -> None:
    db = database()
    told = 'rich("bob") is derived, by rich#1, rich#2'
    for delete in (
        lambda: db.delete("rich", ("bob",)),
        lambda: db.delete("rich", ["bob"]),
        lambda: db.delete('rich("bob")'),
        lambda: db["rich"].delete(("bob",)),
    ):
        assert str(delete()) == f"(no change: {told})"
    assert str(db.delete("rich", name="bob")) == f"(no change: no base fact of `rich` matches; {told})"
    assert said('-rich("bob").') == [f"0 changed: {told}; `.why` proves it, `.how` finds what to delete instead"]
    assert str(db.delete("emp", ("zed", "it", 1))) == "(no change)"


def test_patterns_at_the_prompt_follow_the_order_of_a_step() -> None:
    assert said('emp("cy", "it", 1). -emp(_, "it", _). emp("d", "it", 1).', "emp(n, _, _)?")[-3:] == [
        "bob",
        "d",
        "(2 rows)",
    ]
    assert said("begin", 'emp("cy", "it", 1).', '-emp(_, "it", _).', "commit")[:2] == [
        '-emp("ann", "it", 5).',
        '-emp("bob", "it", 2).',
    ]
    assert 'write "x" if it is a symbol' in said("-emp(x, _, _).")[0]
    assert "column `salary` of `emp` takes a number" in said('-emp(_, _, "a").')[0]


names = st.sampled_from("ab")
rows = st.tuples(names, names, st.integers(0, 2))


@given(st.lists(rows), st.lists(st.tuples(st.sampled_from(["delete", "update", "upsert"]), rows)))
def test_patterns_mean_what_a_list_comprehension_means(start: list[Any], steps: list[Any]) -> None:
    db = Database.from_text(TEXT, facts={"emp": start})
    there = set(start)
    for step, (name, dept, salary) in steps:
        match step:
            case "delete":
                db.delete("emp", name=name, salary=salary)
                there = {row for row in there if (row[0], row[2]) != (name, salary)}
            case "update":
                db.update("emp", {"salary": salary}, name=name)
                there = {(*row[:2], salary) if row[0] == name else row for row in there}
            case _:
                db.upsert("emp", (name, dept, salary), key=["name", "dept"])
                there = {row for row in there if row[:2] != (name, dept)} | {(name, dept, salary)}
        assert set(db.view("emp")) == there
    assert not db.check()


# ── transactions, files, threads ─────────────────────────────────────────────────────────────


def test_a_transaction_matches_what_it_has_so_far(tmp_path: Path) -> None:
    for db in (database(), Database.open(tmp_path / "emp.db", text=TEXT, facts={"emp": ROWS})):
        with db.transaction() as tx:
            tx.delete("emp", name="bob")
            tx.insert("emp", ("bob", "it", 1))
            tx.update("emp", {"salary": 2}, name="bob")
            tx.upsert("emp", ("ann", "it", 6), key="name")
            db.delete("emp", dept="hr")
        assert db.view("emp") == [("ann", "it", 6), ("bob", "it", 2)]


def test_a_choice_domain_is_a_key() -> None:
    db = Database.from_text('.decl emp(name:symbol, salary:number) choice-domain name  emp("a", 1).')
    assert str(db.upsert("emp", ("a", 2))) == '-emp("a", 1).\n+emp("a", 2).'
    assert db.view("emp") == [("a", 2)]
    assert not db.upsert("emp", ("a", 2))


def test_a_shared_database_takes_patterns_outside_transactions() -> None:
    shared = SharedDatabase(database())
    assert len(shared.delete("emp", name="ann")["emp"]) == 1
    assert len(shared.update("emp", {"salary": 0}, dept="it")["emp"]) == 2
    assert len(shared.upsert("emp", ("bob", "hr", 1), key=("name", "dept"))["emp"]) == 2
    with shared.transaction(), pytest.raises(NestedWrite):
        shared.update("emp", {"salary": 0})
