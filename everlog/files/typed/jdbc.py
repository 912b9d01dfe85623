"""`IO=jdbc`, Spark's name for databases: the URL selects one of our formats.

So a program runs in process and on Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from attrs import evolve

from everlog.core.program import Row
from everlog.files.location import Place, Reader, Reading, Writer
from everlog.files.text_values import FactsError
from everlog.files.typed.duckdb import read_duckdb, write_duckdb
from everlog.files.typed.postgres import read_postgres, redacted, write_postgres
from everlog.files.typed.sqlite import read_sqlite, write_sqlite

_WAYS: dict[str, tuple[Reader, Writer]] = {
    "postgresql": (read_postgres, write_postgres),
    "sqlite": (read_sqlite, write_sqlite),
    "duckdb": (read_duckdb, write_duckdb),
}


def _chosen(place: Place) -> tuple[Place, Reader, Writer]:
    url = place.params.get("url", "")
    scheme, _, rest = url.removeprefix("jdbc:").partition(":")
    if not url.startswith("jdbc:") or scheme not in _WAYS:
        known = ", ".join(f"jdbc:{name}:…" for name in _WAYS)
        raise FactsError(
            f"relation {place.relation.name}: IO=jdbc in this process supports {known}, not {redacted(url)!r};"
            " `--engine spark` supports more"
        )
    params = dict(place.params)
    if scheme != "postgresql":
        params = {"filename": rest, **{key: value for key, value in params.items() if key != "url"}}
    return evolve(place, params=params), *_WAYS[scheme]


def read_jdbc(reading: Reading) -> list[Row]:
    """Reader for `IO=jdbc`."""
    place, read, _ = _chosen(reading.place)
    return read(evolve(reading, place=place))


def write_jdbc(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=jdbc`."""
    place, _, write = _chosen(place)
    write(place, rows, stdout)
