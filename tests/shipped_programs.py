"""Helpers for tests of the shipped programs: folders, facts, outputs, oracles."""

from __future__ import annotations

from pathlib import Path

from everlog import Database
from everlog.cli import main
from everlog.core.evaluate import reference

PROGRAMS = Path(__file__).parent.parent / "programs"


def outputs(name: str, folder: Path) -> dict[str, list[tuple[str, ...]]]:
    """Run a program on its facts; the lines of each file that it writes."""
    program = PROGRAMS / name / f"{name}.dl"
    assert main(["run", str(program), "-F", str(PROGRAMS / name / "facts"), "-D", str(folder)]) == 0
    lines = {path.stem: path.read_text(encoding="utf-8").splitlines() for path in folder.glob("*.csv")}
    return {relation: [tuple(line.split("\t")) for line in rows] for relation, rows in lines.items()}


def assert_current(db: Database) -> None:
    """Check every relation against the reference evaluator on the current base facts."""
    expected = reference.evaluate(db.program, {relation: db.given(relation) for relation in db.relations})
    for relation in db.relations:
        assert set(db.rows(relation)) == expected[relation], relation


def facts_of(folder: Path) -> dict[str, list[list[str]]]:
    return {
        path.stem: [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        for path in folder.glob("*.facts")
    }
