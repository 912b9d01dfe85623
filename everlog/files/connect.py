"""Facts of one relation from anywhere, and to anywhere: for Python and for the prompt.

A source or a target is a path or a URL, and parameters are those of `.input` and `.output`, by name.  What the
name says is believed as the world means it: `.csv` is comma separated with quotes (RFC 4180), `.tsv`, `.facts`
and all unknown ends are tab separated, `.json` is an array of facts, `.db` is SQLite; `.jsonl`, `.parquet`,
`.arrow`, `.sqlite`, `.duckdb`, `.gz`, `.zst` and `postgresql://…` mean what they mean in a directive.  (In a
directive, `.csv` is tab separated, as Soufflé has it.)  Who reads a `.csv` need not know who wrote it: a first
line that has tabs and no commas tells that it is tab separated, one of the columns' names that it is a header.

Reads: dispatch, formats, zipped.  Read by: everlog.database, the prompt.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

from everlog.core.program import Kind, Relation, Row
from everlog.core.values import decoded
from everlog.files import dispatch
from everlog.files.formats import FORMATS, KNOWN_PARAMETERS
from everlog.files.place import candidates
from everlog.files.values import FactsError, shown
from everlog.files.zipped import beginning, without_suffix

Where: TypeAlias = str | PathLike[str]
Parameter: TypeAlias = str | int | bool | Sequence[int] | PathLike[str]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_MEANT: Mapping[str, Mapping[str, str]] = {  # beyond what FORMATS knows; nobody's Soufflé program comes by here
    ".csv": {"rfc4180": "true"},
    ".json": {"IO": "jsonfile"},
    ".db": {"IO": "sqlite"},
}
_TABS = (".facts", ".tsv", ".tab", ".txt")
_FIRST_LINE = 1 << 16  # bytes in which it must end


def read_facts(relation: Relation, source: Where, **parameters: Parameter) -> list[Row]:
    """All facts of a relation that a source has, or FactsError with the first row that is none.

    `source` is a path, or a URL such as `postgresql://host/database`.  `parameters` are those of `.input`:
    `headers=True`, `delimiter=";"`, `columns=[2, 0]`, `dbtable="shop.orders"`, `query="SELECT …"`, `IO="jsonl"` …
    With `rejects="bad.jsonl"`, rows that are no facts go to that file with the reason, and the others are read.

    >>> from everlog.core.program import Column, Kind
    >>> edge = Relation("edge", (Column("x", Kind.NUMBER), Column("y", Kind.NUMBER)))
    >>> import tempfile; folder = Path(tempfile.mkdtemp())
    >>> write_facts(edge, [(2, 3), (1, 2)], folder / "edges.csv.gz", headers=True)
    >>> read_facts(edge, folder / "edges.csv.gz", headers=True)
    [(1, 2), (2, 3)]
    """
    return dispatch.read_facts(relation, reading_parameters(relation, source, parameters), Path(), stdin=sys.stdin)


def write_facts(relation: Relation, rows: Iterable[Row], target: Where, **parameters: Parameter) -> None:
    """Write facts, sorted, to a path or a URL; all of them, or after FactsError none, and what was there stays.

    `parameters` are those of `.output`.  `mode="append"` adds to a table of a database.
    """
    dispatch.write_facts(relation, rows, parameters_of(target, parameters), Path(), sys.stdout)


def parameters_of(where: Where, given: Mapping[str, Parameter]) -> dict[str, str]:
    """The parameters of a directive that means the same.

    >>> parameters_of("edges.csv", {"headers": True})
    {'rfc4180': 'true', 'filename': 'edges.csv', 'headers': 'true'}
    >>> parameters_of("postgresql://localhost/shop", {"dbtable": "orders"})
    {'url': 'postgresql://localhost/shop', 'dbtable': 'orders'}
    """
    for key in given:
        if key not in KNOWN_PARAMETERS:
            close = get_close_matches(key, KNOWN_PARAMETERS, 1)
            raise FactsError(f"unknown parameter `{key}`" + (f"; did you mean `{close[0]}`?" if close else ""))
    name = fspath(where)
    params = {key: _text(value) for key, value in given.items()}
    if "IO" not in params and _is_url(name):
        return {"url": name, **params}
    meant = {} if "IO" in params else _MEANT.get(_suffix(name), {})
    return {**meant, "url" if params.get("IO") in ("postgres", "jdbc") else "filename": name, **params}


def reading_parameters(relation: Relation, source: Where, given: Mapping[str, Parameter]) -> dict[str, str]:
    """As `parameters_of`; of a `.csv` the first line tells what is not given."""
    params = parameters_of(source, given)
    line = (
        _first_line(Path(params["filename"])) if _suffix(fspath(source)) == ".csv" and "IO" not in params else ""
    )
    if not line:
        return params
    if "delimiter" not in given and "rfc4180" not in given and "\t" in line and not set(line) & set(',"'):
        del params["rfc4180"]
    fields = line.split(params.get("delimiter", "," if params.get("rfc4180") == "true" else "\t"))
    if any(column.kind is not Kind.SYMBOL for column in relation.columns):  # else these may be quoted symbols
        fields = [field.strip().strip('"') for field in fields]
    if "headers" not in given and fields == [column.name for column in relation.columns]:
        params["headers"] = "true"
    return params


def says_how(name: str) -> bool:
    """Whether the name of a source or a target says how facts are written.

    >>> says_how("edges.csv.gz"), says_how("postgresql:///shop"), says_how("edges")
    (True, True, False)
    """
    return _is_url(name) or _suffix(name) in known_suffixes()


def known_suffixes() -> list[str]:
    return [*_MEANT, *_TABS, *(suffix for known in FORMATS.values() for suffix in known.suffixes)]


def _suffix(name: str) -> str:
    return Path(without_suffix(name)).suffix.lower()


def _first_line(path: Path) -> str:
    """Nothing where there is no line, or no file, and of a pipe, where to look is to take away."""
    file = next((file for file in candidates(path) if file.is_file()), None)
    return "" if file is None else decoded(beginning(file, _FIRST_LINE).partition(b"\n")[0].rstrip(b"\r"))


def _is_url(name: str) -> bool:
    """Whether a name begins with a scheme that a format has; others, like `C:`, are parts of paths."""
    found = _SCHEME.match(name)
    return found is not None and any(found[1] in known.schemes for known in FORMATS.values())


def _text(value: Parameter) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int():
            return str(value)
        case PathLike():
            return fspath(value)
        case Sequence():
            return ":".join(map(str, value))
    raise FactsError(f"{shown(value)} is no value of a parameter")
