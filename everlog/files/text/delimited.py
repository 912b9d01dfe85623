"""Delimited text: one line per fact, by default without quotes and header.

There are two readers.  This one goes line by line, knows every rule, and reports the exact place of
an error; `bulk` reads ordinary files several times faster and gives up on all others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, TextIO

from everlog.core.native.words import SortedRows, SortedWords, empty_words
from everlog.core.program import Kind, Row
from everlog.core.program.fact_rows import shown
from everlog.core.program.values import decoded, float_text
from everlog.files.location import (
    Place,
    Reading,
    read_bytes,
    read_stream,
    write_chunks,
    write_stream,
    write_text,
)
from everlog.files.rejects import BadRow, Refuse, abort
from everlog.files.text.bulk import bulk_rows
from everlog.files.text.encodings import BYTES, MARK, is_utf8, utf8_bytes, wrong_byte
from everlog.files.text.headers import looks_at_first, settled
from everlog.files.text.layout import Fields, Layout, layout_of
from everlog.files.text.rfc4180 import quoted_records, quoted_symbol, quoter
from everlog.files.text_values import FactsError, encoded_text, sorted_rows
from everlog.files.zipped import method_of

if TYPE_CHECKING:
    from everlog.core.native._machine import Relation as Words
    from everlog.core.native._machine import Symbols

_PART = 20_000  # rows that are written at once

# ── in ───────────────────────────────────────────────────────────────────────────────────────


def read_file(reading: Reading) -> list[Row]:
    """Reader for `IO=file`."""
    path = reading.place.path(".facts")
    data = read_bytes(reading.place, path, reading.missing_ok)
    return [] if data is None else read_delimited(reading.place, data, str(path), reading.refuse)


def read_words(place: Place, symbols: Symbols) -> Words | None:
    """An ordinary file of `IO=file` as a relation of the compiled machine.

    None if the file is missing or has anything unusual: then `read_file` finds the rows, or the
    error.
    """
    path = place.path(".facts")
    layout = layout_of(place, str(path))
    if not is_utf8(layout.encoding) or not _cuts_any_value(layout.delimiter):
        return None
    data = read_bytes(place, path, missing_ok=True)
    if data is None or (layout.brackets and (b"[" in data or b"]" in data)):
        return None
    data = utf8_bytes(data, layout.encoding, str(path))
    quoted = _quoted(layout, data)
    if quoted and b"\r" in data:
        return None
    data = _lines(data)
    first = data[: data.find(b"\n")]
    if not data or not layout.columns or first.count(b'"') % 2:
        return None  # a quoted header may go on in the next line
    layout, data = _below_header(layout, data)
    targets = _targets(layout, layout.fields or len(_first_fields(layout, first)))
    found = empty_words(place.relation, symbols)
    if targets is None or not found.parse(data, layout.delimiter, targets, quoted, layout.nulls):
        return None
    found.seal()
    return found


def _cuts_any_value(delimiter: str) -> bool:
    """Whether it is one byte that no number contains."""
    is_one_byte = len(delimiter) == 1 and delimiter.isascii()
    return is_one_byte and not delimiter.isalnum() and delimiter not in "+-.\r\n"


def _targets(layout: Layout, width: int) -> tuple[int, ...] | None:
    """For each of so many fields its column, or -1; None if a column has no field of its own."""
    if width < layout.width or len(set(layout.sources)) < len(layout.sources):
        return None
    column = {source: number for number, source in enumerate(layout.sources)}
    return tuple(column.get(field, -1) for field in range(width))


def read_stdin(reading: Reading) -> list[Row]:
    """Reader for `IO=stdin`."""
    return read_delimited(reading.place, read_stream(reading.stdin), "<stdin>", reading.refuse)


def read_delimited(place: Place, data: bytes, file: str, refuse: Refuse = abort) -> list[Row]:
    layout = layout_of(place, file)
    rows = _fast_rows(layout, data)
    return careful_rows(layout, data, refuse) if rows is None else rows


def _fast_rows(layout: Layout, data: bytes) -> list[Row] | None:
    """The rows of an ordinary file, or None."""
    data = _lines(utf8_bytes(data, layout.encoding, layout.file))
    if _quoted(layout, data):
        return None
    return bulk_rows(*_below_header(layout, data))


def _below_header(layout: Layout, data: bytes) -> tuple[Layout, bytes]:
    """The layout as the first line settles it, and the lines below it if it is a header."""
    if not looks_at_first(layout) or not data or not layout.columns:
        return layout, data
    first = data[: data.find(b"\n")]
    layout, is_header = settled(layout, _first_fields(layout, first), b'"' in first)
    return layout, data[len(first) + 1 :] if is_header else data


def first_line_settled(layout: Layout, first: bytes) -> tuple[Layout, bool]:
    """The layout of the following lines, and whether the first line is a header.

    `first` is the first line without its newline.
    """
    if not looks_at_first(layout) or not layout.columns:
        return layout, layout.headers == "true"
    return settled(layout, _first_fields(layout, first.removesuffix(b"\r")), b'"' in first)


def _first_fields(layout: Layout, line: bytes) -> list[str | None]:
    text = decoded(line)
    if _quoted(layout, line):
        _, fields = next(quoted_records(layout, text))
    else:
        fields = _splitter(layout)(1, text)
    if layout.encoding != BYTES and not line.isascii():
        fields = _checked(layout, 1, fields)
    if isinstance(fields, BadRow):
        raise FactsError(str(fields))
    return fields


def careful_rows(layout: Layout, data: bytes, refuse: Refuse = abort) -> list[Row]:
    """The rows of a file; `refuse` receives wrong lines."""
    data = utf8_bytes(data, layout.encoding, layout.file)
    if not layout.columns:
        lines = _lines(data)
        return [()] if lines[lines.find(b"\n") + 1 if layout.headers == "true" else 0 :] else []
    records = _records(layout, data)
    if looks_at_first(layout):
        first = next(records, None)
        if first is not None:
            if isinstance(first[1], BadRow):
                raise FactsError(str(first[1]))
            layout, is_header = settled(layout, first[1], b'"' in data[: data.find(b"\n")])
            records = records if is_header else chain([first], records)
    rows: list[Row] = []
    plan, width = layout.parsers, layout.fields
    for line, fields in records:
        if isinstance(fields, BadRow):
            refuse(fields)
            continue
        try:
            row = tuple([parse(fields[source]) for source, parse in plan])
        except (IndexError, ValueError):
            refuse(_mistake(layout, line, fields))
            continue
        if width is not None and len(fields) != width:
            refuse(layout.bad_row(line, f"the line has {len(fields)} fields, but the header {width}", fields))
        else:
            rows.append(row)
    return rows


def _mistake(layout: Layout, line: int, fields: Fields) -> BadRow:
    """The error in a line: its first missing column, else its first wrong one."""
    for index, source in enumerate(layout.sources):
        if source >= len(fields):
            text = layout.delimiter.join(field or "" for field in fields)
            what = f" is missing from {shown(text)}"
            if len(fields) == 1 and any(mark in text for mark in "\t,;|"):
                what += f": columns are separated by {shown(layout.delimiter)}"
            return layout.bad_row(line, layout.label(index) + what, fields)
    for index, (source, parse) in enumerate(layout.parsers):
        try:
            parse(fields[source])
        except ValueError as problem:
            return layout.bad_row(line, f"{layout.label(index)}: {problem}", fields)
    raise AssertionError("a line that was refused has an error")


def _records(layout: Layout, data: bytes) -> Iterator[tuple[int, Fields | BadRow]]:
    """The fields of each line with its number, or the reason why it has none."""
    records = _cut_records(layout, data)
    if layout.encoding == BYTES or _is_utf8(data):
        return records
    return ((line, _checked(layout, line, fields)) for line, fields in records)


def _checked(layout: Layout, line: int, fields: Fields | BadRow) -> Fields | BadRow:
    """The fields of a line; a bad row if a byte is not UTF-8."""
    if isinstance(fields, BadRow):
        return fields
    problems = (wrong_byte(field or "", first=line == 1) for field in fields)
    problem = next(filter(None, problems), None)
    return fields if problem is None else layout.bad_row(line, problem, fields)


def _cut_records(layout: Layout, data: bytes) -> Iterator[tuple[int, Fields | BadRow]]:
    if _quoted(layout, data):
        yield from quoted_records(layout, decoded(data))
        return
    lines = decoded(_lines(data)).split("\n")[:-1]
    split = _splitter(layout)
    for number, line in enumerate(lines, start=1):
        yield number, split(number, line)


def _splitter(layout: Layout) -> Callable[[int, str], Fields | BadRow]:
    """A function that splits a line without quotes; an empty field may be a null."""
    split_outside_brackets = _bracket_splitter(layout)

    def split(number: int, line: str) -> Fields | BadRow:
        if layout.brackets and ("[" in line or "]" in line) and not (layout.headers == "true" and number == 1):
            fields = split_outside_brackets(number, line)
        else:
            fields = list(line.split(layout.delimiter))
        if layout.nulls is None or isinstance(fields, BadRow):
            return fields
        return [field or None for field in fields]

    return split


def _bracket_splitter(layout: Layout) -> Callable[[int, str], Fields | BadRow]:
    """A function that returns the needed fields, and ignores the rest of the line.

    If there may be a header, all fields are needed, since they are counted.
    """
    marks = re.compile(rf"({re.escape(layout.delimiter)})|([\[\]])")
    width = None if layout.fields is not None or layout.headers in ("true", "auto") else layout.width

    def split(number: int, line: str) -> Fields | BadRow:
        fields: Fields = []
        start = depth = 0
        for mark in marks.finditer(line):
            if mark[2]:
                depth += 1 if mark[2] == "[" else -1
                if depth < 0:
                    break
            elif depth == 0:
                fields.append(line[start : mark.start()])
                start = mark.end()
                if len(fields) == width:
                    return fields
        if depth:
            return layout.bad_row(number, f"the brackets do not balance in {shown(line[start:])}", line)
        return [*fields, line[start:]]

    return split


def _lines(data: bytes) -> bytes:
    r"""The same lines, each ended by `\n`, including the last one."""
    if data and not data.endswith(b"\n"):
        data += b"\n"
    return data.replace(b"\r\n", b"\n") if b"\r" in data else data


def _quoted(layout: Layout, data: bytes) -> bool:
    return layout.rfc4180 and b'"' in data


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write_file(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=file`."""
    chunks = _chunks(place, rows)
    if chunks is not None:
        write_chunks(place, ".csv", chunks)
        return
    text = header_text(place) + delimited_text(place, rows)
    write_text(place, ".csv", "\ufeff" + text if text.startswith("\ufeff") else text)  # readers drop one mark


def _chunks(place: Place, rows: Iterable[Row]) -> Iterator[bytes] | None:
    """The file as bytes, as they are made; None if lines need more than that."""
    layout = layout_of(place, "")
    if method_of(place.params):
        return None
    lines = None
    if isinstance(rows, SortedWords) and not layout.rfc4180:
        lines = rows.lines(layout.delimiter)
    elif isinstance(rows, SortedRows) and layout.columns and Kind.FLOAT not in layout.kinds:
        lines = _sorted_lines(layout, iter(rows))
    if lines is None:
        return None
    header = encoded_text(header_text(place))
    first = next(lines, b"")
    mark = MARK if (header or first).startswith(MARK) else b""  # readers drop one mark
    return chain([mark, header, first], lines)


def _sorted_lines(layout: Layout, rows: Iterator[Row]) -> Iterator[bytes]:
    while part := list(islice(rows, _PART)):
        yield encoded_text(lines_text(layout, part))


def write_stdout(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=stdout`."""
    above = f"---------------\n{place.name}\n{header_text(place)}===============\n"
    write_stream(stdout, f"{above}{delimited_text(place, rows)}===============\n")


def delimited_text(place: Place, rows: Iterable[Row]) -> str:
    """The facts as lines, sorted, without a header."""
    return lines_text(layout_of(place, ""), sorted_rows(place.relation, rows))


def lines_text(layout: Layout, ordered: list[Row]) -> str:
    """The facts as lines, in the given order."""
    if not layout.columns:
        return "()\n" if ordered else ""
    changed = _field_texts(layout)
    if changed and ordered:
        columns: list[Iterable[object]] = list(zip(*ordered, strict=True))
        for index, change in changed.items():
            columns[index] = map(change, columns[index])
        return _joined(layout, zip(*columns, strict=True), set(changed))
    return _joined(layout, ordered, set())


def _joined(layout: Layout, rows: Iterable[tuple[object, ...]], as_text: set[int]) -> str:
    """All lines; one template of `%d` and `%s` is twice as fast as a join of strings."""
    delimiter = layout.delimiter.replace("%", "%%")
    specifiers = [
        "%s" if kind is Kind.SYMBOL or index in as_text else "%d" for index, kind in enumerate(layout.kinds)
    ]
    return "".join(map((delimiter.join(specifiers) + "\n").__mod__, rows))


def _field_texts(layout: Layout) -> dict[int, Callable[..., str]]:
    """The formatters of columns whose values are not written as Python does."""
    texts: dict[int, Callable[..., str]] = {}
    quote = quoter(layout.delimiter)
    risky = layout.rfc4180 and any(c in "0123456789+-.einfa" for c in layout.delimiter)
    for index, kind in enumerate(layout.kinds):
        if kind is Kind.SYMBOL and layout.rfc4180:
            texts[index] = quoted_symbol
        elif kind is Kind.FLOAT:
            texts[index] = (lambda value: quote(float_text(value))) if risky else float_text
        elif risky:
            texts[index] = lambda value: quote(str(value))
    return texts


def header_text(place: Place) -> str:
    """The header line if there is one, else an empty text."""
    if not place.flag("headers"):
        return ""
    layout = layout_of(place, "")
    quote = quoter(layout.delimiter) if layout.rfc4180 else str
    names = layout.delimiter.join(quote(column.name) for column in layout.columns)
    return place.params.get("attributeNames", names) + "\n"
