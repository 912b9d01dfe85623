"""Parquet: columns in a file, or in the files of a folder, as Spark writes them.

Only the columns of the relation are read.  Rows are numbered from 1 through all files.

Reads: columnar, place.  Read by: formats.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from everlog.core.program import Row
from everlog.files.columnar import arrow_errors, needs, rows_of_columns, table_of_rows, wanted_columns
from everlog.files.place import Place, Reading, found, replacing


def read_parquet(reading: Reading) -> list[Row]:
    """`IO=parquet`"""
    place = reading.place
    path = found(place, place.path(".parquet"), reading.missing_ok)
    if path is None:
        return []
    needs("pyarrow", "arrow", "Parquet")
    import pyarrow.parquet as pq

    with arrow_errors(path):
        source = pq.ParquetDataset(path)
        if not place.relation.columns:
            return [()] if sum(fragment.count_rows() for fragment in source.fragments) else []
        schema = source.schema
        names = [schema.field(position).name for position in wanted_columns(place, schema, path.name)]
        table = source.read(columns=list(dict.fromkeys(names)))
        columns = [table.column(name) for name in names]
    return rows_of_columns(place, columns, path.name, reading.refuse)


def write_parquet(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """`IO=parquet`"""
    needs("pyarrow", "arrow", "Parquet")
    import pyarrow.parquet as pq

    path = place.path(".parquet")
    if not place.keeps(path.exists(), path):
        table = table_of_rows(place, rows)
        with arrow_errors(path), replacing(path) as temporary:
            pq.write_table(table, temporary, compression=place.params.get("compression", "snappy"))
