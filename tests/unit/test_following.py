"""Fact files that are followed: a change becomes a step, however they are written."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest

from everlog import Database, compile_text
from everlog.file_watch import UNENDED, FactFiles

PROGRAM = """
.decl edge(x:number, y:number)
.input edge
.decl path(x:number, y:number)
.output path
edge(7, 8).
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


class Followed:
    """A database whose files are polled when the test says so, with its own clock."""

    def __init__(self, folder: Path, text: str = PROGRAM, missing_ok: bool = False) -> None:
        program = compile_text(text)
        self.folder, self.now, self.told = folder, 0.0, list[str]()
        self.files = FactFiles(program, folder, missing_ok=missing_ok, pause=1.0)
        self.db = Database(program, facts=self.files.begin(lambda *_: None))

    def look(self, seconds: float = 1.0) -> str | None:
        self.now += seconds
        changes = self.files.look(self.db, self.now, self.told.append)
        return None if changes is None else str(changes)

    def settled(self) -> str | None:
        """Look until what changed has stayed the same for long enough."""
        found = [found for _ in range(UNENDED + 2) if (found := self.look()) is not None]
        return "\n--\n".join(found) or None

    def write(self, text: str, name: str = "edge.facts") -> None:
        """Change a file and its time, since two writes may share one tick of the clock."""
        path = self.folder / name
        before = path.stat().st_mtime_ns if path.exists() else 0
        path.write_text(text)
        os.utime(path, ns=(before + 10**9, before + 10**9))


def test_rows_that_do_not_fit_go_to_a_file_which_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\nx\t3\n")
    followed = Followed(tmp_path, PROGRAM.replace(".input edge", '.input edge(rejects="edge.bad")'))
    followed.write("1\t2\n2\t3\ny\t4\n")
    assert followed.settled() == "+edge(2, 3).\n+path(1, 3).\n+path(2, 3)."
    assert followed.settled() is None
    assert "'y' is not a number" in (tmp_path / "edge.bad").read_text()


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    (tmp_path / "edge.facts").write_text("1\t2\n2\t3\n")
    return Followed(tmp_path)


def test_the_difference_is_one_step(followed: Followed) -> None:
    assert followed.settled() is None
    followed.write("1\t2\n2\t4\n4\t5\n")
    assert followed.settled() == (
        "-edge(2, 3).\n-path(1, 3).\n-path(2, 3).\n"
        "+edge(2, 4).\n+edge(4, 5).\n+path(1, 4).\n+path(1, 5).\n+path(2, 4).\n+path(2, 5).\n+path(4, 5)."
    )
    assert followed.settled() is None
    assert followed.told == []


def test_a_file_is_read_when_it_has_stayed_the_same(followed: Followed) -> None:
    followed.write("1\t2\n")
    assert followed.look() is None, "just changed"
    followed.write("1\t2\n2\t3\n3\t4\n")
    assert followed.look() is None, "changed again"
    assert followed.look() == "+edge(3, 4).\n+path(1, 4).\n+path(2, 4).\n+path(3, 4)."


def test_half_a_line_is_given_more_time(followed: Followed) -> None:
    followed.write("1\t2\n2\t3\n3\t4")  # the rest of the number is still to come
    for _ in range(UNENDED):
        assert followed.look() is None
    followed.write("1\t2\n2\t3\n3\t456\n")
    assert "+edge(3, 456)." in (followed.settled() or "")
    followed.write("5\t6")  # nothing more comes: then that is all
    assert "+edge(5, 6)." in (followed.settled() or "")


def test_a_file_that_changes_while_it_is_read_is_read_again(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    import everlog.file_watch

    real = everlog.file_watch.read_facts

    def slow(*args: object, **options: object) -> object:
        rows = real(*args, **options)  # type: ignore[arg-type]
        monkeypatch.setattr(everlog.file_watch, "read_facts", real)
        followed.write("1\t2\n2\t3\n5\t5\n")
        return rows

    followed.write("1\t2\n")
    monkeypatch.setattr(everlog.file_watch, "read_facts", slow)
    assert followed.settled() == "+edge(5, 5).\n+path(5, 5)."


def test_a_wrong_file_is_reported_once_and_its_facts_stay(followed: Followed) -> None:
    followed.write("1\t2\n2\tthree\n")
    assert followed.settled() is None
    assert followed.told == [
        f"{followed.folder}/edge.facts:2: column 2 (`y`:number): 'three' is not a number\nthe facts of `edge` stay as they were"
    ]
    assert followed.db.holds("path(1, 3)")
    followed.write("1\t2\n2\t9\n")
    assert "-edge(2, 3)." in (followed.settled() or "")
    assert len(followed.told) == 1


def test_a_file_that_goes_is_reported_and_may_come_back(followed: Followed) -> None:
    (followed.folder / "edge.facts").unlink()
    assert followed.settled() is None
    assert "there is no such file" in followed.told[0]
    assert followed.db.holds("edge(1, 2)")
    followed.write("1\t2\n")
    assert followed.settled() == "-edge(2, 3).\n-path(1, 3).\n-path(2, 3)."


def test_with_no_warnings_a_file_that_goes_is_empty(tmp_path: Path) -> None:
    followed = Followed(tmp_path, missing_ok=True)
    followed.write("1\t2\n")
    assert followed.settled() == "+edge(1, 2).\n+path(1, 2)."
    (tmp_path / "edge.facts").unlink()
    assert followed.settled() == "-edge(1, 2).\n-path(1, 2)."


def test_what_the_program_states_stays(followed: Followed) -> None:
    followed.write("7\t8\n")
    assert "edge(7, 8)" not in (followed.settled() or "")
    followed.write("")
    assert followed.settled() is None
    assert followed.db.view("edge") == [(7, 8)]


def test_files_that_change_together_are_one_step(tmp_path: Path) -> None:
    text = ".decl a(x:number)\n.input a\n.decl b(x:number)\n.input b\n.decl c(x:number)\nc(x) :- a(x), b(x).\n.output c\n"
    for name in "ab":
        (tmp_path / f"{name}.facts").write_text("1\n")
    followed = Followed(tmp_path, text)
    followed.write("2\n", "a.facts")
    assert followed.look() is None
    followed.write("2\n", "b.facts")
    assert followed.look() is None, "a is ready, and waits for b"
    assert followed.look() == "-a(1).\n-b(1).\n-c(1).\n+a(2).\n+b(2).\n+c(2)."


def test_a_file_that_never_rests_holds_up_no_other(tmp_path: Path) -> None:
    text = ".decl a(x:number)\n.input a\n.decl b(x:number)\n.input b\n"
    for name in "ab":
        (tmp_path / f"{name}.facts").write_text("1\n")
    followed = Followed(tmp_path, text)
    followed.write("2\n", "a.facts")
    found = []
    for number in range(40):
        followed.write(f"{number}\n", "b.facts")
        found.append(followed.look())
    assert "-a(1).\n+a(2)." in found


def test_several_files_of_one_relation(tmp_path: Path) -> None:
    text = '.decl n(x:number)\n.input n(filename="one.txt")\n.input n(filename="two.txt")\n'
    (tmp_path / "one.txt").write_text("1\n2\n")
    (tmp_path / "two.txt").write_text("2\n3\n")
    followed = Followed(tmp_path, text)
    followed.write("1\n", "one.txt")
    assert followed.settled() is None, "the other file still has 2"
    followed.write("3\n", "two.txt")
    assert followed.settled() == "-n(2)."


def test_json_sqlite_and_gzip_are_followed_too(tmp_path: Path) -> None:
    import gzip

    text = (
        '.decl j(x:number)\n.input j(IO=jsonfile)\n.decl s(x:number)\n.input s(IO=sqlite, dbname="f.db")\n'
        ".decl z(x:number)\n.input z\n"
    )
    (tmp_path / "j.json").write_text("[[1]]\n")
    connection = sqlite3.connect(tmp_path / "f.db")
    connection.execute("create table s(x int)")
    connection.execute("insert into s values (1)")
    connection.commit()
    (tmp_path / "z.facts.gz").write_bytes(gzip.compress(b"1\n"))
    followed = Followed(tmp_path, text)
    assert followed.settled() is None
    followed.write("[[1], [2]]\n", "j.json")
    assert followed.settled() == "+j(2)."
    connection.execute("insert into s values (5)")
    connection.commit()
    connection.close()
    os.utime(tmp_path / "f.db", ns=(10**18, 10**18))
    assert followed.settled() == "+s(5)."
    (tmp_path / "z.facts.gz").write_bytes(gzip.compress(b"1\n2\n"))
    os.utime(tmp_path / "z.facts.gz", ns=(10**18, 10**18))
    assert followed.settled() == "+z(2)."


def test_a_step_that_fails_is_skipped_and_the_next_one_counts(tmp_path: Path) -> None:
    text = ".decl n(x:number)\n.input n\n.decl m(x:number)\nm(10 / x) :- n(x).\n.output m\n"
    (tmp_path / "n.facts").write_text("1\n")
    followed = Followed(tmp_path, text)
    followed.write("1\n0\n", "n.facts")
    assert followed.settled() is None
    assert "division by zero" in followed.told[0]
    assert "the step is skipped" in followed.told[0]
    followed.write("5\n", "n.facts")
    assert followed.settled() == "-n(1).\n-m(10).\n+n(5).\n+m(2)."


# ── the command ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def command(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "paths.dl").write_text(PROGRAM)
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "edge.facts").write_text("1\t2\n")
    (tmp_path / "out").mkdir()
    words = ["run", "paths.dl", "-F", "facts", "-D", "out", "--watch", "--poll", "0.05"]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "everlog", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def test_everlog_run_watch(command: subprocess.Popen[str], tmp_path: Path) -> None:
    """Files are renamed into place under a running command; it answers until Ctrl-C."""
    assert command.stdout is not None
    lines: Queue[str] = Queue()
    Thread(target=lambda: [lines.put(line) for line in command.stdout or ()], daemon=True).start()

    out = tmp_path / "out" / "path.csv"
    while not out.exists():  # until it has begun
        assert command.poll() is None, command.communicate()
    assert "7\t8\n" in out.read_text()
    (tmp_path / "facts" / "new").write_text("1\t2\n2\t3\n")
    os.replace(tmp_path / "facts" / "new", tmp_path / "facts" / "edge.facts")
    assert [lines.get(timeout=60) for _ in range(2)] == ["+path(1, 3).\n", "+path(2, 3).\n"]
    (tmp_path / "facts" / "edge.facts").write_text("2\t3\n")
    assert [lines.get(timeout=60) for _ in range(2)] == ["-path(1, 2).\n", "-path(1, 3).\n"]
    (tmp_path / "facts" / "edge.facts").write_text("2\t3\nnonsense\n")
    assert command.stderr is not None
    assert "edge.facts:2" in command.stderr.readline()
    command.send_signal(signal.SIGINT)
    assert command.wait(timeout=60) == 130
    assert out.read_text() == "2\t3\n7\t8\n"
