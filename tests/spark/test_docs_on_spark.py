"""The Python of docs/spark.md runs as written, with the files and frames it names."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dlt import ROOT

from everlog.dsl.check import compile_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.deep]

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "spark.md").read_text(), re.DOTALL)
PATHS = """.decl edge(x:symbol, y:symbol)
.input edge
.decl path(x:symbol, y:symbol)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
HOT = """.decl call(x:symbol, y:symbol)
.input call
.decl hot(x:symbol, y:symbol)
hot(x, y) :- call(x, y), call(y, _).
.decl warm(x:symbol)
.output warm
warm(x) :- hot(x, _).
"""


def placed(block: str, folder: Path, *names: str) -> str:
    """The block with absolute paths: Java stays in the folder where it was started."""
    for name in names:
        assert f'"{name}"' in block
        block = block.replace(f'"{name}"', repr(str(folder / name)))
    return block


def test_every_block_is_run_here() -> None:
    assert len(BLOCKS) == 3


def test_evaluating(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "paths.dl").write_text(PATHS)
    edges = [("a", "b"), ("b", "c")]
    spark.createDataFrame(edges, "x string, y string").write.parquet(str(tmp_path / "edges"))
    exec(placed(BLOCKS[0], tmp_path, "edges", "paths.dl", "paths"), names := {})
    found = {tuple(row) for row in spark.read.parquet(str(tmp_path / "paths")).collect()}
    assert found == {("a", "b"), ("b", "c"), ("a", "c")}
    assert names["spark"] is spark


def test_handing_over(spark: SparkSession) -> None:
    names: dict[str, Any] = {"spark": spark, "program": compile_text(HOT)}
    names["calls"] = spark.createDataFrame([("f", "g"), ("g", "h")], "x string, y string")
    exec(BLOCKS[1], names)
    assert names["db"].view("warm") == [("f",), ("main",)]
    assert sorted(tuple(row) for row in names["frames"]["warm"].collect()) == [("f",), ("main",)]


def test_batches(spark: SparkSession, tmp_path: Path) -> None:
    rows = "c0 string, c1 string"
    spark.createDataFrame([("c", "d")], rows).write.parquet(str(tmp_path / "arriving"))
    names: dict[str, Any] = {"spark": spark, "program": compile_text(PATHS)}
    names["new"] = spark.createDataFrame([("a", "b"), ("b", "c")], rows)
    names["gone"] = spark.createDataFrame([("x", "y")], rows)
    names["stream"] = spark.readStream.schema(rows).parquet(str(tmp_path / "arriving"))
    exec(placed(BLOCKS[2], tmp_path, "hdfs-mounted/state"), names)
    (query,) = spark.streams.active
    try:
        query.processAllAvailable()
        assert names["state"].view("path").count() == 6
    finally:
        query.stop()
    assert os.listdir(tmp_path / "hdfs-mounted") == ["state"]
