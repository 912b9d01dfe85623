"""From a file to an engine.

If nothing has changed since a checkpoint that has all facts, the engine sleeps: it reads the file
as needed.

Otherwise, and when it wakes, the facts of the last checkpoint and the log since then give the
current base facts.  The derived facts are evaluated from scratch; or the engine loads the state of
the checkpoint, and applies the log to it as one step.  The state exists only if that was measured
to be faster when the checkpoint was written (everlog.store.states), and it is ignored if the log
has grown long since.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from attrs import frozen

from everlog.api.live import LiveText, with_functors
from everlog.core.engine import Engine
from everlog.core.engine.sleeping import SleepingEngine
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.program import Program, Row
from everlog.store import checkpoint, log
from everlog.store.checkpoint import State
from everlog.store.column_codec import BadRecord
from everlog.store.errors import StateLost, StoreError
from everlog.store.file import DatabaseFile
from everlog.store.program_text import Written, program_of, restored, saved
from everlog.store.records import Change, applied, combined
from everlog.store.sorted_rows import OpenState, SortedRows
from everlog.store.states import decoded, sorted_base_facts, usable, worth_keeping

LONG = 50_000  # a log with this many updates, and as many as there are facts, is long


@frozen
class Contents:
    """The content of a file: the program, the checkpoint's facts, the changes since."""

    written: Written
    text: str
    given: Mapping[str, list[Row]]
    changes: list[Change]
    state: State | None

    @property
    def updates(self) -> int:
        return sum(len(gone) + len(new) for change in self.changes for gone, new in change.values())

    @property
    def facts(self) -> int:
        return sum(map(len, self.given.values()))


def contents_of(file: DatabaseFile) -> Contents:
    """Read all that a database needs; `Damaged` if something has changed."""
    with file.reading() as connection:
        file.find_steps(connection)
        since, text = log.program_at(connection, file.step)
        given = checkpoint.read_facts(connection)
        changes = [entry.change for entry in log.entries(connection, file.base, file.step)]
        state = _state(connection, file.path) if since <= file.base else None
        written = restored(text)
        log.read_positions(connection)  # used later: verify them now
    return Contents(written, text, given, changes, state)


def _state(connection: Connection, path: Path) -> State | None:
    """The states of units; None, with a warning, if some are damaged: they can be computed."""
    try:
        about = checkpoint.read_about(connection, "state")
        return None if about is None else State(about["key"], checkpoint.read_state(connection, about["units"]))
    except BadRecord as problem:
        _tell_lost(path, problem)
        return None


def _derived(connection: Connection, facts: Mapping[str, Any], path: Path) -> Mapping[str, Any] | None:
    try:
        return checkpoint.derived_beside(connection, facts)
    except BadRecord as problem:
        _tell_lost(path, problem)
        return None


def _tell_lost(path: Path, problem: BadRecord) -> None:
    what = f"{path}: {problem}; derived facts are computed from the base facts"
    warnings.warn(what, StateLost, stacklevel=4)


def engine_of(
    contents: Contents, functors: Mapping[str, Any], strategies: Mapping[str, str], **more: Any
) -> Engine:
    """The engine for the content of a file."""
    program, state = with_functors(program_of(contents.written), functors), contents.state
    is_short = contents.updates * 4 <= contents.facts
    if state is not None and is_short and usable(state.key, contents.text, program, strategies):
        kept = decoded(state.units)
        engine = Engine(program, given=contents.given, strategies=strategies, kept=kept, **more)
        change = combined(contents.changes)
        if change:
            engine.change(change)
        return engine
    return Engine(program, given=applied(contents.given, contents.changes), strategies=strategies, **more)


def sleeping_engine(
    file: DatabaseFile, functors: Mapping[str, Any], strategies: Mapping[str, str], **more: Any
) -> tuple[Engine, Written] | None:
    """An engine that reads the file as needed, with the program.

    None if the last step is not that of a checkpoint with all facts.
    """
    state = OpenState(file)
    try:
        with state.reading() as connection:
            file.find_steps(connection)
            facts = checkpoint.read_about(connection, "facts")
            derived = _derived(connection, facts, file.path)
            since, text = log.program_at(connection, file.step)
            if derived is not None and file.step == file.base and since <= file.base:
                written = restored(text)
                log.read_positions(connection)  # used later: verify them now
                program = with_functors(program_of(written), functors)
                if usable(derived["key"], text, program, strategies):
                    stored = StoredFacts(state, text, program, strategies, facts, derived)
                    return SleepingEngine(program, stored, strategies=strategies, **more), written
    except BaseException:
        state.close()
        raise
    state.close()
    return None


class StoredFacts:
    """All facts after a checkpoint, in its file."""

    def __init__(
        self,
        state: OpenState,
        text: str,
        program: Program,
        strategies: Mapping[str, str],
        facts: Mapping[str, Any],
        derived: Mapping[str, Any],
    ) -> None:
        self._state, self._text, self._program, self._strategies = state, text, program, strategies

        def sorted_rows(table: str, name: str, about: Mapping[str, Any]) -> SortedRows:
            number, pieces = about["numbers"].get(name, 0), about["relations"].get(name, 0)
            return SortedRows(state, table, program.relations[name], number, pieces)

        self.given = {name: sorted_rows(checkpoint.FACTS, name, facts) for name in facts["relations"]}
        self.rows = {name: sorted_rows(checkpoint.DERIVED, name, derived) for name in derived["relations"]}
        self.rows |= {name: sorted_rows(checkpoint.FACTS, name, facts) for name in derived["base"]}

    def load(self) -> tuple[Mapping[str, list[Row]], Mapping[str, Columns] | None]:
        """All base facts, and the states of units, if they are written."""
        with self._state.reading() as connection:
            given = checkpoint.read_facts(connection)
            state = _state(connection, self._state.file.path)
        if state is None or not usable(state.key, self._text, self._program, self._strategies):
            return given, None
        return given, decoded(state.units)

    def close(self) -> None:
        self._state.close()


def shorten(file: DatabaseFile, contents: Contents, engine: Engine) -> None:
    """Write a checkpoint if the log is long, so that the next opening is quick."""
    if contents.updates >= max(LONG, contents.facts):
        with suppress(StoreError):  # a full disk: the next opening is as slow as this one
            write_checkpoint(file, engine, contents.text, {}, None, with_state=False)


def write_checkpoint(
    file: DatabaseFile,
    engine: Engine,
    text: str,
    strategies: Mapping[str, str],
    history: int | None,
    with_state: bool | None = None,
) -> None:
    """Write the facts, and the engine's state if `with_state` or faster to load."""
    if isinstance(engine, SleepingEngine):
        engine.wake()  # what it reads is about to be replaced
    state = None if with_state is False else worth_keeping(engine, text, strategies, bool(with_state))
    with engine.guard, engine.guard.sealing():  # signals wait: memory and file must agree
        file.checkpoint(sorted_base_facts(engine), state, history)


def digest(written: Written) -> str:
    """A hash that identifies the text of a program."""
    return written.digest if isinstance(written, LiveText) else sha256(saved(written).encode("ascii")).hexdigest()
