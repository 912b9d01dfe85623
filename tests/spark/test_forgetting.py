"""Frames that Python has dropped leave Java's heap."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from everlog.dsl.check import compile_text
from everlog.spark_backend import frame_gc
from everlog.spark_backend.evaluate import evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def held() -> int:
    """Objects of Java that Python holds."""
    from py4j.java_gateway import JavaObject

    return sum(type(one) is JavaObject for one in gc.get_objects())


def test_evaluations_do_not_fill_java(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    program = compile_text(
        ".decl e(x:number, y:number)  .decl p(x:number, y:number)  p(x, z) :- e(x, y), e(y, z)."
    )

    def run() -> None:
        monkeypatch.setattr(frame_gc._Clock, "due", 0.0)
        assert len(evaluate(spark, program, {"e": [(1, 2), (2, 3)]})["p"].collect()) == 1

    gc.collect()
    gc.disable()  # Python's own collections come when they come
    try:
        before = held()
        run()
        garbage = held() - before
        for _ in range(5):
            run()
        assert 0 < held() - before < 2 * garbage
    finally:
        gc.enable()
