"""Validation of values, for the part of JSON Schema that the service uses.

The description of the service contains the schemas of bodies, and bodies are validated with these
very schemas, so the two cannot disagree.  The error names the first misfit and its place.

A body may have a million rows, so each schema is compiled to a fast test; the misfit is searched
for only if that fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]
Test: TypeAlias = Callable[[Any], bool]

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

    >>> properties = {"text": {"type": "string"}}
    >>> step = {"type": "object", "properties": properties, "additionalProperties": False}
    >>> misfit(step, {"text": "+n(1)."}), misfit(step, {"text": 7}), misfit(step, {"txt": ""})
    (None, '`text` is not a string', 'the body cannot have `txt`; use text')
    """
    if "anyOf" in schema:
        problems = [misfit(each, value, where) for each in schema["anyOf"]]
        return None if None in problems else f"{where} must be one of {_alternatives(schema['anyOf'])}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(kind, value) for kind in kinds):
        return f"{where} is not {' or '.join(_NAMES.get(kind, f'a {kind}') for kind in kinds)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} must be one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str):
        return _text_misfit(schema, value, where)
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        return None if low <= value <= high else f"{where} is not between {low} and {high}"
    if isinstance(value, list):
        found = (misfit(schema.get("items", {}), item, f"{where}[{n}]") for n, item in enumerate(value))
        return next((problem for problem in found if problem), None)
    return _object_misfit(schema, value, where) if isinstance(value, dict) else None


def quick_test(schema: Schema) -> Test:
    """A function that tests whether a value fits; `misfit` says why not.

    Cost: for an array of plain values, one pass in C.

    >>> fits = quick_test({"type": "array", "items": {"type": ["string", "number"]}})
    >>> fits([1, "x", 2.5]), fits([True]), fits([[]])
    (True, False, False)
    """
    if "anyOf" in schema:
        tests = [quick_test(each) for each in schema["anyOf"]]
        return lambda value: any(test(value) for test in tests)
    if schema.get("type") == "array":
        return _array_test(schema)
    if schema.get("type") == "object":
        return _object_test(schema)
    return lambda value: misfit(schema, value) is None


def _array_test(schema: Schema) -> Test:
    items = schema.get("items", {})
    if set(items) <= {"type", "description"} and "type" in items:
        kinds = [items["type"]] if isinstance(items["type"], str) else items["type"]
        classes = {each for kind in kinds for each in _TYPES[kind]}
        if not classes & {list, dict}:
            return lambda value: isinstance(value, list) and classes.issuperset(map(type, value))
    test = quick_test(items)
    return lambda value: isinstance(value, list) and all(map(test, value))


def _object_test(schema: Schema) -> Test:
    known = {name: quick_test(each) for name, each in schema.get("properties", {}).items()}
    required, other = schema.get("required", ()), schema.get("additionalProperties", True)
    more: Test = quick_test(other) if isinstance(other, Mapping) else lambda value: bool(other)

    def fits(value: Any) -> bool:
        if not isinstance(value, dict) or not all(name in value for name in required):
            return False
        return all(known.get(name, more)(item) for name, item in value.items())

    return fits


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
            return f"{where} cannot have `{name}`; use {', '.join(known)}"
        else:
            problem = misfit(other, item, f"`{name}`") if isinstance(other, Mapping) else None
        if problem:
            return problem
    return None


def _alternatives(schemas: list[Schema]) -> str:
    return ", ".join(str(schema.get("type", "…")) for schema in schemas)
