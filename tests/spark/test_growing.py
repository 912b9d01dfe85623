"""Sums, counts, lattices and functions of the user on Spark equal the reference."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from growing_programs import COLUMNS, DIRECT, FORMS, MAPS, Rows, program_of
from specs import tiny
from test_agreement import agree
from test_batches import agree as agree_in_batches

from everlog.spark_backend.plan import explain
from everlog.spark_backend.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROGRAMS = FORMS | MAPS | DIRECT
USUAL = ("votes in a head", "bits that move", "mutual")
NAMES = [name if name in USUAL else pytest.param(name, marks=pytest.mark.deep) for name in PROGRAMS]


def some(text: str, chance: Random, number: int) -> dict[str, Rows]:
    """Facts of the relations that a program reads."""
    names = [name for name in COLUMNS if f"{name}(" in text]
    return {
        name: sorted({tuple(chance.randrange(5) for _ in COLUMNS[name]) for _ in range(number)}) for name in names
    }


@pytest.mark.parametrize("way", ["auto", "iterated"])
@pytest.mark.parametrize("name", NAMES)
def test_the_relations_are_those_of_the_reference(name: str, way: str, spark: SparkSession) -> None:
    text = PROGRAMS[name]
    agree(spark, program_of(text), some(text, Random(name), 9), way)


@pytest.mark.parametrize(
    "name", [name if name == "mutual" else pytest.param(name, marks=pytest.mark.deep) for name in PROGRAMS]
)
def test_batches_with_deletes_follow(name: str, spark: SparkSession, tmp_path: Path) -> None:
    text, chance = PROGRAMS[name], Random(name)
    first, second = some(text, chance, 8), some(text, chance, 3)
    gone: dict[str, Any] = {relation: rows[::2] for relation, rows in first.items()}
    with tiny(spark):
        agree_in_batches(spark, program_of(text), tmp_path, [(first, {}), (second, gone)])


def test_what_runs_in_the_driver_says_why() -> None:
    told = {name: explain(program_of(PROGRAMS[name]), Settings()) for name in PROGRAMS}
    assert "r: in process (its recursion goes through running totals)" in told["company control"]
    assert "r: in process (the values of lattices are joined)" in told["bits that flow"]
    assert "in process (a least and a greatest value depend on each other)" in told["both ends"]
    assert "in process (r#2 combines two values of the recursion)" in told["doubling"]
