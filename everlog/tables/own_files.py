"""Files as tables with inferred columns: for `everlog open` and `.open`.

people.csv, people.tsv     the first line has the names, unless one of its fields is a number
people.facts               tab-separated, without names
people.jsonl               one object per line
people.parquet, .arrow     as they are
shop.sqlite, shop.duckdb   every table, by its own name
"""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everlog.extras import optional
from everlog.files.text_values import FactsError

if TYPE_CHECKING:
    from everlog.api.database import Database
    from everlog.tables.inferred import Inferred

_DIGITS = re.compile(r"-?[0-9]{1,4000}")
_FLOAT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_TRUTH = {"true": True, "false": False}
_OTHER = "save it as UTF-8, or read it with `.input` and `encoding=latin-1`"
DATABASES = (".db", ".sqlite", ".sqlite3")


def is_data(path: Path) -> bool:
    """Whether a file holds tables, rather than a program or a database of everlog."""
    return path.suffix.lower() in _READERS and not (path.suffix.lower() in DATABASES and _is_ours(path))


def tables_in(path: Path) -> Iterator[tuple[str, Any]]:
    """The tables of a file, by name; FactsError if it cannot be read."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise FactsError(f"cannot open {path}: the known files end in {', '.join(_READERS)}")
    if not path.is_file():
        raise FactsError(f"cannot open {path}: there is no such file")
    try:
        yield from reader(path)
    except (OSError, UnicodeDecodeError, sqlite3.Error, csv.Error, ValueError) as problem:
        if isinstance(problem, FactsError):
            raise
        if isinstance(problem, UnicodeDecodeError):
            raise FactsError(f"cannot read {path}: it is not UTF-8, byte {problem.start + 1}; {_OTHER}") from None
        raise FactsError(f"cannot read {path}: {problem}") from None


def add_tables(database: Database, paths: Sequence[Path]) -> list[Inferred]:
    """Declare a relation for each table of these files, and insert its rows; all or none."""
    from everlog.tables.inferred import infer, known_types

    found = [infer(name, table) for path in paths for name, table in tables_in(path)]
    if not found:
        raise FactsError(f"{paths[0]} has no tables")
    names = [each.relation.name for each in found]
    for name in names:
        if name in database.relations or names.count(name) > 1:
            raise FactsError(f"a relation `{name}` is there already: rename the file, or `.drop {name}` first")
    before = "\n".join(database.statements())
    text = before
    for each in found:
        text += "\n" + each.declaration(known_types(text))
    database.add_rule(text.removeprefix(before))
    database.insert_all({each.relation.name: each.rows for each in found})
    return found


def _is_ours(path: Path) -> bool:
    if not path.exists():
        return True  # a new database
    from everlog.files.typed.sqlite import EVERLOG

    with path.open("rb") as file:
        return int.from_bytes(file.read(72)[68:72]) == EVERLOG


def _delimited(path: Path) -> Iterator[tuple[str, Any]]:
    text = path.read_text(encoding="utf-8-sig")
    first = text.partition("\n")[0]
    tabs = path.suffix.lower() in (".tsv", ".facts")
    delimiter = "\t" if tabs else max(",;\t|", key=first.count)
    rows = [row for row in csv.reader(text.splitlines(keepends=True), delimiter=delimiter) if row]
    if not rows:
        raise FactsError(f"{path} is empty")
    has_names = path.suffix.lower() != ".facts" and not any(_FLOAT.fullmatch(cell) or not cell for cell in rows[0])
    names = rows.pop(0) if has_names else [f"c{number}" for number in range(1, len(rows[0]) + 1)]
    for number, row in enumerate(rows, 2 if has_names else 1):
        if len(row) != len(names):
            fields, known = (
                f"{n} {noun}{'s' if n != 1 else ''}" for n, noun in ((len(row), "field"), (len(names), "column"))
            )
            raise FactsError(f"{path}:{number}: {fields}, but {known}")
    names = _apart(names)
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    yield path.stem, {name: _typed(list(column)) for name, column in zip(names, columns, strict=True)}


def _apart(names: list[str]) -> list[str]:
    """The names with a number where one occurs again: no column may hide another.

    >>> _apart(["size", "size", "x", "size"])
    ['size', 'size 2', 'x', 'size 3']
    """
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return out if len(set(out)) == len(out) else [f"{name} {place}" for place, name in enumerate(names, 1)]


def _typed(cells: list[str]) -> list[Any]:
    """The values of a column of texts: of the first type that fits all; an empty field is null.

    >>> _typed(["1", "20", ""]), _typed(["1", "2.5"]), _typed(["007", "1"]), _typed(["true"])
    ([1, 20, None], [1.0, 2.5], ['007', '1'], [True])

    A column with an integer that neither 64 bits nor a float can hold stays text:

    >>> _typed(["99999999999999999999", "1"])
    ['99999999999999999999', '1']
    """
    there = [cell for cell in cells if cell]
    readers: list[tuple[Callable[[str], object], Callable[[str], Any]]] = [
        (_is_integer if len(there) == len(cells) else _is_both, int),  # with nulls, integers become floats
        (_is_float, float),
        (lambda cell: cell.lower() in _TRUTH, lambda cell: _TRUTH[cell.lower()]),
    ]
    for fits, read in readers:
        if there and all(map(fits, there)):
            return [read(cell) if cell else None for cell in cells]
    return [cell or None for cell in cells]


def _is_integer(cell: str) -> bool:
    """Whether a text is an integer of 64 bits, without leading zeros."""
    if not _DIGITS.fullmatch(cell) or re.match(r"-?0[0-9]", cell):
        return False
    return -(1 << 63) <= int(cell) < 1 << 64


def _is_both(cell: str) -> bool:
    return _is_integer(cell) and _is_float(cell)


def _is_float(cell: str) -> bool:
    """Whether a float keeps what a text says: no leading zeros, no integer that it would round."""
    if not _FLOAT.fullmatch(cell) or re.match(r"-?0[0-9]", cell):
        return False
    return not _DIGITS.fullmatch(cell) or int(float(cell)) == int(cell)


def _json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    yield path.stem, rows


def _parquet(path: Path) -> Iterator[tuple[str, Any]]:
    yield path.stem, optional("pyarrow.parquet", "arrow", f"reading {path.name}").read_table(path)


def _arrow(path: Path) -> Iterator[tuple[str, Any]]:
    ipc = optional("pyarrow.ipc", "arrow", f"reading {path.name}")
    with path.open("rb") as file:
        yield path.stem, ipc.open_file(file).read_all()


def _sqlite(path: Path) -> Iterator[tuple[str, Any]]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        names = [name for (name,) in connection.execute(_TABLES)]
        for name in names:
            quoted = name.replace('"', '""')
            found = connection.execute(f'SELECT * FROM "{quoted}"')
            titles = [column[0] for column in found.description]
            rows = found.fetchall()
            columns = zip(*rows, strict=True) if rows else [()] * len(titles)
            yield name, dict(zip(titles, map(list, columns), strict=True))


_TABLES = """
SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name
"""


def _duckdb(path: Path) -> Iterator[tuple[str, Any]]:
    duckdb = optional("duckdb", "sql", f"reading {path.name}")
    with closing(duckdb.connect(str(path), read_only=True)) as connection:
        names = [row[0] for row in connection.execute("SHOW TABLES").fetchall()]
        for name in names:
            quoted = name.replace('"', '""')
            yield name, connection.sql(f'SELECT * FROM "{quoted}"')


_READERS: dict[str, Callable[[Path], Iterator[tuple[str, Any]]]] = {
    ".csv": _delimited,
    ".tsv": _delimited,
    ".facts": _delimited,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".duckdb": _duckdb,
    **dict.fromkeys(DATABASES, _sqlite),
}
