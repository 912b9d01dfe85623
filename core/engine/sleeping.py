"""An engine that has not begun: relations are read from where they are stored.

To restore or to compute all relations takes time and memory in proportion to them.  A look-up
should not wait for that, so a sleeping engine answers reads of stored relations from their rows.
Everything else wakes it: it loads what is stored, becomes an `Engine`, and goes on as one.

Invariants:
  I1  asleep or awake, a relation has the same facts: a step needs an engine that is awake;
  I2  if waking fails, the engine sleeps as before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from everlog.core.engine.demands import Demands
from everlog.core.engine.engine import Engine
from everlog.core.engine.planning.systems import with_auxiliaries
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.engine.usage import Usage
from everlog.core.program import Program, Row, Value
from everlog.core.runtime.guards import Guard, Limits, Progress

SCANS = 2  # times all rows are read for lookups before an engine with indexes pays


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


class SleepingEngine(Engine):
    """An engine until something needs more than stored rows."""

    is_asleep = True

    def __init__(
        self,
        program: Program,
        stored: Stored,
        *,
        limits: Limits | None = None,
        progress: Progress | None = None,
        strategies: Mapping[str, str] | None = None,
    ) -> None:
        self.program = with_auxiliaries(program, strategies or {})
        self.guard = Guard(limits or Limits(), progress)
        self.seal = None
        self.usage = Usage()
        self.moved, self.demands = {}, Demands(self)
        self._trial = None
        self._asked = dict(strategies or {})
        self._stored = stored
        self._left_to_scan = SCANS * sum(map(len, stored.rows.values()))

    def __getattr__(self, name: str) -> Any:
        """An attribute that only an awake engine has: wake, and return it."""
        if name.startswith("__"):
            raise AttributeError(name)
        self.wake()
        return getattr(self, name)

    def wake(self) -> None:
        """Become an engine: load all that is stored."""
        asleep, committed = dict(self.__dict__), self.guard.committed
        stored = self._stored
        given, kept = stored.load()
        self.__class__ = Engine  # type: ignore[assignment]
        try:
            with self.guard:
                self.seal = None
                self._start(self.program, given, kept)
        except BaseException:
            self.__class__ = SleepingEngine
            self.__dict__.clear()
            self.__dict__.update(asleep)
            raise
        finally:
            self.guard.committed = committed  # that of the step that has woken it
        self.seal, self.usage = asleep["seal"], asleep["usage"]
        del self._stored, self._left_to_scan
        stored.close()

    def doze(self) -> None:
        """End all reads of stored rows, which are closed."""
        self._stored.close()

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def stream(self, relation: str) -> Iterator[Row]:
        return iter(self.rows(relation))

    def view(self, relation: str) -> frozenset[Row]:
        return frozenset(self.rows(relation))

    def rows(self, relation: str) -> Iterable[Row]:
        stored = self._stored.rows.get(relation)
        if stored is None:
            return Engine.rows(self, relation)
        self.usage.read(relation, ())
        return self._sound(lambda: iter(stored), lambda: Engine.rows(self, relation))

    def size(self, relation: str) -> int:
        stored = self._stored.rows.get(relation)
        return Engine.size(self, relation) if stored is None else len(stored)

    def kept(self, relation: str) -> int:
        stored = self._stored.rows.get(relation)
        return Engine.kept(self, relation) if stored is None else len(stored)

    def given(self, relation: str) -> Collection[Row]:
        return self._stored.given.get(relation, ())

    def lookup(self, relation: str, bound: Mapping[int, Value]) -> Iterator[Row]:
        stored = self._stored.rows.get(relation)
        if stored is not None and not stored.is_found_by(bound):
            self._left_to_scan -= len(stored)
            if self._left_to_scan < 0:  # an index would have been cheaper
                stored = None
        if stored is None:
            self.wake()
            return Engine.lookup(self, relation, bound)
        self.usage.lookup(relation, bound)
        return self._sound(lambda: stored.matching(bound), lambda: Engine.lookup(self, relation, bound))

    def _sound(self, read: Callable[[], Iterator[Row]], other: Callable[[], Iterable[Row]]) -> Iterator[Row]:
        """Stored rows; if some are lost, an engine finds those that were not read yet."""
        seen = 0
        try:
            for row in read():
                yield row
                seen += 1
            return
        except Unreadable:
            past = set(islice(read(), seen))  # these could be read
        if self.is_asleep:  # no other thread has woken it in between
            self.wake()
        yield from (row for row in other() if row not in past)
