"""Subscribers of changes, each with a bounded queue; a slow one must reconnect.

A step must not wait for subscribers, and unread events must not fill the memory.  So a subscriber
has a queue with a limit in bytes; if a step does not fit, the queue is dropped, and one event,
`lagged`, remains to be sent.  The client then reconnects with the number of its last step, and gets
the rest from the log, or a new snapshot.

For each step, a subscriber gets its event or `lagged`, even if the event is too large or cannot be
encoded.

Steps come from the database's thread; readers live on the event loop.  An event is encoded once for
all subscribers with the same interest.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any

from attrs import field, frozen

from everlog.api.changes import Changes
from everlog.api.facts.rows import Pattern
from everlog.serve.errors import log_error
from everlog.serve.wire import ChangesWriter, TooLarge, joined


@frozen
class Interest:
    """What a subscriber wants: some relations, or all; numbers as text or not.

    `atoms` are texts such as `path(1, x)`, and `patterns` what they mean: of their relations, only
    facts that match one of them.
    """

    relations: frozenset[str] | None = None
    as_text: bool = False
    atoms: frozenset[str] = frozenset()
    patterns: tuple[Pattern, ...] = field(default=(), eq=False)

    def of(self, changes: Changes) -> Changes:
        """The changes of the facts that match."""
        found = {name: changes[name] for name in changes if self.relations is None or name in self.relations}
        for name in {pattern.relation.name for pattern in self.patterns}.intersection(found):
            mine = [pattern for pattern in self.patterns if pattern.relation.name == name]
            found[name] = {
                row: sign for row, sign in found[name].items() if any(each.matches(row) for each in mine)
            }
        return Changes({name: rows for name, rows in found.items() if rows}, changes.relations)


def event(kind: str, data: Any, number: str | None = None) -> bytes:
    r"""An event in its wire format.

    >>> event("change", {"step": 7}, "7")
    b'id: 7\nevent: change\ndata: {"step":7}\n\n'
    """
    head = f"id: {number}\nevent: {kind}\n" if number is not None else f"event: {kind}\n"
    return head.encode() + b"data: " + joined(data) + b"\n\n"


class Follower:
    """One subscriber.

    Invariants:
      I1  the waiting events have at most `room` bytes;
      I2  the taken and the waiting events are all events so far, in order, unless `lagged`.
    """

    def __init__(self, interest: Interest, room: int, loop: asyncio.AbstractEventLoop | None) -> None:
        """Without a loop, nothing waits for events: somebody calls `take` now and then."""
        self.interest, self.room = interest, room
        self.releases: list[Callable[[], None]] = []  # of what it asks of relations on demand
        self.lagged = False
        self.ended = ""  # why there are no more events
        self.arrived = asyncio.Event()
        self.waiting_bytes = 0
        self._loop = loop
        self._lock = Lock()
        self._events: deque[bytes] = deque()
        self._woken = False

    def offer(self, written: bytes) -> None:
        """Add an event, in the database's thread."""
        with self._lock:
            if self.lagged or self.ended:
                return
            if self.waiting_bytes + len(written) > self.room:
                self._drop()
            else:
                self._events.append(written)
                self.waiting_bytes += len(written)
        self._wake()

    def lag(self) -> None:
        """Drop the queue: the client has to reconnect."""
        with self._lock:
            if not self.ended:
                self._drop()
        self._wake()

    def _drop(self) -> None:
        self._events.clear()
        self.waiting_bytes = 0
        self.lagged = True

    def end(self, why: str) -> None:
        """Add no more events; the waiting ones are still sent."""
        self.ended = self.ended or why
        self._wake()

    def _wake(self) -> None:
        if (
            self._loop is not None and not self._woken and not self._loop.is_closed()
        ):  # one wake-up for several steps
            self._woken = True
            self._loop.call_soon_threadsafe(self.arrived.set)

    def take(self, most: int) -> bytes:
        """The next events, about this many bytes; empty if none waits."""
        self.arrived.clear()
        self._woken = False
        out: list[bytes] = []
        size = 0
        with self._lock:
            while self._events and size < most:
                written = self._events.popleft()
                out.append(written)
                size += len(written)
            self.waiting_bytes -= size
        return b"".join(out)


class Hub:
    """All subscribers, and the number of the last published step."""

    def __init__(self, label: Callable[[int], str]) -> None:
        """`label` formats the number of a step as the id of an event."""
        self.label = label
        self.step = 0
        self.lagged = 0  # the number of subscribers that were too slow so far
        self.followers: dict[Follower, None] = {}
        self.left: deque[Callable[[], None]] = deque()  # demands that have ended, for the database's thread

    def add(self, follower: Follower) -> None:
        self.followers[follower] = None

    def remove(self, follower: Follower) -> None:
        if self.followers.pop(follower, follower) is None:
            self.lagged += follower.lagged
            self.left.extend(follower.releases)

    def publish(self, step: int, changes: Changes, program: bool = False) -> None:
        """Send a step to each subscriber that wants it, or mark it as lagging.

        Raises nothing.
        """
        known: dict[Interest, bytes | None] = {}
        writers: dict[int, ChangesWriter] = {}
        for follower in list(self.followers):
            interest = follower.interest
            try:
                if interest not in known:
                    known[interest] = None  # until it is encoded
                    if interest.patterns:
                        writer = ChangesWriter(interest.of(changes), follower.room)
                    else:
                        writer = writers.setdefault(follower.room, ChangesWriter(changes, follower.room))
                    known[interest] = self.written(step, writer, interest, program)
                written = known[interest]
                if written is None:
                    follower.lag()
                elif written:
                    follower.offer(written)
            except TooLarge:
                follower.lag()
            except BaseException as error:  # the step is done, and must not seem to have failed
                follower.lag()
                if not isinstance(error, (MemoryError, KeyboardInterrupt)):
                    log_error(error)
        self.step = step

    def written(self, step: int, changes: ChangesWriter, interest: Interest, program: bool = False) -> bytes:
        """The event of a step; empty if it changed nothing of interest.

        TooLarge if the event is too large.
        """
        found = changes.written(interest.as_text, interest.relations)
        label = self.label(step)
        out = event("program", {"step": step}) if program else b""
        if found:
            out += event("change", {"step": step, "changes": found}, label)
        return out

    def end(self, why: str) -> None:
        for follower in list(self.followers):
            follower.end(why)
