"""`everlog programs`: list, show, run, copy and feed the shipped programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from everlog.cli import main
from everlog.shipped import names, shipped


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["programs", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_the_list_names_every_program_with_what_it_answers(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys)
    assert text == told(capsys, "list")
    for name in names():
        assert f"\n{name} " in "\n" + text
    assert "Who may do what" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_list_as_json_has_the_remarks(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(told(capsys, "list", "--json"))
    assert [one["name"] for one in found] == names()
    assert all({"folder", "what", "why", "class", "facts"} <= one.keys() for one in found)


@pytest.mark.parametrize("name", names())
def test_the_page_of_a_program_is_complete(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "show", name)
    lines = text.splitlines()
    assert lines[0].startswith(f"{name}: ")
    for title in ("why", "class", "facts", "reads", "answers"):
        assert any(line.startswith(f"{title} ") for line in lines), title
    assert f"  everlog programs run {name} --updates" in text
    assert (f"  everlog programs make {name} DIR" in text) == (shipped(name).maker is not None)


def test_the_page_shows_class_and_cost_of_each_rule(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "show", "fraud_rings")
    assert "ring3#1           cyclic, O(D) amortized       ring3(a, b, c) :- paid(a, b)" in text
    assert "ring4#1           cyclic, O(D) " in text
    assert "hangs_together#2  recursive " in text
    assert "in_ring#4…7 " in text  # four heads, one line


def test_a_program_runs_on_its_facts_and_writes_to_the_screen(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = told(capsys, "run", "transitive_closure")
    assert text.startswith("---------------\npath\n")
    assert "\n9293\t761\n" in text
    assert list(tmp_path.iterdir()) == []


def test_flags_of_run_may_follow_with_or_without_dashes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert told(capsys, "run", "transitive_closure", "-D", str(tmp_path)) == ""
    first = (tmp_path / "path.csv").read_text(encoding="utf-8")
    assert told(capsys, "run", "transitive_closure", "--", "-D", str(tmp_path)) == ""
    assert (tmp_path / "path.csv").read_text(encoding="utf-8") == first
    facts = tmp_path / "facts"
    facts.mkdir()
    (facts / "edge.facts").write_text("1\t2\n2\t3\n", encoding="utf-8")
    assert "1\t3\n" in told(capsys, "run", "transitive_closure", "-F", str(facts))


def test_paths_are_those_of_the_folder_where_one_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("mine/edge.facts").write_text("1\t2\n2\t3\n", encoding="utf-8")
    Path("news.txt").write_text("-edge(2, 3).\n.why path(1, 2)\n", encoding="utf-8")
    text = told(capsys, "run", "transitive_closure", "-F", "mine", "-D", ".", "--updates", "news.txt")
    assert text.startswith("-path(1, 3).\n-path(2, 3).\npath(1, 2)   path#1 at transitive_closure.dl:")
    assert Path("path.csv").read_text(encoding="utf-8") == "1\t2\n"
    assert Path.cwd() == tmp_path


def test_updates_without_a_file_are_the_programs_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = told(capsys, "run", "transitive_closure", "--updates", "-D", str(tmp_path))
    assert text.startswith("+path(9999, 761).\n")
    stream = tmp_path / "mine.txt"
    stream.write_text("+edge(1, 2).\n", encoding="utf-8")
    assert (
        told(capsys, "run", "transitive_closure", "-D", str(tmp_path), "--updates", str(stream))
        == "+path(1, 2).\n"
    )


def test_updates_come_through_a_pipe(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "everlog", "programs", "run", "transitive_closure", "--updates", "-"]
    done = subprocess.run(
        [*command, "-D", str(tmp_path)], input="-edge(793, 761).\n", capture_output=True, text=True, check=True
    )
    assert "-path(9293, 761).\n" in done.stdout


def test_a_copy_is_complete_and_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    text = told(capsys, "copy", "link_failures", str(folder))
    assert {p.name for p in folder.iterdir()} == {
        "facts", "link_failures.dl", "link_failures.dlt", "make.py", "updates.txt"
    }  # fmt: skip
    command = text.splitlines()[1].split()
    assert command[:2] == ["everlog", "run"]
    assert main(command[1:]) == 0
    assert "critical" in capsys.readouterr().out


def test_a_copy_overwrites_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine", encoding="utf-8")
    assert main(["programs", "copy", "triangles", str(tmp_path)]) == 1
    assert "nothing was copied" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]


def test_mistakes_are_reported(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["programs", "show", "triangle"]) == 1
    assert capfd.readouterr().err == "error: no program `triangle`; did you mean `triangles`?\n"
    assert main(["programs", "run", "xyzzy"]) == 1
    assert "there are access_control, " in capfd.readouterr().err
    assert main(["programs", "make", "triangles", str(tmp_path)]) == 1
    assert "`everlog programs copy triangles DIR`" in capfd.readouterr().err
    assert main(["programs", "make", "fraud_rings", str(tmp_path), "--size", "2"]) == 2
    assert "--size is at least 4" in capfd.readouterr().err
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    assert main(["programs", "make", "fraud_rings", str(blocked)]) == 1
    assert f"cannot write `{blocked}`" in capfd.readouterr().err
