"""PostgreSQL: tables and queries with COPY, in one transaction.

| kind       | made as          | read from                                         |
|------------|------------------|---------------------------------------------------|
| `number`   | bigint           | smallint, integer, bigint, numeric without fraction |
| `unsigned` | numeric(20)      | the same                                          |
| `float`    | double precision | real, double precision, integers, numeric         |
| `symbol`   | text             | text, varchar, char, name, bytea                  |

An existing table that fits is emptied and filled, so its indexes, views and permissions stay, and
readers see the old facts until the transaction ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from attrs import evolve

from everlog.core.program import Column, Kind, Relation, Row
from everlog.files.location import Place, Reading
from everlog.files.text_values import FactsError, sorted_rows
from everlog.files.typed.columnar import needs
from everlog.files.typed.sqlite import PRESENCE
from everlog.files.typed.typed_values import Typed, check_columns, distinct_names, typed_rows, typed_value

if TYPE_CHECKING:
    from psycopg import Connection, sql

TYPES = {Kind.NUMBER: "bigint", Kind.UNSIGNED: "numeric(20)", Kind.FLOAT: "double precision", Kind.SYMBOL: "text"}
_INTEGERS = frozenset({Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT})
_FLOATS = frozenset({Kind.FLOAT})
_TEXTS = frozenset({Kind.SYMBOL})
_NUMERIC = 1700
# oid of a type → kinds that it can hold
_KINDS = dict.fromkeys((20, 21, 23, 26, _NUMERIC), _INTEGERS)
_KINDS |= dict.fromkeys((700, 701), _FLOATS)
_KINDS |= dict.fromkeys((25, 1043, 1042, 19, 18, 17, 705), _TEXTS)
_UNWRITABLE = frozenset({17, 1042})  # bytea, and char(n), which pads its values
_PASSWORD = re.compile(r"(?<=:)[^:@/]+(?=@)|(?<=password=)[^&\s]+")


def kinds_of_oid(oid: int, modifier: int = -1) -> frozenset[Kind]:
    """The kinds that a type can hold; the scale of a `numeric` decides, if it has one."""
    if oid == _NUMERIC and modifier >= 4 and (modifier - 4) & 0x7FF:
        return _FLOATS
    return _KINDS.get(oid, frozenset())


def redacted(url: str) -> str:
    """The address without its password.

    >>> redacted("postgresql://ada:secret@host/shop"), redacted("host=x password=secret dbname=y")
    ('postgresql://ada:***@host/shop', 'host=x password=*** dbname=y')
    """
    return _PASSWORD.sub("***", url)


@contextmanager
def connected(url: str, user: str | None = None, password: str | None = None) -> Iterator[Connection[Any]]:
    """A connection; errors of the server become FactsError, without the password."""
    options: Any = {key: value for key, value in (("user", user), ("password", password)) if value is not None}
    with server_errors(url):
        import psycopg

        with psycopg.connect(url, **options) as connection:
            yield connection


@contextmanager
def server_errors(url: str) -> Iterator[None]:
    """Convert errors of the server to FactsError with the database's address."""
    psycopg = needs("psycopg", "sql", "PostgreSQL")
    try:
        yield
    except psycopg.Error as problem:
        first = next(iter(str(problem).strip().splitlines()), type(problem).__name__)
        raise FactsError(f"{redacted(url)}: {first}") from None


def _url(place: Place) -> str:
    """The address of the database; if empty, libpq uses its environment (`PGHOST`, …)."""
    return place.params.get("url", place.params.get("dbname", "")).removeprefix("jdbc:")


@contextmanager
def _database(place: Place) -> Iterator[Connection[Any]]:
    with connected(_url(place), place.params.get("user"), place.params.get("password")) as connection:
        yield connection


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def read_postgres(reading: Reading) -> list[Row]:
    """Reader for `IO=postgres`."""
    place = reading.place
    with _database(place) as connection:
        return read_table(connection, reading, _source(place))


def _source(place: Place) -> sql.Composable:
    """The source after FROM; `dbtable` may be a query in parentheses, as for JDBC."""
    from psycopg import sql

    query = place.params.get("query")
    if query is not None:
        return sql.SQL("({}\n) AS facts").format(_literally(query.rstrip("; \n")))
    if place.table.startswith("("):
        return _literally(place.table)
    return sql.Identifier(*place.table_path)


def _literally(text: str) -> sql.Composable:
    """SQL from the user, unchanged: it runs with the user's own permissions."""
    from psycopg import sql

    return sql.SQL(text)


def read_table(connection: Connection[Any], reading: Reading, source: sql.Composable) -> list[Row]:
    """The facts of a table or query, in one statement: so from one snapshot."""
    from psycopg import sql

    place = reading.place
    where = "the query" if "query" in place.params else f"table {place.table}"
    found = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(source)).description or []
    if not place.relation.columns:
        return [()] if connection.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(source)).fetchall() else []
    positions = check_columns(place, [_typed(column) for column in found], where)
    names = sql.SQL(", ").join(sql.Identifier(found[position].name) for position in positions)
    copy = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT BINARY)").format(names, source)
    with connection.cursor().copy(copy) as rows:
        rows.set_types([found[position].type_code for position in positions])
        columns = list(zip(*rows.rows(), strict=True))
    return typed_rows(place, columns, typed_value, where, reading.refuse) if columns else []


def _typed(column: Any) -> Typed:
    modifier = -1 if column.scale is None or not column.scale else 4 + column.scale
    return Typed(column.name, column.type_display, kinds_of_oid(column.type_code, modifier))


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write_postgres(place: Place, rows: Iterable[Row], stdout: TextIO) -> None:
    """Writer for `IO=postgres`: fills or extends a table, completely or not at all."""
    from psycopg import sql

    ordered = sorted_rows(place.relation, rows)
    refuse_unstorable(place.relation, ordered)
    table = sql.Identifier(*place.table_path)
    with _database(place) as connection:
        there = table_exists(connection, table)
        if place.keeps(there, f"a table {place.table}"):
            return
        names = make_table(connection, place, table) if not there else fitting_names(connection, place, table)
        if there and place.mode == "overwrite":
            connection.execute(sql.SQL("DELETE FROM {}").format(table))
        fill_table(connection, table, names, ordered or [])


def table_exists(connection: Connection[Any], table: sql.Identifier) -> bool:
    found = connection.execute("SELECT to_regclass(%s)", [table.as_string(connection)]).fetchone()
    return found is not None and found[0] is not None


def make_table(connection: Connection[Any], place: Place, table: sql.Identifier) -> list[str]:
    """Create the table of a relation; the names of its columns."""
    from psycopg import sql

    columns = place.relation.columns or (PRESENCE,)
    names = distinct_names(columns)
    declared = [
        sql.SQL("{} {} NOT NULL").format(sql.Identifier(name), _literally(TYPES[column.kind]))
        for name, column in zip(names, columns, strict=True)
    ]
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(table, sql.SQL(", ").join(declared)))
    return names


def fitting_names(connection: Connection[Any], place: Place, table: sql.Identifier) -> list[str]:
    """The columns of a table that hold the relation's; FactsError if they do not fit."""
    from psycopg import sql

    found = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(table)).description or []
    columns: Sequence[Column] = place.relation.columns
    if not columns:
        return [found[0].name]
    writable = [evolve(_typed(c), kinds=frozenset()) if c.type_code in _UNWRITABLE else _typed(c) for c in found]
    positions = check_columns(place, writable, f"table {place.table}")
    return [found[position].name for position in positions]


def fill_table(
    connection: Connection[Any], table: sql.Identifier, names: Sequence[str], rows: Iterable[Row]
) -> None:
    from psycopg import sql

    listed = sql.SQL(", ").join(map(sql.Identifier, names))
    with connection.cursor().copy(sql.SQL("COPY {} ({}) FROM STDIN").format(table, listed)) as copy:
        for row in rows:
            copy.write_row(row or (1,))


def refuse_unstorable(relation: Relation, rows: Iterable[Row]) -> None:
    """Raise FactsError for symbols with NUL or bytes that are not UTF-8."""
    symbols = [index for index, column in enumerate(relation.columns) if column.kind is Kind.SYMBOL]
    for row in rows if symbols else ():
        for index in symbols:
            text = str(row[index])
            if not text.isascii() or "\0" in text:
                try:
                    if b"\0" not in text.encode():
                        continue
                except UnicodeEncodeError:
                    pass
                raise FactsError(f"relation {relation.name}: PostgreSQL cannot store the symbol {text!r}")
