"""Delimited text to Arrow columns and back, a piece of a file at a time.

Arrow's reader splits a piece into fields in C, all of them bytes.  To test whether a column of
numbers has only digits, delete all digits from its bytes: nothing may be left.  Then one cast
converts it.  As in `bulk`, the careful reader handles everything unusual and finds the rows or the
error, so a file means the same in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from everlog.core.program import Kind
from everlog.core.program.fact_rows import EXACT, shown
from everlog.core.program.values import encoded
from everlog.files.text.delimited import careful_rows, lines_text
from everlog.files.text.encodings import BYTES, MARK
from everlog.files.text.layout import Layout
from everlog.files.text_values import FactsError, parse_float
from everlog.spark_backend.column_types import arrow_table, names_of, python_rows

if TYPE_CHECKING:
    import pyarrow as pa

_ALPHABETS = {Kind.NUMBER: b"0123456789-", Kind.UNSIGNED: b"0123456789", Kind.FLOAT: b"0123456789-.eE"}


def piece_table(layout: Layout, data: bytes, first_line: int | None) -> pa.Table:
    """The facts of some whole lines of a file, without its header.

    `first_line` is the number of the first line, if known.  Duplicates stay.
    """
    kinds = layout.kinds
    if not kinds:
        return arrow_table([()] if data else [], kinds)
    if data and not data.endswith(b"\n"):
        data += b"\n"
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    columns = _columns(layout, data)
    if columns is not None:
        import pyarrow as pa

        return pa.table(columns, names_of(len(kinds)))
    try:
        # a reader drops one mark: this one, not the one that a symbol begins with
        return arrow_table(careful_rows(evolve(layout, headers="false"), MARK + data), kinds)
    except FactsError as problem:
        raise _placed(layout, data, problem, first_line) from None


def _columns(layout: Layout, data: bytes) -> list[Any] | None:
    """The columns as Spark holds them, or None if the careful reader is needed."""
    import pyarrow as pa
    from pyarrow import csv

    if not data or len(layout.delimiter) != 1 or not layout.delimiter.isascii() or b"\r" in data:
        return None
    if data.startswith(MARK):  # Arrow would drop the mark
        return None
    if (layout.rfc4180 and b'"' in data) or (layout.brackets and (b"[" in data or b"]" in data)):
        return None
    width = data[: data.find(b"\n")].count(layout.delimiter.encode()) + 1
    if width < layout.width or width != (layout.fields or width):
        return None
    names = [f"f{n}" for n in range(width)]
    wanted = list(dict.fromkeys(f"f{n}" for n in layout.sources))
    try:
        if layout.encoding != BYTES and not data.isascii():
            data.decode()  # UnicodeDecodeError is a ValueError
        table = csv.read_csv(
            pa.BufferReader(data),
            csv.ReadOptions(column_names=names, use_threads=False, block_size=max(1 << 20, len(data) + 1)),
            csv.ParseOptions(
                delimiter=layout.delimiter, quote_char=False, escape_char=False, ignore_empty_lines=False
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                include_columns=wanted,
                null_values=[],
                strings_can_be_null=False,
                check_utf8=False,
            ),
        )
        by_name = {name: table.column(name).combine_chunks() for name in wanted}
        columns = [
            _converted(by_name[f"f{source}"], kind, layout.nulls is not None)
            for source, kind in zip(layout.sources, layout.kinds, strict=True)
        ]
    except (pa.ArrowInvalid, ValueError):
        return None
    return None if any(column is None for column in columns) else columns


def _converted(column: Any, kind: Kind, has_nulls: bool) -> Any:
    """A converted column of bytes, or None; ArrowInvalid if a field is empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind is Kind.SYMBOL:
        return None if has_nulls and pc.any(pc.equal(pc.binary_length(column), 0)).as_py() else column
    fields = column.buffers()[2]
    if fields is None or bytes(fields).translate(None, _ALPHABETS[kind]):
        return None
    text = column.cast(pa.string())
    if kind is Kind.FLOAT:
        floats = text.cast(pa.float64())
        size = pc.abs(floats)
        unsure = pc.or_(pc.greater_equal(size, float(EXACT)), pc.equal(size, 0.0))
        for numeral in pc.unique(text.filter(unsure)).to_pylist():
            parse_float(numeral)  # raises ValueError if it is not exactly a float
        return pc.add(floats, 0.0)  # -0.0 becomes 0.0
    if kind is Kind.UNSIGNED:
        return text.cast(pa.uint64()).cast(pa.int64(), safe=False)
    return text.cast(pa.int64())


def _placed(layout: Layout, data: bytes, problem: FactsError, first_line: int | None) -> FactsError:
    """The error with its line in the whole file, or else with the line's text."""
    start = f"{layout.file}:"
    number, _, what = str(problem).removeprefix(start).partition(": ")
    if not str(problem).startswith(start) or not number.isdigit():
        return problem
    if first_line is not None:
        return FactsError(f"{start}{int(number) - 1 + first_line}: {what}")
    line = data.split(b"\n")[int(number) - 1].decode("utf-8", "surrogateescape")
    return FactsError(f"{start} {what}, in the line {shown(line)}")


def piece_text(layout: Layout, columns: Sequence[Any], count: int) -> bytes:
    """The facts as lines, in the given order, without the last newline."""
    return encoded(lines_text(layout, list(python_rows(columns, layout.kinds, count)))).removesuffix(b"\n")
