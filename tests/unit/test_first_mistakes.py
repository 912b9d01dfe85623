"""The mistakes of the first hour: what is told, where, and how long it is."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest

from everlog import Database
from everlog.cli import main
from everlog.dsl.check import compile_text
from everlog.dsl.diagnostics import DatalogError
from everlog.repl.loop import run_script
from everlog.repl.session import Session

LONG = "x" * 200_000
EMP = [".decl emp(name:symbol, salary:number)", '+emp("ann", 3).']


def said(*lines: str) -> str:
    out = StringIO()
    run_script(Session(out=out), lines, "script")
    return out.getvalue()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ── what is told ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ('emp("ann", "bob").', 'column `salary` of `emp` takes a number, "bob" is a symbol'),
        ("emp(1, 2).", "column `name` of `emp` takes a symbol, 1 is a number"),
        ('emp("ann", 2.5).', "column `salary` of `emp` takes a number, 2.5 is a float"),
        ("+emp(ann, 2).", "`ann` is a variable; a symbol stands in double quotes"),
        ("emp('ann', 2).", 'hint: write "ann"'),
        ('empp("ann", 2).', "did you mean `emp`?"),
        ('.why empp("ann", 2)', "did you mean `emp`?"),
        (".why emp('ann', 3)", 'write "ann"'),
    ],
)
def test_a_fact_that_does_not_fit_names_its_column(fact: str, told: str) -> None:
    assert told in said(*EMP, fact)


def test_why_of_a_missing_fact_names_the_command_of_the_place(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ".decl p(x:number)\np(1)."
    (folder / "p.dl").write_text(text)
    (folder / "news").write_text(".why p(2)\n.why-not p(2)\n")
    assert "`.why-not` says what is missing" in said(text, ".why p(2)")
    with pytest.raises(ValueError, match="`why_not` says what is missing"):
        Database.from_text(text).why("p(2)")
    main(["why", "p.dl", "p(2)"])
    assert "`everlog why-not` says what is missing" in capsys.readouterr().err
    main(["run", "p.dl", "--updates", "news"])
    told = capsys.readouterr()
    assert "`.why-not` says what is missing" in told.err
    assert "p(2) is not there" in told.out


def test_a_mistake_in_a_fact_file_names_its_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "p.dl").write_text(".decl p(x:number)\n.input p\n.output p\n")
    (folder / "facts").mkdir()
    main(["run", "p.dl", "-F", "facts"])
    assert "cannot open fact file facts/p.facts" in capsys.readouterr().err
    main(["run", "p.dl"])
    assert "there is no such file in the current folder" in capsys.readouterr().err
    (folder / "facts" / "p.facts").write_text("one\n")
    main(["run", "p.dl", "-F", "facts"])
    assert "error: facts/p.facts:1: column 1" in capsys.readouterr().err


# ── how long it is ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "line",
    [
        f'emp("{LONG}", "y").',
        f'emp("{LONG}", 1, 2).',
        f'emp("{LONG}\\q", 1).',
        f'.why emp("{LONG}", 1)',
        f".{LONG}",
        f"{LONG}(1).",
        f"f({'1,' * 100_000}1).",
        f"f({'1,' * 100_000}1)?",
        f"emp({LONG}, 1)?" + " emp(1)?",
        " ".join(['emp("a" 1).'] * 15_000),
        " ".join(["emp(a, 1)."] * 15_000),
    ],
    ids=range(11),
)
def test_a_mistake_in_a_long_line_is_told_in_a_few(line: str) -> None:
    told = said(*EMP[:1], line)
    assert "error" in told
    assert len(told) < 5_000


def test_a_program_in_one_long_line_is_told_in_a_few() -> None:
    with pytest.raises(DatalogError) as caught:
        compile_text(EMP[0] + "\n" + " ".join(["emp(a, 1)."] * 15_000))
    assert len(str(caught.value)) < 5_000
    assert "more are not shown" in str(caught.value)


def test_names_of_the_planner_stay_inside(capsys: pytest.CaptureFixture[str]) -> None:
    """What the planner splits off a rule counts for the rule, wherever figures are told."""
    db = Database.from_text("""
      .decl weight(a:symbol, b:number, n:number)  .decl total(a:symbol, s:number)
      total(a, s) :- weight(a, _, _), s = sum n : { weight(a, _, n) }.
      .decl q(a:symbol)  q(a) :- weight(a, b, _), weight(_, b, n), n > 1.""")
    db.insert("weight", [("a", 1, 2), ("b", 1, 3)])
    for i in range(500):
        db.insert("weight", ("c", i, i))
    found = db.stats()
    assert {each.name for each in found.relations} == {"weight", "total", "q"}
    assert {each.name for each in found.rules} == {"total#1", "q#1"}
    assert not re.search(r"@|/\d", f"{found}{db.stats().units}")
    inside = db._engine._network.plan.program.rules
    assert any("@" in rule.name for rule in inside)
    seconds = sum(seconds for _, seconds, _ in db._engine.rule_figures().values())
    assert sum(each.seconds for each in found.rules) == pytest.approx(seconds)
    assert main(["repl", "-c", ".decl n(x:number)", "-c", ".decl m(k:number)", "-c", "m(k) :- k = count : { n(_) }.",
                 "-c", "n(1).", "-c", ".prof"]) == 0  # fmt: skip
    assert not re.search(r"@|/\d", capsys.readouterr().out)


def test_directives_are_among_what_is_meant_at_the_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repl", "-c", ".dcl n(x:number)"]) == 1
    assert "no command `.dcl`; did you mean `.decl`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "dotted"),
    [("help", ".help"), ("why emp(1, 2)", ".why emp(1, 2)"), ("tables", ".tables"), ("quit", ".quit")],
)
def test_a_command_without_its_dot_is_told_at_once(typed: str, dotted: str) -> None:
    told = said(*EMP, typed, 'emp("bob", S)?')
    assert f"a command begins with a dot: `{dotted}`" in told
    assert "(0 rows)" in told  # the next line is read as itself


def test_relations_may_have_the_names_of_commands() -> None:
    told = said(".decl why(x:number)", "why(1).", "why(x) :- why(y), x = y + 1,", "  y < 3.", "why(x)?")
    assert "(3 rows)" in told
    assert "error" not in told


def test_a_file_instead_of_a_command_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["people.csv"]) == 2
    assert "did you mean `everlog open people.csv`?" in capsys.readouterr().err
    assert main(["prog.dl"]) == 2
    assert "did you mean `everlog run prog.dl`?" in capsys.readouterr().err
