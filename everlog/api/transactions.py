"""Writing: one step at a time, and nothing else in between.

`Writer` is the only place where a database changes.  It refuses a write during another one: from a
subscriber, from a functor, or from another thread.  A `Transaction` collects inserts and deletes,
and passes them to the writer as one step; while it is open, other writes of its thread to the
database are collected as well.

A database in a file has a *journal*.  The engine passes it each step at its end, and undoes the
step if the journal fails: so each step that a caller or a subscriber learns of is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from everlog.api.changes import Changes
from everlog.api.facts.rows import Relations, Step, step_updates, updates
from everlog.api.lifecycle import NOTIFYING, STEP, TRANSACTION, NestedWrite, OtherThread, State, uses
from everlog.api.subscriptions import Subscribers
from everlog.core.engine import Engine
from everlog.core.engine.net_change import Net
from everlog.core.program import Program, Relation, Row, executor
from everlog.core.program.executor import Update

_Input = TypeVar("_Input")
_Output = TypeVar("_Output")


class Journal(Protocol):
    """A durable record of steps.  A write that fails leaves no trace."""

    step: int

    def write(
        self,
        net: Net,
        *,
        program: str | None = None,
        positions: Mapping[str, str] | None = None,
        digest: str | None = None,
    ) -> None:
        """Record a step: its change of the base facts, and the program if it is a new one."""

    def write_positions(self, positions: Mapping[str, str]) -> None:
        """Record how far sources of changes have been read."""


class Writer:
    """The engine of a database, with its subscribers, open results and last changes."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.relations: dict[str, Relation] = dict(engine.program.relations)
        self.changes = Changes({}, self.relations)
        self.subscribers = Subscribers()
        self.state = State()
        self.journal: Journal | None = None
        self.positions: dict[str, str] = {}  # without a journal: how far sources have been read
        self.transaction: Transaction | None = None  # the open one

    def keep_in(self, journal: Journal) -> None:
        """From now on, write each step to the journal, or undo it."""
        self.journal = journal
        self.engine.seal = journal.write

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    def apply(self, step: Iterable[Update], positions: Mapping[str, str] | None = None) -> Changes:
        """Apply a step, store `positions` with it, and call the subscribers."""
        if self.state.under_way and self.joins():
            return self._join(step, positions)
        changes = self.commit(step, positions)
        if self.subscribers.all:
            self.notify(changes)
        return changes

    @uses
    def update(self, relation: str, row: Row, insert: bool) -> Changes:
        """`apply` for one row that is known to fit.

        Cost: that of the engine, and half a microsecond.
        """
        state = self.state
        if state.under_way or state.readers:
            return self.apply([Update(relation, row, insert)])
        using = state
        using.under_way = STEP
        try:
            if using.open:
                using.complete_results()
            using.number += 1
            found = self.engine.update(relation, row, insert)
        finally:
            using.under_way = ""
        self.changes = changes = Changes(found, self.relations)
        if self.subscribers.all:
            self.notify(changes)
        return changes

    def insert(self, rows: Mapping[str, Iterable[Row]]) -> Changes:
        """Insert many rows as one step, and call the subscribers."""
        if self.state.under_way and self.joins():
            return self._join(Update(name, row) for name, found in rows.items() for row in found)
        changes = self.commit_rows(rows)
        if self.subscribers.all:
            self.notify(changes)
        return changes

    def commit(self, step: Iterable[Update], positions: Mapping[str, str] | None = None) -> Changes:
        """Apply a step, and store `positions` with it."""
        journal = self.journal
        if positions and journal is not None:
            before = journal.step
            with self._sealed_by(journal, positions=dict(positions)):
                found = self._alone(self.engine.apply, step)
            if journal.step == before:  # no fact has changed, only positions
                journal.write_positions(positions)
        else:
            found = self._alone(self.engine.apply, step)
            self.positions.update(positions or {})
        self.changes = changes = Changes(found, self.relations)
        return changes

    def commit_rows(self, rows: Mapping[str, Iterable[Row]]) -> Changes:
        """Insert many rows as one step."""
        self.changes = changes = Changes(self._alone(self.engine.insert, rows), self.relations)
        return changes

    def commit_program(self, program: Program, written: Callable[[], str], digest: str | None = None) -> Changes:
        """Switch to another program.

        `written` is its text, for the journal, and `digest` the digest of the text it came from.
        """
        if self.journal is None:
            found = self._alone(self.engine.change_program, program)
        else:
            with self._sealed_by(self.journal, program=written(), digest=digest):
                found = self._alone(self.engine.change_program, program)
        # A dropped relation may have lost facts: report them with the declaration it had.
        self.changes = changes = Changes(found, self.relations | dict(self.engine.program.relations))
        self.relations = dict(self.engine.program.relations)
        return changes

    @contextmanager
    def _sealed_by(self, journal: Journal, **more: Any) -> Iterator[None]:
        """Write the next step with these additions."""
        self.engine.seal = partial(journal.write, **more)
        try:
            yield
        finally:
            self.engine.seal = journal.write

    @uses
    def _alone(self, change: Callable[[_Input], _Output], argument: _Input, idle: str = "") -> _Output:
        """Change the engine, while nothing else uses the database."""
        state = self.state
        if state.under_way != idle or state.readers:
            state.refuse()
        using = state
        using.under_way = STEP
        try:
            using.next_step()
            return change(argument)
        finally:
            using.under_way = idle

    def trial(self, step: Iterable[Update], ask: Callable[[executor.Changes], _Output]) -> _Output:
        """The answer of `ask` in the state after a step, which is undone: nothing has changed.

        In a transaction of this thread, the step comes after the updates collected so far.  A
        read-only database allows it too.
        """
        updates, idle = list(step), self.state.idle
        if self.joins():
            assert self.transaction is not None
            updates, idle = [*self.transaction.step, *updates], self.state.under_way
        return self._alone(lambda tried: self.engine.what_if(tried, ask), updates, idle)

    def what_if(self, step: Iterable[Update]) -> Changes:
        """The changes that a step would cause; it is not made."""
        found = self.trial(step, lambda told: {name: dict(told[name]) for name in told})
        return Changes(found, self.relations)

    def follow(self, change: Callable[[_Input], executor.Changes], argument: _Input) -> Changes:
        """Repeat a change of another process, though this database may be read-only."""
        found = self._alone(change, argument, self.state.idle)
        relations = dict(self.engine.program.relations)
        self.changes = changes = Changes(found, self.relations | relations)
        self.relations = relations
        return changes

    @uses
    def notify(self, changes: Changes) -> None:
        """Call the subscribers with the changes of a step."""
        using = self.state
        using.under_way = NOTIFYING
        try:
            self.subscribers.notify(changes)
        finally:
            using.under_way = using.idle

    def require_idle(self) -> None:
        """Raise an error if a step would be refused now."""
        if self.state.under_way or self.state.readers:
            self.state.refuse()

    def require_no_transaction(self) -> None:
        """Raise an error inside a transaction."""
        if self.transaction is not None:
            self.state.refuse()

    # ── an open transaction ──────────────────────────────────────────────────────────────────

    def joins(self) -> bool:
        """Whether a write of this thread belongs to its open transaction."""
        return self.transaction is not None and self.transaction.is_open_here()

    def _join(self, step: Iterable[Update], positions: Mapping[str, str] | None = None) -> Changes:
        """Add updates to the open transaction; nothing changes yet."""
        assert self.transaction is not None
        self.transaction.collect(step, positions)
        return Changes({}, self.relations)

    def given(self, relation: str) -> Collection[Row]:
        """The base facts of a relation, including this thread's open transaction."""
        rows = self.engine.given(relation)
        if not self.joins():
            return rows
        assert self.transaction is not None
        after = dict.fromkeys(rows)
        for update in self.transaction.step:
            if update.relation == relation and update.insert:
                after[update.row] = None
            elif update.relation == relation:
                after.pop(update.row, None)
        return after


class Collecting:
    """Inserts and deletes that are collected in a `with` block, and become one step.

    Facts are checked as they are collected.  Their order counts: a fact that is inserted and then
    deleted is absent afterwards.  `changes` holds the changes of the step, once it is applied.
    """

    def __init__(self, relations: Callable[[], Relations]) -> None:
        self._relations = relations
        self.step: list[Update] = []
        self._positions: dict[str, str] = {}
        self._state = "new"
        self._thread = 0
        self._changes: Changes | None = None

    def insert(self, relation: str, rows: object = None) -> None:
        """As `Database.insert`, at the end of the transaction."""
        self.collect(updates(self._relations(), relation, rows, True))

    def delete(self, relation: str, rows: object = None, /) -> None:
        """As `Database.delete`, at the end of the transaction."""
        self.collect(updates(self._relations(), relation, rows, False))

    def apply(self, step: Step) -> None:
        """As `Database.apply`, at the end of the transaction; all updates or none."""
        self.collect(step_updates(self._relations(), step))

    def collect(self, step: Iterable[Update], positions: Mapping[str, str] | None = None) -> None:
        if self._state != "open":
            raise NestedWrite("this transaction is not open; use it inside `with db.transaction() as tx:`")
        if self._thread != get_ident():
            raise OtherThread("a transaction belongs to the thread that opened it; open one in each thread")
        self.step += list(step)
        self._positions.update(positions or {})

    def is_open_here(self) -> bool:
        """Whether it is open in this thread."""
        return self._state == "open" and self._thread == get_ident()

    @property
    def changes(self) -> Changes:
        """The changes of the transaction; RuntimeError if it is open or was not applied."""
        if self._changes is None:
            raise RuntimeError(f"the transaction has no changes: it is {self._state}")
        return self._changes

    def __enter__(self) -> Self:
        if self._state != "new":
            raise NestedWrite("a transaction can be used only once; begin another with `db.transaction()`")
        self._begin()
        self._state, self._thread = "open", get_ident()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state = "discarded"
        self._end()
        if kind is None:
            self._commit()

    def _applied(self, changes: Changes) -> None:
        self._changes, self._state = changes, "applied"

    def _begin(self) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError

    def _commit(self) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<transaction, {self._state}, {len(self.step)} update(s)>"


class Transaction(Collecting):
    """The type of `Database.transaction()`; its methods only collect."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(lambda: writer.relations)
        self._writer = writer

    def delete(self, relation: str, rows: object = None, /, **columns: object) -> None:
        """As `Database.delete`, at its end; patterns match what the transaction has so far."""
        from everlog.api.matching import deletes

        self.collect(deletes(self._writer, relation, rows, columns)[0])

    def update(self, relation: str, values: Mapping[str, object], /, **columns: object) -> None:
        """As `Database.update`, at the end of the transaction."""
        from everlog.api.matching import sets

        self.collect(sets(self._writer, relation, values, columns)[0])

    def upsert(self, relation: str, rows: object, *, key: str | Iterable[str] | None = None) -> None:
        """As `Database.upsert`, at the end of the transaction."""
        from everlog.api.matching import upserts

        self.collect(upserts(self._writer, relation, rows, key))

    def _begin(self) -> None:
        self._writer.require_idle()
        state = self._writer.state
        state.under_way, state.transaction_of = TRANSACTION, get_ident()
        self._writer.transaction = self

    def _end(self) -> None:
        self._writer.state.under_way = ""
        self._writer.transaction = None

    def _commit(self) -> None:
        self._applied(self._writer.commit(self.step, self._positions))
        self._writer.notify(self.changes)
