"""The database of a session: an empty one, that of a program, or one in a file.

A missing fact file of an `.input` directive is not an error at the prompt: users load programs to
see what they need.  It is reported, and its relation starts empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everlog.api.database import Database
from everlog.api.live import LiveText
from everlog.files import NoSuchFile, read_facts
from everlog.functors import load_functions
from everlog.repl.modes import number_of
from everlog.repl.table import CommandError
from everlog.store.durable_database import DurableDatabase
from everlog.store.opening import exchange_program

if TYPE_CHECKING:
    from everlog.api.changes import Changes
    from everlog.core.program import Directive, Relation, Row
    from everlog.repl.session import Session


def begun(session: Session) -> Database:
    """The empty database at the start of a session; `.load` loads a program into it."""
    return Database.from_text("", file="<prompt>", **_options(session))


def open_file(session: Session, path: Path, program: Path | None, read_only: bool = False) -> DurableDatabase:
    """Open a database in a file, or create it with a program and its facts."""
    options = _options(session)
    if asks_for_functors(session) or program is None:
        options["functors"] = functions_for(session, program or path)
    if read_only:
        return Database.open(path, read_only=True, **options)
    is_new, missing = not os.path.lexists(path), list[str]()
    if program is not None:
        options["file"] = program
    elif is_new:
        options["text"] = ""
    try:
        if is_new and program is not None:
            of = LiveText.from_file(program, options["include_dirs"], options["macros"]).program
            options["facts"], missing = read_inputs(of.inputs, of.relations, session.places.facts)
        database = Database.open(path, **options)
    except OSError as problem:
        raise CommandError(f"cannot read {problem.filename}: {problem.strerror}") from None
    tell_missing(session, missing)
    return database


def other_program(session: Session, database: DurableDatabase, program: Path) -> Changes:
    """Replace the program of an open database; inserted facts stay."""
    options = _options(session)
    try:
        live = LiveText.from_file(program, options["include_dirs"], options["macros"])
    except OSError as problem:
        raise CommandError(f"cannot read {program}: {problem.strerror}") from None
    return exchange_program(database, live, functions_for(session, program))


def load_program(session: Session, path: Path, facts: Path) -> str:
    """Load a program and its facts, and describe it; an error changes nothing."""
    places = session.places
    if isinstance(session.opened, DurableDatabase) or session.present is not None:
        raise CommandError(
            "the database is in a file: `.open FILE PROGRAM` replaces its program,"
            " `.read PROGRAM` adds to it, and `.open` closes it"
        )
    functors = functions_for(session, path) if asks_for_functors(session) else None
    try:
        database = Database.from_file(path, functors=functors, **_options(session))
    except OSError as problem:
        raise CommandError(f"cannot read {path}: {problem.strerror}") from None
    given, missing = read_inputs(database.program.inputs, database.relations, facts)
    database.insert_all(given)
    session.db, session.watched = database, {}
    places.program, places.facts = path, facts
    tell_missing(session, missing)
    return f"{path}: {described(database)}"


def tell_missing(session: Session, missing: list[str]) -> None:
    """Print notes about missing fact files."""
    for what in missing:
        session.screen.note(f"note: {what}")
    if missing:
        session.screen.note("(`-F FOLDER` and `.load FILE FOLDER` say where fact files are)")


def described(database: Database) -> str:
    """The size of a database, in one line."""
    facts = sum(map(database.kept, database.relations))
    counted = [number_of(len(database.relations), "relation"), number_of(len(database.rules), "rule")]
    return ", ".join([*counted, number_of(facts, "fact")])


def read_inputs(
    directives: Iterable[Directive], relations: Mapping[str, Relation], folder: Path
) -> tuple[dict[str, list[Row]], list[str]]:
    """The facts of `.input` files, and notes about missing files."""
    rows: dict[str, list[Row]] = {}
    missing = []
    for directive in directives:
        name, params = directive.relation, directive.params
        if params.get("IO") in ("stdin", "json") and "filename" not in params:
            missing.append(f"`{name}` is empty: its facts come from standard input, which the prompt reads")
            continue
        try:
            rows.setdefault(name, []).extend(read_facts(relations[name], params, folder))
        except NoSuchFile as problem:
            missing.append(f"`{name}` is empty: {problem}")
    return rows, missing


def functions_for(session: Session, path: Path | None) -> dict[str, Any]:
    """The Python functions of `-l` files, or of `functors.py` beside the program.

    Typed rules count as a program in the current folder; the program of a database counts as beside
    its file.
    """
    places = session.places
    return load_functions(str(path or ""), places.libraries, places.library_dirs)


def asks_for_functors(session: Session) -> bool:
    return bool(session.places.libraries or session.places.library_dirs)


def _options(session: Session) -> dict[str, Any]:
    return {
        "limits": session.limits,
        "progress": session.deriving,
        "strategies": session.strategies,
        "include_dirs": session.places.include_dirs,
        "macros": session.places.macros,
    }
