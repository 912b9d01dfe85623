"""Limits on connections that wait for a request: in time and in number.

Uvicorn closes a connection that is idle after an answer; but not one that never sends a request, or
sends its head or its body byte by byte, or keeps sending unread data: a few hundred of those would
lock out all others.  So a connection without a request in progress has a deadline.  And the number
of connections without a complete request is bounded: if more come, the oldest are closed, but only
after their data was read.  So a client that sends its request at once is answered.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_SENDING = 256  # connections without a complete request
MOST = 1500  # connections
_MOMENT = 0.1  # seconds for which there may be more of them


class Connection(H11Protocol):
    """One connection; `patience` is its time in seconds to send the head of a request.

    Invariants:
      I1  `sending` holds the connections without a complete request, the oldest first;
      I2  it has at most MOST_SENDING, except for a moment.
    """

    patience = 10.0
    sending: ClassVar[dict[Connection, None]] = {}
    relief: ClassVar[list[asyncio.TimerHandle]] = []  # the timer that closes some, if there are too many
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._look()
        if len(self.connections) > MOST:
            self._close_oldest()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.sending.pop(self, None)
        self._forget()

    def _look(self) -> None:
        """Set a deadline while no request is in progress, whatever arrives."""
        is_answered = self.cycle is not None and not self.cycle.response_complete
        if is_answered:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.patience, self.timeout_keep_alive_handler)
        if is_answered and not self.cycle.more_body:
            self.sending.pop(self, None)
        elif self not in self.sending and not self.transport.is_closing():
            self.sending[self] = None
            if len(self.sending) > MOST_SENDING and not self.relief:
                self.relief.append(self.loop.call_later(_MOMENT, self._relieve))

    def _relieve(self) -> None:
        self.relief.clear()
        while len(self.sending) > MOST_SENDING:
            self._close_oldest()

    def _close_oldest(self) -> None:
        """Close the oldest connections without a request in progress."""
        oldest = next(iter(self.sending), self)
        self.sending.pop(oldest, None)
        oldest.transport.abort()

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
