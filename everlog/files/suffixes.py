"""The name of a file says how its facts are written: `.csv`, `.tsv`, `.facts`, `.json`, `.sqlite`, also `.gz`.

What comes out is the parameters of a directive, so that whoever knows those can say it more exactly.  Files `.csv`
are of two sorts: with commas and quotes, as everybody writes them, and with tabs, as Soufflé does; the first
line tells.  A first line that is the names of the columns is a header.

To add a format: read and write it in `everlog.files.dispatch`, and name its suffix here.

Reads: place, values.  Read by: everlog.repl (`.import`, `.export`).
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

from everlog.core.program import Relation
from everlog.core.values import decoded
from everlog.files.values import FactsError

COMMAS = {"rfc4180": "true", "headers": "true"}
SUFFIXES: Mapping[str, Mapping[str, str]] = {
    ".csv": COMMAS,
    ".tsv": {},
    ".tab": {},
    ".txt": {},
    ".facts": {},
    ".json": {"IO": "jsonfile"},
    ".sqlite": {"IO": "sqlite"},
    ".sqlite3": {"IO": "sqlite"},
    ".db": {"IO": "sqlite"},
}
_BEGINNING = 1 << 16  # bytes in which a first line must end


def writing_parameters(path: Path, asked: Mapping[str, str]) -> dict[str, str]:
    """How to write a file of this name; `asked` goes before what the name says.

    >>> writing_parameters(Path("edge.csv"), {"headers": "false"})
    {'filename': 'edge.csv', 'rfc4180': 'true', 'headers': 'false'}
    """
    zipped = {"compress": "true"} if path.suffix == ".gz" else {}
    return {"filename": str(path), **_by_name(path, asked), **zipped, **asked}


def reading_parameters(path: Path, relation: Relation, asked: Mapping[str, str]) -> dict[str, str]:
    """How to read a file of this name for a relation."""
    found = dict(_by_name(path, asked))
    if found == COMMAS:
        found = _looked_at(path, relation)
    return {"filename": str(path), **found, **asked}


def _by_name(path: Path, asked: Mapping[str, str]) -> Mapping[str, str]:
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() in SUFFIXES:
        return SUFFIXES[suffix.lower()]
    if asked:
        return {}  # delimited text, or whatever `IO` says
    raise FactsError(
        f"the name of {path} does not say how facts are written: known are {', '.join(SUFFIXES)}, each also with"
        " .gz; or say it, such as delimiter=; or IO=sqlite"
    )


def _looked_at(path: Path, relation: Relation) -> dict[str, str]:
    line = _first_line(path)
    if "\t" in line and "," not in line:
        names, layout = line.split("\t"), {}
    else:
        names, layout = [name.strip().strip('"') for name in line.split(",")], {"rfc4180": "true"}
    columns = [column.name for column in relation.columns]
    return {**layout, "headers": "true"} if names == columns else layout


def _first_line(path: Path) -> str:
    """The first line; nothing where there is none, or no file: whoever reads it says so."""
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if zipped else path.open("rb") as file:
            return decoded(file.read(_BEGINNING).partition(b"\n")[0].rstrip(b"\r"))
    except (OSError, EOFError):
        return ""
