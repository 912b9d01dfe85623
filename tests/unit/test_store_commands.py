"""Databases in files from the command line and at the prompt."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from everlog import AlreadyOpen, Database
from everlog.cli import main
from everlog.repl.loop import run_script
from everlog.repl.session import Places, Session

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


# ── everlog run --db ─────────────────────────────────────────────────────────────────────────


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
    assert "2 given fact(s) of `line(a:symbol, b:symbol)`, which is not declared" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["p.dl", "--db", "p.dl"], 1, "no everlog database"),
        (["p.dl", "--db", "p.db", "--watch"], 2, "--db and --watch exclude each other"),
        (["p.dl", "--db", "p.db", "--engine", "spark"], 2, "--db and --engine spark exclude each other"),
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
        assert f"process {child.pid}, writes to it" in capsys.readouterr().err
        with Database.open("p.db", read_only=True) as reader:  # what was told is there
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


# ── the prompt ───────────────────────────────────────────────────────────────────────────────


class Talk:
    """A conversation: `say` gives back what lines are answered with."""

    def __init__(self, database: str | None = None, program: str | None = None) -> None:
        self.out = StringIO()
        places = Places(
            database=None if database is None else Path(database),
            program=None if program is None else Path(program),
        )
        self.session = Session(places, out=self.out)

    def say(self, *lines: str) -> str:
        before = len(self.out.getvalue())
        run_script(self.session, lines, "script")
        return self.out.getvalue()[before:].rstrip("\n")


def test_a_conversation_lasts() -> None:
    talk = Talk("talk.db")
    talk.say(".decl n(x:number)", ".decl m(x:number)", "m(x + 1) :- n(x).", "n(1). n(2).")
    talk.session.close()
    talk = Talk("talk.db")
    assert talk.say("m(x)?") == "x\n-\n2\n3\n(2 rows)"
    assert talk.say(".drop m#1") == "-m(2).\n-m(3)."
    talk.session.close()
    with Database.open("talk.db") as db:
        assert (db.step, dict(db.rules)) == (5, {})


def test_a_program_and_its_facts_go_into_a_new_file() -> None:
    talk = Talk("talk.db", "p.dl")
    assert talk.say("reach(x, y)?").startswith("x     y\n")
    talk.say('line("Basel", "Ulm").')
    talk.session.close()
    talk = Talk("talk.db", "p.dl")
    assert talk.say(".count") == "line: 2\nreach: 3"
    talk.session.close()


def test_saving_and_opening(folder: Path) -> None:
    talk = Talk()
    talk.say(".decl n(x:number)", "n(1).")
    assert talk.say(".save one.db") == "saved to one.db"
    assert "there already" in talk.say(".save one.db")
    assert talk.say(".save facts") == "saved to facts"
    assert (folder / "facts" / "n.facts").read_text() == "1\n"
    assert talk.say(".open one.db") == "one.db: 1 relation, 0 rules, 1 fact, step 0"
    assert talk.say("n(2).") == "+n(2)."
    assert "script:1: error: there is no folder" in talk.say(".open none/two.db")
    assert "no everlog database" in talk.say(".open p.dl")
    assert talk.say("n(x)?") == "x\n-\n1\n2\n(2 rows)"  # nothing has changed
    with pytest.raises(AlreadyOpen):
        Database.open("one.db")
    assert talk.say("begin", ".open two.db").endswith("another database is opened after `commit` or `rollback`")
    talk.say("rollback")
    assert talk.say(".open two.db") == "two.db: 0 relations, 0 rules, 0 facts, step 0"
    with Database.open("one.db") as db:
        assert db.size("n") == 2
    assert talk.say(".show").count("kept in: two.db") == 1
    talk.session.close()


def test_the_past_at_the_prompt() -> None:
    talk = Talk("talk.db")
    talk.say(".decl n(x:number)", ".decl m(x:number)", "m(x + 1) :- n(x).", "n(1). n(2).", "n(3).", "-n(1).")
    assert talk.say(".as-of 4 m(x)?") == "x\n-\n2\n3\n(2 rows)"
    assert talk.say(".as-of 4 ?- m(x), x > 2.") == "x\n-\n3\n(1 row)"
    assert talk.say(".as-of 4 n(1)") == "yes"
    assert talk.say(".as-of 3") == "n: 0\nm: 0"
    assert talk.say(".diff 4 6 m") == "-m(2).\n+m(4)."
    assert talk.say(".diff 6 4") == "-n(3).\n-m(4).\n+n(1).\n+m(2)."
    assert talk.say(".history n") == "step 4\n+n(1).\n+n(2).\nstep 5\n+n(3).\nstep 6\n-n(1)."
    assert talk.say(".history m").splitlines()[-2:] == ["step 6", "-m(2)."]
    assert talk.say(".checkpoint 2") == "step 6; history goes back to step 4"
    assert "history goes back to step 4" in talk.say(".as-of 3")
    assert "no step 7 yet" in talk.say(".diff 5 7 n")
    assert "undefined relation `none`" in talk.say(".history none")
    assert "undefined relation `none`" in talk.say(".diff 4 5 none")
    assert "usage: .as-of N [QUERY]" in talk.say(".as-of")
    assert "`x` is no number of a step" in talk.say(".diff x 1")
    assert "`many` is no number of steps" in talk.say(".checkpoint many")
    assert talk.say(".checkpoint all") == "step 6; history goes back to step 4"
    talk.session.close()


def test_without_a_file_there_is_no_past() -> None:
    talk = Talk()
    for line in (".as-of 0", ".diff 0 0", ".history n", ".checkpoint"):
        assert "this database is not kept in a file" in talk.say(line)
