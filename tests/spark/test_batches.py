"""Batches on Spark: the state is the program on the facts so far.

The reported changes are the difference, and a killed driver leaves the old state or the new one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from recomputing import Recomputing
from specs import tiny

from everlog.core.evaluate import reference
from everlog.core.program import Program, Row
from everlog.core.program.executor import InsertOnly, Update
from everlog.core.program.fact_rows import FactError
from everlog.core.program.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.spark_backend.batches import SparkState
from everlog.spark_backend.batches.parquet_state import Folder, StateError
from everlog.spark_backend.column_types import by_place, fetch, kinds_of
from everlog.spark_backend.evaluate import evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EVERY_WAY = """
.decl e(x:number, y:number)
.decl v(x:number)
.decl src(x:number)
.decl path(x:number, y:number)
.decl two(x:number, y:number)
.decl any()
.decl n(x:number, k:number)
e(1, 2).  e(2, 3).
src(x) :- e(x, _).
path(x, y) :- e(x, y).
path(x, z) :- path(x, y), path(y, z), !v(z).
two(x, z) :- e(x, y), e(y, z), x != z.
two(x, x) :- v(x), !src(x).
any() :- e(_, x), v(x).
n(x, k) :- src(x), k = count : { path(x, _) }.
"""
SMALL = """
.decl e(x:number, y:symbol)
.decl p(x:number)
p(x) :- e(x, _).
"""


@pytest.fixture(autouse=True)
def _tiny(spark: SparkSession) -> Iterator[None]:
    with tiny(spark):
        yield


def rows_of(state: SparkState, program: Program) -> dict[str, frozenset[Row]]:
    frames = {name: state.view(name) for name in program.relations}
    for name, r in program.relations.items():
        assert frames[name].columns == [column.name for column in r.columns] or not r.columns
    kinds = {name: kinds_of(r) for name, r in program.relations.items()}
    found = fetch({name: (by_place(frames[name], kinds[name]), kinds[name]) for name in frames})
    assert found is not None
    for name, rows in found.items():
        assert len(rows) == len(set(rows)) == state.size(name), f"{name}: a fact stands there twice"
    return {name: frozenset(rows) for name, rows in found.items()}


def step_of(inserts: Mapping[str, list[Row]], deletes: Mapping[str, list[Row]]) -> list[Update]:
    """A batch as a step: its deletes come first."""
    gone = [Update(name, row, insert=False) for name, rows in deletes.items() for row in rows]
    return gone + [Update(name, row) for name, rows in inserts.items() for row in rows]


def agree(spark: SparkSession, program: Program, folder: Path, stream: list[Any]) -> None:
    state = SparkState(spark, program, folder)
    oracle = Recomputing(reference.evaluate).start(program)
    for number, (inserts, deletes) in enumerate(stream):
        told = oracle.apply(step_of(inserts, deletes))
        applied = state.apply(f"batch {number}", inserts, deletes)
        assert rows_of(state, program) == {name: oracle.view(name) for name in program.relations}
        assert dict(applied.changed) == {name: len(change) for name, change in told.items()}
        written = {}
        for name in told:
            frame = spark.read.parquet(str(applied.folder / name.replace(" ", "+")))
            for sign in (1, -1):
                one = frame.where(f"sign = {sign}").drop("sign")
                written[f"{name} {sign}"] = one, kinds_of(program.relations[name])
        found = fetch(written)
        assert found is not None
        for name, change in told.items():
            for sign in (1, -1):
                assert set(found[f"{name} {sign}"]) == {row for row, s in change.items() if s == sign}


def test_every_way_of_keeping_a_relation_follows_inserts_and_deletes(spark: SparkSession, tmp_path: Path) -> None:
    stream = [
        ({"e": [(3, 1), (1, 2)], "v": [(2,), (7,)], "path": [(9, 9)]}, {}),
        ({"e": [(3, 4)], "two": [(1, 1)], "v": [(4,)]}, {"e": [(1, 2), (5, 5)], "v": [(2,)], "path": [(9, 9)]}),
    ]
    agree(spark, compile_text(EVERY_WAY), tmp_path, stream)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
def test_random_batches(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    draw = Random(seed)

    def some(names: tuple[str, ...]) -> dict[str, list[Row]]:
        arities = {"e": 2, "v": 1, "path": 2, "two": 2}
        return {n: [tuple(draw.randrange(5) for _ in range(arities[n])) for _ in range(3)] for n in names}

    stream = [(some(("e", "v")), some(("e", "v", "path"))) for _ in range(4)]
    agree(spark, compile_text(EVERY_WAY), tmp_path, stream)


def test_a_batch_that_comes_again_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    program = compile_text(SMALL)
    state = SparkState(spark, program, tmp_path)
    first = state.apply("one", {"e": [(1, "a"), (2, "\udcff")]})
    again = SparkState(spark, program, tmp_path).apply("one", {"e": [(3, "c")]})
    assert again.repeated
    assert again.folder == first.folder
    assert rows_of(state, program)["p"] == {(1,), (2,)}


def test_what_is_wrong_with_a_batch_is_said_and_leaves_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    text = ".decl e(x:number)\n.insert_only e\n.decl q(x:number)\nq(6 / x) :- e(x).\ne(1).\n"
    program = compile_text(text)
    state = SparkState(spark, program, tmp_path)
    before = state.version, rows_of(state, program)
    with pytest.raises(InsertOnly):
        state.apply("delete", {}, {"e": [(1,)]})
    with pytest.raises(EvaluationError, match="division by zero: 6 / 0"):
        state.apply("zero", {"e": [(0,)]})
    with pytest.raises(FactError, match="undefined relation `nobody`"):
        state.apply("unknown", {"nobody": [(1,)]})
    assert (state.version, rows_of(state, program)) == before
    with pytest.raises(StateError, match="another program"):
        SparkState(spark, compile_text(SMALL), tmp_path)


def test_a_folder_has_one_writer_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    program = compile_text(SMALL)
    state = SparkState(spark, program, tmp_path)
    with (
        Folder(tmp_path, program).writing(),
        pytest.raises(StateError, match=f"is being written by process {os.getpid()} on "),
    ):
        state.apply("one", {"e": [(1, "a")]})
    assert state.apply("one", {"e": [(1, "a")]}).changed == {"e": 1, "p": 1}


def test_a_stream_drives_batches(spark: SparkSession, tmp_path: Path) -> None:
    program = compile_text(SMALL)
    state = SparkState(spark, program, tmp_path / "state")
    (tmp_path / "in").mkdir()
    schema = "x bigint, y string, op string"
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))

    def drain() -> None:
        writer = source.writeStream.foreachBatch(state.foreach_batch("e", "stream"))
        query = writer.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True).start()
        query.awaitTermination()

    (tmp_path / "in" / "1.json").write_text('{"x": 1, "y": "a", "op": "+"}\n{"x": 2, "y": "b", "op": "+"}\n')
    drain()
    assert rows_of(state, program)["p"] == {(1,), (2,)}
    (tmp_path / "in" / "2.json").write_text('{"x": 1, "y": "a", "op": "-"}\n{"x": 3, "y": "c", "op": "+"}\n')
    drain()
    assert rows_of(state, program)["p"] == {(2,), (3,)}
    assert [batch for batch in state.batches if batch.startswith("stream-")] == ["stream-0", "stream-1"]


# ── a killed driver ──────────────────────────────────────────────────────────────────────────

DRIVER = """
import os, signal, sys
from pathlib import Path
from everlog.dsl.check import compile_text
from everlog.spark_backend.batches import parquet_state as states
from everlog.spark_backend.batches import SparkState
from everlog.spark_backend.spark_session import spark_session

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

spark = spark_session("local[1]", memory="1g", conf={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
state = SparkState(spark, compile_text(Path(sys.argv[1]).read_text()), sys.argv[2])
when = sys.argv[3]
if when == "after the first table":
    write = states.Writing.write
    states.Writing.write = lambda *args: (write(*args), die())
elif when == "before the rename":
    states.os.replace = die
else:
    replace = os.replace
    states.os.replace = lambda *args: (replace(*args), die())
state.apply("two", {"e": [(2, "b")]}, {"e": [(1, "a")]})
"""


@pytest.mark.parametrize(
    "when",
    [
        "after the first table",
        pytest.param("before the rename", marks=pytest.mark.deep),
        pytest.param("after the rename", marks=pytest.mark.deep),
    ],
)
def test_a_driver_killed_in_the_middle_of_a_batch_leaves_a_whole_state(
    spark: SparkSession, tmp_path: Path, when: str
) -> None:
    program = compile_text(SMALL)
    folder = tmp_path / "state"
    SparkState(spark, program, folder).apply("one", {"e": [(1, "a")]})
    (tmp_path / "driver.py").write_text(DRIVER)
    (tmp_path / "prog.dl").write_text(SMALL)
    words = [sys.executable, "-P", str(tmp_path / "driver.py"), str(tmp_path / "prog.dl"), str(folder), when]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    state = SparkState(spark, program, folder)
    survived = {(2,)} if when == "after the rename" else {(1,)}
    assert rows_of(state, program)["p"] == survived
    assert state.apply("two", {"e": [(2, "b")]}, {"e": [(1, "a")]}).repeated == (when == "after the rename")
    assert rows_of(state, program) == {"e": {(2, "b")}, "p": {(2,)}}
    kept = {path.name for path in (folder / "tables").iterdir()}
    assert kept <= {str(number) for number in range(state.version + 1)}


ROWS = [(None, "a"), (1,), (1, "a", 2), (1.5, "a"), (True, "a"), (2**63, "a"), (1, None), (1, 2), ("1", "a"), 7]


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_rows_that_are_no_facts_are_refused_and_change_nothing(
    spark: SparkSession, tmp_path: Path, row: object
) -> None:
    program = compile_text(SMALL)
    state = SparkState(spark, program, tmp_path)
    with pytest.raises(FactError):
        state.apply("bad", {"e": [row]})  # type: ignore[list-item]
    assert (state.size("e"), state.batches) == (0, state.batches[:1])
    with pytest.raises(FactError):
        evaluate(spark, program, {"e": [row]})  # type: ignore[list-item]


def test_names_that_are_unknown_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    program = compile_text(SMALL)
    state = SparkState(spark, program, tmp_path)
    for ask in (
        lambda: evaluate(spark, program, {"q": [(1,)]}),
        lambda: evaluate(spark, program, wanted=["q"]),
        lambda: state.view("q"),
        lambda: state.size("q"),
        lambda: state.apply("b", {"q": [(1,)]}),
    ):
        with pytest.raises(FactError, match="undefined relation `q`"):
            ask()
    with pytest.raises(ValueError, match="the name of a batch must be a non-empty text"):
        state.apply(5, {})  # type: ignore[arg-type]


def test_readers_follow_and_what_they_took_stays_for_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    program = compile_text(SMALL)
    state, reader = SparkState(spark, program, tmp_path), SparkState(spark, program, tmp_path)
    state.apply("one", {"e": [(1, "a")]})
    assert (reader.version, reader.size("e"), reader.batches[-1]) == (state.version, 1, "one")
    before = reader.view("p")
    state.apply("two", {"e": [(2, "b")]})
    assert sorted(row[0] for row in before.collect()) == [1]
    assert sorted(row[0] for row in reader.view("p").collect()) == [1, 2]
    state.apply("three", {"e": [(3, "c")]})
    assert sorted(row[0] for row in reader.view("p").collect()) == [1, 2, 3]


def test_a_row_of_a_stream_without_an_op_is_an_insert(spark: SparkSession, tmp_path: Path) -> None:
    state = SparkState(spark, compile_text(SMALL), tmp_path)
    rows = [(1, "a", "+"), (2, "b", None), (3, "c", "-")]
    state.foreach_batch("e", "s")(spark.createDataFrame(rows, "x bigint, y string, op string"), 0)
    assert sorted(row[0] for row in state.view("e").collect()) == [1, 2]


def test_frames_go_by_position_whatever_their_names(spark: SparkSession, tmp_path: Path) -> None:
    state = SparkState(spark, compile_text(SMALL), tmp_path)
    rows = spark.createDataFrame([(1, "a")], "x bigint, y string")
    state.apply("twice", {"e": rows.toDF("a", "a")})
    state.apply("odd", {"e": rows.selectExpr("x + 1", "y").toDF("a`b", "a.b")})
    assert sorted(row[0] for row in state.view("e").collect()) == [1, 2]
