"""Whether the compiled machine is there, and wanted.

`EVERLOG_PURE=1` in the environment runs everything in Python.
"""

from __future__ import annotations

import os
from functools import cache
from types import ModuleType


class NotAWord(Exception):
    """A value is not of the type of its column, so words cannot hold it."""


class Undefined(Exception):
    """A functor has no value, or NaN is to be ordered; the unit must be evaluated in Python."""


class TooManyRows(Exception):
    """A plan has tried more rows than its limit; the facts that it has derived stay."""


@cache
def _built() -> ModuleType | None:
    try:
        from everlog.core.native import _machine
    except ImportError:
        return None
    return _machine


def is_pure() -> bool:
    """Whether the environment asks for Python alone."""
    return os.environ.get("EVERLOG_PURE", "") not in ("", "0")


def why_not() -> str:
    """Why the compiled machine is not used; empty if it is."""
    if is_pure():
        return "EVERLOG_PURE is set"
    return "" if _built() is not None else "the compiled machine was not built"


def in_use() -> str:
    """The machine that evaluates whole programs, in a few words."""
    reason = why_not()
    return f"in Python: {reason}" if reason else "with the compiled machine"
