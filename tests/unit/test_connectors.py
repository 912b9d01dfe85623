"""Facts in files and databases of other programs: round trips, and errors."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import zstandard
from fact_rows import ANY_SYMBOL, PLAIN_SYMBOL, relation, relations_with_rows, types_of
from hypothesis import given, settings
from hypothesis import strategies as st

from everlog import Database, FactError, FactsError
from everlog.cli import main
from everlog.core.program import Column, Kind, Relation, Row
from everlog.core.program.values import MASK, NAN
from everlog.dsl.checks.directives import PARAMETERS
from everlog.files import KNOWN_PARAMETERS
from everlog.files.connect import read_facts, write_facts
from everlog.files.formats import FORMATS, format_of
from everlog.files.text_values import sorted_rows
from everlog.files.typed.typed_values import typed_value
from everlog.files.zipped import zipped

N, U, F, S = Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL
EDGE = relation(N, N)
BINARY = ("edge.parquet", "edge.arrow", "edge.duckdb", "edge.sqlite")
TYPED = ("edge.parquet", "edge.arrow", "edge.duckdb")

# ── round trips ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name",
    ["e.csv", "e.csv.gz", "e.csv.zst", "e.json", "e.json.zst", "e.jsonl", "e.jsonl.gz", "e.db", *BINARY],
)
@settings(max_examples=25)
@given(case=relations_with_rows(ANY_SYMBOL, least=0))
def test_what_is_written_is_read_back(name: str, case: tuple[Relation, list[Row]]) -> None:
    of, rows = case
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_facts(of, rows, path)
        back = read_facts(of, path, **({"encoding": "bytes"} if ".csv" in name else {}))
        assert os.listdir(folder) == [name]
    assert back == sorted_rows(of, rows)
    assert all([type(value) for value in row] == types_of(of) for row in back)


@pytest.mark.parametrize("name", ["e.tsv", "e.facts.gz", "e.txt.zst"])
@settings(max_examples=25)
@given(case=relations_with_rows(PLAIN_SYMBOL))
def test_what_is_written_with_tabs_is_read_back(name: str, case: tuple[Relation, list[Row]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_facts(*case, Path(folder) / name)
        assert read_facts(case[0], Path(folder) / name, encoding="bytes") == sorted_rows(*case)


@pytest.mark.parametrize(("name", "suffix"), [("jsonl", "list"), ("jsonl", "object")])
@settings(max_examples=25)
@given(case=relations_with_rows(ANY_SYMBOL, least=0))
def test_json_lines_have_objects_or_arrays(name: str, suffix: str, case: tuple[Relation, list[Row]]) -> None:
    of, rows = case
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "e.jsonl"
        write_facts(of, rows, path, format=suffix)
        lines = path.read_bytes().splitlines() if of.arity == 0 or not any(c.kind is S for c in of.columns) else []
        assert all(line.startswith(b"[" if suffix == "list" else b"{") for line in lines)
        assert read_facts(of, path) == sorted_rows(of, rows)


# ── which format ─────────────────────────────────────────────────────────────────────────────


def test_a_name_stands_for_its_format() -> None:
    names = {
        "e.facts": "file",
        "e.csv": "file",
        "e.json": "file",  # in a directive: Soufflé has tabs in any file that is named
        "e": "file",
        "e.JSONL": "jsonl",
        "e.ndjson.zst": "jsonl",
        "e.parquet": "parquet",
        "e.feather": "arrow",
        "e.sqlite": "sqlite",
        "e.duckdb": "duckdb",
    }
    assert {name: format_of({"filename": name}) for name in names} == names
    assert format_of({"filename": "e.parquet", "IO": "file"}) == "file"
    assert format_of({"url": "postgres://host/db"}) == "postgres"


def test_the_language_knows_every_parameter() -> None:
    assert KNOWN_PARAMETERS <= PARAMETERS


def test_a_format_has_one_entry_that_reads_or_writes() -> None:
    assert all(of.read or of.write for of in FORMATS.values())
    suffixes = [suffix for of in FORMATS.values() for suffix in of.suffixes]
    assert len(suffixes) == len(set(suffixes))


def test_a_tab_in_a_csv_of_one_column_is_no_guess(tmp_path: Path) -> None:
    """Found by fuzzing: the text after the tab was lost."""
    (tmp_path / "word.csv").write_bytes(b"a\tb\nc\n")
    db = Database.from_text(".decl word(x:symbol)")
    with pytest.raises(FactsError, match="the line has a tab and no commas; set delimiter="):
        db.load("word", tmp_path / "word.csv")
    db.load("word", tmp_path / "word.csv", rfc4180=True, headers=False)
    assert list(db.rows("word")) == [("a\tb",), ("c",)]


def test_csv_means_commas_and_quotes_from_python(tmp_path: Path) -> None:
    """A first line with column names is a header; tabs are detected."""
    (tmp_path / "e.csv").write_text('x,y\n1,"a, ""b"""\n')
    assert read_facts(relation(N, S), tmp_path / "e.csv") == [(1, 'a, "b"')]
    for text in ("x;y\n1;a\n", "1;a\n"):
        (tmp_path / "e.csv").write_text(text)
        assert read_facts(relation(N, S), tmp_path / "e.csv", delimiter=";") == [(1, "a")]
    for text in ("x\ty\n1\ta\n", "1\ta\n"):
        (tmp_path / "e.csv.zst").write_bytes(zstandard.compress(text.encode()))
        assert read_facts(relation(N, S), tmp_path / "e.csv.zst") == [(1, "a")]
    write_facts(relation(N, S), [(1, "a")], tmp_path / "e.csv")
    assert (tmp_path / "e.csv").read_text() == 'x,y\n1,"a"\n'
    (tmp_path / "e.csv").write_text("1;a\n")
    assert read_facts(relation(N, S), tmp_path / "e.csv", delimiter=";") == [(1, "a")]
    assert read_facts(relation(S, N), str(tmp_path / "e.csv"), delimiter=";", columns=[1, 0]) == [("a", 1)]


@pytest.mark.parametrize("name", ["e.csv", "e.facts", "e.json", "e.jsonl", *BINARY])
def test_a_float_is_never_minus_zero(tmp_path: Path, name: str) -> None:
    of = relation(F, F)
    write_facts(of, [(-0.0, 1.5)], tmp_path / name)
    assert repr(read_facts(of, tmp_path / name)) == "[(0.0, 1.5)]"


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_the_first_line_of_a_csv_decides_without_parameters(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"e.csv{suffix}"
    for text in ("1\t2\n", "1,2\n", "x,y\r\n1,2\r\n", '"x","y"\n1,2\n', "x\ty\n1\t2\n"):
        path.write_bytes(zipped(text.encode(), {"": None, ".gz": "gzip", ".zst": "zstd"}[suffix], ""))
        assert read_facts(EDGE, path) == [(1, 2)]
    of = relation(S, S)
    for headers in (True, False):
        write_facts(of, [("x", "y")], path, headers=headers)
        assert read_facts(of, path, headers=headers) == [("x", "y")]
        write_facts(relation(S), [("a\tb",)], path, headers=headers)
        assert read_facts(relation(S), path, headers=headers) == [("a\tb",)]
    with pytest.raises(FactsError, match=r"may be a header, but lacks some names of .x:symbol.: set headers=true"):
        read_facts(relation(S), path)
    write_facts(of, [("x", "y")], path)
    assert read_facts(of, path) == [("x", "y")]
    path.write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(FactsError, match="begins like a gzip file but is not one"):
        read_facts(EDGE, path)


def test_the_wrong_delimiter_is_reported(tmp_path: Path) -> None:
    (tmp_path / "e.tsv").write_text("1,2\n")
    with pytest.raises(FactsError, match=r"e.tsv:1: column 2 .* is missing from '1,2': .* separated by '\\t'"):
        read_facts(EDGE, tmp_path / "e.tsv")


def test_a_name_that_says_nothing_needs_a_parameter(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match=r"does not determine a format: use \.csv, .*\.parquet"):
        write_facts(EDGE, [], tmp_path / "edges")
    write_facts(EDGE, [(1, 2)], tmp_path / "edges", IO="parquet")
    assert read_facts(EDGE, tmp_path / "edges", IO="parquet") == [(1, 2)]


def test_an_unknown_parameter_is_refused_from_python(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match="unknown parameter `header`; did you mean `headers`"):
        read_facts(EDGE, tmp_path / "e.csv", header=True)
    with pytest.raises(FactsError, match="is not a value of a parameter"):
        read_facts(EDGE, tmp_path / "e.csv", headers=1.5)  # type: ignore[arg-type]


def test_a_directive_takes_its_format_from_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(
        '.decl e(x:number, y:symbol)\n.input e(filename="in.parquet")\n'
        '.decl r(y:symbol, x:number)\n.output r(filename="out.jsonl.gz")\n.output r(IO=arrow)\n'
        "r(y, x) :- e(x, y)."
    )
    write_facts(relation(N, S), [(1, "a"), (2, "b")], "in.parquet")
    assert main(["run", "p.dl"]) == 0
    lines = gzip.decompress(Path("out.jsonl.gz").read_bytes()).decode().splitlines()
    assert [json.loads(line) for line in lines] == [{"y": "a", "x": 1}, {"y": "b", "x": 2}]
    assert pa.feather.read_table("r.arrow").to_pydict() == {"y": ["a", "b"], "x": [1, 2]}
    assert main(["run", "p.dl", "-D-"]) == 0  # what is no text goes to its file


# ── compressed ───────────────────────────────────────────────────────────────────────────────


def test_zstd_is_known_by_its_beginning_and_found_by_its_suffix(tmp_path: Path) -> None:
    frames = zstandard.compress(b"1\t2\n") + zstandard.compress(b"3\t4\n")
    (tmp_path / "e.facts").write_bytes(frames)
    assert read_facts(EDGE, tmp_path / "e.facts") == [(1, 2), (3, 4)]
    (tmp_path / "e.facts").rename(tmp_path / "e.facts.zst")
    assert read_facts(EDGE, tmp_path / "e.facts") == [(1, 2), (3, 4)]


@pytest.mark.parametrize("data", [zstandard.compress(b"1\t2\n" * 100)[:-5], b"\x28\xb5\x2f\xfdxx"])
def test_a_broken_zstd_file_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "e.facts").write_bytes(data)
    with pytest.raises(FactsError, match="begins like a zstd file but is not one"):
        read_facts(EDGE, tmp_path / "e.facts")


def test_compression_is_asked_for_by_parameter_or_name(tmp_path: Path) -> None:
    for params, magic in [
        ({"compress": True}, b"\x1f\x8b"),
        ({"compress": "zstd"}, b"\x28\xb5"),
        ({"compression": "gzip"}, b"\x1f\x8b"),
        ({"compress": False}, b"1\t"),
    ]:
        write_facts(EDGE, [(1, 2)], tmp_path / "e.txt", **params)
        assert (tmp_path / "e.txt").read_bytes()[:2] == magic
    with pytest.raises(FactsError, match="cannot compress with 'lz4'; use"):
        write_facts(EDGE, [(1, 2)], tmp_path / "e.txt", compress="lz4")


def test_what_is_not_installed_is_reported_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package, name, extra in [
        ("zstandard", "e.csv.zst", "zstd"),
        ("pyarrow", "e.parquet", "arrow"),
        ("pyarrow", "e.arrow", "arrow"),
        ("duckdb", "e.duckdb", "sql"),
    ]:
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            with pytest.raises(FactsError, match=rf"{package}: pip install 'everlog\[{extra}\]'"):
                write_facts(EDGE, [(1, 2)], tmp_path / name)
        assert list(tmp_path.iterdir()) == []


# ── schemas ──────────────────────────────────────────────────────────────────────────────────


def stored(folder: Path, name: str, table: pa.Table) -> Path:
    """A table of Arrow as some other program would have written it."""
    path = folder / name
    if name.endswith(".parquet"):
        pq.write_table(table, path)
    elif name.endswith(".arrow"):
        pa.feather.write_feather(table, str(path))
    else:
        path.unlink(missing_ok=True)
        with duckdb.connect(str(path)) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE edge AS SELECT * FROM given")
    return path


@pytest.mark.parametrize("name", TYPED)
def test_columns_are_found_by_name_in_any_case_else_by_position(tmp_path: Path, name: str) -> None:
    path = stored(tmp_path, name, pa.table({"Y": ["a"], "other": [None], "X": [1]}))
    assert read_facts(relation(N, S), path) == [(1, "a")]
    path = stored(tmp_path, name, pa.table({"a": [1], "b": ["a"]}))
    assert read_facts(relation(N, S), path) == [(1, "a")]
    assert read_facts(relation(S, N), path, columns=[1, 0]) == [("a", 1)]
    with pytest.raises(FactsError, match="there is no column 7"):
        read_facts(relation(S, N), path, columns=[1, 7])
    path = stored(tmp_path, name, pa.table({"x": [1], "b": ["a"]}))
    with pytest.raises(FactsError, match=r"has the columns x, b, which do not fit edge\(x:number, y:symbol\)"):
        read_facts(relation(N, S), path)


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize(
    ("column", "kind", "what"),
    [
        (pa.array(["a"]), N, "type `string` of `x` is not a number"),
        (pa.array([1.5]), N, "is not a number"),
        (pa.array([1]), S, "type `int64` of `x` is not a symbol"),
        (pa.array([True]), N, "type `bool` of `x` is not a number"),
        (pa.array([0], pa.date32()), S, "type `date32[day]` of `x` is not a symbol"),
        (pa.array([[1]]), U, "of `x` is not an unsigned"),
        (pa.array(["1.5"]), F, "type `string` of `x` is not a float"),
    ],
)
def test_a_type_that_does_not_fit_is_reported_before_anything_is_read(
    tmp_path: Path, name: str, column: pa.Array, kind: Kind, what: str
) -> None:
    path = stored(tmp_path, name, pa.table({"x": column}))
    with pytest.raises(FactsError) as caught:
        read_facts(relation(kind), path, rejects=tmp_path / "bad.jsonl")
    assert str(caught.value).startswith(str(path))
    assert what in str(caught.value)
    assert not (tmp_path / "bad.jsonl").exists()


@pytest.mark.parametrize("name", TYPED)
def test_types_that_fit_are_taken(tmp_path: Path, name: str) -> None:
    from decimal import Decimal

    table = pa.table(
        {
            "x": pa.array([-3], pa.int8()),
            "y": pa.array([Decimal(MASK)], pa.decimal128(20, 0)),
            "z": pa.array([Decimal("2.5")], pa.decimal128(5, 1)),
            "u": pa.array(["a"]).dictionary_encode(),
            "v": pa.array([b"\xff"]),
            "w": pa.array([0.5], pa.float32()),
        }
    )
    path = stored(tmp_path, name, table)
    assert read_facts(relation(N, U, F, S, S, F), path) == [(-3, MASK, 2.5, "a", "\udcff", 0.5)]


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize(
    ("values", "type_", "kind", "what"),
    [
        ([1, None], pa.int64(), N, "null is not a number; set null=VALUE to replace it"),
        (["a", None], pa.string(), S, "null is not a symbol; set null=VALUE to replace it"),
        ([1.0, None], pa.float64(), F, "null is not a float; set null=VALUE to replace it"),
        ([1, 2**63], pa.uint64(), N, "9223372036854775808 is out of range for a 64-bit number"),
        ([1, -1], pa.int64(), U, "-1 is out of range for a 64-bit unsigned"),
    ],
)
def test_a_value_that_does_not_fit_is_reported_with_its_row(
    tmp_path: Path, name: str, values: list[object], type_: pa.DataType, kind: Kind, what: str
) -> None:
    path = stored(tmp_path, name, pa.table({"x": pa.array(values, type_)}))
    with pytest.raises(FactsError) as caught:
        read_facts(relation(kind), path)
    table = ": table edge" if name.endswith("duckdb") else ""
    assert str(caught.value) == f"{path}{table}: row 2: column 1 (`x`:{kind}): {what}"
    assert len(read_facts(relation(kind), path, rejects=tmp_path / "bad.jsonl")) == 1
    (line,) = (tmp_path / "bad.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "source": f"{path}{table}",
        "row": 2,
        "reason": f"column 1 (`x`:{kind}): {what}",
        "values": [values[1]],
    }


@pytest.mark.parametrize("name", TYPED)
def test_a_null_becomes_what_is_said(tmp_path: Path, name: str) -> None:
    path = stored(tmp_path, name, pa.table({"x": pa.array([1, None]), "y": pa.array([None, "a"])}))
    assert read_facts(relation(N, S), path, null="-1") == [(1, "-1"), (-1, "a")]
    with pytest.raises(FactsError, match=r"row 2: column 1 .* null is not a number"):
        read_facts(relation(N, S), path, null="none")


@pytest.mark.parametrize("name", TYPED)
def test_an_integer_that_no_float_is_equal_to_is_an_error(tmp_path: Path, name: str) -> None:
    good, bad = [2**53, -(2**53) + 1, 2**60], [2**53, 2**53 + 1]
    assert read_facts(relation(F), stored(tmp_path, name, pa.table({"x": good}))) == [(float(n),) for n in good]
    (tmp_path / name).unlink()
    with pytest.raises(FactsError, match=r"row 2: .* no float is exactly 9007199254740993"):
        read_facts(relation(F), stored(tmp_path, name, pa.table({"x": bad})))


def test_decimals_become_floats_that_are_in_range() -> None:
    assert typed_value(F, Decimal("0.1")) == 0.1
    assert typed_value(F, Decimal("1e20")) == 1e20
    for text, what in [("1e400", "too large"), ("1e-400", "too small"), (str(2**53 + 1), "no float is exactly")]:
        with pytest.raises(ValueError, match=what):
            typed_value(F, Decimal(text))


def test_a_name_that_stands_twice_or_in_part_is_refused(tmp_path: Path) -> None:
    """By position they would be other columns than they say."""
    table = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["x", "y", "y"])
    with pytest.raises(FactsError, match="which do not fit"):
        read_facts(EDGE, stored(tmp_path, "edge.arrow", table))
    with pytest.raises(FactsError, match="which do not fit"):
        read_facts(EDGE, stored(tmp_path, "edge.parquet", pa.table({"z": [1], "X": [2]})))


def test_a_query_on_parquet_is_refused(tmp_path: Path) -> None:
    write_facts(EDGE, [(1, 2)], tmp_path / "e.parquet")
    with pytest.raises(
        FactsError, match="IO=parquet has no parameter `query` for reading; it takes IO, columns, "
    ):
        read_facts(EDGE, tmp_path / "e.parquet", query="SELECT 1")


def test_json_has_floats_nulls_and_bytes_as_they_are_written(tmp_path: Path) -> None:
    of = relation(F, S)
    for name, text in (("e.json", "[{}]"), ("e.jsonl", "{}")):
        path = tmp_path / name
        for value, what in [("1e400", "too large"), ("1e-400", "too small"), (str(2**53 + 1), "no float is")]:
            path.write_text(text.format(f'[{value}, "a"]'))
            with pytest.raises(FactsError, match=rf":? ?1: column 1 .*{what}"):
                read_facts(of, path)
        path.write_text(text.format('[Infinity, "a"]'))
        assert read_facts(of, path) == [(float("inf"), "a")]
        path.write_text("\ufeff" + text.format('{"x": 0.5, "y": null}'))
        assert read_facts(of, path, null="0") == [(0.5, "0")]
        path.write_bytes(text.format('[1, "caf\u00e9"]').encode("latin-1"))
        with pytest.raises(FactsError, match=f"{name}:1: the byte 0xe9 in .* is not UTF-8"):
            read_facts(of, path)
        assert read_facts(of, path, encoding="latin-1") == [(1.0, "café")]
        write_facts(of, [(1.0, "\udce9")], path)
        assert path.read_bytes().isascii()
        assert read_facts(of, path) == [(1.0, "\udce9")]


def test_sqlite_columns_are_found_by_name(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "e.sqlite") as connection:
        connection.execute("CREATE TABLE edge (y, z, x)")
        connection.execute("INSERT INTO edge VALUES (1, 2, 3)")
    connection.close()
    assert read_facts(EDGE, tmp_path / "e.sqlite") == [(3, 1)]


@pytest.mark.parametrize("name", TYPED)
def test_columns_that_differ_only_in_case_come_back(tmp_path: Path, name: str) -> None:
    both = Relation("edge", (Column("x", N), Column("X", N)))
    write_facts(both, [(1, 2)], tmp_path / name)
    assert read_facts(both, tmp_path / name) == [(1, 2)]


def test_nan_is_one_value_whatever_its_bits(tmp_path: Path) -> None:
    path = stored(tmp_path, "e.parquet", pa.table({"x": [float("nan"), -float("nan"), -0.0]}))
    rows = read_facts(relation(F), path)
    assert rows[0][0] is rows[1][0] is NAN
    assert str(rows[2][0]) == "0.0"


def test_a_folder_of_parts_is_read_as_spark_writes_it(tmp_path: Path) -> None:
    (tmp_path / "e.parquet").mkdir()
    (tmp_path / "e.jsonl").mkdir()
    for number in (1, 2):
        write_facts(EDGE, [(number, number)], tmp_path / "e.parquet" / f"part-{number}.parquet")
        write_facts(EDGE, [(number, number)], tmp_path / "e.jsonl" / f"part-{number}.json", IO="jsonl")
    for folder in ("e.parquet", "e.jsonl"):
        (tmp_path / folder / "_SUCCESS").touch()
        assert read_facts(EDGE, tmp_path / folder) == [(1, 1), (2, 2)]


def test_a_stream_of_arrow_is_read_as_a_file_is(tmp_path: Path) -> None:
    table = pa.table({"x": [1], "y": [2]})
    with pa.ipc.new_stream(str(tmp_path / "e.arrows"), table.schema) as stream:
        stream.write_table(table)
    assert read_facts(EDGE, tmp_path / "e.arrows") == [(1, 2)]


@pytest.mark.parametrize("name", [*BINARY, "edge.jsonl"])
def test_a_file_that_is_something_else_is_an_error_and_stays(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"neither this nor that " * 400)
    with pytest.raises(FactsError, match=name):
        read_facts(EDGE, path)
    assert path.read_bytes() == b"neither this nor that " * 400


@pytest.mark.parametrize("name", [*BINARY, "edge.jsonl", "edge.csv"])
def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        FactsError, match=rf"cannot open fact file .*{name} of relation edge: there is no such file"
    ):
        read_facts(EDGE, tmp_path / name)
    assert not (tmp_path / name).exists()


# ── rejects ──────────────────────────────────────────────────────────────────────────────────


def bad_lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "bad.jsonl").read_text().split("\n")[:-1]]


def test_rows_that_are_no_facts_go_to_the_rejects_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "e.facts").write_text("1\t2\n3\n5\tsix\n7\t8\n9\t99999999999999999999\n")
    assert read_facts(EDGE, tmp_path / "e.facts", rejects=tmp_path / "bad.jsonl") == [(1, 2), (7, 8)]
    assert bad_lines(tmp_path) == [
        {
            "source": str(tmp_path / "e.facts"),
            "line": 2,
            "reason": "column 2 (`y`:number) is missing from '3'",
            "values": ["3"],
        },
        {
            "source": str(tmp_path / "e.facts"),
            "line": 3,
            "reason": "column 2 (`y`:number): 'six' is not a number",
            "values": ["5", "six"],
        },
        {
            "source": str(tmp_path / "e.facts"),
            "line": 5,
            "reason": "column 2 (`y`:number): '99999999999999999999' is out of range for a 64-bit number",
            "values": ["9", "99999999999999999999"],
        },
    ]
    (tmp_path / "e.facts").write_text("1\t2\n")
    assert read_facts(EDGE, tmp_path / "e.facts", rejects=tmp_path / "bad.jsonl") == [(1, 2)]
    assert bad_lines(tmp_path) == []  # yesterday's are gone


def test_a_quoted_field_that_is_malformed_spoils_its_line_alone(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text('1,"a"\n2,"b"x\n3,"c\nc"\n4,"d\n5,e\n')
    of = relation(N, S)
    rows = read_facts(of, tmp_path / "e.csv", rejects=tmp_path / "bad.jsonl")
    assert rows == [(1, "a"), (3, "c\nc"), (5, "e")]
    assert [(bad["line"], bad["values"]) for bad in bad_lines(tmp_path)] == [(2, '2,"b"x'), (5, '4,"d')]
    with pytest.raises(FactsError, match=r"e.csv:2: expected a delimiter after the quoted field 'b', found 'x"):
        read_facts(of, tmp_path / "e.csv")


def test_brackets_that_do_not_balance_spoil_their_line_alone(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("1,a\n2,[b\n3,c\n")
    rows = read_facts(relation(N, S), tmp_path / "e.txt", delimiter=",", rejects=tmp_path / "bad.jsonl")
    assert rows == [(1, "a"), (3, "c")]
    assert [bad["line"] for bad in bad_lines(tmp_path)] == [2]


@pytest.mark.parametrize(("name", "text"), [("e.json", '[[1], ["a"], [2, 3], null]'), ("e.jsonl", "")])
def test_json_has_rejects_too(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text or '{"x": 1}\n["a"]\n\n[2]\n{"x": \n{"y": 1}\n7\n{"x": true}\n')
    assert read_facts(relation(N), tmp_path / name, rejects=tmp_path / "bad.jsonl") == [(1,), (2,)]
    counted, numbers = ("row", [2, 4]) if text else ("line", [2, 5, 6, 7, 8])
    assert [bad[counted] for bad in bad_lines(tmp_path)] == numbers
    with pytest.raises(FactsError, match=f"{name}: row 2" if text else f"{name}:2: column 1"):
        read_facts(relation(N), tmp_path / name)


def test_sqlite_has_rejects_too(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "e.sqlite")
    connection.executescript("CREATE TABLE edge (x); INSERT INTO edge VALUES (1), ('a'), (1.5), (NULL), (2);")
    connection.close()
    assert read_facts(relation(N), tmp_path / "e.sqlite", rejects=tmp_path / "bad.jsonl") == [(1,), (2,)]
    assert [bad["row"] for bad in bad_lines(tmp_path)] == [2, 3, 4]
    assert (
        bad_lines(tmp_path)[2]["reason"]
        == "column 1 (`x`:number): null is not a number; set null=VALUE to replace it"
    )


def test_the_command_line_reports_rejects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text('.decl e(x:number)\n.input e(rejects="bad.jsonl")\n.output e(IO=stdout)')
    Path("facts").mkdir()
    Path("facts/e.facts").write_text("1\na\n")
    assert main(["run", "p.dl", "-F", "facts"]) == 0
    told = capsys.readouterr()
    assert "note: 1 row(s) of facts/e.facts do not fit e: see facts/bad.jsonl" in told.err
    assert "\n1\n" in told.out
    assert len(Path("facts/bad.jsonl").read_text().splitlines()) == 1


def test_rejects_that_cannot_be_written_end_the_load(tmp_path: Path) -> None:
    (tmp_path / "e.facts").write_text("a\n")
    with pytest.raises(FactsError, match=r"directory .*nowhere does not exist"):
        read_facts(relation(N), tmp_path / "e.facts", rejects=tmp_path / "nowhere" / "bad")


# ── databases ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["e.sqlite", "e.duckdb"])
def test_a_table_is_replaced_or_added_to(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_facts(EDGE, [(0, 0)], path, dbtable="keep")
    write_facts(EDGE, [(1, 1)], path)
    write_facts(EDGE, [(2, 2)], path)
    assert read_facts(EDGE, path) == [(2, 2)]
    write_facts(EDGE, [(3, 3)], path, mode="append")
    write_facts(EDGE, [(4, 4)], path, mode="ignore")
    assert read_facts(EDGE, path) == [(2, 2), (3, 3)]
    with pytest.raises(FactsError, match="a table edge already exists"):
        write_facts(EDGE, [], path, mode="errorifexists")
    write_facts(EDGE, [(5, 5)], path, mode="errorifexists", table="fresh")
    assert read_facts(EDGE, path, table="fresh") == [(5, 5)]
    assert read_facts(EDGE, path, dbtable="keep") == [(0, 0)]
    assert read_facts(EDGE, path, query="SELECT y + 1 AS x, x - 1 AS y FROM edge WHERE x > 2") == [(4, 2)]
    with pytest.raises(FactsError, match="missing"):
        read_facts(EDGE, path, dbtable="missing")


def test_files_are_not_appended_to(tmp_path: Path) -> None:
    for name in ("e.csv", "e.jsonl", "e.parquet"):
        with pytest.raises(FactsError, match="does not support mode=append"):
            write_facts(EDGE, [], tmp_path / name, mode="append")
    with pytest.raises(FactsError, match="mode='more': use overwrite, append"):
        write_facts(EDGE, [], tmp_path / "e.sqlite", mode="more")
    write_facts(EDGE, [(1, 1)], tmp_path / "e.parquet")
    write_facts(EDGE, [(2, 2)], tmp_path / "e.parquet", mode="ignore")
    assert read_facts(EDGE, tmp_path / "e.parquet") == [(1, 1)]
    assert list(tmp_path.iterdir()) == [tmp_path / "e.parquet"]


@pytest.mark.parametrize("name", ["e.sqlite", "e.duckdb"])
def test_a_failed_write_leaves_the_table(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_facts(EDGE, [(1, 1)], path)

    def rows() -> object:
        yield (2, 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_facts(EDGE, rows(), path)  # type: ignore[arg-type]
    assert read_facts(EDGE, path) == [(1, 1)]


@pytest.mark.parametrize("table", ["edge", "log"])
@pytest.mark.parametrize("mode", ["overwrite", "append", "ignore"])
def test_an_everlog_database_takes_no_tables(tmp_path: Path, table: str, mode: str) -> None:
    """Any name might be that of a table that the database itself needs."""
    path = tmp_path / "roads.db"
    with Database.open(path, text=".decl edge(x:number, y:number)  edge(1, 2).") as db:
        with pytest.raises(FactsError, match=r"roads\.db is an everlog database, and is not changed"):
            db.export("edge", path, dbtable=table, mode=mode)
        with pytest.raises(FactsError, match=r"no table or view edge; it is an everlog database"):
            db.load("edge", path)
    with Database.open(path) as db:
        assert db.view("edge") == [(1, 2)]


def test_a_duckdb_schema_is_named_before_the_table(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "e.duckdb")) as connection:
        connection.execute("CREATE SCHEMA shop; CREATE TABLE shop.orders AS SELECT 1 AS x, 2 AS y")
    assert read_facts(EDGE, tmp_path / "e.duckdb", dbtable="shop.orders") == [(1, 2)]
    write_facts(EDGE, [(3, 4)], tmp_path / "e.duckdb", dbtable="shop.orders", mode="append")
    assert read_facts(EDGE, tmp_path / "e.duckdb", dbtable="shop.orders") == [(1, 2), (3, 4)]


def test_jdbc_urls_of_files_mean_these_files(tmp_path: Path) -> None:
    for kind in ("sqlite", "duckdb"):
        write_facts(EDGE, [(1, 2)], f"jdbc:{kind}:{tmp_path}/e.{kind}", dbtable="t")
        assert read_facts(EDGE, tmp_path / f"e.{kind}", dbtable="t") == [(1, 2)]
        assert read_facts(EDGE, f"jdbc:{kind}:{tmp_path}/e.{kind}", dbtable="t") == [(1, 2)]
    with pytest.raises(
        FactsError, match=r"IO=jdbc in this process supports jdbc:postgresql:….*not 'jdbc:oracle:x'"
    ):
        read_facts(EDGE, "jdbc:oracle:x")


# ── from Python ──────────────────────────────────────────────────────────────────────────────

PATHS = """
    .decl edge(x:number, y:number)
    .decl path(x:number, y:number)
    path(x, y) :- edge(x, y).
    path(x, z) :- path(x, y), edge(y, z)."""


def test_a_database_loads_and_exports(tmp_path: Path) -> None:
    db = Database.from_text(PATHS)
    db.insert("edge", [(1, 2), (2, 3)])
    db.export("path", tmp_path / "path.parquet")
    db.export("edge", tmp_path / "edge.csv", headers=True)
    other = Database.from_text(PATHS)
    told: list[str] = []
    other.subscribe("path", lambda changes: told.append(str(changes)))
    changes = other.load("edge", tmp_path / "edge.csv", headers=True)
    assert other.view("path") == db.view("path")
    assert changes["edge"] == {(1, 2): 1, (2, 3): 1}
    assert len(told) == 1, "one step"
    assert not other.load("path", tmp_path / "path.parquet")["path"], "they were there, derived"
    write_facts(EDGE, [(2, 3), (3, 4)], tmp_path / "edge.jsonl")
    assert (
        str(other.load("edge", tmp_path / "edge.jsonl", replace=True).only(["edge"]))
        == "-edge(1, 2).\n+edge(3, 4)."
    )


def test_a_load_that_fails_changes_nothing(tmp_path: Path) -> None:
    db = Database.from_text(PATHS)
    db.insert("edge", (1, 2))
    (tmp_path / "e.csv").write_text("5,6\n7,x\n")
    with pytest.raises(FactsError, match=r"e.csv:2: column 2 \(`y`:number\): 'x' is not a number"):
        db.load("edge", tmp_path / "e.csv")
    with pytest.raises(FactError, match="undefined relation `edg`; did you mean `edge`"):
        db.load("edg", tmp_path / "e.csv")
    assert db.view("edge") == [(1, 2)]
    assert db.load("edge", tmp_path / "e.csv", rejects=tmp_path / "bad.jsonl").inserted("edge") == [(5, 6)]


def test_a_pipe_is_read_and_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    writing = threading.Thread(target=lambda: write_facts(EDGE, [(1, 2)], tmp_path / "pipe.csv", headers=False))
    writing.start()
    assert read_facts(EDGE, tmp_path / "pipe.csv") == [(1, 2)]
    writing.join()
    assert (tmp_path / "pipe.csv").is_fifo()


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    code = "import everlog.files.connect, sys; print({'pyarrow', 'duckdb', 'psycopg', 'zstandard'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@given(st.lists(st.tuples(st.integers(0, 9), st.text(max_size=4)), max_size=8), st.randoms())
def test_rejects_and_facts_are_all_rows(rows: list[tuple[int, str]], random: object) -> None:
    """Each row is a fact or a reject, and does not affect the others."""
    good = [(number, text) for number, text in rows if number < 7]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "e.jsonl"
        values = [[number if number < 7 else str(number), text] for number, text in rows]
        path.write_text("".join(json.dumps(value) + "\n" for value in values))
        assert read_facts(relation(N, S), path, rejects=Path(folder) / "bad.jsonl") == good
        assert len(bad_lines(Path(folder))) == len(rows) - len(good)
