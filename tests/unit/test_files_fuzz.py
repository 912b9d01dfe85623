"""A table of another program is read exactly, or refused: never changed."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

from attrs import frozen
from fact_rows import relation, values_of
from hypothesis import given, settings
from hypothesis import strategies as st

from everlog.core.program import Kind, Relation, Row
from everlog.files import FactsError
from everlog.files.connect import read_facts
from everlog.files.text_values import sorted_rows

# Symbols that look like numbers, like nulls, like names of columns; with marks, quotes and other
# scripts.
SYMBOLS = st.one_of(
    st.sampled_from(
        ["", " ", "x", "y", "X", "1", "NULL", "\\N", "nan", "\ufeff", "\ufeffx", '"', ",", "a,b", "é"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
NUMBERS = st.one_of(st.integers(2**53 - 2, 2**53 + 2), st.integers(-(2**70), 2**70))
EXTREMES = st.sampled_from(["1e400", "-1e400", "1e-400", "0", "1e308", "9007199254740993", "inf", "0.1"])


@frozen
class Export:
    """A table as text, and its rows by column name, of which none may be wrong."""

    of: Relation
    data: bytes
    rows: list[Row] | None  # None: it has something that no fact has
    order: list[str]  # of its columns
    has_header: bool
    parameters: dict[str, str | bool]


def _mixed_case(draw: st.DrawFn, name: str) -> str:
    return draw(st.sampled_from([name, name.upper(), f" {name}"]))


@st.composite
def exports(draw: st.DrawFn) -> Export:
    """Exports of other programs: any columns, order, quoting, encoding, nulls, marks."""
    kinds = draw(st.lists(st.sampled_from(list(Kind)), min_size=1, max_size=3))
    of = relation(*kinds)
    wanted = [column.name for column in of.columns]
    order = draw(st.permutations([*wanted, *draw(st.lists(st.sampled_from(["p", "q"]), unique=True))]))
    if draw(st.booleans()):
        order = [*wanted, *(name for name in order if name not in wanted)]
    is_odd = draw(st.booleans())
    fields: list[list[str | None]] = []
    rows: list[Row] | None = []
    for _ in range(draw(st.integers(0, 4))):
        texts: dict[str, str | None] = {name: draw(SYMBOLS) for name in order}
        row: list[int | float | str] = []
        for column in of.columns:
            text, value = _field(draw, column.kind, is_odd)
            texts[column.name] = text
            if value is None or rows is None:
                rows = None
            else:
                row.append(value)
        fields.append([texts[name] for name in order])
        if rows is not None:
            rows.append(tuple(row))
    has_header = draw(st.booleans())
    out = io.StringIO()
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    writer = csv.writer(out, quoting=quoting, lineterminator=draw(st.sampled_from(["\n", "\r\n"])))
    if has_header:
        writer.writerow([_mixed_case(draw, name) for name in order])
    for line in fields:
        out.write(_line(line, quoting == csv.QUOTE_ALL) + "\n")
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]))
    try:
        data = out.getvalue().encode(encoding)
    except UnicodeEncodeError:
        data, encoding = out.getvalue().encode(), "utf-8"
    parameters: dict[str, str | bool] = {}
    if draw(st.booleans()):
        parameters["headers"] = has_header
    if draw(st.booleans()):
        parameters["encoding"] = encoding
    return Export(of, data, rows, list(order), has_header, parameters)


def _field(draw: st.DrawFn, kind: Kind, is_odd: bool) -> tuple[str | None, int | float | str | None]:
    """The text of a field, and its value; None where it is none."""
    match draw(st.integers(0, 9)) if is_odd else 9, kind:
        case 0, _:
            return None, None
        case (1, Kind.FLOAT):
            text = draw(EXTREMES)
            exact = {"0": 0.0, "1e308": 1e308, "inf": float("inf"), "0.1": 0.1}
            return text, exact.get(text)
        case (2 | 3, Kind.FLOAT):
            number = draw(NUMBERS)
            return str(number), float(number) if float(number) == number else None
        case (1, Kind.NUMBER | Kind.UNSIGNED):
            number = draw(NUMBERS)
            low, high = (0, 2**64) if kind is Kind.UNSIGNED else (-(2**63), 2**63)
            return str(number), number if low <= number < high else None
    value = draw(values_of(kind, SYMBOLS))
    return (str(value) if isinstance(value, str) else repr(value)), value


def _line(line: list[str | None], quote_all: bool) -> str:
    """A line of fields, with quotes where needed or everywhere; a null has none."""
    texts = []
    for field in line:
        bare = bool(field) and not quote_all and not set(field or "") & set(',"\r\n\ufeff')
        texts.append("" if field is None else field if bare else '"%s"' % field.replace('"', '""'))
    return ",".join(texts)


@settings(max_examples=400)
@given(export=exports())
def test_a_table_of_others_is_read_exactly_or_refused(export: Export) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edge.csv"
        path.write_bytes(export.data)
        try:
            found = read_facts(export.of, path, **export.parameters)
        except FactsError:
            return
    assert export.rows is not None
    wanted = [column.name for column in export.of.columns]
    if not export.has_header and (export.order[: len(wanted)] != wanted or _looks_like_header(export, wanted)):
        return  # ambiguous
    assert _texts(export.of, found) == _texts(export.of, export.rows)


def _looks_like_header(export: Export, wanted: list[str]) -> bool:
    """Whether the first fact is the column names, and no parameter says it is a fact."""
    first = {str(value).strip().strip('"').strip().lower() for row in export.rows or [] for value in row}
    return "headers" not in export.parameters and first >= set(wanted)


def _texts(of: Relation, rows: list[Row]) -> list[str]:
    """Rows for comparison: NaN is NaN, and -0.0 is 0.0."""
    return [repr(tuple(v + 0.0 if isinstance(v, float) else v for v in row)) for row in sorted_rows(of, rows)]


def test_most_ordinary_tables_are_read(tmp_path: Path) -> None:
    """Else the property above would hold of a reader that refuses everything."""
    of = relation(Kind.SYMBOL, Kind.FLOAT)
    path = tmp_path / "edge.csv"
    for text in ("x,y\na,1\n", "\ufeffY,p,X\n1,?,a\n", '"y","x"\r\n"1","a"\r\n', "a,1.0\n", "x\ty\na\t1\n"):
        path.write_text(text, newline="")
        assert read_facts(of, path) == [("a", 1.0)]
