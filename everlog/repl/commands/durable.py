"""Commands for databases in files: `.open`, `.save`, `.checkpoint`, and the past.

While the prompt shows a past state, that state is the session's database, which is read-only; the
one in the file waits as `session.present`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.core.program.values import integer
from everlog.repl.open_tables import open_tables
from everlog.repl.table import CommandError, Words, command
from everlog.tables.own_files import is_data

if TYPE_CHECKING:
    from everlog.repl.screen import Screen
    from everlog.repl.session import Session
    from everlog.store.durable_database import DurableDatabase
    from everlog.store.past import Past

THEME = "Databases in files"
NOW = "now"
READ_ONLY = "read-only"


_PROGRAM = ".dl"
_OTHERS = (
    ".xlsx",
    ".xls",
    ".ods",
    ".txt",
    ".json",
    ".xml",
    ".orc",
    ".gz",
    ".zip",
    ".zst",
)  # never databases of ours


def refuse_other_files(words: Words) -> None:
    """Raise CommandError for a file that is of another kind than `.open` takes."""
    for word in words[:1]:
        if word.lower().endswith(_PROGRAM):
            raise CommandError(
                f"{word} is a program: `.load {word}` loads it, and `.open FILE.db {word}` keeps it"
            )
        if word.lower().endswith(_OTHERS):
            raise CommandError(f"cannot open {word}: save it as .csv; .tsv, .jsonl, .parquet and .sqlite do, too")


@command(
    ".open",
    "[FILE [PROGRAM | read-only] | FILE …]",
    "continue with a database in a file; or add tables of your files as relations",
    THEME,
    words=(0, 100),
    completes=("file",),
)
def open_database(session: Session, words: Words) -> None:
    """
    From now on each step is on disk before it is printed.  A new file is created with PROGRAM and
    the facts of its `.input` directives, or empty.  An existing file continues with its facts;
    PROGRAM, if there is one, replaces its program.  A read-only database can be opened while
    another process writes to it.  What was only in memory is dropped; `.save` keeps it.  If FILE
    cannot be opened, everything stays as it is.  Without FILE, the file is closed, and an empty
    database in memory begins.

    A file of another kind (.csv, .tsv, .jsonl, .parquet, .arrow, .duckdb, or the .sqlite of another
    program) adds its tables to this database, as relations with inferred columns.
    """
    if words and all(is_data(Path(word).expanduser()) for word in words):
        open_tables(session, [Path(word).expanduser() for word in words])
        return
    refuse_other_files(words)
    if len(words) > 2:
        strange = next(word for word in words if not is_data(Path(word).expanduser()))
        raise CommandError(f"{strange} holds no tables; the others are .csv, .parquet, .sqlite and the like")
    from everlog.repl.open_database import begun, described, open_file, other_program
    from everlog.repl.transactions import refuse_in_transaction
    from everlog.store.durable_database import DurableDatabase

    refuse_in_transaction(session, "open a database")
    former = session.present or session.opened
    program: Path | None = None
    if not words:
        session.db, summary = begun(session), "in memory"
    else:
        path, read_only = Path(words[0]).expanduser(), words[1:] == [READ_ONLY]
        program = Path(words[1]).expanduser() if len(words) > 1 and not read_only else None
        if isinstance(former, DurableDatabase) and not former.read_only and former.path == path.resolve():
            if program is None:
                raise CommandError(f"{words[0]} is already open")
            other_program(session, former, program)
            session.db = database = former
        else:
            session.db = database = open_file(session, path, program, read_only)
        summary = f"{words[0]}: {described(database)}, step {database.step}"
    session.present, session.watched, session.places.program = None, {}, program
    if isinstance(former, DurableDatabase) and former is not session.db:
        former.close()
    session.screen.line(summary)


@command(
    ".save",
    "PATH",
    "write the base facts to a folder, or everything to a new file",
    THEME,
    words=(1, 1),
    completes=("file",),
)
def save(session: Session, words: Words) -> None:
    """
    A name that ends in .db, .sqlite or .everlog becomes a database, for `.open` and `--db`: with
    the program, and with all history if this database is in a file.  The file must not exist.  Any
    other name is a folder, where each relation gets a file of its base facts.  The prompt stays
    with its own database: `.open PATH` switches to the copy.
    """
    from everlog.repl.open_database import described

    session.db.save(Path(words[0]).expanduser())
    session.screen.line(f"{words[0]}: {described(session.db)}")


@command(
    ".checkpoint",
    "[STEPS | all]",
    "write the facts as they are now, and drop old steps",
    THEME,
    completes=("all",),
)
def checkpoint(session: Session, words: Words) -> None:
    """
    Afterwards the file opens quickly, and is as small as possible.  STEPS is the number of steps
    that `.as-of` can go back, or all; without it, as the last time, at first 1000.
    """
    database = _kept(session)
    if words and words[0] != "all" and not words[0].isdecimal():
        raise CommandError(f"`{words[0]}` is not a number of steps; use a number or `all`")
    database.checkpoint(history=None if not words else "all" if words[0] == "all" else int(words[0]))
    session.screen.line(_where(database))


@command(
    ".as-of",
    "[STEP | now] [LINE]",
    "show the state after a past step",
    THEME,
    words=None,
    aliases=(".as_of", ".asof"),
)
def as_of(session: Session, words: Words) -> None:
    """
    `.as-of 3 path(1, x)` runs one line on that state, a query or a command, with the facts and
    rules of that time.  `.as-of 3` alone stays there, where nothing can be changed; `.as-of now`
    returns.  Step 0 is the initial state.  Without a step, prints how far back history goes.
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
            if session.opened is seen:  # the line has not opened another database
                session.opened, session.present = before
    elif present is None:
        session.screen.line(_where(database))
    else:
        session.screen.line(f"after step {step}: {described(seen)}; `.as-of now` returns")


@command(
    ".diff",
    "STEP [STEP | now] [REL]",
    "the difference between two states",
    THEME,
    words=(1, 3),
    completes=("", "relation"),
)
def diff(session: Session, words: Words) -> None:
    """
    `.diff 3 5 path`: how `path` after step 5 differs from `path` after step 3.  Without the second
    step, how the current state differs; without REL, in all relations.
    """
    from everlog.repl.reports import print_changes

    database = _kept(session)
    rest = words[1:]
    second = rest.pop(0) if rest and (len(rest) == 2 or rest[0] == NOW or rest[0].isdecimal()) else NOW
    after = database.step if second == NOW else _step(second)
    print_changes(session.screen, database.diff(_step(words[0]), after, rest[0] if rest else None), whole=True)


@command(".history", "REL", "the steps that changed a relation", THEME, words=(1, 1), completes=("relation",))
def history(session: Session, words: Words) -> None:
    """
    Number, time and changes of each step, as far back as history goes.
    """
    found = _kept(session).history(words[0])
    screen = session.screen
    screen.lines(_step_lines(screen, found) if found else ["0 steps"], paged=True, ready=screen.seen)


def _step_lines(screen: Screen, steps: list[Past]) -> Iterator[str]:
    from everlog.repl.reports import lines_of

    for past in steps:
        yield screen.styled(f"step {past.step}, {past.time.astimezone():%Y-%m-%d %H:%M:%S}", "head")
        yield from lines_of(screen, past.changes)


def _asked(line: str, relations: Mapping[str, object]) -> str:
    """Add the missing `?` to a line that can only be a query."""
    from everlog.repl import continuation

    is_statement = continuation.read_line(line, relations).kind == continuation.STATEMENTS
    return f"{line}?" if is_statement and not line.rstrip().endswith(".") else line


def _kept(session: Session) -> DurableDatabase:
    from everlog.store.durable_database import DurableDatabase

    database = session.present or session.db
    if not isinstance(database, DurableDatabase):
        raise CommandError(
            "the database is only in memory, and has no past: `.open FILE`, or `--db FILE` at the start,"
            " opens one in a file, `.save FILE` writes this one to a file"
        )
    return database


def _step(text: str) -> int:
    if not text.isdecimal():
        raise CommandError(f"`{text}` is not a step; use a number: `.as-of` prints the range")
    return integer(text)


def _where(database: DurableDatabase) -> str:
    return f"step {database.step}; history goes back to step {database.oldest}"
