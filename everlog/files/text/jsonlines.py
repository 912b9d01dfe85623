"""JSON lines: one fact per line, as an object, or with `format=list` as an array.

Each line is read by itself, so an error has a line number and affects no other line.  A folder is
read as the files in it, which is how Spark writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from everlog.core.program import Relation, Row
from everlog.core.program.fact_rows import shown
from everlog.core.program.values import decoded
from everlog.files.location import Place, Reading, read_bytes, write_text
from everlog.files.rejects import BadRow, Refuse
from everlog.files.text.encodings import BYTES, UTF8, has_wrong_byte, utf8_bytes, wrong_byte
from everlog.files.text.json import fact_writer, json_value, ready_rows, row_of
from everlog.files.text_values import sorted_rows

# ── in ───────────────────────────────────────────────────────────────────────────────────────


def read_json_lines(reading: Reading) -> list[Row]:
    """Reader for `IO=jsonl`."""
    path = reading.place.path(".jsonl")
    rows: list[Row] = []
    for file in parts_of(path) or [path]:
        data = read_bytes(reading.place, file, reading.missing_ok)
        rows += [] if data is None else rows_of_lines(reading.place, data, str(file), reading.refuse)
    return rows


def parts_of(folder: Path) -> list[Path]:
    """The files of a folder that Spark has written."""
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.is_file() and file.name[0] not in "._")


def rows_of_lines(place: Place, data: bytes, file: str, refuse: Refuse, first: int = 1) -> list[Row]:
    """The facts of whole lines; `first` is the number of the first one in its file."""
    relation, encoding = place.relation, place.params.get("encoding", UTF8)
    text = decoded(utf8_bytes(data, encoding, file))
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=first) if line.strip()]
    is_right = text.isascii() or encoding == BYTES or not has_wrong_byte(text)
    elements = [_element(file, number, line, is_right) for number, line in lines]
    if relation.columns:
        ready = ready_rows(relation, _as_arrays(relation, elements) or elements)
        if ready is not None:
            return ready
    rows: list[Row] = []
    nulls = place.nulls
    for (number, _), element in zip(lines, elements, strict=True):
        if isinstance(element, BadRow):
            refuse(element)
            continue
        try:
            rows.append(row_of(relation, element, nulls) if relation.columns else ())
        except ValueError as problem:
            refuse(BadRow(file, number, str(problem), element, "line"))
    return rows if relation.columns else rows[:1]


def _element(file: str, number: int, line: str, is_right: bool) -> object:
    wrong = None if is_right else wrong_byte(line, first=number == 1)
    if wrong is not None:
        return BadRow(file, number, wrong, line, "line")
    try:
        return json_value(line)
    except (ValueError, RecursionError) as problem:
        what = problem.msg if isinstance(problem, json.JSONDecodeError) else str(problem)
        return BadRow(file, number, f"not JSON: {what}: {shown(line)}", line, "line")


def _as_arrays(relation: Relation, elements: list[object]) -> list[object] | None:
    """Objects as arrays, if each has all columns; otherwise None."""
    names = [column.name for column in relation.columns]
    try:
        return [[element[name] for name in names] for element in elements]  # type: ignore[index]
    except (KeyError, TypeError):
        return None


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write_json_lines(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=jsonl`."""
    write_text(place, ".jsonl", lines_of_rows(place, sorted_rows(place.relation, rows)))


def lines_of_rows(place: Place, rows: Iterable[Row]) -> str:
    text = fact_writer(place.relation, place.params.get("format") != "list")
    return "".join(f"{text(row)}\n" for row in rows)
