"""Tables of the user's own files as relations of the session: `.open people.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.tables.own_files import add_tables

if TYPE_CHECKING:
    from everlog.repl.session import Session


def open_tables(session: Session, paths: Sequence[Path]) -> None:
    """Declare a relation for each table, insert its rows, and tell both."""
    from everlog.repl.modes import number_of
    from everlog.repl.transactions import refuse_in_transaction

    refuse_in_transaction(session, "open files")
    for each in add_tables(session.db, paths):
        size = session.db.size(each.relation.name)
        session.screen.line(f"{each.relation}: {number_of(size, 'fact')}")
        if again := len(each.rows) - size:
            session.screen.note(f"{each.relation.name}: {number_of(again, 'row')} repeated; a fact counts once")
        for note in each.notes:
            session.screen.note(note)
