"""Facts from and to Spark's sources: the same as in process, including errors."""

from __future__ import annotations

import gzip
import io
import json
import math
import random
import re
import sqlite3
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everlog.core.program import Column, Kind, Relation, Row
from everlog.core.program.values import NAN
from everlog.files import FactsError, read_facts, write_facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EDGE = Relation("edge", (Column("x", Kind.NUMBER), Column("y", Kind.NUMBER)))
MIXED = Relation(
    "mixed",
    (
        Column("n", Kind.NUMBER),
        Column("u", Kind.UNSIGNED),
        Column("f", Kind.FLOAT),
        Column("s", Kind.SYMBOL),
    ),
)
NULLARY = Relation("flag", ())
ROWS: list[Row] = [
    (0, 0, 0.0, ""),
    (-(2**63), 2**64 - 1, -1.5, "naïve"),
    (2**63 - 1, 2**63, 1e300, "\udcff\udcfe not UTF-8"),
    (7, 2**63 - 1, NAN, "a [bracket"),
    (7, 1, float("inf"), 'say "hi"'),
]


def loaded(spark: SparkSession, relation: Relation, params: Mapping[str, str], folder: Path) -> list[Row]:
    from everlog.spark.facts_in import load_facts
    from everlog.spark_backend.column_types import kinds_of, rows_of_frame
    from everlog.spark_backend.errors import clear_errors

    with clear_errors():
        return list(rows_of_frame(load_facts(spark, relation, params, str(folder)), kinds_of(relation)))


def stored(
    spark: SparkSession, relation: Relation, rows: list[Row], params: Mapping[str, str], folder: Path
) -> str:
    from everlog.spark.outputs import store_facts
    from everlog.spark_backend.column_types import frame_of_rows, kinds_of

    out = io.StringIO()
    store_facts(spark, relation, lambda: frame_of_rows(spark, rows, kinds_of(relation)), params, str(folder), out)
    return out.getvalue()


def same(left: list[Row], right: list[Row]) -> bool:
    """Equal as multisets; NaN is NaN."""
    return sorted(map(repr, left)) == sorted(map(repr, right))


TEXTS: list[tuple[Relation, dict[str, str], bytes]] = [
    (EDGE, {}, b"1\t2\n3\t4\n1\t2\n"),
    (EDGE, {}, b""),
    (EDGE, {}, b"1\t2\r\n 3\t+4"),
    (EDGE, {}, b"-5\t0007\textra\n6\t7\n"),
    (EDGE, {"delimiter": ",", "headers": "true"}, b"x,y\n1,2\n3,4\n"),
    (EDGE, {"delimiter": ", ", "columns": "2:0"}, b"1, a, 3\n4, b, 6\n"),
    (EDGE, {"delimiter": "::"}, b"1::2\n3::4\n"),
    (EDGE, {"rfc4180": "true"}, b'"1",2\n3,"4"\n'),
    (
        MIXED,
        {"encoding": "bytes"},
        b"1\t0x1f\t1e3\tplain\n-2\t18446744073709551615\t-nan\t\xff\xfe raw\n3\t0b11\t0x1p3\t\n",
    ),
    (EDGE, {}, b"\xef\xbb\xbf1\t2\n"),
    (EDGE, {"headers": "true"}, b"\xef\xbb\xbfY\tz\tX\n1\t2\t3\n"),
    (EDGE, {"headers": "auto"}, b"y\tx\n1\t2\n"),
    (EDGE, {"headers": "auto"}, b"1\t2\n"),
    (EDGE, {"rfc4180": "true", "headers": "true"}, b'\xef\xbb\xbf"y","z","x"\n1,2,3\n'),
    (MIXED, {"delimiter": ",", "headers": "true"}, b"s,f,u,n\na,1e20,2,3\n,0,0,0\n"),
    (MIXED, {"encoding": "latin-1", "headers": "true"}, b"s\tf\tu\tn\ncaf\xe9\t1\t2\t3\n"),
    (MIXED, {"encoding": "utf-16"}, "1\t2\t3\té\n".encode("utf-16")),
    (MIXED, {"rfc4180": "true", "null": "0"}, b'1,2,,\n,2,3,""\n'),
    (MIXED, {"null": "7"}, b"1\t2\t\t\n\t2\t3\ta\n"),
    (MIXED, {"delimiter": ","}, b"1,2,3,a[b,c]d\n4,5,-0.0,\xc3\xa9\n"),
    (MIXED, {"rfc4180": "true"}, b'1,2,3.5,"two\nlines, ""quoted"""\n'),
    (NULLARY, {}, b"()\n"),
    (NULLARY, {}, b""),
]


def test_delimited_text_means_the_same_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    from everlog.spark.facts_in import load_facts
    from everlog.spark_backend.column_types import fetch, kinds_of

    frames, expected = {}, {}
    for number, (relation, params, text) in enumerate(TEXTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / f"{relation.name}.facts").write_bytes(text)
        expected[str(number)] = read_facts(relation, params, folder)
        frames[str(number)] = (load_facts(spark, relation, params, str(folder)), kinds_of(relation))
    found = fetch(frames)
    assert found is not None
    for number, rows in expected.items():
        assert same(found[number], rows), TEXTS[int(number)]


@pytest.mark.parametrize(
    ("relation", "params", "text"),
    [
        (EDGE, {}, b"1\t2\n3\tx\n"),
        (EDGE, {}, b"1\t2\n3\n"),
        (EDGE, {}, b"1\t2\n\n"),
        (EDGE, {"headers": "true"}, b"x\ty\n1\t2\n5 \t2\n"),
        (EDGE, {}, b"1\t9223372036854775808\n"),
        (MIXED, {}, b"1\t-2\t1.0\ta\n"),
        (MIXED, {"rfc4180": "true"}, b'1,2,3.5,"open\n'),
        (MIXED, {"delimiter": ","}, b"1,2,3,a[b\n"),
        (MIXED, {}, b"1\t2\t9007199254740993\ta\n"),
        (MIXED, {}, b"1\t2\t1e400\ta\n"),
        (MIXED, {}, b"1\t2\t1e-400\ta\n"),
        (MIXED, {}, b"1\t2\t3\tok\n1\t2\t3\tcaf\xe9\n"),
        (MIXED, {"rfc4180": "true"}, b"1,2,3,\n"),
        (EDGE, {"headers": "true"}, b"x\tz\n1\t2\n"),
        (EDGE, {"headers": "true"}, b"x\ty\n1\t2\n1\t2\t3\n"),
        (EDGE, {"rfc4180": "true"}, b"x,y\n1,2\n"),
        (EDGE, {"delimiter": ","}, b"x,y\n1,2\n"),
        (EDGE, {"query": "SELECT 1"}, b""),
    ],
)
def test_a_mistake_in_a_file_is_reported_in_the_same_words(
    spark: SparkSession, tmp_path: Path, relation: Relation, params: dict[str, str], text: bytes
) -> None:
    (tmp_path / f"{relation.name}.facts").write_bytes(text)
    with pytest.raises(FactsError) as here:
        read_facts(relation, params, tmp_path)
    with pytest.raises(Exception) as there:  # noqa: PT011  # what is compared is the text
        loaded(spark, relation, params, tmp_path)
    assert str(there.value) == str(here.value)


def test_each_file_of_a_folder_has_its_own_header(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "a.facts").write_bytes(b"\xef\xbb\xbfx\ty\n1\t2\n")
    (tmp_path / "many" / "b.facts").write_text("y\tz\tx\n4\t0\t3\n")
    params = {"filename": "many", "headers": "true"}
    assert sorted(loaded(spark, EDGE, params, tmp_path)) == [(1, 2), (3, 4)]
    (tmp_path / "many" / "c.facts").write_text("z\tx\n4\t3\n")
    with pytest.raises(FactsError, match=r"c.facts:1: the header has the columns z, x, which do not fit"):
        loaded(spark, EDGE, params, tmp_path)


@pytest.mark.parametrize("way", ["parquet", "orc", "table"])
def test_columns_nulls_and_floats_mean_what_they_mean_in_process(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    named = Relation("named", (Column("a", Kind.NUMBER), Column("b", Kind.SYMBOL), Column("f", Kind.FLOAT)))
    frame = spark.sql(
        "SELECT CAST(n AS bigint) AS n, s, CAST(w AS bigint) AS w FROM"
        " VALUES (1, 'x', 9007199254740992), (2, NULL, NULL) AS t(n, s, w)"
    )
    table = f"named_{tmp_path.name.replace('-', '_')}"
    params = {"IO": way, "columns": "0:1:2", "null": "-5"}
    try:
        if way == "table":
            frame.write.saveAsTable(table)
            params["table"] = table
        else:
            frame.write.format(way).save(str(tmp_path / f"named.{way}"))
        assert sorted(loaded(spark, named, params, tmp_path)) == [(1, "x", 2.0**53), (2, "-5", -5.0)]
        if way == "parquet":
            assert sorted(read_facts(named, params, tmp_path)) == [(1, "x", 2.0**53), (2, "-5", -5.0)]
        other = Relation("named", (Column("f", Kind.FLOAT), Column("a", Kind.NUMBER)))
        swapped = {**params, "columns": "2:0"}
        assert sorted(loaded(spark, other, swapped, tmp_path)) == [(-5.0, 2), (2.0**53, 1)]
        with pytest.raises(Exception, match="has no column 7, counted from 0"):
            loaded(spark, other, {**params, "columns": "7:0"}, tmp_path)
        with pytest.raises(Exception, match=r"there is a null or no value.*set null=VALUE to replace it"):
            loaded(spark, other, {key: v for key, v in swapped.items() if key != "null"}, tmp_path)
        with pytest.raises(
            FactsError, match=f"IO={way} has no parameter `query` for reading; it takes IO, columns"
        ):
            loaded(spark, named, {**params, "query": "SELECT 1"}, tmp_path)
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {table}")


@pytest.mark.parametrize("type_", ["bigint", "decimal(20,0)"])
def test_an_integer_that_no_float_is_equal_to_is_an_error(spark: SparkSession, tmp_path: Path, type_: str) -> None:
    weight = Relation("weight", (Column("w", Kind.FLOAT),))
    good, bad = [2**53, -(2**63), 2**62, 0, -(2**53) - 2], [2**53 + 1, 2**63 - 1, -(2**53) - 1]
    for number, wholes in enumerate([good, *([value] for value in bad)]):
        path = tmp_path / str(number)
        spark.createDataFrame([(Decimal(value),) for value in wholes], "w decimal(20,0)").selectExpr(
            f"CAST(w AS {type_}) AS w"
        ).write.parquet(str(path / "weight.parquet"))
        if number == 0:
            assert sorted(loaded(spark, weight, {"IO": "parquet"}, path)) == sorted((float(v),) for v in good)
        else:
            with pytest.raises(Exception, match=f"{wholes[0]} is not an exact float"):
                loaded(spark, weight, {"IO": "parquet"}, path)


def test_a_symbol_that_begins_with_a_byte_order_mark_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    named = Relation("named", (Column("a", Kind.SYMBOL),))
    rows: list[Row] = [("\ufeff",), ("\ufeffa",)]
    write_facts(named, rows, {"filename": "named.facts"}, tmp_path, io.StringIO())
    assert sorted(loaded(spark, named, {}, tmp_path)) == rows
    assert read_facts(named, {}, tmp_path) == rows
    here = (tmp_path / "named.facts").read_bytes()
    stored(spark, named, rows, {"filename": "named.facts"}, tmp_path)
    assert (tmp_path / "named.facts").read_bytes() == here
    stored(spark, named, rows, {"filename": (tmp_path / "parts").as_uri()}, tmp_path)
    assert sorted(loaded(spark, named, {"filename": "parts"}, tmp_path)) == rows


def test_a_missing_file_is_an_error_unless_that_is_fine(spark: SparkSession, tmp_path: Path) -> None:
    from everlog.spark.facts_in import load_facts

    with pytest.raises(FactsError, match=r"cannot open fact file .*edge\.facts of relation edge"):
        load_facts(spark, EDGE, {}, str(tmp_path))
    assert load_facts(spark, EDGE, {}, str(tmp_path), missing_ok=True).count() == 0


def test_a_file_that_is_cut_among_tasks_keeps_its_header_and_its_errors(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Three splits or more: only the first skips the header; errors quote their line."""
    draw = random.Random(5)
    rows = [(draw.randrange(10**6), n) for n in range(60_000)]
    lines = ["x\ty", *(f"{x}\t{y}" for x, y in rows)]
    (tmp_path / "edge.facts").write_text("\n".join(lines) + "\n")
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(100_000))
    try:
        assert sorted(loaded(spark, EDGE, {"headers": "true"}, tmp_path)) == sorted(rows)
        (tmp_path / "edge.facts").write_text("\n".join([*lines, "oh\t1"]) + "\n")
        with pytest.raises(Exception, match=r"edge.facts: column 1 .* in the line 'oh\\t1'"):
            loaded(spark, EDGE, {"headers": "true"}, tmp_path)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


def test_gzip_folders_and_patterns_are_read(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "edge.facts.gz").write_bytes(gzip.compress(b"1\t2\n"))
    (tmp_path / "hidden.facts").write_bytes(gzip.compress(b"3\t4\n"))
    (tmp_path / "many").mkdir()
    for n in range(3):
        (tmp_path / "many" / f"{n}.facts").write_text(f"{n}\t{n}\n")
    assert loaded(spark, EDGE, {}, tmp_path) == [(1, 2)]
    assert loaded(spark, EDGE, {"filename": "hidden.facts"}, tmp_path) == [(3, 4)]
    assert sorted(loaded(spark, EDGE, {"filename": "many"}, tmp_path)) == [(0, 0), (1, 1), (2, 2)]
    assert sorted(loaded(spark, EDGE, {"filename": "many/[01].facts"}, tmp_path)) == [(0, 0), (1, 1)]
    there = {"filename": (tmp_path / "many").as_uri()}
    assert sorted(loaded(spark, EDGE, there, Path("nowhere"))) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize(
    "params", [{}, {"headers": "true"}, {"rfc4180": "true"}, {"delimiter": "%"}, {"compress": "true"}], ids=str
)
def test_a_delimited_output_is_byte_for_byte_the_same(
    spark: SparkSession, tmp_path: Path, params: dict[str, str]
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    for relation, rows in (
        (MIXED, ROWS),
        (EDGE, [(n % 97 - 50, n) for n in range(500)]),
        (EDGE, []),
        (NULLARY, [()]),
    ):
        write_facts(relation, rows, params, tmp_path / "here", io.StringIO())
        stored(spark, relation, rows, params, tmp_path / "there")
        name = f"{relation.name}.csv" + (".gz" if "compress" in params else "")
        unzip: Callable[[bytes], bytes] = gzip.decompress if "compress" in params else bytes
        assert unzip((tmp_path / "there" / name).read_bytes()) == unzip((tmp_path / "here" / name).read_bytes())
    assert not list((tmp_path / "there").glob(".everlog*"))


def test_a_place_with_a_scheme_gets_parts_that_sort(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(n % 7, n) for n in range(100)]
    stored(spark, EDGE, rows, {}, tmp_path.as_uri())  # type: ignore[arg-type]  # a folder may be a place
    parts = sorted((tmp_path / "edge.csv").glob("part-*"))
    text = "".join(part.read_text() for part in parts)
    assert text == "".join(f"{x}\t{y}\n" for x, y in sorted(rows))


@pytest.mark.parametrize("way", ["parquet", "orc", "jsonl", "table", "spark"])
def test_what_is_stored_is_loaded_again(spark: SparkSession, tmp_path: Path, way: str) -> None:
    params = {"IO": way}
    if way == "table":
        params["table"] = f"mixed_{tmp_path.name.replace('-', '_')}"
    if way == "spark":
        params |= {"format": "parquet", "filename": "own", "compression": "gzip"}
    try:
        stored(spark, MIXED, ROWS, params, tmp_path)
        stored(spark, MIXED, ROWS, params, tmp_path)  # replaces what is there
        assert same(loaded(spark, MIXED, params, tmp_path), ROWS)
    finally:
        if way == "table":
            spark.sql(f"DROP TABLE IF EXISTS {params['table']}")


def test_json_lines_of_others_are_read_by_name(spark: SparkSession, tmp_path: Path) -> None:
    objects = [{"y": 2, "x": 1, "more": "z"}, {"x": 3, "y": 4}]
    (tmp_path / "edge.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in objects))
    assert sorted(loaded(spark, EDGE, {"IO": "jsonl"}, tmp_path)) == [(1, 2), (3, 4)]
    (tmp_path / "edge.jsonl").write_text('{"x": 1, "y": "two"}')
    with pytest.raises(Exception, match=r"edge.jsonl:1: column 2 \(`y`:number\): 'two' is not a number"):
        loaded(spark, EDGE, {"IO": "jsonl"}, tmp_path)


JSON_LINES = ['{"x":1}{"x":2}', '{"x":1} junk', '{"x":1.5}', '{"x":"5"}', '{"x":7,"y":7}', '{"x":7,"y":{"k":1}}']


def test_json_lines_mean_what_they_mean_in_process(spark: SparkSession, tmp_path: Path) -> None:
    given = Relation("r", (Column("x", Kind.UNSIGNED), Column("y", Kind.SYMBOL), Column("f", Kind.FLOAT)))
    good: list[Row] = [(1, "é", math.inf), (2**64 - 1, "\n", -0.5), (0, "", NAN)]
    write_facts(given, good, {"IO": "jsonl"}, tmp_path, io.StringIO())
    assert same(loaded(spark, given, {"IO": "jsonl"}, tmp_path), good)
    here = (tmp_path / "r.jsonl").read_bytes()
    stored(spark, given, good, {"IO": "jsonl"}, tmp_path)
    assert (tmp_path / "r.jsonl").read_bytes() == here
    stored(spark, given, [(5, "more", 1.0)], {"IO": "jsonl", "mode": "append"}, tmp_path)
    assert same(read_facts(given, {"IO": "jsonl"}, tmp_path), [*good, (5, "more", 1.0)])
    for line in JSON_LINES:
        (tmp_path / "r.jsonl").write_text(f'[1, "a", 2]\n\n{line}\n')
        with pytest.raises(FactsError) as problem:
            read_facts(given, {"IO": "jsonl"}, tmp_path)
        with pytest.raises(Exception, match=re.escape(str(problem.value))):
            loaded(spark, given, {"IO": "jsonl"}, tmp_path)


def test_arrays_of_json_and_sqlite_are_as_in_process(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "edge.json").write_text('[[1, 2],\n {"x": 3, "y": 4}]')
    assert sorted(loaded(spark, EDGE, {"IO": "jsonfile"}, tmp_path)) == [(1, 2), (3, 4)]
    with sqlite3.connect(tmp_path / "edge.sqlite") as connection:
        connection.execute("CREATE TABLE edge (x, y)")
        connection.execute("INSERT INTO edge VALUES (5, 6)")
    assert loaded(spark, EDGE, {"IO": "sqlite"}, tmp_path) == [(5, 6)]
    assert "edge" in stored(spark, EDGE, [(1, 2)], {"IO": "stdout"}, tmp_path)
    stored(spark, EDGE, [(1, 2)], {"IO": "jsonfile", "filename": "out.json"}, tmp_path)
    assert json.loads((tmp_path / "out.json").read_text()) == [[1, 2]]


def test_a_database_by_jdbc(spark: SparkSession, tmp_path: Path) -> None:
    """Derby comes with Spark: a database with a driver that needs no download."""
    where = {"IO": "jdbc", "url": f"jdbc:derby:{tmp_path / 'db'};create=true"}
    where["driver"] = "org.apache.derby.jdbc.EmbeddedDriver"
    named = Relation("named", (Column("id", Kind.NUMBER), Column("who", Kind.SYMBOL), Column("w", Kind.FLOAT)))
    rows: list[Row] = [(1, "Ada", 1.5), (2, "Grace", -2.0)]
    stored(spark, named, rows, where, tmp_path)
    assert sorted(loaded(spark, named, where, tmp_path)) == rows
    asked = {**where, "query": 'SELECT "id" AS "x", "id" * 10 AS "y" FROM named WHERE "id" > 1'}
    assert loaded(spark, EDGE, asked, tmp_path) == [(2, 20)]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ("SELECT 1L AS x, CAST(NULL AS bigint) AS y", "column 2 .*there is a null or no value"),
        ("SELECT 1L AS x, 'a' AS y", "column 2 .*`string` is not a number"),
        ("SELECT 1L AS x, 1.5D AS y", "column 2 .*`double` is not a number"),
        ("SELECT 1L AS x, CAST(9223372036854775808 AS decimal(20,0)) AS y", "9223372036854775808 is out of range"),
        ("SELECT 1L AS x, 2L AS z", "has the columns x, z, which do not fit"),
        ("SELECT 1L AS x", "has the columns x, which do not fit"),
    ],
)
def test_columns_that_do_not_fit_are_an_error(
    spark: SparkSession, tmp_path: Path, frame: str, message: str
) -> None:
    from everlog.spark_backend.errors import SparkError

    spark.sql(frame).write.parquet(str(tmp_path / "edge.parquet"))
    with pytest.raises(SparkError, match=message):
        loaded(spark, EDGE, {"IO": "parquet"}, tmp_path)


def test_an_unknown_io_and_missing_parameters_are_reported_before_anything_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(FactsError, match="with IO='carrier-pigeon'; use arrow, duckdb, file, jdbc"):
        loaded(spark, EDGE, {"IO": "carrier-pigeon"}, tmp_path)
    with pytest.raises(FactsError, match="IO=jdbc needs the parameter `url`"):
        loaded(spark, EDGE, {"IO": "jdbc"}, tmp_path)
    with pytest.raises(FactsError, match="mode='sometimes': use"):
        stored(spark, EDGE, [], {"IO": "parquet", "mode": "sometimes"}, tmp_path)


def test_zstd_suffixes_and_rejects(spark: SparkSession, tmp_path: Path) -> None:
    stored(spark, EDGE, [(1, 2), (3, 4)], {"compress": "zstd"}, tmp_path)
    (tmp_path / "edge.csv.zst").rename(tmp_path / "edge.facts.zst")
    assert sorted(loaded(spark, EDGE, {}, tmp_path)) == [(1, 2), (3, 4)]
    stored(spark, EDGE, [(5, 6)], {"filename": "e.parquet"}, tmp_path)
    assert loaded(spark, EDGE, {"filename": "e.parquet"}, tmp_path) == [(5, 6)]
    assert read_facts(EDGE, {"filename": "e.parquet"}, tmp_path) == [(5, 6)]  # the folder that Spark wrote
    stored(spark, EDGE, [(7, 8)], {"IO": "duckdb"}, tmp_path)
    assert loaded(spark, EDGE, {"IO": "duckdb"}, tmp_path) == [(7, 8)]
    with pytest.raises(FactsError, match="rejects= is not for Spark"):
        loaded(spark, EDGE, {"rejects": "bad.jsonl"}, tmp_path)
