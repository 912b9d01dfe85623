"""A database in a file: a `Database` with a history.

Each step is written before it is reported; one that cannot be written is undone.  Reads come from
memory: the file is read when it is opened, and for the past.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

from everlog.api.changes import Changes
from everlog.api.database import Database
from everlog.api.live import LiveText
from everlog.core.engine import Engine
from everlog.core.engine.sleeping import SleepingEngine
from everlog.core.program import Value
from everlog.store import past, recovery
from everlog.store.copying import is_file_name
from everlog.store.errors import ReadOnly
from everlog.store.file import DatabaseFile
from everlog.store.past import Logged, Past
from everlog.store.program_text import Written


class DurableDatabase(Database):
    """The type of `Database.open(…)`.  Use it in a `with` block, or `close` it.

    `step` is the number of the last step: 0 for the initial state.  Only a change of base facts or
    of the program is a step; inserting an existing fact is not.
    """

    def __init__(
        self,
        file: DatabaseFile,
        engine: Engine,
        written: Written,
        functors: Mapping[str, Callable[..., Value]],
        strategies: Mapping[str, str],
        read_only: bool,
    ) -> None:
        self._file = file
        self._step = file.step
        live = written if isinstance(written, LiveText) else None
        self._begin(engine, live, functors, strategies)
        self.closed = False
        if read_only:
            self._writer.state.shut(ReadOnly, f"{file.path} was opened with read_only=True")
        else:
            self._writer.keep_in(file)
        self.read_only = read_only

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def step(self) -> int:
        """The number of the last step."""
        return self._step if self.read_only else self._file.step

    @property
    def oldest(self) -> int:
        """The oldest step that `as_of` accepts."""
        return self._file.oldest

    @property
    def positions(self) -> Mapping[str, str]:
        """The position of each source of changes, from the file: see `apply`."""
        return self._file.positions()

    @property
    def asleep(self) -> bool:
        """Whether facts are read from the file, and none are in memory yet."""
        return self._engine.is_asleep

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def checkpoint(self, *, history: int | str | None = None, state: bool | None = None) -> None:
        """Write the current facts, so that the file opens quickly, and drop old steps.

        `history` is the number of steps that `as_of` can go back, or "all"; None means the last
        value that `Database.open` got, or 1000.  `state` says whether derived facts are written
        too, so that opening need not compute them; None measures which is faster.
        """
        from everlog.store.opening import number_of_steps

        self._writer.require_idle()
        kept = number_of_steps(history, self._file.history)
        _, text = self._file.program_at(self.step)
        recovery.write_checkpoint(self._file, self._engine, text, self._strategies, kept, state)

    def save(self, path: Path | str) -> None:
        """As `Database.save`; a database file gets all of the history too."""
        if is_file_name(path):
            self._file.copy_to(Path(path).absolute())
        else:
            super().save(path)

    # ── reading along ────────────────────────────────────────────────────────────────────────

    def refresh(self) -> Changes:
        """Apply the steps that another process has written since, one by one.

        For a database that was opened with `read_only=True`.  Subscribers are called for each step;
        returns the sum of all changes.
        """
        if not self.read_only:
            return Changes({}, self.relations)
        return past.follow(self)

    # ── the past ─────────────────────────────────────────────────────────────────────────────

    def as_of(self, step: int) -> Database:
        """The state after a past step, as a read-only database."""
        return past.moment(self, step).as_of()

    def diff(self, before: int, after: int, relation: str | None = None) -> Changes:
        """The difference between the states after two steps, in one or all relations."""
        first, last = sorted((before, after))
        return past.difference(past.moment(self, first, last), before > after, relation)

    def history(self, relation: str) -> list[Past]:
        """The steps that changed a relation, with number, time and changes."""
        return past.of_relation(past.moment(self, self.oldest, self.step), relation)

    def logged(self, after: int, upto: int) -> list[Logged]:
        """The steps after one up to another: number, time, and how many base facts changed."""
        return past.logged(self, after, upto)

    # ── the end ──────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Close the file.  The facts in memory stay readable; writes are refused."""
        if not self.closed:
            self._step = self.step
            self.closed = self.read_only = True
            self._writer.state.shut(ReadOnly, f"the database {self.path} is closed")
            if isinstance(self._engine, SleepingEngine):
                self._engine.doze()
            self._file.close()

    def __enter__(self) -> DurableDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, step {self.step} of {self.path}>"
