"""Every specification that computes something, on Spark, against the reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dlt import ROOT, run_file
from specs import every_step, has_steps, last_state, tiny

from everlog.spark_backend.executor import SparkExecutor
from everlog.spark_backend.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FILES = sorted((ROOT / "tests" / "spec").rglob("*.dlt")) + sorted((ROOT / "programs").rglob("*.dlt"))
FILES = [path for path in FILES if has_steps(path)]
USUAL = [path for path in FILES if "programs" not in path.parts][::3]  # the others in deep runs
USUAL += [path for path in FILES if path.parent.name in ("triangles", "access_control")]
RECURSION = [path for path in FILES if "recursion" in path.parts]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def deep(path: Path) -> Any:
    return pytest.param(path, marks=pytest.mark.deep)


@pytest.mark.parametrize("path", [path if path in USUAL else deep(path) for path in FILES], ids=name_of)
def test_the_last_state_of_a_specification(path: Path, spark: SparkSession) -> None:
    """Some files with `start` and `apply`; the others are evaluated once."""
    by_itself = "programs" not in path.parts and FILES.index(path) % 4 == 0
    with tiny(spark):
        run_file(path, session=last_state(SparkExecutor(spark), by_itself))


@pytest.mark.parametrize("path", RECURSION[::6], ids=name_of)
def test_the_last_state_with_recursion_iterated_on_spark(path: Path, spark: SparkSession) -> None:
    with tiny(spark):
        run_file(path, session=last_state(SparkExecutor(spark, Settings(recursion="iterated"))))


@pytest.mark.parametrize("path", RECURSION[1::6], ids=name_of)
def test_the_last_state_with_recursion_inside_tasks(path: Path, spark: SparkSession) -> None:
    with tiny(spark):
        run_file(path, session=last_state(SparkExecutor(spark, Settings(recursion="decomposed"))))


@pytest.mark.deep
@pytest.mark.parametrize("way", ["auto", "iterated", "decomposed"])
@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_step_of_a_specification(path: Path, way: str, spark: SparkSession) -> None:
    with tiny(spark):
        run_file(path, session=every_step(SparkExecutor(spark, Settings(recursion=way))))
