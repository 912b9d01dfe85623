"""Parquet: one file, or a folder of files, as Spark writes them.

Only the columns of the relation are read.  Rows are numbered from 1 through all files.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from everlog.core.program import Row
from everlog.files.location import Place, Reading
from everlog.files.typed.columnar import (
    PART,
    Batches,
    arrow_errors,
    columns_file,
    rows_of_columns,
    wanted_columns,
    words_of_batches,
    write_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from everlog.core.native._machine import Relation as Words
    from everlog.core.native._machine import Symbols


def read_parquet(reading: Reading) -> list[Row]:
    """Reader for `IO=parquet`."""
    place = reading.place
    path = columns_file(reading, ".parquet")
    if path is None:
        return []
    import pyarrow.parquet as pq

    with arrow_errors(path):
        source = pq.ParquetDataset(path)
        if not place.relation.columns:
            return [()] if sum(fragment.count_rows() for fragment in source.fragments) else []
        names = _names(place, source, path)
        table = source.read(columns=list(dict.fromkeys(names)))
        columns = [table.column(name) for name in names]
    return rows_of_columns(place, columns, str(path), reading.refuse)


def read_parquet_words(place: Place, symbols: Symbols) -> Words | None:
    """The file as a relation of the compiled machine; None if `read_parquet` has to look at it."""
    path = columns_file(Reading(place, missing_ok=True), ".parquet")
    if path is None or not place.relation.columns:
        return None
    import pyarrow.parquet as pq

    with arrow_errors(path):
        source = pq.ParquetDataset(path)
        names = _names(place, source, path)
        if len(set(names)) < len(names):
            return None
        parts = (one.to_batches(schema=source.schema, columns=names) for one in source.fragments)
        return words_of_batches(place, chain.from_iterable(parts), names, symbols)


def _names(place: Place, source: pq.ParquetDataset, path: Path) -> list[str]:
    """The columns of the file that hold the facts."""
    return [source.schema.field(position).name for position in wanted_columns(place, source.schema, str(path))]


def write_parquet(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=parquet`."""

    def write(schema: pa.Schema, batches: Batches, path: Path) -> None:
        import pyarrow.parquet as pq

        with pq.ParquetWriter(path, schema, compression=place.params.get("compression", "snappy")) as file:
            for batch in batches:
                file.write_batch(batch, row_group_size=PART)

    write_columns(place, rows, ".parquet", write)
