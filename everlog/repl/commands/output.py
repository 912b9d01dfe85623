"""Commands for output: `.mode`, `.maxrows`, `.output`, `.once`, `.set`, `.show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlog.repl.settings import MODES, SETTINGS, find_setting
from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.repl.session import Session

THEME = "Answers"


@command(".mode", "[table|csv|json|dl]", "output format of rows", THEME, completes=("|".join(MODES),))
def mode(session: Session, words: Words) -> None:
    """
    A table; CSV with quotes; JSON, a list of objects; or facts of the language.  Without an
    argument, prints the current one.
    """
    change_or_show(session, "mode", words)


@command(".maxrows", "[N|all]", "maximal number of rows in an answer", THEME, completes=("all",))
def maxrows(session: Session, words: Words) -> None:
    """
    Holds for queries, `.dump`, and the changes of a step.  1000 on a terminal, all in a script.
    """
    change_or_show(session, "maxrows", words)


@command(".output", "[FILE]", "write answers to a file from now on", THEME, completes=("file",))
def output(session: Session, words: Words) -> None:
    """
    The file is overwritten; without FILE, output goes to the screen again.  Errors always do.
    `.output path` is the directive of the language if `path` is a relation: write `./path` for a
    file of that name.
    """
    if not words or words[0] == "stdout":
        session.screen.to_screen()
        return
    session.screen.to_file(_file_name(session, words[0]), once=False)


@command(".once", "FILE", "write the answer of the next line to a file", THEME, words=(1, 1), completes=("file",))
def once(session: Session, words: Words) -> None:
    """
    For example `.once reach.csv`, after `.mode csv`.
    """
    session.screen.to_file(_file_name(session, words[0]), once=True)


def _file_name(session: Session, name: str) -> str:
    """The name of a file; one without dot and slash is more likely a missing relation."""
    if name.isidentifier():
        raise CommandError(f"undefined relation `{name}`; write `./{name}` for a file of this name")
    return name


@command(
    ".set",
    "[NAME VALUE]",
    "change a setting; without a name, list them",
    THEME,
    words=(0, 20),
    completes=("setting", "value"),
)
def set_(session: Session, words: Words) -> None:
    """
    `.show` lists the settings with their values.
    """
    if len(words) < 2:
        show(session, words)
        return
    session.settings.change(words[0], " ".join(words[1:]))


@command(".show", "[NAME]", "the settings and the state of the prompt", THEME, completes=("setting",))
def show(session: Session, words: Words) -> None:
    """
    With NAME, one setting.
    """
    from everlog.repl.modes import table_lines

    if words:
        session.screen.line(session.settings.shown(find_setting(words[0]).name))
        return
    screen = session.screen
    rows = [[s.name, session.settings.shown(s.name), f"{s.choices}: {s.meaning}"] for s in SETTINGS.values()]
    screen.lines(table_lines(screen, ["setting", "value", "meaning"], rows, [False] * 3), ready=screen.seen)
    pending = "none" if session.pending is None else f"open, {len(session.pending)} updates"
    screen.lines(
        [
            f"program: {session.places.program or 'none was loaded'}",
            f"database: {getattr(session.present or session.opened, 'path', 'in memory')}",
            f"facts from: {session.places.facts}",
            f"output goes to: {screen.file_name or 'the screen'}",
            f"transaction: {pending}",
            f"watched: {', '.join(session.watched) or 'everything'}",
        ]
    )


def change_or_show(session: Session, name: str, words: Words) -> None:
    """Change or print one setting, for the command of the same name."""
    if words:
        session.settings.change(name, words[0])
    else:
        session.screen.line(session.settings.shown(name))
