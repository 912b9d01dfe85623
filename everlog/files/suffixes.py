"""The name of a file says how its facts are written: `.csv`, `.tsv`, `.jsonl`, `.parquet`, …, also `.gz`, `.zst`.

What comes out is the parameters of a directive, so that whoever knows those can say it more exactly.  Files `.csv`
are of two sorts: with commas and quotes, as everybody writes them, and with tabs, as Soufflé does; the first
line tells.  A first line that is the names of the columns is a header.  (In a directive, `.csv` is what its
parameters say, as Soufflé has it.)

Reads: formats, place, zipped, values.  Read by: connect.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from everlog.core.program import Kind, Relation
from everlog.core.values import decoded
from everlog.files.formats import FORMATS
from everlog.files.place import candidates
from everlog.files.values import FactsError
from everlog.files.zipped import beginning, without_suffix

COMMAS = {"rfc4180": "true", "headers": "true"}
SUFFIXES: Mapping[str, Mapping[str, str]] = {
    ".csv": COMMAS,
    ".tsv": {},
    ".tab": {},
    ".txt": {},
    ".facts": {},
    ".json": {"IO": "jsonfile"},
    ".db": {"IO": "sqlite"},
    **{suffix: {"IO": way} for way, known in FORMATS.items() for suffix in known.suffixes},
}


def writing_parameters(path: Path, asked: Mapping[str, str]) -> dict[str, str]:
    """How to write a file of this name; `asked` goes before what the name says.

    >>> writing_parameters(Path("edge.csv"), {"headers": "false"})
    {'filename': 'edge.csv', 'rfc4180': 'true', 'headers': 'false'}
    """
    return {"filename": str(path), **_by_name(path, asked), **asked}


def reading_parameters(path: Path, relation: Relation, asked: Mapping[str, str]) -> dict[str, str]:
    """How to read a file of this name for a relation."""
    found = dict(_by_name(path, asked))
    if found == COMMAS:
        found = _looked_at(path, relation, asked.get("delimiter"))
    return {"filename": str(path), **found, **asked}


def _by_name(path: Path, asked: Mapping[str, str]) -> Mapping[str, str]:
    suffix = Path(without_suffix(path.name)).suffix.lower()
    if suffix in SUFFIXES and "IO" not in asked:
        return SUFFIXES[suffix]
    if asked:
        return {}  # delimited text, or whatever `IO` says
    raise FactsError(
        f"the name of {path} does not say how facts are written: known are {', '.join(SUFFIXES)}, each also with"
        " .gz or .zst; or say it, such as delimiter=; or IO=sqlite"
    )


def _looked_at(path: Path, relation: Relation, delimiter: str | None) -> dict[str, str]:
    """What the first line of a `.csv` tells; nothing where there is none, or no file: whoever reads it says so."""
    file = next((file for file in candidates(path) if file.is_file()), path)
    line = decoded(beginning(file).partition(b"\n")[0].rstrip(b"\r"))
    layout = {"rfc4180": "true"}
    if delimiter is None and "\t" in line and not set(line) & set(',"'):
        delimiter, layout = "\t", {}
    names = line.split(delimiter or ",")
    if any(column.kind is not Kind.SYMBOL for column in relation.columns):  # else these may be quoted symbols
        names = [name.strip().strip('"') for name in names]
    is_header = names == [column.name for column in relation.columns]
    return {**layout, "headers": "true"} if is_header else layout
