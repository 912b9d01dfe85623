"""DuckDB: a table or a query of a database file, through Arrow.

A transaction replaces a table, so a failure leaves the database as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TextIO

from everlog.core.program import Row
from everlog.files.location import Place, Reading, found, require_directory
from everlog.files.text_values import FactsError
from everlog.files.typed.columnar import needs, rows_of_columns, table_of_rows, wanted_columns
from everlog.files.typed.sqlite import quoted_name

_INCOMING = "everlog incoming facts"  # the name of an Arrow table, for one statement


@contextmanager
def _connected(path: Path, read_only: bool) -> Iterator[Any]:
    duckdb = needs("duckdb", "sql", "IO=duckdb")
    needs("pyarrow", "arrow", "IO=duckdb")
    try:
        with closing(duckdb.connect(str(path), read_only=read_only)) as connection:
            yield connection
    except duckdb.Error as problem:
        raise FactsError(f"{path}: {str(problem).splitlines()[0]}") from None


def _table(place: Place) -> str:
    return ".".join(map(quoted_name, place.table_path))


def read_duckdb(reading: Reading) -> list[Row]:
    """Reader for `IO=duckdb`."""
    place = reading.place
    path = found(place, place.path(".duckdb", "filename", "dbname"), reading.missing_ok)
    if path is None:
        return []
    query = place.params.get("query")
    where = f"{path}: {'the query' if query else f'table {place.table}'}"
    source = f"({query})" if query else _table(place)
    with _connected(path, read_only=True) as connection:
        if not place.relation.columns:
            return [()] if connection.sql(f"SELECT 1 FROM {source} LIMIT 1").fetchall() else []
        schema = connection.sql(f"SELECT * FROM {source} LIMIT 0").to_arrow_table().schema
        positions = wanted_columns(place, schema, where)
        names = [quoted_name(schema.field(position).name) for position in positions]
        table = connection.sql(f"SELECT {', '.join(names)} FROM {source}").to_arrow_table()
        return rows_of_columns(place, table.columns, where, reading.refuse)


def write_duckdb(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=duckdb`: replaces or extends one table; the others stay."""
    path = place.path(".duckdb", "filename", "dbname")
    require_directory(path)
    fresh = not path.exists()
    try:
        with _connected(path, read_only=False) as connection:
            incoming = table_of_rows(place, rows)
            connection.execute("BEGIN")
            there = _exists(connection, place)
            if place.keeps(there, f"a table {place.table}"):
                return
            connection.register(_INCOMING, incoming)
            chosen = f"SELECT * FROM {quoted_name(_INCOMING)}"
            if there and place.mode == "append":
                connection.execute(f"INSERT INTO {_table(place)} {chosen}")
            else:
                connection.execute(f"CREATE OR REPLACE TABLE {_table(place)} AS {chosen}")
            connection.execute("COMMIT")
    except BaseException:
        if fresh:
            path.unlink(missing_ok=True)
        raise


def _exists(connection: Any, place: Place) -> bool:
    *schema, name = place.table_path
    known = "SELECT 1 FROM information_schema.tables WHERE lower(table_name) = lower(?)"
    of_schema = " AND lower(table_schema) = lower(?)" if schema else ""
    return bool(connection.execute(known + of_schema, [name, *schema[-1:]]).fetchall())
