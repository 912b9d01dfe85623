"""The loop: reads and runs input from a terminal until Ctrl-D, or from a script.

Ctrl-C on a terminal discards the input line, or cancels what is running: the engine undoes the
step, unless it was complete.  For a database in a file, the prompt says which step is the last.  In
a script Ctrl-C ends the process.  A script continues after an error, and ends with status 1 if
there was one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from everlog._version import __version__
from everlog.repl.modes import number_of
from everlog.repl.session import Session

if TYPE_CHECKING:
    from everlog.repl.prompt import Prompt

CANCELLED = "cancelled"
BANNER = f"everlog {__version__}: type .help for the commands, Ctrl-D to leave"


def converse(session: Session) -> int:
    """Read and run input on a terminal; the exit status."""
    from everlog.repl.prompt import Prompt

    session.screen.note(BANNER)
    prompt = Prompt(session)
    while True:
        try:
            while session.status is None:
                _read_and_run(session, prompt)
            if session.pending:
                session.screen.note(f"{number_of(len(session.pending), 'update')} dropped")
            return _ended(session)
        except KeyboardInterrupt:  # a second one, while the first was being reported
            with suppress(KeyboardInterrupt):
                session.screen.note(f"\n{CANCELLED}")


def _read_and_run(session: Session, prompt: Prompt) -> None:
    """Read one input and run it."""
    from everlog.repl.continuation import is_script

    try:
        text = prompt.ask()
    except KeyboardInterrupt:
        return
    except EOFError:
        _leave_or_ask(session)
        return
    session.asked_to_leave = False
    before = session.step
    try:
        if is_script(text):
            run_script(session, text.split("\n"), "")
        else:
            session.run(text)
    except KeyboardInterrupt:
        session.screen.note(f"\n{cancelled(before, session.step)}")


def _leave_or_ask(session: Session) -> None:
    """Leave after Ctrl-D; if updates are pending, only after a second one."""
    if session.pending and not session.asked_to_leave:
        session.asked_to_leave = True
        waiting = number_of(len(session.pending), "update")
        session.screen.note(
            f"{waiting} pending: `commit` applies them, `rollback` drops them, Ctrl-D again leaves without them"
        )
        return
    session.leave()


def cancelled(before: int | None, now: int | None) -> str:
    """The message after Ctrl-C, from the last step before and after it.

    >>> cancelled(7, 7), cancelled(7, 8)
    ('cancelled', 'cancelled, but step 8 was complete before that, and stays')
    """
    if now is None or now == before:
        return CANCELLED
    return f"{CANCELLED}, but step {now} was complete before that, and stays"


def run_input(session: Session, stream: TextIO, name: str = "<stdin>") -> int:
    """Run piped input; the exit status."""
    from everlog.core.program.values import decoded

    buffer = getattr(stream, "buffer", None)
    lines = iter(stream.readline, "") if buffer is None else map(decoded, iter(buffer.readline, b""))
    return end_of_script(session, run_script(session, lines, name))


def end_of_script(session: Session, well: bool) -> int:
    if session.pending is not None:
        waiting = number_of(len(session.pending), "update")
        session.screen.error(f"error: the script ends inside a transaction: {waiting} dropped")
        well = False
    status = _ended(session)
    return status or (0 if well else 1)


def run_script(session: Session, lines: Iterable[str], name: str) -> bool:
    """Run a script, each statement when it is complete; False if one failed."""
    well = True
    for number, text in texts(session, lines):
        well = session.run(text, name and f"{name}:{number}") and well
        if session.status is not None or (session.settings.bail and not well):
            break
    return well


def run_all(session: Session, inputs: Iterable[str]) -> bool:
    """Run complete inputs one after the other; False if one failed."""
    well = True
    for text in inputs:
        well = session.run(text) and well
        if session.status is not None or (session.settings.bail and not well):
            break
    return well


def texts(session: Session, lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Group the lines into complete inputs, each with the number of its first line.

    >>> list(texts(Session(), ["p(x) :-", "  q(x).", "", ".tables"]))
    [(1, 'p(x) :-\\n  q(x).'), (4, '.tables')]
    """
    from everlog.repl.continuation import before_command, is_complete

    text, first = "", 0
    for number, line in enumerate(lines, 1):
        if text and before_command(text, line):  # the text stays incomplete; the command is run
            yield first, text
            text = ""
        if not text:
            if not line.strip():
                continue
            first = number
        text += ("\n" if text else "") + line.rstrip("\r\n")
        if is_complete(text, session.relations):
            yield first, text
            text = ""
    if text.strip():
        yield first, text


def _ended(session: Session) -> int:
    session.close()
    return session.status or 0


def on_terminal() -> bool:
    """Whether standard input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def wants_colour() -> bool:
    return "NO_COLOR" not in os.environ and os.environ.get("TERM", "dumb") != "dumb"
