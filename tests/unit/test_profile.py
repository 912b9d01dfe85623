"""`everlog run -p`: what a profile says is what happened, and its page is safe and readable."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import CONTRASTS, at_width, chromium

from everlog import Database
from everlog.cli import main
from everlog.core.native.availability import why_not
from everlog.profile.profile_page import POLICY, page
from everlog.profile.steps import SLOWEST, StepRecorder

PROGRAM = """.decl edge(x:number, y:number)
.input edge
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl pair(x:number, y:number)
.output pair
pair(x, y) :- edge(a, x), edge(a, y).
.decl hop(x:number, y:number, n:number)
.output hop
hop(x, y, 1) :- edge(x, y).
hop(x, z, n + 1) :- hop(x, y, n), edge(y, z), n < 10.
.printsize path
"""
NASTY = '<script>document.title="broken"</script>'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "prog.dl").write_text(PROGRAM)
    (tmp_path / "edge.facts").write_text("".join(f"{i // 4}\t{i}\n" for i in range(1, 200)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def profiled(*arguments: str) -> Any:
    assert main(["run", "prog.dl", "-D.", "-p", "profile.json", *arguments]) == 0
    return json.loads(Path("profile.json").read_text())


@pytest.mark.parametrize("pure", ["", "1"])
def test_a_run_is_told_by_unit_round_and_rule(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pure: str
) -> None:
    monkeypatch.setenv("EVERLOG_PURE", pure)
    found = profiled()
    assert [each["name"] for each in found["phases"]] == ["reading", "evaluating", "writing"]
    assert sum(each["seconds"] for each in found["phases"]) <= found["seconds"]
    units = {each["relations"][0]["name"]: each for each in found["units"]}
    sizes = Database.from_file("prog.dl", facts={"edge": [(i // 4, i) for i in range(1, 200)]})
    assert {name: unit["relations"][0]["facts"] for name, unit in units.items()} == {
        name: sizes.size(name) for name in ("path", "pair", "hop")
    }
    (pair,) = units["pair"]["rules"]
    assert (pair["runs"], pair["found"], pair["reads"], pair["read"]) == (1, sizes.size("pair"), "edge", 199)
    assert pair["blow_up"] == sizes.size("pair") / 199
    hop = units["hop"]
    assert sum(each["new"] for each in hop["rounds"]) == sizes.size("hop")
    assert hop["rules"][1]["runs"] == sum(each["new"] > 0 for each in hop["rounds"])
    assert sum(rule["found"] for rule in hop["rules"]) >= sizes.size("hop")
    assert (hop["machine"] == "compiled") == (not pure and not why_not())
    assert all(unit["seconds"] >= sum(r["seconds"] or 0 for r in unit["rules"]) for unit in found["units"])


def test_without_a_flag_nothing_is_recorded(folder: Path) -> None:
    assert main(["run", "prog.dl", "-D."]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["edge.facts", "hop.csv", "pair.csv", "prog.dl"]


def test_steps_are_told_with_what_was_promised(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [f"+edge({i}, {i + 1})." for i in range(300, 360)] + ["+edge(0, 900).\n+edge(0, 901).", "-edge(0, 1)."]
    (folder / "news.txt").write_text("\n\n".join(steps))
    found = profiled("--updates", "news.txt")
    told = found["steps"]
    assert [each["name"] for each in found["phases"]] == ["reading", "loading", "steps"]
    assert told["number"] == len(steps)
    assert len(told["slowest"]) == SLOWEST
    assert [s["seconds"] for s in told["slowest"]] == sorted((s["seconds"] for s in told["slowest"]), reverse=True)
    rules = {rule["name"]: rule for rule in told["rules"]}
    assert set(rules) == {"path#1", "path#2", "pair#1", "hop#1", "hop#2"}
    assert rules["pair#1"]["rows"] == 63  # each row that came or went
    assert rules["pair#1"]["exponent"] is not None
    assert rules["path#2"]["exponent"] is None
    assert sum(len(step["rules"]) > 0 for step in told["slowest"]) > SLOWEST // 2


def test_the_work_of_a_rule_is_divided_by_its_promise() -> None:
    db = Database.from_text("""
      .decl r(a:number, b:number)  .decl s(b:number, c:number)  .decl t(a:number, c:number)
      .decl q(a:number, b:number, c:number)
      q(a, b, c) :- r(a, b), s(b, c), t(a, c).""")
    db.insert_all({name: [(i, (i * 7) % 40) for i in range(40)] for name in "rst"})
    recorder = StepRecorder.of(db)
    db._engine.measured = 1
    for i in range(100):
        with recorder.step():
            db.insert("r", (i % 40, (i * 13) % 40))
    (rule,) = recorder.to_json()["rules"]
    new = len(db["r"]) - 40
    assert (rule["promise"], rule["exponent"], rule["rows"]) == ("O(D^1/2) amortized", "1/2", new)
    assert rule["work"] == db.stats().rules[0].work > 0
    assert rule["ratio"] == pytest.approx(rule["work"] / (new * 130**0.5), rel=0.2)  # D grew from 120 to 150
    assert rule["work_per_row"] <= rule["most_work_per_row"]


def test_many_steps_need_bounded_room() -> None:
    db = Database.from_text(".decl n(x:number)  .decl m(x:number)  m(x) :- n(x).")
    recorder = StepRecorder.of(db)
    for i in range(2000):
        with recorder.step():
            db.insert("n", (i,))
    found = recorder.to_json()
    assert found["number"] == 2000
    assert len(found["points"]) <= 400
    assert len(found["points"]) * found["steps_per_point"] >= 2000
    assert len(recorder.slowest) == SLOWEST


def test_a_failed_run_leaves_its_profile(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "prog.dl").write_text(PROGRAM + ".decl n(x:number)  .output n\nn(1).\nn(x + 1) :- n(x).\n")
    assert main(["run", "prog.dl", "-D.", "-p", "p.json", "--max-facts", "5000"]) == 1
    assert json.loads(Path("p.json").read_text())["units"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-p", "no/such/folder/p.html"], "cannot write the profile"),
        (["-p", "p.html", "--watch"], "-p and --watch cannot be combined"),
        (["-p", "p.html", "--engine", "spark"], "-p and --engine spark cannot be combined"),
    ],
)
def test_a_profile_that_cannot_be_written_is_told_before_the_run(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert main(["run", "prog.dl", "-D.", *arguments]) in (1, 2)
    assert told in capsys.readouterr().err
    assert not Path("pair.csv").exists()


# ── the page ─────────────────────────────────────────────────────────────────────────────────


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}


def hostile_page(folder: Path) -> str:
    name = f"{NASTY}.dl".replace("/", "-")
    (folder / name).write_text(
        PROGRAM + f'.decl t(x:symbol)  .output t\nt({json.dumps(NASTY)}) :- edge(1, x), x > 0, "\'\\"&" != "".\n'
    )
    (folder / "news.txt").write_text("+edge(1, 99).\n\n-edge(1, 99).\n")
    assert main(["run", name, "-D.", "-p", "run.html"]) == 0
    assert main(["run", name, "-D.", "-p", "steps.html", "--updates", "news.txt"]) == 0
    return (folder / "run.html").read_text() + (folder / "steps.html").read_text()


def test_hostile_names_stay_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = hostile_page(folder)
    tags = Tags(text)
    assert "script" not in tags.tags
    assert not {name for name in tags.attributes if name.startswith("on")} | tags.attributes & {"style", "src"}
    assert "&lt;script&gt;" in text
    assert POLICY in text.replace("&#x27;", "'")
    assert "unsafe" not in POLICY


def test_a_profile_without_rules_has_a_page() -> None:
    empty = {"program": "x", "version": "1", "seconds": 0.0, "phases": [], "units": [], "steps": None}
    assert "<h1>x</h1>" in page(empty)


def test_the_page_is_readable_in_a_browser(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile_page(folder)
    with chromium() as browser:
        for name in ("run.html", "steps.html"):
            browser.get(f"file://{folder / name}")
            assert browser.get_log("browser") == []  # the policy refused nothing
            assert "everlog profile" in browser.title
            for width in (360, 1300):
                at_width(browser, width)
                assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            assert min(browser.execute_script(CONTRASTS))[0] >= 4.5
