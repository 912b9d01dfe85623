"""Tables of the user's own files as relations of the session: `.open people.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.repl.table import CommandError
from everlog.tables.own_files import tables_in

if TYPE_CHECKING:
    from everlog.repl.session import Session


def open_tables(session: Session, paths: Sequence[Path]) -> None:
    """Declare a relation for each table, and insert its rows; all of them or none."""
    from everlog.repl.modes import number_of
    from everlog.repl.transactions import refuse_in_transaction
    from everlog.tables.inferred import infer, known_types

    refuse_in_transaction(session, "open files")
    found = [infer(name, table) for path in paths for name, table in tables_in(path)]
    if not found:
        raise CommandError(f"{paths[0]} has no tables")
    names = [each.relation.name for each in found]
    for name in names:
        if name in session.db.relations or names.count(name) > 1:
            raise CommandError(f"a relation `{name}` is there already: rename the file, or `.drop {name}` first")
    text = "\n".join(session.db.statements())
    for each in found:
        text += "\n" + each.declaration(known_types(text))
    new = text.removeprefix("\n".join(session.db.statements()))
    session.db.add_rule(new)
    session.db.insert_all({each.relation.name: each.rows for each in found})
    for each in found:
        session.screen.line(f"{each.relation}: {number_of(len(each.rows), 'fact')}")
        for note in each.notes:
            session.screen.note(note)
