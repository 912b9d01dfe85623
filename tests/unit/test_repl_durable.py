"""Databases in files at the prompt: reported steps are there the next time."""

from __future__ import annotations

import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from everlog import AlreadyOpen, Database
from everlog.cli import main
from everlog.repl.loop import run_script
from everlog.repl.session import Session

PROGRAM = """
.decl edge(x:number, y:number)
.input edge
.decl path(x:number, y:number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


class Talk:
    """A conversation that is closed at its end, as the command does."""

    def __init__(self) -> None:
        self.out = StringIO()
        self.session = Session(out=self.out)

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def say(self, *lines: str) -> str:
        before = len(self.out.getvalue())
        run_script(self.session, lines, "script")
        return self.out.getvalue()[before:].rstrip("\n")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paths.dl").write_text(PROGRAM)
    (tmp_path / "edge.facts").write_text("1\t2\n")
    return tmp_path


def everlog(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "everlog", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)


# ── the prompt ───────────────────────────────────────────────────────────────────────────────


def test_reported_steps_are_there_when_the_file_is_opened_again() -> None:
    with Talk() as talk:
        assert talk.say(".open roads.db paths.dl") == "roads.db: 2 relations, 2 rules, 2 facts, step 0"
        assert talk.say("edge(2, 3).") == "+edge(2, 3).\n+path(1, 3).\n+path(2, 3)."
        assert talk.say("path(y, x) :- edge(x, y).").startswith("path#3: ")
        assert talk.say("edge(2, 3).") == "0 changed"
    with Talk() as talk:
        assert talk.say(".open roads.db") == "roads.db: 2 relations, 3 rules, 9 facts, step 2"
        assert talk.say("-path#3.").partition("\n")[2] == "-path(2, 1).\n-path(2, 2).\n-path(3, 2).\n-path(3, 3)."
        assert talk.say(".count") == "edge: 2\npath: 3"


def test_the_past_is_looked_at_and_cannot_be_changed() -> None:
    with Talk() as talk:
        talk.say(".open roads.db paths.dl", "edge(2, 3).", "-edge(1, 2).")
        assert talk.say(".as-of") == "step 2; history goes back to step 0"
        assert talk.say(".as-of 1 path(1, x)?") == "x\n-\n2\n3\n(2 rows)"
        assert talk.say("path(1, x)?") == "x\n-\n(0 rows)"
        assert talk.say(".as-of 1", ".count") == (
            "after step 1: 2 relations, 2 rules, 5 facts; `.as-of now` returns\nedge: 2\npath: 3"
        )
        assert talk.session.waiting == "[past]"
        assert talk.say("edge(8, 9).") == (
            "script:1: error: this is the past state after step 1: it cannot be changed"
        )
        assert talk.say(".as-of now .count") == "edge: 1\npath: 1"
        assert talk.say(".as-of 0 .count path", ".count path") == "path: 1\npath: 3"
        assert "there is no step 7 yet: the last one is 2" in talk.say(".as-of 7 .count")
        assert "`x` is not a step" in talk.say(".as-of x")
        assert talk.say(".as-of now", "edge(8, 9).") == (
            "step 2; history goes back to step 0\n+edge(8, 9).\n+path(8, 9)."
        )
        assert talk.session.waiting == ""
        talk.say("begin")
        assert "a transaction is open" in talk.say(".as-of 0")


def test_differences_and_the_history_of_a_relation() -> None:
    with Talk() as talk:
        talk.say(".open roads.db paths.dl", "edge(2, 3).", "-edge(1, 2).")
        assert talk.say(".diff 0 1") == "+edge(2, 3).\n+path(1, 3).\n+path(2, 3)."
        assert talk.say(".diff 1 0 edge") == "-edge(2, 3)."
        assert talk.say(".diff 0 edge") == "-edge(1, 2).\n+edge(2, 3)."
        assert talk.say(".diff 0 now edge") == "-edge(1, 2).\n+edge(2, 3)."
        assert talk.say(".diff 2") == "0 changed"
        assert "undefined relation `road`" in talk.say(".diff 0 road")
        assert "`1x` is not a step" in talk.say(".diff 0 1x edge")
        steps = talk.say(".history path").split("\n")
        assert [line.split(",")[0] for line in steps if line.startswith("step")] == ["step 1", "step 2"]
        assert steps[1:3] == ["+path(1, 3).", "+path(2, 3)."]


def test_a_conversation_that_defines_everything_lasts() -> None:
    with Talk() as talk:
        talk.say(".open talk.db", ".decl n(x:number)", ".decl m(x:number)", "m(x + 1) :- n(x).", "n(1). n(2).")
    with Talk() as talk:
        assert talk.say(".open talk.db", "m(x)?").endswith("step 4\nx\n-\n2\n3\n(2 rows)")
        assert talk.say(".drop m#1") == "dropped m#1: m(x + 1) :- n(x).\n-m(2).\n-m(3)."
    with Database.open("talk.db") as db:
        assert (db.step, dict(db.rules)) == (5, {})


def test_a_past_with_other_rules() -> None:
    with Talk() as talk:
        talk.say(".open talk.db", ".decl n(x:number)", ".decl m(x:number)", "m(x + 1) :- n(x).")
        talk.say("n(1). n(2).", "n(3).", "-n(1).")
        assert talk.say(".as-of 4 ?- m(x), x > 2.") == "x\n-\n3\n(1 row)"
        for line in (".as-of 4 n(1)", ".asof 4 n(1)?", ".as_of 4 ?- n(1)."):
            assert talk.say(line) == "yes"
        assert "cannot be changed" in talk.say(".as-of 4 n(7).")
        assert talk.say(".as-of 3 .count") == "n: 0\nm: 0"
        assert talk.say(".as-of 2 .rules") != talk.say(".rules")
        assert talk.say(".diff 4 6 m") == "-m(2).\n+m(4)."
        assert talk.say(".diff 6 4") == "-n(3).\n-m(4).\n+n(1).\n+m(2)."
        times = r", [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}(?=\n)"
        told = talk.say(".history n")
        assert re.sub(times, "", told) == "step 4\n+n(1).\n+n(2).\nstep 5\n+n(3).\nstep 6\n-n(1)."
        assert len(re.findall(times, told)) == 3
        assert talk.say(".history m").splitlines()[-1] == "-m(2)."
        talk.say(".decl none(x:number)")
        assert talk.say(".history none") == "0 steps"
        assert "undefined relation `other`" in talk.say(".history other")
        assert "no step 9 yet" in talk.say(".diff 5 9 n")
        assert talk.say(".checkpoint 2") == "step 7; history goes back to step 5"
        assert "history goes back to step 5" in talk.say(".as-of 3")
        assert talk.say(".checkpoint all") == "step 7; history goes back to step 5"


def test_without_a_file_there_is_no_past() -> None:
    with Talk() as talk:
        for line in (".as-of 0", ".diff 0 0", ".history n", ".checkpoint"):
            assert "the database is only in memory, and has no past" in talk.say(line)


def test_a_database_that_is_left_is_free_for_others() -> None:
    with Talk() as talk:
        talk.say(".decl n(x:number)", "n(1).", ".save one.db", ".open one.db", "n(2).")
        assert "script:1: error: there is no folder" in talk.say(".open none/two.db")
        assert "is a program: `.load paths.dl` loads it" in talk.say(".open paths.dl")
        assert talk.say("n(x)?") == "x\n-\n1\n2\n(2 rows)"  # nothing has changed
        with pytest.raises(AlreadyOpen):
            Database.open("one.db")
        assert "a transaction is open" in talk.say("begin", ".open two.db")
        talk.say("rollback")
        assert talk.say(".open two.db") == "two.db: 0 relations, 0 rules, 0 facts, step 0"
        with Database.open("one.db") as db:
            assert db.size("n") == 2
        assert f"database: {Path('two.db').resolve()}" in talk.say(".show")


def test_a_checkpoint_shortens_history() -> None:
    with Talk() as talk:
        talk.say(".open roads.db paths.dl", "edge(2, 3).", "-edge(1, 2).")
        assert "`few` is not a number of steps" in talk.say(".checkpoint few")
        assert talk.say(".checkpoint all") == "step 2; history goes back to step 0"
        assert talk.say(".checkpoint 1") == "step 2; history goes back to step 1"
        assert "history goes back to step 1" in talk.say(".as-of 0 .count")


def test_what_is_in_memory_is_saved_as_a_file_or_as_a_folder(folder: Path) -> None:
    with Talk() as talk:
        assert "the database is only in memory" in talk.say(".history path")
        talk.say(".load paths.dl", "edge(2, 3).")
        assert talk.say(".save roads.db") == "roads.db: 2 relations, 2 rules, 5 facts"
        assert "roads.db already exists" in talk.say(".save roads.db")
        talk.say(".save facts")
        assert (folder / "facts" / "edge.facts").read_text() == "1\t2\n2\t3\n"
        assert talk.say(".open roads.db") == "roads.db: 2 relations, 2 rules, 5 facts, step 0"
        assert "is already open" in talk.say(".open roads.db")
        assert "the database is in a file" in talk.say(".load paths.dl")
        talk.say("edge(3, 4).", ".as-of 0", ".save old.db")
        assert talk.say(".open", ".count") == "in memory"
        assert talk.say(".open old.db", ".count edge") == (
            "old.db: 2 relations, 2 rules, 5 facts, step 0\nedge: 2"
        )


def test_what_cannot_be_opened_leaves_everything_as_it_is(folder: Path) -> None:
    (folder / "foreign.db").write_bytes(b"no database at all" * 100)
    (folder / "wrong.dl").write_text("nonsense")
    with Talk() as talk:
        talk.say(".open roads.db paths.dl")
        for line, told in (
            (".open foreign.db", "foreign.db"),
            (".open nowhere/x.db", "there is no folder"),
            (".open new.db wrong.dl", "error[DL010]"),
            (".open new.db none.dl", "cannot read none.dl: No such file or directory"),
            (".open none.db read-only", "there is no database"),
        ):
            assert told in talk.say(line)
        (folder / "edge.facts").write_text("1\tx\n")
        assert "edge.facts:1: column 2" in talk.say(".open new.db paths.dl")
        assert not (folder / "new.db").exists()
        assert talk.say("edge(2, 3).", ".as-of").endswith("step 1; history goes back to step 0")


def test_another_program_goes_by_the_same_facts(folder: Path) -> None:
    (folder / "back.dl").write_text(PROGRAM.replace("path(x, y) :- edge(x, y).", "path(y, x) :- edge(x, y)."))
    (folder / "none.dl").write_text(".decl road(x:number)")
    with Talk() as talk:
        talk.say(".open roads.db paths.dl")
        assert talk.say(".open roads.db back.dl", "path(x, y)?") == (
            "roads.db: 2 relations, 2 rules, 3 facts, step 1\nx  y\n-  -\n2  1\n2  2\n(2 rows)"
        )
        assert "1 base fact(s) of `edge(x:number, y:number)`" in talk.say(".open roads.db none.dl")
        assert "cannot read gone.dl" in talk.say(".open roads.db gone.dl")
        assert talk.say(".reload") == "0 changed"
        assert "`.open FILE PROGRAM` replaces its program" in talk.say(".load paths.dl")
        assert talk.say(".as-of 0 path(x, y)") == "x  y\n-  -\n1  2\n(1 row)"


def test_a_database_is_no_program(capsys: pytest.CaptureFixture[str]) -> None:
    Database.open("roads.db", file="paths.dl").close()
    with Talk() as talk:
        told = "cannot read roads.db: it is a database, not a program; open it with --db or .open"
        assert talk.say(".load roads.db") == f"script:1: error: {told}"
    assert main(["run", "roads.db"]) == 1
    assert "it is a database, not a program" in capsys.readouterr().err


def test_one_writes_and_others_may_look() -> None:
    with Talk() as writer, Talk() as reader:
        writer.say(".open roads.db paths.dl")
        assert "roads.db" in reader.say(".open roads.db")
        assert reader.say(".count") == ""
        reader.say(".open roads.db read-only")
        assert reader.say(".count") == "edge: 1\npath: 1"
        assert "was opened with read_only=True" in reader.say("edge(5, 6).")
        writer.say("edge(2, 3).")
        assert reader.say(".open roads.db read-only", ".count edge").endswith("edge: 2")


def test_the_command_keeps_everything_in_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    first = everlog("repl", "--db", "roads.db", "paths.dl", "-c", "edge(2, 3).")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.endswith("+edge(2, 3).\n+path(1, 3).\n+path(2, 3).\n")
    again = everlog("repl", "--db", "roads.db", stdin=".diff 0\n")
    assert again.stdout.split("\n")[:2] == ["roads.db: 2 relations, 2 rules, 5 facts, step 1", "+edge(2, 3)."]
    assert main(["repl", "--db", "roads.db", "-c", "-edge(2,3).", "-c", "edge(2, 3)."]) == 0
    assert capsys.readouterr().out.count("edge(2, 3)") == 2
    assert main(["repl", "--db", "roads.db", "--read-only", "-c", "edge(5, 6).", "-c", ".count edge"]) == 1
    look = capsys.readouterr()
    assert look.out.endswith("edge: 2\n")
    assert "was opened with read_only=True" in look.err
    assert main(["repl", "paths.dl", "--read-only"]) == 2
    assert main(["repl", "--db", "paths.dl", "-c", ".count"]) == 2
    assert "paths.dl is a program, not a database: `everlog repl paths.dl` starts" in capsys.readouterr().err
