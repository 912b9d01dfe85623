"""`.plan`: the order that an author gives is the order of the joins, on both machines."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from everlog import Database
from everlog.cli import main
from everlog.core.engine.explain import explain_delta_code
from everlog.core.evaluate import reference, seminaive
from everlog.core.evaluate.reports.profile import RunProfile
from everlog.core.evaluate.reports.shown_plans import ShownPlan
from everlog.core.native.availability import why_not
from everlog.dsl.check import compile_text, diagnose
from everlog.dsl.source import Source

FACTS: dict[str, list[tuple[Any, ...]]] = {
    "big": [(x, x % 7) for x in range(60)],
    "wide": [(z % 7, z) for z in range(40)],
    "few": [(z, z + 1) for z in range(0, 40, 9)],
}
PLAIN = """
.decl big(x:number, y:number)  .decl wide(y:number, z:number)  .decl few(z:number, w:number)
.decl out(x:number, y:number, z:number, w:number)
out(x, y, z, w) :- big(x, y), !few(x, y), wide(y, z), few(z, w).
"""
RECURSIVE = """
.decl big(x:number, y:number)  .decl wide(y:number, z:number)  .decl few(z:number, w:number)
.decl near(x:number, y:number)
near(x, y) :- few(x, y).
near(x, z) :- near(x, y), x < 90, wide(y, z), near(z, w), big(z, w), x != w.
"""
MACHINES = ["1", pytest.param("", marks=pytest.mark.skipif(bool(why_not()), reason="not built"))]

pytestmark = pytest.mark.parametrize("pure", MACHINES, ids=["python", "compiled"])


@pytest.fixture(autouse=True)
def machine(pure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERLOG_PURE", pure)


def joined(plan: ShownPlan) -> list[str]:
    """The relations of a plan in the order of its joins."""
    return [step.atom.removeprefix("Δ ").partition("(")[0] for step in plan.steps]


def plans_of(text: str) -> dict[int | None, ShownPlan]:
    """The plans that a run of the last rule used, by the place of Δ."""
    program, profile = compile_text(text), RunProfile()
    found = seminaive.evaluate(program, FACTS, profile=profile)
    last = program.rules[-1]
    assert found.relation(last.head.relation) == reference.evaluate(program, FACTS)[last.head.relation]
    return {plan.delta: plan for unit in profile.units for plan in unit.rules[last.name].plans}


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_a_rule_is_joined_in_the_order_of_its_plan(order: tuple[int, ...]) -> None:
    names = ["big", "wide", "few"]
    (plan,) = plans_of(f"{PLAIN}.plan 0:({', '.join(map(str, order))})").values()
    assert (joined(plan), plan.written) == ([names[place - 1] for place in order], True)
    (free,) = plans_of(PLAIN).values()
    assert not free.written


def test_an_atom_that_only_tests_waits_for_its_turn() -> None:
    text = """.decl big, wide, few(x:number, y:number)  .decl out(x:number, y:number, z:number)
out(x, y, z) :- big(x, y), wide(y, z), few(x, y). .plan 0:(1, 2, 3)"""
    (plan,) = plans_of(text).values()
    assert joined(plan) == ["big", "wide", "few"]


def test_a_recursive_rule_has_an_order_for_each_version() -> None:
    plans = plans_of(RECURSIVE + ".plan 0:(1, 4, 3, 2), 1:(3, 2, 4, 1)")
    assert joined(plans[0]) == ["near", "big", "near", "wide"]
    assert joined(plans[3]) == ["near", "wide", "big", "near"]
    assert plans[0].written
    assert plans[3].written


def test_what_is_new_is_joined_first_and_a_version_without_order_is_planned() -> None:
    text = RECURSIVE + ".plan 1:(4, 1, 2, 3)"
    plans = plans_of(text)
    assert joined(plans[3]) == ["near", "big", "near", "wide"]
    assert not plans[0].written
    assert [problem.code for problem in diagnose(Source(text))[1].items if problem.code != "DL060"] == ["DL063"]


def test_updates_join_in_the_order_of_the_plan() -> None:
    db = Database(compile_text(PLAIN + ".plan 0:(3, 1, 2)"), facts=FACTS)
    orders = {plan.delta: joined(plan) for plan in db.plans("out")}
    assert orders[None] == ["few", "big", "wide"]
    assert orders[0] == ["big", "few", "wide"]
    assert orders[2] == ["wide", "few", "big"]
    code = explain_delta_code(db.program, {}, "out", ir=True)
    changed = code[code.index("Δ at body atom 3") :]
    assert changed.index("in few(z") < changed.index("probe big(")
    db.insert("wide", (3, 9))
    db.delete("few", (9, 10))
    now = {name: db.view(name) for name in FACTS}
    assert set(db.view("out")) == reference.evaluate(db.program, now)["out"]


def test_a_hidden_variable_stays_in_the_rule_whose_order_was_given() -> None:
    text = """.decl big, wide, few(x:number, y:number)  .decl out(x:number)
out(x) :- big(x, y), wide(y, z), few(z, w)."""
    db = Database(compile_text(text + " .plan 0:(3, 2, 1)"), facts=FACTS)
    orders = {plan.delta: joined(plan) for plan in db.plans("out")}
    assert orders[None] == ["few", "wide", "big"]


def test_explain_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prog = tmp_path / "prog.dl"
    inputs = "".join(f".input {name}\n" for name in FACTS)
    prog.write_text(f"{PLAIN}.plan 0:(2, 1, 3)\n{inputs}.output out\n")
    for name, rows in FACTS.items():
        (tmp_path / f"{name}.facts").write_text("".join(f"{x}\t{y}\n" for x, y in rows))
    assert main(["explain", str(prog), "-F", str(tmp_path)]) == 0
    assert "few(z, w).   order as written in .plan" in capsys.readouterr().out
