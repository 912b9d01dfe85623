"""Memory that is given back between jobs.

A job that is stopped for its memory leaves objects that refer to each other, which Python frees when it looks for
them, and blocks that C has freed but the system has not got back.  The limit is on what the process holds: so both
are done here, before the next job is measured by what this one has left.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from time import perf_counter

from everlog.core.guards import memory_in_use

_GROWN = 64 << 20  # bytes by which the process may grow before it looks for garbage
_SHARE = 20  # it looks for at most one part of so many of the time, unless a job was stopped


def _trim_of_libc() -> Callable[[int], int] | None:
    """What gives freed blocks back to the system, where there is such a function."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return found


class Tidy:
    """Looks for garbage when the process has grown, or when a job was stopped."""

    def __init__(self) -> None:
        self._trim = _trim_of_libc()
        self._low = memory_in_use()
        self._not_before = 0.0

    def between_jobs(self, starved: bool) -> None:
        """`starved`: the job before was stopped by a limit."""
        used = memory_in_use()
        self._low = min(self._low, used)
        if used < self._low + _GROWN:
            return
        start = perf_counter()
        if start < self._not_before and not starved:
            return
        gc.collect()
        if self._trim is not None:
            self._trim(0)
        end = perf_counter()
        self._low, self._not_before = memory_in_use(), end + (end - start) * _SHARE
