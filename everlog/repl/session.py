"""A session: a database, an open transaction, watched relations, settings.

Each input takes effect as a whole or not at all, and errors are reported: `run` raises only
`KeyboardInterrupt`, which the loop reports.  The database is created when the first input needs it,
so the prompt does not wait for the engine.
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
    from everlog.api.changes import Changes
    from everlog.api.database import Database
    from everlog.api.facts.rows import Pattern
    from everlog.api.how import Answers
    from everlog.api.wanted import Release
    from everlog.core.program import Value
    from everlog.core.program.executor import Update
    from everlog.core.runtime.guards import Limits
    from everlog.store.durable_database import DurableDatabase


@define
class Places:
    """The locations of programs, facts and functors."""

    program: Path | None = None
    facts: Path = Path()
    include_dirs: Sequence[Path] = ()
    macros: Mapping[str, str] = field(factory=dict)
    libraries: Sequence[str] = ()
    library_dirs: Sequence[str] = ()


class Session:
    """The state of a session.

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
        self.quiet_commit = False  # begun by `start;`, whose `commit;` prints no changes
        self.watched: dict[str, Pattern] = {}
        self._asking: dict[str, Release] = {}  # by what is watched of relations on demand
        self.parameters: dict[str, Value] = {}  # of queries: see `.param`
        self.answers: tuple[Answers, Changes] | None = None  # of the last `.how`, and the last changes then
        self.status: int | None = None  # set when the session is over
        self.opened: Database | None = None
        self.present: DurableDatabase | None = None  # the database in the file, while `db` is a past state
        self._meter: Meter = Silence()
        self.asked_to_leave = False  # by Ctrl-D, while updates are pending
        self._depth = 0  # of nested `.read`

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
        """The declared relations; empty before the database is created."""
        return {} if self.opened is None else self.opened.relations

    @property
    def step(self) -> int | None:
        """The number of the last step, for a database in a file."""
        return getattr(self.opened, "step", None)

    @property
    def waiting(self) -> str:
        """The prompt's note about an open transaction, or about a past state."""
        if self.present is not None:
            return "[past]"
        return "" if self.pending is None else f"[{len(self.pending)} pending]"

    def watch(self, text: str, pattern: Pattern) -> None:
        """Print only changes of such facts, and of others that are watched."""
        from everlog.api.wanted import ask_while

        self.unwatch(text)
        release = ask_while(self.db._writer, pattern)
        self.watched[text] = pattern
        if release is not None:
            self._asking[text] = release

    def unwatch(self, text: str | None = None) -> bool:
        """Stop watching this, or everything; whether it was watched."""
        gone = list(self.watched) if text is None else [text] if text in self.watched else []
        for each in gone:
            del self.watched[each]
            release = self._asking.pop(each, None)
            if release is not None:
                release()
        return bool(gone)

    def close(self) -> None:
        """End the session: close the output file and the database."""
        self.screen.to_screen()
        close = getattr(self.present or self.opened, "close", None)
        if close is not None:
            close()

    def deriving(self, unit: str, iteration: int, facts: int) -> None:
        """Show the progress of a long step; the engine calls this."""
        self._meter.deriving(unit, iteration, facts)

    # ── one line ─────────────────────────────────────────────────────────────────────────────

    def run(self, text: str, place: str = "") -> bool:
        """Run an input; False if it failed.  `place` is its place in a script, for errors."""
        start, waited = perf_counter(), self.screen.waited
        try:
            with meter_for(sys.stderr, self.settings.progress and self.screen.terminal) as self._meter:
                self.screen.before_writing = self._meter.clear
                well = self.try_to(lambda: self.do(text), f"{place}: " if place else "")
        finally:
            self.screen.line_is_over()
        if self.settings.timer and text.strip():
            seconds = perf_counter() - start - (self.screen.waited - waited)
            self.screen.note(f"{seconds:.3f} s")
        return well

    def try_to(self, act: Callable[[], object], place: str = "") -> bool:
        """Run an action, or report why it fails; False if it failed."""
        try:
            act()
        except CommandError as problem:
            self.screen.error(f"{place}error: {problem}")
        except BrokenPipeError:  # the reader of the output has closed it
            raise
        except Exception as problem:
            self.screen.error(place + _error_text(problem))
        else:
            return True
        return False

    def do(self, text: str) -> None:
        """Run an input; raise its errors."""
        from everlog.dsl.query_text import parse_query
        from everlog.repl import continuation, statements, transactions

        line = continuation.read_line(text, self.relations)
        match line.kind:
            case continuation.NOTHING:
                pass
            case continuation.COMMAND if line.name == ".strategy":
                raise CommandError("a `.strategy` belongs on the line of its rule")
            case continuation.COMMAND:
                find_command(line.name).run(self, line.text)
            case continuation.QUERY:
                statements.ask(self, line.query or parse_query(line.text))
            case continuation.DROP:
                statements.drop_rules(self, continuation.rules_named(line.text))
            case continuation.SQL:
                from everlog.repl.sql_habit import in_datalog

                raise CommandError(in_datalog(line.text, self.relations))
            case continuation.DOTLESS:
                raise CommandError(f"a command begins with a dot: `.{line.text[:80]}`")
            case continuation.DDLOG:
                transactions.run_ddlog(self, line.text)
            case _:
                statements.run_statements(self, line.text)

    def leave(self, status: int = 0) -> None:
        """End the session after this input."""
        self.status = status

    def read_script(self, name: str) -> bool:
        """Run the lines of a file as if they were typed; False if one failed."""
        from everlog.repl.loop import run_script

        if self._depth > 50:
            raise CommandError(f"`.read {name}` cannot read itself")
        try:
            text = Path(name).expanduser().read_bytes().decode("utf-8", "surrogateescape")
        except OSError as problem:
            raise CommandError(f"cannot read {name}: {problem.strerror}") from None
        self._depth += 1
        try:
            return run_script(self, text.split("\n"), name)
        finally:
            self._depth -= 1


def _error_text(problem: Exception) -> str:
    """The text of an error for the user."""
    from everlog.dsl.diagnostics import DatalogError

    if isinstance(problem, DatalogError):
        return "\n\n".join(problem.report.printed(problem.report.errors))
    if isinstance(problem, MemoryError):
        return "error: out of memory"
    if isinstance(problem, ExceptionGroup):
        return "error: " + "; ".join(str(inner) for inner in problem.exceptions)
    if _is_known(problem):
        return f"error: {problem}"
    return f"error: this is a bug in everlog; please report it\n{format_exc().rstrip()}"


def _is_known(problem: Exception) -> bool:
    """Whether a user's mistake can cause this error."""
    from everlog.api.lifecycle import NestedWrite
    from everlog.core.program.values import EvaluationError
    from everlog.extras import MissingPackage
    from everlog.files.text_values import FactsError
    from everlog.functors import FunctorError
    from everlog.store.errors import StoreError

    known = (EvaluationError, FactsError, MissingPackage, FunctorError, NestedWrite, StoreError, OSError)
    ours = isinstance(problem, ValueError) and type(problem).__module__.startswith("everlog.")
    return ours or isinstance(problem, known)
