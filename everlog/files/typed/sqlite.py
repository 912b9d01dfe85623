"""SQLite: a relation is one table, whose columns are read by name or by position.

Soufflé writes a table `_NAME` of symbol numbers and a view `NAME` that looks them up; we write one
plain table `NAME`, which reads the same.  SQLite has no unsigned 64-bit integers and no NaN: an
`unsigned` is stored as the signed number with the same bits (as in Soufflé), NaN as NULL.

A transaction replaces a table, so a failure leaves the database as it was.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from everlog.core.program import Column, Kind, Row, Value
from everlog.core.program.fact_rows import column_label, exact_float, shown, with_article
from everlog.core.program.values import MASK, NAN, decoded, wrap
from everlog.files.location import Place, Reading, found, require_directory
from everlog.files.rejects import Refuse
from everlog.files.text.layout import sources_of
from everlog.files.text_values import PARSERS, FactsError, encoded_text, sorted_rows
from everlog.files.typed.typed_values import distinct_names, no_value, typed_rows
from everlog.spark_backend.column_types import positions_by_name

if TYPE_CHECKING:
    import sqlite3

_TYPES = {Kind.NUMBER: "INTEGER", Kind.UNSIGNED: "INTEGER", Kind.FLOAT: "REAL", Kind.SYMBOL: "TEXT"}
EVERLOG = int.from_bytes(b"evlg", "big")  # the application id of everlog's databases: see everlog.store
PRESENCE = Column("present", Kind.NUMBER)  # the column of a nullary relation: a table needs one


def _database(place: Place) -> tuple[str, Path | None]:
    """What to connect to, and the file for it; `file:` and `:memory:` have none."""
    named = place.params.get("filename", place.params.get("dbname", ""))
    if named.startswith(("file:", ":memory:")):
        return named, None
    path = place.path(".sqlite", "filename", "dbname")
    return str(path), path


@contextmanager
def _connected(database: str, uri: bool) -> Iterator[sqlite3.Connection]:
    import sqlite3  # which a Python in a browser does not have

    try:
        with closing(sqlite3.connect(database, uri=uri, isolation_level=None)) as connection:
            connection.text_factory = decoded
            yield connection
    except sqlite3.Error as problem:
        raise FactsError(f"{database}: {problem}") from None


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def read_sqlite(reading: Reading) -> list[Row]:
    """Reader for `IO=sqlite`."""
    place = reading.place
    database, path = _database(place)
    if path is not None:
        if found(place, path, reading.missing_ok) is None:
            return []
        database = path.absolute().as_uri() + "?mode=ro"
    with _connected(database, uri=database.startswith("file:")) as connection:
        query = place.params.get("query")
        if query is None and _kind_of(connection, place.table) is None:
            hint = "; it is an everlog database: use .open or --db" if _is_ours(connection) else ""
            raise FactsError(f"{path or database}: there is no table or view {place.table}{hint}")
        cursor = connection.execute(query or f"SELECT * FROM {quoted_name(place.table)}")
        where = f"{path or database}: {'the query' if query else f'table {place.table}'}"
        names = [description[0] for description in cursor.description or ()]
        return _rows(place, names, cursor.fetchall(), where, reading.refuse)


def _rows(
    place: Place, names: list[str], records: list[tuple[object, ...]], where: str, refuse: Refuse
) -> list[Row]:
    columns = place.relation.columns
    if not columns:
        return [()] if records else []
    sources = _sources(place, names)
    beyond = [index for index, source in enumerate(sources) if source >= len(names)]
    if beyond:
        label = column_label(columns[beyond[0]], sources[beyond[0]] + 1)
        raise FactsError(f"{where}: {label} is missing: the table has {len(names)} columns")
    if not records:
        return []
    stored = list(zip(*records, strict=True))
    return typed_rows(place, [stored[source] for source in sources], _value, where, refuse)


def _sources(place: Place, names: list[str]) -> Sequence[int]:
    """The positions of the relation's columns: by name if all match, else by position."""
    wanted = [column.name for column in place.relation.columns]
    if "columns" in place.params or names[: len(wanted)] == distinct_names(place.relation.columns):
        return sources_of(place)
    by_name = positions_by_name(wanted, names)
    return sources_of(place) if by_name is None else by_name


def _value(kind: Kind, value: object) -> Value:
    """A stored value converted to the column's kind; text is parsed as in a fact file."""
    match kind, value:
        case Kind.FLOAT, None:
            return NAN  # SQLite stores NaN as NULL
        case _, None:
            raise no_value(kind)
        case Kind.SYMBOL, bytes(data):
            return sys.intern(decoded(data))
        case Kind.SYMBOL, _:
            return sys.intern(str(value))
        case Kind.FLOAT, int(number):
            return exact_float(number)
        case Kind.FLOAT, float():
            return value + 0.0
        case Kind.UNSIGNED, int(number):
            return number & MASK
        case Kind.NUMBER, int(number):
            return number
        case _, str(text):
            return PARSERS[kind](text)
    raise ValueError(f"{shown(value)} is not {with_article(kind)}")


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write_sqlite(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=sqlite`: replaces or extends one table; the others stay."""
    records = _records(place, sorted_rows(place.relation, rows))
    database, path = _database(place)
    if path is not None:
        require_directory(path)
    fresh = path is not None and not path.exists()
    try:
        with _connected(database, uri=path is None) as connection:
            connection.execute("BEGIN IMMEDIATE")
            if _is_ours(connection):  # its own tables may have the names of relations
                raise FactsError(f"{path or database} is an everlog database, and is not changed")
            kind = _kind_of(connection, place.table)
            if place.keeps(kind is not None, f"a {kind} {place.table}"):
                return
            if kind is None or place.mode == "overwrite":
                _make_table(connection, place, kind)
            _fill_table(connection, place, records)
            connection.execute("COMMIT")
    except BaseException:
        if fresh and path is not None:
            path.unlink(missing_ok=True)
        raise


def _make_table(connection: sqlite3.Connection, place: Place, kind: str | None) -> None:
    table = quoted_name(place.table)
    if kind is not None:
        connection.execute(f"DROP {kind} {table}")
    columns = place.relation.columns or (PRESENCE,)
    names = map(quoted_name, distinct_names(columns))
    declarations = map("{} {}".format, names, (_TYPES[column.kind] for column in columns))
    connection.execute(f"CREATE TABLE {table} ({', '.join(declarations)})")


def _fill_table(connection: sqlite3.Connection, place: Place, records: Iterable[tuple[object, ...]]) -> None:
    columns = place.relation.columns or (PRESENCE,)
    values = ", ".join("CAST(? AS TEXT)" if column.kind is Kind.SYMBOL else "?" for column in columns)
    connection.executemany(f"INSERT INTO {quoted_name(place.table)} VALUES ({values})", records)


def _records(place: Place, rows: list[Row]) -> list[tuple[object, ...]]:
    """The rows as SQLite takes them; it turns NaN into NULL."""
    if not place.relation.columns:
        return [(1,)] if rows else []
    columns: list[Iterable[object]] = list(zip(*rows, strict=True))
    if not columns:
        return []
    for index, column in enumerate(place.relation.columns):
        if column.kind is Kind.UNSIGNED:
            columns[index] = map(wrap, columns[index])  # type: ignore[arg-type]  # by kind, these are ints
        elif column.kind is Kind.SYMBOL:
            columns[index] = map(_bindable, columns[index])
    return list(zip(*columns, strict=True))


def _bindable(symbol: object) -> str | bytes:
    """A symbol as a parameter; bytes that are not UTF-8 are cast in the statement."""
    text = str(symbol)
    if text.isascii():
        return text
    data = encoded_text(text)
    return data if any("\udc80" <= c <= "\udcff" for c in text) else text


def _is_ours(connection: sqlite3.Connection) -> bool:
    """Whether `Database.open` has created this database."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return bool(application == EVERLOG)


def _kind_of(connection: sqlite3.Connection, name: str) -> str | None:
    """`table`, `view` or None."""
    found = connection.execute(
        "SELECT type FROM sqlite_master WHERE type IN ('table', 'view') AND name = ? COLLATE NOCASE", (name,)
    ).fetchone()
    return None if found is None else str(found[0])


def quoted_name(name: str) -> str:
    return '"%s"' % name.replace('"', '""')
