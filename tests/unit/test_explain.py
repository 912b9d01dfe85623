"""`everlog explain`: classes and costs as text, JSON and a page."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest
from shipped_programs import PROGRAMS

from everlog import Database, compile_text
from everlog.cli import main
from everlog.core.engine import explain, statistics
from everlog.core.engine.keepers.unit_strategies import KEEPERS, STRATEGIES
from everlog.core.engine.planning.costs import rule_costs
from everlog.core.engine.planning.plan import make_plan
from everlog.editor.features.cost_words import paragraph
from everlog.explain.page import page

# Figure 4 of the paper: atoms, class, w, ŵ, and what they promise
FIGURE_4 = {
    "Q'2p": ("R(a,b,c) S(a,b) T(b,c)", "acyclic", "1", "3/2", "O(1)", "O(D^1/2)"),
    "Q3p": ("R(a,b) S(b,c) T(c,d)", "acyclic", "1", "3/2", "O(1)", "O(D^1/2)"),
    "QΔ": ("R(a,b) S(b,c) T(a,c)", "cyclic", "3/2", "3/2", "O(N^1/2)", "O(D^1/2)"),
    "Q'Δ": ("R(a,b) S(b,c) T(a,c) U(c)", "cyclic", "3/2", "5/3", "O(N^1/2)", "O(D^2/3)"),
    "Q*": ("R(a,b,c,d) S(a,b) T(b,c) U(b,d)", "acyclic", "1", "5/3", "O(1)", "O(D^2/3)"),
    "Q3u": ("R(a,b,c) S(a) T(b) U(c)", "acyclic", "1", "5/3", "O(1)", "O(D^2/3)"),
    "Q4u": ("R(a,b,c,d) S(a) T(b) U(c) V(d)", "acyclic", "1", "7/4", "O(1)", "O(D^3/4)"),
    "Q''2p": ("R(a) S(a,b) T(b,c) U(c)", "acyclic", "1", "2", "O(1)", "O(D^1/2)"),
    "Q□": ("R(a,b) S(b,c) T(c,d) U(a,d)", "cyclic", "2", "2", "O(D^2/3)", "O(D^2/3)"),
    "LW4": ("R(b,c,d) S(a,c,d) T(a,b,d) U(a,b,c)", "cyclic", "4/3", "3/2", "O(N^1/3)", "O(D^1/2)"),
    "star": ("R(a,b) S(a,c)", "hierarchical", "1", "1", "O(1)", "O(1)"),
}


def program_of(atoms: str) -> str:
    lines, variables = [], []
    for atom in atoms.split():
        names = atom[2:-1].split(",")
        variables += [v for v in names if v not in variables]
        lines.append(f".decl {atom[0]}({', '.join(f'{v}:number' for v in names)})")
        lines.append(f".input {atom[0]}")
    lines.append(f".decl q({', '.join(f'{v}:number' for v in variables)})")
    lines.append(f"q({', '.join(variables)}) :- {', '.join(atoms.split())}.")
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FIGURE_4)
def test_json_shows_figure_4(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    atoms, query_class, w, w_hat, inserts, deletes = FIGURE_4[name]
    (folder / "q.dl").write_text(program_of(atoms))
    assert main(["explain", "q.dl", "--json"]) == 0
    (rule,) = json.loads(capsys.readouterr().out)["rules"]
    assert (rule["class"], rule["w"], rule["w_hat"]) == (query_class, w, w_hat)
    assert rule["update_cost"] == {"insert_only": inserts, "insert_delete": deletes}
    assert rule["head"] == "q"
    assert rule["line"] == program_of(atoms).count("\n")
    assert rule["rule"].startswith("q(")
    assert set(rule["strategy"]) == {"insert_only", "insert_delete"}
    assert {v for bag in rule["decomposition"]["bags"] for v in bag["variables"]} == set(rule["join"]["free"])
    assert rule["decomposition"]["width"] == w


def test_one_rule_or_relation_can_be_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "q.dl").write_text(program_of("R(a,b) S(b,c)") + ".decl p(x:number)\np(x) :- R(x, _).\n")
    assert main(["explain", "q.dl", "q#1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("q#1  q(a, b, c) :- R(a,b), S(b,c).\n")  # as it was written
    assert "p#1" not in out
    assert main(["explain", "q.dl", "p", "--json"]) == 0
    assert [rule["name"] for rule in json.loads(capsys.readouterr().out)["rules"]] == ["p#1"]
    assert main(["explain", "q.dl", "z"]) == 1
    assert "no relation or rule `z`" in capsys.readouterr().err


AUXILIARY = """
.decl r(a:number, b:number)  .decl t(b:number, c:number)  .decl no(a:number, b:number)
.decl p(a:number)  .decl q(a:number, n:number)  .decl reach(a:number, b:number)
.decl far(a:number) inline
far(x) :- t(x, y), t(y, _).
p(a) :- r(a, b), t(b, c), r(c, _), far(a).
q(a, n) :- r(a, b), !no(a, _), n = count : { t(b, _), r(b, x), x < a }.
reach(a, b) :- t(a, b), r(b, _).
reach(a, c) :- reach(a, b), t(b, c).
"""


SHORT = ("company_control", "cheapest_build")  # running totals and lattices, and groups


@pytest.mark.parametrize(
    "program",
    [
        None,
        *(
            pytest.param(path, marks=[] if path.stem in SHORT else pytest.mark.deep, id=path.stem)
            for path in sorted(PROGRAMS.glob("*/*.dl"))
        ),
    ],
)
def test_the_names_that_the_planner_makes_are_not_told(program: Path | None) -> None:
    """A reader knows the names of the text: text, JSON, page and hovers have no others."""
    text = AUXILIARY if program is None else program.read_text(encoding="utf-8")
    known = compile_text(text)
    costs = list(rule_costs(make_plan(known)))
    object_ = {"program": "", **explain.explanation(known)}
    shown = [explain.explain_plan(known), json.dumps(object_), page(object_, ""), *map(paragraph, costs)]
    for functor in known.functors:  # calls of functors begin with `@` in the text, too
        shown = [each.replace(f"@{functor}(", f"{functor}(") for each in shown]
    for each in shown:
        assert (
            re.findall(r"\S*(?:\w@\d|@(?:exists|count|sum|min|max|mean|total|source|steps)\d* of)\S*", each) == []
        )
        assert re.findall(r"\b[a-z_]\w*/\d+(?:,\d+)*[(#]", each) == []


def test_what_a_rule_is_run_with_is_told_in_words() -> None:
    text = Database.from_text(AUXILIARY).explain("q#1")
    assert "  run with     count : { t(b, _), r(b, x), x < a }\n" in text
    assert "no without its second column" in text


def test_strategies_from_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "q.dl").write_text(program_of("R(a,b) S(b,c) T(c,d)"))
    assert main(["explain", "q.dl", "q#1", "--strategy", "q=calibrated"]) == 0
    assert "in use       calibrated: asked for" in capsys.readouterr().out
    assert main(["explain", "q.dl", "--strategy", "q#1=ranked"]) == 1
    assert "`ranked` cannot keep q#1: it is not recursive" in capsys.readouterr().err
    for name in "RST":
        (folder / f"{name}.facts").write_text("1\t1\n")
    (folder / "updates").write_text("+R(2, 1).\n")
    assert main(["run", "q.dl", "--strategy", "calibrated", "--updates", "updates"]) == 0
    (folder / "q.dl").write_text(program_of("R(a,b) S(b,c) T(c,d)") + ".output q\n")
    assert main(["run", "q.dl", "--strategy", "calibrated", "--updates", "updates", "-D-"]) == 0
    assert "+q(2, 1, 1, 1).\n" in capsys.readouterr().out
    assert main(["run", "q.dl", "--strategy", "quick", "--updates", "updates"]) == 1
    assert "no strategy `quick`" in capsys.readouterr().err


def test_a_page_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "q.dl").write_text(program_of("R(a,b) S(b,c) T(a,c)"))
    assert main(["explain", "q.dl", "--html", "out.html"]) == 0
    page = (folder / "out.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert "Õ" in page
    assert 'id="rule-q' in page
    assert main(["explain", "q.dl", "--html", "no/such/folder.html"]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_bodies_too_large_say_so() -> None:
    atoms = ", ".join(f"e(x{n}, x{(n + 3) % 11}), e(x{n}, x{(n + 1) % 11})" for n in range(11))
    db = Database.from_text(f".decl e(x:number, y:number)  .decl q(x:number)  q(x0) :- {atoms}.")
    (rule,) = db.explanation()["rules"]
    assert rule["class"] == "cyclic"
    assert rule["w_hat_exact"] is False
    assert "ŵ = at most" in db.explain("q#1")


PATHS = """.decl edge(x:number, y:number)
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@pytest.mark.parametrize(
    ("strategy", "deltas", "code"),
    [
        ("flow", "on insert or delete of edge:  no rule runs", "# path: no rule runs"),
        ("ranked_python", "on insert of edge:  ", "def rule("),
    ],
)
def test_deltas_are_those_that_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], strategy: str, deltas: str, code: str
) -> None:
    (tmp_path / "paths.dl").write_text(PATHS)
    wanted = ["explain", str(tmp_path / "paths.dl"), "--strategy", f"path={strategy}", "--deltas"]
    assert main(wanted) == 0
    assert deltas in capsys.readouterr().out
    assert main([*wanted, "--code"]) == 0
    assert code in capsys.readouterr().out


def test_a_flow_that_cannot_be_had_is_refused_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "paths.dl").write_text(PATHS.replace("path(x, y), edge(y, z)", "path(x, y), path(y, z)"))
    assert main(["explain", str(tmp_path / "paths.dl"), "--strategy", "path=flow"]) == 1
    assert "`flow` cannot keep path: no column that all recursive rules carry along" in capsys.readouterr().err


def test_a_strategy_says_itself_what_is_told_of_it() -> None:
    """`explain` and `stats` ask no keeper for its type: a strategy is one file."""
    assert KEEPERS.keys() == STRATEGIES.keys()
    assert all(STRATEGIES.values())
    for module in (explain, statistics):
        text = inspect.getsource(module)
        assert not re.search(r"isinstance\(\w*keeper|import \w+Keeper|\bFLOW\b|\bRECOMPUTE\b", text)
