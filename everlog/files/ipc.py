"""Arrow's own files (IPC, also called Feather 2), and its streams, which are known by how they begin.

Reads: columnar, place.  Read by: formats.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from everlog.core.program import Row
from everlog.files.columnar import arrow_errors, needs, rows_of_columns, table_of_rows, wanted_columns
from everlog.files.place import Place, Reading, found, replacing

_FILE = b"ARROW1"


def read_ipc(reading: Reading) -> list[Row]:
    """`IO=arrow`"""
    place = reading.place
    path = found(place, place.path(".arrow"), reading.missing_ok)
    if path is None:
        return []
    needs("pyarrow", "arrow", "IO=arrow")
    from pyarrow import ipc

    with arrow_errors(path), path.open("rb") as file:
        is_file = file.read(len(_FILE)) == _FILE
        file.seek(0)
        reader = ipc.open_file(file) if is_file else ipc.open_stream(file)
        if not place.relation.columns:
            return [()] if reader.read_all().num_rows else []
        positions = wanted_columns(place, reader.schema, path.name)
        table = reader.read_all()
        columns = [table.column(position) for position in positions]
        return rows_of_columns(place, columns, path.name, reading.refuse)


def write_ipc(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """`IO=arrow`"""
    needs("pyarrow", "arrow", "IO=arrow")
    from pyarrow import ipc

    path = place.path(".arrow")
    if not place.keeps(path.exists(), path):
        table = table_of_rows(place, rows)
        with arrow_errors(path), replacing(path) as temporary:
            options = ipc.IpcWriteOptions(compression=place.params.get("compression"))
            file = ipc.new_file(str(temporary), table.schema, options=options)
            file.write_table(table)
            file.close()
