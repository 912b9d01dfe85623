"""Databases in files on the command line: reported steps are there the next time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from everlog import Database
from everlog.cli import main

PROGRAM = """.decl line(a:symbol, b:symbol)
.input line
.decl reach(a:symbol, b:symbol)
.output reach
reach(x, y) :- line(x, y).
reach(x, z) :- reach(x, y), line(y, z).
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "line.facts").write_text("Bern\tBasel\n")
    return tmp_path


def test_a_run_goes_on_where_the_last_one_ended(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "u.txt").write_text('+line("Basel", "Paris").\n\n-line("Bern", "Basel").\n')
    assert main(["run", "p.dl", "--db", "p.db", "--updates", "u.txt"]) == 0
    assert capsys.readouterr().out == '+reach("Basel", "Paris").\n+reach("Bern", "Paris").\n' + (
        '-reach("Bern", "Basel").\n-reach("Bern", "Paris").\n'
    )
    assert (folder / "reach.csv").read_text() == "Basel\tParis\n"
    (folder / "line.facts").unlink()  # it is read once, when the database is made
    (folder / "reach.csv").unlink()
    assert main(["run", "p.dl", "--db", "p.db", "-F", "nowhere"]) == 0
    assert (folder / "reach.csv").read_text() == "Basel\tParis\n"
    with Database.open("p.db") as db:
        assert db.step == 2


def test_an_edited_program_takes_the_place_of_the_one_before(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "p.dl", "--db", "p.db"]) == 0
    with Database.open("p.db") as db:
        db.insert("line", ("Basel", "Ulm"))
        db.add_rule("reach(x, x) :- line(x, _).")
    assert main(["run", "p.dl", "--db", "p.db"]) == 0  # the file is as it was: rules that came since stay
    assert (folder / "reach.csv").read_text().count("\n") == 5
    (folder / "p.dl").write_text(PROGRAM.replace("reach(x, z) :- reach(x, y), line(y, z).", ""))
    assert main(["run", "p.dl", "--db", "p.db"]) == 0
    assert (folder / "reach.csv").read_text() == "Basel\tUlm\nBern\tBasel\n"
    (folder / "p.dl").write_text(".decl other(x:number)")
    assert main(["run", "p.dl", "--db", "p.db"]) == 1
    assert "2 base fact(s) of `line(a:symbol, b:symbol)`, which is not declared" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["p.dl", "--db", "p.dl"], 1, "not an everlog database"),
        (["p.dl", "--db", "p.db", "--watch"], 2, "--db and --watch cannot be combined"),
        (["p.dl", "--db", "p.db", "--engine", "spark"], 2, "--db and --engine spark cannot be combined"),
        (["p.dl", "--db", "none/p.db"], 1, "no folder"),
        (["p.dl", "--db", "p.db", "--updates", "none"], 1, "cannot read the updates"),
        (["none.dl", "--db", "p.db"], 1, "cannot read `none.dl`"),
        (["wrong.dl", "--db", "p.db"], 1, "error[DL050]"),
        (["fails.dl", "--db", "p.db"], 1, "division by zero"),
        (["functor.dl", "--db", "p.db"], 1, "no Python function for @f"),
        (["p.dl", "--db", "p.db", "--strategy", "reach=none"], 1, "none"),
    ],
)
def test_what_cannot_run_says_why_and_makes_no_file(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, words: str
) -> None:
    (folder / "wrong.dl").write_text("p(x) :- q(x).")
    (folder / "fails.dl").write_text(".decl p(x:number)  p(1).  p(1 / (x - 1)) :- p(x).")
    (folder / "functor.dl").write_text(".functor f(x:number):number  .decl p(x:number)  p(1).  p(@f(x)) :- p(x).")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert main(["run", *arguments]) == status
    assert words in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_another_process_has_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-P", "-m", "everlog", "run", "p.dl", "--db", "p.db", "--updates", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write('+line("Basel", "Ulm").\n\n')
        child.stdin.flush()
        assert child.stdout.readline() == '+reach("Basel", "Ulm").\n'
        assert main(["run", "p.dl", "--db", "p.db"]) == 1
        assert f"process {child.pid} writes to it" in capsys.readouterr().err
        with Database.open("p.db", read_only=True) as reader:  # reported steps are there
            assert reader.size("line") == 2
        child.kill()
    assert main(["run", "p.dl", "--db", "p.db", "-D-"]) == 0
    assert "Basel\tUlm" in capsys.readouterr().out


def test_a_stream_goes_on_after_a_step_that_could_not_be_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from everlog.store.errors import NotWritten
    from everlog.store.file import DatabaseFile

    write = DatabaseFile.write

    def full(self: DatabaseFile, net: object, **more: object) -> None:
        if "full" in str(net):
            raise NotWritten("p.db cannot be written: the disk is full; the step is undone")
        write(self, net, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(DatabaseFile, "write", full)
    (folder / "u.txt").write_text('+line("full", "Ulm").\n\n+line("Basel", "Ulm").\n')
    assert main(["run", "p.dl", "--db", "p.db", "--updates", "u.txt"]) == 1
    told = capsys.readouterr()
    assert told.out == '(no change)\n+reach("Basel", "Ulm").\n+reach("Bern", "Ulm").\n'
    assert "u.txt:1: p.db cannot be written: the disk is full" in told.err
    with Database.open("p.db") as db:
        assert (db.step, db.size("line")) == (1, 2)


def test_a_run_that_is_killed_has_kept_each_step_that_it_reported(folder: Path) -> None:
    command = [sys.executable, "-P", "-m", "everlog", "run", "p.dl", "--db", "p.db", "--updates", "-"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write('+line("Basel", "Ulm").\n\n')
    child.stdin.flush()
    assert [child.stdout.readline(), child.stdout.readline()] == [
        '+reach("Basel", "Ulm").\n',
        '+reach("Bern", "Ulm").\n',
    ]
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    with Database.open("p.db") as db:
        assert (db.step, db.view("line")) == (1, [("Basel", "Ulm"), ("Bern", "Basel")])


def test_a_program_from_a_pipe_or_without_the_preprocessor_is_kept_as_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO(PROGRAM))
    assert main(["run", "-", "--db", "piped.db", "-D-"]) == 0
    assert main(["run", "p.dl", "--db", "plain.db", "--no-preprocessor", "-D-"]) == 0
    assert capsys.readouterr().out.count("Bern\tBasel") == 2
    for name in ("piped.db", "plain.db"):
        with Database.open(name) as db:
            assert db.view("reach") == [("Bern", "Basel")]


def test_rules_that_came_later_find_their_functors(folder: Path) -> None:
    (folder / "functors.py").write_text("def up(s):\n    return s.upper()\n")
    assert main(["run", "p.dl", "--db", "p.db"]) == 0
    with Database.open("p.db", functors={"up": str.upper}) as db:
        db.add_rule(".functor up(s:symbol):symbol  reach(@up(x), y) :- line(x, y).")
    assert main(["run", "p.dl", "--db", "p.db"]) == 0
    assert (folder / "reach.csv").read_text() == "BERN\tBasel\nBern\tBasel\n"


def test_what_is_shown_makes_no_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "p.dl", "--db", "p.db", "--show", "transformed-datalog"]) == 0
    assert "reach(x, y) :- line(x, y)." in capsys.readouterr().out
    assert not (folder / "p.db").exists()
