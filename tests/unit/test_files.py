"""Facts in files, streams and databases: Soufflé's formats, and errors."""

from __future__ import annotations

import gc
import gzip
import io
import json
import math
import os
import sqlite3
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from fact_rows import ANY_SYMBOL, PLAIN_SYMBOL, relation, relations_with_rows, types_of
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from everlog.core.program import Column, Kind, Relation, Row
from everlog.core.program.values import MASK, NAN, SIGNED_MAX, SIGNED_MIN, decoded
from everlog.files import KNOWN_PARAMETERS, FactsError, read_facts, write_facts, write_size
from everlog.files.formats import FILE_NAMES, FORMATS, IN_FOLDER, LAYOUT_PARAMETERS
from everlog.files.location import Place
from everlog.files.text.bulk import bulk_rows
from everlog.files.text.delimited import careful_rows, read_delimited
from everlog.files.text.layout import layout_of
from everlog.files.text_values import sorted_rows
from everlog.files.within import named_place

N, U, F, S = Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL


EDGE = relation(N, N)


def facts(text: bytes | str, *kinds: Kind, **params: str) -> list[Row]:
    """What a delimited file of this content holds."""
    data = text.encode() if isinstance(text, str) else text
    return read_delimited(Place(relation(*kinds), params, Path()), data, "edge.facts")


def mistake(text: bytes | str, *kinds: Kind, **params: str) -> str:
    with pytest.raises(FactsError) as caught:
        facts(text, *kinds, **params)
    return str(caught.value)


def written(rows: list[Row], *kinds: Kind, **params: str) -> str:
    """The content of the only file that a directive writes."""
    with tempfile.TemporaryDirectory() as name:
        write_facts(relation(*kinds), rows, params, Path(name), io.StringIO())
        (path,) = Path(name).iterdir()
        return decoded(path.read_bytes())


# ── names and places ─────────────────────────────────────────────────────────────────────────


def test_facts_come_from_name_dot_facts(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\n")
    assert read_facts(EDGE, {}, tmp_path) == [(1, 2)]


def test_output_goes_to_name_dot_csv(tmp_path: Path) -> None:
    write_facts(EDGE, [(1, 2)], {}, tmp_path, io.StringIO())
    assert [path.name for path in tmp_path.iterdir()] == ["edge.csv"]
    assert (tmp_path / "edge.csv").read_bytes() == b"1\t2\n"


def test_a_relation_of_a_component_instance_keeps_its_dot(tmp_path: Path) -> None:
    inner = relation(N, name="graph.edge")
    (tmp_path / "graph.edge.facts").write_text("1\n")
    assert read_facts(inner, {}, tmp_path) == [(1,)]
    write_facts(inner, [(1,)], {}, tmp_path, io.StringIO())
    assert (tmp_path / "graph.edge.csv").exists()


def test_the_parameter_name_stands_for_the_name_of_the_relation(tmp_path: Path) -> None:
    (tmp_path / "other.facts").write_text("1\t2\n")
    assert read_facts(EDGE, {"name": "other"}, tmp_path) == [(1, 2)]
    write_facts(EDGE, [], {"name": "out"}, tmp_path, io.StringIO())
    assert (tmp_path / "out.csv").exists()


def test_a_relative_filename_is_under_the_directory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write_facts(EDGE, [(3, 4)], {"filename": "sub/e.txt"}, tmp_path, io.StringIO())
    assert read_facts(EDGE, {"filename": "sub/e.txt"}, tmp_path) == [(3, 4)]


def test_an_absolute_filename_is_taken_as_it_is(tmp_path: Path) -> None:
    absolute = str(tmp_path / "e.txt")
    write_facts(EDGE, [(3, 4)], {"filename": absolute}, Path("/nowhere"), io.StringIO())
    assert read_facts(EDGE, {"filename": absolute}, Path("/nowhere")) == [(3, 4)]


def test_a_missing_fact_file_is_an_error_that_names_file_and_relation(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match=r"cannot open fact file .*edge\.facts of relation edge"):
        read_facts(EDGE, {}, tmp_path)


@pytest.mark.parametrize("way", ["file", "jsonfile", "sqlite"])
def test_a_missing_fact_file_has_no_rows_where_that_is_allowed(tmp_path: Path, way: str) -> None:
    assert read_facts(EDGE, {"IO": way}, tmp_path, missing_ok=True) == []
    with pytest.raises(FactsError, match="cannot open fact file"):
        read_facts(EDGE, {"IO": way}, tmp_path)


def test_a_directory_is_no_fact_file(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").mkdir()
    with pytest.raises(FactsError, match="cannot open fact file"):
        read_facts(EDGE, {}, tmp_path, missing_ok=True)


@pytest.mark.parametrize("way", ["file", "jsonfile", "sqlite"])
def test_an_output_directory_must_exist(tmp_path: Path, way: str) -> None:
    with pytest.raises(FactsError, match=r"directory .*nowhere does not exist"):
        write_facts(EDGE, [], {"IO": way}, tmp_path / "nowhere", io.StringIO())


def test_an_unknown_io_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match=r"IO='ftp'; use arrow, duckdb, file, .*, postgres, sqlite, stdin"):
        read_facts(EDGE, {"IO": "ftp"}, tmp_path)
    with pytest.raises(FactsError, match=r"IO='stdin'; use arrow, duckdb, file, .*, postgres, sqlite, stdout"):
        write_facts(EDGE, [], {"IO": "stdin"}, tmp_path, io.StringIO())


@pytest.mark.parametrize("way", [way for way, of in FORMATS.items() if of.read])
def test_a_parameter_that_means_nothing_is_refused_with_those_that_do(tmp_path: Path, way: str) -> None:
    for key in ("colour", "query", "delimiter", "format"):
        taken = FORMATS[way].taken("read")
        if key not in taken:
            with pytest.raises(
                FactsError, match=rf"IO={way} has no parameter `{key}` for reading.*; it takes IO, .*null"
            ):
                read_facts(EDGE, {"IO": way, key: "x"}, tmp_path)
    if FORMATS[way].write:
        for key in ("colour", "columns", "query", "null", "encoding", "rejects"):
            with pytest.raises(FactsError, match=rf"IO={way} has no parameter `{key}` for writing"):
                write_facts(EDGE, [], {"IO": way, key: "1:0"}, tmp_path, io.StringIO())
    assert list(tmp_path.iterdir()) == []


def test_what_souffle_adds_to_a_directive_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\n")
    assert read_facts(EDGE, {"operation": "input", "types": "{}"}, tmp_path) == [(1, 2)]
    assert {"IO", "filename", "columns", "n"} <= KNOWN_PARAMETERS
    assert "colour" not in KNOWN_PARAMETERS


def test_a_flag_is_true_or_false() -> None:
    assert "headers='yes': use true, false, auto" in mistake("1\n", N, headers="yes")
    assert "rfc4180='1': use true or false" in mistake("1\n", N, rfc4180="1")


# ── lines and fields ─────────────────────────────────────────────────────────────────────────


def test_fields_are_separated_by_tabs_and_quotes_are_part_of_a_symbol() -> None:
    assert facts('"a b"\tc\\t,\n', S, S) == [('"a b"', "c\\t,")]


def test_an_empty_file_has_no_rows() -> None:
    assert facts("", N, S) == []
    assert facts("", S) == []


def test_a_last_line_without_newline_counts() -> None:
    assert facts("1\n2", N) == [(1,), (2,)]
    assert facts("a\n\r", S) == [("a",), ("",)]


def test_only_the_last_carriage_return_of_a_line_is_stripped() -> None:
    assert facts("1\t2\r\n3\t4\r\n", N, N) == [(1, 2), (3, 4)]
    assert facts("a\r\r\nb\rc\r", S) == [("a\r",), ("b\rc",)]


def test_no_other_character_ends_a_line() -> None:
    text = "a\x0bb\x0cc\x1cd\x85e\u2028f\r"
    assert facts(text, S) == [(text[:-1],)]


def test_extra_columns_are_ignored() -> None:
    assert facts("1\t2\t3\n4\t5\t6\n", N, N) == [(1, 2), (4, 5)]
    assert facts("1\t2\t3\n4\t5\n", N, N) == [(1, 2), (4, 5)]


def test_a_missing_column_is_an_error_for_symbols_too() -> None:
    assert mistake("a\tb\nc\n", S, S) == "edge.facts:2: column 2 (`y`:symbol) is missing from 'c'"
    assert mistake("1\n", N, N) == "edge.facts:1: column 2 (`y`:number) is missing from '1'"


def test_an_empty_line_is_the_empty_symbol_and_no_number() -> None:
    assert facts("\na\n\n", S) == [("",), ("a",), ("",)]
    assert mistake("1\n\n", N) == "edge.facts:2: column 1 (`x`:number): '' is not a number"
    assert "column 2 (`y`:symbol) is missing" in mistake("\n", S, S)


def test_an_error_names_file_line_column_and_value() -> None:
    assert mistake("1\t2\n3\t4\n5\tabc\n", N, N) == "edge.facts:3: column 2 (`y`:number): 'abc' is not a number"


def test_an_error_names_the_type_as_declared() -> None:
    typed = Relation("edge", (Column("x", N, "Node"),))
    with pytest.raises(FactsError, match=r"column 1 \(`x`:Node\)"):
        read_delimited(Place(typed, {}, Path()), b"z", "edge.facts")


def test_a_delimiter_may_have_several_characters() -> None:
    assert facts("1;;2\n3;;4\n", N, N, delimiter=";;") == [(1, 2), (3, 4)]
    assert facts("a;;;b\n", S, S, delimiter=";;") == [("a", ";b")]
    assert facts("a→b\n", S, S, delimiter="→") == [("a", "b")]
    assert facts("a%sb\n", S, S, delimiter="%s") == [("a", "b")]
    assert written([(1, "b")], N, S, delimiter="%s") == "1%sb\n"


def test_a_delimiter_may_not_be_empty() -> None:
    assert "the delimiter is empty" in mistake("1", N, delimiter="")


def test_with_a_comma_delimiter_brackets_hold_a_field_together() -> None:
    assert facts("[1,[2,3]],b\n", S, S, delimiter=",") == [("[1,[2,3]]", "b")]
    assert facts("a,[b, c]d\n", S, S, delimiter=",") == [("a", "[b, c]d")]
    assert facts("[a, b], c\n", S, S, delimiter=", ") == [("[a, b]", "c")]
    assert facts("[a;b\n", S, S, delimiter=";") == [("[a", "b")]


@pytest.mark.parametrize("line", ["[a,b", "a],b", "a,[b", "[[a],b"])
def test_brackets_that_do_not_balance_are_an_error(line: str) -> None:
    assert "edge.facts:2: the brackets do not balance in " in mistake(f"a,b\n{line}\n", S, S, delimiter=",")


def test_brackets_in_extra_columns_are_not_looked_at() -> None:
    assert facts("a,b,]\n", S, S, delimiter=",") == [("a", "b")]


def test_columns_says_which_field_feeds_each_column() -> None:
    assert facts("a\tb\t3\n", N, S, columns="2:0") == [(3, "a")]
    assert facts("1\t2\t3\n", N, N, columns="2:0") == [(3, 1)]
    assert mistake("1\tb\tc\n", N, S, columns="2:0") == "edge.facts:1: column 3 (`x`:number): 'c' is not a number"


@pytest.mark.parametrize("columns", ["0", "0:1:2", "a:b", "-1:0", "0:", "0:99999999999999999999"])
def test_columns_must_name_one_position_per_column(columns: str) -> None:
    assert f"columns='{columns}'" in mistake("1\t2\n", N, N, columns=columns)


def test_headers_skips_the_first_line() -> None:
    assert facts("x\ty\n1\t2\n", N, N, headers="true") == [(1, 2)]
    assert facts("a,[\n1,2\n", N, N, headers="true", delimiter=",") == [(1, 2)]
    assert facts("", N, N, headers="true") == []
    assert mistake("x\ty\n1\tz\n", N, N, headers="true").startswith("edge.facts:2: ")


def test_headers_are_written_as_attribute_names_joined_by_the_delimiter() -> None:
    assert written([(1, 2)], N, N, headers="true") == "x\ty\n1\t2\n"
    assert written([(1, 2)], N, N, headers="true", delimiter=";") == "x;y\n1;2\n"
    assert written([(1, 2)], N, N, headers="true", attributeNames="from,to") == "from,to\n1\t2\n"


# ── values ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("5", 5), ("+5", 5), (" 5", 5), ("\v\f 5", 5), ("007", 7), ("-0", 0), ("0" * 5000 + "7", 7)],
        *[(str(SIGNED_MAX), SIGNED_MAX), (str(SIGNED_MIN), SIGNED_MIN)],
    ],
)
def test_a_number_is_base_ten_with_leading_blanks_and_a_sign(text: str, value: int) -> None:
    assert facts(f"{text}\n", N) == [(value,)]


@pytest.mark.parametrize("text", ["", "0x10", "0b1", "5 ", "1.5", "1_0", "٣", "--5", "+", "1e3", "\xa05", "5\0"])
def test_what_is_no_number_is_an_error(text: str) -> None:
    assert mistake(f"{text}\n", N).endswith(f"column 1 (`x`:number): {text!r} is not a number")


@pytest.mark.parametrize("text", [str(SIGNED_MAX + 1), str(SIGNED_MIN - 1), "9" * 5000])
def test_a_number_beyond_64_bits_is_an_error(text: str) -> None:
    assert "is out of range for a 64-bit number" in mistake(f"{text}\n", N)


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), ("+5", 5), (" 5", 5), ("0x1F", 31), ("0b101", 5), (str(MASK), MASK), ("0xffffffffffffffff", MASK)],
)
def test_an_unsigned_may_be_hexadecimal_or_binary(text: str, value: int) -> None:
    assert facts(f"{text}\n", U) == [(value,)]


@pytest.mark.parametrize("text", ["-5", "-0", "", "0x", "0b2", "0xg", "0X10", " 0x10", "1_0", "0x1_0", "5 "])
def test_what_is_no_unsigned_is_an_error(text: str) -> None:
    assert f"{text!r} is not an unsigned number" in mistake(f"{text}\n", U)


@pytest.mark.parametrize("text", [str(MASK + 1), "0x10000000000000000", "0b" + "1" * 65, "9" * 5000])
def test_an_unsigned_beyond_64_bits_is_an_error(text: str) -> None:
    assert "is out of range for a 64-bit unsigned number" in mistake(f"{text}\n", U)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("1", 1.0), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("-1.5E-1", -0.15), ("+2", 2.0), (" 2", 2.0)],
        *[("inf", math.inf), ("-Infinity", -math.inf), ("-0x0p9999", 0.0), ("0e-9999", 0.0)],
        *[("0x1p3", 8.0), ("0X.8", 0.5), ("-0x1.8p1", -3.0), ("1e20", 1e20), ("9007199254740992", 2.0**53)],
    ],
)
def test_a_float_is_what_strtod_reads(text: str, value: float) -> None:
    assert facts(f"{text}\n", F) == [(value,)]


@pytest.mark.parametrize("text", ["", "1_0", "1 ", "abc", "0x", "0x.p1", "1e", "٣", "in", "nano", "ſ", "1.5.2"])
def test_what_is_no_float_is_an_error(text: str) -> None:
    assert f"{text!r} is not a float" in mistake(f"{text}\n", F)


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "nan(0x1)", " nan"])
def test_every_nan_is_the_one_nan(text: str) -> None:
    assert facts(f"1.5\n{text}\n", F)[1][0] is NAN


@pytest.mark.parametrize(
    "text",
    [
        "9007199254740993",
        "-9007199254740993",
        "9007199254740993.0",
        "9007199254740993.5",
        "1" + "0" * 30 + "1",
        "9" * 500,
    ],
)
def test_an_integer_that_no_float_is_equal_to_is_an_error(text: str) -> None:
    told = mistake(f"1.5\n{text}\n", F)
    assert told.startswith("edge.facts:2: column 1 (`x`:float): ")
    assert "no float is exactly" in told or "out of range for a 64-bit float" in told


@pytest.mark.parametrize(
    ("text", "size"),
    [("1e400", "large"), ("-1e999", "large"), ("0x1p9999", "large"), ("1e-400", "small"), ("0x1p-9999", "small")],
)
def test_a_float_out_of_range_is_an_error_and_infinity_is_none(text: str, size: str) -> None:
    assert f"column 1 (`x`:float): '{text}' is too {size} for a 64-bit float" in mistake(f"inf\n{text}\n", F)


def test_bytes_that_are_no_utf8_are_an_error_unless_an_encoding_is_said() -> None:
    for params in ({}, {"rfc4180": "true"}):
        told = mistake(b"caf\xc3\xa9\ncaf\xe9\n", S, **params)
        assert told.startswith(r"edge.facts:2: the byte 0xe9 in 'caf\udce9' is not UTF-8; set encoding=latin-1")
    assert mistake(b'"a"\n"caf\xe9"\n', S, rfc4180="true").startswith("edge.facts:2: the byte 0xe9")
    assert facts(b"caf\xe9\n", S, encoding="latin-1") == [("café",)]
    assert facts("é\n".encode("utf-16"), S, encoding="utf-16") == [("é",)]
    assert facts(b"caf\xe9\n", S, encoding="bytes") == [("caf\udce9",)]
    assert "encoding=utf-16" in mistake("é\n".encode("utf-16"), S)
    assert "edge.facts:2: the file is not ascii" in mistake("a\né\n", S, encoding="ascii")
    assert "unknown encoding='hex'" in mistake("a", S, encoding="hex")
    assert "begins with the byte order mark of UTF-8" in mistake("\ufeffa", S, encoding="latin-1")


def test_a_byte_order_mark_is_no_part_of_the_first_field() -> None:
    for params in ({}, {"rfc4180": "true"}, {"headers": "true"}):
        header = "x\n" if "headers" in params else ""
        assert facts(f"\ufeff{header}a\n", S, **params) == [("a",)]
    assert facts('\ufeff"a"\n', S, rfc4180="true") == [("a",)]
    assert facts("\ufeff1\n", N) == [(1,)]
    assert facts("a\n\ufeffb\n", S) == [("a",), ("\ufeffb",)]
    assert from_json('\ufeff[["a"]]', S) == [("a",)]


def test_an_empty_field_of_a_csv_is_a_null_and_an_empty_symbol_has_quotes() -> None:
    assert facts('1,""\n', N, S, rfc4180="true") == [(1, "")]
    for text in ("1,\n", '1,\n2,"b"\n'):
        told = mistake(text, N, S, rfc4180="true")
        assert told == (
            'edge.facts:1: column 2 (`y`:symbol): an empty field is not a symbol (the empty one is written "");'
            " set null=VALUE to replace it"
        )
        assert facts(text, N, S, rfc4180="true", null="")[0] == (1, "")
        assert facts(text, N, S, rfc4180="true", null="n/a")[0] == (1, "n/a")
    assert facts(",a\n", N, S, rfc4180="true", null="-1") == [(-1, "a")]
    assert "column 1 (`x`:number): an empty field" in mistake(",a\n", N, S, rfc4180="true", null="none")
    assert facts("\ta\n", N, S, null="0") == [(0, "a")]
    assert facts(",[a,b]\n", N, S, null="0", delimiter=",") == [(0, "[a,b]")]
    assert facts("\ta\n", S, S) == [("", "a")]  # as Soufflé has it
    assert "null='x' fits no column" in mistake("1\n", N, null="x")


def test_columns_are_found_by_the_names_of_the_header() -> None:
    for header in ("y,z,x", "Y,Z,X", " y , z,x", '"y","z","x"'):
        text = f"{header}\nB1,zz,A1\n"
        assert facts(text, S, S, rfc4180="true", headers="true") == [("A1", "B1")]
        assert facts(text, S, S, delimiter=",", headers="true") == [("A1", "B1")]
    assert facts("a,b\n1,2\n", N, N, rfc4180="true", headers="true") == [(1, 2)]  # other names: by position
    for header in ("y,z", "x,x,y", "a,b,c", "X,x,z", "x"):
        told = mistake(f"{header}\n1,2,3\n", N, N, rfc4180="true", headers="true")
        assert told.startswith("edge.facts:1: the header has the columns ")
    assert facts("y,z,x\n1,2,3\n", N, N, rfc4180="true", headers="true", columns="0:1") == [(1, 2)]
    for line in ("1", "1,2,3"):
        assert mistake(f"x,y\n1,2\n{line}\n", N, N, rfc4180="true", headers="true").startswith("edge.facts:3: ")


def test_an_unannounced_header_is_not_a_fact() -> None:
    for line in ("x,y", "y,x", "Y, X", '"x","y"', "x,other,y"):
        told = mistake(f"{line}\n1,2,3\n", S, S, rfc4180="true")
        assert "has the names of the columns: set headers=true if it is a header, or headers=false" in told
        assert "has the names of the columns" in mistake(f"{line}\n1,2,3\n", S, S, delimiter=",")
    assert facts("x,y\n", S, S, rfc4180="true", headers="false") == [("x", "y")]
    assert facts("x,y\n", S, S, delimiter=",", headers="false") == [("x", "y")]
    assert facts("x\ty\n", S, S) == [("x", "y")]  # Soufflé's own files have none


@pytest.mark.parametrize(
    ("text", "kinds", "rows"),
    [
        ("y,z,x\nB1,zz,A1\n", (S, S), [("A1", "B1")]),
        ("Y,X\n1,a\n", (S, N), [("a", 1)]),
        ('"y","x"\n1,a\n', (S, N), [("a", 1)]),
        ("a,1\nb,2\n", (S, N), [("a", 1), ("b", 2)]),
        ('"x","y"\na,b\n', (S, S), "has the names of the columns, and may be a fact"),
        ("from,to\na,b\n", (S, S), "may be a header, but lacks some names of"),
        ("from,to\na,1\n", (S, N), "may be a header, but lacks some names of"),
        ("a,1x\nb,2\n", (S, N), "edge.facts:1: column 2 (`y`:number): '1x' is not a number"),
    ],
)
def test_the_first_line_of_a_csv_is_looked_at(text: str, kinds: tuple[Kind, ...], rows: object) -> None:
    params = {"rfc4180": "true", "headers": "auto"}
    if isinstance(rows, str):
        assert rows in mistake(text, *kinds, **params)
    else:
        assert facts(text, *kinds, **params) == rows


def test_symbols_that_are_no_utf8_are_written_back_as_the_same_bytes(tmp_path: Path) -> None:
    raw = b"\xff\tna\xc3\xafve\n\xc3\t\xa9\n"
    (tmp_path / "edge.facts").write_bytes(raw)
    rows = read_facts(relation(S, S), {"encoding": "bytes"}, tmp_path)
    write_facts(relation(S, S), rows, {}, tmp_path, io.StringIO())
    assert sorted((tmp_path / "edge.csv").read_bytes().splitlines()) == sorted(raw.splitlines())


@pytest.mark.parametrize("text", ["node\tnode\n", "node\tnode\tx\nnode\tnode\n"])
def test_equal_symbols_are_one_object(text: str) -> None:
    values = {id(value) for row in facts(text, S, S) for value in row}
    assert values == {id(sys.intern("node"))}


def test_floats_are_written_with_17_significant_digits() -> None:
    rows: list[Row] = [(0.1,), (2.0,), (1e20,), (math.inf,)]
    assert written(rows, F) == "0.10000000000000001\n2\n1e+20\ninf\n"


def test_rows_are_written_sorted_numbers_by_value_and_symbols_by_text() -> None:
    rows: list[Row] = [(10, "b"), (9, "z"), (10, "B"), (-1, "é"), (10, "")]
    assert written(rows, N, S) == "-1\té\n9\tz\n10\t\n10\tB\n10\tb\n"


def test_nan_is_written_before_all_other_floats_whatever_the_order() -> None:
    rows: list[Row] = [(2.0,), (NAN,), (1.0,), (-math.inf,)]
    assert written(rows, F) == written(rows[::-1], F) == "-nan\n-inf\n1\n2\n"


# ── nullary relations ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "rows"), [("", []), ("()\n", [()]), ("anything\tat all", [()]), ("\n", [()]), ("a\nb\n", [()])]
)
def test_any_line_makes_a_nullary_fact_true(text: str, rows: list[Row]) -> None:
    assert facts(text) == rows


def test_a_line_of_a_nullary_relation_is_not_looked_at() -> None:
    assert facts("[", delimiter=",") == [()]
    assert facts('"', rfc4180="true") == [()]


def test_a_nullary_fact_is_written_as_a_unit_or_an_empty_file() -> None:
    assert written([()]) == "()\n"
    assert written([]) == ""


@pytest.mark.parametrize(
    "params", [{}, {"headers": "true"}, {"IO": "jsonfile"}, {"IO": "sqlite"}, {"rfc4180": "true"}]
)
@pytest.mark.parametrize("rows", [[], [()]])
def test_a_nullary_fact_comes_back(params: dict[str, str], rows: list[Row]) -> None:
    assert round_trip(relation(), rows, params) == rows


# ── RFC 4180 ─────────────────────────────────────────────────────────────────────────────────


def test_rfc4180_reads_quoted_fields_separated_by_commas() -> None:
    text = 'a,"b, ""c""\nd\r\ne"\r\n"1",""\n'
    assert facts(text, S, S, rfc4180="true") == [("a", 'b, "c"\nd\r\ne'), ("1", "")]
    assert facts('"1","2"\n"3","4"', N, N, rfc4180="true") == [(1, 2), (3, 4)]


def test_rfc4180_takes_a_quote_inside_a_field_for_itself() -> None:
    assert facts('a"b",c\n', S, S, rfc4180="true") == [('a"b"', "c")]


def test_rfc4180_does_not_balance_brackets() -> None:
    assert facts('[a,"b]"\n', S, S, rfc4180="true") == [("[a", "b]")]


def test_rfc4180_may_have_another_delimiter_but_no_quote_in_it() -> None:
    assert facts('"a";;"b"\n', S, S, rfc4180="true", delimiter=";;") == [("a", "b")]
    assert "cannot contain a quote" in mistake("a", S, rfc4180="true", delimiter='"')


def test_rfc4180_skips_a_header_of_several_lines() -> None:
    assert facts('"x\n",y\na,b\n', S, S, rfc4180="true", headers="true") == [("a", "b")]


def test_rfc4180_errors_count_the_lines_inside_quotes() -> None:
    assert mistake('"a\nb",1\nc,z\n', S, N, rfc4180="true").startswith("edge.facts:3: column 2 (`y`:number): 'z'")
    assert mistake('a,1\n"b,2\n', S, N, rfc4180="true") == """edge.facts:2: a quote is never closed: '"b,2\\n'"""
    assert "edge.facts:1: expected a delimiter after" in mistake('"a"b,1\n', S, N, rfc4180="true")
    assert "column 2 (`y`:symbol) is missing" in mistake('"a"\n', S, S, rfc4180="true")


def test_rfc4180_quotes_every_symbol_and_doubles_its_quotes() -> None:
    rows: list[Row] = [("plain", 1), ("a,b", 2), ('say "hi"', 3), ("two\nlines", 4), ("c\rr", 5)]
    expected = '"a,b",2\n"c\rr",5\n"plain",1\n"say ""hi""",3\n"two\nlines",4\n'
    assert written(rows, S, N, rfc4180="true") == expected


# ── gzip ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["edge.facts", "edge.facts.gz"])
def test_gzipped_facts_are_read_whatever_their_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"1\t2\n", mtime=0))
    assert read_facts(EDGE, {}, tmp_path) == [(1, 2)]


def test_compress_writes_gzip_under_its_own_default_name(tmp_path: Path) -> None:
    write_facts(EDGE, [(1, 2)], {"compress": "true"}, tmp_path, io.StringIO())
    assert gzip.decompress((tmp_path / "edge.csv.gz").read_bytes()) == b"1\t2\n"
    write_facts(EDGE, [(1, 2)], {"compress": "true", "filename": "e"}, tmp_path, io.StringIO())
    assert read_facts(EDGE, {"filename": "e"}, tmp_path) == [(1, 2)]


@pytest.mark.parametrize(
    "data", [b"\x1f\x8b", gzip.compress(b"1\t2\n", mtime=0)[:-3], b"\x1f\x8bnonsense and more of it"]
)
def test_a_broken_gzip_file_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "edge.facts").write_bytes(data)
    with pytest.raises(FactsError, match=r"edge\.facts: begins like a gzip file"):
        read_facts(EDGE, {}, tmp_path)


# ── whole files or none ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["file", "jsonfile", "sqlite"])
def test_a_failed_write_leaves_the_old_output_and_nothing_else(tmp_path: Path, way: str) -> None:
    params, names = {"IO": way, "filename": "out"}, relation(S)
    write_facts(names, [("old",)], params, tmp_path, io.StringIO())
    with pytest.raises(FactsError, match="no UTF-8 form"):
        write_facts(names, [("new",), ("\ud800",)], params, tmp_path, io.StringIO())
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    if way != "file":
        assert read_facts(names, params, tmp_path) == [("old",)]
    else:
        assert (tmp_path / "out").read_text() == "old\n"


def test_a_failed_rename_removes_the_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(FactsError, match=r"cannot write .*edge\.csv: No space left on device"):
        write_facts(EDGE, [(1, 2)], {}, tmp_path, io.StringIO())
    assert list(tmp_path.iterdir()) == []


def test_an_output_replaces_what_a_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "edge.csv").symlink_to(tmp_path / "real")
    write_facts(EDGE, [(1, 2)], {}, tmp_path, io.StringIO())
    assert (tmp_path / "edge.csv").is_symlink()
    assert (tmp_path / "real").read_text() == "1\t2\n"


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_facts(EDGE, [(1, 2)], {"filename": "/dev/null"}, Path(), io.StringIO())
    assert Path("/dev/null").is_char_device()


def test_the_garbage_collector_runs_again_after_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("x\n")
    with pytest.raises(FactsError):
        read_facts(EDGE, {}, tmp_path)
    assert gc.isenabled()


# ── streams ──────────────────────────────────────────────────────────────────────────────────


def test_stdin_is_read_to_its_end(tmp_path: Path) -> None:
    assert read_facts(EDGE, {"IO": "stdin"}, tmp_path, stdin=io.StringIO("1\t2\r\n3\t4")) == [(1, 2), (3, 4)]


def test_stdin_is_read_as_bytes_where_it_has_them(tmp_path: Path) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"a\rb\xff\n"), encoding="ascii")
    assert read_facts(relation(S), {"IO": "stdin", "encoding": "bytes"}, tmp_path, stdin=stdin) == [
        ("a\rb\udcff",)
    ]


def test_a_mistake_on_stdin_names_it(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match=r"<stdin>:1: column 1 \(`x`:number\): 'a' is not a number"):
        read_facts(EDGE, {"IO": "stdin"}, tmp_path, stdin=io.StringIO("a\t1\n"))


def test_stdout_frames_the_rows(tmp_path: Path) -> None:
    out = io.StringIO()
    write_facts(EDGE, [(3, 4), (1, 2)], {"IO": "stdout"}, tmp_path, out)
    assert out.getvalue() == "---------------\nedge\n===============\n1\t2\n3\t4\n===============\n"


def test_stdout_has_the_header_above_the_second_rule(tmp_path: Path) -> None:
    out = io.StringIO()
    write_facts(EDGE, [], {"IO": "stdout", "headers": "true"}, tmp_path, out)
    assert out.getvalue() == "---------------\nedge\nx\ty\n===============\n===============\n"


def test_stdout_gets_the_bytes_that_a_file_would_get(tmp_path: Path) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    out.write("before\n")
    write_facts(relation(S), [("é\udcff",)], {"IO": "stdout"}, tmp_path, out)
    out.write("after\n")
    out.flush()
    assert b"===============\n\xc3\xa9\xff\n=" in raw.getvalue()
    assert raw.getvalue().startswith(b"before\n---")
    assert raw.getvalue().endswith(b"==\nafter\n")


def test_printsize_is_name_tab_count() -> None:
    out = io.StringIO()
    write_size(relation(N, name="graph.edge"), 12, out)
    assert out.getvalue() == "graph.edge\t12\n"


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────


def from_json(text: str, *kinds: Kind, **params: str) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "edge.json").write_text(text)
        return read_facts(relation(*kinds), {"IO": "jsonfile", **params}, Path(name))


@pytest.mark.parametrize("way", ["jsonfile"])
def test_json_is_an_array_of_arrays(tmp_path: Path, way: str) -> None:
    write_facts(relation(N, S), [(2, 'q"é'), (1, "%s")], {"IO": way}, tmp_path, io.StringIO())
    assert (tmp_path / "edge.json").read_text() == '[[1, "%s"],\n[2, "q\\"é"]]\n'


def test_json_with_format_object_is_an_array_of_objects() -> None:
    text = written([(1, 0.5)], N, F, IO="jsonfile", format="object")
    assert text == '[{"x": 1, "y": 0.5}]\n'
    assert json.loads(text) == [{"x": 1, "y": 0.5}]


def test_json_is_read_in_either_shape_and_more_than_the_columns_is_ignored() -> None:
    assert from_json('[[1, "a", 9], {"y": "b", "z": 0, "x": 2}]', N, S) == [(1, "a"), (2, "b")]
    assert from_json("[]", N) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[1],\n[", "edge.json:2: not JSON"),
        ('{"x": 1}', "edge.json: expected an array of facts, found {'x': 1}"),
        ("[[1], 2]", "edge.json: row 2: expected an array or an object, found 2"),
        ("[[1], []]", r"edge.json: row 2: column 1 (`x`:number) is missing from []"),
        ('[{"y": 1}]', r"edge.json: row 1: column 1 (`x`:number) is missing from {'y': 1}"),
        ('[[1], ["a"]]', r"edge.json: row 2: column 1 (`x`:number): 'a' is not a number"),
        ("[[true]]", "True is not a number"),
        ("[[1.0]]", "1.0 is not a number"),
        ("[[null]]", "null is not a number"),
        ("[[9223372036854775808]]", "is out of range for a 64-bit number"),
        (f"[[{'9' * 5000}]]", "edge.json: not facts: "),
        ("[" * 100_000, "edge.json: not facts: "),
    ],
)
def test_a_mistake_in_json_names_row_column_and_value(text: str, message: str) -> None:
    with pytest.raises(FactsError) as caught:
        from_json(text, N)
    assert message in str(caught.value)


def test_json_kinds_are_strict_but_a_float_may_be_written_as_an_integer() -> None:
    assert from_json("[[1], [2.5]]", F) == [(1.0,), (2.5,)]
    for text, kind in [("[[-1]]", U), ('[["1.5"]]', F), ("[[1]]", S), (f"[[1{'0' * 400}]]", F), ("[[true]]", F)]:
        with pytest.raises(FactsError, match="row 1: column 1"):
            from_json(text, kind)


def test_json_escapes_that_are_half_a_character_are_an_error() -> None:
    assert from_json(r'[["\ud83d\ude00"], ["\udc80"]]', S) == [("😀",), ("\udc80",)]
    assert from_json(r'[["\udcc3\udca9"]]', S) == [("é",)]
    with pytest.raises(FactsError, match="no UTF-8 form"):
        from_json(r'[["\ud83d"]]', S)


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────


def database(path: Path, script: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


def tables(path: Path) -> dict[str, str]:
    connection = sqlite3.connect(path)
    found = dict(connection.execute("SELECT name, type FROM sqlite_master").fetchall())
    connection.close()
    return found


@pytest.mark.parametrize("key", ["dbname", "filename"])
def test_sqlite_reads_a_table_or_view_by_position(tmp_path: Path, key: str) -> None:
    database(
        tmp_path / "g.db",
        "CREATE TABLE t (b TEXT, a INTEGER, extra); INSERT INTO t VALUES ('n', 1, 9), ('m', 2, 9);"
        "CREATE VIEW edge AS SELECT a, b, extra FROM t;",
    )
    params = {"IO": "sqlite", key: "g.db"}
    assert read_facts(relation(N, S), params, tmp_path) == [(1, "n"), (2, "m")]
    assert read_facts(relation(S, N), {**params, "name": "t"}, tmp_path) == [("n", 1), ("m", 2)]


def test_sqlite_writes_one_plain_table_and_replaces_what_was_there(tmp_path: Path) -> None:
    database(tmp_path / "edge.sqlite", "CREATE TABLE keep (x); CREATE VIEW edge AS SELECT 7 FROM keep;")
    for rows in ([(1, "a")], [(2, "b"), (3, "c")]):
        write_facts(relation(N, S), rows, {"IO": "sqlite"}, tmp_path, io.StringIO())
        assert tables(tmp_path / "edge.sqlite") == {"keep": "table", "edge": "table"}
    connection = sqlite3.connect(tmp_path / "edge.sqlite")
    assert connection.execute("SELECT y, x FROM edge WHERE x > 2").fetchall() == [("c", 3)]
    connection.close()


def test_sqlite_keeps_several_relations_in_one_database(tmp_path: Path) -> None:
    params = {"IO": "sqlite", "dbname": "all.db"}
    for name in ("a", "graph.edge", 'q"x'):
        write_facts(relation(S, name=name), [(name,)], params, tmp_path, io.StringIO())
    for name in ("a", "graph.edge", 'q"x'):
        assert read_facts(relation(S, name=name), params, tmp_path) == [(name,)]


def test_sqlite_columns_that_differ_only_in_case_are_kept_apart() -> None:
    columns = Relation("edge", (Column("x", N), Column("X", N)))
    assert round_trip(columns, [(1, 2)], {"IO": "sqlite"}) == [(1, 2)]


def test_sqlite_text_is_read_as_in_a_fact_file_and_null_as_it_is_said(tmp_path: Path) -> None:
    database(tmp_path / "edge.sqlite", "CREATE TABLE edge (x, y); INSERT INTO edge VALUES ('7', NULL), (8, 5);")
    with pytest.raises(FactsError, match=r"row 1: column 2 .* null is not a symbol; set null=VALUE"):
        read_facts(relation(N, S), {"IO": "sqlite"}, tmp_path)
    assert read_facts(relation(N, S), {"IO": "sqlite", "null": "n/a"}, tmp_path) == [(7, "n/a"), (8, "5")]
    assert read_facts(relation(F), {"IO": "sqlite"}, tmp_path) == [(7.0,), (8.0,)]


def test_a_mistake_in_sqlite_names_table_row_column_and_value(tmp_path: Path) -> None:
    database(tmp_path / "edge.sqlite", "CREATE TABLE edge (x); INSERT INTO edge VALUES (1), ('a'), (1.5), (NULL);")
    params = {"IO": "sqlite"}
    with pytest.raises(FactsError) as caught:
        read_facts(relation(N), params, tmp_path)
    expected = f"{tmp_path}/edge.sqlite: table edge: row 2: column 1 (`x`:number): 'a' is not a number"
    assert str(caught.value) == expected
    with pytest.raises(FactsError, match=r"column 2 \(`y`:number\) is missing: the table has 1 column"):
        read_facts(EDGE, params, tmp_path)
    with pytest.raises(FactsError, match="there is no table or view other"):
        read_facts(EDGE, {**params, "filename": "edge.sqlite", "name": "other"}, tmp_path)


def test_a_file_that_is_no_database_is_an_error_and_stays(tmp_path: Path) -> None:
    (tmp_path / "edge.sqlite").write_text("no database, and long enough to be looked at " * 50)
    with pytest.raises(FactsError, match="not a database"):
        read_facts(EDGE, {"IO": "sqlite"}, tmp_path)
    with pytest.raises(FactsError, match="not a database"):
        write_facts(EDGE, [], {"IO": "sqlite"}, tmp_path, io.StringIO())
    assert (tmp_path / "edge.sqlite").exists()


def test_a_table_that_cannot_be_made_leaves_no_database(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match="sqlite_edge"):
        write_facts(EDGE, [], {"IO": "sqlite", "name": "sqlite_edge"}, tmp_path, io.StringIO())
    assert list(tmp_path.iterdir()) == []


# ── laws ─────────────────────────────────────────────────────────────────────────────────────


def round_trip(of: Relation, rows: list[Row], params: Mapping[str, str]) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        named = {"filename": "facts", **params}
        write_facts(of, rows, named, Path(name), io.StringIO())
        text = {"encoding": "bytes"} if named.get("IO", "file") == "file" else {}
        return read_facts(of, {**named, **text}, Path(name))


def assert_comes_back(of: Relation, rows: list[Row], params: Mapping[str, str]) -> None:
    back = round_trip(of, rows, params)
    assert back == sorted_rows(of, rows)
    for row in back:
        assert [type(value) for value in row] == types_of(of)


@pytest.mark.parametrize("delimiter", ["\t", ",", ";;", ", ", "→", "%"])
@pytest.mark.parametrize("extra", [{}, {"headers": "true"}, {"compress": "true"}])
@settings(max_examples=40, deadline=None)
@given(case=relations_with_rows(PLAIN_SYMBOL.filter(lambda text: not set(text) & set(" →%"))))
def test_what_is_written_as_delimited_text_is_read_back(
    delimiter: str, extra: dict[str, str], case: tuple[Relation, list[Row]]
) -> None:
    assert_comes_back(*case, {"delimiter": delimiter, "headers": "false", **extra})


@pytest.mark.parametrize("delimiter", [",", "\t", ";;", ".", "-1", "n"])
@pytest.mark.parametrize("extra", [{}, {"headers": "true"}, {"compress": "true"}])
@settings(max_examples=40, deadline=None)
@given(case=relations_with_rows(ANY_SYMBOL))
def test_what_is_written_as_rfc4180_is_read_back_whatever_the_symbols(
    delimiter: str, extra: dict[str, str], case: tuple[Relation, list[Row]]
) -> None:
    params = {"rfc4180": "true", "delimiter": delimiter, "attributeNames": "h", "headers": "false", **extra}
    of, rows = case
    assume(not (rows and str(sorted_rows(of, rows)[0][0]).startswith("\x1f\udc8b")))  # the mark of gzip
    assert_comes_back(of, rows, params)


@pytest.mark.parametrize("params", [{"IO": "jsonfile"}, {"IO": "jsonfile", "format": "object"}, {"IO": "sqlite"}])
@settings(max_examples=100, deadline=None)
@given(case=relations_with_rows(ANY_SYMBOL, least=0))
def test_what_is_written_as_json_or_sqlite_is_read_back(
    params: dict[str, str], case: tuple[Relation, list[Row]]
) -> None:
    of, rows = case
    assert_comes_back(of, rows, params)


PIECES = [
    b"\n",
    b"\t",
    b",",
    b"\r",
    b"\r\n",
    b"1",
    b"23",
    b"-",
    b"+",
    b"_",
    b" ",
    b".",
    b"e5",
    b"0x1",
    b"0b1",
    b"007",
]
PIECES += [
    b"nan",
    b"inf",
    b"n",
    b"a",
    b"\xc3\xa9",
    b"\xff",
    b"\xc3",
    b"\xa9",
    b"\xd9\xa3",
    b"[",
    b"]",
    b'"',
    b'""',
]
PIECES += [b";;", b";", b"\0", b"\x1f", b"9223372036854775807", b"9223372036854775808", b"18446744073709551616"]
PIECES += [b"x", b"y", b"X,y\n", b"\xef\xbb\xbf", b"1e400", b"1e-400", b"9007199254740993", b"y\tx\n"]
PIECES += [b"1\t2\n", b"3,4\n", b'"a",', b"\x85", b"\xc2\xa0", b"\xe2\x80\xa8"]
FILES = st.one_of(st.binary(max_size=20), st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join))


def outcome(read: object, *arguments: object) -> object:
    assert callable(read)
    try:
        return read(*arguments)
    except FactsError as problem:
        return str(problem)


@settings(max_examples=1000, deadline=None)
@given(
    data=FILES,
    kinds=st.lists(st.sampled_from(list(Kind)), min_size=1, max_size=3),
    delimiter=st.sampled_from(["\t", "\t", ",", ";;", "é", "1", "-", "\n", "\r", "n"]),
    rfc4180=st.booleans(),
    headers=st.sampled_from(["true", "false", "auto", ""]),
    encoding=st.sampled_from(["", "bytes"]),
    permuted=st.booleans(),
)
@example(b"1\n2", [N], "\t", False, "", "", False)
@example(b'"\n1', [N], "\t", True, "true", "", False)
@example(b"\r", [S], "\t", False, "", "", False)
def test_the_fast_and_the_careful_reader_agree_on_every_file(
    data: bytes, kinds: list[Kind], delimiter: str, rfc4180: bool, headers: str, encoding: str, permuted: bool
) -> None:
    """The same rows, or the same error."""
    params = {"delimiter": delimiter, "rfc4180": str(rfc4180).lower(), "headers": headers, "encoding": encoding}
    params = {key: value for key, value in params.items() if value}
    if permuted:
        params["columns"] = ":".join(map(str, reversed(range(len(kinds)))))
    place = Place(relation(*kinds), params, Path())
    fast = outcome(read_delimited, place, data, "f")
    careful = outcome(careful_rows, layout_of(place, "f"), data)
    assert repr(fast) == repr(careful)


@pytest.mark.parametrize(
    ("data", "kinds", "params"),
    [
        (b"1\t-2\n3\t4\n", [N, N], {}),
        (b"007\t+2\n", [N, U], {}),
        (b"a_b\t2\textra\n", [S, N], {}),
        (b"1,1.5,nan\n", [N, F, F], {"delimiter": ","}),
        (b"\xff;;1\n", [S, N], {"delimiter": ";;", "encoding": "bytes"}),
        (b"a,1e300,0\n", [S, F, F], {"rfc4180": "true"}),
        (b"a\t1\n", [N, S], {"columns": "1:0"}),
        (b"1,2\n", [N, N], {"rfc4180": "true"}),
    ],
)
def test_ordinary_files_are_read_by_the_fast_reader(
    data: bytes, kinds: list[Kind], params: dict[str, str]
) -> None:
    layout = layout_of(Place(relation(*kinds), params, Path()), "f")
    assert bulk_rows(layout, data) == careful_rows(layout, data)


def test_io_json_is_the_screen_and_standard_input_unless_a_file_is_named(tmp_path: Path) -> None:
    screen = io.StringIO()
    write_facts(EDGE, [(3, 4), (1, 2)], {"IO": "json"}, tmp_path, screen)
    assert screen.getvalue() == "[[1, 2],\n[3, 4]]\n"
    assert list(read_facts(EDGE, {"IO": "json"}, tmp_path, stdin=io.StringIO(screen.getvalue()))) == [
        (1, 2),
        (3, 4),
    ]
    write_facts(EDGE, [(1, 2)], {"IO": "json", "filename": "e.json"}, tmp_path, screen)
    assert list(read_facts(EDGE, {"IO": "json", "filename": "e.json"}, tmp_path)) == [(1, 2)]


def test_what_leads_out_of_a_folder_follows_from_the_table_of_formats() -> None:
    """A format that is added is refused in foreign directives until its entry says `in_folder`."""
    assert {"arrow", "file", "jsonfile", "jsonl", "parquet", "stdout"} == IN_FOLDER
    for way, entry in FORMATS.items():
        assert (named_place({"IO": way}) is None) == entry.in_folder
        for parameter in (*entry.parameters.split(), *FILE_NAMES, "fact-dir", "output-dir", "no-such"):
            leads_out = named_place({parameter: "x"}) is not None
            assert leads_out == (parameter not in LAYOUT_PARAMETERS)
    assert LAYOUT_PARAMETERS.isdisjoint({*FILE_NAMES, "fact-dir", "output-dir", "dbname", "url", "query", "table"})
