"""From a file to a running engine.

The facts of the last checkpoint and the log from there on give the facts of now.  What follows from
them is evaluated at one go; or the state of the checkpoint is taken as it is, and the log since
then applied to it as one step.  The state is there only if that was found to be faster when the
checkpoint was made (everlog.store.states), and it is left alone if the log has grown long since.
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

LONG = 50_000  # updates in the log from which on it is long, if it also has as many as there are facts


@frozen
class Contents:
    """What a file holds: the program, the facts of its checkpoint, and what the steps since have
    changed.
    """

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
    """Read all that is needed to go on; `Damaged` if something is not as it was written."""
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
        log.read_positions(connection)  # which are asked for later: that they are whole is known now
    return Contents(written, text, given, changes, state)


def engine_of(
    contents: Contents, functors: Mapping[str, Any], strategies: Mapping[str, str], **more: Any
) -> Engine:
    """The engine of what a file holds."""
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
    """Where the log has grown long, write the facts of now, so that the next opening does without
    it.
    """
    if contents.updates >= max(LONG, contents.facts):
        with suppress(StoreError):  # a full disk: then the next opening takes as long as this one
            write_checkpoint(file, engine, contents.text, {}, None, with_state=False)


def write_checkpoint(
    file: DatabaseFile,
    engine: Engine,
    text: str,
    strategies: Mapping[str, str],
    history: int | None,
    with_state: bool | None = None,
) -> None:
    """Write the facts, and the state of the engine where that comes back faster (or as `with_state`
    says).
    """
    given = {name: engine.given(name) for name in engine.program.relations if engine.given(name)}
    state = None if with_state is False else states.worth_keeping(engine, text, strategies, bool(with_state))
    with engine.guard, engine.guard.sealing():  # a signal waits: memory and file must agree
        if state is None:
            file.checkpoint(given, None, (), history)
        else:
            file.checkpoint(given, state.about, state.units.items(), history)


def digest(written: Written) -> str:
    """What tells one program that was given from another."""
    return written.digest if isinstance(written, LiveText) else sha256(saved(written).encode("ascii")).hexdigest()
