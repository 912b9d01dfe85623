"""Commands of answers: `.mode`, `.maxrows`, `.output`, `.once`, `.set`, `.show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlog.repl.settings import MODES, SETTINGS, find_setting
from everlog.repl.table import CommandError, Words, command

if TYPE_CHECKING:
    from everlog.repl.session import Session

THEME = "Answers"


@command(".mode", "[table|csv|json|dl]", "how rows are written", THEME, completes=("|".join(MODES),))
def mode(session: Session, words: Words) -> None:
    """
    A table; CSV with quotes; JSON, a list of objects; or facts of the language.  Without a word,
    the present one.
    """
    change_or_show(session, "mode", words)


@command(".maxrows", "[N|all]", "rows that an answer shows at most", THEME, completes=("all",))
def maxrows(session: Session, words: Words) -> None:
    """
    Of queries, of `.dump`, and of the changes of a step.  1000 on a terminal, all in a script.
    """
    change_or_show(session, "maxrows", words)


@command(".output", "[FILE]", "write answers to a file from now on", THEME, completes=("file",))
def output(session: Session, words: Words) -> None:
    """
    The file begins anew; without FILE answers go to the screen again.  Errors always do.
    `.output path` where `path` is a relation is the directive of the language: a file of that name
    is `./path`.
    """
    if not words or words[0] == "stdout":
        session.screen.to_screen()
        return
    session.screen.to_file(_file_name(session, words[0]), once=False)


@command(".once", "FILE", "write the answer of the next line to a file", THEME, words=(1, 1), completes=("file",))
def once(session: Session, words: Words) -> None:
    """
    Such as `.once reach.csv`, after `.mode csv`.
    """
    session.screen.to_file(_file_name(session, words[0]), once=True)


def _file_name(session: Session, name: str) -> str:
    """A name with neither a dot nor a slash is more likely a relation that is not there."""
    if name.isidentifier():
        raise CommandError(f"undefined relation `{name}`; a file of this name is `./{name}`")
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


@command(".show", "[NAME]", "the settings, and what the prompt works on", THEME, completes=("setting",))
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
            f"answers go to: {screen.file_name or 'the screen'}",
            f"transaction: {pending}",
            f"watched: {', '.join(session.watched) or 'everything'}",
        ]
    )


def change_or_show(session: Session, name: str, words: Words) -> None:
    """What a command does that stands for one setting."""
    if words:
        session.settings.change(name, words[0])
    else:
        session.screen.line(session.settings.shown(name))
