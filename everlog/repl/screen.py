"""Where answers go: a terminal in colour and page by page, a pipe as plain text, or the file of
`.output`.

Answers are lines, made while they are written, so the first one is seen whatever the number of
those that follow.  Symbols may hold bytes that are no UTF-8; they go out as they came in, but never
to a terminal: there, what could move its cursor or ring its bell is written as an escape.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Iterator
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
_BATCH = 500  # lines that are written at once where nobody watches


def visible(text: str) -> str:
    r"""What a terminal can show: control characters, and bytes that are no UTF-8, as escapes.

    >>> print(visible("a\tb\x07"), visible("\x1b]0;title"))
    a\tb\x07 \x1b]0;title
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Screen:
    """One place to write to.  `out` and `err` default to those of the process, looked up when they
    are used.
    """

    def __init__(self, settings: Settings, terminal: bool = False, out: TextIO | None = None) -> None:
        self.settings, self.terminal = settings, terminal
        self._out = out
        self._file: BinaryIO | None = None
        self._lines_left = 0  # until the file of `.once` is complete
        self.file_name = ""

    # ── lines ────────────────────────────────────────────────────────────────────────────────

    def line(self, text: str = "", style: str = "") -> None:
        self.lines([text], style)

    def lines(self, lines: Iterable[str], style: str = "", paged: bool = False, ready: bool = False) -> None:
        """Write lines as they come; with `paged`, page by page on a terminal; `ready`: they have
        their colours.
        """
        if self._file is not None:
            self._write_file(lines)
        elif not self.terminal:
            self._write_pipe(lines)
        else:
            shown = iter(lines) if ready else self._shown(lines, style)
            pager = self.settings.pager if paged else False
            if pager is True:
                page(shown, self.out, *self.size)
            elif pager:
                pipe_to(str(pager), shown, self.out, self.size[0])
            else:
                for text in shown:
                    self.out.write(text + "\n")
                    self.out.flush()

    def _shown(self, lines: Iterable[str], style: str) -> Iterator[str]:
        return (self.styled(visible(part), style) for text in lines for part in text.split("\n"))

    def error(self, text: str) -> None:
        """What went wrong."""
        self._aside(text, "error")

    def note(self, text: str) -> None:
        """A remark that is no answer."""
        self._aside(text, "note")

    def _aside(self, text: str, style: str) -> None:
        """Never in a file of answers: on a terminal in its place, of a script on the error stream."""
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
        """Whether answers are seen on a terminal, rather than read by a program."""
        return self.terminal and self._file is None

    @property
    def size(self) -> tuple[int, int]:
        """Lines and columns."""
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
            raise CommandError(f"cannot write to {name}: {problem.strerror}; answers go to the screen") from None

    # ── files ────────────────────────────────────────────────────────────────────────────────

    def to_file(self, name: str, once: bool) -> None:
        """Have the answers that follow go to a file, which begins anew; with `once`, those of one
        line.
        """
        try:
            file = Path(name).expanduser().open("wb")
        except OSError as problem:
            raise CommandError(f"cannot write to {name}: {problem.strerror}") from None
        self.to_screen()
        self._file, self.file_name, self._lines_left = file, name, 2 if once else 0  # this line, and the next

    def to_screen(self) -> None:
        file, self._file, self.file_name, self._lines_left = self._file, None, "", 0
        if file is not None:
            file.close()

    def line_is_over(self) -> None:
        """After each line: the file of `.once` is complete, that of `.output` is up to date."""
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
    """The same bytes that a file would get."""
    if text.isascii() or not hasattr(stream, "buffer"):
        stream.write(text)
        stream.flush()
        return
    from everlog.files.location import write_stream

    write_stream(stream, text)
