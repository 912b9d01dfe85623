"""A stream of server-sent events to one subscriber: missed events, then new ones.

`send` waits while the client does not read, and meanwhile the subscriber's queue fills up to its
bound.  A client that reads nothing for a while is disconnected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from starlette.types import Receive, Scope, Send

from everlog.serve.events import Follower, Hub, event
from everlog.serve.service import Bounds

_CHUNK = 64 << 10  # bytes per send


class EventStream:
    """The answer to `GET /changes`."""

    def __init__(self, hub: Hub, follower: Follower, first: Iterator[bytes], bounds: Bounds) -> None:
        self._hub, self._follower, self._first, self._bounds = hub, follower, first, bounds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(self._until_gone(receive))
        try:
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            with suppress(TimeoutError):  # the client reads nothing: close the connection
                await self._send(send, b"retry: 2000\n\n")
                await self._all(send)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            self._hub.remove(self._follower)

    async def _all(self, send: Send) -> None:
        follower = self._follower
        for part in self._first:
            await self._send(send, part)
            await asyncio.sleep(0)  # let other tasks run during a large snapshot
            if follower.ended == "gone":
                return
            if follower.lagged:  # the client needs another snapshot: the rest of this one is useless
                break
        while True:
            step = self._hub.step  # first: all events up to this step are in the queue
            part = follower.take(_CHUNK)
            if part:
                await self._send(send, part)
            elif follower.lagged:
                message = "you read too slowly: reconnect with the id of the last event, or for a snapshot"
                await self._send(send, event("lagged", {"step": self._hub.step, "message": message}))
                return
            elif follower.ended:
                if follower.ended != "gone":
                    await self._send(send, event("end", {"message": follower.ended}))
                return
            else:
                try:
                    async with asyncio.timeout(self._bounds.heartbeat):
                        await follower.arrived.wait()
                except TimeoutError:  # a comment, and the position: an id without data is not an event
                    await self._send(send, f": all is well\nid: {self._hub.label(step)}\n\n".encode())

    async def _send(self, send: Send, part: bytes) -> None:
        """Send a part; TimeoutError if the client does not read it."""
        async with asyncio.timeout(self._bounds.stalled):
            await send({"type": "http.response.body", "body": part, "more_body": True})

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._follower.end("gone")
