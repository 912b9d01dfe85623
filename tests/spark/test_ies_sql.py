"""The SQL of incremental evaluation systems for Spark is SQL to Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from everlog.ies.sql import script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", ["tc_acyclic", "tc_counts", "tc_algebra"])
def test_spark_can_parse_its_text(spark: SparkSession, name: str) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    made = script(name, "spark")
    for statement in (*made.schema, *(one for each in made.updates.values() for one in each)):
        parser.parsePlan(statement)
