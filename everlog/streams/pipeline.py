"""Changes in, changes out: transactions of sources become steps of a database, and sinks hear what
they changed.

One thing happens at a time.  A transaction is resolved to updates, applied as one step, with the
position of its source, and told to every sink; only then does the source hear that it is done.
Whatever stops this, and wherever, the next run goes on rightly:

- a step that was applied is not read again, since its position was kept with it (where the database
  is in a file), or all is read again from the beginning (where it is not);
- a sink that has not heard of a step finds out when it is opened: it compares what it has with the
  database.

A database that is read again from the beginning has old states on its way that a sink has left
behind.  They are not told: sinks are opened when the sources have come to where the sinks were.
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

_PAUSE = 0.05  # seconds between two looks at what cannot be waited on


class Follower:
    """A database between sources and sinks; each source comes with what its rows mean."""

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
        self._telling = False
        self.steps = 0

    def run(self) -> None:
        """Follow until every source has ended.  Raises what cannot be gone past; nothing is half
        applied.
        """
        for source, _ in self._sources:
            source.open(self.database)
        self._open_sinks_if_there()
        while self._sources:
            if not self._round():
                self._idle()
        self._open_sinks()
        self._settle()

    def _round(self) -> bool:
        """Take what is there; whether there was anything, or a source has ended."""
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
        if self._telling:
            for sink in self._sinks:
                sink.write(changes, dict(self._positions))
        self._open_sinks_if_there()

    def _give_up(self, transaction: Transaction, problem: Exception) -> None:
        """A step on which a rule fails: an error, or all of its changes are rejected."""
        reason = f"the transaction cannot be applied: {problem}"
        if transaction.whole or not transaction.changes:
            raise FactsError(f"{transaction.place}: {reason}") from problem
        for change in transaction.changes:
            values = change.after if change.after is not None else change.before
            self._refuse(BadRow(transaction.place, change.number, reason, values, transaction.counted))

    # ── sinks ────────────────────────────────────────────────────────────────────────────────

    def _open_sinks_if_there(self) -> None:
        """Open the sinks, unless a source has yet to begin, or to come to where one of them was."""
        if self._telling:
            return
        if not any(self._is_behind(source, sink) for source, _ in self._sources for sink in self._sinks):
            self._open_sinks()

    def _is_behind(self, source: Source, sink: Sink) -> bool:
        if not source.has_begun():
            return True
        then = sink.positions.get(source.name)
        return then is not None and source.is_before(self._positions.get(source.name), then)

    def _open_sinks(self) -> None:
        if not self._telling:
            self._telling = True
            for sink in self._sinks:
                sink.open(self.database)

    def _settle(self) -> None:
        for sink in self._sinks:
            sink.settle(dict(self._positions))

    # ── waiting ──────────────────────────────────────────────────────────────────────────────

    def _idle(self) -> None:
        """Wait until there may be something, and give sinks the attention that they want."""
        if self._telling:
            self._settle()
        sources = [source.fileno() for source, _ in self._sources]
        ends = [(sink.fileno(), sink) for sink in self._sinks if self._telling]
        sinks = {end: sink for end, sink in ends if end is not None}
        waited_on = [end for end in sources if end is not None]
        timeout = None if len(waited_on) == len(sources) else _PAUSE
        ready, _, _ = select.select([*waited_on, *sinks], [], [], timeout)
        for end in ready:
            if end in sinks:
                sinks[end].attend(self.database)
