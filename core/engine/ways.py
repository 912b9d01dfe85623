"""The fused functions of single updates, for each relation, built on demand."""

from __future__ import annotations

from collections.abc import Iterable

from everlog.core.engine.fused import Fused, Orders, fused
from everlog.core.engine.network import Network
from everlog.core.storage.table_statistics import is_other_size
from everlog.core.storage.tables import TableOf


class Ways:
    """Functions are rebuilt when tables got new indexes, or very different sizes.

    Their orders of joins are chosen again only for other sizes.
    """

    def __init__(self, network: Network, relations: Iterable[str]) -> None:
        self._network, self._relations = network, frozenset(relations)
        self._fused: dict[tuple[str, bool], Fused | None] = {}
        self._orders: Orders = {}
        self._indexes = TableOf.built
        self._sizes: dict[str, int] = {}

    def fused(self, relation: str, insert: bool) -> Fused | None:
        if TableOf.built != self._indexes:
            self._fused.clear()
            self._indexes = TableOf.built
        of = relation, insert
        if of in self._fused:
            return self._fused[of]
        if relation not in self._relations:
            return None
        if not self._fused:
            self._sizes = self._sizes_now()
        found = fused(self._network, relation, insert, self._orders)
        if TableOf.built != self._indexes:  # compiling asked for new indexes: update them, too
            self._fused.clear()
            self._indexes = TableOf.built
            found = fused(self._network, relation, insert, self._orders)
        self._fused[of] = found
        return found

    def _sizes_now(self) -> dict[str, int]:
        """Estimates: counting a million facts takes as long as a thousand updates."""
        return {name: table.about() for name, table in self._network.store.tables.items()}

    def forget_if_grown(self) -> None:
        if self._fused:
            now = self._sizes_now()
            if any(is_other_size(before, now[name]) for name, before in self._sizes.items()):
                self._fused.clear()
                self._orders.clear()
