"""A client of `everlog serve`, with the standard library alone: for editors and agents."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.parse import urlencode

from attrs import frozen


class ServiceError(Exception):
    """The service refused a request, or did not answer; `error` is its answer."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__(str(error.get("message", "no answer")))


@frozen
class ServiceClient:
    """A service at an address, with its token."""

    url: str
    token: str = ""

    def call(
        self, method: str, path: str, body: object = None, seconds: float = 30.0, **query: object
    ) -> dict[str, Any]:
        """The answer to a request; ServiceError if there is none."""
        try:
            with self._sent(method, path, body, seconds, {}, query) as response:
                found = json.load(response)
        except ValueError:  # not JSON, or not an address
            found = None
        except (OSError, HTTPException) as problem:
            raise ServiceError({"message": f"{self.url}: {problem}"}) from None
        if not isinstance(found, dict):
            raise ServiceError({"message": f"{self.url} does not answer as everlog does"})
        return found

    @contextmanager
    def events(
        self, seconds: float, last: str | None = None, **query: object
    ) -> Iterator[Iterator[tuple[str, str, Any]]]:
        """The changes as (kind, id, data); TimeoutError when none came for so long."""
        headers = {} if last is None else {"Last-Event-ID": last}
        try:
            with self._sent("GET", "/changes", None, seconds, headers, query) as response:
                yield _events(response)
        except TimeoutError:
            raise
        except (OSError, HTTPException) as problem:
            raise ServiceError({"message": f"{self.url}: {problem}"}) from None

    @contextmanager
    def _sent(
        self,
        method: str,
        path: str,
        body: object,
        seconds: float,
        headers: dict[str, str],
        query: dict[str, object],
    ) -> Iterator[HTTPResponse]:
        if self.token:
            headers = {**headers, "Authorization": f"Bearer {self.token}"}
        asked = urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
        address = f"{self.url.rstrip('/')}/api/v1{path}{'?' if asked else ''}{asked}"
        if not address.startswith(("http://", "https://")):
            raise ServiceError({"message": f"`{self.url}` is not the address of a service: http://…"})
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **headers}
        request = urllib.request.Request(address, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as response:
                yield response
        except urllib.error.HTTPError as problem:
            raise ServiceError(_error_in(problem)) from None


def _error_in(problem: urllib.error.HTTPError) -> dict[str, Any]:
    """The error in an answer, which may come from another program than ours."""
    try:
        found = json.load(problem)["error"]
        return found if isinstance(found, dict) else {"message": str(found)}
    except (OSError, ValueError, KeyError, TypeError):
        return {"message": f"{problem.url}: {problem}"}


def _events(response: HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    """The events of a stream; a heartbeat has no kind and no data."""
    kind = number = ""
    for line in response:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "id":
            number = value
        elif name == "data":
            yield kind, number, json.loads(value)
        elif value:  # a comment: the place of the last event follows
            yield "", "", None
