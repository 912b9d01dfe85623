"""Freeing memory between jobs.

A job that is stopped for its memory leaves cyclic garbage, which the collector has to find, and
blocks that C has freed but not returned to the system.  The limit applies to the process: so both
are handled here, before the next job is measured.

Python's own allocator returns a megabyte only if all of it is unused, which one small object
prevents; the C library's returns single pages.  So a service uses that one.
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

_GROWN = 64 << 20  # bytes by which the process may grow before a collection
_IDLE = 16 << 20  # the same for an idle process
_SHARE = 20


def _trim_of_libc() -> Callable[[int], int] | None:
    """The function that returns freed blocks to the system, if there is one."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return found


def use_allocator_of_libc() -> None:
    """Restart this process, as `everlog serve`, with an allocator that returns memory.

    Does nothing if that is impossible, if the environment selects an allocator, or if this process
    is not the command line's.
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


class MemoryCleaner:
    """Collects garbage while the process holds more memory than at its minimum.

    Cost: at most 1/`_SHARE` of the time, except after a job that was stopped.
    """

    def __init__(self) -> None:
        self._trim = _trim_of_libc()
        self._least = memory_in_use()
        self._not_before = 0.0
        self._worked = False  # whether a job has run since the last collection

    def between_jobs(self, starved: bool) -> None:
        """Free memory; `starved` says that a limit stopped the last job."""
        self._worked = True
        used = memory_in_use()
        self._least = min(self._least, used)
        if used > self._least + _GROWN and (starved or perf_counter() >= self._not_before):
            self._collect()

    def idle(self) -> None:
        """Free memory while no job waits."""
        if self._worked and memory_in_use() > self._least + _IDLE:
            self._collect()

    def _collect(self) -> None:
        """Return freed blocks; collect garbage only if necessary, since HTTP waits for it."""
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
    """Clear the frames of a failed job, call by call.

    An exception and its frames refer to each other.  The garbage collector would free all of it at
    once, and nothing else would run meanwhile.
    """
    error: BaseException | None = problem
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        clear_frames(error.__traceback__)
        error = error.__context__
