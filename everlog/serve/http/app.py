"""The ASGI application: from requests to jobs, and from answers to responses.

A request becomes a job of the main thread: there its body is parsed and validated, and the answer
is encoded, within the limits of the request.  Requests that need no database (health, description)
are answered by the event loop itself, however long the queue is; so nothing here may take long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from everlog._version import __version__
from everlog.serve.errors import ApiError, error_answer
from everlog.serve.events import Interest
from everlog.serve.http.access import AccessControl, AccessRules
from everlog.serve.http.static import static_files
from everlog.serve.http.streaming import EventStream
from everlog.serve.jobs.job_queue import JobQueue
from everlog.serve.jobs.reading import Call
from everlog.serve.jobs.result_jobs import FileAnswer
from everlog.serve.requests.json_schema import Test, quick_test
from everlog.serve.requests.openapi import description
from everlog.serve.requests.performing import call_of, performed
from everlog.serve.requests.routes import PREFIX, Operation, operations
from everlog.serve.service import Service
from everlog.serve.wire import dumped

_SLOWEST = 30.0  # seconds in which a body must arrive
_BODIES = 8  # bodies of the largest size that may be held at once
_CHUNK = 64 << 10  # bytes of an answer per send
_SLOWEST_READER = 64 << 10  # bytes a second: a slower client loses its connection


class _BodyBudget:
    """A bound on the bytes of all bodies that are not answered yet."""

    def __init__(self, most: int) -> None:
        self.most, self.total = most, most * _BODIES
        self.held = 0

    async def read(self, request: Request) -> bytes:
        """Read a body; `release` returns its bytes to the budget."""
        data = bytearray()
        request.state.held = 0
        async for part in request.stream():
            data += part
            self.held += len(part)
            request.state.held += len(part)
            if len(data) > self.most:
                raise ApiError(413, "body-too-large", f"the body has more than {self.most} bytes")
            if self.held > self.total:
                raise ApiError(503, "busy", "too many large requests are waiting: try again later")
        return bytes(data)

    def release(self, request: Request) -> None:
        self.held -= getattr(request.state, "held", 0)


def application(service: Service, jobs: JobQueue, access: AccessRules) -> ASGIApp:
    """The application with all routes."""
    table = operations(service.bounds)
    described = dumped(description(table, access.token is not None))
    own: dict[str, Callable[[Request, Call], Awaitable[Any]]] = {
        "health": partial(_health, jobs),
        "describe": partial(_describe, described),
        "changes": partial(_changes, service, jobs),
    }
    bodies = _BodyBudget(service.bounds.body)
    routes = [
        Route(
            PREFIX + operation.path.replace("{name}", "{name:path}"),
            partial(_answer, operation, service, jobs, bodies, own.get(operation.name), _test(operation)),
            methods=[operation.method],
        )
        for operation in table
    ]
    routes += [Route(path, partial(_static, file)) for path, file in static_files().items()]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refused, Exception: _refused})
    return AccessControl(app, access, {PREFIX + operation.path for operation in table if operation.open})


def _test(operation: Operation) -> Test:
    return quick_test(operation.body or {})


async def _answer(
    operation: Operation,
    service: Service,
    jobs: JobQueue,
    bodies: _BodyBudget,
    own: Callable[[Request, Call], Awaitable[Any]] | None,
    test: Test,
    request: Request,
) -> Any:
    try:
        call = call_of(operation, request.path_params, request.query_params.multi_items(), request.headers)
        if own is not None:
            return await own(request, call)
        data = None if operation.body is None else await _body(bodies, request)
        job = partial(performed, operation, service, call, data, test)
        del data
        done = await jobs.do(job)
        return Paced(done, service) if isinstance(done, bytes) else FileStream(done, service)
    except ClientDisconnect:
        return Response(status_code=400)
    except Exception as error:
        return _problem(error_answer(error))
    finally:
        bodies.release(request)


class Paced(Response):
    """An answer sent in pieces; a client that reads too slowly is disconnected."""

    def __init__(self, body: bytes, service: Service) -> None:
        self._service = service
        super().__init__(body, 200, media_type="application/json", headers={"cache-control": "no-store"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytes(self.body)
        try:
            patience = self._service.bounds.stalled + len(body) / _SLOWEST_READER
            async with asyncio.timeout(patience):
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                for start in range(0, len(body) or 1, _CHUNK):
                    more = start + _CHUNK < len(body)
                    part = body[start : start + _CHUNK] if more or start else body
                    await send({"type": "http.response.body", "body": part, "more_body": more})
        finally:
            self._service.held.release(len(body))


class FileStream(Response):
    """A file, read and sent in pieces; a client that reads too slowly is disconnected."""

    def __init__(self, found: FileAnswer, service: Service) -> None:
        self._found, self._service = found, service
        super().__init__(None, 200, media_type=found.media)
        self.headers["content-length"] = str(found.size)
        self.headers["content-disposition"] = f'attachment; filename="{found.name}"'
        self.headers["cache-control"] = "no-store"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        patience = self._service.bounds.stalled + self._found.size / _SLOWEST_READER
        with self._found.file as source:
            async with asyncio.timeout(patience):
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                while part := source.read(_CHUNK):
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b""})


def _response(status: int, body: bytes) -> Response:
    return Response(body, status, media_type="application/json", headers={"cache-control": "no-store"})


def _problem(error: ApiError) -> Response:
    response = _response(error.status, dumped(error.body()))
    if error.status == 503:
        response.headers["retry-after"] = "1"
    return response


async def _refused(request: Request, error: Exception) -> Response:
    """The answer to a request without a route."""
    if not isinstance(error, HTTPException):
        return _problem(error_answer(error))
    if error.status_code == 405:
        response = _problem(ApiError(405, "method", f"{request.url.path} does not support {request.method}"))
        response.headers["allow"] = (error.headers or {}).get("Allow", "")
        return response
    if error.status_code == 404:
        where = f"{PREFIX}/openapi.json lists the routes"
        return _problem(ApiError(404, "not-found", f"there is no {request.url.path[:200]}; {where}"))
    return _problem(ApiError(error.status_code, "bad-request", str(error.detail)))


# ── parameters and bodies ────────────────────────────────────────────────────────────────────


async def _body(bodies: _BodyBudget, request: Request) -> bytes:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ApiError(415, "media-type", "send JSON, with `Content-Type: application/json`")
    try:
        async with asyncio.timeout(_SLOWEST):
            return await bodies.read(request)
    except TimeoutError:
        raise ApiError(408, "timeout", f"the body has not arrived within {_SLOWEST:g} s") from None


# ── answers of the event loop ────────────────────────────────────────────────────────────────


async def _health(jobs: JobQueue, request: Request, call: Call) -> Response:
    status = "stopping" if jobs.closed else "ok"
    busy = round(jobs.busy_for, 3)
    return _response(
        200, dumped({"status": status, "version": __version__, "waiting": jobs.waiting, "busy": busy})
    )


async def _describe(described: bytes, request: Request, call: Call) -> Response:
    return _response(200, described)


async def _changes(service: Service, jobs: JobQueue, request: Request, call: Call) -> EventStream | Response:
    if request.method == "HEAD":  # there is no stream to follow
        return Response(media_type="text/event-stream")
    names = call.query.get("relation")
    interest = Interest(None if names is None else frozenset(names), call.as_text)
    last = call.query.get("Last-Event-ID")
    loop = asyncio.get_running_loop()
    begin = partial(service.follow, interest, call.query["snapshot"], last, loop)
    follower, first = await jobs.do(begin)
    return EventStream(service.hub, follower, first, service.bounds)


async def _static(file: tuple[bytes, str], request: Request) -> Response:
    data, kind = file
    return Response(data, media_type=kind, headers={"cache-control": "no-cache"})
