"""Memory that is given back between jobs.

A job that is stopped for its memory leaves objects that refer to each other, which Python frees
when it looks for them, and blocks that C has freed but the system has not got back.  The limit is
on what the process holds: so both are done here, before the next job is measured by what this one
has left.

Python's own allocator gives a megabyte back when nothing in it is used any more, which one small
object prevents; the one of the C library gives back single pages.  So a service has that one.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from time import perf_counter
from traceback import clear_frames

from everlog.core.runtime.guards import memory_in_use

_GROWN = 64 << 20  # bytes by which the process may grow before it looks for garbage
_IDLE = 16 << 20  # and where it has nothing else to do
_SHARE = 20


def _trim_of_libc() -> Callable[[int], int] | None:
    """What gives freed blocks back to the system, where there is such a function."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return found


def use_allocator_of_libc() -> None:
    """Start this process again, as `everlog serve`, with an allocator that gives memory back.

    Nothing happens where that cannot be done, where the environment names an allocator, and where
    this is no process of the command line.
    """
    chosen = {"PYTHONMALLOC": "malloc", "MALLOC_ARENA_MAX": "2"}
    if _trim_of_libc() is None or sys.argv[1:2] != ["serve"] or chosen.keys() & os.environ.keys():
        return
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **chosen})
    except OSError:
        return


class Tidy:
    """Looks for garbage while the process holds more than it did at its least.

    Cost: at most one part in `_SHARE` of the time, except after a job that was stopped.
    """

    def __init__(self) -> None:
        self._trim = _trim_of_libc()
        self._least = memory_in_use()
        self._not_before = 0.0
        self._worked = False  # whether there was a job since garbage was looked for

    def between_jobs(self, starved: bool) -> None:
        """`starved`: the job before was stopped by a limit."""
        self._worked = True
        used = memory_in_use()
        self._least = min(self._least, used)
        if used > self._least + _GROWN and (starved or perf_counter() >= self._not_before):
            self._collect()

    def idle(self) -> None:
        """There is nothing to do."""
        if self._worked and memory_in_use() > self._least + _IDLE:
            self._collect()

    def _collect(self) -> None:
        """Give freed blocks back; look for garbage only if that was not enough, since HTTP waits
        for it.
        """
        start = perf_counter()
        self._trimmed()
        if memory_in_use() > self._least + _IDLE:
            gc.collect()
            self._trimmed()
        end = perf_counter()
        self._worked = False
        self._not_before = end + max(1.0, (end - start) * _SHARE)

    def _trimmed(self) -> None:
        if self._trim is not None:
            self._trim(0)


def forget_frames(problem: BaseException) -> None:
    """Drop what the calls of a failed job still hold, call by call.

    An exception and its calls refer to each other.  Left to the garbage collector, all of it would
    be looked at and freed at once, and nothing else would run for as long.
    """
    error: BaseException | None = problem
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        clear_frames(error.__traceback__)
        error = error.__context__
