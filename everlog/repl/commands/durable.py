"""Commands of databases in files: `.open`, `.save`, `.checkpoint`, and the past: `.as-of`, `.diff`, `.history`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.repl.session import Session
    from everlog.store.database import DurableDatabase
    from everlog.store.past import Past

THEME = "Databases in files"
_NO_FILE = (
    "this database is not kept in a file, and has no past: `.open FILE`, or `--db FILE` at the start, has one"
)


# ── files ────────────────────────────────────────────────────────────────────────────────────


@command(".open", "FILE", "go on with the database in a file", THEME, words=(1, 1), completes=("file",))
def open_database(session: Session, words: Words) -> None:
    """
    The database of a file takes the place of the present one; from then on each step is on disk when it is
    told.  If there is no such file, it is made, and is empty.  If it cannot be opened, everything stays as it
    is.
    """
    from everlog.repl.opening import described, open_file
    from everlog.repl.transactions import refuse_in_transaction

    refuse_in_transaction(session, "another database is opened")
    path = Path(words[0]).expanduser()
    before = session.places.program
    session.places.program = None
    try:
        database = open_file(session, path)
    except BaseException:
        session.places.program = before
        raise
    session.close_database()
    session.db, session.places.database, session.watched = database, path, {}
    session.screen.line(f"{path}: {described(database)}, step {durable(session).step}")


@command(".save", "PATH", "write a copy of the database", THEME, words=(1, 1), completes=("file",))
def save(session: Session, words: Words) -> None:
    """
    A name that ends in .db, .sqlite or .everlog is a database file, which must not be there yet: it gets the
    program, all facts and, of a database in a file, its history.  Any other name is a folder, in which each
    relation gets a file with its given facts.  The database at the prompt stays the one that it was: `.open
    PATH` goes on with the copy.
    """
    session.db.save(Path(words[0]).expanduser())
    session.screen.line(f"saved to {words[0]}")


@command(".checkpoint", "[N|all]", "compact the file, and keep the last N steps", THEME)
def checkpoint(session: Session, words: Words) -> None:
    """
    The facts are written as they are now, which makes opening quick, and steps of long ago are dropped: all but
    the last N, or as many as the database was told to keep (1000).
    """
    if words and words[0] != "all" and not words[0].isdecimal():
        raise CommandError(f"`{words[0]}` is no number of steps, and not `all`")
    database = durable(session)
    history = None if not words else words[0] if words[0] == "all" else int(words[0])
    database.checkpoint(history=history)
    session.screen.line(f"step {database.step}; history goes back to step {database.oldest}")


# ── the past ─────────────────────────────────────────────────────────────────────────────────


@command(".as-of", "N [QUERY]", "ask the state after step N", THEME, words=None, aliases=(".as_of", ".asof"))
def as_of(session: Session, words: Words) -> None:
    """
    A query is answered as it would have been then, by the facts and the rules of then.  Without one, the relations
    of then are listed with their sizes.  `.history` tells the numbers of steps; 0 is what the database began with.
    """
    from everlog.repl.statements import answer

    number, _, query = (words[0] if words else "").partition(" ")
    past = durable(session).as_of(_step(number, ".as-of N [QUERY]"))
    body = query.strip().removeprefix("?-").strip().rstrip("?").strip()
    if body:
        answer(session, past, body)
    else:
        session.screen.lines(f"{name}: {past.size(name)}" for name in past.relations)


@command(
    ".diff", "N M [REL]", "what differs between two states", THEME, words=(2, 3), completes=("", "", "relation")
)
def diff(session: Session, words: Words) -> None:
    """
    What the state after step M has and that after step N has not, with `+`, and the other way round, with `-`.
    """
    from everlog.repl.telling import tell

    usage = ".diff N M [REL]"
    before, after = _step(words[0], usage), _step(words[1], usage)
    tell(session.screen, durable(session).diff(before, after, words[2] if len(words) > 2 else None))


@command(".history", "REL", "the steps that changed a relation", THEME, words=(1, 1), completes=("relation",))
def history(session: Session, words: Words) -> None:
    """
    Each step with its number and what it changed, as far back as history goes.
    """
    found = durable(session).history(words[0])
    session.screen.lines(_told(found) if found else ["0 steps"], paged=True)


def _told(past: list[Past]) -> Iterator[str]:
    for entry in past:
        yield f"step {entry.step}"
        yield from str(entry.changes).split("\n")


def durable(session: Session) -> DurableDatabase:
    """The database, if it is one that is kept in a file."""
    from everlog.store.database import DurableDatabase

    database = session.db
    if not isinstance(database, DurableDatabase):
        raise CommandError(_NO_FILE)
    return database


def _step(word: str, usage: str) -> int:
    if not word.isdecimal():
        raise CommandError(f"usage: {usage}; `{word}` is no number of a step" if word else f"usage: {usage}")
    return int(word)
