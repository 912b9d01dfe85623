"""Collects garbage so that Java frees the frames that Python has dropped.

py4j ties each Java object that Python holds into a cycle with its methods.  A frame is a handful of
such objects here and a large plan there, so Python sees little reason to collect while Java's heap
fills up: after some hundred evaluations Java would only search for memory.
"""

from __future__ import annotations

import gc
from time import monotonic

_SHARE = 40  # at most 1/40 of the time goes to collections


class _Clock:
    due = 0.0


def forget_frames() -> None:
    """Collect garbage, unless that would exceed 1/40 of the time."""
    start = monotonic()
    if start >= _Clock.due:
        gc.collect()
        end = monotonic()
        _Clock.due = end + _SHARE * (end - start)
