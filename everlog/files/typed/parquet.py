"""Parquet: one file, or a folder of files, as Spark writes them.

Only the columns of the relation are read.  Rows are numbered from 1 through all files.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from everlog.core.program import Row
from everlog.files.location import Place, Reading
from everlog.files.typed.columnar import arrow_errors, columns_file, rows_of_columns, wanted_columns, write_columns

if TYPE_CHECKING:
    import pyarrow as pa


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
        schema = source.schema
        names = [schema.field(position).name for position in wanted_columns(place, schema, str(path))]
        table = source.read(columns=list(dict.fromkeys(names)))
        columns = [table.column(name) for name in names]
    return rows_of_columns(place, columns, str(path), reading.refuse)


def write_parquet(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=parquet`."""

    def write(table: pa.Table, path: Path) -> None:
        import pyarrow.parquet as pq

        pq.write_table(table, path, compression=place.params.get("compression", "snappy"))

    write_columns(place, rows, ".parquet", write)
