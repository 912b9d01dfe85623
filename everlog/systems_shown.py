"""Incremental evaluation systems as people read them: the list, one system's page, the changes of an update.

Reads: ies.catalogue, ies.properties, ies.nrc.printer.  Read by: everlog.commands.ies.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import Any

from everlog.ies.catalogue import SYSTEMS, Auxiliary, Entry, entry, system
from everlog.ies.nrc.printer import system_text
from everlog.ies.nrc.types import Value
from everlog.ies.properties import properties
from everlog.ies.system import System

NO_CHANGE = "(no change)"


def list_text() -> str:
    """Name, title, auxiliary relations with their arity, and growth of every system."""
    lines = []
    for name in SYSTEMS:
        one = entry(name)
        lines.append(f"{name}: {one.title}")
        lines.append(f"  auxiliaries  {', '.join(map(_auxiliary, one.kept)) or 'none'}")
        lines.append(f"  growth       {'exponential: ' if one.exponential else ''}{one.growth}")
        lines.append(f"  source       {one.described.theorem}")
    return "\n".join(lines)


def list_json() -> str:
    return json.dumps([_json(entry(name)) for name in SYSTEMS], ensure_ascii=False, indent=2)


def _json(one: Entry) -> dict[str, Any]:
    described = one.described
    return {
        "name": one.name,
        "title": one.title,
        "source": described.theorem,
        "inputs": [{"name": kept.name, "type": str(kept.type)} for kept in described.inputs],
        "answer": {"name": described.answer.name, "type": str(described.answer.type)},
        "auxiliaries": [
            {"name": a.name, "type": str(a.type), "arity": a.arity, "flat": a.flat, "meaning": a.meaning}
            for a in one.kept
        ],
        "growth": one.growth,
        "exponential": one.exponential,
        "cost": one.cost,
        "instead": described.instead,
    }


def _auxiliary(kept: Auxiliary) -> str:
    return f"{kept.name}/{kept.arity}{'' if kept.flat else ' (nested)'}"


def system_page(name: str) -> str:
    """All that is known of a system: in the calculus, and written in Python where it is both."""
    found = system(name)
    parts = []
    if isinstance(found, System):
        parts.append(system_text(found).rstrip())
        parts.append("-- properties, as computed\n" + "\n".join(_properties(found)))
    if entry(name).practical:
        parts.append("\n".join(_in_python(entry(name))))
    return "\n\n".join(parts)


def _properties(found: System) -> Iterator[str]:
    has = properties(found)
    yield f"--   class          {has.language}"
    yield f"--   space-free     {_yes(has.space_free)}"
    yield f"--   flat           {_yes(has.flat)}"
    yield f"--   arity          {'nested' if has.arity is None else has.arity}"
    yield f"--   aggregates     {_yes(has.aggregates)}"
    yield f"--   height         {has.height}"
    yield f"--   deterministic  {has.deterministic}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _in_python(one: Entry) -> Iterator[str]:
    described = one.described
    yield f"-- in Python, for the engine and `everlog ies run`: {described.title}"
    yield f"--   source   {described.theorem}"
    yield f"--   about    {described.about}"
    for kind, relations in (("input", described.inputs), ("answer", (described.answer,))):
        for kept in relations:
            yield f"--   {kind:<8} {kept.name} : {kept.type}{f'  {kept.meaning}' if kept.meaning else ''}"
    for auxiliary in one.kept:
        columns = ", ".join(auxiliary.columns)
        yield f"--   aux      {auxiliary.name}({columns}) : {auxiliary.type}  {auxiliary.meaning}"
    yield f"--   growth   {described.growth}"
    yield f"--   cost     {described.cost}"
    yield f"--   query    {described.query}"


# ── changes ──────────────────────────────────────────────────────────────────────────────────────


def change_lines(
    found: Any, changes: Mapping[str, tuple[Collection[tuple[Value, ...]], Collection[tuple[Value, ...]]]]
) -> Iterator[str]:
    """What an update changed in the answer, then in the auxiliary relations: what goes, what comes, sorted."""
    told = False
    for kept in (found.answer, *found.auxiliaries):
        for sign, rows in zip("-+", changes.get(kept.name, ((), ())), strict=True):
            for row in sorted(rows, key=_key):
                told = True
                yield f"{sign}{kept.name}{value_text(row if isinstance(row, tuple) else (row,))}."
    if not told:
        yield NO_CHANGE


def value_text(value: Value) -> str:
    """A value as the calculus writes it.

    >>> value_text((1, "a", frozenset({(2, 3), (1, 2)})))
    '(1, "a", {(1, 2), (2, 3)})'
    """
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False)
        case tuple():
            return f"({', '.join(map(value_text, value))})"
        case frozenset():
            return f"{{{', '.join(value_text(item) for item in sorted(value, key=_key))}}}"
        case Fraction():
            return f"{value.numerator}/{value.denominator}"
    return str(value)


def _key(value: Value) -> Any:
    """An order of values of any types, by kind and then by value."""
    match value:
        case bool():
            return (0, value)
        case int() | float() | Fraction():
            return (1, value)
        case str():
            return (2, value)
        case tuple():
            return (3, *map(_key, value))
    return (4, *sorted(map(_key, value)))
