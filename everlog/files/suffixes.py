"""The format of a file from its name: `.csv`, `.jsonl`, `.parquet`, `.gz`, ….

The result is parameters of a directive, which explicit parameters override.  There are two kinds of
`.csv` files: with commas and quotes, as usual, and with tabs, as in Soufflé; the first line
decides.  `headers` finds out whether it is a header.  (In a directive, parameters alone determine
the format of a `.csv`, as in Soufflé.)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from everlog.files.formats import FORMATS
from everlog.files.location import candidates
from everlog.files.text.encodings import MARK
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
    """The parameters for writing a file of this name; `asked` overrides them.

    >>> writing_parameters(Path("edge.csv"), {"headers": "false"})
    {'filename': 'edge.csv', 'rfc4180': 'true', 'headers': 'false'}
    """
    return {"filename": str(path), **_by_name(path, asked), **asked}


def reading_parameters(path: Path, asked: Mapping[str, str], columns: int) -> dict[str, str]:
    """The parameters for reading this number of columns from a file of this name."""
    found = dict(_by_name(path, asked))
    if found == COMMAS:
        found = _looked_at(path, asked, columns)
    return {"filename": str(path), **found, **asked}


def _by_name(path: Path, asked: Mapping[str, str]) -> Mapping[str, str]:
    suffix = Path(without_suffix(path.name)).suffix.lower()
    if suffix in SUFFIXES and "IO" not in asked:
        return SUFFIXES[suffix]
    if asked:
        return {}  # delimited text, or what `IO` says
    raise FactsError(
        f"the name of {path} does not determine a format: use {', '.join(SUFFIXES)}, each also with"
        " .gz or .zst; or a parameter, such as delimiter=; or IO=sqlite"
    )


def _looked_at(path: Path, asked: Mapping[str, str], columns: int) -> dict[str, str]:
    """The format of a `.csv` from its first line: only tabs mean Soufflé's.

    In a file of one column a tab may be part of the value.
    """
    file = next((file for file in candidates(path) if file.is_file()), path)
    line = beginning(file).removeprefix(MARK).partition(b"\n")[0]
    is_said = "delimiter" in asked or "rfc4180" in asked
    if not is_said and b"\t" in line and b"," not in line and b'"' not in line:
        if columns == 1:
            raise FactsError(f"{file}:1: the line has a tab and no commas; set delimiter=, or rfc4180=true")
        return {"delimiter": "\t", "headers": "auto"}
    return {"rfc4180": "true", "headers": "auto"}
