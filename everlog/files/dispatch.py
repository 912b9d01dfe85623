"""The parameter `IO=` of a directive picks how its facts are read or written.

Reads: all of this package.  Read by: the command line, the session.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TextIO, TypeAlias, TypeVar

from everlog.core.collector import collector_paused
from everlog.core.program import Relation, Row
from everlog.files.delimited import delimited_text, header_text, read_delimited
from everlog.files.json import json_text, read_json
from everlog.files.place import Place, read_bytes, read_stream, write_bytes, write_stream
from everlog.files.sqlite import read_sqlite, write_sqlite
from everlog.files.values import FactsError, encoded_text, shown

KNOWN_PARAMETERS = frozenset(
    {"IO", "name", "filename", "dbname", "delimiter", "headers", "attributeNames"}
    | {"columns", "rfc4180", "compress", "format", "n"}
)

Reader: TypeAlias = Callable[[Place, bool, TextIO | None], list[Row]]
Writer: TypeAlias = Callable[[Place, Iterable[Row], TextIO], None]
_Way = TypeVar("_Way", Reader, Writer)


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def read_facts(
    relation: Relation,
    params: Mapping[str, str],
    directory: Path,
    missing_ok: bool = False,
    stdin: TextIO | None = None,
) -> list[Row]:
    """All facts of a relation, or FactsError: never some of them.

    With `missing_ok`, a file that does not exist has no facts.  The same fact may come twice.
    """
    read = _chosen(READERS, params, "read")
    with collector_paused():
        return read(Place(relation, params, directory), missing_ok, stdin)


def _read_file(place: Place, missing_ok: bool, stdin: TextIO | None) -> list[Row]:
    path = place.path(".facts")
    data = read_bytes(place, path, missing_ok)
    return [] if data is None else read_delimited(place, data, path.name)


def _read_stdin(place: Place, missing_ok: bool, stdin: TextIO | None) -> list[Row]:
    return read_delimited(place, read_stream(stdin), "<stdin>")


def _read_json(place: Place, missing_ok: bool, stdin: TextIO | None) -> list[Row]:
    """`IO=json` is standard input, as in Soufflé, unless a file is named."""
    if "filename" in place.params:
        return _read_json_file(place, missing_ok, stdin)
    return read_json(place, read_stream(stdin), "<stdin>")


def _read_json_file(place: Place, missing_ok: bool, stdin: TextIO | None) -> list[Row]:
    path = place.path(".json")
    data = read_bytes(place, path, missing_ok)
    return [] if data is None else read_json(place, data, path.name)


def _read_sqlite(place: Place, missing_ok: bool, stdin: TextIO | None) -> list[Row]:
    return read_sqlite(place, missing_ok)


READERS: Mapping[str, Reader] = {
    "file": _read_file,
    "json": _read_json,
    "jsonfile": _read_json_file,
    "sqlite": _read_sqlite,
    "stdin": _read_stdin,
}


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write_facts(
    relation: Relation, rows: Iterable[Row], params: Mapping[str, str], directory: Path, stdout: TextIO
) -> None:
    """Write all facts, sorted; after FactsError the file is what it was before."""
    write = _chosen(WRITERS, params, "write")
    with collector_paused():
        write(Place(relation, params, directory), rows, stdout)


def write_size(relation: Relation, count: int, stdout: TextIO) -> None:
    write_stream(stdout, f"{relation.name}\t{count}\n")


def _write_file(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    data = encoded_text(header_text(place) + delimited_text(place, rows))
    if place.flag("compress"):
        write_bytes(place.path(".csv.gz"), gzip.compress(data, compresslevel=6, mtime=0))
    else:
        write_bytes(place.path(".csv"), data)


def _write_stdout(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    above = f"---------------\n{place.name}\n{header_text(place)}===============\n"
    write_stream(stdout, f"{above}{delimited_text(place, rows)}===============\n")


def _write_json(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """`IO=json` is the screen, as in Soufflé, unless a file is named."""
    if "filename" in place.params:
        _write_json_file(place, rows, stdout)
    else:
        write_stream(stdout, json_text(place, rows))


def _write_json_file(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    write_bytes(place.path(".json"), encoded_text(json_text(place, rows)))


def _write_sqlite(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    write_sqlite(place, rows)


WRITERS: Mapping[str, Writer] = {
    "file": _write_file,
    "json": _write_json,
    "jsonfile": _write_json_file,
    "sqlite": _write_sqlite,
    "stdout": _write_stdout,
}


_ON_SPARK = frozenset({"jdbc", "jsonl", "orc", "parquet", "spark", "table"})  # see everlog.spark_facts


# ── common ───────────────────────────────────────────────────────────────────────────────────


def _chosen(table: Mapping[str, _Way], params: Mapping[str, str], verb: str) -> _Way:
    way = params.get("IO", "file")
    if way not in table:
        hint = "; that is for `--engine spark`" if way in _ON_SPARK else ""
        raise FactsError(f"cannot {verb} facts with IO={shown(way)}: known are {', '.join(sorted(table))}{hint}")
    return table[way]
