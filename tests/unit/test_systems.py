"""Systems of auxiliary relations in a program, and `everlog ies`, as users meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everlog import Database, DatalogError
from everlog.cli import main
from everlog.core.engine.plan import NoSuchStrategy
from everlog.core.engine.systems import Refused
from everlog.dsl.check import compile_text
from everlog.ies import catalogue
from everlog.ies.nrc.errors import CODES

DECLARED = ".decl edge(x:symbol, y:symbol)  .decl path(x:symbol, y:symbol)\n"
CLOSURE = DECLARED + "path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z).  .strategy tc_witness\n"
ROOT = Path(__file__).parent.parent.parent


def closure(more: str = "") -> Database:
    db = Database.from_text(CLOSURE + more)
    db.insert("edge", [("a", "b"), ("b", "c"), ("c", "d")])
    return db


# ── auxiliary relations ──────────────────────────────────────────────────────────────────────


def test_an_auxiliary_relation_is_read_like_any_other() -> None:
    db = closure('.decl last(x:symbol)  last(p) :- path.tree("a", "d", p).')
    assert db.view("path.tree")[:2] == [("a", "b", "a"), ("a", "c", "b")]
    assert db.query('path.tree("a", y, "b")') == [("a", "c", "b")]
    assert db.view("last") == [("c",)]
    changes = db.apply(['-edge("c", "d").', '+edge("b", "d").'])
    assert changes["last"] == {("c",): -1, ("b",): 1}
    assert changes["path.tree"][("a", "d", "b")] == 1


def test_an_auxiliary_relation_is_told_once_somebody_reads_it() -> None:
    db = closure()
    assert "path.tree" not in db.insert("edge", ("d", "e"))
    heard: list[object] = []
    with db.subscribe("path.tree", heard.append):
        db.delete("edge", ("d", "e"))
    assert len(heard) == 1
    assert db.changes["path.tree"][("d", "e", "d")] == -1


def test_a_rule_that_comes_later_may_read_it() -> None:
    db = closure()
    db.add_rule('.decl hop(x:symbol)  hop(p) :- path.tree("a", _, p).')
    assert db.view("hop") == [("a",), ("b",), ("c",)]
    db.delete("edge", ("b", "c"))
    assert db.view("hop") == [("a",)]
    db.drop_rule("hop#1")
    assert db.view("path") == [("a", "b"), ("c", "d")]


def test_no_facts_can_be_given_to_what_a_system_keeps() -> None:
    db = closure()
    for name, row in (("path", ("x", "y")), ("path.tree", ("x", "y", "x"))):
        with pytest.raises(Refused, match="kept by tc_witness"):
            db.insert(name, row)
        with pytest.raises(Refused, match="kept by tc_witness"):
            db.insert(name, [row, row])
    assert len(db.view("path")) == 6


def test_no_rule_may_derive_an_auxiliary_relation() -> None:
    with pytest.raises(DatalogError, match=r"DL110.*path\.tree#1 derives facts of `path\.tree`"):
        Database.from_text(CLOSURE + "path.tree(x, y, y) :- edge(x, y).")


def test_an_unknown_auxiliary_relation_is_an_error_at_its_place() -> None:
    with pytest.raises(DatalogError, match="DL050"):
        Database.from_text(CLOSURE + ".decl t(x:symbol)  t(x) :- path.trees(x, _, _).")


# ── steps ────────────────────────────────────────────────────────────────────────────────────


def test_a_cycle_is_refused_with_the_edge_and_nothing_changes() -> None:
    db = Database(compile_text(CLOSURE), strategies={"path": "tc_counts"})
    db.insert("edge", [("a", "b"), ("b", "c")])
    before = {name: db.view(name) for name in db.relations}
    with pytest.raises(Refused, match=r'edge\("c", "a"\) is refused by tc_counts'):
        db.apply(['+edge("c", "d").', '+edge("c", "a").'])
    assert {name: db.view(name) for name in db.relations} == before
    assert db.apply(['-edge("a", "b").', '+edge("c", "a").'])["path"][("c", "a")] == 1
    db._engine.check()


def test_too_many_paths_are_refused_with_the_system_to_use() -> None:
    program = compile_text(
        ".decl edge(x:number, y:number)  .decl path(x:number, y:number)"
        "  path(x, y) :- edge(x, y).  path(x, z) :- edge(x, y), path(y, z)."
    )
    db = Database(program, strategies={"path": "tc_paths"})
    said = ""
    for n in range(0, 40, 2):  # each time twice as many paths
        before = db.view("path")
        try:
            db.apply([("edge", (n, n + 2), 1), ("edge", (n, n + 1), 1), ("edge", (n + 1, n + 2), 1)])
        except Refused as error:
            said = str(error)
            break
    assert "they grow exponentially" in said
    assert "use tc_witness" in said
    assert db.view("path") == before


def test_proofs_are_found_where_a_system_keeps_the_relation() -> None:
    assert 'path("a", "d")' in closure().why('path("a", "d")').text()


def test_a_failing_step_after_the_system_has_followed_is_taken_back() -> None:
    db = Database.from_text(
        CLOSURE + '.decl n(x:number)  .decl bad(x:symbol, y:number)  bad(x, to_number(y)) :- path(x, y), x = "z".'
    )
    db.insert("edge", [("a", "b"), ("b", "a")])
    before = {name: db.view(name) for name in db.relations}
    with pytest.raises(Exception, match="to_number"):
        db.apply(['+edge("b", "c").', '+edge("z", "a").'])
    assert {name: db.view(name) for name in db.relations} == before
    db._engine.check()


# ── asking and explaining ────────────────────────────────────────────────────────────────────


def test_explain_lists_the_systems_that_fit_and_which_is_in_use() -> None:
    db = closure()
    found = {one["name"]: one for one in db.explanation()["systems"]}
    assert found["tc_witness"]["in_use"]
    assert found["tc_witness"]["auxiliaries"] == [{"name": "tree", "arity": 3}]
    assert found["tc_paths"]["fits"]
    assert not found["tc_paths"]["in_use"]
    assert not found["same_generation_counts"]["fits"]
    assert "not same generation" in found["same_generation_counts"]["why_not"]
    assert "(in use)" in db.explain("path")


def test_recursion_that_no_system_knows_says_so() -> None:
    text = ".decl n(x:number)  .decl m(x:number)  m(x) :- n(x).  m(x + 1) :- m(x), x < 5."
    assert "no system of auxiliary relations fits" in Database.from_text(text).explain("m")


def test_two_systems_for_one_relation_are_one_too_many() -> None:
    rules = "path(x, y) :- edge(x, y).  .strategy tc_counts\npath(x, z) :- path(x, y), edge(y, z).  .strategy tc_witness\n"
    with pytest.raises(DatalogError, match="ask for one strategy"):
        Database.from_text(DECLARED + rules)


def test_a_system_cannot_keep_what_is_not_recursive() -> None:
    with pytest.raises(NoSuchStrategy, match="not recursive"):
        Database(compile_text(DECLARED + "path(x, y) :- edge(x, y)."), strategies={"path": "tc_witness"})


# ── the command line ─────────────────────────────────────────────────────────────────────────


def test_run_writes_auxiliary_relations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "p.dl"
    program.write_text(CLOSURE + 'edge("a", "b").  edge("b", "c").  .output path.tree\n')
    assert main(["run", str(program), "-D", str(tmp_path)]) == 0
    assert (tmp_path / "path.tree.csv").read_text() == "a\tb\ta\na\tc\tb\nb\tc\tb\n"


def test_list_knows_every_system(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ies", "list", "--json"]) == 0
    listed = {one["name"] for one in json.loads(capsys.readouterr().out)}
    assert listed == set(catalogue.SYSTEMS)
    page = (ROOT / "docs" / "ies.md").read_text(encoding="utf-8")
    for name in listed:
        assert f"`{name}`" in page, f"{name} is not in docs/ies.md"


def test_every_code_of_the_calculus_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "ies.md").read_text(encoding="utf-8")
    for code, text in CODES.items():
        assert f"| {code} | {text} |" in page


@pytest.mark.parametrize("name", list(catalogue.SYSTEMS))
def test_every_system_can_be_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ies", "show", name]) == 0
    assert catalogue.entry(name).described.answer.name in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "tc_path"], "no system is called `tc_path`; is it `tc_paths`?"),
        (["show", "nowhere.nrc"], "cannot read `nowhere.nrc`"),
        (["sql", "tc_paths"], "flat"),
        (["sql", "tc_counts", "--dialect", "oracle"], "oracle"),
        (["run", "tc_paths", "--updates", "nowhere.txt"], "cannot read the updates in nowhere.txt"),
        (["run", "tc_paths", "--updates", "nowhere.txt", "--limit", "-1"], "--limit"),
    ],
)
def test_bad_input_is_told(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ies", *arguments]) == 1
    assert message in capsys.readouterr().err
