"""Long answers, page by page.

Lines are computed while they are shown.  Our own pager stops when the page is full, so the rest is
not computed before the user asks for it.  A program such as `less` gets lines as fast as it reads.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from time import perf_counter
from typing import TextIO

from everlog.repl.table import CommandError

QUESTION = "── more: space a page, enter a line, a all, q stop ──"
_KEYS = {"\r": "line", "\n": "line", "j": "line", "\x1b[B": "line", "Q": "q", "\x04": "q", "\x1b": "q"}
_REST = 0.05  # seconds in which the rest of a key's escape sequence arrives
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def page(lines: Iterable[str], out: TextIO, height: int, width: int) -> float:
    """Write lines, and wait for a key after each page; the seconds of waiting."""
    room, waited = height - 1, 0.0
    for text in lines:
        taken = rows_of(text, width)
        if room < taken:
            start = perf_counter()
            answer = _answer(out)
            waited += perf_counter() - start
            match answer:
                case "q":
                    return waited
                case "a":
                    room = sys.maxsize
                case "line":
                    room = taken
                case _:
                    room = height - 1
        out.write(text + "\n")
        out.flush()
        room -= taken
    return waited


def rows_of(text: str, width: int) -> int:
    """The number of terminal rows that a line takes.

    >>> rows_of("x" * 81, 80), rows_of("", 80), rows_of("\\x1b[1mx\\x1b[0m", 1)
    (2, 1, 1)
    """
    return max(1, -(-width_of(_COLOURS.sub("", text)) // width))


def width_of(text: str) -> int:
    """The number of terminal columns that a text takes.

    >>> width_of("Zürich"), width_of("東京")
    (6, 4)
    """
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    width = wcswidth(text)
    return width if width >= 0 else len(text)


def _answer(out: TextIO) -> str:
    """Ask, wait for a key, and erase the question."""
    with _key_by_key():
        out.write(QUESTION)
        out.flush()
        try:
            key = _read_key()
        finally:
            out.write("\r" + " " * len(QUESTION) + "\r")
            out.flush()
    return _KEYS.get(key, key)


@contextmanager
def _key_by_key() -> Iterator[None]:
    """Read keys one by one instead of line by line; earlier input counts too."""
    try:
        import termios
        import tty
    except ImportError:  # no termios here: read lines
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard, termios.TCSANOW)
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _read_key() -> str:
    """Read one key, with its whole escape sequence; Ctrl-C raises KeyboardInterrupt."""
    if sys.platform == "win32":
        return input()[:1] or "\n"
    keyboard = sys.stdin.fileno()
    key = os.read(keyboard, 1)
    while key.startswith(b"\x1b") and select.select([keyboard], [], [], _REST)[0]:
        key += os.read(keyboard, 1)
        if (len(key) > 2 and key[-1:].isalpha()) or key.endswith(b"~"):
            break
    return key.decode("ascii", "replace") or "q"


def pipe_to(command: str, lines: Iterable[str], out: TextIO, height: int) -> float:
    """Write lines that fit on a page; send longer output to a program.

    Returns the seconds that passed while the program was running and no line was computed.
    """
    lines = _Timed(lines)
    first = list(islice(lines, height - 1))
    if len(first) < height - 1:
        out.writelines(text + "\n" for text in first)
        out.flush()
        return 0.0
    try:
        program = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, text=True, errors="replace")
    except (OSError, ValueError) as problem:
        raise CommandError(f"cannot start the pager `{command}`: {problem}; `.set pager on` uses ours") from None
    start, computed = perf_counter(), lines.seconds
    with program:
        assert program.stdin is not None
        try:
            for text in chain(first, lines):
                program.stdin.write(text + "\n")
                program.stdin.flush()
        except (BrokenPipeError, KeyboardInterrupt):
            pass  # the user has quit the pager
        finally:
            with suppress(BrokenPipeError):
                program.stdin.close()
            while program.poll() is None:
                with suppress(KeyboardInterrupt):  # the pager handles Ctrl-C
                    program.wait()
    return perf_counter() - start - (lines.seconds - computed)


class _Timed:
    """Lines, and the seconds that it took to compute them."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines, self.seconds = iter(lines), 0.0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        start = perf_counter()
        try:
            return next(self._lines)
        finally:
            self.seconds += perf_counter() - start
