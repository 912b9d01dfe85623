"""A virtual terminal: runs programs, sends keys, and reads the screen.

`pexpect` provides the pseudo-terminal, `pyte` emulates the terminal; it also answers queries of a
program, such as that for the cursor position.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import pexpect
import pyte

PATIENCE = 60.0  # seconds that a screen may take to show something: nothing is asserted about time


class Terminal:
    """A program in a terminal.

    `screen()` is what is to be seen now, `everything()` also what has been scrolled away.
    """

    def __init__(
        self,
        command: list[str],
        folder: Path,
        environment: Mapping[str, str],
        lines: int = 40,
        columns: int = 120,
    ) -> None:
        self._screen = pyte.HistoryScreen(columns, lines, history=10_000)
        self._screen.write_process_input = self._answer  # type: ignore[method-assign]
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self.program = pexpect.spawn(
            command[0],
            command[1:],
            cwd=str(folder),
            env={"TERM": "xterm-256color", **environment},
            dimensions=(lines, columns),
            timeout=PATIENCE,
        )

    def _answer(self, text: str) -> None:
        self.program.send(text)

    # ── keys ─────────────────────────────────────────────────────────────────────────────────

    def type(self, text: str) -> None:
        self.program.send(text)

    def enter(self, text: str) -> None:
        """Type a text and press Enter."""
        self.program.send(text + "\r")

    def ctrl(self, letter: str) -> None:
        self.program.sendcontrol(letter)

    # ── the screen ───────────────────────────────────────────────────────────────────────────

    def read(self, seconds: float = 0.05) -> None:
        """Take what the program has written."""
        try:
            data = self.program.read_nonblocking(1 << 16, timeout=seconds)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return
        self.raw += data
        self._stream.feed(data)

    def screen(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def everything(self) -> str:
        before = ["".join(line[x].data for x in range(self._screen.columns)) for line in self._screen.history.top]
        return "\n".join([*(line.rstrip() for line in before), self.screen()])

    def wait_for(self, wanted: str | Callable[[str], bool], everything: bool = False) -> str:
        """Read until the screen shows a text, or satisfies a test; the screen."""
        end = time.monotonic() + PATIENCE
        while True:
            shown = self.everything() if everything else self.screen()
            if wanted in shown if isinstance(wanted, str) else wanted(shown):
                return shown
            if time.monotonic() > end or not (self.program.isalive() or self._more()):
                raise AssertionError(f"the terminal never showed {wanted!r}; it shows\n{self.everything()}")
            self.read()

    def _more(self) -> bool:
        before = len(self.raw)
        self.read()
        return len(self.raw) > before

    def exit_status(self) -> int | None:
        """Read until the program ends."""
        end = time.monotonic() + PATIENCE
        while self.program.isalive() and time.monotonic() < end:
            self.read()
        while self._more():
            pass
        self.program.close(force=True)
        status: int | None = self.program.exitstatus
        return status

    # ── as a context ─────────────────────────────────────────────────────────────────────────

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.program.close(force=True)
