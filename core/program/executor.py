"""The protocol of everything that runs a program.

A run holds the relations of a program.  A step inserts and deletes base facts, in order, all or
none, and returns the net change of every relation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

from attrs import frozen

from everlog.core.program import Program, Row

Changes: TypeAlias = Mapping[str, Mapping[Row, int]]  # relation → fact → +1 or -1


@frozen
class Update:
    """One statement of a step: `+fact` (insert) or `-fact`."""

    relation: str
    row: Row
    insert: bool = True


class Run(Protocol):
    def apply(self, step: Iterable[Update]) -> Changes:
        """Apply the updates in order, all or none; return the net change per relation."""

    def view(self, relation: str) -> frozenset[Row]:
        """The facts of a relation now."""

    def check(self) -> None:
        """Assert every invariant."""


class Executor(Protocol):
    def start(self, program: Program) -> Run:
        """A run with the program's own facts and no others."""


class NotABaseRelation(ValueError):
    """An update names a relation that does not exist, or a row that does not fit it."""


class InsertOnly(ValueError):
    """A delete from a relation that the program declares `.insert_only`."""

    def __init__(self, relation: str) -> None:
        super().__init__(f"`{relation}` is `.insert_only`: its facts cannot be deleted")
