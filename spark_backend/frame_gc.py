"""Java forgets a frame when Python has forgotten it, and that takes a collection of garbage.

py4j ties each object of Java that Python holds into a cycle with its methods.  A frame is a handful
of such objects here and a large plan there, so Python sees little reason to collect while Java's
heap fills up: after some hundred evaluations Java would do nothing but look for memory.
"""

from __future__ import annotations

import gc
from time import monotonic

_SHARE = 40  # one part of our time may go to collections


class _Clock:
    due = 0.0


def forget_frames() -> None:
    """Collect garbage, unless that was done a moment ago, by what it takes: where much is alive, it
    takes long.
    """
    start = monotonic()
    if start >= _Clock.due:
        gc.collect()
        end = monotonic()
        _Clock.due = end + _SHARE * (end - start)
