"""Facts of one relation from anywhere, and to anywhere: for Python and for the prompt.

A source or a target is a path or a URL, and parameters are those of `.input` and `.output`, by name.  What the
name says is believed as the world means it: `.csv` is comma separated with quotes (RFC 4180), `.tsv`, `.facts`
and all unknown ends are tab separated, `.json` is an array of facts, `.db` is SQLite; `.jsonl`, `.parquet`,
`.arrow`, `.sqlite`, `.duckdb`, `.gz`, `.zst` and `postgresql://…` mean what they mean in a directive.  (In a
directive, `.csv` is tab separated, as Soufflé has it.)

Reads: dispatch, formats.  Read by: everlog.database, the prompt.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

from everlog.core.program import Relation, Row
from everlog.files import dispatch
from everlog.files.formats import FORMATS, KNOWN_PARAMETERS
from everlog.files.values import FactsError, shown
from everlog.files.zipped import without_suffix

Where: TypeAlias = str | PathLike[str]
Parameter: TypeAlias = str | int | bool | Sequence[int] | PathLike[str]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_MEANT: Mapping[str, Mapping[str, str]] = {  # beyond what FORMATS knows; nobody's Soufflé program comes by here
    ".csv": {"rfc4180": "true"},
    ".json": {"IO": "jsonfile"},
    ".db": {"IO": "sqlite"},
}


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
    return dispatch.read_facts(relation, parameters_of(source, parameters), Path(), stdin=sys.stdin)


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
    suffix = Path(without_suffix(name)).suffix.lower()
    meant = {} if "IO" in params else _MEANT.get(suffix, {})
    return {**meant, "url" if params.get("IO") in ("postgres", "jdbc") else "filename": name, **params}


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
