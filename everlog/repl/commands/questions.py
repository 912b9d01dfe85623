"""Commands for questions about steps that are not made: `.what-if`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.repl.session import Session

THEME = "Steps that are not made"


@command(
    ".what-if",
    "+FACT. -FACT. …",
    "the changes that a step would cause",
    THEME,
    words=None,
    completes=("fact",),
    aliases=(".what_if", ".whatif"),
)
def what_if(session: Session, words: Words) -> None:
    """
    For example `.what-if -edge(2, 3).`, or several inserts and deletes as one step.  Nothing
    changes.  In a transaction, the answer includes its updates; there the step may be left out.
    """
    from everlog.repl.reports import print_changes
    from everlog.repl.statements import updates_of

    if not words and session.pending is None:
        raise CommandError("usage: .what-if +FACT. -FACT. …")
    step = updates_of(session, words[0]) if words else []
    print_changes(session.screen, session.db.what_if([*(session.pending or ()), *step]), whole=True)
