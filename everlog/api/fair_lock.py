"""A fair, reentrant lock: the thread that has waited longest gets it next.

Python's own locks are unfair: a thread that releases one and acquires it again at once may starve
the others.  Here the release hands the lock to the first thread in the queue.
"""

from __future__ import annotations

from collections import deque
from threading import Lock, get_ident


class FairLock:
    """A fair, reentrant lock, used as `with lock:`.

    Invariant: if no thread holds it, no thread waits.
    """

    def __init__(self) -> None:
        self._inside = Lock()  # protects the fields below for a few instructions
        self._holder: int | None = None
        self._depth = 0
        self._waiting: deque[tuple[int, Lock]] = deque()

    @property
    def mine(self) -> bool:
        """Whether this thread holds the lock."""
        return self._holder == get_ident()

    def __enter__(self) -> None:
        me = get_ident()
        if self._holder == me:
            self._depth += 1
            return
        with self._inside:
            if self._holder is None:
                self._holder, self._depth = me, 1
                return
            turn = Lock()
            turn.acquire()
            self._waiting.append((me, turn))
        try:
            turn.acquire()  # until another thread hands the lock over
        except BaseException:  # Ctrl-C: leave the queue, or pass the lock on
            with self._inside:
                if (me, turn) in self._waiting:
                    self._waiting.remove((me, turn))
                    raise
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        with self._inside:
            if self._waiting:
                self._holder, turn = self._waiting.popleft()
                self._depth = 1
                turn.release()
            else:
                self._holder = None
