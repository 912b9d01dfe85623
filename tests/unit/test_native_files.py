"""Fact files as words of the compiled machine, and back: the same facts, errors and bytes."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everlog.cli import main
from everlog.core.native.words import SortedWords
from everlog.core.program import Column, Kind, Relation, Row, Value
from everlog.core.program.values import NAN, SIGNED_MAX, SIGNED_MIN
from everlog.files import read_facts, write_facts
from everlog.files.formats import FORMATS
from everlog.files.location import Place
from everlog.files.text.delimited import read_delimited, read_words, write_file
from everlog.files.text_values import FactsError, parse_float

machine: Any = pytest.importorskip("everlog.core.native._machine")
FIELDS = ["0", "1", "-1", "-0", "+3", "007", "12", "", "a", "é", "b c", "\r", '"', "[", "1.5", "0x1f", "￿"]
FIELDS += [
    "0.5",
    "-0.0",
    "1e3",
    "-1.5E-3",
    "1e400",
    "1e-400",
    "9007199254740993",
    "0.1234567890123456789",
    "1.",
    ".5",
]
FIELDS += ["1e", "--1", "1.2.3", "nan", "-inf", "123456789012345.6", "4503599627370496.5", "1-2", "5e-324"]
FIELDS += [str(SIGNED_MAX), str(SIGNED_MIN), str(SIGNED_MAX + 1), str(2**64 - 1), str(2**64), "9" * 19]
PARTS = st.sampled_from([*(field.encode() for field in FIELDS), b"\xff", b"\xef\xbb\xbf"])
LINES = st.lists(PARTS, min_size=1, max_size=3).map(b"\t".join)
FILES = st.tuples(st.lists(LINES, max_size=4), st.sampled_from([b"\n", b"\r\n"]), st.booleans()).map(
    lambda drawn: drawn[1].join(drawn[0]) + drawn[1] * drawn[2]
)
KINDS = st.lists(st.sampled_from(list(Kind)), min_size=1, max_size=3)


def placed(kinds: list[Kind], folder: Path, **params: str) -> Place:
    columns = tuple(Column(f"c{n}", kind) for n, kind in enumerate(kinds))
    return Place(Relation("r", columns), params, folder)


PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "delimiter": st.sampled_from([",", ";", "1", '"', "\r"]),
        "headers": st.sampled_from(["true", "false", "auto"]),
        "rfc4180": st.sampled_from(["true", "false"]),
        "null": st.sampled_from(["0", "", "x"]),
        "columns": st.sampled_from(["0", "1", "1:0", "0:2", "0:0", "2:0:1"]),
    },
)
CSV = st.lists(st.sampled_from(["1", "2", "a", "", '"a"', '"b,c"', '"d""e"', '"1"', '"', "c1", "C0", "[1, 2]", "-0.5"]), min_size=1, max_size=3)  # fmt: skip
CSV_FILES = st.lists(CSV.map(",".join), max_size=5).map(
    lambda lines: "".join(f"{line}\n" for line in lines).encode()
)


@given(FILES | CSV_FILES, KINDS, PARAMS)
@example(b"a\t1\nb\t2", [Kind.SYMBOL, Kind.NUMBER], {})
@example(b"\n\n", [Kind.SYMBOL], {})
@example(b"1.e5", [Kind.FLOAT], {})
@example(b'c1,c0\n1,"a ""b"" c"\n2,\n', [Kind.SYMBOL, Kind.NUMBER], {"rfc4180": "true", "headers": "true"})
@example(b'"c\n0"\n1\n', [Kind.SYMBOL], {"rfc4180": "true", "headers": "true"})
@example(b'"a",1\n', [Kind.NUMBER], {"delimiter": ";", "rfc4180": "true"})
def test_what_is_read_as_words_is_what_rows_are(data: bytes, kinds: list[Kind], params: dict[str, str]) -> None:
    """A file with anything unusual is left to the reader of rows, which may refuse it."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        place = placed(kinds, Path(folder), **params)
        path = place.path(".facts")
        path.write_bytes(data)
        as_words = outcome(lambda: read_words(place, machine.Symbols()))
        assert as_words in (None, outcome(lambda: read_delimited(place, data, str(path))))


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["", "%.3f", "%.15g", "%e"]))
@example(9007199254740992.0, "%.3f")
def test_a_decimal_is_the_float_that_it_is_for_rows(value: float, form: str) -> None:
    text = form % value if form else repr(value)
    words = machine.Relation((2,), machine.Symbols())
    if words.parse(f"{text}\n".encode(), "\t"):
        assert [repr(row) for row in words.rows()] == [repr((parse_float(text),))]


def test_ordinary_decimals_are_read_as_words() -> None:
    words = machine.Relation((2, 2), machine.Symbols())
    assert words.parse(b"0.1\t-2\n1e-7\t123456789.25\n-0.0\t3.141592653589793\n", "\t")
    assert list(words.rows()) == [(0.1, -2.0), (1e-7, 123456789.25), (0.0, 3.141592653589793)]


def test_ordinary_files_are_read_as_words(tmp_path: Path) -> None:
    place = placed([Kind.SYMBOL, Kind.NUMBER, Kind.UNSIGNED], tmp_path)
    lines = [f"symbol{n % 700}\t{n - 500}\t{n}\n" for n in range(5_000)] + ["é\t-9223372036854775808\t0"]
    place.path(".facts").write_text("".join(lines), encoding="utf-8")
    words = read_words(place, machine.Symbols())
    assert words is not None
    assert len(words) == 5_001
    assert set(words.rows()) == set(read_delimited(place, place.path(".facts").read_bytes(), "r.facts"))


@pytest.mark.parametrize("params", [{"delimiter": ", "}, {"columns": "1:1"}, {"encoding": "latin-1"}])
def test_other_formats_are_read_as_rows(tmp_path: Path, params: dict[str, str]) -> None:
    place = placed([Kind.NUMBER, Kind.NUMBER], tmp_path, **params)
    place.path(".facts").write_text("1\t2\n")
    assert read_words(place, machine.Symbols()) is None


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"delimiter": ","}, "a,1\nb,-2\n"),
        ({"columns": "2:1"}, "x\t1\ta\ny\t-2\tb\n"),
        ({"headers": "true"}, "c1\tother\tC0\n1\t\ta\n-2\t\tb\n"),
        ({"headers": "auto", "delimiter": ";"}, "c0;c1\na;1\nb;-2\n"),
        ({"rfc4180": "true"}, '"a",1\nb,"-2"\n'),
        ({"rfc4180": "true", "headers": "true"}, '"C1",more,c0\n1,"x ""y"",\n",a\n-2,z,"b"\n'),
        ({"delimiter": ",", "null": "-2"}, "a,1\nb,\n"),
    ],
)
def test_headers_quotes_and_nulls_are_read_as_words(tmp_path: Path, params: dict[str, str], text: str) -> None:
    place = placed([Kind.SYMBOL, Kind.NUMBER], tmp_path, **params)
    place.path(".facts").write_text(text)
    words = read_words(place, machine.Symbols())
    assert words is not None
    assert sorted(words.rows()) == [("a", 1), ("b", -2)]


VALUES = {
    Kind.NUMBER: st.integers(SIGNED_MIN, SIGNED_MAX),
    Kind.UNSIGNED: st.integers(0, 2**64 - 1),
    Kind.FLOAT: st.floats().map(lambda value: value + 0.0 if value == value else NAN),
    Kind.SYMBOL: st.sampled_from(["", "a", "é", "\ufeff", "\ufeffa", "\udcff", "x\ty", "long " * 50]),
}


@given(
    st.data(),
    st.lists(st.sampled_from(list(Kind)), max_size=3),
    st.sampled_from(["\t", ",", " | "]),
    st.booleans(),
)
def test_what_is_written_is_what_rows_are(
    data: st.DataObject, kinds: list[Kind], delimiter: str, has_header: bool
) -> None:
    import tempfile

    rows: list[Row] = data.draw(st.lists(st.tuples(*(VALUES[kind] for kind in kinds)), max_size=6))
    words = machine.Relation(tuple(list(Kind).index(kind) for kind in kinds), machine.Symbols())
    words.fill(rows)
    written = []
    for content in (SortedWords(words), set(rows)):
        with tempfile.TemporaryDirectory() as folder:
            place = placed(kinds, Path(folder), delimiter=delimiter, headers=str(has_header).lower())
            write_file(place, content, io.StringIO())
            written.append(place.path(".csv").read_bytes())
    assert written[0] == written[1]


def test_large_outputs_are_written_in_chunks(tmp_path: Path) -> None:
    words = machine.Relation((0, 3), machine.Symbols())
    words.fill([(n, "x" * (n % 3000)) for n in range(2_000)] + [(5_000, "y" * 3_000_000)])
    chunks = list(words.lines("\t"))
    assert len(chunks) > 2
    assert b"".join(chunks).decode() == "".join(f"{number}\t{text}\n" for number, text in sorted(words.rows()))


@pytest.mark.parametrize("facts", ["1\t2\n2\t3\n", "1\t2\n2\n", "1\t2\n2\tx\n", None])
def test_a_run_says_and_writes_the_same_on_both_machines(
    tmp_path: Path, facts: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "p.dl"
    program.write_text(
        ".decl e(x:number, y:number) .input e .output e\n"
        ".decl p(x:number, y:number) .output p  p(y, x) :- e(x, y), !e(y, x).  .printsize p"
    )
    if facts is not None:
        (tmp_path / "e.facts").write_text(facts)
    seen = []
    for pure in ("", "1"):
        monkeypatch.setenv("EVERLOG_PURE", pure)
        out = tmp_path / f"out{pure}"
        out.mkdir()
        status = main(["run", str(program), "-F", str(tmp_path), "-D", str(out)])
        told = capsys.readouterr()
        seen.append((status, told.out, told.err, {path.name: path.read_bytes() for path in out.iterdir()}))
    assert seen[0] == seen[1]
    assert seen[0][0] == (0 if facts == "1\t2\n2\t3\n" else 1)


def test_a_wrong_file_is_an_error(tmp_path: Path) -> None:
    place = placed([Kind.NUMBER], tmp_path)
    place.path(".facts").write_text("x\n")
    assert read_words(place, machine.Symbols()) is None
    with pytest.raises(FactsError):
        read_delimited(place, b"x\n", "r.facts")


# ── columns ──────────────────────────────────────────────────────────────────────────────────

SYMBOLS = st.sampled_from(["", "a", "é", "x\ty", "long " * 50])
ARROW_TYPES: dict[Kind, list[str]] = {
    Kind.NUMBER: ["int64", "int8", "uint64", "uint16", "dictionary<int32>", "decimal", "double"],
    Kind.UNSIGNED: ["uint64", "int64", "int8", "dictionary<int32>", "string"],
    Kind.FLOAT: ["double", "float", "halffloat", "int64", "dictionary<double>"],
    Kind.SYMBOL: ["string", "large_string", "binary", "string_view", "dictionary<string>", "int64"],
}


def arrow_array(kind: Kind, name: str, values: list[Value | None]) -> Any:
    """An array of a type that may hold values of a kind, or not; None if it cannot hold these."""
    import pyarrow as pa

    plain = name.removeprefix("dictionary<").removesuffix(">")
    type_ = pa.decimal128(38) if plain == "decimal" else getattr(pa, {"double": "float64", "float": "float32"}.get(plain, plain).replace("halffloat", "float16"))()  # fmt: skip
    try:
        array = pa.array(values, {Kind.SYMBOL: pa.string(), Kind.FLOAT: pa.float64()}.get(kind)).cast(type_)
    except (pa.ArrowException, OverflowError):
        return None
    return array.dictionary_encode() if plain != name else array


@given(
    st.data(), st.lists(st.sampled_from(list(Kind)), min_size=1, max_size=3), st.sampled_from(["parquet", "arrow"])
)
def test_columns_are_read_as_what_rows_are(data: st.DataObject, kinds: list[Kind], way: str) -> None:
    """What has nulls, decimals or other unusual types is left to the reader of rows, or refused."""
    import tempfile

    pa = pytest.importorskip("pyarrow")
    few = {**VALUES, Kind.SYMBOL: SYMBOLS, Kind.FLOAT: st.sampled_from([0.0, 0.5, NAN, float("inf"), 3.0])}
    size = data.draw(st.integers(0, 5))
    columns = {}
    for number, kind in enumerate(kinds):
        value = st.one_of(st.integers(0, 100) if kind in (Kind.NUMBER, Kind.UNSIGNED) else few[kind], few[kind])
        held = data.draw(st.lists(st.one_of(value, value, value, st.none()), min_size=size, max_size=size))
        array = arrow_array(kind, data.draw(st.sampled_from(ARROW_TYPES[kind])), held)
        columns[f"c{number}"] = pa.array(held) if array is None else array
    with tempfile.TemporaryDirectory() as folder:
        place = placed(kinds, Path(folder), IO=way, filename="r")
        table = pa.table(columns)
        if way == "parquet":
            pq = pytest.importorskip("pyarrow.parquet")
            try:
                pq.write_table(table, place.path(""), row_group_size=2)
            except pa.ArrowException:  # no such type in Parquet
                return
        else:
            with pa.ipc.new_file(str(place.path("")), table.schema) as file:
                file.write_table(table, max_chunksize=2)
        rows = outcome(lambda: read_facts(place.relation, place.params, Path(folder)))
        read = FORMATS[way].words
        assert read is not None
        words = outcome(lambda: read(place, machine.Symbols()))
        if words is not None:
            assert words == rows


def outcome(read: Callable[[], Any]) -> set[str] | str | None:
    """The rows, as text: so that NaN equals itself; or the error."""
    try:
        found = read()
    except FactsError as problem:
        return str(problem)
    return None if found is None else set(map(repr, found))


@pytest.mark.parametrize("way", ["parquet", "arrow"])
def test_ordinary_columns_are_read_as_words(tmp_path: Path, way: str) -> None:
    pytest.importorskip("pyarrow")
    kinds = [Kind.SYMBOL, Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT]
    place = placed(kinds, tmp_path, IO=way, filename="r")
    rows: set[Row] = {(f"é{n % 700}", n - 500, 2**64 - 1 - n, n / 8) for n in range(5_000)} | {("", 0, 0, NAN)}
    write_facts(place.relation, rows, place.params, tmp_path, io.StringIO())
    read = FORMATS[way].words
    assert read is not None
    words = read(place, machine.Symbols())
    assert words is not None
    assert set(words.rows()) == rows


@given(st.data(), st.lists(st.sampled_from(list(Kind)), max_size=3), st.sampled_from(["parquet", "arrow"]))
def test_columns_are_written_as_rows_are(data: st.DataObject, kinds: list[Kind], way: str) -> None:
    import tempfile

    pytest.importorskip("pyarrow")
    rows: list[Row] = data.draw(st.lists(st.tuples(*(VALUES[kind] for kind in kinds)), max_size=6))
    words = machine.Relation(tuple(list(Kind).index(kind) for kind in kinds), machine.Symbols())
    words.fill(rows)
    written = []
    for content in (SortedWords(words), set(rows)):
        with tempfile.TemporaryDirectory() as folder:
            place = placed(kinds, Path(folder), IO=way, filename="r")
            write_facts(place.relation, content, place.params, Path(folder), io.StringIO())
            written.append(table_in(place.path("")))
    assert written[0] == written[1]


def table_in(path: Path) -> str:
    """The schema and the rows of a file, as text: so that NaN equals itself."""
    if path.read_bytes().startswith(b"PAR1"):
        table = pytest.importorskip("pyarrow.parquet").read_table(path)
    else:
        table = pytest.importorskip("pyarrow.feather").read_table(path)
    return f"{table.schema.remove_metadata()} {table.to_pylist()}"


def test_large_outputs_are_written_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everlog.files.typed.columnar.PART", 700)
    words = machine.Relation((0, 3), machine.Symbols())
    words.fill([(n, f"s{n % 37}") for n in range(2_000)])
    place = placed([Kind.NUMBER, Kind.SYMBOL], tmp_path, IO="parquet", filename="r")
    write_facts(place.relation, SortedWords(words), place.params, tmp_path, io.StringIO())
    assert read_facts(place.relation, place.params, tmp_path) == sorted(words.rows())
