"""Commands for programs: `.load`, `.reload`, `.read`, `.check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.repl.session import Session

THEME = "Programs"


@command(
    ".load", "FILE [FOLDER]", "start anew with a program and its facts", THEME, words=(1, 2), completes=("file",)
)
def load(session: Session, words: Words) -> None:
    """
    The program replaces the current one, with its rules and its facts.  The files of its `.input`
    directives are in FOLDER, else where `-F` says, else in the current folder.  If it has errors,
    everything stays as it is.
    """
    from everlog.repl.open_database import load_program
    from everlog.repl.transactions import refuse_in_transaction

    refuse_in_transaction(session, "load a program")
    folder = Path(words[1]).expanduser() if len(words) > 1 else session.places.facts
    session.screen.line(load_program(session, Path(words[0]).expanduser(), folder))
    for warning in session.db.warnings():
        session.screen.note(warning)


@command(".reload", "", "read the file of the program again; facts stay", THEME, words=(0, 0))
def reload(session: Session, words: Words) -> None:
    """
    The rules become those of the file; inserted facts stay, and only what depends on a difference
    is recomputed.  Rules that were typed at the prompt are not in the file: they are dropped, and
    printed for reuse.
    """
    from everlog.repl.open_database import asks_for_functors, functions_for
    from everlog.repl.transactions import refuse_in_transaction, report_step

    refuse_in_transaction(session, "load a program")
    path = session.places.program
    if path is None:
        raise CommandError("no program is loaded: load one with `.load FILE` or `.open DATABASE FILE`")
    typed = session.db.statements(added=True)
    try:
        functors = functions_for(session, path) if asks_for_functors(session) else None
        changes = session.db.replace_program(path, functors=functors)
    except OSError as problem:
        raise CommandError(f"cannot read {path}: {problem.strerror}") from None
    kept = set(session.db.statements())
    gone = [text for text in typed if text not in kept]
    if gone:
        session.screen.note("dropped, since it is not in the file:\n" + "\n".join(gone))
    same = session.db.relations
    watched = session.watched.items()
    session.watched = {text: seen for text, seen in watched if same.get(seen.relation.name) == seen.relation}
    report_step(session, changes)


@command(
    ".read", "FILE", "run the lines of a file as if they were typed", THEME, words=(1, 1), completes=("file",)
)
def read(session: Session, words: Words) -> None:
    """
    A file that ends in .dl is a program: its statements are added together, in any order.  Any
    other file is a script of lines; an error is reported with its line, and the lines after it are
    run (but see `.set bail`).
    """
    from everlog.repl.statements import run_statements

    if not words[0].endswith(".dl"):
        if not session.read_script(words[0]):
            raise CommandError(f"{words[0]} has lines with errors")
        return
    try:
        text = Path(words[0]).expanduser().read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as problem:
        raise CommandError(f"cannot read {words[0]}: {problem.strerror}") from None
    run_statements(session, text)


@command(
    ".check",
    "[FILE]",
    "compare all relations with a computation from scratch; or check a program",
    THEME,
    completes=("file",),
)
def check(session: Session, words: Words) -> None:
    """
    Without FILE, every relation is computed from the base facts and compared with the maintained
    one, and every invariant of the engine is checked.  With FILE, all errors of that program are
    printed.
    """
    if words:
        _check_file(session, Path(words[0]).expanduser())
        return
    different = session.db.check()
    if different:
        raise CommandError(f"different from an evaluation from scratch: {', '.join(different)}; please report it")
    session.screen.line(f"{len(session.db.relations)} relations, all as computed from scratch")


def _check_file(session: Session, path: Path) -> None:
    from everlog.dsl.check import diagnose
    from everlog.dsl.preprocess import load as load_text

    try:
        source, problems = load_text(path, session.places.include_dirs, session.places.macros)
    except OSError as problem:
        raise CommandError(f"cannot read {path}: {problem.strerror}") from None
    program, report = diagnose(source, problems)
    if report.items:
        session.screen.line(report.text())
    if program is not None:
        counted = f"{len(program.relations)} relations, {len(program.rules)} rules"
        session.screen.line(f"{path}: {counted}, no errors")
