"""Answers of a service that `everlog serve` runs, here or elsewhere."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import Any

from anyio import to_thread

from everlog.agents.answering import Refused, refusal
from everlog.serve.requests.routes import OPERATIONS
from everlog.service_client import ServiceClient, ServiceError

_ROUTES = {operation.name: operation for operation in OPERATIONS}
_SLOWEST = 30.0  # seconds that the service may take
_LEAST = 0.5  # seconds to connect and to learn where the service is


class RemoteService:
    """A service that answers over HTTP."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def ask(self, operation: str, body: object = None, **query: object) -> dict[str, Any]:
        route = _ROUTES[operation]
        send = partial(self._client.call, route.method, route.path, body, _SLOWEST, **query)
        try:
            return await to_thread.run_sync(send, abandon_on_cancel=True)
        except ServiceError as problem:
            raise refusal(problem.error) from None

    async def changes(self, relations: Collection[str], after: str | None, seconds: float) -> dict[str, Any]:
        try:
            return await to_thread.run_sync(
                partial(self._changes, list(relations), after, seconds), abandon_on_cancel=True
            )
        except ServiceError as problem:
            raise refusal(problem.error) from None

    def _changes(self, relations: list[str], after: str | None, seconds: float) -> dict[str, Any]:
        """Follow until a step has changed something, or the time is over.

        After `ready` come the steps of the future; before it those that were missed.
        """
        end = time.monotonic() + seconds
        steps: list[dict[str, Any]] = []
        at, missed, ready = after or "", False, False
        with (
            suppress(TimeoutError),  # nothing came: that is an answer, too
            self._client.events(max(seconds, _LEAST), after, relation=relations) as events,
        ):
            for kind, number, data in events:
                at = number or at
                if kind == "change":
                    steps.append({"step": data["step"], "changes": data["changes"]})
                elif kind == "end":
                    raise ServiceError({"message": f"the service has ended: {data.get('message', '')}"})
                missed = missed or kind in ("reset", "lagged")
                ready = ready or kind == "ready"
                if ready and (steps or missed or time.monotonic() >= end):
                    break
        return {"steps": steps, "after": at, "missed": missed}


def connected(url: str, token: str) -> RemoteService:
    """The service at an address; Refused if it does not answer."""
    client = ServiceClient(url, token)
    try:
        client.call("GET", "/health", seconds=5.0)
        client.call("GET", "/relations", seconds=_SLOWEST)
    except ServiceError as problem:
        raise Refused(f"cannot use the service: {problem}") from None
    return RemoteService(client)
