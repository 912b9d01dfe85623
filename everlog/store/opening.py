"""Opening a database file: a new one, or an existing one with a new program.

If a program is passed for an existing file, it is compared with the one passed last.  If the text
is the same, the database continues as it is, with all rules added and dropped since.  If it is
another text, it replaces the program, as one step; but not if facts would be lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from everlog.api.changes import Changes
from everlog.api.live import LiveText, with_functors
from everlog.core.engine import Engine
from everlog.core.program import Program, Value
from everlog.core.runtime.guards import Limits, Progress
from everlog.initial_facts import Facts, facts_to_begin_with
from everlog.store.durable_database import DurableDatabase
from everlog.store.errors import NoSuchDatabase, OtherProgram, StoreError
from everlog.store.file import HISTORY, DatabaseFile, created
from everlog.store.file_guard import require_one_name
from everlog.store.locking import WriterLock
from everlog.store.program_text import Written, program_of, saved
from everlog.store.recovery import contents_of, digest, engine_of, shorten, sleeping_engine


@frozen
class Opening:
    """The arguments of `Database.open`."""

    path: Path
    written: Written | None
    functors: Mapping[str, Callable[..., Value]]
    strategies: Mapping[str, str]
    limits: Limits | None
    progress: Progress | None
    facts: Facts | None
    history: int | str | None
    read_only: bool

    @property
    def how(self) -> dict[str, Any]:
        """The arguments of the engine."""
        return {"limits": self.limits, "progress": self.progress}

    # ── new and existing files ───────────────────────────────────────────────────────────────

    def opened(self) -> DurableDatabase:
        if self.read_only:
            if self.written is not None or self.facts is not None or self.history is not None:
                raise ValueError("read_only=True takes no other arguments: everything comes from the file")
            return self._continued(None)
        if not self.path.parent.is_dir():
            raise NoSuchDatabase(f"there is no folder {self.path.parent} for the database {self.path.name}")
        require_one_name(self.path)
        lock = WriterLock(self.path)
        try:
            return self._continued(lock) if os.path.lexists(self.path) else self._begun(lock)
        except BaseException:
            lock.release()
            raise

    def _begun(self, lock: WriterLock) -> DurableDatabase:
        """A new database; evaluated first, so that a failing program leaves no file."""
        if self.written is None:
            raise NoSuchDatabase(f"there is no database {self.path}, and no program to create one with")
        program = with_functors(program_of(self.written), self.functors)
        given: dict[str, list[Any]] = {name: list(rows) for name, rows in program.facts.items()}
        if self.facts is not None:
            for name, rows in facts_to_begin_with(program, self.facts).items():
                given.setdefault(name, []).extend(rows)
        engine = Engine(program, given=given, strategies=self.strategies, **self.how)
        begin_file(self.path, engine, self.written, number_of_steps(self.history, HISTORY))
        file = DatabaseFile(self.path, lock)
        try:
            file.begin_writing()
        except BaseException:
            file.close()
            raise
        return self._made(file, engine, self.written)

    def _continued(self, lock: WriterLock | None) -> DurableDatabase:
        """An existing database; all that its steps need is read before the first is written."""
        file = DatabaseFile(self.path, lock)
        try:
            database = self._asleep(file, lock) or self._awake(file, lock)
            if lock is not None:
                self._adjust(file, database)
            return database
        except BaseException:
            file.close()
            raise

    def _asleep(self, file: DatabaseFile, lock: WriterLock | None) -> DurableDatabase | None:
        """A database whose relations stay in the file until more is needed than their rows."""
        found = sleeping_engine(file, self.functors, self.strategies, **self.how)
        if found is None:
            return None
        if lock is not None:
            file.begin_writing()
        return self._made(file, *found)

    def _awake(self, file: DatabaseFile, lock: WriterLock | None) -> DurableDatabase:
        contents = contents_of(file)
        engine = engine_of(contents, self.functors, self.strategies, **self.how)
        if lock is not None:
            file.begin_writing()
            shorten(file, contents, engine)
        return self._made(file, engine, contents.written)

    def _made(self, file: DatabaseFile, engine: Engine, written: Written) -> DurableDatabase:
        return DurableDatabase(file, engine, written, self.functors, self.strategies, self.read_only)

    # ── arguments for an existing database ───────────────────────────────────────────────────

    def _adjust(self, file: DatabaseFile, database: DurableDatabase) -> None:
        if self.history is not None and number_of_steps(self.history, 0) != file.history:
            file.keep(number_of_steps(self.history, 0))
        if self.written is not None:
            exchange_program(database, self.written, self.functors)


def exchange_program(
    database: DurableDatabase, written: Written, functors: Mapping[str, Callable[..., Value]]
) -> Changes:
    """Replace the program, if it is a new one; OtherProgram if facts would be lost."""
    now, path = database._live or database.program, database.path
    if digest(written) in (database._file.digest, digest(now)):
        return Changes({}, database.relations)
    if not isinstance(written, LiveText) or not isinstance(now, LiveText):
        raise OtherProgram(
            f"{path} has another program; only a program with a text (text=… or file=…) can replace it"
        )
    refuse_losses(path, database, written.program)
    return database._switch_program(now.replaced_by(written), dict(functors), written.digest)


def begin_file(path: Path, engine: Engine, written: Written, history: int | None = HISTORY) -> None:
    """Create the file of a database in memory; its current state is step 0."""
    given = {name: engine.given(name) for name in engine.program.relations if engine.given(name)}
    created(path, saved(written), given.items(), history, digest(written))


def refuse_losses(path: Path, database: DurableDatabase, program: Program) -> None:
    """Raise OtherProgram if a new program does not declare a relation that has facts."""
    for name, relation in database.relations.items():
        given = len(database.given(name)) if not relation.auxiliary_of else 0
        other = program.relations.get(name)
        kinds = [column.kind for column in relation.columns]
        if given and (other is None or [column.kind for column in other.columns] != kinds):
            why = "is not declared in" if other is None else "has other columns in"
            raise OtherProgram(
                f"{path} has {given} base fact(s) of `{relation}`, which {why} the new program; "
                f"to drop them, open the database without a program and call drop_relation({name!r})"
            )


def number_of_steps(history: int | str | None, default: int | None) -> int | None:
    """The number of steps to keep; None means all."""
    if history is None:
        return default
    if history == "all":
        return None
    if isinstance(history, int) and not isinstance(history, bool) and history >= 0:
        return history
    raise ValueError(f'history={history!r} is not a number of steps; use a number or "all"')


def opened(path: Path | str, **how: Any) -> DurableDatabase:
    """The database of a file: see `Database.open`."""
    try:
        real = Path(os.path.realpath(path))
    except (OSError, ValueError) as problem:
        raise StoreError(f"{path!r} is not a file name: {problem}") from None
    return Opening(real, **how).opened()
