"""The name of a file says how its facts are written: `.csv`, `.tsv`, `.jsonl`, `.parquet`, …, also
`.gz`, `.zst`.

What comes out is the parameters of a directive, so that whoever knows those can say it more
exactly.  Files `.csv` are of two sorts: with commas and quotes, as everybody writes them, and with
tabs, as Soufflé does; the first line tells.  Whether it is a header, `headers` finds out.  (In a
directive, `.csv` is what its parameters say, as Soufflé has it.)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from everlog.files.encodings import MARK
from everlog.files.formats import FORMATS
from everlog.files.location import candidates
from everlog.files.text_values import FactsError
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


def reading_parameters(path: Path, asked: Mapping[str, str], columns: int) -> dict[str, str]:
    """How to read so many columns from a file of this name."""
    found = dict(_by_name(path, asked))
    if found == COMMAS:
        found = _looked_at(path, asked, columns)
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


def _looked_at(path: Path, asked: Mapping[str, str], columns: int) -> dict[str, str]:
    """What the first line of a `.csv` tells: with tabs alone it is Soufflé's, else it has commas
    and quotes.

    In a file of one column a tab may be a part of the value.
    """
    file = next((file for file in candidates(path) if file.is_file()), path)
    line = beginning(file).removeprefix(MARK).partition(b"\n")[0]
    is_said = "delimiter" in asked or "rfc4180" in asked
    if not is_said and b"\t" in line and b"," not in line and b'"' not in line:
        if columns == 1:
            raise FactsError(f"{file}:1: a tab stands in a line without commas; say delimiter=, or rfc4180=true")
        return {"delimiter": "\t", "headers": "auto"}
    return {"rfc4180": "true", "headers": "auto"}
