"""The terminal prompt: history, several lines, colours, Tab.

Enter runs a complete input, and otherwise continues it on another line; on an empty line it runs
the input in any case.  A thread imports the engine once the first prompt is on the screen, and the
first input waits for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from everlog.pygments_lexer import DatalogLexer
from everlog.repl.session import Session
from everlog.repl.tab_completion import candidates

NAME = "everlog"
_COLOURS = {
    "prompt": "bold",
    "pending": "ansiyellow bold",
    "pygments.comment": "ansibrightblack italic",
    "pygments.keyword": "ansimagenta",
    "pygments.keyword.namespace": "ansiblue bold",
    "pygments.keyword.type": "ansicyan",
    "pygments.name.function": "ansiblue",
    "pygments.name.builtin": "ansimagenta",
    "pygments.name.decorator": "ansimagenta",
    "pygments.name.label": "ansiyellow",
    "pygments.literal.string": "ansigreen",
    "pygments.literal.number": "ansicyan",
}


class Prompt:
    """Reads the next input."""

    def __init__(self, session: Session) -> None:
        self._session = session
        output = create_output()
        if isinstance(output, Vt100_Output):
            output.enable_cpr = False  # the terminal's reply could arrive late, and mix with the input
        self._loading: Thread | None = None
        self._asking: PromptSession[str] = PromptSession(
            message=self._message,
            multiline=True,
            prompt_continuation=lambda width, line, wrapped: "...> ".rjust(width),
            lexer=PygmentsLexer(DatalogLexer, sync_from_start=True),
            completer=_Tab(session),
            complete_while_typing=False,
            history=history(),
            key_bindings=self._keys(),
            style=Style.from_dict(_COLOURS),
            color_depth=None if session.settings.colour else ColorDepth.MONOCHROME,
            include_default_pygments_style=False,
            output=output,
        )
        self._asking.app.after_render += self._rendered

    def ask(self) -> str:
        """The next input; EOFError after Ctrl-D, KeyboardInterrupt after Ctrl-C."""
        text = self._asking.prompt()
        self.wait()
        return text

    def wait(self) -> None:
        """Wait until the engine is imported."""
        if self._loading is not None:
            self._loading.join()

    def _message(self) -> StyleAndTextTuples:
        if not self._session.waiting:
            return [("class:prompt", f"{NAME}> ")]
        return [("class:prompt", f"{NAME} "), ("class:pending", self._session.waiting), ("class:prompt", "> ")]

    def _rendered(self, _: object) -> None:
        if self._loading is None:
            self._loading = Thread(target=load_engine, daemon=True)
            self._loading.start()

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter", filter=has_focus(DEFAULT_BUFFER) & ~is_searching)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
                buffer.complete_state = None  # the completion stays in the text
                return
            self.wait()
            if is_to_run(buffer.document, self._session.relations):
                buffer.validate_and_handle()
            else:
                buffer.newline(copy_margin=True)

        return keys


def is_to_run(document: Document, relations: Any) -> bool:
    """Whether Enter runs the input; on an empty line after the first it always does."""
    from everlog.repl.continuation import is_complete

    asked_twice = document.is_cursor_at_the_end and not document.current_line.strip() and document.line_count > 1
    return asked_twice or is_complete(document.text, relations)


def load_engine() -> None:
    """Import all modules that the first input may need."""
    from everlog.dsl.automaton import automaton

    import_module("everlog.repl.statements")
    automaton()


class _Tab(Completer):
    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        for found in candidates(self._session, document.text_before_cursor):
            yield Completion(found.text, -found.length, display_meta=found.what)


# ── history ──────────────────────────────────────────────────────────────────────────────────


def history_path(environment: Callable[[str], str | None] = os.environ.get) -> Path:
    """The history file, in the user's folder for program state.

    >>> history_path({"XDG_STATE_HOME": "/state"}.get).as_posix()
    '/state/everlog/history'
    """
    state = environment("XDG_STATE_HOME")
    folder = Path(state) if state and Path(state).is_absolute() else Path.home() / ".local" / "state"
    return folder / "everlog" / "history"


def history() -> History:
    """The stored history; if the file cannot be used, only that of this session."""
    path = history_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
