"""The garbage collector paused while many objects are made.

Syntax trees and facts hold no cycles that die early, yet making a million of them has Python look
for such cycles time and again, each time through all that there are.  Two ways: `collector_paused`
where what is made stays, `without_collections` where most of it is gone again at the end.

What stays counts as old at once, and Python has no account of that: it would never look for cycles
among the old again.  So we keep the account, by Python's own rule: when a quarter as much has grown
old as there is, the next pause begins with a collection.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_FEW = 20_000  # objects that Python may look through as it does by itself: in a millisecond
_LEAST = 250_000  # objects that may grow old before a collection, however few there are


class _Old:
    """What has grown old in pauses since the last collection of ours, and what was there then."""

    aged = there = 0

    @classmethod
    def make_room(cls) -> None:
        if cls.aged > max(_LEAST, cls.there // 4):
            gc.collect()
            cls.aged, cls.there = 0, len(gc.get_objects(generation=2))

    @classmethod
    def age(cls) -> None:
        made = gc.get_count()[0]
        if made > _FEW and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
            cls.aged += made


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector, if it runs; what was made counts as old afterwards.

    >>> with collector_paused():
    ...     gc.isenabled()
    False
    """
    if not gc.isenabled():
        yield
        return
    _Old.make_room()
    gc.disable()
    try:
        yield
    finally:
        _Old.age()
        gc.enable()


class Pause:
    """Collections that are put off from the middle of a step to its end, where it turns out large."""

    on = False

    @classmethod
    def begin(cls) -> None:
        if gc.isenabled():
            cls.on = True
            gc.disable()

    @classmethod
    def end(cls) -> None:
        cls.on = False
        gc.enable()


def without_collections(work: Callable[P, T]) -> Callable[P, T]:
    """The function without collections; what it makes stays young.  For single steps.

    What a step makes on its way (rows, how to undo it) dies with it.  A collection in the middle
    would count all of that as grown old, and soon look through the whole database for cycles.

    >>> without_collections(gc.isenabled)(), gc.isenabled()
    (False, True)
    """

    @wraps(work)
    def alone(*args: P.args, **kwargs: P.kwargs) -> T:
        if not gc.isenabled():
            return work(*args, **kwargs)
        try:  # a signal may come after any call, so `disable` stands inside
            gc.disable()
            return work(*args, **kwargs)
        finally:
            gc.enable()

    return alone
