"""Room for deep recursion, in a process with several threads.

Python has one limit of recursion for all threads.  Whoever raises it and puts back what it was before may put back
what another thread had raised it to, and then it stays high for ever: a library in C that counts on it, such as
`json`, would not raise RecursionError any more, but overflow its stack.  So wishes are noted, and the limit is the
highest of those that are still open.

Reads: nothing.  Read by: core.seminaive, dsl.parser, dsl.diagnostics, ies.nrc.errors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

_lock = RLock()  # which a signal may find taken by its own thread
_open: dict[object, int] = {}
_usual = 0  # the limit when nobody has a wish


@contextmanager
def recursion_up_to(frames: int) -> Iterator[None]:
    """Allow this many frames; when the last one who wants more than usual has ended, it is as before.

    >>> before = sys.getrecursionlimit()
    >>> with recursion_up_to(50_000), recursion_up_to(20_000):
    ...     sys.getrecursionlimit()
    50000
    >>> sys.getrecursionlimit() == before
    True
    """
    global _usual
    wish = object()
    try:
        with _lock:
            if not _open:
                _usual = sys.getrecursionlimit()
            _open[wish] = frames
            sys.setrecursionlimit(max(_usual, *_open.values()))
        yield
    finally:
        with _lock:
            if _open.pop(wish, None) is not None:
                sys.setrecursionlimit(max(_usual, *_open.values(), 0))
