"""The loop: transactions of sources become steps, whose changes go to sinks.

One thing happens at a time.  A transaction is resolved to updates, applied as one step with the
position of its source, and written to every sink; then its source may drop it.  Wherever this is
interrupted, the next run continues correctly:

- an applied step is not read again, since its position is stored with it (for a database in a
  file), or everything is read again from the beginning (for one in memory);
- a sink that has missed a step notices it when it is opened: it compares its content with the
  database.

A database that reads from the beginning passes through old states, which the sinks have already
left behind.  These are not written: sinks are opened when the sources have reached the sinks'
positions.
"""

from __future__ import annotations

import select
from collections.abc import Sequence

from everlog.api.database import Database
from everlog.core.program.executor import InsertOnly
from everlog.core.program.values import EvaluationError
from everlog.files.rejects import BadRow, Refuse, abort
from everlog.files.text_values import FactsError
from everlog.streams.model import Sink, Source, Transaction
from everlog.streams.resolve import Resolver

_PAUSE = 0.05  # seconds between two polls of what cannot be waited on


class Follower:
    """A database between sources and sinks; each source has its resolver."""

    def __init__(
        self,
        database: Database,
        sources: Sequence[tuple[Source, Resolver]],
        sinks: Sequence[Sink],
        refuse: Refuse = abort,
    ) -> None:
        self.database = database
        self._sources, self._sinks = list(sources), list(sinks)
        self._refuse = refuse
        self._positions = dict(database.positions)
        self._sinks_are_open = False
        self.steps = 0

    def run(self) -> None:
        """Run until every source has ended; after an error nothing is half applied."""
        for source, _ in self._sources:
            source.open(self.database)
        self._open_sinks_if_there()
        while self._sources:
            if not self._round():
                self._idle()
        self._open_sinks()
        self._settle()

    def _round(self) -> bool:
        """Take what has arrived; False if there was nothing and no source has ended."""
        busy = False
        for entry in list(self._sources):
            source, resolver = entry
            transactions = source.take()
            if transactions is None:
                self._sources.remove(entry)
                busy = True
            for transaction in transactions or ():
                busy = True
                self._step(source, resolver, transaction)
            if transactions and transactions[-1].position is not None:
                source.done(transactions[-1].position)
        return busy

    def _step(self, source: Source, resolver: Resolver, transaction: Transaction) -> None:
        positions = {} if transaction.position is None else {source.name: transaction.position}
        try:
            updates = resolver.updates(transaction)
            changes = self.database.apply(updates, positions=positions)
        except (EvaluationError, InsertOnly) as problem:
            self._give_up(transaction, problem)
            updates, changes = [], self.database.apply([], positions=positions)
        self.steps += bool(updates)
        self._positions.update(positions)
        if self._sinks_are_open:
            for sink in self._sinks:
                sink.write(changes, dict(self._positions))
        self._open_sinks_if_there()

    def _give_up(self, transaction: Transaction, problem: Exception) -> None:
        """Handle a step on which a rule fails: raise, or reject all of its changes."""
        reason = f"the transaction cannot be applied: {problem}"
        if transaction.whole or not transaction.changes:
            raise FactsError(f"{transaction.place}: {reason}") from problem
        for change in transaction.changes:
            values = change.after if change.after is not None else change.before
            self._refuse(BadRow(transaction.place, change.number, reason, values, transaction.counted))

    # ── sinks ────────────────────────────────────────────────────────────────────────────────

    def _open_sinks_if_there(self) -> None:
        """Open the sinks, once every source has begun and reached the sinks' positions."""
        if self._sinks_are_open:
            return
        if not any(self._is_behind(source, sink) for source, _ in self._sources for sink in self._sinks):
            self._open_sinks()

    def _is_behind(self, source: Source, sink: Sink) -> bool:
        if not source.has_begun():
            return True
        then = sink.positions.get(source.name)
        return then is not None and source.is_before(self._positions.get(source.name), then)

    def _open_sinks(self) -> None:
        if not self._sinks_are_open:
            self._sinks_are_open = True
            for sink in self._sinks:
                sink.open(self.database)

    def _settle(self) -> None:
        for sink in self._sinks:
            sink.settle(dict(self._positions))

    # ── waiting ──────────────────────────────────────────────────────────────────────────────

    def _idle(self) -> None:
        """Wait for input, and let sinks handle their clients."""
        if self._sinks_are_open:
            self._settle()
        sources = [source.fileno() for source, _ in self._sources]
        ends = [(sink.fileno(), sink) for sink in self._sinks if self._sinks_are_open]
        sinks = {end: sink for end, sink in ends if end is not None}
        waited_on = [end for end in sources if end is not None]
        timeout = None if len(waited_on) == len(sources) else _PAUSE
        ready, _, _ = select.select([*waited_on, *sinks], [], [], timeout)
        for end in ready:
            if end in sinks:
                sinks[end].attend(self.database)
