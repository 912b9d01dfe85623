"""What is raised where a dialect cannot say something.

Reads: nothing.  Read by: the rest of ies.sql, the command line.
"""

from __future__ import annotations


class SqlError(ValueError):
    """A system, or a construct of the calculus, that a dialect of SQL cannot express."""
