"""One step through the units: whose turn is next, what changed, how to undo it.

Code that changes the state first records how to undo it, in a way that works whether or not the
change was made.  So an error, a limit or Ctrl-C in the middle of a step restores the state before.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from attrs import define, field

from everlog.core.engine.stepping.store import Store
from everlog.core.runtime.guards import Guard
from everlog.core.storage.shape import Facts
from everlog.core.storage.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlog.core.engine.keepers.keeper import Keeper

Listener = Callable[["Step", Facts], None]


@define
class Readers:
    """The listeners of a relation's change, by event and time.

    `filtered`: some rule reads the relation twice and needs the change as a table.
    """

    losses: list[Listener] = field(factory=list)  # on deletes, before the table changes
    late_gains: list[Listener] = field(factory=list)  # on deletes, after it (negated atoms)
    early_losses: list[Listener] = field(factory=list)  # on inserts, before it (negated atoms)
    gains: list[Listener] = field(factory=list)  # on inserts, after it
    filtered: bool = False

    def of(self, event: str, sign: int) -> list[Listener]:
        if event == "delete":
            return self.losses if sign < 0 else self.late_gains
        return self.early_losses if sign < 0 else self.gains


_NO_READERS = Readers()


class Step:
    """Invariant: running `undo` from end to beginning restores the state before."""

    __slots__ = ("anew", "changes", "guard", "keepers", "queue", "readers", "store", "undo")

    def __init__(self, store: Store, keepers: Sequence[Keeper], readers: dict[str, Readers], guard: Guard) -> None:
        self.store, self.keepers, self.readers, self.guard = store, keepers, readers, guard
        self.queue: list[int] = []
        self.undo: list[tuple[Callable[..., object], tuple[object, ...]]] = []
        self.changes: dict[str, tuple[Facts, Facts]] = {}  # relation → facts that went, that came
        self.anew: list[Keeper] = []  # those that gave up following the change

    def again(self) -> None:
        """Begin another step."""
        self.undo.clear()
        self.queue.clear()
        self.changes = {}
        self.anew = []

    def wake(self, keeper: Keeper) -> None:
        """Queue the keeper for a turn."""
        if not keeper.waiting:
            keeper.waiting = True
            heappush(self.queue, keeper.number)

    def all_awake(self) -> None:
        """Drop the queue: no keeper waits for a turn any more."""
        for number in self.queue:
            self.keepers[number].waiting = False
        self.queue.clear()

    def run(self) -> None:
        queue, keepers = self.queue, self.keepers
        while queue:
            keeper = keepers[heappop(queue)]
            keeper.waiting = False
            keeper.turn(self)

    def spread(self, relation: str, gone: Facts, new: Facts, applied: bool = False) -> None:
        """Apply a change to a table, and call the readers of its relation.

        With `applied` the table is in its new state already, and no reader needs the old one.
        """
        self.changes[relation] = (gone, new)
        readers, table = self.readers.get(relation, _NO_READERS), self.store.tables[relation]
        delta = self.store.delta(relation) if readers.filtered else None  # the change as a table
        assert not (applied and delta is not None), "such rules need the state of before"
        if not applied:
            self.undo.append((put_back, (table, gone, new)))
        if gone:
            self._tell(gone, readers.losses, None if applied else table.remove, readers.late_gains, delta)
        if new:
            self._tell(new, readers.early_losses, None if applied else table.merge, readers.gains, delta)

    def _tell(
        self,
        facts: Facts,
        early: list[Listener],
        change: Callable[[Facts], None] | None,
        late: list[Listener],
        delta: Table | None,
    ) -> None:
        try:
            if delta is not None:
                delta.merge(facts)
            for listener in early:
                listener(self, facts)
            if change is not None:
                shield = self.guard.shield
                shield.held = True
                change(facts)
                shield.release()
            for listener in late:
                listener(self, facts)
        finally:
            if delta is not None:
                delta.clear()

    def roll_back(self) -> None:
        """Restore the state before the step."""
        self.queue.clear()
        for delta in self.store.deltas.values():
            delta.clear()
        for keeper in self.keepers:
            keeper.waiting = False
            keeper.forget()
        self.undo_until(0)

    def undo_until(self, mark: int) -> None:
        """Undo what was recorded since `undo` had this length."""
        while len(self.undo) > mark:
            function, arguments = self.undo[-1]
            function(*arguments)
            self.undo.pop()


def put_back(table: Table, gone: Facts, new: Facts) -> None:
    """Undo the change of a table, whether or not it was made."""
    if new:
        table.remove(new)
    if gone:
        table.merge(gone)
