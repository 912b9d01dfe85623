"""Rows as lines: a table, CSV, JSON or facts, a piece at a time.

A table needs the widths of its columns before its first line.  They come from the first piece: all
rows if these are few and come quickly, otherwise the rows found within a moment.  A longer value
that comes later is folded.  Few rows are sorted; of many, the first appear at once, unsorted.  If
the output is not a terminal, all rows are sorted: a script prints the same text each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from everlog.repl.pager import width_of
from everlog.repl.screen import Screen, visible

if TYPE_CHECKING:
    from everlog.core.program import Relation, Row

FEW = 1000  # at most this many rows are sorted on a terminal
MOMENT = 0.2  # seconds to wait for them
_PIECE = 200  # rows of a table that are laid out together


def show_rows(
    screen: Screen, relation: Relation, rows: Iterable[Row], ordered: bool = False, mode: str = ""
) -> None:
    """Write at most `.maxrows` rows in the current mode; `ordered`: they are sorted."""
    mode = mode or screen.settings.mode
    most = screen.settings.maxrows
    every = iter(rows) if ordered else _in_order(screen, relation, rows)
    count = _Counted(every if most is None else islice(every, most))
    cut = False

    def last_line() -> Iterator[str]:
        nonlocal cut
        cut = most is not None and next(every, None) is not None
        if mode == "table":
            yield f"({number_of(count.number, 'row')}{' shown, there are more: see .maxrows' if cut else ''})"

    lines, ready = _MODES[mode](screen, relation, count)
    screen.lines(chain(lines, last_line()), paged=True, ready=ready)
    if cut and mode != "table":
        screen.note(f"{most} rows shown, there are more: see .maxrows")


def number_of(number: int, what: str) -> str:
    """A number with its noun.

    >>> number_of(1, "row"), number_of(1234, "row")
    ('1 row', '1234 rows')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


class _Counted:
    """Iterates over rows and counts them."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self.rows, self.number = rows, 0

    def __iter__(self) -> Iterator[Row]:
        for row in self.rows:
            self.number += 1
            yield row


def _in_order(screen: Screen, relation: Relation, rows: Iterable[Row]) -> Iterator[Row]:
    from everlog.files.text_values import sorted_rows

    if not screen.seen:
        return iter(sorted_rows(relation, rows))
    rows, first, end = iter(rows), [], monotonic() + MOMENT
    for row in rows:
        first.append(row)
        if len(first) > FEW or monotonic() > end:
            return chain(first, rows)
    return iter(sorted_rows(relation, first))


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def _table(screen: Screen, relation: Relation, rows: Iterable[Row]) -> tuple[Iterable[str], bool]:
    if not relation.columns:
        return ("()" for _ in rows), False
    names = [column.name for column in relation.columns]
    numeric = [column.kind != "symbol" for column in relation.columns]
    texts = _texts(relation)
    cells = ([text(value) for text, value in zip(texts, row, strict=True)] for row in rows)
    return table_lines(screen, names, cells, numeric), screen.seen


def table_lines(screen: Screen, names: list[str], rows: Iterable[list[str]], right: list[bool]) -> Iterator[str]:
    """Rows of cells under their column names; `right` columns are right-aligned."""
    headers = screen.settings.headers
    if screen.seen:
        return _framed(screen, names, iter(rows), right, headers)
    return aligned(names if headers else None, rows, right)


def aligned(names: list[str] | None, rows: Iterable[list[str]], right: list[bool]) -> Iterator[str]:
    """Columns as plain text, each as wide as its widest value.

    >>> print("\\n".join(aligned(["x", "name"], [["1", "a"], ["20", "b"]], [True, False])))
     x  name
    --  ----
     1  a
    20  b
    """
    rows = list(rows)
    table = rows if names is None else [names, *rows]
    widths = [max(map(width_of, column)) for column in zip(*table, strict=True)]
    if names is not None:
        rows = [names, ["-" * width for width in widths], *rows]
    for row in rows:
        parts = [
            " " * (width - width_of(cell)) + cell if to_the_right else cell + " " * (width - width_of(cell))
            for cell, width, to_the_right in zip(row, widths, right, strict=True)
        ]
        yield "  ".join(parts).rstrip()


def _framed(
    screen: Screen, names: list[str], rows: Iterator[list[str]], right: list[bool], headers: bool
) -> Iterator[str]:
    """A table of `rich`, piece by piece; the first piece determines the widths."""
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    width = screen.size[1]
    colours = "standard" if screen.coloured else None
    console = Console(width=width, force_terminal=True, color_system=colours, highlight=False)  # type: ignore[arg-type]
    piece = list(islice(rows, _PIECE))
    titles = names if headers else [""] * len(names)
    natural = [max(map(width_of, column)) for column in zip(titles, *piece, strict=True)]
    widths = fitting(natural, width - 3 * len(names) - 1)
    is_first = True
    while True:
        after = list(islice(rows, _PIECE))
        columns = [
            Column(Text(visible(name)), width=wide, justify="right" if to_the_right else "left", overflow="fold")
            for name, wide, to_the_right in zip(names, widths, right, strict=True)
        ]
        table = Table(*columns, box=box.ROUNDED, show_header=headers and is_first, header_style="bold")
        for row in piece:
            table.add_row(*map(Text, row))
        with console.capture() as captured:
            console.print(table)
        lines = captured.get().splitlines()
        yield from lines[0 if is_first else 1 : None if not after else -1]
        if not after:
            return
        piece, is_first = after, False


def fitting(widths: list[int], room: int) -> list[int]:
    """The widths of columns, with the widest reduced until all fit.

    >>> fitting([5, 100, 60], 80), fitting([5, 10], 80), fitting([9, 9], 0)
    ([5, 37, 38], [5, 10], [1, 1])
    """
    room = max(room, len(widths))
    widths = [min(max(1, width), room) for width in widths]
    while sum(widths) > room:
        widths[widths.index(max(widths))] -= 1
    return widths


def _texts(relation: Relation) -> list[Callable[[Any], str]]:
    from everlog.core.program.values import float_text

    by_kind: dict[str, Callable[[Any], str]] = {"symbol": visible, "float": float_text}
    return [by_kind.get(column.kind, str) for column in relation.columns]


# ── for programs ─────────────────────────────────────────────────────────────────────────────


def _csv(screen: Screen, relation: Relation, rows: Iterable[Row]) -> tuple[Iterable[str], bool]:
    from everlog.files.location import Place
    from everlog.files.text.delimited import header_text, lines_text
    from everlog.files.text.layout import layout_of

    place = Place(relation, {"rfc4180": "true", "headers": "true"}, Path())
    layout = layout_of(place, "")

    def lines() -> Iterator[str]:
        if screen.settings.headers:
            yield header_text(place).rstrip("\n")
        for piece in _pieces(rows):
            yield lines_text(layout, piece).rstrip("\n")

    return lines(), False


def _json(screen: Screen, relation: Relation, rows: Iterable[Row]) -> tuple[Iterable[str], bool]:
    from everlog.files.text.json import fact_writer

    text = fact_writer(relation, objects=True)

    def lines() -> Iterator[str]:
        before = ""
        for row in rows:
            if before:
                yield before + ","
            before = (" " if before else "[") + text(row)
        yield (before or "[") + "]"

    return lines(), False


def _facts(screen: Screen, relation: Relation, rows: Iterable[Row]) -> tuple[Iterable[str], bool]:
    from everlog.dsl.fact_text import fact_text

    return (f"{fact_text(relation, row)}." for row in rows), False


def _pieces(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in pieces that grow, so that the first comes at once."""
    rows, size = iter(rows), 1
    while piece := list(islice(rows, size)):
        yield piece
        size = min(2 * size, _PIECE)


_MODES: dict[str, Callable[[Screen, Relation, Iterable[Row]], tuple[Iterable[str], bool]]] = {
    "table": _table,
    "csv": _csv,
    "json": _json,
    "dl": _facts,
}
