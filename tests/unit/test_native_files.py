"""Fact files as words of the compiled machine, and back: the same facts, errors and bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everlog.cli import main
from everlog.core.native.words import SortedWords
from everlog.core.program import Column, Kind, Relation, Row
from everlog.core.program.values import SIGNED_MAX, SIGNED_MIN
from everlog.files.location import Place
from everlog.files.text.delimited import read_delimited, read_words, write_file
from everlog.files.text_values import FactsError

machine: Any = pytest.importorskip("everlog.core.native._machine")
FIELDS = ["0", "1", "-1", "-0", "+3", "007", "12", "", "a", "é", "b c", "\r", '"', "[", "1.5", "0x1f", "￿"]
FIELDS += [str(SIGNED_MAX), str(SIGNED_MIN), str(SIGNED_MAX + 1), str(2**64 - 1), str(2**64), "9" * 19]
PARTS = st.sampled_from([*(field.encode() for field in FIELDS), b"\xff", b"\xef\xbb\xbf"])
LINES = st.lists(PARTS, min_size=1, max_size=3).map(b"\t".join)
FILES = st.tuples(st.lists(LINES, max_size=4), st.sampled_from([b"\n", b"\r\n"]), st.booleans()).map(
    lambda drawn: drawn[1].join(drawn[0]) + drawn[1] * drawn[2]
)
KINDS = st.lists(st.sampled_from([Kind.NUMBER, Kind.UNSIGNED, Kind.SYMBOL]), min_size=1, max_size=3)


def placed(kinds: list[Kind], folder: Path, **params: str) -> Place:
    columns = tuple(Column(f"c{n}", kind) for n, kind in enumerate(kinds))
    return Place(Relation("r", columns), params, folder)


@given(FILES, KINDS)
@example(b"a\t1\nb\t2", [Kind.SYMBOL, Kind.NUMBER])
@example(b"\n\n", [Kind.SYMBOL])
def test_what_is_read_as_words_is_what_rows_are(data: bytes, kinds: list[Kind]) -> None:
    """A file with anything unusual is left to the reader of rows, which may refuse it."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        place = placed(kinds, Path(folder))
        place.path(".facts").write_bytes(data)
        words = read_words(place, machine.Symbols())
        if words is not None:
            assert set(words.rows()) == set(read_delimited(place, data, "r.facts"))


def test_ordinary_files_are_read_as_words(tmp_path: Path) -> None:
    place = placed([Kind.SYMBOL, Kind.NUMBER, Kind.UNSIGNED], tmp_path)
    lines = [f"symbol{n % 700}\t{n - 500}\t{n}\n" for n in range(5_000)] + ["é\t-9223372036854775808\t0"]
    place.path(".facts").write_text("".join(lines), encoding="utf-8")
    words = read_words(place, machine.Symbols())
    assert words is not None
    assert len(words) == 5_001
    assert set(words.rows()) == set(read_delimited(place, place.path(".facts").read_bytes(), "r.facts"))


@pytest.mark.parametrize(
    "params",
    [{"delimiter": ","}, {"headers": "true"}, {"columns": "1:0"}, {"rfc4180": "true"}, {"null": "1"}, {"encoding": "latin-1"}],
)  # fmt: skip
def test_other_formats_are_read_as_rows(tmp_path: Path, params: dict[str, str]) -> None:
    place = placed([Kind.NUMBER, Kind.NUMBER], tmp_path, **params)
    place.path(".facts").write_text("1\t2\n")
    assert read_words(place, machine.Symbols()) is None


VALUES = {
    Kind.NUMBER: st.integers(SIGNED_MIN, SIGNED_MAX),
    Kind.UNSIGNED: st.integers(0, 2**64 - 1),
    Kind.FLOAT: st.floats(allow_nan=False).map(lambda value: value + 0.0),
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
