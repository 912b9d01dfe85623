"""A run on Spark plans its units, carried columns and cyclic joins once."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from specs import tiny

from everlog.commands.shared.on_spark import evaluate_job, job_of
from everlog.core.program.dependencies import units
from everlog.core.program.executor import Update
from everlog.dsl.check import compile_text
from everlog.spark.handover import database_from_spark
from everlog.spark_backend import plan as planning
from everlog.spark_backend.batches import SparkState
from everlog.spark_backend.executor import SparkExecutor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _tiny(spark: SparkSession) -> Iterator[None]:
    with tiny(spark):
        yield


# a unit of each way: a plan with a cyclic join, a recursion, an equivalence, an aggregate
PROGRAM = compile_text("""
.decl e(x:number, y:number)
.decl triangle(x:number, y:number, z:number)
.decl path(x:number, y:number)
.decl same(x:number, y:number) eqrel
.decl n(k:number)
e(1, 2).  e(2, 3).  e(3, 1).
triangle(x, y, z) :- e(x, y), e(y, z), e(z, x).
path(x, y) :- e(x, y).
path(x, z) :- path(x, y), e(y, z).
same(x, y) :- e(x, y), x < y.
n(k) :- k = count : { path(_, _) }.
.output triangle
.output same
.output n
""")
UNITS = len(units(PROGRAM))
RULES = len(PROGRAM.rules)


@contextmanager
def plans() -> Iterator[dict[str, int]]:
    """How many units are planned, and how many rules are looked at for a cyclic join."""
    seen = {"units": 0, "joins": 0}

    def counted(key: str, function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            seen[key] += 1
            return function(*arguments)

        return call

    with (
        patch.object(planning, "_planned", counted("units", planning._planned)),
        patch.object(planning, "cyclic_join", counted("joins", planning.cyclic_join)),
    ):
        yield seen
    assert seen["units"] == UNITS
    assert seen["joins"] == RULES


def test_a_job_of_the_command_line_plans_once(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = argparse.Namespace(
        fact_dir=str(tmp_path), output_dir="-", no_warn=True, verbose=False, updates=None, strategy=None,
        max_iterations=None, max_facts=None, max_memory=None, max_seconds=None,
    )  # fmt: skip
    with plans():
        evaluate_job(spark, job_of(PROGRAM, arguments), lambda _: None)
    assert "9" in capsys.readouterr().out


def test_a_run_of_steps_plans_once(spark: SparkSession) -> None:
    with plans():
        run = SparkExecutor(spark).start(PROGRAM)
        run.apply([Update("e", (3, 4))])
        run.apply([Update("e", (1, 2), False)])
    assert run.view("n") == {(5,)}


def test_batches_plan_once(spark: SparkSession, tmp_path: Path) -> None:
    with plans():
        state = SparkState(spark, PROGRAM, tmp_path / "state")
        state.apply("one", {"e": [(3, 4)]})
        state.apply("two", {}, {"e": [(1, 2)]})
    assert [row[0] for row in state.view("n").collect()] == [5]
    assert state.size("same") == 9  # 2, 3 and 4, with each other and with themselves


def test_a_handover_that_is_verified_plans_once(spark: SparkSession) -> None:
    with plans():
        db = database_from_spark(spark, PROGRAM, taken=["path"], verify=True)
    assert db.view("n") == [(9,)]
