"""Quoted fields: the field `"a, ""b"" c"` is the symbol `a, "b" c`.

A quoted field may contain delimiters and line ends, so one pass over the whole text finds both
fields and lines.

Source: RFC 4180.  Soufflé's own writer doubles and escapes quotes, which no reader understands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from everlog.core.program.fact_rows import shown
from everlog.files.rejects import BadRow
from everlog.files.text.layout import Fields, Layout

_QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"')
_LINE_END = re.compile(r"\r?(?:\n|\Z)")


class _Malformed(Exception):
    """An error in a quoted field."""


def quoted_records(layout: Layout, text: str) -> Iterator[tuple[int, Fields | BadRow]]:
    """The records of a text, each with the number of its first line.

    An empty field without quotes is None if the layout has nulls.  A quote inside an unquoted field
    stands for itself.  A record with a malformed field ends with its line.
    """
    position, line = 0, 1
    while position < len(text):
        fields: Fields = []
        start, more = position, True
        try:
            while more:
                take = _quoted_field if text.startswith('"', position) else _plain_field
                field, position, more = take(layout, text, position)
                fields.append(field if field or layout.nulls is None or take is _quoted_field else None)
            yield line, fields
        except _Malformed as problem:
            end = text.find("\n", start)
            position = len(text) if end < 0 else end + 1
            yield line, layout.bad_row(line, str(problem), text[start:position].rstrip("\r\n"))
        line += text.count("\n", start, position)


def _quoted_field(layout: Layout, text: str, position: int) -> tuple[str, int, bool]:
    """The field at `position`, the next position, and whether the record goes on."""
    found = _QUOTED.match(text, position)
    if found is None:
        raise _Malformed(f"a quote is never closed: {shown(text[position : position + 100])}")
    field, after = found[1].replace('""', '"'), found.end()
    if text.startswith(layout.delimiter, after):
        return field, after + len(layout.delimiter), True
    end = _LINE_END.match(text, after)
    if end is None:
        rest = shown(text[after : after + 20].partition("\n")[0])
        raise _Malformed(f"expected a delimiter after the quoted field {shown(field)}, found {rest}")
    return field, end.end(), False


def _plain_field(layout: Layout, text: str, position: int) -> tuple[str, int, bool]:
    line_end = text.find("\n", position)
    line_end = len(text) if line_end < 0 else line_end
    end = text.find(layout.delimiter, position, line_end)
    if end >= 0:
        return text[position:end], end + len(layout.delimiter), True
    return text[position:line_end].removesuffix("\r"), line_end + 1, False


def quoter(delimiter: str) -> Callable[[str], str]:
    """A function that quotes a field if necessary.

    Every character of a long delimiter counts: `a;` before `;;` would end too early.

    >>> quote = quoter(",")
    >>> quote("plain"), quote('say "hi"')
    ('plain', '"say ""hi""\"')
    """
    needs_quotes = re.compile(f'[{re.escape(delimiter)}"\r\n]').search

    def quote(field: str) -> str:
        return '"%s"' % field.replace('"', '""') if needs_quotes(field) else field

    return quote


def quoted_symbol(field: str) -> str:
    """A symbol in quotes, as Soufflé writes it; so the symbol "1" differs from 1."""
    return '"%s"' % field.replace('"', '""')
