"""Access to a database file: one writer, any readers; others' files untouched."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from durable import PATHS, assert_right, views

from everlog import Database
from everlog.api.changes import Changes
from everlog.api.lifecycle import NestedWrite
from everlog.store.errors import (
    AlreadyOpen,
    Damaged,
    ForeignFile,
    NewerFormat,
    ReadOnly,
    StoreError,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


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


def test_a_second_writer_learns_who_is_the_first(path: Path) -> None:
    Database.open(path, text=PATHS).close()
    with holding(path) as child:
        with pytest.raises(AlreadyOpen, match=f"process {child.pid} writes to it since .* read_only=True"):
            Database.open(path)
        with Database.open(path, read_only=True) as reader:
            assert reader.size("path") == 1
        child.kill()
    with Database.open(path) as db:  # the lock file exists, but is not locked
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
        assert b"open it again" in os.read(read, 1000)
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


def test_what_is_written_in_a_transaction_is_one_step_on_disk(path: Path) -> None:
    """Through it, and beside it by the same thread; positions go with it."""
    db = Database.open(path, text=PATHS)
    with db.transaction() as tx:
        db.insert("edge", (2, 3))
        with pytest.raises(NestedWrite):
            db.checkpoint()
        tx.insert("edge", (7, 8))
        db.apply("-edge(2, 3).\n+edge(3, 4).", positions={"source": "5"})
        assert (db.step, dict(db.positions)) == (0, {})
    assert db.step == 1
    db.close()
    with Database.open(path) as again:
        assert again.given("edge") == [*sorted({(3, 4), (7, 8), *again.as_of(0).given("edge")})]
        assert dict(again.positions) == {"source": "5"}


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
def test_a_user_who_may_only_read(path: Path) -> None:
    """A folder and a file of another user: reading works, writing is refused."""
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


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs a system with rights")
def test_a_file_that_is_read_only_is_reported_when_it_is_opened(path: Path) -> None:
    """Its folder is writable, the file is not: SQLite would report that too late."""
    Database.open(path, text=PATHS).close()
    for folder in [path.parent, *path.parent.parents]:
        if str(folder).startswith("/tmp/"):
            os.chmod(folder, 0o777)
    script = f"""
import os
from everlog import Database
with Database.open({str(path)!r}) as db:  # all modules are there before we are somebody else
    db.view("path")
os.chmod({str(path)!r}, 0o444)
if not os.getuid():
    os.setuid(65534)
try:
    Database.open({str(path)!r})
except Exception as problem:
    print(type(problem).__name__, problem)
with Database.open({str(path)!r}, read_only=True) as db:
    print(db.view("path"))
"""
    run = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=False)
    told, seen = run.stdout.splitlines()
    assert "StoreError" in told, run.stderr
    assert "cannot be opened for writing: the file is read-only; open it with read_only=True" in told
    assert seen == "[(1, 2)]"


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
        (foreign_text, ForeignFile, "not an SQLite file"),
        (foreign_empty, ForeignFile, "is empty"),
        (foreign_sqlite, ForeignFile, "SQLite database of another program"),
        (foreign_wal, ForeignFile, "SQLite database of another program"),
        (lambda path: path.mkdir(), ForeignFile, "not a regular file"),
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


@pytest.mark.parametrize("column", ["log.data", "log.time", "facts.data", "facts.number", "about.value"])
def test_a_value_whose_type_has_changed_is_told(path: Path, column: str) -> None:
    """The type of a value is outside of the bytes that have a checksum."""
    with Database.open(path, text=PATHS) as db:
        db.insert("edge", [(x, x + 1) for x in range(30)])
        db.checkpoint()
        db.insert("edge", (50, 51))
    table, name = column.split(".")
    with closing(sqlite3.connect(path)) as connection:
        kinds = dict(connection.execute(f"SELECT DISTINCT typeof({name}), 1 FROM {table}"))
        other = "BLOB" if "blob" not in kinds else "TEXT"
        connection.execute(f"UPDATE {table} SET {name} = CAST({name} AS {other})")
        connection.commit()
    with pytest.raises(StoreError, match="changed since"):
        Database.open(path)


@pytest.mark.filterwarnings("ignore::everlog.store.errors.StateLost")
@pytest.mark.parametrize("asleep", [False, True], ids=["", "asleep"])
def test_a_damaged_file_is_refused_or_says_the_truth(tmp_path: Path, path: Path, asleep: bool) -> None:
    """With any wrong bytes: the right relations, or an error and unchanged bytes."""
    with Database.open(path, text=PATHS) as db:
        db.insert("edge", [(x, x + 1) for x in range(30)])
        db.checkpoint(state=True)
        db.insert("edge", [(x, x + 2) for x in range(30)])
        db.add_rule(".decl n(x:number)  n(x) :- path(x, 5).")
        db.delete("edge", (3, 4))
        if asleep:
            db.checkpoint(state=True)
        right, step = views(db), db.step
        given = {name: db.given(name) for name in right}
    refused = 0
    for number, data in enumerate(damages(path.read_bytes(), 250)):
        wrong = tmp_path / f"{number}.db"
        wrong.write_bytes(data)
        try:
            with Database.open(wrong) as db:
                assert (views(db), db.step) == (right, step), number
                assert {name: db.given(name) for name in right} == given, number
        except StoreError:
            refused += 1
            assert wrong.read_bytes() == data, number
        wrong.unlink()
    assert refused > 50


def test_a_database_of_another_everlog_that_is_not_finished_is_no_database(tmp_path: Path, path: Path) -> None:
    """An unfinished file after a crash has another name, and does no harm."""
    (tmp_path / ".data.db.0123.tmp").write_bytes(b"SQLite format 3\0half")
    with Database.open(path, text=PATHS) as db:
        assert db.size("path") == 1
