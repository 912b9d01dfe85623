"""A script: statements that create the tables, and those of each update.

Only databases without triggers have statements of updates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import field, frozen

from everlog.ies.nrc.types import columns
from everlog.ies.sql.dialects import Dialect, printable
from everlog.ies.sql.symbolic_values import Table, kind_of
from everlog.ies.system import Event


@frozen
class Script:
    """Statements without the semicolon at their end.

    `updates` are, for DuckDB and Spark, the statements of one update, to be run with the updated
    row's cells as variables or parameters; SQLite and PostgreSQL have triggers, which are in
    `schema`.
    """

    dialect: str
    title: str
    schema: tuple[str, ...]
    updates: Mapping[tuple[Event, str], tuple[str, ...]] = field(factory=dict)
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """The whole script as one text."""
        out = [comment(line) for line in (self.title, *self.notes)]
        out += ["", *(f"{statement};\n" for statement in self.schema)]
        for (event, relation), statements in self.updates.items():
            out += [comment(f"── {event} of a row of {relation} ") + "─" * 60, ""]
            out += [f"{statement};\n" for statement in statements]
        return "\n".join(out).rstrip("\n") + "\n"


def comment(text: str) -> str:
    """The text as a comment of one line."""
    return f"-- {printable(text)}"


def names(dialect: Dialect, table: Table) -> str:
    return ", ".join(map(dialect.quoted, table.columns))


def create(dialect: Dialect, table: Table) -> str:
    """CREATE TABLE with all columns as the primary key (Spark has no keys)."""
    name = dialect.quoted(table.name)
    lines: list[str] = []
    for column, base in zip(table.columns, columns(table.row), strict=True):
        check = ""
        if dialect.name == "sqlite" and kind_of(base) == "num":
            check = f" CHECK (typeof({dialect.quoted(column)}) = 'integer')"
        lines.append(f"  {dialect.quoted(column)} {dialect.column_type(base)} NOT NULL{check}")
    if dialect.name == "spark":
        return f"CREATE TABLE {name} (\n" + ",\n".join(lines) + "\n)"
    lines.append(f"  PRIMARY KEY ({names(dialect, table)})")
    return f"CREATE TABLE {name} (\n" + ",\n".join(lines) + "\n)" + " WITHOUT ROWID" * (dialect.name == "sqlite")


def indices(dialect: Dialect, table: Table, lookups: Iterable[frozenset[str]]) -> list[str]:
    """Indexes for lookups that lack the first column of the primary key."""
    wanted = sorted(
        (lookup for lookup in lookups if table.columns[0] not in lookup), key=lambda a: (-len(a), sorted(a))
    )
    out: dict[tuple[str, ...], None] = {}
    for lookup in wanted:
        key = tuple(column for column in table.columns if column in lookup)
        if not any(known[: len(key)] == key for known in out):
            out[(*key, *(column for column in table.columns if column not in lookup))] = None
    made: list[str] = []
    for key in out:
        name = dialect.quoted(
            "_".join((table.name, "by", *key[: len(key)][:1])) + (str(len(made)) if made else "")
        )
        listed = ", ".join(map(dialect.quoted, key))
        made.append(f"CREATE INDEX {name} ON {dialect.quoted(table.name)} ({listed})")
    return made


def same(dialect: Dialect, table: Table, row: Sequence[str]) -> str:
    """The condition that a row of a table equals this one."""
    cells = zip(table.columns, row, strict=True)
    return " AND ".join(f"{dialect.quoted(column)} = {text}" for column, text in cells)


def listed(dialect: Dialect, table: Table) -> str:
    """The columns as the left side of IN."""
    return names(dialect, table) if len(table.columns) == 1 else f"({names(dialect, table)})"


def indented(text: str, by: int = 2) -> str:
    pad = " " * by
    return "\n".join(pad + line if line else line for line in text.splitlines())
