"""The front of ies.sql: a system, by its name or itself, as a script in a dialect.

Reads: ies.catalogue, ies.sql.*.  Read by: the command line.
"""

from __future__ import annotations

from everlog.ies.sql import postgres, scripts, sqlite, witness
from everlog.ies.sql.dialects import DIALECTS, Dialect
from everlog.ies.sql.errors import SqlError
from everlog.ies.sql.script import Script
from everlog.ies.system import System

NODE_TYPES = ("integer", "text")


def script(system: str | System, dialect: str, *, node_type: str = "integer") -> Script:
    """The statements that make the tables and keep them current."""
    if dialect not in DIALECTS:
        raise SqlError(f"no dialect `{dialect}`; there are {', '.join(DIALECTS)}")
    if node_type not in NODE_TYPES:
        raise SqlError(f"no node type `{node_type}`; there are {', '.join(NODE_TYPES)}")
    writer = Dialect(dialect, node_type)
    if system == witness.NAME:
        return witness.write(writer)
    if isinstance(system, str):
        from everlog.ies.catalogue import system as named

        found = named(system)
        if not isinstance(found, System):
            raise SqlError(
                f"`{system}` is written in Python, not in the calculus, so there is no SQL for it; "
                "`tc_counts` and `tc_witness` keep a transitive closure in SQL"
            )
        system = found
    match dialect:
        case "sqlite":
            return sqlite.write(system, writer)
        case "postgres":
            return postgres.write(system, writer)
        case _:
            return scripts.write(system, writer)


def sql_text(system: str | System, dialect: str, *, node_type: str = "integer") -> str:
    """The whole script as text: tables, initial values, triggers or the statements of each update."""
    return script(system, dialect, node_type=node_type).text()
