"""One conversation: a database, an open transaction, what is watched, settings; one line at a time.

Whatever a line does, it is done as a whole or not at all, and a mistake is told and forgotten:
`run` never raises but for `KeyboardInterrupt`, which the loop turns into a remark as well.  The
database is made when the first line needs it, so the prompt need not wait for the engine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from traceback import format_exc
from typing import TYPE_CHECKING, Any, TextIO

from attrs import define, field

from everlog.progress import Meter, Silence, meter_for
from everlog.repl.screen import Screen
from everlog.repl.settings import Settings
from everlog.repl.table import CommandError, find_command

if TYPE_CHECKING:
    from everlog.api.database import Database
    from everlog.api.rows import Pattern
    from everlog.core.program import Value
    from everlog.core.program.executor import Update
    from everlog.core.runtime.guards import Limits
    from everlog.store.durable_database import DurableDatabase


@define
class Places:
    """Where programs, facts and functors are."""

    program: Path | None = None
    facts: Path = Path()
    include_dirs: Sequence[Path] = ()
    macros: Mapping[str, str] = field(factory=dict)
    libraries: Sequence[str] = ()
    library_dirs: Sequence[str] = ()


class Session:
    """The state of a conversation.

    >>> from io import StringIO
    >>> session = Session(out=StringIO())
    >>> for line in (".decl n(x:number)", "n(1).", "n(1).", "n(x)?"):
    ...     _ = session.run(line)
    >>> print(session.screen.out.getvalue())
    n(x:number)
    +n(1).
    0 changed
    x
    -
    1
    (1 row)
    <BLANKLINE>
    """

    def __init__(
        self,
        places: Places | None = None,
        *,
        terminal: bool = False,
        colour: bool = False,
        out: TextIO | None = None,
        limits: Limits | None = None,
        strategies: Mapping[str, str] | None = None,
    ) -> None:
        self.places = places or Places()
        self.settings = Settings(terminal, colour)
        self.screen = Screen(self.settings, terminal, out)
        self.limits, self.strategies = limits, dict(strategies or {})
        self.pending: list[Update] | None = None  # the updates of the open transaction
        self.quiet_commit = False  # it was begun by `start;`, whose `commit;` tells no changes
        self.watched: dict[str, Pattern] = {}
        self.parameters: dict[str, Value] = {}  # of queries: see `.param`
        self.status: int | None = None  # set when the conversation is over
        self.opened: Database | None = None
        self.present: DurableDatabase | None = None  # while a state of the past is looked at
        self._meter: Meter = Silence()
        self._depth = 0  # of `.read` in `.read`

    # ── the database ─────────────────────────────────────────────────────────────────────────

    @property
    def db(self) -> Database:
        if self.opened is None:
            from everlog.repl.open_database import begun

            self.opened = begun(self)
        return self.opened

    @db.setter
    def db(self, database: Database) -> None:
        self.opened = database

    @property
    def relations(self) -> Mapping[str, Any]:
        """What is declared, as far as anything has been loaded."""
        return {} if self.opened is None else self.opened.relations

    @property
    def step(self) -> int | None:
        """The number of the last step, of a database in a file."""
        return getattr(self.opened, "step", None)

    @property
    def waiting(self) -> str:
        """What the prompt says of the open transaction, or of the past."""
        if self.present is not None:
            return "[past]"
        return "" if self.pending is None else f"[{len(self.pending)} pending]"

    def close(self) -> None:
        """The end: files are complete, and a database that is kept in one lets it go."""
        self.screen.to_screen()
        close = getattr(self.present or self.opened, "close", None)
        if close is not None:
            close()

    def deriving(self, unit: str, iteration: int, facts: int) -> None:
        """The engine tells what a long step is doing."""
        self._meter.deriving(unit, iteration, facts)

    # ── one line ─────────────────────────────────────────────────────────────────────────────

    def run(self, text: str, place: str = "") -> bool:
        """Run what was typed; whether it went well.  `place` is where a script has it: told with
        errors.
        """
        start = perf_counter()
        try:
            with meter_for(sys.stderr, self.settings.progress and self.screen.terminal) as self._meter:
                well = self.try_to(lambda: self.do(text), f"{place}: " if place else "")
        finally:
            self.screen.line_is_over()
        if self.settings.timer and text.strip():
            self.screen.note(f"{perf_counter() - start:.3f} s")
        return well

    def try_to(self, act: Callable[[], object], place: str = "") -> bool:
        """Do something, or tell why it cannot be done; whether it went well."""
        try:
            act()
        except CommandError as problem:
            self.screen.error(f"{place}error: {problem}")
        except BrokenPipeError:  # nobody reads the answers any more
            raise
        except Exception as problem:
            self.screen.error(place + _told(problem))
        else:
            return True
        return False

    def do(self, text: str) -> None:
        """Do what was typed; what goes wrong is raised."""
        from everlog.dsl.query_text import parse_query
        from everlog.repl import continuation, statements, transactions

        line = continuation.read_line(text, self.relations)
        match line.kind:
            case continuation.NOTHING:
                pass
            case continuation.COMMAND if line.name == ".strategy":
                raise CommandError("the strategy of a rule stands on the line of that rule")
            case continuation.COMMAND:
                find_command(line.name).run(self, line.text)
            case continuation.QUERY:
                statements.ask(self, line.query or parse_query(line.text))
            case continuation.DROP:
                statements.drop_rules(self, continuation.rules_named(line.text))
            case continuation.DDLOG:
                transactions.run_ddlog(self, line.text)
            case _:
                statements.run_statements(self, line.text)

    def leave(self, status: int = 0) -> None:
        """This was the last line."""
        self.status = status

    def read_script(self, name: str) -> bool:
        """Run the lines of a file as if they were typed; whether all went well."""
        from everlog.repl.loop import run_script

        if self._depth > 50:
            raise CommandError(f"`.read {name}` inside itself")
        try:
            text = Path(name).expanduser().read_bytes().decode("utf-8", "surrogateescape")
        except OSError as problem:
            raise CommandError(f"cannot read {name}: {problem.strerror}") from None
        self._depth += 1
        try:
            return run_script(self, text.split("\n"), name)
        finally:
            self._depth -= 1


def _told(problem: Exception) -> str:
    """An error as a user reads it."""
    from everlog.dsl.diagnostics import DatalogError

    if isinstance(problem, DatalogError):
        return "\n\n".join(map(problem.report.render, problem.report.errors))
    if isinstance(problem, MemoryError):
        return "error: out of memory"
    if isinstance(problem, ExceptionGroup):
        return "error: " + "; ".join(str(inner) for inner in problem.exceptions)
    if _is_known(problem):
        return f"error: {problem}"
    return f"error: this should not have happened, and is a mistake of ours\n{format_exc().rstrip()}"


def _is_known(problem: Exception) -> bool:
    """Whether it is one of the errors that a user's mistake can have."""
    from everlog.api.lifecycle import NestedWrite
    from everlog.core.program.values import EvaluationError
    from everlog.files.text_values import FactsError
    from everlog.functors import FunctorError
    from everlog.store.errors import StoreError

    known = (EvaluationError, FactsError, FunctorError, NestedWrite, StoreError, OSError)
    ours = isinstance(problem, ValueError) and type(problem).__module__.startswith("everlog.")
    return ours or isinstance(problem, known)
