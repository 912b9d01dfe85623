"""The service in a browser: a program in memory, and requests from the page beside it.

The playground runs everlog by Pyodide in a worker.  Its page is the workbench; the worker hands
each request of the page to `BrowserService`, which answers as `everlog serve` does, and after each
request the events of its steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote

from attrs import frozen

from everlog.api.database import Database
from everlog.serve.errors import ApiError, error_answer
from everlog.serve.events import Follower, Interest
from everlog.serve.requests.json_schema import quick_test
from everlog.serve.requests.performing import call_of, performed
from everlog.serve.requests.routes import Operation, operations
from everlog.serve.service import Bounds, Service
from everlog.serve.wire import dumped

_TAKEN = 64 << 20  # bytes of events that are given at once
_ROOM = 8 << 20  # bytes of events that wait


@frozen
class Answered:
    """The answer to a request."""

    status: int
    media: str
    body: bytes


class BrowserService:
    """A program, and all operations of the service on it.

    >>> service = BrowserService(".decl edge(x:number, y:number)", "edge(1, 2).", "try.dl")
    >>> service.answer("POST", "/query", {}, b'{"query": "edge(1, x)"}').body[:9]
    b'{"step":1'
    >>> b"event: ready" in service.events()
    True
    >>> service.answer("GET", "/relations?x=1", {}, None).status
    400
    """

    def __init__(self, text: str, facts: str, name: str) -> None:
        """Run a program, then insert facts, written as in a program; raises their errors."""
        database = Database.from_text(text, file=name)
        self._service = Service(database, Bounds(kept=1_000_000, room=_ROOM), name)
        if facts.strip():
            database.apply(_as_step(facts))
        self._table = [(_pattern(each.path), each) for each in operations(self._service.bounds)]
        self._follower, first = self._service.follow(Interest(None, as_text=True), False, None, None)
        self._first = b"".join(first)

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Answered:
        """The answer to a request; never raises."""
        try:
            path, _, query = target.partition("?")
            operation, found = self._route(method, path)
            call = call_of(operation, found, parse_qsl(query, keep_blank_values=True), headers)
            data = None if operation.body is None else body or b""
            done = performed(operation, self._service, call, data, quick_test(operation.body or {}))
            if isinstance(done, bytes):
                self._service.held.release(len(done))
                return Answered(200, "application/json", done)
            with done.file as source:
                return Answered(200, done.media, source.read())
        except Exception as error:
            refused = error_answer(error)
            return Answered(refused.status, "application/json", dumped(refused.body()))

    def events(self) -> bytes:
        """The events since the last call, as the stream `/changes` has them."""
        first, self._first = self._first, b""
        if self._follower.lagged:  # more than the room: the page begins anew
            self._follower = self._restarted()
            return first
        return first + self._follower.take(_TAKEN)

    def _restarted(self) -> Follower:
        hub = self._service.hub
        hub.remove(self._follower)
        follower, ready = self._service.follow(Interest(None, as_text=True), False, None, None)
        self._first = b"".join(ready)
        return follower

    def _route(self, method: str, path: str) -> tuple[Operation, dict[str, str]]:
        for pattern, operation in self._table:
            found = pattern.fullmatch(path)
            if found and operation.method == method and operation.work is not None:
                return operation, {name: unquote(value) for name, value in found.groupdict().items()}
        raise ApiError(404, "not-found", f"there is no {method} {path[:200]}")


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path).replace(r"\{name\}", "(?P<name>.+)"))


def _as_step(facts: str) -> str:
    """Facts, a line each, as a step inserts them; a line may begin with a sign.

    >>> _as_step("edge(1, 2).\\n// why\\n+edge(3, 4).")
    '+edge(1, 2).\\n// why\\n+edge(3, 4).'
    """
    lines = [line.strip() for line in facts.splitlines()]
    return "\n".join(line if not line or line.startswith(("//", "+", "-")) else f"+{line}" for line in lines)


def started(text: str, facts: str, name: str) -> tuple[BrowserService | None, Answered]:
    """Run a program: a service and its first answer, or None and the errors.

    >>> started(".decl edge(x:number)", "edg(1).", "try.dl")[1].body[:28]
    b'{"error":{"code":"bad-fact",'
    """
    try:
        service = BrowserService(text, facts, name)
    except Exception as error:
        refused = error_answer(error)
        return None, Answered(refused.status, "application/json", dumped(refused.body()))
    return service, service.answer("GET", "/relations", {}, None)
