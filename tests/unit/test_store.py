"""Databases in files: what is written comes back, and what is not ours is left alone."""

from __future__ import annotations

import math
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from everlog import Database, DatalogError, EvaluationError, FactError, FunctorError, RuleError, compile_text
from everlog.changes import Changes
from everlog.core import reference
from everlog.store import columns, states
from everlog.store.database import DurableDatabase
from everlog.store.errors import (
    AlreadyOpen,
    Damaged,
    ForeignFile,
    NewerFormat,
    NoSuchDatabase,
    NoSuchStep,
    NotWritten,
    OtherProgram,
    ReadOnly,
    StoreError,
)
from everlog.transactions import NestedWrite

PATHS = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
edge(1, 2).
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


def views(db: Database) -> dict[str, list[Any]]:
    return {name: db.view(name) for name in db.relations}


def assert_right(db: Database) -> None:
    """Every relation is what the reference evaluator makes of the given facts; the engine's invariants hold."""
    from attrs import evolve

    program = evolve(db.program, facts={})
    expected = reference.evaluate(program, {name: db.given(name) for name in db.relations})
    assert {name: set(db.view(name)) for name in db.relations} == {
        name: set(rows) for name, rows in expected.items()
    }
    db._engine.check()


def reopened(db: DurableDatabase, **how: Any) -> DurableDatabase:
    db.close()
    return Database.open(db.path, **how)


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
        db.insert("path", (1, 2))  # derived already, and now given as well: nothing is told, and yet it is a step
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
    data = columns.encoded_columns([list(range(100)), [0.5] * 100, ["a", "b"] * 50])
    generator = random.Random(5)
    for _ in range(3000):
        wrong = bytearray(data)
        for _ in range(generator.randrange(1, 4)):
            wrong[generator.randrange(len(wrong))] = generator.randrange(256)
        cut = bytes(wrong[: generator.randrange(len(wrong) + 1)])
        with suppress(columns.BadRecord):  # or columns, right or wrong: nothing else
            columns.decoded_columns(cut)


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
    db = reopened(db, text=PATHS)  # which is what was given last, whatever has come since
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
    with pytest.raises(OtherProgram, match="2 given fact"):
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


# ── who may write ────────────────────────────────────────────────────────────────────────────

HOLD = """
import sys
from everlog import Database
db = Database.open(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
"""


def holding(path: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n"
    return child


def test_a_second_writer_is_told_who_is_the_first(path: Path) -> None:
    Database.open(path, text=PATHS).close()
    with holding(path) as child:
        with pytest.raises(AlreadyOpen, match=f"process {child.pid}, writes to it since .* read_only=True"):
            Database.open(path)
        with Database.open(path, read_only=True) as reader:
            assert reader.size("path") == 1
        child.kill()
    with Database.open(path) as db:  # the lock file is there, and nobody holds it
        assert db.size("path") == 1
        with pytest.raises(AlreadyOpen, match=f"this process, {os.getpid()},"):
            Database.open(path)
    assert not path.with_name("data.db.lock").exists()


def test_a_database_that_is_forgotten_gives_its_lock_back(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    del db
    import gc

    gc.collect()
    Database.open(path).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_neither_writes_nor_holds_the_lock(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            db.insert("edge", (3, 4))
        except StoreError as problem:
            os.write(write, str(problem).encode())
        finally:
            os.close(write)
            os.read(os.open("/dev/zero", os.O_RDONLY), 1)
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)"])
    os.close(write)
    try:
        assert b"open it anew" in os.read(read, 1000)
        db.insert("edge", (2, 3))
        db.close()
        Database.open(path).close()  # though the child is alive
    finally:
        os.close(read)
        os.kill(child, 9)
        os.waitpid(child, 0)
    with Database.open(path) as db:
        assert db.view("edge") == [(1, 2), (2, 3)]


def test_after_closing_nothing_can_be_written(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    db.insert("edge", (2, 3))
    db.close()
    db.close()
    for write in (
        lambda: db.insert("edge", (3, 4)),
        lambda: db.apply("+edge(3, 4)."),
        lambda: db.add_rule("edge(3, 4)."),
        lambda: db.transaction().__enter__(),
        lambda: db.checkpoint(),
        lambda: db.load(path.parent),
    ):
        with pytest.raises(ReadOnly, match="is closed"):
            write()
    assert db.size("path") == 3
    assert db.step == 1


def test_nested_writes_are_refused_as_ever(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    with db.transaction() as tx:
        with pytest.raises(NestedWrite):
            db.insert("edge", (2, 3))
        with pytest.raises(NestedWrite):
            db.checkpoint()
        tx.insert("edge", (7, 8))
    assert db.step == 1
    db.close()


# ── readers ──────────────────────────────────────────────────────────────────────────────────


def test_a_reader_follows_when_it_is_asked_to(path: Path) -> None:
    with Database.open(path, text=PATHS) as db, Database.open(path, read_only=True) as reader:
        heard: list[str] = []
        reader.subscribe("path", lambda changes: heard.append(str(changes)))
        db.insert("edge", (2, 3))
        db.delete("edge", (1, 2))
        assert reader.view("edge") == [(1, 2)]
        assert reader.step == 0
        changes = reader.refresh()
        assert isinstance(changes, Changes)
        assert changes == {"edge": {(1, 2): -1, (2, 3): 1}, "path": {(1, 2): -1, (2, 3): 1}}
        assert heard == ["+path(1, 3).\n+path(2, 3).", "-path(1, 2).\n-path(1, 3)."]
        assert (reader.step, views(reader)) == (2, views(db))
        assert not reader.refresh()
        db.add_rule(".decl back(x:number, y:number)  back(y, x) :- edge(x, y).")
        db.drop_rule("path#2")
        db.drop_relation("path")
        assert reader.refresh()["back"] == {(3, 2): 1}
        assert (dict(reader.rules), views(reader)) == (dict(db.rules), views(db))
        assert_right(reader)
        for write in (
            lambda: reader.insert("edge", (3, 4)),
            lambda: reader.add_rule("edge(3, 4)."),
            lambda: reader.checkpoint(),
        ):
            with pytest.raises(ReadOnly, match="read_only"):
                write()


def test_a_reader_follows_past_steps_that_were_dropped(path: Path) -> None:
    with Database.open(path, text=PATHS) as db, Database.open(path, read_only=True) as reader:
        for number in range(2, 20):
            db.insert("edge", (number, number + 1))
        db.add_rule(".decl n(x:number)  n(x) :- path(x, _).  edge(50, 51).")
        db.checkpoint(history=2)
        db.delete("edge", (50, 51))
        heard: list[Changes] = []
        reader.subscribe("*", heard.append)
        reader.refresh()
        assert heard
        assert (reader.step, views(reader), dict(reader.rules)) == (db.step, views(db), dict(db.rules))
        assert_right(reader)


def test_readers_do_not_hinder_the_writer(path: Path) -> None:
    with Database.open(path, text=PATHS) as db:
        readers = [Database.open(path, read_only=True) for _ in range(3)]
        for number in range(100):
            db.insert("edge", (number, number + 1))
            if number % 10 == 0:
                readers[number // 10 % 3].refresh()
        db.checkpoint()
        assert {(reader.refresh() and reader.step) or reader.step for reader in readers} == {db.step}
        for reader in readers:
            reader.close()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root, to be somebody else")
def test_somebody_who_may_only_read(path: Path) -> None:
    """A folder and a file that are not ours: looking works, writing is refused with a reason."""
    Database.open(path, text=PATHS).close()
    shutil.copy(path, path.with_name("warm.db"))
    os.chmod(path, 0o644)
    for folder in [path.parent, *path.parent.parents]:
        if folder.stat().st_mode & 0o005 != 0o005 and str(folder).startswith("/tmp/"):
            os.chmod(folder, 0o755)
    script = f"""
import os, sys
from everlog import Database
Database.open({str(path.with_name("warm.db"))!r}).close()  # all modules are there before we are somebody else
os.setuid(65534)
with Database.open({str(path)!r}, read_only=True) as db:
    print(db.view("path"))
try:
    Database.open({str(path)!r})
except Exception as problem:
    print(type(problem).__name__, problem)
"""
    run = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=False)
    assert "[(1, 2)]" in run.stdout, run.stderr
    assert "StoreError" in run.stdout
    assert "Permission denied" in run.stdout


# ── files that are not ours ──────────────────────────────────────────────────────────────────


def foreign_text(path: Path) -> None:
    path.write_text("a diary\n" * 1000)


def foreign_empty(path: Path) -> None:
    path.touch()


def foreign_sqlite(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE log (step, piece)")
        connection.execute("INSERT INTO log VALUES (1, 2)")
    connection.close()


def foreign_wal(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.close()


def newer(path: Path) -> None:
    Database.open(path, text=PATHS).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 2")
    connection.close()


def cut_short(path: Path) -> None:
    Database.open(path, text=PATHS, facts={"edge": [(x, x + 1) for x in range(200)]}).close()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def table_missing(path: Path) -> None:
    Database.open(path, text=PATHS).close()
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE facts")
    connection.commit()
    connection.close()


def step_missing(path: Path) -> None:
    with Database.open(path, text=PATHS) as db:
        for number in range(5):
            db.insert("edge", (number, 10))
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM log WHERE step = 3")
    connection.commit()
    connection.close()


def value_changed(path: Path) -> None:
    with Database.open(path, text=PATHS) as db:
        db.insert("edge", (5, 10))
    connection = sqlite3.connect(path)
    connection.execute("UPDATE log SET data = replace(data, '10', '11')")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (foreign_text, ForeignFile, "no SQLite file"),
        (foreign_empty, ForeignFile, "is empty"),
        (foreign_sqlite, ForeignFile, "SQLite database of something else"),
        (foreign_wal, ForeignFile, "SQLite database of something else"),
        (lambda path: path.mkdir(), ForeignFile, "no file"),
        (newer, NewerFormat, "format 2.*use a newer everlog"),
        (cut_short, Damaged, "is damaged"),
        (table_missing, Damaged, "no such table"),
        (step_missing, Damaged, "step 3"),
        (value_changed, Damaged, "step 1"),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_files_that_are_refused_are_left_as_they_are(
    path: Path, make: Callable[[Path], None], error: type[Exception], words: str, read_only: bool
) -> None:
    make(path)
    before = path.read_bytes() if path.is_file() else None
    for how in ({"read_only": True},) if read_only else ({}, {"text": PATHS}):
        with pytest.raises(error, match=words):
            Database.open(path, **how)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert not path.with_name("data.db.lock").exists()


def damages(original: bytes, number: int) -> Iterator[bytes]:
    generator = random.Random(number)
    for _ in range(number):
        data = bytearray(original)
        match generator.randrange(4):
            case 0:
                del data[generator.randrange(len(data)) :]
            case 1:
                start = generator.randrange(len(data))
                data[start : start + generator.choice([16, 512, 4096])] = bytes(min(512, len(data) - start))
                del data[len(original) :]
            case _:
                for _ in range(generator.choice([1, 1, 8])):
                    data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        yield bytes(data)


def test_a_damaged_file_is_refused_or_says_the_truth(tmp_path: Path, path: Path) -> None:
    """Whatever bytes are wrong: the right relations, or an error and the bytes as they are."""
    with Database.open(path, text=PATHS) as db:
        db.insert("edge", [(x, x + 1) for x in range(30)])
        db.checkpoint(state=True)
        db.insert("edge", [(x, x + 2) for x in range(30)])
        db.add_rule(".decl n(x:number)  n(x) :- path(x, 5).")
        db.delete("edge", (3, 4))
        right, step = views(db), db.step
    refused = 0
    for number, data in enumerate(damages(path.read_bytes(), 250)):
        wrong = tmp_path / f"{number}.db"
        wrong.write_bytes(data)
        try:
            with Database.open(wrong) as db:
                assert (views(db), db.step) == (right, step), number
        except StoreError:
            refused += 1
            assert wrong.read_bytes() == data, number
        wrong.unlink()
    assert refused > 50


def test_a_database_of_another_everlog_that_is_not_finished_is_no_database(tmp_path: Path, path: Path) -> None:
    """What a crash leaves of a file in the making has another name, and is in nobody's way."""
    (tmp_path / ".data.db.0123.tmp").write_bytes(b"SQLite format 3\0half")
    with Database.open(path, text=PATHS) as db:
        assert db.size("path") == 1


# ── the past ─────────────────────────────────────────────────────────────────────────────────


def test_states_of_the_past(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    states_then, rules_then = [views(db)], [dict(db.rules)]
    moves: list[Callable[[], object]] = [
        lambda: db.insert("edge", [(2, 3), (3, 4)]),
        lambda: db.delete("edge", (1, 2)),
        lambda: db.add_rule(".decl n(x:number)  n(x) :- path(x, _).  n(77)."),
        lambda: db.insert("n", (5,)),
        lambda: db.drop_rule("path#2"),
        lambda: db.drop_relation("n"),
        lambda: db.add_rule(".decl n(x:float)  n(1.0)."),
        lambda: db.insert("edge", (4, 5)),
    ]
    for move in moves:
        move()
        states_then.append(views(db))
        rules_then.append(dict(db.rules))
    for _ in range(2):
        assert [views(db.as_of(n)) for n in range(9)] == states_then
        assert repr(db.as_of(7).view("n")) == "[(1.0,)]"
        assert [dict(db.as_of(n).rules) for n in range(9)] == rules_then
        for n, m in [(0, 8), (8, 0), (3, 5), (5, 3), (2, 2), (0, 1), (7, 8)]:
            for name in ("edge", "path"):
                before, after = set(states_then[n].get(name, ())), set(states_then[m].get(name, ()))
                changes = db.diff(n, m, name)
                assert (set(changes.inserted(name)), set(changes.deleted(name))) == (
                    after - before,
                    before - after,
                )
        assert db.diff(3, 4) == {"n": {(5,): 1}}
        db.checkpoint(history="all")
        db = reopened(db)
    past = db.history("path")
    assert [entry.step for entry in past] == [1, 2, 5, 8]
    assert past[0].changes == {"path": {(1, 3): 1, (1, 4): 1, (2, 3): 1, (2, 4): 1, (3, 4): 1}}
    assert str(past[1]) == "step 2\n-path(1, 2).\n-path(1, 3).\n-path(1, 4)."
    assert [entry.step for entry in db.history("edge")] == [1, 2, 8]
    assert [entry.step for entry in db.history("n")] == [3, 4, 5, 6, 7] or [e.step for e in db.history("n")] == [
        3,
        4,
        6,
        7,
    ]
    with pytest.raises(FactError, match="undefined relation"):
        db.history("none")
    with pytest.raises(FactError, match="undefined relation"):
        db.diff(0, 1, "none")
    with pytest.raises(NoSuchStep, match="no step 9 yet"):
        db.as_of(9)
    with pytest.raises(NoSuchStep):
        db.as_of(-1)
    old = db.as_of(2)
    with pytest.raises(ReadOnly, match="state after step 2"):
        old.insert("edge", (1, 1))
    db.close()


def test_history_of_given_facts_needs_no_evaluation(path: Path) -> None:
    with Database.open(path, text=PATHS) as db:
        db.insert("edge", (2, 3))
        db.delete("edge", [(1, 2), (2, 3)])
        assert [dict(entry.changes) for entry in db.history("edge")] == [
            {"edge": {(2, 3): 1}},
            {"edge": {(1, 2): -1, (2, 3): -1}},
        ]
        assert db.history("edge")[0].time <= db.history("edge")[1].time


# ── checkpoints ──────────────────────────────────────────────────────────────────────────────


def test_checkpoints_drop_history_and_shrink_the_file(path: Path) -> None:
    db = Database.open(path, text=PATHS, history=20)
    for number in range(200):
        db.insert("edge", [(number * 1000 + i, i) for i in range(50)])
    for number in range(195):
        db.delete("edge", [(number * 1000 + i, i) for i in range(50)])
    db = reopened(db)
    before, size = views(db), path.stat().st_size
    db.checkpoint()
    assert db.oldest == db.step - 20
    assert path.stat().st_size < size
    assert db.as_of(db.oldest).size("edge") == 1 + 25 * 50
    with pytest.raises(NoSuchStep, match="history goes back to step 375"):
        db.as_of(db.oldest - 1)
    db = reopened(db)
    assert (views(db), db.step, db.oldest) == (before, 395, 375)
    db.checkpoint(history=0)
    assert db.oldest == 395
    db = reopened(db, history="all")
    assert (views(db), db.step, db.oldest) == (before, 395, 395)
    db.insert("edge", (1, 1))
    db.checkpoint()
    assert db.oldest == 395
    db = reopened(db)
    db.checkpoint()
    assert db.oldest == 395
    db.close()


def test_a_long_log_is_shortened_at_opening(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everlog.store.recovery.LONG", 30)
    db = Database.open(path, text=PATHS)
    for number in range(40):
        db.insert("edge", (number, 3))
        db.delete("edge", (number, 3))
    db = reopened(db)
    assert db._file.base == 80
    assert db.oldest == 0
    assert db.as_of(1).holds("edge(0, 3)")
    db.close()


STATES = """
.decl e(x:number, y:number)
.decl s(x:symbol, y:symbol)
.decl tc(x:number, y:number)
tc(x, y) :- e(x, y).
tc(x, z) :- tc(x, y), e(y, z).
.decl sg(x:number, y:number)
sg(x, y) :- e(x, p), e(y, p).
sg(x, y) :- e(x, a), sg(a, b), e(y, b).
.decl tri(x:number, y:number, z:number)
tri(x, y, z) :- e(x, y), e(y, z), tc(z, x).
.decl far(x:number)
far(y) :- far(x), e(x, y), e(y, _).
far(0).
.decl wide(x:number, y:number, z:number)
wide(x, y, z) :- tri(x, y, z).
wide(y, x, z) :- wide(x, y, z), e(z, _).
.decl some()
some() :- tc(x, x).
.decl loop()
loop() :- some(). loop() :- loop(), e(_, _).
.decl counted(x:number, n:number)
counted(x, n) :- e(x, _), n = count : { tc(x, _) }.
.decl same(x:number, y:number) eqrel
same(x, y) :- e(x, y), x < 5.
.decl chosen(x:number, y:number) choice-domain x
chosen(x, y) :- tc(x, y).
.decl numbered(i:number, x:number)
numbered(autoinc(), x) :- e(x, _).
.decl numbered2(i:number, x:number)
numbered2(autoinc(), x) :- e(_, x).
.decl words(x:symbol, y:symbol)
words(x, y) :- s(x, y).
words(x, z) :- words(x, y), s(y, z).
.decl floats(x:float)
floats(to_float(to_string(x)) / 0.0) :- e(x, _).
"""


def grown(path: Path, **how: Any) -> DurableDatabase:
    generator = random.Random(3)
    edges = [(generator.randrange(12), generator.randrange(12)) for _ in range(25)]
    words = [(generator.choice("abcdé"), generator.choice("abcdé")) for _ in range(9)]
    return Database.open(
        path, text=STATES, facts={"e": edges, "s": words, "tc": [(50, 51)], "tri": [(1, 1, 1)]}, **how
    )


@pytest.mark.parametrize(
    "strategies", [{}, {"tc": "dred"}, {"*": "view_tree"}, {"tc": "differential", "sg": "recompute"}]
)
def test_the_state_of_a_checkpoint_is_as_good_as_evaluation(
    path: Path, strategies: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All units that are kept come back, with witnesses and counts, and go on under inserts and deletes."""
    db = grown(path, strategies=strategies)
    db.delete("e", db.view("e")[:3])
    db.checkpoint(state=True)
    kept = []
    usable = states.usable
    monkeypatch.setattr(states, "usable", lambda *given: kept.append(usable(*given)) or kept[-1])
    generator = random.Random(4)
    for _ in range(3):
        before = views(db)
        db = reopened(db, strategies=strategies)
        assert kept[-1] is not None
        assert "tri" in kept[-1].units
        assert repr(views(db)) == repr(before)
        assert_right(db)
        for _ in range(15):
            row = (generator.randrange(12), generator.randrange(12))
            (db.insert if generator.random() < 0.5 else db.delete)("e", row)
            assert_right(db)
        db.why(f"words{db.view('words')[0]}".replace("'", '"'))
        db.checkpoint(state=True)
    db.close()


def test_a_state_is_believed_by_the_same_program_engine_and_strategies_only(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = grown(path)
    db.checkpoint(state=True)
    db.insert("e", (3, 3))
    right = views(db)
    seen: list[bool] = []
    usable = states.usable

    def looked(*given: Any) -> Any:
        found = usable(*given)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(states, "usable", looked)
    db = reopened(db)
    db = reopened(db, strategies={"tc": "dred"})
    with monkeypatch.context() as patch:
        patch.setattr(states, "engine_digest", lambda: "another engine")
        db = reopened(db)
    db = reopened(db)
    assert seen == [True, False, False, True]
    assert views(db) == right
    db.add_rule("tc(60, 60).")
    db = reopened(db)  # another program since: the state is not even looked at
    assert seen == [True, False, False, True]
    assert_right(db)
    db.close()


def test_rules_that_came_and_went_before_a_checkpoint(path: Path) -> None:
    """Witnesses call rules by numbers, which are others in an engine that has a history."""
    db = grown(path)
    for _ in range(3):
        db.drop_rule("tc#2" if "tc#2" in db.rules else sorted(r for r in db.rules if r.startswith("tc#"))[-1])
        db.add_rule("tc(x, z) :- tc(x, y), e(y, z).")
    db.checkpoint(state=True)
    db = reopened(db)
    assert_right(db)
    db.why("tc", db.view("tc")[-1])
    db.add_rule("tc(x, x) :- sg(x, _).")
    assert_right(db)
    db.close()


def test_what_functors_say_is_never_kept(path: Path) -> None:
    text = ".functor f(x:number):number  .decl a(x:number)  .decl b(x:number)  b(@f(x)) :- a(x)."
    db = Database.open(path, text=text, functors={"f": lambda x: x + 1})
    db.insert("a", [(x,) for x in range(10)])
    db.checkpoint(state=True)
    db = reopened(db, functors={"f": lambda x: x + 2})
    assert db.view("b")[0] == (2,)
    db.close()


def test_what_is_faster_is_measured(path: Path) -> None:
    """A state is kept where it comes back faster than its rules run, and where nobody knows."""
    with Database.open(path, text=PATHS) as db:
        db.insert("edge", [(x, x + 1) for x in range(100)])
        for seconds, kept in ((0.0, False), (100.0, True)):
            db._engine.computed["path"] = seconds, db.size("path")
            found = states.worth_keeping(db._engine, "", {})
            assert (found is not None and "path" in found.units) is kept
        db._engine.computed.clear()
        found = states.worth_keeping(db._engine, "", {})
        assert found is not None
        assert set(found.units) == {"path"}


# ── copies ───────────────────────────────────────────────────────────────────────────────────


def test_saving_to_another_file(tmp_path: Path, path: Path) -> None:
    with Database.open(path, text=PATHS) as db:
        db.insert("edge", (2, 3))
        db.save(tmp_path / "copy.db")
        with pytest.raises(StoreError, match="there already"):
            db.save(tmp_path / "copy.db")
        db.save(tmp_path / "folder")
        db.insert("edge", (3, 4))
    assert (tmp_path / "folder" / "edge.facts").read_text() == "1\t2\n2\t3\n"
    with Database.open(tmp_path / "copy.db") as copy:
        assert (copy.step, copy.size("path")) == (1, 3)
        assert copy.as_of(0).size("path") == 1
        copy.insert("edge", (9, 9))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.db", "data.db", "folder"]


def test_a_database_in_memory_is_saved_as_a_file(tmp_path: Path) -> None:
    db = Database.from_text(PATHS)
    db.insert("edge", (2, 3))
    db.delete("edge", (1, 2))
    db.add_rule(".decl n(x:number)  n(x) :- edge(x, _).")
    db.save(tmp_path / "new.everlog")
    with pytest.raises(StoreError, match="there already"):
        db.save(tmp_path / "new.everlog")
    with Database.open(tmp_path / "new.everlog") as copy:
        assert (views(copy), dict(copy.rules), copy.step) == (views(db), dict(db.rules), 0)
        copy.drop_rule("n#1")


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


@pytest.mark.parametrize("strategies", [{}, {"tc": "differential"}, {"*": "generations"}, {"*": "calibrated"}])
def test_a_step_that_is_not_written_is_undone(path: Path, strategies: dict[str, str]) -> None:
    """Of any size, by any way through the engine, rules too: memory is as before, and nobody is told."""
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
    """SQLite's own limit on pages: the step is given up, and the next one that fits is written."""
    db = Database.open(path, text=PATHS, facts={"edge": [(x, x + 1) for x in range(1000, 1100)]})
    connection = db._file._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    before = views(db)
    with pytest.raises(NotWritten, match=r"the disk is full.*the step is undone"):
        db.insert("edge", [(x, -x) for x in range(10, 9000)])
    assert views(db) == before
    db.insert("edge", (2, 3))
    with suppress(NotWritten):
        for number in range(1000):
            db.insert("edge", (number, -99))
    with pytest.raises(NotWritten, match="the disk is full"):
        db.insert("edge", (-1, -99))
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
