"""Files of databases and other processes: modes, links, moved files, Ctrl-C."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from stat import S_IMODE
from types import SimpleNamespace
from typing import Any

import pytest
from durable import PATHS, assert_right

from everlog import Damaged, Database, FileMoved, NotWritten, StoreError
from everlog.core.runtime import guards
from everlog.repl import loop
from everlog.repl.session import Session
from everlog.store.file import DatabaseFile
from everlog.stream import follow

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "paths.db"


def modes(path: Path) -> dict[str, int]:
    return {
        file.name.removeprefix(path.name): S_IMODE(file.stat().st_mode)
        for file in path.parent.glob(f"{path.name}*")
    }


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


# ── modes and links ──────────────────────────────────────────────────────────────────────────


def test_all_files_are_for_their_owner_alone(path: Path) -> None:
    """While they are open, after a checkpoint, of a copy, and of what is unfinished."""
    seen: list[int] = []
    with umask(0), Database.open(path, text=PATHS) as db:
        db.insert("edge", (2, 3))
        assert modes(path) == dict.fromkeys(("", "-wal", "-shm", ".lock"), 0o600)
        db.checkpoint()
        assert set(modes(path).values()) == {0o600}
        db.save(path.with_name("copy.db"))
        Database.from_text(PATHS).save(path.with_name("memory.db"))

        def look(*_: Any) -> None:
            seen.extend(S_IMODE(file.stat().st_mode) for file in path.parent.glob(".*.tmp*"))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("everlog.store.copying._settle", look)
            db.save(path.with_name("unfinished.db"))
    for name in ("copy.db", "memory.db"):
        assert modes(path.with_name(name)) == {"": 0o600}
    assert seen
    assert set(seen) == {0o600}


def test_a_mode_that_was_given_stays_and_goes_for_the_files_beside_it(path: Path) -> None:
    Database.open(path, text=PATHS).close()
    path.chmod(0o660)
    with umask(0o077), Database.open(path) as db:
        db.insert("edge", (2, 3))
        db.checkpoint()
        assert modes(path) == dict.fromkeys(("", "-wal", "-shm", ".lock"), 0o660)
    assert modes(path) == {"": 0o660}


@pytest.mark.parametrize("there", [False, True], ids=["new", "there"])
@pytest.mark.parametrize("link", ["symbolic", "dangling", "hard", "fifo", "folder"])
def test_a_lock_that_is_no_file_of_its_own_is_refused_and_what_it_leads_to_is_left_alone(
    path: Path, link: str, there: bool
) -> None:
    victim, lock = path.with_name("precious"), path.with_name("paths.db.lock")
    victim.write_text("precious")
    if there:
        Database.open(path, text=PATHS).close()
    match link:
        case "symbolic":
            lock.symlink_to(victim)
        case "dangling":
            lock.symlink_to(path.with_name("nothing"))
        case "hard":
            os.link(victim, lock)
        case "fifo":
            os.mkfifo(lock)
        case "folder":
            lock.mkdir()
    with pytest.raises(StoreError, match=r"its lock .*paths\.db\.lock cannot be taken"):
        Database.open(path, text=PATHS)
    assert victim.read_text() == "precious"
    assert not path.with_name("nothing").exists()
    assert path.exists() is there
    assert os.path.lexists(lock)
    lock.rmdir() if link == "folder" else lock.unlink()
    Database.open(path, text=PATHS).close()


def test_sqlites_own_files_are_no_way_out_either(path: Path) -> None:
    victim = path.with_name("precious")
    victim.write_text("precious")
    Database.open(path, text=PATHS).close()
    path.with_name("paths.db-wal").symlink_to(victim)
    with pytest.raises(StoreError):
        Database.open(path)
    assert victim.read_text() == "precious"


def test_a_lock_of_another_process_is_not_removed(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    lock = path.with_name("paths.db.lock")
    lock.unlink()
    lock.write_text("another one")
    db.close()
    assert lock.read_text() == "another one"


# ── files that are moved away ────────────────────────────────────────────────────────────────


def replace(path: Path) -> None:
    other = path.with_name("other.db")
    Database.open(other, text=PATHS, facts={"edge": [(7, 7)]}).close()
    os.replace(other, path)


AWAY: dict[str, Callable[[Path], object]] = {
    "renamed": lambda path: path.rename(path.with_name("elsewhere.db")),
    "removed": lambda path: path.unlink(),
    "replaced": replace,
    "replaced by a link": lambda path: (
        path.rename(path.with_name("elsewhere.db")),
        path.symlink_to("elsewhere.db"),
    ),
    "its folder renamed": lambda path: path.parent.rename(path.parent.with_name("elsewhere")),
    "its log removed": lambda path: path.with_name("paths.db-wal").unlink(),
}
WRITES: dict[str, Callable[[Any], object]] = {
    "insert": lambda db: db.insert("edge", (8, 9)),
    "apply": lambda db: db.apply("+edge(8, 9).\n-edge(1, 2).", positions={"source": "9"}),
    "positions": lambda db: db.apply([], positions={"source": "9"}),
    "add_rule": lambda db: db.add_rule("edge(8, 9)."),
    "checkpoint": lambda db: db.checkpoint(),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("away", AWAY)
def test_a_file_that_was_moved_away_takes_no_more_steps(tmp_path: Path, away: str, write: str) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    db = Database.open(folder / "paths.db", text=PATHS)
    db.insert("edge", (2, 3))
    before = {name: db.view(name) for name in db.relations}
    AWAY[away](folder / "paths.db")
    content = {file: file.read_bytes() for file in tmp_path.rglob("*.db*") if not file.name.endswith("-shm")}
    for _ in range(2):
        with pytest.raises(FileMoved, match="renamed, replaced or removed"):
            WRITES[write](db)
    assert issubclass(FileMoved, NotWritten)
    assert {name: db.view(name) for name in db.relations} == before
    assert (db.step, list(db.rules)) == (1, ["path#1", "path#2"])
    assert_right(db)
    assert {file: file.read_bytes() for file in content} == content
    db.close()


def test_later_steps_are_refused_even_if_the_file_comes_back(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    db.insert("edge", (2, 3))
    path.rename(path.with_name("elsewhere.db"))
    with pytest.raises(FileMoved):
        db.insert("edge", (3, 4))
    path.with_name("elsewhere.db").rename(path)
    with pytest.raises(FileMoved, match="open it again"):
        db.insert("edge", (3, 4))
    db.close()
    with Database.open(path) as again:
        assert again.view("edge") == [(1, 2), (2, 3)]
        again.insert("edge", (3, 4))


def test_steps_follow_the_log_of_a_renamed_database(path: Path) -> None:
    """A renamed database has all of its steps if its write-ahead log is renamed too."""
    db = Database.open(path, text=PATHS)
    db.insert("edge", (2, 3))
    path.rename(path.with_name("new.db"))
    with pytest.raises(FileMoved, match="must get the new name too"):
        db.insert("edge", (3, 4))
    db.close()
    path.with_name("paths.db-wal").rename(path.with_name("new.db-wal"))
    with Database.open(path.with_name("new.db")) as again:
        assert again.view("edge") == [(1, 2), (2, 3)]


def test_a_replaced_database_is_not_harmed_by_the_old_one(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    db.insert("edge", (2, 3))
    replace(path)
    with pytest.raises(FileMoved):
        db.insert("edge", (3, 4))
    path.with_name("paths.db-wal").unlink()  # a proper replacement removes the old log
    path.with_name("paths.db-shm").unlink()
    db.close()
    with Database.open(path) as again:
        assert again.view("edge") == [(1, 2), (7, 7)]


def test_a_reader_notices_too(path: Path) -> None:
    Database.open(path, text=PATHS).close()
    reader = Database.open(path, read_only=True)
    replace(path)
    with pytest.raises(FileMoved, match="cannot be followed"):
        reader.refresh()
    assert reader.view("edge") == [(1, 2)]
    reader.close()


# ── what is read before a file is opened for writing ─────────────────────────────────────────

_PARTS = {
    "program": "UPDATE programs SET check_sum = check_sum + 1 WHERE step = 0",
    "facts": "UPDATE facts SET check_sum = check_sum + 1",
    "last steps": "UPDATE log SET check_sum = check_sum + 1 WHERE step = 4",
    "positions": "UPDATE positions SET check_sum = check_sum + 1",
}


def damaged(path: Path, how: str) -> None:
    with Database.open(path, text=PATHS) as db:
        for number in range(2, 5):
            db.insert("edge", (number, number + 1))
        db.checkpoint(history="all")
        db.apply("+edge(9, 9).", positions={"source": "1"})
    connection = sqlite3.connect(path)
    assert connection.execute(how).rowcount
    connection.commit()
    connection.close()


@pytest.mark.parametrize("part", _PARTS)
def test_all_that_a_database_goes_on_with_is_checked_before_it_is_opened_for_writing(
    path: Path, part: str
) -> None:
    damaged(path, _PARTS[part])
    before = path.read_bytes()
    with pytest.raises(Damaged):
        Database.open(path)
    assert path.read_bytes() == before


def test_older_history_is_checked_when_it_is_asked_for(path: Path) -> None:
    damaged(path, "UPDATE log SET check_sum = check_sum + 1 WHERE step = 2")
    with Database.open(path) as db:
        assert db.step == 4
        with pytest.raises(Damaged, match="step 2"):
            db.as_of(1)
        assert db.as_of(3).view("edge") == [(1, 2), (2, 3), (3, 4), (4, 5)]


# ── Ctrl-C ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def interrupted_writing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ctrl-C comes while a step is being written.

    Limits handle it unless another library does: a Spark session of an earlier test may.
    """
    write, handler = DatabaseFile.write, signal.signal(signal.SIGINT, guards._watch._interrupted)

    def interrupted(self: DatabaseFile, *arguments: Any, **more: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        write(self, *arguments, **more)

    monkeypatch.setattr(DatabaseFile, "write", interrupted)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.usefixtures("interrupted_writing")
def test_a_step_that_is_being_written_stays_and_ctrl_c_comes_after_it(path: Path) -> None:
    db = Database.open(path, text=PATHS)
    for number, row in enumerate([(2, 3), (3, 4)], 1):
        with pytest.raises(KeyboardInterrupt):
            db.insert("edge", row)
        assert db.step == number
        assert_right(db)
    db.close()
    with Database.open(path) as again:
        assert again.view("edge") == [(1, 2), (2, 3), (3, 4)]


@pytest.mark.usefixtures("interrupted_writing")
def test_the_prompt_says_that_a_step_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    Database.open(path, text=PATHS).close()
    session = Session(out=StringIO())
    notes: list[str] = []
    monkeypatch.setattr(session.screen, "note", notes.append)

    def said(text: str) -> list[str]:
        notes.clear()
        loop._read_and_run(session, SimpleNamespace(ask=lambda: text))  # type: ignore[arg-type]
        return [note.strip() for note in notes]

    said(".open paths.db")
    assert said("edge(2, 3).") == ["cancelled, but step 1 was complete before that, and stays"]
    assert said("edge(2, 3).") == []
    said("begin")
    said("edge(3, 4).")
    assert said("commit") == ["cancelled, but step 2 was complete before that, and stays"]
    assert session.pending is None
    session.close()


def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def test_what_is_cancelled_in_time_is_reported_without_a_step(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Database.open(path, text=PATHS).close()
    session = Session(out=StringIO())
    notes: list[str] = []
    monkeypatch.setattr(session.screen, "note", notes.append)
    monkeypatch.setattr(DatabaseFile, "write", interrupt)
    session.run(f".open {path}")
    loop._read_and_run(session, SimpleNamespace(ask=lambda: "edge(2, 3)."))  # type: ignore[arg-type]
    assert notes[-1].strip() == "cancelled"
    assert session.step == 0
    assert not session.db.holds("edge", (2, 3))
    session.close()


def test_a_stream_of_updates_ends_when_its_file_is_gone(path: Path) -> None:
    """Steps that fail are skipped, but no later one could be written either."""
    db = Database.open(path, text=PATHS)

    def lines() -> Iterator[str]:
        yield from ("+edge(2, 3).", "")
        path.unlink()
        yield from ("+edge(3, 4).", "", "+edge(4, 5).", "")

    with pytest.raises(FileMoved):
        follow(db, "updates", lines(), StringIO(), StringIO())
    assert db.view("edge") == [(1, 2), (2, 3)]
    db.close()


# ── a file with two names ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_open", [True, False])
def test_a_file_with_another_name_is_not_written_to(path: Path, is_open: bool) -> None:
    """Two writers under two names would not see each other's locks."""
    other = path.with_name("other.db")
    database = Database.open(path, text=PATHS)
    database.insert("edge", (1, 2))
    if not is_open:
        database.close()
    os.link(path, other)
    for name in (other, *([] if is_open else [path])):
        with pytest.raises(StoreError, match="has another name"):
            Database.open(name)
    if is_open:
        database.insert("edge", (2, 3))  # there is no other writer
        database.close()
    other.unlink()
    with Database.open(path) as again:
        assert again.size("edge") == 1 + is_open


def test_a_name_that_a_crash_has_left_is_removed(path: Path) -> None:
    Database.open(path, text=PATHS).close()
    left = path.with_name(f".{path.name}.0123.tmp")
    os.link(path, left)
    with Database.open(path) as database:
        database.insert("edge", (1, 2))
    assert not left.exists()
