"""Who follows changes: each has a bounded queue, and whoever is too slow is told so and let go.

A step must not wait for those who follow it, and what they have not read must not fill the memory.
So a follower has a queue of at most so many bytes; when a step does not fit any more, the queue is
dropped, and all that is left to send is one event, `lagged`.  The follower then comes back with the
number of the last step that it has seen, and has the rest from the log, or begins with a new
snapshot.

A step that is done is told, or its followers hear `lagged`: also where an event is too large or
cannot be written.

Steps come from the thread of the database, readers live on the event loop.  An event is written
once for all who want the same of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any

from attrs import frozen

from everlog.api.changes import Changes
from everlog.serve.errors import log_error
from everlog.serve.wire import ChangesWriter, TooLarge, joined


@frozen
class Wish:
    """What somebody wants to hear of: some relations, or all; numbers as text or not."""

    relations: frozenset[str] | None = None
    as_text: bool = False


def event(kind: str, data: Any, number: str | None = None) -> bytes:
    r"""An event as it is sent.

    >>> event("change", {"step": 7}, "7")
    b'id: 7\nevent: change\ndata: {"step":7}\n\n'
    """
    head = f"id: {number}\nevent: {kind}\n" if number is not None else f"event: {kind}\n"
    return head.encode() + b"data: " + joined(data) + b"\n\n"


class Follower:
    """One who follows changes.

    Invariants:
      I1  the events that wait have no more than `room` bytes;
      I2  what was taken and what waits are all events since the beginning, in order, unless `lagged`.
    """

    def __init__(self, wish: Wish, room: int, loop: asyncio.AbstractEventLoop) -> None:
        self.wish, self.room = wish, room
        self.lagged = False
        self.ended = ""  # why there will be no more
        self.arrived = asyncio.Event()
        self.waiting_bytes = 0
        self._loop = loop
        self._lock = Lock()
        self._events: deque[bytes] = deque()
        self._woken = False

    def offer(self, written: bytes) -> None:
        """An event, from the thread of the database."""
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
        """A step cannot be told: the follower has to come back."""
        with self._lock:
            if not self.ended:
                self._drop()
        self._wake()

    def _drop(self) -> None:
        self._events.clear()
        self.waiting_bytes = 0
        self.lagged = True

    def end(self, why: str) -> None:
        """There are no more events; those that wait are still sent."""
        self.ended = self.ended or why
        self._wake()

    def _wake(self) -> None:
        if not self._woken and not self._loop.is_closed():  # once for any number of steps
            self._woken = True
            self._loop.call_soon_threadsafe(self.arrived.set)

    def take(self, most: int) -> bytes:
        """The next events, of about so many bytes; nothing if none waits."""
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
    """All who follow, and the number of the last step that they were told of."""

    def __init__(self, label: Callable[[int], str]) -> None:
        """`label` writes the number of a step as the id of an event."""
        self.label = label
        self.step = 0
        self.lagged = 0  # how many were too slow, ever
        self.followers: dict[Follower, None] = {}

    def add(self, follower: Follower) -> None:
        self.followers[follower] = None

    def remove(self, follower: Follower) -> None:
        if self.followers.pop(follower, follower) is None:
            self.lagged += follower.lagged

    def tell(self, step: int, changes: Changes, program: bool = False) -> None:
        """A step is done: tell each follower what it wishes to hear, or that it lags.

        It raises nothing.
        """
        known: dict[Wish, bytes | None] = {}
        writers: dict[int, ChangesWriter] = {}
        for follower in list(self.followers):
            wish = follower.wish
            try:
                if wish not in known:
                    known[wish] = None  # until it is written
                    if follower.room not in writers:
                        writers[follower.room] = ChangesWriter(changes, follower.room)
                    known[wish] = self.written(step, writers[follower.room], wish, program)
                written = known[wish]
                if written is None:
                    follower.lag()
                elif written:
                    follower.offer(written)
            except TooLarge:
                follower.lag()
            except BaseException as error:  # the step stands, and must not seem to have failed
                follower.lag()
                if not isinstance(error, (MemoryError, KeyboardInterrupt)):
                    log_error(error)
        self.step = step

    def written(self, step: int, changes: ChangesWriter, wish: Wish, program: bool = False) -> bytes:
        """The event of a step; nothing if it changed nothing that is wished for.

        TooLarge if the event is too large.
        """
        found = changes.written(wish.as_text, wish.relations)
        label = self.label(step)
        out = event("program", {"step": step}) if program else b""
        if found:
            out += event("change", {"step": step, "changes": found}, label)
        return out

    def end(self, why: str) -> None:
        for follower in list(self.followers):
            follower.end(why)
