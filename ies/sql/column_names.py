"""The names of a relation's columns in a database.

A system names no columns, but its text does: the Datalog query has path(x, y), the meaning of a
relation reads "(x, y, n): n paths …", and an update binds (u, v).  The first of these that fits is
taken, else c1, c2, ….
"""

from __future__ import annotations

import re

from everlog.ies.nrc.terms import Bind, Parts, Pattern
from everlog.ies.nrc.types import columns, height
from everlog.ies.sql.errors import SqlError
from everlog.ies.sql.symbolic_values import Table
from everlog.ies.system import Stored, System


def tables(system: System) -> dict[str, Table]:
    """The table of each stored relation."""
    out: dict[str, Table] = {}
    for stored in system.stored:
        if height(stored.type) != 1:
            raise SqlError(
                f"`{stored.name}` of {system.name} is nested ({stored.type}), and a table is flat; "
                f"`flatten({system.name})` is the same system with flat relations"
            )
        width = len(columns(stored.type.element))
        out[stored.name] = Table(stored.name, _names(system, stored, width), stored.type.element)
    return out


def _names(system: System, stored: Stored, width: int) -> tuple[str, ...]:
    atom = re.compile(rf"\b{re.escape(stored.name)}\(([^()]*)\)")
    candidates = [match.group(1) for match in atom.finditer(system.query)][:1]
    meant = re.match(r"\(([^()]*)\)", stored.meaning)
    if meant is not None:
        candidates.append(meant.group(1))
    for words in candidates:
        names = tuple(word.strip() for word in words.split(","))
        if _fit(names, width):
            return names
    update = system.updates.get(("insert", stored.name))
    if update is not None and _fit(names := _pattern(update.tuple_), width):
        return names
    return tuple(f"c{number}" for number in range(1, width + 1))


def _fit(names: tuple[str, ...], width: int) -> bool:
    plain = all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)
    return len(names) == width == len(set(names)) and plain


def _pattern(pattern: Pattern) -> tuple[str, ...]:
    match pattern:
        case Bind(name):
            return (name,)
        case Parts(parts):
            return tuple(name for part in parts for name in _pattern(part))
