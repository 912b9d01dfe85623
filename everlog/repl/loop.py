"""Line after line: from a terminal until Ctrl-D, or from a script until its end.

Ctrl-C on a terminal drops what is being typed, or cancels what is running: the engine then takes
the step back, unless it was complete by then.  Of a database in a file, whose steps are numbered,
it is told which stands.  In a script it ends the process, as everywhere.  A script goes on after an
error, and ends with status 1 if there was one.
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
BANNER = f"everlog {__version__}: .help tells what can be typed, Ctrl-D leaves"


def converse(session: Session) -> int:
    """Ask and answer on a terminal; the exit status."""
    from everlog.repl.prompt import Prompt

    session.screen.note(BANNER)
    prompt = Prompt(session)
    while True:
        try:
            while session.status is None:
                _take_turns(session, prompt)
            return _ended(session)
        except KeyboardInterrupt:  # one more, while the first was being told
            with suppress(KeyboardInterrupt):
                session.screen.note(f"\n{CANCELLED}")


def _take_turns(session: Session, prompt: Prompt) -> None:
    """Ask for a text and run it."""
    from everlog.repl.continuation import apart

    try:
        text = prompt.ask()
    except KeyboardInterrupt:
        return
    except EOFError:
        session.leave()
        return
    before = session.step
    try:
        if apart(text):
            run_script(session, text.split("\n"), "")
        else:
            session.run(text)
    except KeyboardInterrupt:
        session.screen.note(f"\n{cancelled(before, session.step)}")


def cancelled(before: int | None, now: int | None) -> str:
    """What Ctrl-C has done, by the numbers of the last step before and after it.

    >>> cancelled(7, 7), cancelled(7, 8)
    ('cancelled', 'cancelled, but step 8 was written before that, and stands')
    """
    if now is None or now == before:
        return CANCELLED
    return f"{CANCELLED}, but step {now} was written before that, and stands"


def run_input(session: Session, stream: TextIO, name: str = "<stdin>") -> int:
    """Run what is piped in; the exit status."""
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
    """Run the statements of a script, each as soon as it is complete; whether all went well."""
    well = True
    for number, text in texts(session, lines):
        well = session.run(text, name and f"{name}:{number}") and well
        if session.status is not None or (session.settings.bail and not well):
            break
    return well


def run_all(session: Session, given: Iterable[str]) -> bool:
    """Run texts one after the other, each whole; whether all went well."""
    well = True
    for text in given:
        well = session.run(text) and well
        if session.status is not None or (session.settings.bail and not well):
            break
    return well


def texts(session: Session, lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """What belongs together, with the number of its first line.

    >>> list(texts(Session(), ["p(x) :-", "  q(x).", "", ".tables"]))
    [(1, 'p(x) :-\\n  q(x).'), (4, '.tables')]
    """
    from everlog.repl.continuation import is_complete

    text, first = "", 0
    for number, line in enumerate(lines, 1):
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
    """Whether somebody sits there: both ends are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def wants_colour() -> bool:
    return "NO_COLOR" not in os.environ and os.environ.get("TERM", "dumb") != "dumb"
