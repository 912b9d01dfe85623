"""Progress of long work: one line on a terminal, rewritten in place.

If the total is known (files to read, bytes of a stream), the line shows a bar; for a recursion it
shows rounds and facts.  Nothing is written in the first half second, nor if the error stream is not
a terminal.  Call `clear` before anything else is written to the terminal.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO, cast

PATIENCE, PAUSE = 0.5, 0.1  # seconds before the first line, and between two lines
_BAR = 24  # characters


class Meter:
    """The progress line.  A call that writes nothing costs one look at the clock."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._start = monotonic()
        self._next = self._start + PATIENCE
        self._found = 0
        self._width = 0

    def reading(self, name: str, done: int, total: int) -> None:
        """Report that `name` is being read, after `done` of `total` relations."""
        if monotonic() >= self._next:
            self._write(f"reading {name} {bar(done, total)}")

    def deriving(self, unit: str, iteration: int, facts: int) -> None:
        """Report the end of a round of a recursion; the engine calls this."""
        if monotonic() >= self._next:
            seconds = monotonic() - self._start
            self._write(f"deriving {unit}: round {iteration}, {facts:,} facts, {seconds:.0f} s")

    def finding(self, unit: str, iteration: int, new: int) -> None:
        """Report the end of a round by its number of new facts."""
        self._found += new
        self.deriving(unit, iteration, self._found)

    def writing(self, name: str, done: int, total: int) -> None:
        if monotonic() >= self._next:
            self._write(f"writing {name} {bar(done, total)}")

    def lines(self, lines: Iterable[str], size: int) -> Iterator[str]:
        """Pass on the lines of a stream of `size` bytes and report the position."""
        done = 0
        for line in lines:
            if monotonic() >= self._next:
                self._write(f"updates {bar(done, size)}")
            yield line
            done += len(line.encode("utf-8", "surrogateescape"))

    def clear(self) -> None:
        """Erase the line."""
        if self._width:
            self._stream.write(f"\r{'':<{self._width}}\r")
            self._stream.flush()
            self._width = 0

    def beside(self, stream: TextIO) -> TextIO:
        """A stream that erases the line before each write."""
        return cast(TextIO, _Beside(self, stream))

    def _write(self, text: str) -> None:
        self._next = monotonic() + PAUSE
        text = text[: shutil.get_terminal_size().columns - 1]
        before, self._width = self._width, max(len(text), self._width)  # first: Ctrl-C may come in between
        self._stream.write(f"\r{text:<{before}}")
        self._stream.flush()
        self._width = len(text)


class _Beside:
    def __init__(self, meter: Meter, stream: TextIO) -> None:
        self._meter, self._stream = meter, stream

    def write(self, text: str) -> int:
        self._meter.clear()
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()


class Silence(Meter):
    """A meter that writes nothing."""

    def __init__(self) -> None:
        self._next = float("inf")
        self._found = self._width = 0


def bar(done: int, total: int) -> str:
    """A progress bar with its percentage.

    >>> bar(1, 4), bar(0, 0)
    ('[██████                  ]  25 %', '[                        ]   0 %')
    """
    part = min(1.0, done / total) if total else 0.0
    return f"[{'█' * round(part * _BAR):<{_BAR}}] {part * 100:3.0f} %"


@contextmanager
def meter_for(stream: TextIO, wanted: bool = True) -> Iterator[Meter]:
    """A meter if the stream is a terminal, else a silent one."""
    terminal = wanted and stream.isatty() and os.environ.get("TERM") != "dumb"
    meter = Meter(stream) if terminal else Silence()
    try:
        yield meter
    finally:
        meter.clear()
