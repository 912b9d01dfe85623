"""An engine whose last step could neither be made nor be undone.

Its relations may disagree with each other, so it refuses to answer.
"""

from __future__ import annotations

from everlog.core.runtime.guards import Broken

_STILL_THERE = frozenset({"__class__", "__dict__", "__repr__", "guard", "program", "seal"})


class BrokenEngine:
    """The class of a broken engine: every access raises `Broken`."""

    def __getattribute__(self, name: str) -> object:
        if name in _STILL_THERE:
            return object.__getattribute__(self, name)
        raise Broken(
            "a step failed, and could not be taken back: the database in memory is broken, and is not used any"
            " more; open it anew"
        )

    def __repr__(self) -> str:
        return "<a broken engine>"
