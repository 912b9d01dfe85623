"""Writing: one step at a time, and nothing else in between.

`Writer` is the only place where a database changes.  It refuses a write in the middle of another
one: from a subscriber, from a functor, or past a transaction that is open.  A `Transaction`
collects inserts and deletes, and hands them to the writer as one step.

A database in a file has a *journal*.  The engine shows it each step at its end, and takes the step back if the
journal fails: so what a caller or a subscriber is told of is on disk.

Reads: everlog.rows, everlog.results, everlog.changes, everlog.subscriptions.  Read by: everlog.database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, Protocol, TypeVar

from everlog.changes import Changes
from everlog.core import executor
from everlog.core.engine import Engine
from everlog.core.engine.engine import Net
from everlog.core.executor import Update
from everlog.core.program import Program, Relation, Row
from everlog.results import State
from everlog.rows import Step, step_updates, updates
from everlog.subscriptions import Subscribers

_Given = TypeVar("_Given")

_STEP = "a step is under way: functors and progress callbacks cannot write"
_TELLING = "a step is being told to subscribers: collect what to write, and write it when the step has returned"
_TRANSACTION = "a transaction is open: write through it, or after it"


class NestedWrite(RuntimeError):
    """A write to a database that is in the middle of another one."""


class Journal(Protocol):
    """Whoever keeps the steps of a database beyond its life.  What fails has left no trace."""

    step: int

    def write(
        self,
        net: Net,
        *,
        program: str | None = None,
        positions: Mapping[str, str] | None = None,
        given: str | None = None,
    ) -> None:
        """Keep a step: its change of the given facts, and the program from here on if that is another one."""

    def write_positions(self, positions: Mapping[str, str]) -> None:
        """Keep how far sources of changes have been read."""


class Writer:
    """The engine of a database, its subscribers, its open results, and what the last step changed."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.relations: dict[str, Relation] = dict(engine.program.relations)
        self.changes = Changes({}, self.relations)
        self.subscribers = Subscribers()
        self.under_way = ""  # why nobody may write now
        self.state = State()
        self._idle = ""  # why nobody may write at all
        self._refusal: type[Exception] = NestedWrite
        self.journal: Journal | None = None

    def keep_in(self, journal: Journal) -> None:
        """From now on each step is written, or undone."""
        self.journal = journal
        self.engine.seal = journal.write

    def shut(self, refusal: type[Exception], why: str) -> None:
        """From now on nobody may write; who tries gets this exception."""
        self.under_way = self._idle = why
        self._refusal = refusal

    def apply(self, step: Iterable[Update], positions: Mapping[str, str] | None = None) -> Changes:
        """Apply a step and tell the subscribers; `positions` are kept with it."""
        if positions and self.journal is not None:
            before = self.journal.step
            with self._sealed_by(self.journal, positions=dict(positions)):
                changes = self.commit(step)
            if self.journal.step == before:  # nothing has changed but what was read
                self.journal.write_positions(positions)
        else:
            changes = self.commit(step)
        if self.subscribers.all:
            self.tell(changes)
        return changes

    def update(self, relation: str, row: Row, insert: bool) -> Changes:
        """`apply` for one row that is known to fit.  Cost: that of the engine, and half a microsecond."""
        if self.under_way:
            self.refuse()
        self.state.next_step()
        self.under_way = _STEP
        try:
            told = self.engine.update(relation, row, insert)
        finally:
            self.under_way = ""
        self.changes = changes = Changes(told, self.relations)
        if self.subscribers.all:
            self.tell(changes)
        return changes

    def insert(self, rows: Mapping[str, Iterable[Row]]) -> Changes:
        """Insert many rows as one step, and tell the subscribers."""
        changes = self.commit_rows(rows)
        if self.subscribers.all:
            self.tell(changes)
        return changes

    def commit(self, step: Iterable[Update]) -> Changes:
        """Apply a step."""
        self.changes = changes = Changes(self._alone(self.engine.apply, step), self.relations)
        return changes

    def commit_rows(self, rows: Mapping[str, Iterable[Row]]) -> Changes:
        """Insert many rows as one step."""
        self.changes = changes = Changes(self._alone(self.engine.insert, rows), self.relations)
        return changes

    def commit_program(self, program: Program, written: Callable[[], str], given: str | None = None) -> Changes:
        """Go on with another program; `written` is its text, for the journal, and `given` whoever gave it."""
        if self.journal is None:
            told = self._alone(self.engine.change_program, program)
        else:
            with self._sealed_by(self.journal, program=written(), given=given):
                told = self._alone(self.engine.change_program, program)
        # What has gone may have had facts: their changes are told with the declaration they had.
        self.changes = changes = Changes(told, self.relations | dict(self.engine.program.relations))
        self.relations = dict(self.engine.program.relations)
        return changes

    @contextmanager
    def _sealed_by(self, journal: Journal, **more: Any) -> Iterator[None]:
        """The next step is written with something more."""
        self.engine.seal = partial(journal.write, **more)
        try:
            yield
        finally:
            self.engine.seal = journal.write

    def _alone(self, change: Callable[[_Given], executor.Changes], given: _Given) -> executor.Changes:
        """Have the engine change, while nobody else writes."""
        if self.under_way:
            self.refuse()
        self.state.next_step()
        self.under_way = _STEP
        try:
            return change(given)
        finally:
            self.under_way = ""

    def follow(self, change: Callable[[_Given], executor.Changes], given: _Given) -> Changes:
        """Have the engine change, as somebody else has written it, though nobody may write here."""
        if self.under_way != self._idle:
            self.refuse()
        self.state.next_step()
        self.under_way = _STEP
        try:
            told = change(given)
        finally:
            self.under_way = self._idle
        relations = dict(self.engine.program.relations)
        self.changes = changes = Changes(told, self.relations | relations)
        self.relations = relations
        return changes

    def refuse(self) -> NoReturn:
        raise (self._refusal if self.under_way == self._idle else NestedWrite)(self.under_way)

    def tell(self, changes: Changes) -> None:
        self.under_way = _TELLING
        try:
            self.subscribers.tell(changes)
        finally:
            self.under_way = self._idle


class Transaction:
    """What `Database.transaction` gives: the same `insert`, `delete` and `apply`, which only collect.

    Facts are checked when they are given.  Their order counts: a fact that is inserted and then
    deleted is not there afterwards.  `changes` is what the step changed, once it has been applied.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._step: list[Update] = []
        self._state = "new"
        self._changes: Changes | None = None

    def insert(self, relation: str, rows: object = None) -> None:
        """As `Database.insert`, at the end of the transaction."""
        self._extend(updates(self._writer.relations, relation, rows, True))

    def delete(self, relation: str, rows: object = None) -> None:
        """As `Database.delete`, at the end of the transaction."""
        self._extend(updates(self._writer.relations, relation, rows, False))

    def apply(self, step: Step) -> None:
        """As `Database.apply`, at the end of the transaction: all of its updates, or after an error none."""
        self._extend(step_updates(self._writer.relations, step))

    def _extend(self, step: Iterable[Update]) -> None:
        if self._state != "open":
            raise NestedWrite("this transaction is not open; use it inside `with db.transaction() as tx:`")
        self._step += list(step)

    @property
    def changes(self) -> Changes:
        """What the transaction changed; RuntimeError as long as it is open, and if it was not applied."""
        if self._changes is None:
            raise RuntimeError(f"the transaction has changed nothing: it is {self._state}")
        return self._changes

    def __enter__(self) -> Transaction:
        if self._state != "new":
            raise NestedWrite("a transaction is used once; begin another one with `db.transaction()`")
        if self._writer.under_way:
            self._writer.refuse()
        self._writer.under_way = _TRANSACTION
        self._state = "open"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state = "discarded"
        self._writer.under_way = ""
        if kind is None:
            self._changes = self._writer.commit(self._step)
            self._state = "applied"
            self._writer.tell(self._changes)

    def __repr__(self) -> str:
        return f"<transaction, {self._state}, {len(self._step)} update(s)>"
