"""A database for many threads: each sees the state before a step or after it.

A `Database` belongs to one thread.  Here a fair lock admits the threads one after another, in the
order of arrival.  A query holds the lock; so does a step with all its effects, its write to disk
and the calls of its subscribers.  So no query sees half of a step.  Work that does not need the
database is done without the lock: sorting of answers, and computing past states.

Why no concurrent readers: Python runs one thread at a time, so they would only interleave; and
queries build indexes and cache compiled code, which the lock protects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import local
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from everlog.api.changes import Changes
from everlog.api.database import Database, Functions
from everlog.api.facts.rows import Step, step_updates, updates
from everlog.api.fair_lock import FairLock
from everlog.api.lifecycle import NestedWrite
from everlog.api.subscriptions import Callback, Subscription
from everlog.api.transactions import Collecting
from everlog.core.engine import Statistics
from everlog.core.program import Column, Relation, Row
from everlog.core.program.executor import Update
from everlog.core.program.fact_rows import declared
from everlog.files.text_values import sorted_rows

if TYPE_CHECKING:
    from everlog.api.how import Answers
    from everlog.core.proofs import Proof, WhyNot
    from everlog.store.durable_database import DurableDatabase
    from everlog.store.past import Past

_T = TypeVar("_T")
_READING = "this thread is inside `with shared.reading():`; write after it"


class SharedDatabase:
    """A database that many threads may use.

    >>> from everlog import Database
    >>> text = ".decl n(x:number)  .decl m(x:number)  m(x) :- n(x)."
    >>> shared = SharedDatabase(Database.from_text(text))
    >>> print(shared.insert("n", (1,)))
    +n(1).
    +m(1).
    >>> with shared.reading():           # several queries of one state
    ...     shared.view("n"), shared.view("m")
    ([(1,)], [(1,)])

    The database itself must not be used directly.  Each method holds the lock once; answers are
    independent lists.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = FairLock()
        self._reading = False  # whether the thread that holds the lock reads one state
        self._open = local()  # the open transaction of each thread

    @contextmanager
    def reading(self) -> Iterator[SharedDatabase]:
        """Answer all queries of a block from one state; writes in it raise `NestedWrite`.

        All other threads wait, so keep the block short.
        """
        with self._lock:
            before, self._reading = self._reading, True
            try:
                yield self
            finally:
                self._reading = before

    @contextmanager
    def _writing(self) -> Iterator[Database]:
        if self._lock.mine and self._reading:
            raise NestedWrite(_READING)
        with self._lock:
            yield self._database

    def _asked(self, question: Callable[[Database], _T]) -> _T:
        with self._lock:
            return question(self._database)

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def query(self, text: str, /, **parameters: object) -> list[Row]:
        """As `Database.query`, as a list."""
        return self.answers(text, **parameters)[1]

    def facts(self, text: str, /, **parameters: object) -> list[Row]:
        """As `Database.facts`, as a list."""
        with self._lock:
            found = self._database.facts(text, **parameters)
            columns, rows = found._relation.columns, list(found)
        return sorted_rows(Relation("", columns), rows)

    def answers(self, text: str, /, **parameters: object) -> tuple[tuple[Column, ...], list[Row]]:
        """The columns of a query and its answers, sorted."""
        with self._lock:
            result = self._database.query(text, **parameters)
            columns, found = result._relation.columns, list(result)
        return columns, sorted_rows(Relation("", columns), found)

    def view(self, relation: str) -> list[Row]:
        """All facts of a relation, sorted."""
        with self._lock:
            found = declared(self._database.relations, relation)
            rows = list(self._database._engine.stream(relation))
        return sorted_rows(found, rows)

    def given(self, relation: str) -> list[Row]:
        """The base facts of a relation, sorted."""
        return self._asked(lambda db: db.given(relation))

    def holds(self, relation: str, row: object = None, /, **parameters: object) -> bool:
        """As `Database.holds`."""
        return self._asked(lambda db: db.holds(relation, row, **parameters))

    def size(self, relation: str) -> int:
        """The number of facts in a relation."""
        return self._asked(lambda db: db.size(relation))

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The relations of the program."""
        return self._asked(lambda db: dict(db.relations))

    @property
    def rules(self) -> Mapping[str, str]:
        """The rules, by name."""
        return self._asked(lambda db: dict(db.rules))

    @property
    def step(self) -> int:
        """The number of the last step, for a database in a file."""
        return self._asked(lambda db: _durable(db).step)

    def why(self, relation: str, row: object = None, /, **parameters: object) -> Proof:
        """A proof of a fact: see `Database.why`."""
        return self._asked(lambda db: db.why(relation, row, **parameters))

    def why_not(self, relation: str, row: object = None, /, **parameters: object) -> WhyNot:
        """What each rule lacks to derive a fact: see `Database.why_not`."""
        return self._asked(lambda db: db.why_not(relation, row, **parameters))

    def explain(self, name: str | None = None) -> str:
        """How relations are maintained, and what an update can cost."""
        return self._asked(lambda db: db.explain(name))

    def explanation(self) -> dict[str, Any]:
        """The explanation as an object for JSON."""
        return self._asked(lambda db: db.explanation())

    def stats(self) -> Statistics:
        """Facts, bytes and time of relations and rules."""
        return self._asked(lambda db: db.stats())

    # ── writing: one step each ───────────────────────────────────────────────────────────────

    def insert(self, relation: str, rows: object = None) -> Changes:
        """As `Database.insert`."""
        if self._transaction is not None:
            return self._join(updates(self.relations, relation, rows, True))
        with self._writing() as db:
            return db.insert(relation, rows)

    def delete(self, relation: str, rows: object = None, /, **columns: object) -> Changes:
        """As `Database.delete`; a pattern needs a database without an open transaction."""
        if self._transaction is not None:
            if columns:
                self._require_no_transaction()
            return self._join(updates(self.relations, relation, rows, False))
        with self._writing() as db:
            return db.delete(relation, rows, **columns)

    def update(self, relation: str, values: Mapping[str, object], /, **columns: object) -> Changes:
        """As `Database.update`, outside transactions."""
        self._require_no_transaction()
        with self._writing() as db:
            return db.update(relation, values, **columns)

    def upsert(self, relation: str, rows: object, *, key: str | Iterable[str] | None = None) -> Changes:
        """As `Database.upsert`, outside transactions."""
        self._require_no_transaction()
        with self._writing() as db:
            return db.upsert(relation, rows, key=key)

    def _require_no_transaction(self) -> None:
        if self._transaction is not None:
            raise NestedWrite("a transaction of a shared database takes whole rows, no patterns and keys")

    def apply(self, step: Step, *, positions: Mapping[str, str] | None = None) -> Changes:
        """As `Database.apply`."""
        if self._transaction is not None:
            return self._join(step_updates(self.relations, step), positions)
        with self._writing() as db:
            return db.apply(step, positions=positions)

    def what_if(self, step: Step = ()) -> Changes:
        """As `Database.what_if`; other threads wait as for a step."""
        collected = [] if self._transaction is None else self._transaction.step
        with self._writing() as db:
            return db.what_if([*collected, *step_updates(db.relations, step)])

    def how(self, goal: Step, **conditions: Any) -> Answers:
        """As `Database.how`; other threads wait for all of its trials."""
        with self._writing() as db:
            return db.how(goal, **conditions)

    def transaction(self) -> SharedTransaction:
        """Collect inserts and deletes in a `with` block, and apply them as one step.

        Other threads do not wait while they are collected.  What this thread inserts and deletes
        meanwhile is collected too.
        """
        return SharedTransaction(self)

    @property
    def _transaction(self) -> SharedTransaction | None:
        """The open transaction of this thread."""
        return getattr(self._open, "transaction", None)

    def _join(self, step: Iterable[Update], positions: Mapping[str, str] | None = None) -> Changes:
        assert self._transaction is not None
        self._transaction.collect(step, positions)
        return Changes({}, self.relations)

    def add_rule(self, text: str, *, functors: Functions | None = None) -> Changes:
        """As `Database.add_rule`."""
        with self._writing() as db:
            return db.add_rule(text, functors=functors)

    def drop_rule(self, name_or_text: str) -> Changes:
        """As `Database.drop_rule`."""
        with self._writing() as db:
            return db.drop_rule(name_or_text)

    def drop_relation(self, name: str) -> Changes:
        """As `Database.drop_relation`."""
        with self._writing() as db:
            return db.drop_relation(name)

    # ── notifications ────────────────────────────────────────────────────────────────────────

    def subscribe(self, relation: str | None, callback: Callback) -> Subscription:
        """Call `callback(changes)` after each step that changes the relation.

        The relation None or "*" means any.  The callback runs in the thread that wrote, in the
        order of steps, while all other threads wait: let it pass the changes on (to a queue, say)
        and return.  It may read, and sees the state after that step.  To get the state and all
        later changes, subscribe inside `with shared.reading():`.
        """
        return self._asked(lambda db: db.subscribe(relation, callback))

    # ── databases in files ───────────────────────────────────────────────────────────────────

    @property
    def positions(self) -> Mapping[str, str]:
        return self._asked(lambda db: dict(db.positions))

    @property
    def oldest(self) -> int:
        """The oldest step that `as_of` accepts."""
        return self._asked(lambda db: _durable(db).oldest)

    def as_of(self, step: int) -> Database:
        """The state after a past step, as a database for the calling thread."""
        from everlog.store.past import moment

        return self._asked(lambda db: moment(_durable(db), step)).as_of()

    def diff(self, before: int, after: int, relation: str | None = None) -> Changes:
        """The difference between the states after two steps."""
        from everlog.store.past import difference, moment

        first, last = sorted((before, after))
        found = self._asked(lambda db: moment(_durable(db), first, last))
        return difference(found, before > after, relation)

    def history(self, relation: str) -> list[Past]:
        """The steps that changed a relation."""
        from everlog.store.past import moment, of_relation

        def from_the_oldest(db: Database) -> Any:
            durable = _durable(db)
            return moment(durable, durable.oldest, durable.step)

        return of_relation(self._asked(from_the_oldest), relation)

    def checkpoint(self, *, history: int | str | None = None, state: bool | None = None) -> None:
        """As `DurableDatabase.checkpoint`; all other threads wait."""
        with self._writing() as db:
            _durable(db).checkpoint(history=history, state=state)

    def refresh(self) -> Changes:
        """As `DurableDatabase.refresh`."""
        with self._writing() as db:
            return _durable(db).refresh()

    def save(self, path: Path | str) -> None:
        """As `Database.save`; all other threads wait."""
        self._asked(lambda db: db.save(path))

    def close(self) -> None:
        """Close a database file, after the step in progress."""
        with self._writing() as db:
            close = getattr(db, "close", None)
            if close is not None:
                close()

    def __enter__(self) -> SharedDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return self._asked(lambda db: f"<shared {repr(db)[1:]}")


class SharedTransaction(Collecting):
    """As `Transaction`, but other threads read and write until it is applied.

    Its updates apply to the state of that moment, whatever other threads have written.
    """

    def __init__(self, shared: SharedDatabase) -> None:
        super().__init__(lambda: shared.relations)
        self._shared = shared

    def _begin(self) -> None:
        if self._shared._transaction is not None:
            raise NestedWrite("this thread has an open transaction: end it before you open another")
        self._shared._open.transaction = self

    def _end(self) -> None:
        self._shared._open.transaction = None

    def _commit(self) -> None:
        self._applied(self._shared.apply(self.step, positions=self._positions))


def _durable(database: Database) -> DurableDatabase:
    from everlog.store.durable_database import DurableDatabase

    if isinstance(database, DurableDatabase):
        return database
    raise TypeError("this database is not in a file: open one with `Database.open(path)`")
