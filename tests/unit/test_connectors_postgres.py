"""Facts in tables of a real PostgreSQL server, in and out by COPY."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fact_rows import TEXT_SYMBOL, relation, relations_with_rows, types_of
from hypothesis import given, settings
from postgres import missing, server

from everlog import FactsError
from everlog.cli import main
from everlog.core.program import Column, Kind, Relation, Row
from everlog.core.program.values import MASK
from everlog.files.connect import read_facts, write_facts
from everlog.files.text_values import sorted_rows

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))
N, U, F, S = Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL
EDGE = relation(N, N)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server() as target:
        parts = dict(part.split("=", 1) for part in target.split())
        yield f"postgresql://postgres@/postgres?host={parts['host']}"


@pytest.fixture
def connection(url: str) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        yield connection


@settings(max_examples=40)
@given(case=relations_with_rows(TEXT_SYMBOL, least=0))
def test_what_is_written_is_read_back(url: str, case: tuple[Relation, list[Row]]) -> None:
    import psycopg

    of, rows = case
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS edge")
    write_facts(of, rows, url)
    back = read_facts(of, url)
    assert sorted_rows(of, back) == sorted_rows(of, rows)
    assert all([type(value) for value in row] == types_of(of) for row in back)


def test_a_table_keeps_what_others_made_of_it(url: str, connection: Any) -> None:
    """Overwriting empties and fills the table: indexes, views and other columns stay."""
    connection.execute(
        "CREATE TABLE edge (y int NOT NULL, note text DEFAULT 'new', x int PRIMARY KEY);"
        "CREATE VIEW big AS SELECT x FROM edge WHERE x > 1; INSERT INTO edge VALUES (7, 'old', 7)"
    )
    write_facts(EDGE, [(1, 2), (3, 4)], url)
    assert connection.execute("SELECT x, y, note FROM edge ORDER BY x").fetchall() == [
        (1, 2, "new"),
        (3, 4, "new"),
    ]
    write_facts(EDGE, [(5, 6)], url, mode="append")
    assert connection.execute("SELECT x FROM big ORDER BY x").fetchall() == [(3,), (5,)]
    with pytest.raises(FactsError, match="duplicate key value"):
        write_facts(EDGE, [(9, 9), (5, 6)], url, mode="append")
    with pytest.raises(FactsError, match="out of range"):
        write_facts(EDGE, [(8, 8), (2**40, 1)], url)
    assert read_facts(EDGE, url) == [(1, 2), (3, 4), (5, 6)], "nothing of a failed write is left"
    write_facts(EDGE, [(0, 0)], url, mode="ignore")
    with pytest.raises(FactsError, match="a table edge already exists"):
        write_facts(EDGE, [(0, 0)], url, mode="errorifexists")
    assert len(read_facts(EDGE, url)) == 3


def test_schemas_queries_and_names(url: str, connection: Any) -> None:
    connection.execute(
        'CREATE SCHEMA shop; CREATE TABLE shop."Orders" (x int, y int); INSERT INTO shop."Orders" VALUES (1, 2)'
    )
    assert read_facts(EDGE, url, dbtable="shop.Orders") == [(1, 2)]
    assert read_facts(EDGE, url, query='SELECT x + 1 AS x, y FROM shop."Orders" WHERE y % 2 = 0;') == [(2, 2)]
    assert read_facts(EDGE, url, dbtable="(SELECT 5 AS x, 6 AS y) AS two") == [(5, 6)]
    assert read_facts(EDGE, f"jdbc:{url}", dbtable="shop.Orders", user="postgres") == [(1, 2)]
    dotted = Relation("graph.edge", EDGE.columns)
    write_facts(dotted, [(3, 4)], url)
    assert connection.execute('SELECT * FROM "graph.edge"').fetchall() == [(3, 4)]
    assert read_facts(dotted, url) == [(3, 4)]
    with pytest.raises(FactsError, match='relation "nothing" does not exist'):
        read_facts(EDGE, url, table="nothing")


@pytest.mark.parametrize(
    ("declared", "kind", "what"),
    [
        ("text", N, "the type `text` of `x` is not a number"),
        ("numeric(10,2)", N, "the type `numeric(10,2)` of `x` is not a number"),
        ("date", S, "the type `date` of `x` is not a symbol"),
        ("bigint", S, "the type `int8` of `x` is not a symbol"),
        ("boolean", N, "the type `bool` of `x` is not a number"),
        ("double precision", U, "is not an unsigned"),
        ("int[]", F, "is not a float"),
    ],
)
def test_a_type_that_does_not_fit_is_reported_before_anything_is_read(
    url: str, connection: Any, declared: str, kind: Kind, what: str
) -> None:
    connection.execute(f"CREATE TABLE edge (x {declared})")
    for attempt in (lambda: read_facts(relation(kind), url), lambda: write_facts(relation(kind), [], url)):
        with pytest.raises(FactsError) as caught:
            attempt()
        assert str(caught.value) == f"table edge: column 1 (`x`:{kind}): {what}" or what in str(caught.value)


def test_types_that_fit_are_taken(url: str, connection: Any) -> None:
    connection.execute(
        "CREATE TABLE edge (x smallint, y numeric, z real, u varchar(5), v bytea, w numeric(5,1));"
        rf"INSERT INTO edge VALUES (-3, {MASK}, 'NaN', 'ä', '\xff61', 2.5)"
    )
    ((x, y, z, u, v, w),) = read_facts(relation(N, U, F, S, S, F), url)
    assert (x, y, u, v, w) == (-3, MASK, "ä", "\udcffa", 2.5)
    assert z != z


def test_a_value_that_does_not_fit_is_reported_with_its_row(url: str, connection: Any, tmp_path: Path) -> None:
    connection.execute(
        "CREATE TABLE edge (x numeric, y text); INSERT INTO edge VALUES (1, 'a'), (1.5, 'b'), (2, NULL)"
    )
    of = relation(N, S)
    with pytest.raises(FactsError) as caught:
        read_facts(of, url)
    assert str(caught.value) == "table edge: row 2: column 1 (`x`:number): Decimal('1.5') is not a number"
    assert read_facts(of, url, rejects=tmp_path / "bad.jsonl") == [(1, "a")]
    bad = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [(entry["row"], entry["values"]) for entry in bad] == [(2, ["1.5", "b"]), (3, ["2", None])]


@pytest.mark.parametrize("symbol", ["a\0b", "\udcff"])
def test_a_symbol_that_cannot_be_stored_is_reported_and_nothing_is_written(
    url: str, connection: Any, symbol: str
) -> None:
    write_facts(relation(S), [("old",)], url)
    with pytest.raises(FactsError, match="relation edge: PostgreSQL cannot store the symbol"):
        write_facts(relation(S), [("new",), (symbol,)], url)
    assert read_facts(relation(S), url) == [("old",)]


def test_columns_that_differ_only_in_case_come_back(url: str, connection: Any) -> None:
    both = Relation("edge", (Column("x", N), Column("X", N)))
    write_facts(both, [(1, 2)], url)
    assert read_facts(both, url) == [(1, 2)]


def test_a_server_that_is_not_there_is_reported_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(FactsError) as caught:
        read_facts(EDGE, f"postgresql://ada:secret@/shop?host={tmp_path}")
    assert "secret" not in str(caught.value)
    assert "ada:***@" in str(caught.value)


def test_a_program_reads_and_writes_tables(
    url: str, connection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    connection.execute("CREATE TABLE links (a bigint, b bigint); INSERT INTO links VALUES (1, 2), (2, 3)")
    Path("p.dl").write_text(
        f'.decl edge(x:number, y:number)\n.input edge(IO=postgres, url="{url}", dbtable="links")\n'
        f'.decl path(x:number, y:number)\n.output path(url="{url}")\n'
        "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z)."
    )
    assert main(["run", "p.dl"]) == 0
    assert connection.execute("SELECT * FROM path ORDER BY 1, 2").fetchall() == [(1, 2), (1, 3), (2, 3)]
