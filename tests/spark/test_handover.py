"""From Spark to a living database and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everlog import Database, FactError, compile_text
from everlog.spark.handover import Disagreement, cut_program, database_from_spark, database_to_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TEXT = """
.decl call(caller:symbol, callee:symbol, times:unsigned, cost:float)
.decl hot(caller:symbol, callee:symbol)
hot(a, b) :- call(a, b, n, c), n > 2, c < 100.0.
.decl reach(a:symbol, b:symbol)
reach(a, b) :- hot(a, b).
reach(a, c) :- reach(a, b), hot(b, c).
.decl fan(a:symbol, n:number)
fan(a, n) :- reach(a, _), n = count : { reach(a, _) }.
"""


def calls(spark: SparkSession) -> dict[str, object]:
    frame = spark.range(300).selectExpr(
        "concat('f', id % 40) AS caller",
        "concat('f', (id * 7 + 3) % 40) AS callee",
        "id % 5 AS times",
        "CAST(id AS double) AS cost",
    )
    return {"call": frame}


def expected(spark: SparkSession) -> Database:
    rows = [tuple(row) for row in calls(spark)["call"].collect()]  # type: ignore[attr-defined]
    return Database.from_text(TEXT, facts={"call": rows})


def test_a_program_that_ran_on_spark_goes_on_in_process(spark: SparkSession) -> None:
    db = database_from_spark(spark, compile_text(TEXT), calls(spark), verify=True)  # type: ignore[arg-type]
    other = expected(spark)
    assert {n: db.view(n) for n in db.relations} == {n: other.view(n) for n in other.relations}
    update = ("new", "f1", 9, 1.5)
    assert db.insert("call", update) == other.insert("call", update)
    assert db.delete("call", update) == other.delete("call", update)
    victim = db.given("call")[0]
    assert db.delete("call", victim) == other.delete("call", victim)
    assert db.why("reach", db.view("reach")[0]).text() == other.why("reach", other.view("reach")[0]).text()


def test_relations_are_taken_as_spark_computed_them(spark: SparkSession, tmp_path: Path) -> None:
    """Relations below stay on Spark; those above follow updates of the taken ones."""
    db = database_from_spark(spark, compile_text(TEXT), calls(spark), taken=["hot"])  # type: ignore[arg-type]
    other = expected(spark)
    assert list(db.relations) == ["hot", "reach", "fan"]
    assert db.view("fan") == other.view("fan")
    assert db.given("hot") == other.view("hot")
    told = db.insert("hot", ("x", "f0"))
    assert set(told) == {"hot", "reach", "fan"}
    db.save(tmp_path / "calls.db")
    with Database.open(tmp_path / "calls.db") as durable:
        assert {n: durable.view(n) for n in durable.relations} == {n: db.view(n) for n in db.relations}


def test_a_database_is_pushed_to_spark(spark: SparkSession) -> None:
    from everlog.spark.evaluating import evaluate
    from everlog.spark_backend.column_types import by_place, kinds_of, rows_of_frame

    db = Database.from_text(TEXT, facts={"call": [("é\udcff", "b", 2**64 - 1, 1.0), ("b", "c", 3, 0.5)]})
    program = compile_text(TEXT)
    frames = database_to_spark(db, spark)
    computed = evaluate(spark, program, database_to_spark(db, spark, given=True))
    for name, relation in program.relations.items():
        kinds = kinds_of(relation)
        for frame in (frames[name], computed[name]):
            assert frame.columns == [column.name for column in relation.columns]
            assert sorted(rows_of_frame(by_place(frame, kinds), kinds)) == db.view(name)


def test_names_that_are_none_and_sizes_that_differ_are_errors(spark: SparkSession) -> None:
    program = compile_text(TEXT)
    with pytest.raises(FactError, match="undefined relation `hott`; did you mean `hot`"):
        database_from_spark(spark, program, {}, taken=["hott"])
    from everlog.spark.handover import _compare

    with pytest.raises(Disagreement, match="`call` has 0 facts in process and 300 on Spark"):
        _compare(calls(spark), Database(cut_program(program, ["call"], [])))  # type: ignore[arg-type]
