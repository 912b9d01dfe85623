"""The job queue: one thread does all work on the database, in order of arrival.

So a query sees the state before a step or after it, and nothing between.  It is the main thread of
the process, because signals arrive there: a timer stops a step or a query that takes too long
(`core.runtime.guards`) in the middle of a rule; in other threads, limits could be checked only
between rules.  Another thread serves HTTP; it submits jobs and awaits their answers.

The queue is bounded: with `most` jobs waiting, the next one is refused.  Memory is freed between
two jobs (`everlog.serve.jobs.memory`), so that a job is not refused for what the last one has left.
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
from everlog.serve.errors import ApiError, error_answer
from everlog.serve.jobs.memory import MemoryCleaner, forget_frames

MOST_WAITING = 500  # jobs
LONGEST_WAIT = 30.0  # seconds that a job may wait
_POLL = 1.0  # seconds after which an idle queue wakes up, where signals do not wake it


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
        if not self.answer.done():  # otherwise the client has gone
            if error is None:
                self.answer.set_result(value)
            else:
                self.answer.set_exception(error)


class JobQueue:
    """Jobs for the database: HTTP's thread calls `do`, the database's runs `work`."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self.most = most
        self.done = 0
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = Lock()
        self._waiting = 0
        self._closed = False
        self._since: float | None = None
        self._tidy = MemoryCleaner()
        self.broken = False  # whether the database is unusable after a failed undo

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def waiting(self) -> int:
        """The number of jobs that wait or run."""
        return self._waiting

    @property
    def busy_for(self) -> float:
        """The seconds since the current job began."""
        since = self._since
        return 0.0 if since is None else monotonic() - since

    async def do(self, work: Callable[[], Any]) -> Any:
        """Run a function in the database's thread, and await its result or error."""
        loop = asyncio.get_running_loop()
        job = _Job(work, loop, loop.create_future(), monotonic())
        with self._lock:
            if self._closed:
                raise _stopping()
            if self._waiting >= self.most:
                raise ApiError(503, "busy", f"{self.most} requests are waiting: try again later")
            self._waiting += 1
        self._jobs.put(job)
        return await job.answer

    def work(self) -> None:
        """Run jobs until `close` is called; then refuse those that have not begun."""
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
                with self._lock:  # another thread may be submitting a last job
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
        except KeyboardInterrupt:  # the second signal: the job was undone, and the queue is closed
            value, error = None, ApiError(503, "stopping", "the service was stopped during this request")
        except Exception as problem:
            value, error = None, error_answer(problem)
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
        job.work = _nothing  # frees what it refers to
        del value
        self._tidy.between_jobs(starved)
        if self.broken:
            self.close()

    def close(self) -> None:
        """Refuse further jobs, and end `work` after this one; safe in a signal handler."""
        self._closed = True
        self._jobs.put(None)


def _nothing() -> None:
    pass


def _stopping() -> ApiError:
    return ApiError(503, "stopping", "the service is stopping; nothing was done")
