"""Limits on a step, Ctrl-C, and progress: a step ends in time, or leaves no trace.

Rules only read tables and collect their results elsewhere, so an interruption of a rule is
harmless.  Tables change inside a *shield*: a signal that arrives then waits until the shield is
released.  On the main thread a timer checks the clock and the memory while rules run; on other
threads limits are checked between rules.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from time import monotonic
from types import FrameType
from typing import TypeAlias

from attrs import field, frozen

from everlog.core.program.values import EvaluationError

Progress: TypeAlias = Callable[[str, int, int], None]  # unit, iteration, facts so far in this step
_PERIOD = 0.05  # seconds between two checks of clock and memory


class LimitExceeded(EvaluationError):
    """A step exceeded a limit; the state is as it was before the step."""


class Broken(Exception):
    """A step could not be undone; the engine refuses reads and changes.

    The file is as it was before the step: open it again.
    """


def _memory_of_machine() -> int:
    """The memory that this process may use: the machine's, or its control group's."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1 << 34
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            pages = min(pages, int(Path(name).read_text()))
        except (OSError, ValueError):
            continue
    return pages


def memory_in_use() -> int:
    """Bytes of memory that this process holds; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@frozen
class Limits:
    """The resources that one step may use; None is no limit.

    `iterations` bounds the rounds of a recursion that computes new values: any other recursion ends
    by itself.  `facts` bounds the facts that a step derives, `memory` the bytes of the whole
    process (by default four fifths of what it may have), `seconds` the time of a step.
    """

    iterations: int | None = 1_000_000
    facts: int | None = None
    memory: int | None = field(factory=lambda: _memory_of_machine() * 4 // 5)
    seconds: float | None = None


class Shield:
    """While it is held, a signal waits.

    Use `with shield:`, or where every microsecond counts `held = True`, the change, and
    `release()`.
    """

    __slots__ = ("held", "pending")

    def __init__(self) -> None:
        self.held = False
        self.pending: BaseException | None = None

    def release(self) -> None:
        self.held = False
        if self.pending is not None:
            pending, self.pending = self.pending, None
            raise pending

    def __enter__(self) -> None:
        self.held = True

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.held = False
        if kind is None:
            self.release()


class Guard:
    """Watches one step at a time; `with guard:` around it."""

    def __init__(self, limits: Limits, progress: Progress | None = None) -> None:
        self.limits, self.progress = limits, progress
        self.shield = Shield()
        self.facts = 0
        self.ending = False  # it was told to end: once, and then it undoes itself
        self.committed = False  # the step is done, and is not undone any more
        self._deadline: float | None = None
        self._outer: Guard | None = None
        self._depth = 0

    def __enter__(self) -> Guard:
        if self._depth and (_watch.guard is self or get_ident() != _MAIN):
            self._depth += 1  # the same step, tried in another way: its clock continues
            return self
        self._depth = 1
        self.ending = self.committed = False
        self.facts = 0
        self.shield.held, self.shield.pending = False, None
        seconds = self.limits.seconds
        self._deadline = None if seconds is None else monotonic() + seconds
        if get_ident() == _MAIN:
            self._outer = _watch.guard
            _watch.guard = self
            if monotonic() >= _watch.due:
                _watch.arm()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._depth -= 1
        if not self._depth and _watch.guard is self:
            _watch.guard, self._outer = self._outer, None
            if _watch.late:
                _watch.late = False
                raise KeyboardInterrupt

    @contextmanager
    def sealing(self) -> Iterator[None]:
        """Hold signals back while a step becomes final; Ctrl-C comes after the step."""
        shield = self.shield
        shield.held = True
        try:
            yield
            self.committed = True
            if isinstance(shield.pending, KeyboardInterrupt):
                _watch.late = True
            shield.pending = None
        finally:
            shield.held = False

    def round(self, unit: str, iteration: int, new: int, invents: bool) -> None:
        """A recursion ended a round with `new` facts; `invents`: its rules compute values."""
        self.facts += new
        limits = self.limits
        if invents and limits.iterations is not None and iteration > limits.iterations:
            raise LimitExceeded(
                f"more than {limits.iterations} iterations of {unit}, whose rules compute new values: "
                "the recursion may have no end (a larger limit on iterations lets it go on)"
            )
        if limits.facts is not None and self.facts > limits.facts:
            raise LimitExceeded(f"more than {limits.facts} facts derived in one step, the last ones of {unit}")
        if iteration & 63 == 0 or new > 10_000:
            self.look()
        if self.progress is not None:
            self.progress(unit, iteration, self.facts)

    def derived(self, unit: str, new: int) -> None:
        """A unit that is not recursive derived `new` facts."""
        self.round(unit, 1, new, False)

    def look(self) -> None:
        """Raise LimitExceeded if clock or memory exceed their limits."""
        found = self.exceeded()
        if found is not None:
            self.ending = True
            raise found

    def exceeded(self) -> LimitExceeded | None:
        limits = self.limits
        if self._deadline is not None and monotonic() > self._deadline:
            return LimitExceeded(f"the step took more than {limits.seconds:g} s")
        if limits.memory is not None and memory_in_use() > limits.memory:
            return LimitExceeded(
                f"the process holds more than {limits.memory >> 20} MB: "
                "the step was given up (a larger limit on memory lets it go on)"
            )
        return None

    def interrupt(self, error: BaseException) -> None:
        self.ending = True
        if self.shield.held:
            self.shield.pending = error
        else:
            raise error


class _Watch:
    """The signals of the process: Ctrl-C, and a timer that checks the running step.

    The handlers replace Python's own and no others; without a step they do what Python's do.  The
    timer fires once, and the next step sets it again.  A process has one such timer: while the host
    program uses it, limits are checked between rules only.
    """

    def __init__(self) -> None:
        self.guard: Guard | None = None
        self.due = 0.0  # when to set the timer again, or to check whether it is free
        self.late = False  # Ctrl-C came when the step was over: raise it when its guard exits
        self._began = False
        self._tick = self._ticked  # one object, to be compared by identity

    def arm(self) -> None:
        if not self._began:
            self._begin()
        self.due = monotonic() + _PERIOD
        if self._took_timer():
            signal.setitimer(signal.ITIMER_REAL, _PERIOD)

    def _begin(self) -> None:
        self._began = True
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupted)
        atexit.register(self._end)

    def _end(self) -> None:
        """Stop the timer: at exit Python restores handlers, and a tick would be fatal."""
        if self._took_timer():
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _took_timer(self) -> bool:
        """Whether the timer is ours, or was free and is ours now."""
        if not hasattr(signal, "setitimer"):  # Windows
            return False
        handler = signal.getsignal(signal.SIGALRM)
        if handler is not self._tick and handler is not signal.SIG_DFL:
            return False
        if signal.getitimer(signal.ITIMER_REAL)[0] > _PERIOD:
            return False  # an alarm of the host program
        if handler is signal.SIG_DFL:
            signal.signal(signal.SIGALRM, self._tick)
        return True

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.guard is None:
            raise KeyboardInterrupt
        if self.guard.ending or self.guard.committed or _is_leaving(frame):
            self.late = True
        else:
            self.guard.interrupt(KeyboardInterrupt())

    def _ticked(self, number: int, frame: FrameType | None) -> None:
        if self.guard is not None:
            self.arm()
            over = self.guard.ending or self.guard.committed or _is_leaving(frame)
            found = None if over else self.guard.exceeded()
            if found is not None:
                self.guard.interrupt(found)


def _is_leaving(frame: FrameType | None) -> bool:
    """Whether a guard is in its exit: an exception there would leave it watching."""
    return frame is not None and frame.f_code is Guard.__exit__.__code__


def give_up(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C does to the running step, if there is one."""
    if _watch.guard is not None:
        _watch._interrupted(number, frame)


_MAIN = threading.main_thread().ident
_watch = _Watch()
