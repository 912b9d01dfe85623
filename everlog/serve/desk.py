"""The desk: one thread does all work on the database, one job after the other, first come, first
served.

So a query sees the state before a step or the state after it, and nothing between.  That thread is
the main one of the process, because signals go there: a timer stops whatever takes too long
(`core.runtime.guards`), be it a step or a query, in the middle of a rule; elsewhere limits could
only be looked at between rules.  HTTP is served by another thread, which hands jobs over and awaits
their answers.

What waits is bounded: past `most` jobs the next one is refused.  Between two jobs memory is given
back (`everlog.serve.memory`): the next one must not be refused for what the last one has left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic
from typing import Any

from attrs import define

from everlog.core.runtime.guards import Broken, LimitExceeded
from everlog.serve.errors import ApiError, told
from everlog.serve.memory import Tidy, forget_frames

MOST_WAITING = 500  # jobs
LONGEST_WAIT = 30.0  # seconds that a job may wait for its turn
_POLL = 1.0  # seconds after which an idle desk looks up, where signals do not wake it


@define(eq=False)
class _Job:
    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Any]
    asked: float

    def tell(self, value: Any, error: ApiError | None) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._settle, value, error)

    def _settle(self, value: Any, error: ApiError | None) -> None:
        if not self.answer.done():  # else nobody waits any more
            if error is None:
                self.answer.set_result(value)
            else:
                self.answer.set_exception(error)


class Desk:
    """Jobs go in by `do`, in the thread of an event loop; `work` does them, in the thread of the
    database.
    """

    def __init__(self, most: int = MOST_WAITING) -> None:
        self.most = most
        self.done = 0
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = Lock()
        self._waiting = 0
        self._closed = False
        self._since: float | None = None
        self._tidy = Tidy()
        self.broken = False  # whether the database could not be used any more

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def waiting(self) -> int:
        """How many jobs wait for their turn, or have it."""
        return self._waiting

    @property
    def busy_for(self) -> float:
        """For how many seconds the present job has been under way."""
        since = self._since
        return 0.0 if since is None else monotonic() - since

    async def do(self, work: Callable[[], Any]) -> Any:
        """Have the database's thread do this, and await what it returns or raises."""
        loop = asyncio.get_running_loop()
        job = _Job(work, loop, loop.create_future(), monotonic())
        with self._lock:
            if self._closed:
                raise _stopping()
            if self._waiting >= self.most:
                raise ApiError(503, "busy", f"{self.most} requests are waiting already: try again later")
            self._waiting += 1
        self._jobs.put(job)
        return await job.answer

    def work(self) -> None:
        """Do jobs until somebody calls `close`; then refuse those that have not begun."""
        while not self._closed:
            try:
                job = self._jobs.get(timeout=_POLL)
            except Empty:
                self._tidy.idle()
                continue
            if job is not None:
                self._do(job)
        while self._waiting:
            job = self._jobs.get()
            if job is not None:
                with self._lock:  # somebody who came just before the end may be counting, too
                    self._waiting -= 1
                job.tell(None, _stopping())

    def _do(self, job: _Job) -> None:
        self._since = now = monotonic()
        starved = False
        try:
            if job.answer.cancelled():
                return
            if now - job.asked > LONGEST_WAIT:
                raise ApiError(503, "busy", f"the request has waited for {LONGEST_WAIT:g} s: try again later")
            value, error = job.work(), None
        except KeyboardInterrupt:  # the second signal: the job was given up, and the desk is closed
            value, error = None, ApiError(503, "stopping", "the service was stopped in the middle of this")
        except Exception as problem:
            value, error = None, told(problem)
            starved = isinstance(problem, (LimitExceeded, MemoryError))
            if starved:
                forget_frames(problem)
            if isinstance(problem, Broken):
                self.broken = True
        finally:
            self._since = None
            with self._lock:
                self._waiting -= 1
            self.done += 1
        job.tell(value, error)
        job.work = _nothing  # what it holds goes now
        del value
        self._tidy.between_jobs(starved)
        if self.broken:
            self.close()

    def close(self) -> None:
        """Take no more jobs, and have `work` end after the present one.  A signal handler may call
        it.
        """
        self._closed = True
        self._jobs.put(None)


def _nothing() -> None:
    pass


def _stopping() -> ApiError:
    return ApiError(503, "stopping", "the service is stopping; nothing was done")
