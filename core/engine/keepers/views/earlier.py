"""Tables as they were before the last step, for rules that find what was lost in it.

The tables have the new state, and the step told what went and came.  So an index of before is that
of now, without the rows that came, and with those that went.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import cast

from everlog.core.engine.stepping.store import Store
from everlog.core.ir.compile import Lookup
from everlog.core.ir.printer import LAZY, Access
from everlog.core.storage.lazy_index import LazyIndex
from everlog.core.storage.shape import Columns, Facts, Key
from everlog.core.storage.tables import Table, TableOf

Rests = dict[Key, set[Key]]


def indexes_before(store: Store, changes: Mapping[str, tuple[Facts, Facts]]) -> Lookup:
    """The lookup of indexes of before; `changes` has the facts that went and came."""
    small = {
        name: tuple(TableOf(store.shapes[name], facts) for facts in change) for name, change in changes.items()
    }

    def lookup(access: Access) -> object:
        name = access.relation.removeprefix(LAZY)
        if name not in small:
            return store.index(access)
        gone, new = small[name]
        if access.key and access.rest:
            return EarlierIndex(store.tables[name], gone, new, access.key, access.rest)
        return EarlierRows(store.tables[name], gone, new, access.key + access.rest)

    return lookup


class EarlierIndex(Mapping[Key, Collection[Key]]):
    """{key: rests} before the step; a key is asked for, or all are walked."""

    def __init__(self, table: Table, gone: Table, new: Table, key: Columns, rest: Columns) -> None:
        self._table, self._key, self._rest = table, key, rest
        self._now = LazyIndex(table, key, rest)
        self._gone, self._new = (cast(Rests, small.index(key, rest)) for small in (gone, new))

    def __getitem__(self, wanted: Key) -> Collection[Key]:
        gone, new = self._gone.get(wanted, ()), self._new.get(wanted, ())
        found = cast(Collection[Key], self._now.get(wanted))
        if gone or new:
            found = {rest for rest in found if rest not in new}.union(gone)
        if not found:
            raise KeyError(wanted)
        return found

    def __contains__(self, wanted: object) -> bool:
        return self.get(cast(Key, wanted)) is not None

    def __iter__(self) -> Iterator[Key]:
        index = cast(Rests, self._table.index(self._key, self._rest))
        return (key for key in dict.fromkeys([*index, *self._gone]) if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class EarlierRows:
    """The values of some columns before the step: to walk, or to look one up."""

    def __init__(self, table: Table, gone: Table, new: Table, columns: Columns) -> None:
        assert len(columns) == table.arity, "wildcards have names"
        whole = (each.index((), columns) if columns else each for each in (table, gone, new))
        self._now, self._gone, self._new = (cast(Collection[Key], each) for each in whole)

    def __contains__(self, wanted: object) -> bool:
        return wanted in self._gone or (wanted in self._now and wanted not in self._new)

    def __iter__(self) -> Iterator[Key]:
        yield from self._gone
        yield from (row for row in self._now if row not in self._new)

    def __len__(self) -> int:
        return sum(1 for _ in self)
