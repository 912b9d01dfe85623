"""From a file to a running engine.

The facts of the last checkpoint and the log since then give the current base facts.  The derived
facts are evaluated from scratch; or the engine loads the state of the checkpoint, and applies the
log to it as one step.  The state exists only if that was measured to be faster when the checkpoint
was written (everlog.store.states), and it is ignored if the log has grown long since.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any

from attrs import frozen

from everlog.api.live import LiveText, with_functors
from everlog.core.engine import Engine
from everlog.core.program import Row
from everlog.store import checkpoint, log, states
from everlog.store.errors import StoreError
from everlog.store.file import DatabaseFile
from everlog.store.program_text import Written, program_of, restored, saved
from everlog.store.records import Change, applied, combined

LONG = 50_000  # a log with this many updates, and as many as there are facts, is long


@frozen
class Contents:
    """The content of a file: the program, the checkpoint's facts, the changes since."""

    written: Written
    text: str
    given: Mapping[str, list[Row]]
    changes: list[Change]
    state: states.State | None

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
        state = None
        if since <= file.base:
            about = checkpoint.read_about(connection, "state")
            if about is not None:
                state = states.State(about, checkpoint.read_state(connection, about["units"]))
        written = restored(text)
        log.read_positions(connection)  # used later: verify them now
    return Contents(written, text, given, changes, state)


def engine_of(
    contents: Contents, functors: Mapping[str, Any], strategies: Mapping[str, str], **more: Any
) -> Engine:
    """The engine for the content of a file."""
    program = with_functors(program_of(contents.written), functors)
    if contents.state is not None and contents.updates * 4 <= contents.facts:
        kept = states.usable(contents.state, contents.text, program, strategies)
        if kept is not None:
            engine = Engine(program, given=contents.given, strategies=strategies, kept=kept, **more)
            change = combined(contents.changes)
            if change:
                engine.change(change)
            return engine
    return Engine(program, given=applied(contents.given, contents.changes), strategies=strategies, **more)


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
    given = {name: engine.given(name) for name in engine.program.relations if engine.given(name)}
    state = None if with_state is False else states.worth_keeping(engine, text, strategies, bool(with_state))
    with engine.guard, engine.guard.sealing():  # signals wait: memory and file must agree
        if state is None:
            file.checkpoint(given, None, (), history)
        else:
            file.checkpoint(given, state.about, state.units.items(), history)


def digest(written: Written) -> str:
    """A hash that identifies the text of a program."""
    return written.digest if isinstance(written, LiveText) else sha256(saved(written).encode("ascii")).hexdigest()
