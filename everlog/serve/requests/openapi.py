"""The description of the service, OpenAPI 3.1, generated from the table of routes."""

from __future__ import annotations

from typing import Any

from everlog._version import __version__
from everlog.serve.requests.routes import PREFIX, Operation, Parameter
from everlog.serve.requests.schemas import COMPONENTS, ref

_ABOUT = """A Datalog program that stays current: queries, steps, rules, reasons, and changes as they happen.
Every answer shows one state, that after `step`. An error has a `code` for programs and a `message`."""


def description(operations: tuple[Operation, ...], token: bool) -> dict[str, Any]:
    """The description as an object for JSON; `token`: whether one is needed."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(PREFIX + operation.path, {})[operation.method.lower()] = _described(operation, token)
    components: dict[str, Any] = {"schemas": COMPONENTS}
    if token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "everlog", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": components,
    }


def _described(operation: Operation, token: bool) -> dict[str, Any]:
    media = ("text/event-stream",) if operation.events else operation.media
    failed = {"description": "Refused.", "content": {"application/json": {"schema": ref("Error")}}}
    out: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.about,
        "responses": {
            "200": {"description": "Done.", "content": {each: {"schema": operation.answer} for each in media}},
            "4XX": failed,
            "5XX": failed,
        },
    }
    if operation.parameters:
        out["parameters"] = [_parameter(parameter) for parameter in operation.parameters]
    if operation.body is not None:
        out["requestBody"] = {"required": True, "content": {"application/json": {"schema": operation.body}}}
    if token and not operation.open:
        out["security"] = [{"token": []}]
    return out


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.about,
        "schema": parameter.shape,
    }
