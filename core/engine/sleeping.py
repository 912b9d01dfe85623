"""An engine that has not begun: relations are read from where they are stored.

To restore or to compute all relations takes time and memory in proportion to them.  A look-up
should not wait for that, so a sleeping engine answers reads of stored relations from their rows.
Everything else wakes it: it loads what is stored, becomes an `Engine`, and goes on as one.

Invariants:
  I1  asleep or awake, a relation has the same facts: a step needs an engine that is awake;
  I2  if waking fails, the engine sleeps as before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from everlog.core.engine.demands import Demands
from everlog.core.engine.engine import Engine
from everlog.core.engine.planning.systems import with_auxiliaries
from everlog.core.engine.stored_answers import StoredAnswers, TooManyLookups
from everlog.core.engine.stored_rows import Stored, Unreadable
from everlog.core.engine.usage import Usage
from everlog.core.program import Program, Row, Rule, Value
from everlog.core.program.values import EvaluationError
from everlog.core.runtime.guards import Guard, Limits, Progress

SCANS = 2  # times all rows are read for lookups before an engine with indexes pays


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

    def answers(
        self, rules: Sequence[Rule], parameters: Row, other: Callable[[], Iterator[Row]]
    ) -> Iterator[Row] | None:
        """The answers of a query, each once; None if look-ups alone do not find them.

        `other` finds them in an engine: all those that are left when look-ups have cost too much.
        """
        found = StoredAnswers(self.program, self._stored.rows, self._left_to_scan).of(rules, parameters)
        return None if found is None else self._each_once(found, other)

    def _each_once(self, found: Iterator[Row], other: Callable[[], Iterator[Row]]) -> Iterator[Row]:
        seen: set[Row] = set()
        try:
            for row in found:
                if row not in seen:
                    seen.add(row)
                    yield row
            return
        except (Unreadable, TooManyLookups, EvaluationError):
            pass
        if self.is_asleep:
            self.wake()
        yield from (row for row in other() if row not in seen)

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
