"""The shipped programs: each checks, runs on its own facts, and answers correctly."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from shipped_programs import PROGRAMS, assert_current, facts_of, outputs

import everlog
from everlog import Database, demo
from everlog.cli import main
from everlog.stream import is_question, steps

NAMES = sorted(path.parent.name for path in PROGRAMS.glob("*/*.dl"))


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# ── all of them ──────────────────────────────────────────────────────────────────────────────


def test_each_program_has_its_folder_its_facts_and_its_twin(name: str) -> None:
    folder = PROGRAMS / name
    assert (folder / f"{name}.dl").is_file()
    assert (folder / f"{name}.dlt").is_file()
    assert (folder / "updates.txt").is_file()
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
        assert not text or text.endswith("\n"), path
        assert len(set(lines)) == len(lines), path
        assert all(field and field == field.strip() for line in lines for field in line.split("\t")), path


def test_each_program_follows_its_stream_as_the_reference_evaluator_says(name: str) -> None:
    """Before the stream, after each step, and after all of it has been taken back."""
    folder = PROGRAMS / name
    db = Database.from_file(folder / f"{name}.dl", facts=folder / "facts")
    assert_current(db)
    before = {relation: db.view(relation) for relation in db.relations}
    taken_back: list[str] = []
    for step in steps((folder / "updates.txt").read_text(encoding="utf-8").splitlines()):
        lines = [line for _, line in step]
        if not is_question(lines[0]):
            given = {relation: set(db.given(relation)) for relation in db.relations}
            db.apply(lines)
            assert_current(db)
            assert given != {relation: set(db.given(relation)) for relation in db.relations}, (
                f"{lines} did nothing"
            )
            taken_back += [("-" if line[0] == "+" else "+") + line[1:] for line in lines]
    for line in reversed(taken_back):
        db.apply([line])
    assert {relation: db.view(relation) for relation in db.relations} == before


def test_each_stream_runs_without_an_error(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Its questions, too, have an answer."""
    folder = PROGRAMS / name
    words = ["run", str(folder / f"{name}.dl"), "-F", str(folder / "facts"), "-D", str(tmp_path)]
    assert main([*words, "--updates", str(folder / "updates.txt")]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert told.out.count("+") + told.out.count("-") > 0


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
    """By trial: remove packages with an unsatisfied clause until nothing changes."""
    facts = facts_of(PROGRAMS / "debian_packages" / "facts")
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


def test_access_control_takes_back_what_rested_on_a_loan() -> None:
    folder = PROGRAMS / "access_control"
    db = Database.from_file(folder / "access_control.dl", facts=folder / "facts")
    borrowers = {"linus", "dennis"}  # who lend the role to each other, too
    assert borrowers <= {row[0] for row in db.query('may(who, "restart", "web-server")')}
    db.delete("member", ("grace", "on-call"))
    assert not borrowers & {row[0] for row in db.query('may(who, "restart", "web-server")')}


def test_link_failures_report_which_line_the_west_hangs_on(tmp_path: Path) -> None:
    written = outputs("link_failures", tmp_path)
    assert written["cut_off"] == []
    assert ("10", "Houston", "Los Angeles", "28") in written["critical"]  # four cities by seven
    lines = {row[0]: (row[1], row[2]) for row in facts_of(PROGRAMS / "link_failures" / "facts")["line"]}
    for number in lines:  # a line is critical if without it there are more pieces than before
        more = pieces([ends for i, ends in lines.items() if i not in ("6", number)], lines.values())
        known = pieces([ends for i, ends in lines.items() if i != "6"], lines.values())
        assert (more > known) == (number in {row[0] for row in written["critical"]}), number


def pieces(lines: list[tuple[str, str]], everything: object) -> int:
    """The connected components of the cities."""
    root = {city: city for ends in everything for city in ends}  # type: ignore[attr-defined]

    def find(city: str) -> str:
        while root[city] != city:
            city = root[city]
        return city

    for a, b in lines:
        root[find(a)] = find(b)
    return len({find(city) for city in root})


def test_fraud_rings_finds_every_ring_there_is(tmp_path: Path) -> None:
    """By trying all walks of three and four payments; planted rings are found."""
    written = outputs("fraud_rings", tmp_path)
    paid: dict[str, set[str]] = {}
    for _, a, b, euros, _ in facts_of(PROGRAMS / "fraud_rings" / "facts")["payment"]:
        if int(euros) >= 1000 and a != b:
            paid.setdefault(a, set()).add(b)
    threes = {(a, b, c) for a in paid for b in paid[a] for c in paid.get(b, ()) if a in paid.get(c, ())}
    assert {row for row in threes if row[0] == min(row)} == set(written["ring3"])
    fours = {
        (a, b, c, d)
        for a in paid
        for b in paid[a]
        for c in paid.get(b, ())
        for d in paid.get(c, ())
        if a in paid.get(d, ()) and len({a, b, c, d}) == 4 and a == min(a, b, c, d)
    }
    assert fours == set(written["ring4"])
    assert len(written["came_back"]) >= 5  # one for twelve of the sixty people


def test_bill_of_materials_agrees_with_a_recursive_function(tmp_path: Path) -> None:
    written = outputs("bill_of_materials", tmp_path)
    facts = facts_of(PROGRAMS / "bill_of_materials" / "facts")
    parts: dict[str, list[tuple[str, int]]] = {}
    for whole, part, quantity in facts["has"]:
        parts.setdefault(whole, []).append((part, int(quantity)))
    work = {whole: int(cents) for whole, cents in facts["work"]}
    offers: dict[str, list[int]] = {}
    for part, _, cents in facts["offer"]:
        offers.setdefault(part, []).append(int(cents))

    def cost(part: str) -> tuple[int, int]:
        if part not in parts:
            return min(offers[part]), 0
        below = [(n, cost(p)) for p, n in parts[part]]
        return sum(n * m for n, (m, _) in below), work.get(part, 0) + sum(n * w for n, (_, w) in below)

    assert {(whole, *map(str, cost(whole))) for whole in parts} == set(written["cost"])
    assert written["circular"] == []
    assert ("city bike", "bearing", "10") in written["shopping"]


def test_company_control_agrees_with_the_natural_rule(tmp_path: Path) -> None:
    """Sums inside a recursion, as in Python: repeat until nothing changes."""
    folder = tmp_path / "facts"
    subprocess.run(
        [sys.executable, "-P", PROGRAMS / "company_control" / "make.py", folder, "--size", "60"],
        check=True,
        capture_output=True,
    )
    for facts in (PROGRAMS / "company_control" / "facts", folder):
        db = Database.from_file(PROGRAMS / "company_control" / "company_control.dl", facts=facts)
        owns = {(str(x), str(y)): int(str(p)) for x, y, p in db.given("owns")}
        names = {name for pair in owns for name in pair}
        control = {x: {x} for x in names}
        while True:
            found = {
                x: {x} | {y for y in names if sum(owns.get((z, y), 0) for z in control[x]) > 500} for x in names
            }
            if found == control:
                break
            control = {x: control[x] | found[x] for x in names}
        assert {(x, y) for x in names for y in control[x] if x != y} == set(db.rows("controls"))
        assert db.size("controls") > 10


def test_alternating_paths_agree_with_a_game(tmp_path: Path) -> None:
    """Backwards: a state is safe if one step of ours, or all of the others', is safe."""
    facts = facts_of(PROGRAMS / "alternating_paths" / "facts")
    steps_of: dict[str, set[str]] = {}
    for x, y in facts["step"]:
        steps_of.setdefault(x, set()).add(y)
    others = {x for (x,) in facts["others_decide"]}
    names = {row[0]: row[1] for row in facts["named"]}
    expected = set()
    for (target,) in facts["end"]:
        safe = {target}
        while more := {
            x for x, ways in steps_of.items() if x not in safe and (ways <= safe if x in others else ways & safe)
        }:
            safe |= more
        expected |= {(names[x], names[target]) for x in safe}
    assert expected == set(outputs("alternating_paths", tmp_path)["closes"])


def test_schedule_conflicts_are_those_of_a_calendar(tmp_path: Path) -> None:
    written = outputs("schedule_conflicts", tmp_path)
    facts = facts_of(PROGRAMS / "schedule_conflicts" / "facts")
    sessions = {i: (course, room, day, int(a), int(b)) for i, course, room, day, a, b in facts["session"]}
    rooms = set()
    for i, (_, room, day, a, b) in sessions.items():
        for j, (_, other, date, c, d) in sessions.items():
            if int(i) < int(j) and (room, day) == (other, date) and max(a, c) < min(b, d):
                rooms.add((i, j, room))
    assert rooms == set(written["room_conflict"])
    for i, room in written["could_move"]:
        _, _, day, a, b = sessions[i]
        assert not [s for s in sessions.values() if s[1] == room and s[2] == day and max(a, s[3]) < min(b, s[4])]


def test_wordnet_finds_what_is_a_kind_of_what(tmp_path: Path) -> None:
    written = outputs("wordnet", tmp_path)
    assert ("musical instrument", "fiddle", "violin.1") in written["found"]
    assert ("dog.1", "wolf.1", "canine.2") in written["nearest"]
    assert ("cat.1", "paw.1", "feline.1") in written["inherits"]
    assert written["redundant"] == []
    licence = (PROGRAMS / "wordnet" / "facts" / "LICENSE").read_text(encoding="utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in licence  # which asks to be on all copies


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
    assert any("everlog programs run " in line for line in lines)


def test_the_demo_fits_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROGRAMS.parent)
    monkeypatch.setattr("shutil.which", lambda name: name)
    demo.main()
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) < 80
    assert out.isascii()


def test_the_demo_ends_with_commands_that_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In any folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shutil.which", lambda name: name)
    demo.main()
    lines = capsys.readouterr().out.split("--- Now you")[1].splitlines()
    commands = [line.split("   ")[0].split() for line in lines if line.startswith("  everlog programs")]
    assert len(commands) == 4
    for _, *words in commands[:-1]:  # the last one waits for lines
        assert main(words) == 0
