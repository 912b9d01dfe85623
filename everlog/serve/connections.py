"""Connections that wait for a request, but not for ever.

A service has so many connections and no more.  Uvicorn closes one that is idle after an answer; but not one that
never sends a request, or sends its head byte by byte, or goes on sending what nobody reads: a few hundred of those
would keep everybody else out.  So a connection on which nothing is being answered has a deadline.

Reads: uvicorn.  Read by: everlog.serve.server.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """One connection.  `patience` is how long, in seconds, it may take to send the head of a request."""

    patience = 10.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def _look(self) -> None:
        """There is a deadline as long as nothing is being answered, whatever arrives."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.patience, self.timeout_keep_alive_handler)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
