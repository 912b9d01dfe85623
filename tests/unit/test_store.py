"""Databases in files: written steps come back, unwritten ones have not happened."""

from __future__ import annotations

import math
import os
import random
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from durable import PATHS, assert_right, grown, reopened, views

from everlog import Database, DatalogError, EvaluationError, FactError, FunctorError, RuleError, compile_text
from everlog.api.changes import Changes
from everlog.store import column_codec
from everlog.store.durable_database import DurableDatabase
from everlog.store.errors import (
    AlreadyOpen,
    NoSuchDatabase,
    NotWritten,
    OtherProgram,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


# ── what comes back ──────────────────────────────────────────────────────────────────────────


def test_relations_rules_and_step_numbers_come_back(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    assert db.step == 0
    db.insert("edge", [(2, 3), (3, 4)])
    db.delete("edge", (1, 2))
    db.insert("path", (9, 9))
    with db.transaction() as tx:
        tx.insert("edge", (4, 5))
        tx.delete("edge", (3, 4))
    before, rules = views(db), dict(db.rules)
    db = reopened(db)
    assert (views(db), dict(db.rules), db.step) == (before, rules, 4)
    assert_right(db)
    assert db.insert("edge", (5, 6))["path"] == {(5, 6): 1, (4, 6): 1}
    assert db.step == 5
    db.close()


def test_what_changes_nothing_is_no_step(path: Path) -> None:
    with Database.open(path, text=PATHS) as db:
        assert not db.insert("edge", (1, 2))
        assert not db.delete("edge", (7, 7))
        assert not db.apply("+edge(8, 8).\n-edge(8, 8).")
        assert db.step == 0
        db.insert("path", (1, 2))  # derived already, and now a base fact too: a step without changes
        assert db.step == 1
        db.delete("edge", (1, 2))
    with Database.open(path) as db:
        assert db.view("path") == [(1, 2)]


VALUES = """
.decl n(x:number)
.decl u(x:unsigned)
.decl f(x:float)
.decl s(x:symbol)
.decl all(n:number, u:unsigned, f:float, s:symbol)
.decl nothing()
.decl twice(x:float, s:symbol)
twice(x, cat(s, s)) :- all(_, _, x, s).
"""
NUMBERS = [0, 1, -1, 127, 128, -129, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)]
UNSIGNED = [0, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1]
FLOATS = [0.0, -0.0, 0.1, -1.5, 1e308, 5e-324, math.inf, -math.inf, math.nan, 1e16, 3.0]
SYMBOLS = [
    "",
    "a",
    "ä",
    "€😀",
    "a\0b",
    "tab\there\nline",
    '"quoted\\"',
    "\udc80\udcff",
    "\u2028",
    "NaN",
    "1",
    "a" * 5000,
]


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
def test_all_values_survive(path: Path, many: bool) -> None:
    """One by one, and in bulk: as a log, and as a checkpoint."""
    times = 40 if many else 1
    symbols = [s + "x" * i for s in SYMBOLS for i in range(times)]
    rows = {
        "n": [(x + i,) for x in NUMBERS for i in range(times) if x + i < 2**63],
        "u": [(x - i,) for x in UNSIGNED for i in range(times) if x >= i],
        "f": [(x + i,) for x in FLOATS for i in range(times)],
        "s": [(x,) for x in symbols],
        "all": [(NUMBERS[i % 10], UNSIGNED[i % 6], FLOATS[i % 11], s) for i, s in enumerate(symbols)],
        "nothing": [()],
    }
    db = Database.open(path, text=VALUES)
    for name, facts in rows.items():
        if many:
            db.insert(name, facts)
        else:
            for row in facts:
                db.insert(name, [row])
    before = views(db)
    assert len(before["f"]) == len({repr(x + 0.0) for (x,) in rows["f"]})
    for _ in range(2):
        db = reopened(db)
        assert repr(views(db)) == repr(before)  # also NaN, and which of 1 and 1.0
        assert_right(db)
        db.checkpoint()
    db.delete("f", [(math.nan,), (0.0,)])
    assert not db.holds("f", (math.nan,))
    assert not db.holds("f", (-0.0,))
    db = reopened(db)
    assert len(db.view("f")) == len(before["f"]) - 2
    db.close()


def test_columns_refuse_what_they_did_not_write() -> None:
    data = column_codec.encoded_columns([list(range(100)), [0.5] * 100, ["a", "b"] * 50])
    generator = random.Random(5)
    for _ in range(3000):
        wrong = bytearray(data)
        for _ in range(generator.randrange(1, 4)):
            wrong[generator.randrange(len(wrong))] = generator.randrange(256)
        cut = bytes(wrong[: generator.randrange(len(wrong) + 1)])
        with suppress(column_codec.BadRecord):  # or columns, right or wrong: nothing else
            column_codec.decoded_columns(cut)


# ── programs ─────────────────────────────────────────────────────────────────────────────────


def test_rules_that_come_and_go_come_back_under_their_names(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    db.add_rule(".decl near(x:number)  near(x) :- edge(x, _).  near(y) :- edge(_, y).")
    db.drop_rule("path#1")
    db.drop_rule("near#1")
    db.add_rule("path(y, x) :- edge(x, y).")
    rules, before = dict(db.rules), views(db)
    db = reopened(db)
    assert dict(db.rules) == rules
    assert sorted(rules) == ["near#2", "path#2", "path#3"]
    assert views(db) == before
    db.add_rule("near(0) :- edge(1, _).")
    assert "near#3" in db.rules
    db.drop_relation("near")
    db = reopened(db)
    assert "near" not in db.relations
    assert_right(db)
    db.close()


def test_a_rule_that_is_wrong_leaves_no_trace(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    with pytest.raises(DatalogError):
        db.add_rule("path(x, y) :- edje(x, y).")
    with pytest.raises(EvaluationError):
        db.add_rule("edge(x, 1 / (x - 1)) :- path(x, _).")
    assert db.step == 0
    db = reopened(db)
    assert len(db.rules) == 2
    db.close()


def test_facts_of_the_text_that_were_deleted_stay_deleted(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    db.delete("edge", (1, 2))
    db = reopened(db, text=PATHS)
    assert db.view("edge") == []
    db.add_rule("edge(5, 6).")
    db = reopened(db)
    assert db.view("edge") == [(5, 6)]
    db.close()


def test_the_same_program_again_changes_nothing(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    db.add_rule("edge(5, 6).")
    db = reopened(db, text=PATHS)  # the last program that was passed, whatever has changed since
    assert db.step == 1
    assert db.holds("edge(5, 6)")
    db.close()


def test_another_program_is_a_step(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    db.insert("edge", (2, 3))
    other = PATHS.replace("path(x, z) :- path(x, y), edge(y, z).", "path(y, x) :- edge(x, y).")
    db = reopened(db, text=other)
    assert db.step == 2
    assert db.view("path") == [(1, 2), (2, 1), (2, 3), (3, 2)]
    assert db.as_of(1).view("path") == [(1, 2), (1, 3), (2, 3)]
    db = reopened(db, text=other)
    assert db.step == 2
    db.close()


@pytest.mark.parametrize("change", [("edge(x:number, y:number)", "edge(x:number, y:symbol)"), ("edge", "line")])
def test_another_program_must_not_lose_facts(path: Path, change: tuple[str, str]) -> None:
    db = Database.open(path, text=PATHS)
    db.insert("edge", (2, 3))
    db.close()
    before = path.read_bytes()
    other = ".decl line(x:number, y:number)" if change[0] == "edge" else ".decl edge(x:number, y:symbol)"
    with pytest.raises(OtherProgram, match="2 base fact"):
        Database.open(path, text=other)
    assert path.read_bytes() == before
    with Database.open(path) as db:
        assert db.size("path") == 3


def test_a_program_without_text(path: Path) -> None:
    text = (
        VALUES
        + """
    .decl m(s:symbol, n:float)
    m(s, n) :- s(s), n = sum x : { f(x) }, s != "a", match("b.*", s).
    .decl best(x:number, y:number) choice-domain x
    best(x, y) :- n(x), y = range(0, 3), !n(y).
    .decl same(x:number, y:number) eqrel
    same(x, x + 1) :- n(x).
    .decl top(x:number, y:number)
    top(x, y) :- best(x, y).
    top(x, y) <= top(x, z) :- y < z.
    .limitsize top(n=50)
    f(0.5). f(nan()).
    .output m
    """.replace("f(nan()).", "")
    )
    db = Database.open(path, compile_text(text))
    db.insert("n", [(1,), (5,), (6,)])
    db.insert("s", [("b",), ("bc",)])
    before = views(db)
    db = reopened(db)
    assert views(db) == before
    assert db.program == compile_text(text)
    assert_right(db)
    with pytest.raises(RuleError, match="no text"):
        db.add_rule("n(1).")
    db = reopened(db, program=compile_text(text))
    db.close()
    with pytest.raises(OtherProgram):
        Database.open(path, text=PATHS)


def test_a_file_with_includes_and_functors(tmp_path: Path, path: Path) -> None:
    (tmp_path / "rules.dl").write_text("out(@twice(x)) :- in(x).\n")
    (tmp_path / "p.dl").write_text(
        '.functor twice(x:number):number\n.decl in(x:number)\n.decl out(x:number)\n#include "rules.dl"\n'
    )
    (tmp_path / "functors.py").write_text("def twice(x):\n    return 2 * x\n")
    db = Database.open(path, file=tmp_path / "p.dl")
    db.insert("in", (21,))
    db.close()
    with pytest.raises(FunctorError, match="twice"):
        Database.open(path)
    assert not path.with_name("data.db.lock").exists()
    with Database.open(path, functors={"twice": lambda x: 2 * x}) as db:
        assert db.view("out") == [(42,)]
        assert db.program.rules[0].origin.file.endswith("rules.dl")
    (tmp_path / "rules.dl").unlink()
    with Database.open(path, functors={"twice": lambda x: 3 * x}) as db:  # what rules say now
        assert db.view("out") == [(63,)]


# ── beginning ────────────────────────────────────────────────────────────────────────────────


def test_a_database_begins_with_facts(tmp_path: Path, path: Path) -> None:
    (tmp_path / "edge.facts").write_text("3\t4\n")
    with Database.open(path, text=PATHS + ".input edge\n", facts=tmp_path) as db:
        assert db.view("edge") == [(1, 2), (3, 4)]
        assert db.step == 0
    with Database.open(path) as db:
        assert db.view("edge") == [(1, 2), (3, 4)]
    with Database.open(tmp_path / "other.db", text=PATHS, facts={"edge": [(5, 6)]}) as db:
        assert db.size("path") == 2


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({}, NoSuchDatabase),
        ({"read_only": True}, NoSuchDatabase),
        ({"text": "p(x) :- q(x)."}, DatalogError),
        ({"text": PATHS, "facts": {"edge": [(1, "a")]}}, FactError),
        ({"text": PATHS + "path(1 / 0, x) :- edge(x, _)."}, EvaluationError),
        ({"text": PATHS, "history": -1}, ValueError),
        ({"text": PATHS, "program": compile_text(PATHS)}, ValueError),
        ({"text": PATHS, "read_only": True}, ValueError),
    ],
)
def test_what_cannot_begin_leaves_no_file(path: Path, how: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Database.open(path, **how)
    assert list(path.parent.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoSuchDatabase, match="no folder"):
        Database.open(tmp_path / "none" / "a.db", text=PATHS)


def test_two_names_are_one_file(tmp_path: Path, path: Path) -> None:
    with Database.open(path, text=PATHS):
        (tmp_path / "link.db").symlink_to(path)
        with pytest.raises(AlreadyOpen):
            Database.open(tmp_path / "link.db")


@pytest.mark.parametrize(
    "name", ["a b?mode=ro&x#1%20.db", "ünï.db", ":memory:", "'\".db", os.fsdecode(b"\xff.db")]
)
def test_any_name_of_a_file(tmp_path: Path, name: str) -> None:
    with Database.open(tmp_path / name, text=PATHS) as db:
        db.insert("edge", (2, 3))
    with Database.open(tmp_path / name) as db:
        assert db.size("path") == 3
    assert [p.name for p in tmp_path.iterdir()] == [name]


# ── positions of sources ─────────────────────────────────────────────────────────────────────


def test_positions_are_written_with_their_step(path: Path) -> None:
    db = Database.open(path, text=PATHS + "path(1 / x, x) :- edge(x, 99).")
    assert db.positions == {}
    db.apply("+edge(2, 3).", positions={"stream": "10"})
    with pytest.raises(EvaluationError):
        db.apply("+edge(0, 99).", positions={"stream": "20"})
    assert db.positions == {"stream": "10"}
    db.apply("+edge(2, 3).", positions={"stream": "30", "other": "é"})  # which changes nothing
    assert db.step == 1
    db = reopened(db)
    assert db.positions == {"stream": "30", "other": "é"}
    db.insert("edge", (5, 6))
    db.checkpoint()
    db = reopened(db)
    assert db.positions == {"stream": "30", "other": "é"}
    db.close()


# ── steps that cannot be written ─────────────────────────────────────────────────────────────


class FullDisk:
    """A journal that fails."""

    def __init__(self, file: Any) -> None:
        self.file = file

    @property
    def step(self) -> int:
        return int(self.file.step)

    def write(self, *given: object, **more: object) -> None:
        raise NotWritten("no room")

    write_positions = write


@pytest.mark.parametrize("strategies", [{}, {"tc": "ranked_python"}, {"*": "generations"}, {"*": "calibrated"}])
def test_a_step_that_is_not_written_is_undone(path: Path, strategies: dict[str, str]) -> None:
    """A step of any kind and size, also of rules: memory is as before, without notice."""
    db = grown(path, strategies=strategies)
    heard: list[Changes] = []
    db.subscribe("*", heard.append)
    before, rules, changes = views(db), dict(db.rules), db.changes
    with failing(db):
        for move in (
            lambda: db.insert("e", (3, 77)),
            lambda: db.delete("e", db.view("e")[0]),
            lambda: db.insert("tc", (5, 66)),
            lambda: db.insert("tc", db.view("tc")[0]),
            lambda: db.apply([("e", (3, 77), 1), ("e", (77, 5), 1), ("s", ("x", "a"), 1)]),
            lambda: db.insert("e", [(x, x + 1) for x in range(100, 300)]),
            lambda: db.delete("e", db.view("e")),
            lambda: db.add_rule("tc(x, x) :- e(x, _)."),
            lambda: db.add_rule("e(90, 91)."),
            lambda: db.drop_rule("tc#1"),
            lambda: db.drop_relation("words"),
        ):
            with pytest.raises(NotWritten):
                move()
            assert repr(views(db)) == repr(before)
            assert dict(db.rules) == rules
            assert db.changes is changes
            db._engine.check()
    assert not heard
    db.insert("e", (3, 77))
    assert_right(db)
    after = views(db)
    db = reopened(db)
    assert (repr(views(db)), db.step) == (repr(after), 1)
    db.close()


@contextmanager
def failing(db: DurableDatabase) -> Iterator[None]:
    db._writer.keep_in(FullDisk(db._file))
    try:
        yield
    finally:
        db._writer.keep_in(db._file)


def test_a_full_file_lets_go_on_when_there_is_room(path: Path) -> None:
    """SQLite's limit on pages: the step is undone, the next that fits is written."""
    db = Database.open(path, text=PATHS, facts={"edge": [(x, x + 1) for x in range(1000, 1100)]})
    connection = db._file._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    before = views(db)
    with pytest.raises(NotWritten, match=r"the disk is full.*the step is undone"):
        db.insert("edge", [(x, -x) for x in range(10, 9000)])
    assert views(db) == before
    db.insert("edge", (2, 3))
    steps = ((number, -99) for number in range(1000))
    with pytest.raises(NotWritten, match="the disk is full"):
        deque(map(partial(db.insert, "edge"), steps), maxlen=0)
    # A checksum takes one to six bytes, so a fact as short as the last one might still fit; these
    # digits do not.
    with pytest.raises(NotWritten, match="the disk is full"):
        db.insert("edge", (1234567890, -99))
    with pytest.raises(NotWritten, match="the file is as before"):
        db.checkpoint(state=True, history="all")
    before, step = views(db), db.step
    assert step > 5
    db = reopened(db)
    assert (views(db), db.step) == (before, step)
    db.insert("edge", [(x, -x) for x in range(500, 900)])
    db.checkpoint()
    before = views(db)
    db = reopened(db)
    assert views(db) == before
    db.close()
