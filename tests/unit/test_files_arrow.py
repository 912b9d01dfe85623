"""Delimited text to Arrow columns: the fast and the careful reader agree."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from everlog.core.program import Column, Kind, Row
from everlog.files.text.delimited import careful_rows
from everlog.files.text.encodings import MARK
from everlog.files.text.layout import Layout
from everlog.files.text_values import FactsError

pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra `spark`)")

from everlog.files.typed.arrow import _columns, piece_table, piece_text
from everlog.spark_backend.column_types import python_rows

NUMBERS = [
    "0",
    "-1",
    "007",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "5 ",
    " 5",
    "+5",
]
NUMBERS += ["", "-", "--1", "1_0", "0x10", "18446744073709551615", "18446744073709551616", "1.0", "٣"]
FLOATS = [
    "0.5",
    "-0.0",
    "1e3",
    "1E400",
    "1e-400",
    "9007199254740992",
    "9007199254740993",
    "1e20",
    ".5",
    "5.",
    "inf",
    "-nan",
    "0x1p3",
    "e",
    "1e",
    " 1",
    "1 ",
    "",
    "-",
]
TEXTS = ["\ufeff", "\ufeffa", "", "a", "naïve", "a b", '"q"', "x[1", "y]", "\x00", "NULL", "\ud83d\ude00"]
FIELDS = st.sampled_from(NUMBERS + FLOATS + TEXTS)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    kinds = draw(st.lists(st.sampled_from(list(Kind)), min_size=1, max_size=3))
    columns = tuple(Column(f"c{n}", kind) for n, kind in enumerate(kinds))
    sources = tuple(draw(st.permutations(range(len(kinds)))))
    return Layout(
        "f",
        columns,
        sources,
        draw(st.sampled_from(["\t", ",", ";;", " "])),
        draw(st.booleans()),
        "false",
        draw(st.sampled_from(["utf-8", "bytes"])),
        draw(st.sampled_from([None, (None,) * len(kinds)])),
        fields=draw(st.sampled_from([None, len(kinds)])),
    )


@example(Layout("f", (Column("x", Kind.FLOAT),), (0,), "\t", False, ""), [["-0.0"]], "\n")
@example(Layout("f", (Column("x", Kind.FLOAT),), (0,), ";;", False, ""), [["-0.0"], ["inf"]], "\n")
@given(layouts(), st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_a_piece_means_what_the_careful_reader_says(layout: Layout, rows: list[list[str]], end: str) -> None:
    text = "".join(layout.delimiter.join(fields) + end for fields in rows)
    data = text.encode("utf-8", "surrogatepass").replace("naïve".encode(), b"\xff\xfe")

    def read_fast() -> list[Row]:
        table = piece_table(layout, data, 1)
        return list(python_rows(table.columns, layout.kinds, table.num_rows))

    assert outcome(read_fast) == outcome(lambda: careful_rows(layout, MARK + data))  # Spark has dropped the mark


def outcome(read: Callable[[], list[Row]]) -> str:
    """The rows, or the error, as text: so that NaN equals itself."""
    try:
        return repr(read())
    except FactsError as problem:
        return f"error: {problem}"


def test_ordinary_lines_take_the_fast_way() -> None:
    """Else the test above would compare the careful reader with itself."""
    kinds = (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL)
    columns = tuple(Column(f"c{n}", kind) for n, kind in enumerate(kinds))
    layout = Layout("f", columns, (0, 1, 2, 3), "\t", False, "")
    data = b"-1\t18446744073709551615\t2.5e3\t\xffa\n2\t3\t-0.0\t\n"
    assert _columns(layout, data) is None
    layout = evolve(layout, encoding="bytes")
    found = _columns(layout, data)
    assert found is not None
    rows = list(python_rows(found, kinds, 2))
    assert repr(rows) == repr([(-1, 2**64 - 1, 2500.0, "\udcffa"), (2, 3, 0.0, "")])
    assert piece_text(layout, found, 2) == b"-1\t18446744073709551615\t2500\t\xffa\n2\t3\t0\t"


def test_a_mistake_has_its_line_or_its_text() -> None:
    layout = Layout("f", (Column("x", Kind.NUMBER),), (0,), "\t", False, "")
    with pytest.raises(FactsError, match=r"^f:12: column 1 \(`x`:number\): 'no' is not a number$"):
        piece_table(layout, b"1\nno\n", 11)
    with pytest.raises(FactsError, match=r"^f: column 1 .* is not a number, in the line 'no'$"):
        piece_table(layout, b"1\nno\n", None)
