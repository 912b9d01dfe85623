"""The database of a conversation: an empty one, that of a program, or one that is kept in a file.

Fact files that `.input` names and that are not there make no error here: one may well load a
program to see what it needs.  They are told, and their relations begin empty.
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
    """The database with which a conversation begins; a program is loaded into it by `.load`."""
    return Database.from_text("", file="<prompt>", **_options(session))


def open_file(session: Session, path: Path, program: Path | None, read_only: bool = False) -> DurableDatabase:
    """A database that is kept in a file, which is made if need be, with a program and its facts."""
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
    """Go on with another program in a database that is open; what was given stays."""
    options = _options(session)
    try:
        live = LiveText.from_file(program, options["include_dirs"], options["macros"])
    except OSError as problem:
        raise CommandError(f"cannot read {program}: {problem.strerror}") from None
    return exchange_program(database, live, functions_for(session, program))


def load_program(session: Session, path: Path, facts: Path) -> str:
    """Begin with a program and its facts, and say what it has; after an error everything is as
    before.
    """
    places = session.places
    if isinstance(session.opened, DurableDatabase) or session.present is not None:
        raise CommandError(
            "the database is kept in a file: `.open FILE PROGRAM` goes on with another program there,"
            " `.read PROGRAM` adds to it, and `.open` leaves it"
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
    """What is to be said of fact files that are not there."""
    for what in missing:
        session.screen.note(f"note: {what}")
    if missing:
        session.screen.note("(`-F FOLDER` and `.load FILE FOLDER` say where fact files are)")


def described(database: Database) -> str:
    """What a database has, in one line."""
    facts = sum(map(database.size, database.relations))
    counted = [number_of(len(database.relations), "relation"), number_of(len(database.rules), "rule")]
    return ", ".join([*counted, number_of(facts, "fact")])


def read_inputs(
    directives: Iterable[Directive], relations: Mapping[str, Relation], folder: Path
) -> tuple[dict[str, list[Row]], list[str]]:
    """The facts of `.input` files, and what is to be said of those that are not there."""
    rows: dict[str, list[Row]] = {}
    missing = []
    for directive in directives:
        name, params = directive.relation, directive.params
        if params.get("IO") in ("stdin", "json") and "filename" not in params:
            missing.append(f"`{name}` is empty: standard input, where its facts are, is the prompt's")
            continue
        try:
            rows.setdefault(name, []).extend(read_facts(relations[name], params, folder))
        except NoSuchFile as problem:
            missing.append(f"`{name}` is empty: {problem}")
    return rows, missing


def functions_for(session: Session, path: Path | None) -> dict[str, Any]:
    """The Python functions of `-l` files, or of `functors.py` beside the program.

    What is typed at the prompt is a program in the current folder; that of a database is beside its
    file.
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
