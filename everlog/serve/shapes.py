"""Values compared with their shapes: the part of JSON Schema that the description of the service uses.

The description says what a body looks like; here bodies are held to that very description, so that the two cannot
disagree.  What is told is the first thing that does not fit, and where.

Reads: nothing.  Read by: everlog.serve.app, everlog.serve.routes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_NAMES = {"object": "an object", "array": "an array", "integer": "an integer", "null": "null"}


def misfit(schema: Schema, value: Any, where: str = "the body") -> str | None:
    """What does not fit, or None.

    >>> step = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
    >>> misfit(step, {"text": "+n(1)."}), misfit(step, {"text": 7}), misfit(step, {"txt": ""})
    (None, '`text` is not a string', 'the body cannot have `txt`; known are text')
    """
    if "anyOf" in schema:
        problems = [misfit(each, value, where) for each in schema["anyOf"]]
        return None if None in problems else f"{where} is neither of {_alternatives(schema['anyOf'])}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(kind, value) for kind in kinds):
        return f"{where} is not {' or '.join(_NAMES.get(kind, f'a {kind}') for kind in kinds)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is none of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str):
        return _text_misfit(schema, value, where)
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        return None if low <= value <= high else f"{where} is not between {low} and {high}"
    if isinstance(value, list):
        found = (misfit(schema.get("items", {}), item, f"{where}[{n}]") for n, item in enumerate(value))
        return next((problem for problem in found if problem), None)
    return _object_misfit(schema, value, where) if isinstance(value, dict) else None


def _is(kind: str, value: Any) -> bool:
    return isinstance(value, _TYPES[kind]) and (not isinstance(value, bool) or kind == "boolean")


def _text_misfit(schema: Schema, value: str, where: str) -> str | None:
    if len(value) < schema.get("minLength", 0):
        return f"{where} is empty"
    if len(value) > schema.get("maxLength", len(value)):
        return f"{where} is longer than {schema['maxLength']} characters"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return f"{where} is not of the form {schema['pattern']}"
    return None


def _object_misfit(schema: Schema, value: Mapping[str, Any], where: str) -> str | None:
    known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            return f"{where} needs `{name}`"
    for name, item in value.items():
        if name in known:
            problem = misfit(known[name], item, f"`{name}`")
        elif other is False:
            return f"{where} cannot have `{name}`; known are {', '.join(known)}"
        else:
            problem = misfit(other, item, f"`{name}`") if isinstance(other, Mapping) else None
        if problem:
            return problem
    return None


def _alternatives(schemas: list[Schema]) -> str:
    return ", ".join(str(schema.get("type", "…")) for schema in schemas)
