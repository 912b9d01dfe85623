"""Relations that are stored, for an engine that sleeps: what it asks of a store."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.program import Row, Value


class Unreadable(Exception):
    """Stored rows of a relation are lost; base facts, of which they follow, are not."""


class StoredRows(Collection[Row], Protocol):
    """The rows of a relation, in sorted order where they have no floats; or `Unreadable`."""

    def is_found_by(self, columns: Collection[int]) -> bool:
        """Whether rows with values in these columns are found without reading all others."""

    def matching(self, bound: Mapping[int, Value]) -> Iterator[Row]:
        """The rows with these values in these columns."""


class Stored(Protocol):
    """The relations of a program, stored: they do not change while somebody reads them."""

    @property
    def rows(self) -> Mapping[str, StoredRows]:
        """The relations that need no engine."""

    @property
    def given(self) -> Mapping[str, Collection[Row]]:
        """Base facts, where there are any."""

    def load(self) -> tuple[Mapping[str, Collection[Row]], Mapping[str, Columns] | None]:
        """All base facts, and the saved state for them, if there is one."""

    def close(self) -> None:
        """Release the stored rows, once the last read has ended."""
