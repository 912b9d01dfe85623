"""The programs that ship with everlog: each checks, runs on its own facts, and answers rightly."""

from __future__ import annotations

import doctest
import importlib.util
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

import everlog
from everlog import demo
from everlog.cli import main

PROGRAMS = Path(__file__).parents[2] / "programs"
NAMES = sorted(path.parent.name for path in PROGRAMS.glob("*/*.dl"))


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def outputs(name: str, folder: Path) -> dict[str, list[tuple[str, ...]]]:
    """Run a program on its facts; the lines of each file that it writes."""
    program = PROGRAMS / name / f"{name}.dl"
    assert main(["run", str(program), "-F", str(PROGRAMS / name / "facts"), "-D", str(folder)]) == 0
    lines = {path.stem: path.read_text(encoding="utf-8").splitlines() for path in folder.glob("*.csv")}
    return {relation: [tuple(line.split("\t")) for line in rows] for relation, rows in lines.items()}


# ── all of them ──────────────────────────────────────────────────────────────────────────────


def test_each_program_has_its_folder_its_facts_and_its_twin(name: str) -> None:
    folder = PROGRAMS / name
    assert (folder / f"{name}.dl").is_file()
    assert (folder / f"{name}.dlt").is_file()
    program, _ = everlog.compile_file(folder / f"{name}.dl")
    assert {p.stem for p in (folder / "facts").glob("*.facts")} == {d.relation for d in program.inputs}


def test_each_program_says_what_why_and_which_class(name: str) -> None:
    header = (PROGRAMS / name / f"{name}.dl").read_text(encoding="utf-8").split(".decl")[0]
    assert header.startswith("// ")
    assert all(f"// {word}:" in header for word in ("Why", "Class", "Facts"))


def test_each_program_checks_without_warnings(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(PROGRAMS / name / f"{name}.dl")]) == 0
    told = capsys.readouterr()
    assert "no errors" in told.out
    assert "warning" not in told.out + told.err


def test_each_program_runs_quietly_and_writes_all_its_outputs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = outputs(name, tmp_path)
    program, _ = everlog.compile_file(PROGRAMS / name / f"{name}.dl")
    assert set(written) == {d.relation for d in program.outputs}
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "")


def test_facts_are_sets_of_clean_lines(name: str) -> None:
    for path in (PROGRAMS / name / "facts").glob("*.facts"):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        assert text.endswith("\n"), path
        assert len(set(lines)) == len(lines), path
        assert all(field and field == field.strip() for line in lines for field in line.split("\t")), path


# ── each of them ─────────────────────────────────────────────────────────────────────────────


def test_transitive_closure_knows_what_an_rfc_replaced(tmp_path: Path) -> None:
    path = set(outputs("transitive_closure", tmp_path)["path"])
    assert ("9110", "2068") in path  # HTTP of 2022 and of 1997, by way of 7231 and 2616
    assert ("5321", "772") in path  # mail, six steps
    assert ("2068", "9110") not in path
    assert {old for new, old in path if new == "4271"} == {"1771", "1654", "1267", "1163", "1105"}


def test_same_generation_finds_the_cousins_on_the_thrones(tmp_path: Path) -> None:
    written = outputs("same_generation", tmp_path)
    cousin = {frozenset(row[:2]): int(row[2]) for row in written["cousin"]}
    assert cousin[frozenset({"George V", "Wilhelm II"})] == 1
    assert cousin[frozenset({"George V", "Nicholas II"})] == 1
    assert cousin[frozenset({"Elizabeth II", "Harald V"})] == 2
    assert cousin[frozenset({"Elizabeth II", "Philip"})] == 3
    assert frozenset({"Elizabeth II", "Margaret"}) not in cousin  # sisters
    pairs = set(written["same_generation"])
    assert ("Elizabeth II", "Margaret") in pairs
    assert all((y, x) in pairs and x != y for x, y in pairs)


def test_triangles_agree_with_what_is_published_about_the_karate_club(tmp_path: Path) -> None:
    written = outputs("triangles", tmp_path)
    assert len(written["triangle"]) == 45
    assert len(written["square"]) == 154
    clustering = {x: (int(pairs), float(share)) for x, pairs, share in written["clustering"]}
    assert clustering["Mr Hi"] == (18, 0.15)
    assert clustering["John A"] == (15, 15 / 136)
    assert sum(pairs for pairs, _ in clustering.values()) == 3 * 45  # a triangle has three corners
    assert written["suggestion"] == [
        ("John A", "Mr Hi", "4"),
        ("John A", "member 03", "6"),
        ("member 08", "member 14", "4"),
    ]


def test_points_to_finds_the_one_cast_that_may_fail(tmp_path: Path) -> None:
    written = outputs("points_to", tmp_path)
    assert written["bad_cast"] == [("main.risky", "Coffee", "Tea@25")]
    points_to = set(written["points_to"])
    assert {o for v, o in points_to if v == "main.end"} == {"Seat@32", "Seat@33"}
    assert {o for v, o in points_to if v == "main.safe"} == {"Mocha@26"}
    assert ("Cup@28", "content", "Tea@25") in written["holds"]
    assert ("main.mug", "main.theirs") in written["alias"]


def test_points_to_names_objects_by_the_lines_of_the_source() -> None:
    source = (PROGRAMS / "points_to" / "facts" / "Cafe.java").read_text(encoding="utf-8").splitlines()
    for line in (PROGRAMS / "points_to" / "facts" / "new.facts").read_text(encoding="utf-8").splitlines():
        variable, allocated, kind = line.split("\t")
        number = int(allocated.removeprefix(f"{kind}@"))
        assert f" {kind} {variable.split('.')[1]} = new {kind}();" in source[number - 1]


def test_access_control_answers_the_auditor(tmp_path: Path) -> None:
    written = outputs("access_control", tmp_path)
    may = set(written["may"])
    assert {who for who, does, what in may if (does, what) == ("read", "payroll")} == {
        "alan",
        "donald",
        "katherine",
        "margaret",
    }
    assert ("john", "read", "payroll") in written["blocked"]
    assert ("grace", "read", "logs") in may  # on call, so in platform, so in engineering; a folder in a folder
    assert not [row for row in may if row[0] == "tim"]  # suspended
    assert written["conflict"] == [("alan", "payroll-clerk", "auditor")]
    assert written["unattended"] == []


def test_debian_packages_say_what_breaks_and_what_comes_along(tmp_path: Path) -> None:
    written = outputs("debian_packages", tmp_path)
    breaks = set(written["breaks"])
    assert {("libssl3", "openssl"), ("libssl3", "curl"), ("libssl3", "python3")} <= breaks
    assert not [p for x, p in breaks if x in ("cron", "systemd-sysv")]  # exim4-base needs one of them
    assert {p for x, p in breaks if x == "exim4-config"} == {"exim4-base", "exim4-daemon-light"}
    assert ("build-essential", "gcc-12") in written["pulls_in"]
    assert ("postfix", "postfix", "exim4-daemon-light") in written["clash"]
    assert written["missing"] == []
    assert written["orphan"] == [("libicu72",), ("libxml2",)]
    assert ("gcc-12-base", "0", _size_of("gcc-12-base")) in written["cost"]  # needs nothing
    assert max(int(packages) for _, packages, _ in written["cost"]) == 86  # mutt


def _size_of(package: str) -> str:
    text = (PROGRAMS / "debian_packages" / "facts" / "package.facts").read_text(encoding="utf-8")
    return next(line.split("\t")[2] for line in text.splitlines() if line.startswith(f"{package}\t"))


def test_debian_packages_agree_with_a_program_in_python(tmp_path: Path) -> None:
    """What breaks, by trying: take away, again and again, what has a clause that nothing serves."""
    facts = {
        path.stem: [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (PROGRAMS / "debian_packages" / "facts").glob("*.facts")
    }
    served_by: dict[str, set[str]] = {}
    for name, *_ in facts["package"]:
        served_by.setdefault(name, set()).add(name)
    for name, target in facts["provides"]:
        served_by.setdefault(target, set()).add(name)
    clauses: dict[tuple[str, str], set[str]] = {}
    for name, clause, _, target in facts["depends"]:
        clauses.setdefault((name, clause), set()).update(served_by.get(target, ()))
    written = outputs("debian_packages", tmp_path)
    counted = Counter(x for x, _ in written["breaks"])
    for (removed,) in facts["remove"]:
        here = {name for (name,) in facts["installed"]} - {removed}
        lost: set[str] = set()
        while broken := {p for (p, _), servers in clauses.items() if p in here and not servers & here}:
            here -= broken
            lost |= broken
        assert lost == {p for x, p in written["breaks"] if x == removed}
        assert counted[removed] == len(lost)


def test_the_extraction_script_reads_what_it_documents() -> None:
    path = PROGRAMS / "debian_packages" / "extract.py"
    spec = importlib.util.spec_from_file_location("extract", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert doctest.testmod(module).attempted > 0
    assert doctest.testmod(module).failed == 0
    assert module.alternatives("python3:any (>= 3.11~)") == [("python3", ">=", "3.11~")]


# ── the demonstration ────────────────────────────────────────────────────────────────────────


def test_the_demo_runs_and_shows_what_it_promises(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert "      alan donald katherine margaret" in lines
    assert '      -may("alan", "write", "payroll").' in lines
    assert '      +unattended("payroll").' in lines
    assert any(line.startswith("  error[DL031]") for line in lines)
    assert any(line.endswith("= hint: did you mean `has_role`?") for line in lines)
    assert "  2 errors generated, evaluation aborted" in lines
    assert any(line.startswith("  What breaks if I remove libssl3?  27 packages") for line in lines)
    assert any("everlog run " in line for line in lines)


def test_the_demo_fits_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROGRAMS.parent)
    monkeypatch.setattr("shutil.which", lambda name: name)
    demo.main()
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) < 80
    assert out.isascii()


def test_the_demo_in_another_folder_says_where_to_go(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    demo.main()
    assert f"  cd {files('everlog.programs')}" in capsys.readouterr().out.splitlines()
