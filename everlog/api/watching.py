"""Changes as an asynchronous iterator.

A step must not wait for a slow reader: the thread that reads may be the one that writes.  So the
queue holds a bounded number of steps, and if it is full, the latest two become one: changes are
signed facts, so their sum is the net change of both steps.  Nothing relevant is lost, and an idle
reader costs at most the facts that differ from those it last saw.

Another thread than that of the event loop may apply the steps.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from threading import Lock
from types import TracebackType

from everlog.api.changes import Changes
from everlog.api.subscriptions import Callback, Subscription
from everlog.core.program import Row


class Watch(AsyncIterator[Changes]):
    """The changes of one or all relations, step by step; see `Database.watch`.

    Invariants:
      I1  the changes that were read and those in the queue sum to all changes so far;
      I2  at most `limit` steps are in the queue.
    """

    def __init__(self, subscribe: Callable[[Callback], Subscription], limit: int) -> None:
        if limit < 1:
            raise ValueError(f"the limit of a watch must be at least 1, not {limit}")
        self.limit = limit
        self.merged = 0  # steps that were merged into the one before, because the reader was slow
        self._waiting: deque[Changes] = deque()
        self._lock = Lock()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: asyncio.Event | None = None
        self._subscription = subscribe(self._hear)

    def _hear(self, changes: Changes) -> None:
        with self._lock:
            if len(self._waiting) < self.limit:
                self._waiting.append(changes)
            else:
                self.merged += 1
                both = _sum(self._waiting.pop(), changes)
                if both:
                    self._waiting.append(both)
        self._wake()

    def _wake(self) -> None:
        loop, arrived = self._loop, self._arrived
        if loop is not None and arrived is not None and not loop.is_closed():
            loop.call_soon_threadsafe(arrived.set)

    @property
    def waiting(self) -> int:
        """The number of unread steps."""
        return len(self._waiting)

    def close(self) -> None:
        """Receive no further steps; the iteration ends after the unread ones."""
        self._subscription.cancel()
        self._closed = True
        self._wake()

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> Changes:
        loop = asyncio.get_running_loop()
        if self._arrived is None or self._loop is not loop:
            self._loop, self._arrived = loop, asyncio.Event()
        while True:
            self._arrived.clear()
            with self._lock:
                if self._waiting:
                    return self._waiting.popleft()
            if self._closed:
                raise StopAsyncIteration
            await self._arrived.wait()

    async def __aenter__(self) -> Watch:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<watch, {'closed, ' if self._closed else ''}{self.waiting} step(s) waiting>"


def _sum(first: Changes, second: Changes) -> Changes:
    """The net change of two steps."""
    net: dict[str, Mapping[Row, int]] = {}
    for name in dict.fromkeys([*first, *second]):
        signed = dict(first[name])
        for row, sign in second[name].items():
            if signed.get(row, 0) + sign:
                signed[row] = sign
            else:
                del signed[row]
        if signed:
            net[name] = signed
    return Changes(net, second.relations)
