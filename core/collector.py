"""The garbage collector paused while many objects are made that all stay.

Syntax trees and facts hold no cycles that die early, yet making a million of them has Python look
for such cycles time and again, each time through all that there are.

Reads: nothing.  Read by: whatever makes many objects.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused(to_stay: bool = True) -> Iterator[None]:
    """No collections inside; where it was off before, it stays off.

    What was made inside counts as old afterwards, unless most of it is gone by then (`to_stay=False`).

    >>> with collector_paused():
    ...     gc.isenabled()
    False
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if to_stay and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()
