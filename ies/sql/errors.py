"""The error for terms that a dialect cannot express."""

from __future__ import annotations


class SqlError(ValueError):
    """A system, or a construct of the calculus, that a dialect of SQL cannot express."""
