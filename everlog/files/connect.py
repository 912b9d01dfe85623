"""Facts of one relation from or to a path or a URL, for Python and the prompt.

Parameters are those of `.input` and `.output`, by name.  The suffix of a file determines its format
(`suffixes`).
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
from everlog.core.program.fact_rows import shown
from everlog.files import dispatch
from everlog.files.formats import FORMATS, KNOWN_PARAMETERS
from everlog.files.suffixes import reading_parameters, writing_parameters
from everlog.files.text_values import FactsError

Where: TypeAlias = str | PathLike[str]
Parameter: TypeAlias = str | int | bool | Sequence[int] | PathLike[str]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def read_facts(relation: Relation, source: Where, **parameters: Parameter) -> list[Row]:
    """All facts of a relation in a source, or FactsError with the first wrong row.

    `source` is a path, or a URL such as `postgresql://host/database`.  `parameters` are those of
    `.input`:  `headers=True`, `delimiter=";"`, `columns=[2, 0]`, `dbtable="shop.orders"`,
    `query="SELECT …"`, `IO="jsonl"` … With `rejects="bad.jsonl"`, wrong rows go to that file with
    the reason, and the others are read.

    >>> from everlog.core.program import Column, Kind
    >>> edge = Relation("edge", (Column("x", Kind.NUMBER), Column("y", Kind.NUMBER)))
    >>> import tempfile; folder = Path(tempfile.mkdtemp())
    >>> write_facts(edge, [(2, 3), (1, 2)], folder / "edges.csv.gz")
    >>> read_facts(edge, folder / "edges.csv.gz")
    [(1, 2), (2, 3)]
    """
    return dispatch.read_facts(relation, to_read(relation, source, parameters), Path(), stdin=sys.stdin)


def write_facts(relation: Relation, rows: Iterable[Row], target: Where, **parameters: Parameter) -> None:
    """Write facts, sorted, to a path or a URL: all of them, or after FactsError none.

    After an error the old content stays.  `parameters` are those of `.output`.  `mode="append"`
    adds to a table of a database.  A `.csv` begins with column names, unless `headers=False`.
    """
    dispatch.write_facts(relation, rows, to_write(relation, target, parameters), Path(), sys.stdout)


def to_read(relation: Relation, source: Where, parameters: Mapping[str, Parameter]) -> dict[str, str]:
    """The parameters of the equivalent `.input` directive."""
    asked = _texts(parameters)
    url = _url_parameters(source, asked)
    return reading_parameters(Path(source), asked, len(relation.columns)) if url is None else url


def to_write(relation: Relation, target: Where, parameters: Mapping[str, Parameter]) -> dict[str, str]:
    """The parameters of the equivalent `.output` directive."""
    asked = _texts(parameters)
    url = _url_parameters(target, asked)
    params = writing_parameters(Path(target), asked) if url is None else url
    if "headers" in params and not relation.columns:
        return {**params, "headers": "false"}  # it would not be recognized as a header
    return params


def _texts(parameters: Mapping[str, Parameter]) -> dict[str, str]:
    """Parameters as texts of a directive; FactsError if one is unknown.

    >>> _texts({"headers": True, "columns": [2, 0]})
    {'headers': 'true', 'columns': '2:0'}
    """
    for key in parameters:
        if key not in KNOWN_PARAMETERS:
            close = get_close_matches(key, KNOWN_PARAMETERS, 1)
            raise FactsError(f"unknown parameter `{key}`" + (f"; did you mean `{close[0]}`?" if close else ""))
    return {key: _text(value) for key, value in parameters.items()}


def _url_parameters(where: Where, asked: Mapping[str, str]) -> dict[str, str] | None:
    """The parameters of a URL; None for a path.

    A scheme that no format has, like `C:`, is part of a path.

    >>> _url_parameters("postgresql://localhost/shop", {"dbtable": "orders"})
    {'url': 'postgresql://localhost/shop', 'dbtable': 'orders'}
    """
    name = fspath(where)
    found = _SCHEME.match(name)
    is_url = found is not None and any(found[1] in known.schemes for known in FORMATS.values())
    return {"url": name, **asked} if is_url or asked.get("IO") in ("postgres", "jdbc") else None


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
    raise FactsError(f"{shown(value)} is not a value of a parameter")
