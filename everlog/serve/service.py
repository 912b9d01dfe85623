"""The database as jobs see it: its steps have numbers, its past can be asked, and those who follow are told.

A database in a file numbers its steps itself.  For one in memory they are counted here, and are of this run of the
service: ids of events then name the run, so that who comes back to another run is not taken for up to date.

Reads: everlog.database, everlog.store, everlog.serve.events.  Read by: everlog.serve.reading, writing, streaming.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Iterator
from itertools import chain
from time import monotonic
from typing import Any, TypeVar

from attrs import frozen

from everlog.changes import Changes
from everlog.core.fact_rows import declared
from everlog.core.guards import LimitExceeded
from everlog.core.program import Relation
from everlog.database import Database
from everlog.serve.errors import ApiError
from everlog.serve.events import Follower, Hub, Wish, event
from everlog.serve.snapshots import Snapshots
from everlog.store.database import DurableDatabase

_T = TypeVar("_T")
_PASTS = 2  # states of the past that are kept for further questions
_MOST_MISSED = 10_000  # steps that are looked up in the log for one who comes back
_MOST_BYTES = 4 << 20  # and bytes of their events


@frozen
class Bounds:
    """What one request, and all that follow, may take."""

    rows: int = 10_000  # in one answer
    body: int = 8 << 20  # bytes
    followers: int = 100
    room: int = 1 << 20  # bytes that wait for one follower
    heartbeat: float = 15.0  # seconds
    stalled: float = 60.0  # seconds in which a follower takes nothing, and is let go


class Service:
    """A database that is served.  All but the constructor is called in the thread of the database."""

    def __init__(self, database: Database, bounds: Bounds | None = None, name: str = "") -> None:
        self.database = database
        self.bounds = bounds or Bounds()
        self.name = name
        self.started = monotonic()
        self.hub = Hub(self.label)
        self._run = secrets.token_hex(4)
        self._steps = 0
        self._program_changes = False
        self._pasts: dict[int, Database] = {}
        self._snapshots = Snapshots()
        self.explained: tuple[Any, Any] = (None, None)  # a program, and what is known of it
        database.subscribe(None, self._hear)
        self.hub.step = self.step

    # ── steps ────────────────────────────────────────────────────────────────────────────────

    @property
    def durable(self) -> DurableDatabase | None:
        return self.database if isinstance(self.database, DurableDatabase) else None

    def in_file(self) -> DurableDatabase:
        """The database, if it has a past."""
        if self.durable is None:
            message = "this database is in memory and has no past: serve it with `--db FILE`"
            raise ApiError(409, "not-durable", message)
        return self.durable

    @property
    def step(self) -> int:
        return self._steps if self.durable is None else self.durable.step

    def label(self, step: int) -> str:
        """A step as the id of an event."""
        return str(step) if self.durable is not None else f"{self._run}-{step}"

    def number(self, label: str) -> int | None:
        """The step of an id; None if it is not one of ours."""
        run = "" if self.durable is not None else f"{self._run}-"
        found = re.fullmatch(f"{run}([0-9]{{1,18}})", label)
        return None if found is None else int(found[1])

    def _hear(self, changes: Changes) -> None:
        self._steps += 1
        self.hub.tell(self.step, changes, self._program_changes)

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────

    def reading(self, question: Callable[[Database], _T], as_of: int | None = None) -> _T:
        """Ask the state of now, or one of the past; whatever takes longer than a step may is stopped."""
        database = self.database if as_of is None else self.past(as_of)
        with database._engine.guard:
            return question(database)

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
        """Change the program, and tell so, whether or not facts change."""
        self._program_changes = True
        try:
            changes = change(self.database)
        finally:
            self._program_changes = False
        self._pasts.clear()
        if not changes:
            self._steps += 1
            self.hub.tell(self.step, changes, program=True)
        return changes

    def relation(self, name: str, database: Database | None = None) -> Relation:
        """A relation that a request names."""
        relations = (database or self.database).relations
        if name not in relations:
            try:
                declared(relations, name)
            except ValueError as problem:
                raise ApiError(404, "no-such-relation", str(problem)) from None
        return relations[name]

    # ── those who follow ─────────────────────────────────────────────────────────────────────

    def follow(
        self, wish: Wish, snapshot: bool, last: str | None, loop: asyncio.AbstractEventLoop
    ) -> tuple[Follower, Iterator[bytes]]:
        """One who follows from now on, and what is sent first: what was missed, the state of now, or nothing."""
        for name in sorted(wish.relations or ()):
            self.relation(name)
        if len(self.hub.followers) >= self.bounds.followers:
            many = f"{self.bounds.followers} follow changes already: no more are allowed"
            raise ApiError(503, "too-many-subscribers", many)
        first: Iterator[bytes] = iter(())
        if last is not None:
            missed = self._missed(wish, last)
            if missed is None:
                why = "the steps since are not known any more: forget what you have, and begin with this snapshot"
                reset = event("reset", {"step": self.step, "message": why})
                first = chain([reset], self._snapshot(wish))
            else:
                first = iter(missed)
        elif snapshot:
            first = self._snapshot(wish)
        follower = Follower(wish, self.bounds.room, loop)
        self.hub.add(follower)
        ready = event("ready", {"step": self.step}, self.label(self.step))
        return follower, chain(first, [ready])

    def _missed(self, wish: Wish, last: str) -> list[bytes] | None:
        """The events since an id, if they are known."""
        number, now = self.number(last), self.step
        if number == now:
            return []
        durable = self.durable
        if durable is None or number is None or not max(durable.oldest, now - _MOST_MISSED) <= number < now:
            return None
        from everlog.store.past import moment, steps_from

        events, size = [], 0
        try:
            with durable._engine.guard:
                for past in steps_from(moment(durable, number, now)):
                    events.append(self.hub.written(past.step, past.changes, wish))
                    size += len(events[-1])
                    if size > _MOST_BYTES:
                        return None
        except LimitExceeded:
            return None
        return events

    def _snapshot(self, wish: Wish) -> Iterator[bytes]:
        return self.reading(lambda database: self._snapshots.events(database, self.step, wish))
