"""The search for functor files: untrusted files in the current folder are not run."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from everlog import Database
from everlog.cli import main
from everlog.core.program.values import EvaluationError
from everlog.functors import FunctorError
from everlog.repl.open_database import functions_for
from everlog.repl.session import Places, Session

PROGRAM = ".functor twice(number):number\n.decl p(x:number)\n.output p\np(@twice(21)).\n"
HOSTILE = 'open("ran", "w").close()\ndef twice(x):\n    return 666\n'
RIGHT = "def twice(x):\n    return 2 * x\n"


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a program; the current folder is another, with an unwanted file."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "here" / "functors.py").write_text(HOSTILE)
    (tmp_path / "there" / "p.dl").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "there"


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize(
    "start",
    [
        lambda path: main(["run", str(path), "-D-"]),
        lambda path: main(["run", "../there/p.dl", "-D-"]),
        lambda path: main(["run", str(path), "-D-", "--db", "p.db"]),
        lambda path: main(["why", str(path), "p(42)"]),
        lambda path: main(["follow", str(path), "--from", "/dev/null", "--to", "out.jsonl"]),
        lambda path: Database.from_file(path),
        lambda path: Database.open("q.db", file=path),
    ],
)
def test_the_current_folder_is_left_alone_for_a_program_elsewhere(
    apart: Path, capsys: pytest.CaptureFixture[str], start: Callable[[Path], object], beside: bool
) -> None:
    if beside:
        (apart / "functors.py").write_text(RIGHT)
    told = ""
    try:
        status = start(apart / "p.dl")
    except FunctorError as error:
        status, told = 1, str(error)
    told += "".join(capsys.readouterr())
    assert (status == 1) is not beside
    assert ("`-L .` takes ./functors.py, which is not beside the program" in told) is not beside
    assert not Path("ran").exists()


@pytest.mark.parametrize("flags", [["-L", "."], ["-l", "functors"], ["-l", "functors.py"], ["-L", "../here"]])
def test_it_is_taken_if_it_is_asked_for(apart: Path, capsys: pytest.CaptureFixture[str], flags: list[str]) -> None:
    assert main(["run", str(apart / "p.dl"), "-D-", *flags]) == 0
    assert "666" in capsys.readouterr().out


def test_a_program_in_the_current_folder_has_it_beside(apart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.dl").write_text(PROGRAM)
    for name in ("p.dl", "./p.dl", str(Path.cwd() / "p.dl")):
        assert main(["run", name, "-D-"]) == 0
        assert "666" in capsys.readouterr().out


def test_a_database_elsewhere_has_its_functors_beside_it(
    apart: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (apart / "functors.py").write_text(RIGHT)
    Database.open(apart / "p.db", file=apart / "p.dl").close()
    monkeypatch.setattr("sys.stdin", StringIO("?- p(x), y = @twice(x).\n"))
    assert main(["repl", "--db", str(apart / "p.db")]) == 0
    assert "84" in capsys.readouterr().out
    assert not Path("ran").exists()


def test_the_prompt_takes_folders_of_functors_without_names(apart: Path) -> None:
    session = Session(places=Places(library_dirs=[str(apart)]))
    (apart / "functors.py").write_text(RIGHT)
    assert functions_for(session, apart / "p.dl")["twice"](4) == 8
    assert not Path("ran").exists()


class _Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("kind", "result", "wanted"),
    [
        ("symbol", lambda: "\ud800", None),
        ("symbol", lambda: "a\udc80", "a\udc80"),
        ("symbol", lambda: _Text("a"), "a"),
        ("float", lambda: 10**400, None),
        ("symbol", lambda: 10**5000, None),
        ("float", lambda: 2, 2.0),
    ],
)
def test_what_a_functor_returns_is_a_value_or_the_step_fails(
    kind: str, result: Callable[[], object], wanted: object
) -> None:
    text = f".functor f(number):{kind}  .decl e(x:number)  .decl r(y:{kind})  r(@f(x)) :- e(x)."
    database = Database.from_text(text, functors={"f": lambda x: result()})
    if wanted is None:
        with pytest.raises(EvaluationError, match=f"returned .*, which is no {kind}"):
            database.insert("e", (1,))
        assert database.view("e") == []
    else:
        database.insert("e", (1,))
        assert [(type(y), y) for (y,) in database.view("r")] == [(type(wanted), wanted)]
