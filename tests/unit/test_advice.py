"""Advice on relations, from what was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from everlog import Database
from everlog.cli import main

TEXT = """.decl e(x:number, y:number)
.decl path(x:number, y:number)  path(x, y) :- e(x, y).  path(x, z) :- path(x, y), e(y, z).
.decl two(x:number, z:number)   two(x, z) :- e(x, y), e(y, z).
.decl three(x:number, w:number) three(x, w) :- e(x, y), e(y, z), e(z, w).  .output three
.decl report(x:number)          report(x) :- path(x, x).
"""


def advice(db: Database) -> dict[str, str]:
    return {each.name: each.action for each in db.advise()}


def chain(length: int) -> Database:
    db = Database.from_text(TEXT)
    db.insert("e", [(n, n + 1) for n in range(length)])
    return db


def test_what_nobody_reads_may_go() -> None:
    assert advice(chain(5)) == {
        "path": "drop",
        "two": "keep",
        "three": "keep",
        "report": "drop",
    }


def test_what_is_asked_by_columns_may_be_on_demand() -> None:
    db = chain(40)
    for start in (38, 39):
        assert db.query("path($from, x)", **{"from": start})
    (found,) = (each for each in db.advise() if each.name == "path")
    assert found.action == "on demand"
    assert "by x 2 times: 0.4% of its facts" in found.why
    whole = next(each for each in db.stats().relations if each.name == "path").bytes
    assert 0.9 * whole < found.bytes < whole
    db.view("path")
    assert advice(db)["path"] == "keep"


def test_what_is_watched_stays() -> None:
    db = chain(5)
    with db.subscribe("report", print):
        assert advice(db)["report"] == "keep"
        assert advice(db)["path"] == "keep"


def test_one_reader_may_have_the_body() -> None:
    db = Database.from_text(
        ".decl e(x:number)  .decl a(x:number)  .decl b(x:number)  a(x) :- e(x).  b(x) :- a(x)."
    )
    db.view("b")
    assert advice(db) == {"a": "inline", "b": "keep"}


def test_joins_that_rules_share() -> None:
    db = Database.from_text(""".decl r(x:number, y:number)  .decl s(x:number, y:number)  .decl t(x:number)
        .decl p(x:number)  .decl q(x:number, z:number)  .output p  .output q
        p(x) :- r(x, y), s(y, _), t(x).  q(x, z) :- r(x, y), s(y, z), x > z.""")
    (found,) = (each for each in db.advise() if each.action == "add")
    assert found.why == "p#1, q#1 join the same two atoms"


def test_a_log_is_run_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, log = tmp_path / "p.dl", tmp_path / "day.txt"
    program.write_text(TEXT)
    log.write_text("+e(1, 2). +e(2, 3). +e(3, 4). +e(4, 5).\npath(4, x)?\n")
    assert main(["advise", str(program), "--log", str(log)]) == 0
    shown = capsys.readouterr().out
    assert "path: on demand, it was only asked for by x once: 10.0% of its facts" in shown
    assert f"measure  everlog advise {program} --log {log} --demand path" in shown
    assert main(["advise", str(program), "--log", str(log), "--demand", "path", "--brief"]) == 0
    assert "path: keep, it is on demand already" in capsys.readouterr().out
    log.write_text("path(4, x?\n")
    assert main(["advise", str(program), "--log", str(log)]) == 1
    assert "error" in capsys.readouterr().err
