"""A separate driver for tests on a cluster: a process can have only one Spark.

    python driver.py specs MASTER FOLDER FILE…    runs specifications; prints differences
    python driver.py closure MASTER LENGTH WAY    runs a transitive closure; prints rounds, result

Facts reach the cluster as Parquet files, so that executors read and compute them, not the driver's
optimizer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "spark")]

from attrs import evolve  # noqa: E402
from cluster import QUICK_JAVA  # noqa: E402
from dlt import Session, read_blocks  # noqa: E402
from specs import TINY  # noqa: E402

from everlog.core.engine import Engine  # noqa: E402
from everlog.core.program import Program, Row  # noqa: E402
from everlog.core.program.executor import InsertOnly  # noqa: E402
from everlog.core.program.values import EvaluationError  # noqa: E402
from everlog.dsl.check import compile_text  # noqa: E402
from everlog.dsl.fact_text import FactTextError, read_update  # noqa: E402
from everlog.spark_backend.column_types import arrow_table, fetch, kinds_of, schema_of  # noqa: E402
from everlog.spark_backend.evaluate import evaluate  # noqa: E402
from everlog.spark_backend.frames.expressions import NotOnSpark  # noqa: E402
from everlog.spark_backend.settings import Settings  # noqa: E402
from everlog.spark_backend.spark_session import spark_session  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS = Settings(partitions=1)
_AT_ONCE = 12  # programs whose relations are fetched by one job


def specified(path: Path, folder: Path) -> Iterator[tuple[str, Program, Engine]]:
    """The programs of a specification, each with the engine after its last step."""
    _, blocks = read_blocks(path.read_text(encoding="utf-8"))
    reader, engine = Session(folder), None
    for block in blocks:
        if block.command in ("program", "file"):
            if engine is not None:
                yield f"{path}:{block.line}", engine.program, engine
            engine = None
            if reader.answer(block) == ["ok"] and reader.program is not None:
                try:
                    engine = Engine(reader.program)
                except EvaluationError:
                    continue
        elif block.command == "step" and engine is not None:
            try:
                engine.apply([read_update(line, engine.program.relations) for line in block.input if line.strip()])
            except (EvaluationError, InsertOnly, FactTextError):
                continue  # it changes nothing
    if engine is not None:
        yield str(path), engine.program, engine


def as_files(spark: SparkSession, engine: Engine, folder: Path) -> dict[str, DataFrame]:
    """The base facts, as frames over Parquet."""
    import pyarrow.parquet as pq
    from pyspark.sql import functions as F

    frames = {}
    for number, (name, relation) in enumerate(engine.program.relations.items()):
        kinds, file, given = kinds_of(relation), folder / f"{number}.parquet", engine.given(name)
        if not given:
            continue
        table = arrow_table(given, kinds)
        pq.write_table(table, file)
        types = [str(field.type) for field in table.schema]
        stored = schema_of(kinds) if "binary" not in types else schema_of(kinds).replace("string", "binary")
        frame = spark.read.schema(stored).parquet(str(file))
        casts = [F.col(c).cast("string").alias(c) if t == "binary" else F.col(c) for c, t in frame.dtypes]
        frames[name] = frame.select(*casts)
    return frames


def specs(spark: SparkSession, folder: Path, files: list[str]) -> int:
    waiting: dict[str, tuple[DataFrame, Any]] = {}
    expected: dict[str, frozenset[Row]] = {}
    programs = different = 0
    for number, file in enumerate(files):
        for which, (name, program, engine) in enumerate(specified(Path(file), folder)):
            place = folder / f"{number}.{which}"
            place.mkdir()
            try:
                found = evaluate(spark, evolve(program, facts={}), as_files(spark, engine, place), SETTINGS)
            except NotOnSpark:
                continue
            programs += 1
            derived = {rule.head.relation for rule in program.rules}
            for relation, declared in program.relations.items():
                if relation in derived and not declared.choices:
                    waiting[f"{name} {relation}"] = (found[relation], kinds_of(declared))
                    expected[f"{name} {relation}"] = frozenset(engine.view(relation))
            if programs % _AT_ONCE == 0:
                print(f"{programs} programs", flush=True)
                different += compared(waiting, expected)
                waiting, expected = {}, {}
    different += compared(waiting, expected)
    print(f"{programs} programs, {different} relations differ", flush=True)
    return 1 if different else 0


def compared(frames: Mapping[str, tuple[DataFrame, Any]], expected: Mapping[str, frozenset[Row]]) -> int:
    rows = fetch(frames) or {}
    different = 0
    for name, wanted in expected.items():
        if frozenset(rows[name]) != wanted or len(rows[name]) != len(wanted):
            different += 1
            print(f"DIFFERENT {name}: {sorted(rows[name])} instead of {sorted(wanted)}", flush=True)
    return different


CLOSURE = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


def closure(spark: SparkSession, length: int, way: str) -> int:
    """A ring with spokes: as many rounds as it is long."""
    edges = spark.range(length).selectExpr("id AS x", f"(id + 1) % {length} AS y")

    def tell(unit: str, number: int, facts: int) -> None:
        print(f"round {number} {facts}", flush=True)

    found = evaluate(spark, compile_text(CLOSURE), {"edge": edges}, Settings(recursion=way, small=0), tell)
    path = found["path"]
    print("computed", flush=True)
    print(f"result {path.count()} {path.distinct().count()}", flush=True)
    print(f"sums {path.selectExpr('sum(c0)', 'sum(c1)', 'sum(c0 * c1)').first()[:]}", flush=True)  # type: ignore[index]
    return 0


def main(what: str, master: str, *arguments: str) -> int:
    conf = {"spark.driver.extraJavaOptions": QUICK_JAVA, "spark.executor.extraJavaOptions": QUICK_JAVA}
    spark = spark_session(master, app="everlog cluster test", memory="700m", conf=conf)
    print("started", flush=True)
    try:
        if what == "specs":
            for key, value in TINY.items():
                spark.conf.set(key, value)
            return specs(spark, Path(arguments[0]), list(arguments[1:]))
        return closure(spark, int(arguments[0]), arguments[1])
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
