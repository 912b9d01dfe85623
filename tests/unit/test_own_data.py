"""Tables of others as relations, with inferred names, columns and kinds."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import everlog
from everlog import Database
from everlog.cli import main
from everlog.core.program.fact_rows import FactError
from everlog.tables.inferred import infer

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

NOON = dt.datetime(2026, 1, 2, 12, 0, 0)
COLUMNS = {
    "id": [1, 2],
    "name": ["ann", None],
    "size": [1.5, 2.0],
    "on": [dt.date(2026, 1, 2), dt.date(2025, 12, 31)],
    "at": [NOON, None],
    "price": [Decimal("12.30"), Decimal("1.05")],
    "whole": [Decimal("3"), Decimal("4")],
    "ok": [True, False],
    "age": [7, None],
}
DECLARED = "t(id:number, name:symbol, size:float, on:date, at:timestamp, price:float, whole:number, ok:boolean, age:float)"


@dataclass
class Person:
    name: str
    age: int


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "make",
    [
        lambda table: COLUMNS,
        lambda table: table,
        lambda table: table.to_pandas(),
        lambda table: pl.from_arrow(table),
        lambda found: duckdb.sql("SELECT * FROM found"),
        lambda table: table.to_pylist(),
    ],
    ids=["dict", "arrow", "pandas", "polars", "duckdb", "dicts"],
)
def test_every_library_gives_the_same_relation(make: Callable[[Any], object]) -> None:
    db = everlog.over(t=make(pa.table(COLUMNS)))
    assert str(db.relations["t"]) == DECLARED
    first, second = db.view("t")
    assert first == (1, "ann", 1.5, "2026-01-02", "2026-01-02T12:00:00", 12.3, 3, 1, 7.0)
    assert second[:-1] == (2, "", 2.0, "2025-12-31", "", 1.05, 4, 0)
    assert second[-1] != second[-1]
    assert db.query('t(i, _, _, on, _, _, _, _, _), on < "2026-01-01"') == [(2, "2025-12-31")]


def test_nulls_are_told() -> None:
    assert infer("t", COLUMNS).notes == (
        't.name: 1 null: the empty symbol ""',
        't.at: 1 null: the empty symbol ""',
        "t.age: 1 null: nan, so that the column is a float",
    )
    assert infer("my table", {"a b": [1, None]}).notes[0].startswith("my_table.a_b: 1 null")
    assert infer("t", {"x": ["", None]}).notes == ('t.x: 1 null: the empty symbol "", as are its empty texts',)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([1, "a"], "column `x` has values of int, str"),
        ([2**70], "does not fit 64 bits"),
        ([Decimal("0.12345678901234567890123")], "no float prints as"),
        ([[1], [2]], "has values of list"),
    ],
)
def test_what_has_no_meaning_is_an_error(values: list[Any], told: str) -> None:
    with pytest.raises(FactError) as caught:
        everlog.over(t={"x": values})
    assert told in str(caught.value)


def test_timestamps_compare_as_they_should() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    moments = [NOON.replace(tzinfo=zone), NOON.replace(tzinfo=dt.UTC, microsecond=5)]
    assert everlog.over(t={"at": moments}).view("t") == [
        ("2026-01-02T10:00:00.000000",),
        ("2026-01-02T12:00:00.000005",),
    ]


def test_relations_are_added_to_a_database() -> None:
    db = Database.from_text(".type date <: symbol  .decl start(d:date)")
    assert repr(db.relation("person", [Person("ann", 3)])) == "<person(name:symbol, age:number): 1 fact>"
    db.relation("day", {"d": [dt.date(2026, 1, 2)], "min": [1]})
    assert str(db.relations["day"]) == "day(d:date, min_:number)"
    db.add_rule(".decl both(x:symbol, d:date)  both(x, d) :- person(x, _), day(d, _).")
    assert db.query("both(x, d)") == [("ann", "2026-01-02")]
    with pytest.raises(everlog.DatalogError, match="declared twice"):
        db.relation("person", [Person("bob", 4)])


# ── files ────────────────────────────────────────────────────────────────────────────────────


def test_files_of_every_kind_open(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table(COLUMNS)
    (folder / "people.csv").write_text("name;age;code\nann;3;007\nbob;;1\n")
    (folder / "edge.facts").write_text("1\t2\n")
    (folder / "log.jsonl").write_text('{"at": 1, "what": "x"}\n{"at": 2, "what": null}\n')
    __import__("pyarrow.parquet").parquet.write_table(table, folder / "sales.parquet")
    with sqlite3.connect(folder / "shop.sqlite") as connection:
        connection.execute('CREATE TABLE "my orders" (id INTEGER, who TEXT)')
        connection.execute("INSERT INTO \"my orders\" VALUES (1, 'ann')")
    connection.close()
    with duckdb.connect(str(folder / "ware.duckdb")) as warehouse:
        warehouse.execute("CREATE TABLE stock AS SELECT 1 AS item, 2.5 AS price")
    names = ["people.csv", "edge.facts", "log.jsonl", "sales.parquet", "shop.sqlite", "ware.duckdb"]
    assert main(["open", *names, "-c", 'people(x, _, "007")?']) == 0
    told = capsys.readouterr()
    assert told.out.split("\n")[:6] == [
        "people(name:symbol, age:float, code:symbol): 2 facts",
        "edge(c1:number, c2:number): 1 fact",
        "log(at:number, what:symbol): 2 facts",
        DECLARED.replace("t(", "sales(", 1) + ": 2 facts",
        "my_orders(id:number, who:symbol): 1 fact",
        "stock(item:number, price:float): 1 fact",
    ]
    assert told.out.endswith("x\n---\nann\n(1 row)\n")
    assert "people.age: 1 null: nan" in told.err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({}, "cannot open people.csv: there is no such file"),
        ({"people.csv": ""}, "people.csv is empty"),
        ({"people.csv": "a,b\n1\n"}, "people.csv:2: 1 field, but 2 columns"),
        ({"people.csv": "a,b\n"}, ""),
    ],
)
def test_files_that_cannot_be_opened_say_why(
    folder: Path, capsys: pytest.CaptureFixture[str], content: dict[str, str], told: str
) -> None:
    for name, text in content.items():
        (folder / name).write_text(text)
    status = main(["open", "people.csv", "-c", ".count"])
    captured = capsys.readouterr()
    assert (status == 0) == (not told)
    assert told in captured.err


def test_open_still_opens_databases(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Database.open(folder / "own.sqlite", text=".decl n(x:number)  n(1).").close()
    assert main(["open", "own.sqlite", "-c", ".count n"]) == 0
    assert capsys.readouterr().out.endswith("n: 1\n")
    (folder / "n.csv").write_text("x\n1\n")
    assert main(["open", "n.csv", "-c", ".open n.csv"]) == 1
    assert "a relation `n` is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "declared", "facts"),
    [
        ("size,size,size\n1,2,3\n", "t(size:number, size_2:number, size_3:number)", [(1, 2, 3)]),
        ("a 2,a,a\n1,2,3\n", "t(a_2_1:number, a_2:number, a_3:number)", [(1, 2, 3)]),
        ("id\n99999999999999999999\n1\n", "t(id:symbol)", [("1",), ("99999999999999999999",)]),
        ("id\n18446744073709551615\n1\n", "t(id:unsigned)", [(1,), (2**64 - 1,)]),
        ("id,x\n9007199254740993,1\n,2\n", "t(id:symbol, x:number)", [("", 2), ("9007199254740993", 1)]),
        ("x\n9007199254740993\n0.5\n", "t(x:symbol)", [("0.5",), ("9007199254740993",)]),
        ("x\n007\n-5\n", "t(x:symbol)", [("-5",), ("007",)]),
        ("x\n-9223372036854775809\n", "t(x:symbol)", [("-9223372036854775809",)]),
    ],
)
def test_no_column_and_no_digit_of_a_file_is_lost(
    folder: Path, content: str, declared: str, facts: list[tuple[Any, ...]]
) -> None:
    from everlog.tables.own_files import add_tables

    (folder / "t.csv").write_text(content)
    db = Database.from_text("")
    (found,) = add_tables(db, [folder / "t.csv"])
    assert str(found.relation) == declared
    assert db.view("t") == facts


def test_repeated_rows_are_told_and_count_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t.csv").write_text("x,y\n1,2\n1,2\n3,4\n")
    assert main(["open", "t.csv", "-c", ".count t"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("t(x:number, y:number): 2 facts\n")
    assert "t: 1 row repeated; a fact counts once" in told.err


def test_an_integer_that_no_float_is_is_an_error_beside_nulls() -> None:
    with pytest.raises(FactError, match="no float is 9007199254740993"):
        everlog.over(t={"x": [2**53 + 1, None]})
    with pytest.raises(FactError, match="no float is 9007199254740993"):
        everlog.over(t={"x": [2**53 + 1, 0.5]})
    assert everlog.over(t={"x": [2**53, None]}).size("t") == 2


@pytest.mark.parametrize(
    ("name", "told"),
    [("t.xlsx", "save it as .csv"), ("prog.dl", "`.load prog.dl` loads it"), ("t.json", ".jsonl")],
)
def test_files_of_other_kinds_do_not_become_databases(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, told: str
) -> None:
    assert main(["open", name, "-c", ".tables"]) == 1
    assert told in capsys.readouterr().err
    assert not (folder / name).exists()


def test_a_file_that_is_not_utf8_says_what_to_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t.csv").write_bytes(b"a\xff,b\n1,2\n")
    assert main(["open", "t.csv"]) == 1
    assert "t.csv: it is not UTF-8, byte 2; save it as UTF-8" in capsys.readouterr().err
