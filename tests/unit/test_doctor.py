"""`everlog doctor`: what is there, and how to get the rest."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from everlog.cli import main
from everlog.commands import doctor
from everlog.core.native.availability import why_not

EXTRAS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


def test_what_is_missing_comes_with_a_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"pandas", "duckdb"}
    monkeypatch.setattr(doctor, "find_spec", lambda name: name if name in there else None)
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].startswith("everlog ")
    assert any(line.startswith("✓ tables of pandas") and "pandas" in line for line in lines)
    assert any(
        "no starlette: pip install 'everlog[serve]' (in a checkout: pip install '.[serve]')" in x for x in lines
    )


def test_the_same_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    parts = json.loads(capsys.readouterr().out)["parts"]
    assert {part["name"] for part in parts} >= {"pandas", "pyspark", "Java"}
    assert parts[0]["name"] == "compiled machine"
    assert all(part["there"] or part["get"] for part in parts)


def test_the_compiled_machine_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    main(["doctor"])
    machine = capsys.readouterr().out.split("\n")[1]
    assert machine.startswith("✓ whole programs" if not why_not() else "· whole programs")
    monkeypatch.setenv("EVERLOG_PURE", "1")
    main(["doctor"])
    assert "no compiled machine: EVERLOG_PURE is set; everything runs in Python" in capsys.readouterr().out


@pytest.mark.parametrize(("distribution", "extra"), [(part[2], part[3]) for part in doctor._PARTS])
def test_each_part_comes_with_the_extra_that_is_named(distribution: str, extra: str) -> None:
    assert any(requirement.startswith(distribution) for requirement in EXTRAS[extra])
