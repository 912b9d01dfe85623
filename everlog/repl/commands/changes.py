"""Commands of changes: `.watch`, `.unwatch`, `.changes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.repl.session import Session

THEME = "Changes"


@command(".watch", "[REL | ATOM]", "tell changes of this alone", THEME, words=None, completes=("fact",))
def watch(session: Session, words: Words) -> None:
    """
    `.watch path`, or only some of its facts: `.watch path(1, x)`.  Changes of what is not watched
    are then only counted. Without an argument, what is watched.
    """
    from everlog.api.parameters import Given
    from everlog.api.rows import Pattern, pattern_of
    from everlog.core.program.fact_rows import declared
    from everlog.dsl.query_text import parse_query
    from everlog.repl.commands.parameters import parameters_for

    if not words:
        session.screen.lines(session.watched or ["nothing is watched: all changes are told"])
        return
    text = words[0].rstrip(".?")
    relations = session.db.relations
    if "(" in text:
        query = parse_query(text)
        given = Given(parameters_for(session, query.parameters))
        session.watched[text] = pattern_of(relations, query).filled(given)
    else:
        session.watched[text] = Pattern(declared(relations, text))


@command(
    ".unwatch", "[REL | ATOM]", "no longer watch this, or anything", THEME, words=None, completes=("watched",)
)
def unwatch(session: Session, words: Words) -> None:
    """
    As it was given to `.watch`; without an argument, everything.
    """
    if not words:
        session.watched.clear()
    elif session.watched.pop(words[0].rstrip(".?"), None) is None:
        raise CommandError(f"`{words[0]}` is not watched")


@command(".changes", "[REL]", "what the last step changed, all of it", THEME, completes=("relation",))
def changes(session: Session, words: Words) -> None:
    """
    With REL, what it changed there.
    """
    from everlog.core.program.fact_rows import declared
    from everlog.repl.telling import tell

    last = session.db.changes
    if words:
        last = last.only([declared(session.db.relations, words[0]).name])
    tell(session.screen, last, whole=True)
