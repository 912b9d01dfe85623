"""Entry points of ies.sql: a system, or its name, as a script in a dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlog.ies.nrc.types import Type, height
from everlog.ies.sql import postgres, scripts, sqlite, witness
from everlog.ies.sql.dialects import DIALECTS, Dialect
from everlog.ies.sql.errors import SqlError
from everlog.ies.sql.script import Script
from everlog.ies.system import System

if TYPE_CHECKING:
    from everlog.ies.practical.protocol import Described

NODE_TYPES = ("integer", "text")


def script(system: str | System, dialect: str, *, node_type: str = "integer") -> Script:
    """The statements that create the tables and maintain them."""
    if dialect not in DIALECTS:
        raise SqlError(f"no dialect `{dialect}`; there are {', '.join(DIALECTS)}")
    if node_type not in NODE_TYPES:
        raise SqlError(f"no node type `{node_type}`; there are {', '.join(NODE_TYPES)}")
    writer = Dialect(dialect, node_type)
    if system == witness.NAME:
        return witness.write(writer)
    if isinstance(system, str):
        from everlog.ies.registry import system as named

        found = named(system)
        if not isinstance(found, System):
            raise SqlError(
                f"`{system}` is written in Python, not in the calculus, so there is no SQL for it"
                + _instead(found)
            )
        system = found
    match dialect:
        case "sqlite":
            return sqlite.write(system, writer)
        case "postgres":
            return postgres.write(system, writer)
        case _:
            return scripts.write(system, writer)


def _instead(wanted: Described) -> str:
    """A system of the calculus with the same inputs and answer; a flat one if any."""
    from everlog.ies.registry import SYSTEMS
    from everlog.ies.registry import system as named

    found: list[tuple[bool, bool, str]] = []
    for name in SYSTEMS:
        other = named(name)
        if isinstance(other, System) and _kept(other) == _kept(wanted):
            nested = any(height(stored.type) != 1 for stored in other.stored)
            found.append((other.exponential, nested, f"flatten({name})" if nested else name))
    if not found:
        return ""
    exponential, _, name = min(found)
    return f"; `{name}` keeps the same answer in SQL" + ", with tables that grow exponentially" * exponential


def _kept(system: System | Described) -> tuple[tuple[str, Type], ...]:
    return tuple((stored.name, stored.type) for stored in (*system.inputs, system.answer))


def sql_text(system: str | System, dialect: str, *, node_type: str = "integer") -> str:
    """The whole script: tables, initial values, triggers or update statements."""
    return script(system, dialect, node_type=node_type).text()
