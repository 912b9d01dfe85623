"""A system of the calculus behind the protocol of practical systems.

Its rows are tuples, also those of one column: in the calculus the elements of {node} are nodes; in
Datalog and in tables a row of one column is a row.  Nested relations are passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from everlog.ies.nrc.types import Base, Value
from everlog.ies.practical.protocol import Row
from everlog.ies.running import DEFAULT_LIMIT, Running
from everlog.ies.system import System


class Rowwise:
    """A running system; `ies.practical.protocol.Practical` documents its methods."""

    def __init__(self, system: System, limit: int | None = DEFAULT_LIMIT) -> None:
        self.running = Running(system, limit)
        self._unary = {stored.name for stored in system.stored if isinstance(stored.type.element, Base)}

    @property
    def system(self) -> System:
        return self.running.system

    def load(self, rows: Mapping[str, Iterable[Row]]) -> None:
        """Start over with these rows, inserted one by one.

        If one is rejected, the state stays as it was.
        """
        fresh = self.running.anew()
        for name, values in rows.items():
            for row in sorted(values, key=_key):
                fresh.insert(name, row)
        self.running = fresh

    def track(self) -> None:
        """Do nothing: changes of auxiliary relations are always reported."""

    def anew(self) -> Rowwise:
        """The same system in its initial state."""
        fresh = Rowwise(self.system, self.running.limit)
        fresh.running = self.running.anew()
        return fresh

    def remarks(self) -> list[str]:
        """No remarks: a system of the calculus is exact."""
        return []

    def insert(self, relation: str, row: Row) -> dict[str, tuple[frozenset[Row], frozenset[Row]]]:
        return self._as_rows(self.running.insert(relation, row))

    def delete(self, relation: str, row: Row) -> dict[str, tuple[frozenset[Row], frozenset[Row]]]:
        return self._as_rows(self.running.delete(relation, row))

    def view(self, name: str) -> frozenset[Row]:
        return self._rows(name, self.running.view(name))

    def sizes(self) -> dict[str, int]:
        return self.running.sizes()

    def check(self) -> None:
        self.running.check()

    def _as_rows(
        self, changes: Mapping[str, tuple[frozenset[Value], frozenset[Value]]]
    ) -> dict[str, tuple[frozenset[Row], frozenset[Row]]]:
        return {name: (self._rows(name, gone), self._rows(name, new)) for name, (gone, new) in changes.items()}

    def _rows(self, name: str, values: frozenset[Value]) -> frozenset[Row]:
        return frozenset((value,) for value in values) if name in self._unary else values


def _key(row: Row) -> tuple[tuple[str, Value], ...]:
    """A sort key for any rows: numbers before texts."""
    return tuple(("s" if isinstance(value, str) else "n", value) for value in row)
