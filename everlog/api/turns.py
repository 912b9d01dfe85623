"""Turns: a lock that is given to whoever has waited longest, and may be taken again by whoever has
it.

Python's own locks go to whoever is quick: a thread that lets go and asks again at once may have it
for ever, while others wait.  Here a thread that lets go hands the lock to the first in the queue.
"""

from __future__ import annotations

from collections import deque
from threading import Lock, get_ident


class Turns:
    """`with turns:` is a turn.

    Invariant: if nobody holds it, nobody waits.
    """

    def __init__(self) -> None:
        self._inside = Lock()  # held for the few instructions that change what follows
        self._holder: int | None = None
        self._depth = 0
        self._waiting: deque[tuple[int, Lock]] = deque()

    @property
    def mine(self) -> bool:
        """Whether this thread has it."""
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
            gate = Lock()
            gate.acquire()
            self._waiting.append((me, gate))
        try:
            gate.acquire()  # until somebody hands it over
        except BaseException:  # Ctrl-C: out of the queue, or on to the next
            with self._inside:
                if (me, gate) in self._waiting:
                    self._waiting.remove((me, gate))
                    raise
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        with self._inside:
            if self._waiting:
                self._holder, gate = self._waiting.popleft()
                self._depth = 1
                gate.release()
            else:
                self._holder = None
