"""Rules are planned anew when they try more rows than expected, or relations have grown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from join_steps import tasks

from everlog.core.evaluate import run_context, run_relations, seminaive, watched_rule
from everlog.core.evaluate.native import rule_task
from everlog.core.evaluate.reports.profile import RunProfile
from everlog.core.evaluate.watched_rule import WatchedRule
from everlog.core.native.availability import why_not
from everlog.core.storage.table_statistics import Guess, Statistics
from everlog.dsl.check import compile_text

compiled = pytest.mark.skipif(bool(why_not()), reason="the compiled machine is not there")

TEXT = """
.decl big(x:number, y:number)  .decl wide(y:number, z:number)  .decl few(z:number, w:number)
.decl out(x:number, w:number)
out(x, w) :- big(x, y), wide(y, z), few(z, w).
"""
FACTS = {
    "big": [(x, x % 3) for x in range(3000)],
    "wide": [(z % 3, z) for z in range(3000)],
    "few": [(z, z + 1) for z in range(0, 3000, 700)],
}


@compiled
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_rule_that_tries_far_more_rows_than_expected_is_planned_with_what_it_has_seen(jobs: int) -> None:
    """The statistics say that `big` and `wide` hardly meet; each row meets a thousand."""
    program = compile_text(TEXT)
    honest = seminaive.evaluate(program, FACTS)
    lies = {3000: 10.0, 5: 100_000.0}

    def known(relation: Any) -> Statistics:
        rows = [(number, number) for number in range(500)]
        return Statistics(lies.get(len(relation), 1.0), rows, complete=False)

    with tasks() as made, patch.object(run_relations, "statistics_of_words", known):
        found = seminaive.evaluate(program, FACTS, jobs=jobs)
    (task,) = made
    assert task.replanned == 1
    assert [str(step.literal) for step in task.made.plan.steps][-1] == "big(x, y)"
    assert found.relation("out") == honest.relation("out")
    assert len(found.relation("out")) == 5000
    assert task.made.code.rows < 20_000, "three thousand rows each were to be tried"


@compiled
def test_threads_count_what_one_thread_counts() -> None:
    program = compile_text(TEXT)
    found = []
    for jobs in (1, 2):
        profile = RunProfile()
        facts = {**FACTS, "few": [(z, z % 7) for z in range(3000)]}
        seminaive.evaluate(program, facts, profile=profile, jobs=jobs)
        (unit,) = profile.units
        found.append([(step.tried, step.kept) for step in unit.rules["out#1"].plans[0].steps])
    assert found[0] == found[1]
    assert (found[0][-1][0] or 0) >= 3000


@compiled
def test_a_rule_that_is_slow_in_any_order_ends() -> None:
    """All orders try more than expected: in the end one runs through."""
    program = compile_text(TEXT)
    with tasks() as made, patch.object(rule_task, "WORTH", 10), patch.object(rule_task, "MORE", 0):
        found = seminaive.evaluate(program, {**FACTS, "few": [(z, z % 7) for z in range(3000)]})
    assert made[0].replanned <= rule_task.TIMES
    assert found.relation("out") == {(x, w) for x in range(3000) for w in range(7)}


@compiled
def test_a_recursive_rule_is_planned_by_what_its_relation_has_become() -> None:
    program = compile_text(
        """.decl e(x:number, y:number)  .decl p(x:number, y:number, n:number)
p(x, y, 0) :- e(x, y).
p(x, z, n + 1) :- p(x, y, n), e(y, w), p(w, z, 0), n < 3."""
    )
    edges = [(x, (x * 7 + k) % 300) for x in range(300) for k in range(3)]
    with tasks() as made:
        found = seminaive.evaluate(program, {"e": edges})
    assert max(task.replanned for task in made if task.delta is not None) > 0
    with patch.dict("os.environ", EVERLOG_PURE="1"):
        assert seminaive.evaluate(program, {"e": edges}).relation("p") == found.relation("p")


# ── in Python ────────────────────────────────────────────────────────────────────────────────


@contextmanager
def in_python(statistics: dict[str, Statistics]) -> Iterator[list[WatchedRule]]:
    """The rules that Python watches inside, which are planned with these statistics at first."""
    found: list[WatchedRule] = []
    init = WatchedRule.__init__

    def made(self: WatchedRule, *args: Any) -> None:
        found.append(self)
        init(self, *args)

    with (
        patch.dict("os.environ", EVERLOG_PURE="1"),
        patch.object(WatchedRule, "__init__", made),
        patch.object(run_context.Context, "_statistics", lambda *_: statistics),
    ):
        yield found


def lie(rows: float) -> Statistics:
    return Statistics(rows, [(number, number) for number in range(500)], complete=False)


# All variables are shown: no union of sets makes a bad order a good one.
SHOWN = """
.decl big(x:number, y:number)  .decl wide(y:number, z:number)
.decl mid(z:number, w:number)  .decl few(w:number, v:number)
.decl out(x:number, y:number, z:number, w:number, v:number)
out(x, y, z, w, v) :- big(x, y), wide(y, z), mid(z, w), few(w, v).
"""
MORE = {**FACTS, "mid": [(z, -z) for z in range(3000)], "few": [(-z, 1) for z in range(0, 3000, 700)]}
LIES = {"big": lie(10.0), "wide": lie(10.0), "mid": lie(10.0), "few": lie(100_000.0)}


def test_in_python_a_rule_is_planned_anew_in_the_middle_of_its_work() -> None:
    program = compile_text(SHOWN)
    with in_python(LIES) as made:
        found = seminaive.evaluate(program, MORE)
    (rule,) = made
    last = program.rules[0].body[rule.compiled.plan.estimates[-1].position]
    assert (rule.replanned, str(last)) == (1, "big(x, y)")
    expected = {(x, x % 3, z, -z, 1) for x in range(3000) for z in range(0, 3000, 700) if x % 3 == z % 3}
    assert found.relation("out") == expected


def test_in_python_a_recursion_is_planned_anew_in_the_middle_of_its_work() -> None:
    program = compile_text("""
.decl e(x:number, y:number)  .decl big(x:number, y:number)
.decl mid(x:number, y:number)  .decl few(x:number, y:number)
.decl p(x:number, y:number, z:number, w:number, n:number)
p(x, y, 0, 0, 0) :- e(x, y).
p(x, v, z, w, n + 1) :- p(x, y, _, _, n), big(y, z), mid(z, w), few(w, v), n < 2.
""")
    facts = {
        "e": [(x, x % 50) for x in range(400)],
        "big": [(y, z) for y in range(50) for z in range(400)],
        "mid": [(z, -z) for z in range(400)],
        "few": [(-z, z % 50) for z in range(0, 400, 100)],
    }
    lies = {"p": Guess(5, 500), "e": lie(10.0), "big": lie(10.0), "mid": lie(10.0), "few": lie(100_000.0)}
    honest = seminaive.evaluate(program, facts)
    with in_python(lies) as made:
        found = seminaive.evaluate(program, facts)
    assert found.relation("p") == honest.relation("p")
    assert sum(rule.replanned for rule in made) > 0


def test_in_python_a_rule_that_is_slow_in_any_order_ends() -> None:
    program = compile_text(SHOWN)
    facts = {name: [(x, x % 3) for x in range(100)] for name in ("big", "mid", "few")}
    facts["wide"] = [(z % 3, z) for z in range(100)]
    with in_python(LIES) as made, patch.object(watched_rule, "WORTH", 10), patch.object(watched_rule, "MORE", 0):
        found = seminaive.evaluate(program, facts)
    assert made[0].replanned <= rule_task.TIMES
    assert found.relation("out") == {
        (x, x % 3, z, z % 3, z % 3) for x in range(100) for z in range(100) if x % 3 == z % 3
    }
