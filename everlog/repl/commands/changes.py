"""Commands for changes: `.watch`, `.unwatch`, `.changes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.repl.session import Session

THEME = "Changes"


@command(".watch", "[REL | ATOM]", "print only changes of this", THEME, words=None, completes=("fact",))
def watch(session: Session, words: Words) -> None:
    """
    `.watch path`, or only some of its facts: `.watch path(1, x)`.  Other changes are only counted.
    Without an argument, lists what is watched.  Facts of a relation on demand (`magic`) are
    computed while they are watched.
    """
    from everlog.api.facts.rows import Pattern, pattern_of
    from everlog.api.parameters import Given
    from everlog.core.program.fact_rows import declared
    from everlog.dsl.query_text import parse_query
    from everlog.repl.commands.parameters import parameters_for

    if not words:
        session.screen.lines(session.watched or ["nothing is watched: all changes are printed"])
        return
    text = words[0].rstrip(".?")
    relations = session.db.relations
    if "(" in text:
        query = parse_query(text)
        given = Given(parameters_for(session, query.parameters))
        pattern = pattern_of(relations, query).filled(given)
    else:
        pattern = Pattern(declared(relations, text))
    session.watch(text, pattern)


@command(
    ".unwatch", "[REL | ATOM]", "stop watching this, or everything", THEME, words=None, completes=("watched",)
)
def unwatch(session: Session, words: Words) -> None:
    """
    The argument is as for `.watch`; without one, everything.
    """
    if not words:
        session.unwatch()
    elif not session.unwatch(words[0].rstrip(".?")):
        raise CommandError(f"`{words[0]}` is not watched")


@command(".changes", "[REL]", "all changes of the last step", THEME, completes=("relation",))
def changes(session: Session, words: Words) -> None:
    """
    With REL, only its changes.
    """
    from everlog.core.program.fact_rows import declared
    from everlog.repl.reports import print_changes

    last = session.db.changes
    if words:
        last = last.only([declared(session.db.relations, words[0]).name])
    print_changes(session.screen, last, whole=True)
