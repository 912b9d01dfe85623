"""What is raised where a dialect cannot say something."""

from __future__ import annotations


class SqlError(ValueError):
    """A system, or a construct of the calculus, that a dialect of SQL cannot express."""
