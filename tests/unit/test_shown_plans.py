"""Plans are shown as they are used: orders, indexes, rows expected, tried and kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everlog import Database
from everlog.cli import main
from everlog.core.native.availability import why_not

TEXT = """
.decl big(x:number, y:number)  .decl few(y:number)  .decl out(x:number)
.input big, few
.output out
out(x) :- big(x, y), few(y), x > 10.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.dl").write_text(TEXT)
    (tmp_path / "big.facts").write_text("".join(f"{x}\t{x % 50}\n" for x in range(1000)))
    (tmp_path / "few.facts").write_text("3\n4\n")
    return tmp_path


@pytest.mark.skipif(bool(why_not()), reason="the compiled machine is not there")
def test_explain_with_facts_shows_what_was_expected_and_what_was_found(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(folder / "program.dl"), "-F", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "out: evaluated by the compiled machine" in text
    lines = [line.split() for line in text.splitlines() if "expected" in line]
    assert [line[:2] for line in lines] == [["scan", "few(y)"], ["index", "on"]]
    assert lines[0][2:] == ["expected", "2.0", "tried", "2", "kept", "2"]
    assert lines[1][-4:] == ["tried", "40", "kept", "38"]


def test_explain_in_python_shows_orders_and_counts_them_afterwards(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERLOG_PURE", "1")
    assert main(["explain", str(folder / "program.dl"), "out#1", "-F", str(folder)]) == 0
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines() if "expected" in line]
    assert [line[-4:] for line in lines] == [["tried", "2", "kept", "2"], ["tried", "40", "kept", "38"]]


def test_rows_are_counted_for_living_rules_where_they_are_few() -> None:
    db = Database.from_text("""
.decl big(x:number, y:number)  .decl few(y:number)  .decl no(x:number)  .decl out(x:number, z:number)
out(x, z) :- big(x, y), few(y), !no(x), z = x + y, z > 50.
.strategy delta
""")
    db.insert("few", [(3,), (4,)])
    db.insert("big", [(x, x % 50) for x in range(1000)])
    db.insert("no", [(3,), (53,)])
    whole, *deltas = db.plans("out")
    steps = {step.atom: (step.tried, step.kept) for step in whole.steps}
    assert steps["few(y)"] == (2, 2)
    assert steps["big(x, y)"] == (40, 37)  # without 3, 4 and 53
    assert {step.tried for plan in deltas for step in plan.steps} == {None}
    db.insert("big", [(x, x % 50) for x in range(1000, 200_000)])
    assert {step.tried for step in db.plans("out")[0].steps} == {None}


def test_a_profile_has_the_plan_of_each_rule(folder: Path) -> None:
    profile = folder / "profile.json"
    command = ["run", str(folder / "program.dl"), "-F", str(folder), "-D", str(folder), "-p", str(profile)]
    assert main(command) == 0
    (rule,) = [rule for unit in json.loads(profile.read_text())["units"] for rule in unit["rules"]]
    steps = rule["plans"][0]["steps"]
    assert [step["atom"] for step in steps] == ["few(y)", "big(x, y)"]


def test_a_wrong_name_or_folder_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(folder / "program.dl"), "-F", str(folder / "no")]) == 1
    assert main(["explain", str(folder / "program.dl"), "nothing", "-F", str(folder)]) == 1
    assert "no relation or rule `nothing`" in capsys.readouterr().err


def test_plans_of_a_database_follow_its_facts() -> None:
    db = Database.from_text(TEXT.replace(".input big, few\n", "").replace(".output out\n", ""))
    db.insert("few", [(y,) for y in range(500)])
    db.insert("big", [(1, 1)])
    first = [step.atom for step in db.plans("out")[0].steps]
    db.insert("big", [(x, x % 700) for x in range(20_000)])
    then = [step.atom for step in db.plans("out")[0].steps]
    assert (first, then) == (["big(x, y)", "few(y)"], ["few(y)", "big(x, y)"])
    assert [plan.delta for plan in db.plans("out#1")] == [None, 0, 1]


def test_where_no_order_is_chosen_it_is_told_what_is_done_instead() -> None:
    db = Database.from_text("""
.decl e(x:number, y:number)  .decl p(x:number, y:number)
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
.plan 0:(1,2)
.decl q(a:number, b:number, c:number)
q(a, b, c) :- e(a, b), e(b, c), e(c, a).
.strategy generations
""")
    first, second = db.plans("p")
    assert (first.steps, second.steps) == ((), ())
    assert "sets flow" in first.instead
    assert "its `.plan` has no effect" in second.instead
    (view,) = db.plans("q")
    assert "`generations` keeps it" in view.instead
    assert list(view.lines())[1].strip() == view.instead


def test_a_profile_shows_the_plans_that_were_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert main(["run", "program.dl", "-F", ".", "-D", ".", "-p", "profile.html"]) == 0
    page = (folder / "profile.html").read_text()
    assert "<h2>Plans</h2>" in page
    assert "<code>few(y)</code>" in page
    assert "index on y" in page
