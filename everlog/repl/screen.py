"""Output: a terminal in colour and page by page, a pipe, or the file of `.output`.

Lines are computed while they are written, so the first one appears at once.  Symbols may hold bytes
that are not UTF-8.  A pipe or a file gets them unchanged, but a terminal gets escapes: control
characters could move its cursor or ring its bell.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TextIO

from everlog.repl.pager import page, pipe_to
from everlog.repl.settings import Settings
from everlog.repl.table import CommandError

STYLES = {
    "error": "1;31",
    "note": "2",
    "insert": "32",
    "delete": "31",
    "head": "1",
    "name": "36",
}
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_BATCH = 500  # lines per write if the output is not a terminal


def visible(text: str) -> str:
    r"""The text with control characters and bytes that are not UTF-8 as escapes.

    >>> print(visible("a\tb\x07"), visible("\x1b]0;title"))
    a\tb\x07 \x1b]0;title
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Screen:
    """One destination of output.

    `out` and `err` default to those of the process at the time of writing.
    """

    def __init__(self, settings: Settings, terminal: bool = False, out: TextIO | None = None) -> None:
        self.settings, self.terminal = settings, terminal
        self._out = out
        self._file: BinaryIO | None = None
        self._lines_left = 0  # inputs until the file of `.once` is complete
        self.file_name = ""
        self.before_writing: Callable[[], None] = lambda: None  # erases a line of progress
        self.waited = 0.0  # seconds in which a pager waited for its user

    # ── lines ────────────────────────────────────────────────────────────────────────────────

    def line(self, text: str = "", style: str = "") -> None:
        self.lines([text], style)

    def lines(self, lines: Iterable[str], style: str = "", paged: bool = False, ready: bool = False) -> None:
        """Write lines as they come.

        `paged`: page by page on a terminal; `ready`: the lines are coloured already.
        """
        self.before_writing()
        if self._file is not None:
            self._write_file(lines)
        elif not self.terminal:
            self._write_pipe(lines)
        else:
            shown = iter(lines) if ready else self._shown(lines, style)
            pager = self.settings.pager if paged else False
            if pager is True:
                self.waited += page(shown, self.out, *self.size)
            elif pager:
                self.waited += pipe_to(str(pager), shown, self.out, self.size[0])
            else:
                for text in shown:
                    self.out.write(text + "\n")
                    self.out.flush()

    def _shown(self, lines: Iterable[str], style: str) -> Iterator[str]:
        return (self.styled(visible(part), style) for text in lines for part in text.split("\n"))

    def error(self, text: str) -> None:
        """Report an error."""
        self._aside(text, "error")

    def note(self, text: str) -> None:
        """Write a note, which is not part of the answer."""
        self._aside(text, "note")

    def _aside(self, text: str, style: str) -> None:
        """Write to the terminal or to standard error, but never to the output file."""
        self.before_writing()
        self.flush()
        if self.terminal:
            text = "\n".join(self._shown([text], style))
        _write(self.out if self.terminal or self._out is not None else sys.stderr, text + "\n")

    def styled(self, text: str, style: str) -> str:
        if not style or not self.coloured or not text:
            return text
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m"

    @property
    def coloured(self) -> bool:
        return self.terminal and self.settings.colour and self._file is None

    @property
    def seen(self) -> bool:
        """Whether the output is a terminal."""
        return self.terminal and self._file is None

    @property
    def size(self) -> tuple[int, int]:
        """The lines and columns of the terminal."""
        columns, lines = shutil.get_terminal_size((80, 24))
        return lines, columns

    @property
    def out(self) -> TextIO:
        return sys.stdout if self._out is None else self._out

    def flush(self) -> None:
        self.out.flush()

    def _write_pipe(self, lines: Iterable[str]) -> None:
        for text in _batches(lines):
            _write(self.out, text)

    def _write_file(self, lines: Iterable[str]) -> None:
        assert self._file is not None
        from everlog.files.text_values import encoded_text

        try:
            for text in _batches(lines):
                self._file.write(encoded_text(text))
        except OSError as problem:
            name = self.file_name
            self.to_screen()
            raise CommandError(
                f"cannot write to {name}: {problem.strerror}; output returns to the screen"
            ) from None

    # ── files ────────────────────────────────────────────────────────────────────────────────

    def to_file(self, name: str, once: bool) -> None:
        """Send output to a new file; with `once`, only that of the next input."""
        try:
            file = Path(name).expanduser().open("wb")
        except OSError as problem:
            raise CommandError(f"cannot write to {name}: {problem.strerror}") from None
        self.to_screen()
        self._file, self.file_name, self._lines_left = file, name, 2 if once else 0  # this input, and the next

    def to_screen(self) -> None:
        file, self._file, self.file_name, self._lines_left = self._file, None, "", 0
        if file is not None:
            file.close()

    def line_is_over(self) -> None:
        """After each input: close the file of `.once`, flush that of `.output`."""
        if self._lines_left == 1:
            self.to_screen()
            return
        self._lines_left = max(0, self._lines_left - 1)
        if self._file is not None:
            self._file.flush()


def _batches(lines: Iterable[str]) -> Iterator[str]:
    lines = iter(lines)
    while batch := list(islice(lines, _BATCH)):
        yield "\n".join(batch) + "\n"


def _write(stream: TextIO, text: str) -> None:
    """Write the same bytes that a file would get."""
    if text.isascii() or not hasattr(stream, "buffer"):
        stream.write(text)
        stream.flush()
        return
    from everlog.files.location import write_stream

    write_stream(stream, text)
