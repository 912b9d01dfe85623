"""A request from its parameters to the bytes of its answer, without HTTP.

The application (`app`), tools of agents (`everlog.agents`) and the playground run
operations in this way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from everlog.serve.errors import ApiError
from everlog.serve.jobs.reading import Call
from everlog.serve.jobs.result_jobs import FileAnswer
from everlog.serve.requests.json_schema import Test, misfit
from everlog.serve.requests.routes import Operation, Parameter
from everlog.serve.service import Service
from everlog.serve.wire import answer, dumped, parsed, shortened

_ENVELOPE = 64 << 10  # bytes of an answer besides its rows
_INTEGER = re.compile(r"-?[0-9]{1,25}")


def call_of(
    operation: Operation,
    path: Mapping[str, str],
    items: Iterable[tuple[str, str]],
    headers: Mapping[str, str],
) -> Call:
    """A request with its validated parameters; ApiError if one is wrong."""
    query: dict[str, Any] = {}
    given: dict[str, list[str]] = {}
    for name, value in items:
        given.setdefault(name, []).append(value)
    for parameter in operation.parameters:
        if parameter.place == "path":
            values = [path[parameter.name]]
        elif parameter.place == "header":
            header = headers.get(parameter.name)
            values = [] if header is None else [header]
        else:
            values = given.pop(parameter.name, [])
        if values:
            query[parameter.name] = _value(parameter, values)
        elif parameter.required:
            raise ApiError(400, "bad-parameter", f"the parameter `{parameter.name}` is missing")
        elif "default" in parameter.shape:
            query[parameter.name] = parameter.shape["default"]
    if given:
        known = ", ".join(p.name for p in operation.parameters if p.place == "query") or "none"
        raise ApiError(400, "bad-parameter", f"there is no parameter `{min(given)}`; use {known}")
    return Call(dict(path), query)


def _value(parameter: Parameter, values: list[str]) -> Any:
    """Convert a parameter's text according to its schema."""
    shape, where = parameter.shape, f"the parameter `{parameter.name}`"
    if shape["type"] == "array":
        return values
    if len(values) > 1:
        raise ApiError(400, "bad-parameter", f"{where} occurs {len(values)} times")
    value: Any = values[0]
    if shape["type"] == "integer" and _INTEGER.fullmatch(value):
        value = int(value)
    elif shape["type"] == "boolean" and value in ("true", "false"):
        value = value == "true"
    problem = misfit(shape, value, where)
    if problem is not None:
        raise ApiError(400, "bad-parameter", problem)
    return value


def performed(
    operation: Operation, service: Service, call: Call, data: bytes | None, test: Test
) -> bytes | FileAnswer:
    """Run the job of a request.

    The time limit covers parsing the body, and for a query its answer too.  A step has its own time
    limit, and after it nothing may fail: its answer is of bounded size.
    """
    assert operation.work is not None
    service.held.begin()
    if data is not None:
        with service.guard:
            call = Call(call.path, call.query, _checked(operation, data, test))
        del data
    if operation.writes:
        done = operation.work(service, call)
        try:
            written = answer(done, service.held.room)
        except (ApiError, MemoryError):  # the step is done: say so in the shortest form
            written = dumped(shortened(done))
    else:
        with service.guard:
            done = operation.work(service, call)
            if isinstance(done, FileAnswer):
                return done
            written = answer(done, service.held.room + _ENVELOPE)
    service.held.take(len(written))
    return written


def _checked(operation: Operation, data: bytes, test: Test) -> Any:
    body = parsed(data)
    if not test(body):
        problem = misfit(operation.body or {}, body)
        assert problem is not None
        raise ApiError(400, "bad-request", problem)
    return body
