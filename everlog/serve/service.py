"""The database as jobs see it: numbered steps, past states, and subscribers.

A database in a file numbers its steps itself.  For one in memory they are counted here, for this
run of the service: event ids then name the run, so that a client of an earlier run is not taken for
up to date.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from attrs import evolve, frozen

from everlog.api.changes import Changes
from everlog.api.database import Database
from everlog.api.facts.rows import Pattern
from everlog.api.wanted import ask_while, pattern_wanted
from everlog.core.program import Relation
from everlog.core.program.fact_rows import declared
from everlog.core.runtime.guards import Guard, LimitExceeded
from everlog.serve.errors import ApiError
from everlog.serve.events import Follower, Hub, Interest, event
from everlog.serve.jobs.kept_results import KeptResults
from everlog.serve.snapshots import Snapshots
from everlog.serve.wire import ChangesWriter, TooLarge

if TYPE_CHECKING:
    from everlog.store.durable_database import DurableDatabase

_T = TypeVar("_T")
_PASTS = 2  # cached past states
_MOST_MISSED = 10_000  # steps that are read from the log for a returning subscriber,
_MOST_BYTES = 4 << 20  # and bytes of their events
_MOST_HELD = 8 * _MOST_BYTES  # bytes of all such events that are being read
_ANSWERS = 8  # answers of the largest size that may be unread at once
_LEAST_ROOM = 64 << 10  # bytes that an answer may always have
_FILLED = 4, 5  # the part of the memory that steps may fill: queries and deletes have the rest


@frozen
class Bounds:
    """The limits of one request, and of all subscribers."""

    rows: int = 10_000  # in one answer
    answer: int = 8 << 20  # bytes
    body: int = 8 << 20  # bytes
    followers: int = 100
    room: int = 1 << 20  # unsent bytes for one subscriber
    heartbeat: float = 15.0  # seconds
    stalled: float = 60.0  # seconds after which a subscriber that reads nothing is disconnected
    kept: int = 4_000_000  # rows of all results that are kept


class Missed:
    """The events that a subscriber has missed; each is freed when it is sent."""

    def __init__(self, events: list[bytes]) -> None:
        self._events = events[::-1]
        self.size = sum(map(len, events))

    def __iter__(self) -> Iterator[bytes]:
        while self._events:
            yield self._events.pop()


class AnswerBudget:
    """A bound on the bytes of all answers that clients have not read yet.

    `begin` and `take` run in the database's thread, `release` in the event loop's.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.room = most  # bytes for the answer to the current job
        self.bytes = 0
        self._lock = Lock()

    def begin(self) -> None:
        self.room = max(min(self.most, self.most * _ANSWERS - self.bytes), min(self.most, _LEAST_ROOM))

    def take(self, size: int) -> None:
        with self._lock:
            self.bytes += size

    def release(self, size: int) -> None:
        with self._lock:
            self.bytes -= size


def _in_file(database: Database) -> DurableDatabase | None:
    """The database, if it is in a file; one in memory needs no SQLite, which a browser lacks."""
    if type(database) is Database:
        return None
    from everlog.store.durable_database import DurableDatabase

    return database if isinstance(database, DurableDatabase) else None


class Service:
    """A served database.  All methods run in the database's thread."""

    def __init__(self, database: Database, bounds: Bounds | None = None, name: str = "") -> None:
        self.database = database
        self._durable = _in_file(database)
        self.bounds = bounds or Bounds()
        self.name = name
        self.started = monotonic()
        self.hub = Hub(self.label)
        self.held = AnswerBudget(self.bounds.answer)
        self._run = secrets.token_hex(4)
        self._steps = 0
        self._program_changes = False
        self._pasts: dict[int, Database] = {}
        self._snapshots = Snapshots()
        self.kept = KeptResults(self.bounds.kept)
        self._missed_by: WeakSet[Missed] = WeakSet()  # being read
        self.explained: tuple[Any, Any] = (None, None)  # a program and its explanation
        database.subscribe(None, self._hear)
        self.hub.step = self.step

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    @property
    def durable(self) -> DurableDatabase | None:
        return self._durable

    def in_file(self) -> DurableDatabase:
        """The database, if it has a past; otherwise ApiError."""
        if self.durable is None:
            message = "this database is in memory and has no past: serve it with `--db FILE`"
            raise ApiError(409, "not-durable", message)
        return self.durable

    @property
    def step(self) -> int:
        return self._steps if self.durable is None else self.durable.step

    def label(self, step: int) -> str:
        """The id of a step's event."""
        return str(step) if self.durable is not None else f"{self._run}-{step}"

    def number(self, label: str) -> int | None:
        """The step of an id; None if it is not one of ours."""
        run = "" if self.durable is not None else f"{self._run}-"
        found = re.fullmatch(f"{run}([0-9]{{1,18}})", label)
        return None if found is None else int(found[1])

    def _hear(self, changes: Changes) -> None:
        self._steps += 1
        self._release()
        self.hub.publish(self.step, changes, self._program_changes)

    @property
    def guard(self) -> Guard:
        """The time and memory limits of a request."""
        return self.database._engine.guard

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Reserve memory for queries and deletes around a step that inserts."""
        limits = self.guard.limits
        if limits.memory is not None:
            self.guard.limits = evolve(limits, memory=limits.memory * _FILLED[0] // _FILLED[1])
        try:
            with self.guard:
                self.guard.look()  # a small step ends before the timer checks
            yield
        finally:
            self.guard.limits = limits

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────

    def reading(self, read: Callable[[Database], _T], as_of: int | None = None) -> _T:
        """Run a query on the current or a past state, within the time limit of a step."""
        database = self.database if as_of is None else self.past(as_of)
        with database._engine.guard:
            return read(database)

    def past(self, step: int) -> Database:
        """The state after a step."""
        durable = self.in_file()
        found = self._pasts.pop(step, None)
        if found is None:
            with durable._engine.guard:
                found = durable.as_of(step)
        self._pasts[step] = found
        while len(self._pasts) > _PASTS:
            del self._pasts[next(iter(self._pasts))]
        return found

    def program_change(self, change: Callable[[Database], Changes]) -> Changes:
        """Change the program, and publish that, whether or not facts change."""
        self._program_changes = True
        try:
            changes = change(self.database)
        finally:
            self._program_changes = False
        self._pasts.clear()
        if not changes:
            self._steps += 1
            self.hub.publish(self.step, changes, program=True)
        return changes

    def relation(self, name: str, database: Database | None = None) -> Relation:
        """A relation by its name in a request."""
        relations = (database or self.database).relations
        if name not in relations:
            try:
                declared(relations, name)
            except ValueError as problem:
                raise ApiError(404, "no-such-relation", str(problem)) from None
        return relations[name]

    # ── subscribers ──────────────────────────────────────────────────────────────────────────

    def follow(
        self, interest: Interest, snapshot: bool, last: str | None, loop: asyncio.AbstractEventLoop | None
    ) -> tuple[Follower, Iterator[bytes]]:
        """A new subscriber, and its first events: missed ones, a snapshot, or none."""
        self._release()
        interest = self._understood(interest)
        if len(self.hub.followers) >= self.bounds.followers:
            many = f"{self.bounds.followers} clients follow changes: no more are allowed"
            raise ApiError(503, "too-many-subscribers", many)
        first: Iterator[bytes] = iter(())
        if last is not None:
            missed = self._missed(interest, last)
            if missed is None:
                why = "the steps since then are not known any more: drop your state, and begin with this snapshot"
                reset = event("reset", {"step": self.step, "message": why})
                first = chain([reset], self._snapshot(interest))
            else:
                first = iter(missed)
        elif snapshot:
            first = self._snapshot(interest)
        follower = Follower(interest, self.bounds.room, loop)
        follower.releases = self._asked_by(interest)
        self.hub.add(follower)
        ready = event("ready", {"step": self.step}, self.label(self.step))
        return follower, chain(first, [ready])

    def _understood(self, interest: Interest) -> Interest:
        """The interest with its atoms, such as `path(1, x)`, read; ApiError if one is wrong."""
        names = set(interest.relations or ())
        atoms = frozenset(name for name in names if "(" in name)
        for name in sorted(names - atoms):
            self.relation(name)
        if not atoms:
            return interest
        try:
            patterns = tuple(pattern_wanted(self.database._writer, atom) for atom in sorted(atoms))
        except ValueError as problem:
            raise ApiError(422, "bad-fact", str(problem)) from None
        whole = names - atoms
        patterns = tuple(each for each in patterns if each.relation.name not in whole)
        relations = frozenset(whole | {each.relation.name for each in patterns})
        return evolve(interest, relations=relations, atoms=atoms, patterns=patterns)

    def _asked_by(self, interest: Interest) -> list[Callable[[], None]]:
        """Ask for facts of relations on demand; calling these takes it back."""
        writer, relations = self.database._writer, self.database.relations
        known = {each.relation.name for each in interest.patterns}
        whole = [Pattern(relations[name]) for name in sorted((interest.relations or frozenset()) - known)]
        with self.guard:
            found = [ask_while(writer, pattern) for pattern in (*interest.patterns, *whole)]
        return [release for release in found if release is not None]

    def _release(self) -> None:
        """Take back what subscribers asked for who have left."""
        while self.hub.left:
            self.hub.left.popleft()()

    def _missed(self, interest: Interest, last: str) -> Missed | None:
        """The events since an id, if they are known and not too many."""
        number, now = self.number(last), self.step
        if number == now:
            return Missed([])
        durable = self.durable
        if any(map(self.database._engine.demands.is_on_demand, interest.relations or ())):
            return None  # the log has no changes of what is computed on demand
        if durable is None or number is None or not max(durable.oldest, now - _MOST_MISSED) <= number < now:
            return None
        from everlog.store.past import moment, steps_from

        events, size = [], 0
        room = min(_MOST_BYTES, _MOST_HELD - sum(each.size for each in self._missed_by))
        try:
            with durable._engine.guard:
                for past in steps_from(moment(durable, number, now)):
                    told = interest.of(past.changes) if interest.patterns else past.changes
                    changes = ChangesWriter(told, room - size)
                    events.append(self.hub.written(past.step, changes, interest))
                    size += len(events[-1])
        except (LimitExceeded, TooLarge):
            return None
        missed = Missed(events)
        self._missed_by.add(missed)
        return missed

    def _snapshot(self, interest: Interest) -> Iterator[bytes]:
        return self.reading(lambda database: self._snapshots.events(database, self.step, interest))
