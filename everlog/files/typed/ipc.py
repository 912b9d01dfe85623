"""Arrow's own files (IPC, also called Feather 2), and its streams."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from everlog.core.program import Row
from everlog.files.location import Place, Reading
from everlog.files.typed.columnar import (
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

    from everlog.core.native._machine import Relation as Words
    from everlog.core.native._machine import Symbols

_FILE = b"ARROW1"


def read_ipc(reading: Reading) -> list[Row]:
    """Reader for `IO=arrow`."""
    place = reading.place
    path = columns_file(reading, ".arrow")
    if path is None:
        return []
    with arrow_errors(path), path.open("rb") as file:
        reader = _opened(file)
        if not place.relation.columns:
            return [()] if reader.read_all().num_rows else []
        positions = wanted_columns(place, reader.schema, str(path))
        table = reader.read_all()
        columns = [table.column(position) for position in positions]
        return rows_of_columns(place, columns, str(path), reading.refuse)


def read_ipc_words(place: Place, symbols: Symbols) -> Words | None:
    """The file as a relation of the compiled machine; None if `read_ipc` has to look at it."""
    path = columns_file(Reading(place, missing_ok=True), ".arrow")
    if path is None or not place.relation.columns:
        return None
    with arrow_errors(path), path.open("rb") as file:
        reader = _opened(file)
        positions = wanted_columns(place, reader.schema, str(path))
        return words_of_batches(place, _batches(reader), positions, symbols)


def _opened(file: BinaryIO) -> Any:
    """A reader of a file or of a stream."""
    from pyarrow import ipc

    is_file = file.read(len(_FILE)) == _FILE
    file.seek(0)
    return ipc.open_file(file) if is_file else ipc.open_stream(file)


def _batches(reader: Any) -> Batches:
    if hasattr(reader, "num_record_batches"):
        return (reader.get_batch(number) for number in range(reader.num_record_batches))
    batches: Batches = reader
    return batches


def write_ipc(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=arrow`."""

    def write(schema: pa.Schema, batches: Batches, path: Path) -> None:
        from pyarrow import ipc

        options = ipc.IpcWriteOptions(compression=place.params.get("compression"))
        with ipc.new_file(str(path), schema, options=options) as file:
            for batch in batches:
                file.write_batch(batch)

    write_columns(place, rows, ".arrow", write)
