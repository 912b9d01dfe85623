"""The scripts that make facts for shipped programs: generators, Debian's data."""

from __future__ import annotations

import doctest
import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from shipped_programs import PROGRAMS, assert_current, facts_of

import everlog
from everlog import Database
from everlog.cli import main


def script(name: str, file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{name}_{file}", PROGRAMS / name / f"{file}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATORS = sorted(path.parent.name for path in PROGRAMS.glob("*/make.py"))


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_makes_facts_that_its_program_runs_on(name: str, tmp_path: Path) -> None:
    def make(folder: str, *words: str) -> dict[str, list[list[str]]]:
        assert main(["programs", "make", name, str(tmp_path / folder), *words]) == 0
        return facts_of(tmp_path / folder)

    once, again, other = (
        make("a", "--size", "20"),
        make("b", "--size", "20"),
        make("c", "--size", "20", "--seed", "2"),
    )
    assert once == again
    assert once != other
    program, _ = everlog.compile_file(PROGRAMS / name / f"{name}.dl")
    assert set(once) == {d.relation for d in program.inputs}
    db = Database.from_file(PROGRAMS / name / f"{name}.dl", facts=tmp_path / "a")
    assert sum(db.size(d.relation) for d in program.outputs) > 0
    assert_current(db)


@pytest.mark.parametrize("name", ["fraud_rings", "schedule_conflicts"])
def test_what_ships_can_be_made_again(name: str, tmp_path: Path) -> None:
    assert main(["programs", "make", name, str(tmp_path)]) == 0
    assert facts_of(tmp_path) == facts_of(PROGRAMS / name / "facts")


def test_debian_packages_are_read_as_documented() -> None:
    module = script("debian_packages", "extract")
    assert doctest.testmod(module).attempted > 0
    assert doctest.testmod(module).failed == 0
    assert module.alternatives("python3:any (>= 3.11~)") == [("python3", ">=", "3.11~")]


needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="this is no Debian machine")


@needs_dpkg
def test_debian_packages_of_this_machine(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["programs", "make", "debian_packages", str(tmp_path), "--all", "--remove"]
    assert main([*words, "libc6"]) == 0
    db = Database.from_file(PROGRAMS / "debian_packages" / "debian_packages.dl", facts=tmp_path)
    assert db.size("installed") == db.size("package") > 50
    assert db.size("breaks") > 20
    assert db.holds("breaks", ("libc6", "dpkg"))
    assert main([*words, "no-such-package"]) == 1
    assert "`no-such-package`" in capfd.readouterr().err
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["programs", "make", "debian_packages", str(tmp_path / "file"), "--all"]) == 1
    assert "cannot write" in capfd.readouterr().err
    assert (
        main(["programs", "make", "debian_packages", str(tmp_path / "c"), "--all", "--remove", "none-such"]) == 1
    )
    assert "`none-such`, which is not among the packages" in capfd.readouterr().err


@needs_dpkg
@pytest.mark.deep
def test_debian_packages_break_what_apt_would_remove(tmp_path: Path) -> None:
    """For packages that no essential one needs, apt removes what we say breaks."""
    names = [n for n in ("curl", "git", "libxml2", "gcc-12", "perl", "less") if _installed(n)]
    assert main(["programs", "make", "debian_packages", str(tmp_path), "--all", "--remove", ",".join(names)]) == 0
    db = Database.from_file(PROGRAMS / "debian_packages" / "debian_packages.dl", facts=tmp_path)
    compared = 0
    for name in names:
        done = subprocess.run(["apt-get", "-s", "remove", name], capture_output=True, text=True)
        removed = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("Remv ")}
        if removed and "Inst " not in done.stdout:  # else apt refuses, or installs something else instead
            assert removed == {name} | {str(p) for _, p in db.query(f'breaks("{name}", p)')}
            compared += 1
    assert compared


def _installed(name: str) -> bool:
    return subprocess.run(["dpkg-query", "-W", name], capture_output=True).returncode == 0


# Three concepts in the format of wndb(5WN): a dog is a canine is an animal, and a dog has a tail.
DATA = """\
  1 A licence.
  2   of two lines
00000001 03 n 01 animal 0 001 ~ 00000002 n 0000 | a living thing
00000002 05 n 02 canine 1 canid 0 002 @ 00000001 n 0000 ~ 00000003 n 0000 | like a dog
00000003 05 n 02 Dog 0 domestic_dog 0 003 @ 00000002 n 0000 %p 00000004 n 0000 + 00000009 v 0101 | barks; "a | b"
00000004 08 n 01 tail 0 000 | at the end
"""
INDEX = """\
  1 A licence.
animal n 1 1 ~ 1 0 00000001
canid n 1 2 @ ~ 1 0 00000002
canine n 2 2 @ ~ 2 0 00000004 00000002
dog n 1 2 @ %p 1 1 00000003
domestic_dog n 1 2 @ %p 1 0 00000003
tail n 1 0 1 0 00000004
"""


def test_wordnet_is_read_as_its_manual_says(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data.noun").write_text(DATA, encoding="utf-8")
    (tmp_path / "index.noun").write_text(INDEX, encoding="utf-8")
    out = tmp_path / "out"
    words = ["programs", "make", "wordnet", str(out), "--wordnet", str(tmp_path)]
    assert main([*words, "--words", "dog", "--search", "animal", "--compare", "Dog.1/tail.1"]) == 0
    facts = facts_of(out)
    assert facts["broader"] == [["Dog.1", "canine.2"], ["canine.2", "animal.1"]]
    assert facts["part_of"] == [["tail.1", "Dog.1"]]
    assert ["domestic dog", "1", "Dog.1"] in facts["sense"]
    assert (out / "LICENSE").read_text(encoding="utf-8") == "A licence.\n  of two lines\n"
    assert main([*words, "--words", "canine.2"]) == 0
    assert main([*words, "--words", "canine.3"]) == 1
    assert "WordNet has no noun `canine.3`" in capfd.readouterr().err
    assert main([*words, "--all"]) == 0
    assert main(["programs", "make", "wordnet", str(out), "--wordnet", str(out)]) == 1
    assert "no data.noun" in capfd.readouterr().err


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("apt-get") is None, reason="this is no Debian machine")
def test_wordnet_of_debian_is_as_large_as_it_says(tmp_path: Path) -> None:
    if main(["programs", "make", "wordnet", str(tmp_path), "--all"]) != 0:
        pytest.skip("the package wordnet-base cannot be fetched")
    db = Database.from_file(PROGRAMS / "wordnet" / "wordnet.dl", facts=tmp_path)
    assert db.size("broader") == 84427
    assert len({row[2] for row in db.rows("sense")}) == 82115
    assert db.size("circular") == 0
    assert main(["programs", "make", "wordnet", str(tmp_path / "excerpt")]) == 0
    assert facts_of(tmp_path / "excerpt") == facts_of(PROGRAMS / "wordnet" / "facts")
