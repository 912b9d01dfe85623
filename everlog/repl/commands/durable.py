"""Commands of databases that are kept in files: `.open`, `.save`, `.checkpoint`, and the past of
such a database.

While the prompt looks at a state of the past, that is the session's database, which nobody can
change; the one in the file waits as `session.present`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.core.program.values import integer
from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.repl.screen import Screen
    from everlog.repl.session import Session
    from everlog.store.durable_database import DurableDatabase
    from everlog.store.past import Past

THEME = "Databases in files"
NOW = "now"
READ_ONLY = "read-only"


@command(
    ".open",
    "[FILE [PROGRAM | read-only]]",
    "go on with a database that is kept in a file",
    THEME,
    words=(0, 2),
    completes=("file",),
)
def open_database(session: Session, words: Words) -> None:
    """
    From now on each step is on disk before it is told.  A file that is not there is made, with
    PROGRAM and the facts that its `.input` directives name, or empty; one that is there goes on
    where it was, with the facts that it has, and with PROGRAM if one is given.  With read-only it
    can be looked at, also while somebody else writes to it.  What was in memory alone is left;
    `.save` keeps it.  If FILE cannot be opened, everything stays as it is.  Without FILE, the file
    is closed, and an empty database begins in memory.
    """
    from everlog.repl.open_database import begun, described, open_file, other_program
    from everlog.repl.transactions import refuse_in_transaction
    from everlog.store.durable_database import DurableDatabase

    refuse_in_transaction(session, "a database is opened")
    former = session.present or session.opened
    program: Path | None = None
    if not words:
        session.db, told = begun(session), "in memory"
    else:
        path, read_only = Path(words[0]).expanduser(), words[1:] == [READ_ONLY]
        program = Path(words[1]).expanduser() if len(words) > 1 and not read_only else None
        if isinstance(former, DurableDatabase) and not former.read_only and former.path == path.resolve():
            if program is None:
                raise CommandError(f"{words[0]} is open already")
            other_program(session, former, program)
            session.db = database = former
        else:
            session.db = database = open_file(session, path, program, read_only)
        told = f"{words[0]}: {described(database)}, step {database.step}"
    session.present, session.watched, session.places.program = None, {}, program
    if isinstance(former, DurableDatabase) and former is not session.db:
        former.close()
    session.screen.line(told)


@command(
    ".save",
    "PATH",
    "write what is given to a folder, or to a new file",
    THEME,
    words=(1, 1),
    completes=("file",),
)
def save(session: Session, words: Words) -> None:
    """
    A name that ends in .db, .sqlite or .everlog becomes a database, for `.open` and `--db`: with
    the program, and of a database that is kept in a file with all of its history.  Such a file must
    not be there yet.  Any other name is that of a folder, where each relation gets a file of its
    given facts.  The database at the prompt stays the one that it was: `.open PATH` goes on with
    the copy.
    """
    from everlog.repl.open_database import described

    session.db.save(Path(words[0]).expanduser())
    session.screen.line(f"{words[0]}: {described(session.db)}")


@command(
    ".checkpoint",
    "[STEPS | all]",
    "write the facts as they are now, and drop steps of long ago",
    THEME,
    completes=("all",),
)
def checkpoint(session: Session, words: Words) -> None:
    """
    Opening is quick after it, and the file as small as can be.  STEPS is how many steps back
    `.as-of` will lead: a number, or all; without it as many as the last time, at first 1000.
    """
    database = _kept(session)
    if words and words[0] != "all" and not words[0].isdecimal():
        raise CommandError(f"`{words[0]}` is no number of steps, and not `all`")
    database.checkpoint(history=None if not words else "all" if words[0] == "all" else int(words[0]))
    session.screen.line(_where(database))


@command(
    ".as-of",
    "[STEP | now] [LINE]",
    "look at the state after a step of the past",
    THEME,
    words=None,
    aliases=(".as_of", ".asof"),
)
def as_of(session: Session, words: Words) -> None:
    """
    `.as-of 3 path(1, x)` runs one line on that state, a query or a command; facts and rules are
    those of then.  `.as-of 3` alone stays there, where nothing can be changed; `.as-of now` comes
    back.  Step 0 is what the file began with.  Without a step, how far back history goes.
    """
    from everlog.repl.open_database import described
    from everlog.repl.transactions import refuse_in_transaction

    database = _kept(session)
    if not words:
        session.screen.line(_where(database))
        return
    refuse_in_transaction(session, "look at the past")
    step, _, line = words[0].partition(" ")
    before = session.opened, session.present
    seen, present = (database, None) if step == NOW else (database.as_of(_step(step)), database)
    session.opened, session.present = seen, present
    if line.strip():
        try:
            session.do(_asked(line, session.relations))
        finally:
            if session.opened is seen:  # and no other one was opened
                session.opened, session.present = before
    elif present is None:
        session.screen.line(_where(database))
    else:
        session.screen.line(f"after step {step}: {described(seen)}; `.as-of now` comes back")


@command(
    ".diff",
    "STEP [STEP | now] [REL]",
    "what one state has and another has not",
    THEME,
    words=(1, 3),
    completes=("", "relation"),
)
def diff(session: Session, words: Words) -> None:
    """
    `.diff 3 5 path`: how the state after step 5 differs from that after step 3, in `path`.  Without
    the second step, how the present differs; without REL, in all relations.
    """
    from everlog.repl.telling import tell

    database = _kept(session)
    rest = words[1:]
    second = rest.pop(0) if rest and (len(rest) == 2 or rest[0] == NOW or rest[0].isdecimal()) else NOW
    after = database.step if second == NOW else _step(second)
    tell(session.screen, database.diff(_step(words[0]), after, rest[0] if rest else None), whole=True)


@command(".history", "REL", "each step that changed a relation", THEME, words=(1, 1), completes=("relation",))
def history(session: Session, words: Words) -> None:
    """
    Its number, its time, and what it changed; as far back as history goes.
    """
    found = _kept(session).history(words[0])
    screen = session.screen
    screen.lines(_told(screen, found) if found else ["0 steps"], paged=True, ready=screen.seen)


def _told(screen: Screen, steps: list[Past]) -> Iterator[str]:
    from everlog.repl.telling import lines_of

    for past in steps:
        yield screen.styled(f"step {past.step}, {past.time.astimezone():%Y-%m-%d %H:%M:%S}", "head")
        yield from lines_of(screen, past.changes)


def _asked(line: str, relations: Mapping[str, object]) -> str:
    """A line that can only be a query may go without its mark."""
    from everlog.repl import continuation

    is_statement = continuation.read_line(line, relations).kind == continuation.STATEMENTS
    return f"{line}?" if is_statement and not line.rstrip().endswith(".") else line


def _kept(session: Session) -> DurableDatabase:
    from everlog.store.durable_database import DurableDatabase

    database = session.present or session.db
    if not isinstance(database, DurableDatabase):
        raise CommandError(
            "the database is in memory alone, and has no past: `.open FILE`, or `--db FILE` at the start,"
            " opens one in a file, `.save FILE` makes one of this"
        )
    return database


def _step(text: str) -> int:
    if not text.isdecimal():
        raise CommandError(f"`{text}` is no step: steps have numbers, and `.as-of` tells which are kept")
    return integer(text)


def _where(database: DurableDatabase) -> str:
    return f"step {database.step}; history goes back to step {database.oldest}"
