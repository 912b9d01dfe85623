"""Benchmarks side by side: every workload on every installed system.

Answers are compared; measurements are not asserted.  Systems are measured in this process, which is
quick, except those that need their own (Pathway, if installed), and the test that runs the command.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from everlog.bench.competitors import souffle
from everlog.bench.harness import bars, markdown_page, markdown_tables
from everlog.bench.harness.cases import make_case
from everlog.bench.harness.discovery import installed, sides, workloads
from everlog.bench.harness.jobs import Wanted, all_plays, work
from everlog.bench.harness.measure import inverse
from everlog.bench.harness.runs import OK, WRONG, Limits, compared
from everlog.bench.harness.soak import growth_of, soaked
from everlog.bench.harness.streams import make_stream
from everlog.bench.harness.workload import Case, Row, Side, Static, Told, Update

HERE = Limits(rounds=1, own_process=False)
SIDES = list(installed()[0])


# ── everything runs and agrees ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", workloads())
def test_every_side_gives_our_answers_and_reports_our_changes(name: str) -> None:
    workload = workloads()[name]
    wanted = Wanted(workload, workload.small, SIDES, SIDES, all_plays(workload, small=True))
    record = work(wanted, HERE, lambda line: None)
    for side in [*record["static"], *record["living"]]:
        assert (side["status"], side["checked"]) == (OK, True), side
    served = {side for side in SIDES if not sides()[side].refusal(workload.query, living=False)}
    assert {side["side"] for side in record["static"]} == served
    assert all(len(run["plays"]) == 2 * len(workload.streams) for r in record["living"] for run in r["runs"])
    assert markdown_tables.static_table(record).count("\n") == 1 + len(record["static"])


def test_the_command_measures_in_processes_and_writes_figures_plots_and_pages(tmp_path: Path) -> None:
    (tmp_path / "markdown_page.md").write_text("# P\n\n<!-- generated: static -->\nold\n<!-- end -->\n\nkept\n")
    words = ["--small", "--only", "join_count", "static", "updates", "--against", "sqlite", "--json", "out.json"]
    done = bench([*words, "--page", "markdown_page.md"], tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    (record,) = found["work"]
    assert [side["side"] for side in record["static"]] == ["everlog", "sqlite"]
    assert all(side["checked"] and side["runs"][0]["peak"] > 0 for side in record["static"])
    assert {"processor", "cores", "python"} <= found["machine"].keys()
    assert found["sides"]["sqlite"]["version"]
    text = (tmp_path / "markdown_page.md").read_text()
    assert "old" not in text
    assert "| everlog |" in text
    assert text.endswith("<!-- end -->\n\nkept\n")
    again = bench(["--from", "out.json", "--page", "markdown_page.md"], tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "markdown_page.md").read_text() == text


def test_plots_are_made_from_the_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from everlog.bench.harness import plots
    from everlog.bench.harness.growth import grown

    workload = workloads()["triangles"]
    wanted = Wanted(workload, workload.small, ["everlog"], ["everlog"], all_plays(workload, small=True))
    results = {
        "work": [work(wanted, HERE, lambda line: None)],
        "growth": [grown(workload, True, ["everlog"], HERE, lambda line: None)],
        "soak": [{"status": OK, "title": "t", "described": "d", "samples": [[1, 2.0, 3], [2, 2.0, 3]]}],
    }
    names = {path.name for path in plots.write(tmp_path, results)}
    drawn = ["static", "updates", "growth-time", "growth-memory", "growth-update", "soak"]
    assert names == {f"{name}.{kind}" for name in drawn for kind in ("png", "svg")}
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)


def bench(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "everlog", "bench", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def test_missing_things_are_reported(tmp_path: Path) -> None:
    done = bench(["--only", "nonsense"], tmp_path)
    assert done.returncode == 2
    assert "no workload or part nonsense; there are aggregates, " in done.stderr
    done = bench(["--against", "nonsense"], tmp_path)
    assert done.returncode == 2
    assert "no competitor nonsense; there are everlog, " in done.stderr
    listed = bench(["--list"], tmp_path)
    assert all(name in listed.stdout for name in [*workloads(), *sides(), "soak", "bars"])


# ── wrong answers do not count ───────────────────────────────────────────────────────────────


class Mistaken:
    """Our engine, with one answer or one change missing."""

    def __init__(self, case: Case) -> None:
        from everlog.bench.competitors.everlog import Loaded

        self.ours = Loaded(case)

    def load(self) -> None:
        self.ours.load()
        self.ours.solve()

    def solve(self) -> None:
        pass

    def size(self, relation: str) -> int:
        return self.ours.size(relation)

    def answer(self, relation: str) -> list[Row]:
        return list(self.ours.answer(relation))[1:]

    def close(self) -> None:
        pass


class Silent(Mistaken):
    def answer(self, relation: str) -> list[Row]:
        return list(self.ours.answer(relation))

    def step(self, updates: list[Update]) -> Told:
        told = self.ours.step(updates)
        return {name: dict(list(rows.items())[1:]) for name, rows in told.items()}


class Failing(Mistaken):
    def load(self) -> None:
        raise ValueError("no such thing")


@pytest.mark.parametrize(
    ("side", "living", "status", "why"),
    [
        (Side("mistaken", "", str, static=Mistaken), False, WRONG, "rows, ours"),
        (Side("mistaken", "", str, living=Silent), True, WRONG, "gave other changes in step "),
        (Side("mistaken", "", str, static=Failing), False, "failed", "ValueError: no such thing"),
    ],
)
def test_a_side_that_is_wrong_has_no_times(
    side: Side, living: bool, status: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sides(), "mistaken", side)
    workload = workloads()["triangles"]
    case = make_case(tmp_path / "case", workload, workload.small, {"random": 20})
    ours, wrong = compared(case, ["mistaken"], living, [("random", 1, 20)] if living else (), HERE)
    assert ours["status"] == OK
    assert wrong["status"] == status
    assert why in wrong["why"]
    assert wrong["runs"] == []


def test_a_side_that_takes_too_long_is_ended_and_gives_a_bound(tmp_path: Path) -> None:
    workload = workloads()["closure_random"]
    case = make_case(tmp_path / "case", workload, 1500)
    _, slow = compared(case, ["python"], False, (), Limits(seconds=0.5, rounds=1))
    assert slow["status"] == "took longer"
    assert slow["bound"] == 0.5


# ── streams ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", workloads())
def test_every_update_changes_something_and_can_be_undone(name: str) -> None:
    workload = workloads()[name]
    facts = workload.make(workload.small)
    assert facts == workload.make(workload.small)
    for kind in workload.streams:
        updates = make_stream(kind, workload, facts, workload.small, 100)
        assert updates == make_stream(kind, workload, facts, workload.small, 100)
        there = {(relation, row) for relation, rows in facts.items() for row in rows}
        before = set(there)
        for relation, row, insert in [*updates, *inverse(updates)]:
            assert ((relation, row) in there) is not insert
            there ^= {(relation, row)}
        assert there == before


def test_the_window_keeps_its_size() -> None:
    workload = workloads()["join_count"]
    facts = workload.make(workload.small)
    updates = make_stream("window", workload, facts, workload.small, 200)
    assert sum(1 if insert else -1 for _, _, insert in updates) == 0


@pytest.mark.deep
def test_a_soak_looks_at_memory(tmp_path: Path) -> None:
    workload = workloads()["join_count"]
    case = make_case(tmp_path / "case", workload, workload.small)
    living = sides()["everlog"].living
    assert living is not None
    found = soaked(case, living(case), 500, workload.small)
    assert found["updates"] == 500
    assert len(found["samples"]) == 10
    assert abs(growth_of(found, 2)) < 0.5


# ── Soufflé, by a stand-in ───────────────────────────────────────────────────────────────────

FAKE = """#!{python}
# answers as Soufflé would, by everlog; what it was called with goes to a file
import os, shutil, subprocess, sys
from pathlib import Path
words = sys.argv[1:]
with open({log!r}, "a") as log:
    print(*words, file=log)
if words == ["--version"]:
    print("----\\nVersion: 2.4.1\\n----")
elif words[0] == "-o":
    Path(words[1]).write_text(
        f"#!{python}\\nimport subprocess, sys\\n"
        f"sys.exit(subprocess.run([{python!r}, {me!r}, {{words[2]!r}}, *sys.argv[1:]]).returncode)\\n"
    )
    os.chmod(words[1], 0o755)
else:
    sys.exit(subprocess.run([{python!r}, "-P", "-m", "everlog", "run", *words]).returncode)
"""


@pytest.fixture
def fake_souffle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `souffle` on the PATH; the file with the arguments of its calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script, log = folder / "souffle", folder / "calls"
    script.write_text(FAKE.format(python=sys.executable, log=str(log), me=str(script)))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return log


@pytest.mark.parametrize("compiled", [False, True])
def test_souffle_is_called_as_its_manual_says(compiled: bool, fake_souffle: Path, tmp_path: Path) -> None:
    workload = workloads()["value_flow"]
    case = make_case(tmp_path / "case", workload, workload.small)
    assert souffle.version() == "2.4.1"
    name = "souffle compiled" if compiled else "souffle"
    static = sides()[name].static
    assert static is not None
    system: Static = static(case)
    system.load()
    system.solve()
    ours = sides()["everlog"].static
    assert ours is not None
    expected = ours(case)
    expected.load()
    expected.solve()
    for relation in workload.answers:
        assert system.size(relation) == expected.size(relation)
        assert set(system.answer(relation)) == set(expected.answer(relation))
    assert getattr(system, "peak", 0) > 0
    answers = case.folder / ("souffle-compiled" if compiled else "souffle-interpreted")
    folders = f"-F {case.folder} -D {answers}"
    programs = [case.folder / f"souffle-{directive}.dl" for directive in ("printsize", "output")]
    assert ".printsize value_flow, value_alias, memory_alias\n" in programs[0].read_text()
    assert ".output" not in programs[0].read_text()
    calls = fake_souffle.read_text().splitlines()[1:]
    if compiled:
        built = [f"-o {path.with_suffix('')} {path}" for path in programs]
        run = [f"{path} {folders}" for path in programs]  # the stand-in's binary calls it again
        assert calls == [built[0], run[0], built[1], run[1]]
    else:
        assert calls == [f"{path} {folders}" for path in programs]


def test_an_error_of_souffle_is_reported(fake_souffle: Path, tmp_path: Path) -> None:
    workload = workloads()["triangles"]
    case = make_case(tmp_path / "case", workload, workload.small)
    case.facts("edge").write_text("1\tx\n")
    static = sides()["souffle"].static
    assert static is not None
    system = static(case)
    system.load()
    with pytest.raises(RuntimeError, match=r"souffle ended with status 1: .*edge\.facts"):
        system.solve()


# ── bars ─────────────────────────────────────────────────────────────────────────────────────


def results_with(static: dict[str, float]) -> dict[str, object]:
    """Results in which closure_random was computed in these seconds."""
    records = [
        {"side": side, "status": OK, "runs": [{"load": 0.0, "solve": seconds}]} for side, seconds in static.items()
    ]
    return {"work": [{"workload": "closure_random", "static": records}], "left_out": {"souffle": "not here"}}


def test_a_bar_holds_or_not_or_is_not_measured() -> None:
    against_souffle, against_duckdb = bars.BARS[:2]
    found = bars.read(against_duckdb, results_with({"everlog": 1.0, "duckdb": 3.0, "duckdb rounds": 2.5}))
    assert (found["ratio"], found["verdict"], found["bar"]) == (2.5, bars.HOLDS, "at least 2 ×")
    found = bars.read(against_duckdb, results_with({"everlog": 1.0, "duckdb": 1.5}))
    assert found["verdict"] == bars.FAILS
    found = bars.read(against_souffle, results_with({"everlog": 1.0}))
    assert (found["verdict"], found["why"]) == (bars.UNKNOWN, "not here")


def test_what_did_not_finish_is_a_bound() -> None:
    results = results_with({"everlog": 1.0})
    late = {"side": "duckdb", "status": "took longer", "bound": 120.0, "runs": []}
    results["work"][0]["static"].append(late)  # type: ignore[index]
    found = bars.read(bars.BARS[1], results)
    assert (found["ratio"], found["only_bound"], found["verdict"]) == (120.0, True, bars.HOLDS)


def test_an_unknown_part_of_a_page_is_reported() -> None:
    with pytest.raises(markdown_page.NoSuchPart, match="no part `nonsense`; there are machine, bars"):
        markdown_page.rewritten("<!-- generated: nonsense -->\n<!-- end -->", {})
