"""Arrow's own files (IPC, also called Feather 2), and its streams."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from everlog.core.program import Row
from everlog.files.location import Place, Reading
from everlog.files.typed.columnar import arrow_errors, columns_file, rows_of_columns, wanted_columns, write_columns

if TYPE_CHECKING:
    import pyarrow as pa

_FILE = b"ARROW1"


def read_ipc(reading: Reading) -> list[Row]:
    """Reader for `IO=arrow`."""
    place = reading.place
    path = columns_file(reading, ".arrow")
    if path is None:
        return []
    from pyarrow import ipc

    with arrow_errors(path), path.open("rb") as file:
        is_file = file.read(len(_FILE)) == _FILE
        file.seek(0)
        reader = ipc.open_file(file) if is_file else ipc.open_stream(file)
        if not place.relation.columns:
            return [()] if reader.read_all().num_rows else []
        positions = wanted_columns(place, reader.schema, str(path))
        table = reader.read_all()
        columns = [table.column(position) for position in positions]
        return rows_of_columns(place, columns, str(path), reading.refuse)


def write_ipc(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=arrow`."""

    def write(table: pa.Table, path: Path) -> None:
        from pyarrow import ipc

        options = ipc.IpcWriteOptions(compression=place.params.get("compression"))
        with ipc.new_file(str(path), table.schema, options=options) as file:
            file.write_table(table)

    write_columns(place, rows, ".arrow", write)
