"""Pauses of the garbage collector while code creates many objects.

Syntax trees and facts hold no short-lived cycles, yet creating a million of them makes Python
search all objects for cycles again and again.  `collector_paused` is for code whose objects stay,
`without_collections` for code whose objects mostly die at its end.

Objects that stay become old at once, and Python does not count them: it would never collect the old
generation again.  So this module counts them, by Python's own rule: when the objects that became
old exceed a quarter of all, the next pause begins with a collection.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_FEW = 20_000  # objects that Python may search by itself: this takes a millisecond
_LEAST = 250_000  # objects that may become old before a collection, however few there are


class _Old:
    """The objects that became old since our last collection, and all objects then."""

    aged = there = 0
    paused = False  # whether `without_collections` or a `Pause` has disabled the collector

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
    """Pause the garbage collector, if it runs; new objects are old afterwards.

    >>> with collector_paused():
    ...     gc.isenabled()
    False
    """
    if not gc.isenabled():
        yield
        if _Old.paused:  # else they would be searched when that pause ends
            _Old.age()
        return
    _Old.make_room()
    gc.disable()
    try:
        yield
    finally:
        _Old.age()
        gc.enable()


class Pause:
    """Garbage collection put off from the middle of a large step to its end."""

    on = False

    @classmethod
    def begin(cls) -> None:
        if gc.isenabled():
            cls.on = _Old.paused = True
            gc.disable()

    @classmethod
    def end(cls) -> None:
        cls.on = _Old.paused = False
        gc.enable()


def without_collections(work: Callable[P, T]) -> Callable[P, T]:
    """The function without collections; the objects it creates stay young.

    The temporary objects of a step (rows, undo actions) die with it.  A collection in the middle
    would make them old, and soon the collector would search the whole database for cycles.

    >>> without_collections(gc.isenabled)(), gc.isenabled()
    (False, True)
    """

    @wraps(work)
    def alone(*args: P.args, **kwargs: P.kwargs) -> T:
        if not gc.isenabled():
            return work(*args, **kwargs)
        try:  # a signal may come after any call, so `disable` is inside
            _Old.paused = True
            gc.disable()
            return work(*args, **kwargs)
        finally:
            _Old.paused = False
            gc.enable()

    return alone
