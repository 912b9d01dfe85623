"""What a long step is doing: one line on the terminal, written over and over, gone when the step is.

The engine tells each round of a recursion; only after half a second, and then five times a second, is anything
written.

Reads: nothing of ours.  Read by: everlog.repl.opening, everlog.repl.session.
"""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everlog.repl.session import Session

_PATIENCE, _PAUSE = 0.5, 0.2  # seconds


class ProgressLine:
    """The line of one session.  `begin` and `end` stand around whatever may take long."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._next = 0.0
        self._shown = False

    def begin(self) -> None:
        self._next = monotonic() + _PATIENCE

    def tell(self, unit: str, iteration: int, facts: int) -> None:
        if self._session.settings.progress and monotonic() >= self._next:
            self._next = monotonic() + _PAUSE
            self._write(f"{unit}: round {iteration}, {facts} facts so far")

    def end(self) -> None:
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        if self._session.screen.terminal:
            sys.stderr.write("\r\x1b[K" + text[: self._session.screen.size[1] - 1])
        elif text:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
        self._shown = bool(text)
