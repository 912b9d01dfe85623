"""Systems of auxiliary relations in a program, and `everlog ies`, for users."""

from __future__ import annotations

import io
import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from everlog import Database, DatalogError, EvaluationError
from everlog.cli import main
from everlog.commands import ies
from everlog.core.engine.planning.systems import NoSuchStrategy, Refused
from everlog.core.proofs.checker import verify
from everlog.dsl.check import compile_text
from everlog.ies import registry
from everlog.ies.files import datalog
from everlog.ies.nrc.errors import CODES
from everlog.ies.offers import SYSTEMS

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
    assert db.facts('path.tree("a", y, "b")') == [("a", "c", "b")]
    assert db.view("last") == [("c",)]
    changes = db.apply(['-edge("c", "d").', '+edge("b", "d").'])
    assert changes["last"] == {("c",): -1, ("b",): 1}
    assert changes["path.tree"][("a", "d", "b")] == 1


def test_an_auxiliary_relation_is_reported_once_it_is_read() -> None:
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


def test_no_facts_can_be_inserted_into_what_a_system_keeps() -> None:
    db = closure()
    for name, row in (("path", ("x", "y")), ("path.tree", ("x", "y", "x"))):
        with pytest.raises(Refused, match="kept by tc_witness"):
            db.insert(name, row)
        with pytest.raises(Refused, match="kept by tc_witness"):
            db.insert(name, [row, row])
    assert len(db.view("path")) == 6


def test_auxiliary_relations_of_a_component_go_by_its_instances() -> None:
    rules = "path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z).  .strategy tc_witness"
    db = Database.from_text(
        f".decl edge(x:number, y:number)  .comp C {{ .decl path(x:number, y:number)  {rules}"
        "  .decl q(x:number)  q(p) :- path.tree(1, 3, p). }  .init a = C  .init b = C  .output a.path.tree"
    )
    db.insert("edge", [(1, 2), (2, 3)])
    assert db.view("a.q") == db.view("b.q") == [(2,)]
    assert db.view("b.path.tree") == [(1, 2, 1), (1, 3, 2), (2, 3, 2)]


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


def test_the_limit_is_a_pragma() -> None:
    text = CLOSURE.replace("tc_witness", "tc_paths")
    db = Database.from_text(text + '.pragma "auxiliary-limit" "12"')
    db.insert("edge", ("a", "b"))
    with pytest.raises(Refused, match="the limit is 12"):
        db.insert("edge", ("b", "c"))
    assert db.view("path") == [("a", "b")]
    with pytest.raises(DatalogError, match=r"DL110.*is not a number of values"):
        Database.from_text(text + '.pragma "auxiliary-limit" "many"')


def test_proofs_are_found_where_a_system_keeps_the_relation() -> None:
    db = closure('.decl h(x:symbol)  h(p) :- path.tree("a", "d", p).')
    assert 'path("a", "d")' in db.why('path("a", "d")').text()
    proof = db.why('h("c")')
    assert 'path.tree("a", "d", "c")   kept by a system' in proof.text()
    verify(db._engine, proof)
    assert "kept by a system" in closure().why('path.tree("a", "d", "c")').text()
    closure().why_not('path.tree("a", "a", "a")')


def test_large_unsigned_nodes_stay_themselves_in_auxiliary_relations() -> None:
    db = Database.from_text(CLOSURE.replace("symbol", "unsigned"))
    high = 2**64 - 1
    db.insert("edge", [(high, 2**63 + 1), (2**63 + 1, 5)])
    assert (high, 5, 2**63 + 1) in db.view("path.tree")


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


def test_witnesses_are_those_of_before_after_a_step_that_was_given_up() -> None:
    text = CLOSURE.replace("symbol", "number") + (
        ".decl hop(x:number)  hop(p) :- path.tree(1, 4, p).  .decl n(x:number)  .decl bad(x:number)"
        "  bad(1 / (x - 7)) :- n(x), hop(_)."
    )
    db = Database.from_text(text)
    for edge in [(1, 2), (1, 3), (2, 4), (3, 4)]:
        db.insert("edge", edge)
    for edge in [(2, 4), (3, 4)]:  # one of them is the witness; giving it up and taking it back changes the tree
        before = {name: db.view(name) for name in db.relations}
        with pytest.raises(EvaluationError, match="division by zero"):
            db.apply([("edge", edge, -1), ("n", (7,), 1)])
        assert {name: db.view(name) for name in db.relations} == before
        db._engine.check()
    for edge in [(2, 4), (3, 4)]:
        before = {name: set(db.view(name)) for name in db.relations}
        changes = db.delete("edge", edge)
        for name in db.relations:
            signed = changes.get(name, {})
            gone, new = ({row for row, sign in signed.items() if sign == one} for one in (-1, 1))
            assert gone <= before[name]
            assert set(db.view(name)) == (before[name] - gone) | new, name
        db._engine.check()
    assert db.view("hop") == []


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


def test_an_auxiliary_relation_that_is_not_kept_is_not_read() -> None:
    reading = compile_text(CLOSURE + ".decl h(x:symbol)  h(x) :- path.tree(x, _, _).")
    for other in ("tc_counts", "ranked_python", "recompute"):
        with pytest.raises(NoSuchStrategy, match=r"h#1 reads `path\.tree`, which would be empty"):
            Database(reading, strategies={"path": other})
    assert Database(compile_text(CLOSURE), strategies={"path": "tc_counts"}).view("path.tree") == []


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (".limitsize path(n=3)", "has a size limit"),
        ("path(x, y) <= path(x, z) :- y < z.", "subsume"),
    ],
)
def test_a_system_is_refused_where_rules_must_be_computed_anew(more: str, reason: str) -> None:
    with pytest.raises(DatalogError, match=f"DL110.*{reason}"):
        Database.from_text(CLOSURE.replace("symbol", "number") + more)
    plain = CLOSURE.replace("symbol", "number").replace(".strategy tc_witness", "")
    assert "no system of auxiliary relations fits" in Database.from_text(plain + more).explain("path")


def test_a_system_may_be_asked_for_whatever_it_serves() -> None:
    text = CLOSURE.replace(".strategy tc_witness", "") + ".decl m(x:number)  m(1).  m(x + 1) :- m(x), x < 4."
    db = Database(compile_text(text), strategies={"*": "tc_witness"})
    plain = Database(compile_text(text))._engine
    assert db._engine.strategy_of("path")[0] == "tc_witness"
    assert db._engine.strategy_of("m")[0] == plain.strategy_of("m")[0]
    with pytest.raises(NoSuchStrategy, match="no rule derives it"):
        Database(compile_text(text), strategies={"edge": "tc_witness"})


# ── the command line ─────────────────────────────────────────────────────────────────────────


def test_run_writes_auxiliary_relations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "p.dl"
    program.write_text(CLOSURE + 'edge("a", "b").  edge("b", "c").  .output path.tree\n')
    assert main(["run", str(program), "-D", str(tmp_path)]) == 0
    assert (tmp_path / "path.tree.csv").read_text() == "a\tb\ta\na\tc\tb\nb\tc\tb\n"


@pytest.mark.parametrize(("names", "name"), [(names, name) for names in SYSTEMS.values() for name in names])
def test_every_flat_auxiliary_relation_can_be_named(names: tuple[str, ...], name: str) -> None:
    """In `.output` and in a rule: none is called like a word of the language."""
    system = registry.system_of(next(one for one in names if registry._is_written(one)))
    text = f"{datalog(system).rstrip()}  .strategy {name}\n"
    kept = {f"{system.answer.name}.{one.name}": one.arity for one in registry.entry(name).kept if one.flat}
    for number, (there, arity) in enumerate(kept.items()):
        text += f".output {there}\n.decl q{number}(x:number)  q{number}(x) :- {there}(x{', _' * (arity - 1)}).\n"
    db = Database.from_text(text)
    db.insert("edge", (1, 2))
    assert db.view(system.answer.name)
    for number, (there, arity) in enumerate(kept.items()):
        rows = db.view(there)
        assert {len(row) for row in rows} <= {arity}
        assert db.view(f"q{number}") == sorted({row[:1] for row in rows})


def test_list_knows_every_system(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ies", "list", "--json"]) == 0
    listed = {one["name"] for one in json.loads(capsys.readouterr().out)}
    assert listed == set(registry.SYSTEMS)
    page = (ROOT / "docs" / "ies.md").read_text(encoding="utf-8")
    for name in listed:
        assert f"`{name}`" in page, f"{name} is not in docs/ies.md"


def test_every_code_of_the_calculus_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "ies.md").read_text(encoding="utf-8")
    for code, text in CODES.items():
        assert f"| {code} | {text} |" in page


@pytest.mark.parametrize("name", list(registry.SYSTEMS))
def test_every_system_can_be_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ies", "show", name]) == 0
    assert registry.entry(name).described.answer.name in capsys.readouterr().out


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
def test_bad_input_is_reported(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ies", *arguments]) == 1
    assert message in capsys.readouterr().err


K8 = "".join(f"+edge({x}, {y}).\n" for x in range(8) for y in range(8) if x != y)


def run_ies(name: str, updates: str, capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, str, str]:
    """Exit status, output and errors of `everlog ies run`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(updates))
        status = main(["ies", "run", name, "--updates", "-", *flags])
    return status, *capsys.readouterr()


def test_the_limit_holds_without_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    upto = K8[: K8.index("+edge(6, 1)")]
    status, out, err = run_ies("tc_paths", upto, capsys, "--answer-only")
    assert status == 1
    assert err.startswith(
        "error: <stdin>:43: +edge(6, 0) refused: the auxiliary relations of tc_paths would hold 161,750"
    )
    assert "the limit is 100,000" in err
    assert "use tc_witness" in err
    assert len(out.splitlines()) < 200


def test_the_limit_is_for_systems_of_the_calculus(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run_ies("tc_witness", K8, capsys, "--limit", "1")
    assert status == 0
    assert "--limit has no effect on tc_witness" in err
    assert run_ies("tc_witness", K8, capsys) == (0, out, "")


def test_only_the_answer_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    updates = "+edge(1, 2).\n+edge(2, 3).\n-edge(1, 2).\n"
    for name in ("tc_witness", "tc_counts", "tc_paths", "flatten(tc_paths)"):
        _, all_of_it, _ = run_ies(name, updates, capsys)
        _, out, _ = run_ies(name, updates, capsys, "--answer-only")
        lines = [line for line in all_of_it.splitlines() if "edge" in line or "path(" in line]
        assert out.splitlines() == lines
        assert len(lines) < len(all_of_it.splitlines())


def test_only_the_answer_is_computed_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    running = registry.running("tc_counts")
    monkeypatch.setattr(registry, "running", lambda *_: running)
    run_ies("tc_counts", "+edge(1, 2).\n", capsys, "--answer-only")
    assert not running.track_auxiliaries  # type: ignore[union-attr]


def test_decimals_and_comments_in_updates(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run_ies("tc_paths", "+edge(1.5, 2). // a\n+edge().\n", capsys, "--answer-only")
    assert status == 1
    assert out == "+edge(1.5, 2). // a\n  +path(3/2, 2).\n"
    assert err == "error: <stdin>:2: `+edge().` is not an update: a tuple has one value or more\n"


def test_the_confidence_of_an_answer_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run_ies("tc_algebra", "+edge(1, 2).\n", capsys, "--answer-only")
    assert status == 0
    assert out.splitlines()[-1] == (
        "-- the chance that any pair is missing from this answer is at most 3.5e-18 (2 nodes)"
    )
    assert main(["ies", "show", "tc_algebra"]) == 0
    assert "is at most 8.7e-11 for 100 nodes, 8.7e-07 for 1,000 nodes" in capsys.readouterr().out
    assert "chance" not in run_ies("tc_witness", "+edge(1, 2).\n", capsys)[1]


@pytest.mark.parametrize("name", sorted(registry.PRACTICAL))
def test_of_systems_in_python_properties_and_place_are_shown(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ies", "show", name]) == 0
    page = capsys.readouterr().out
    _, _, shown = page.partition("-- properties of the one in Python, as computed\n")
    words = [line.removeprefix("--").split()[0] for line in shown.splitlines()]
    assert words == ["space-free", "flat", "arity", "deterministic"]
    assert f"functions: in Python, everlog.ies.practical.{registry.PRACTICAL[name][0]}\n" in page


MINE = """system inverse "Inverses"
input r : {num}  answer s : {num}
on insert x into r  s += {1 / x}
on delete x from r  s -= {1 / x}
example
  +r(2).
  s = {1/2}
  +r(4).
  s = {1/3, 1/2}
  +r(0).
end
example
  +r("a").
end
"""


def test_examples_of_a_users_file_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.nrc"
    path.write_text(MINE)
    wrong = [
        f"warning: example 1 of {path}: after +r(4). s should be {{1/3, 1/2}}, and is {{1/4, 1/2}}",
        f"warning: example 1 of {path}: +r(0). fails: division by zero",
        f'warning: example 2 of {path}: +r("a"). fails: "a" is not a tuple of r : {{num}}',
    ]
    status, out, err = run_ies(str(path), "+r(5).\n", capsys)
    assert (status, out, err.splitlines()) == (0, "+r(5).\n  +s(1/5).\n", wrong)
    assert main(["ies", "show", str(path)]) == 0
    shown = capsys.readouterr()
    assert "deterministic  yes" in shown.out
    assert shown.err.splitlines() == wrong


def test_a_beginning_without_a_value_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.nrc"
    path.write_text(MINE.replace("on insert", "initially s = {1 / 0}\non insert"))
    assert main(["ies", "show", str(path)]) == 1
    assert capsys.readouterr().err == f"error: {path}: division by zero\n"


def test_a_file_that_is_not_utf_8_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.nrc"
    path.write_bytes(b"system \xff")
    assert main(["ies", "show", str(path)]) == 1
    assert capsys.readouterr().err == f"error: cannot read `{path}`: byte 8 is not UTF-8\n"


def test_a_reader_that_has_gone_is_no_file_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, *_: Any) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", Gone())
    with pytest.raises(BrokenPipeError):
        ies.run(Namespace(action="list", json=False))
