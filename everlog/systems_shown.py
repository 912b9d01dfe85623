"""Incremental evaluation systems as text: list, page of a system, changes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from everlog.ies.files import mismatches
from everlog.ies.nrc.printer import system_text
from everlog.ies.nrc.types import Value
from everlog.ies.nrc.value_text import fact_text, value_key
from everlog.ies.properties import Storage, properties, storage
from everlog.ies.registry import SYSTEMS, Auxiliary, Entry, entry, of_ones_own, running, system
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
    """The page of a system: its definition, and its version in Python, if any."""
    found = system(name)
    parts = []
    if isinstance(found, System):
        parts.append(system_text(found).rstrip())
        parts.append("-- properties, as computed\n" + "\n".join(_properties(found)))
    if entry(name).practical:
        parts.append("\n".join(_in_python(entry(name))))
        kept = storage(running(name))
        parts.append("-- properties of the one in Python, as computed\n" + "\n".join(_storage(kept)))
    return "\n\n".join(parts)


def _properties(found: System) -> Iterator[str]:
    has = properties(found)
    yield f"--   class          {has.language}"
    *kept, tried = _storage(has)
    yield from kept
    yield f"--   aggregates     {_yes(has.aggregates)}"
    yield f"--   height         {has.height}"
    yield tried


def _storage(has: Storage) -> Iterator[str]:
    yield f"--   space-free     {_yes(has.space_free)}"
    yield f"--   flat           {_yes(has.flat)}"
    yield f"--   arity          {'nested' if has.arity is None else has.arity}"
    yield f"--   deterministic  {has.deterministic}"


def example_warnings(name: str) -> Iterator[str]:
    """Errors in the examples of the user's own file.

    The examples of the catalogue are covered by tests.
    """
    if not of_ones_own(name):
        return
    found = system(name)
    assert isinstance(found, System)
    for number, example in enumerate(found.examples, 1):
        yield from (f"example {number} of {name}: {text}" for text in mismatches(found, example))


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
    yield from (f"--   chance   {remark}" for remark in one.prospects)
    yield f"--   query    {described.query}"
    yield f"--   functions: in Python, {one.place}"


# ── changes ──────────────────────────────────────────────────────────────────────────────────────


def change_lines(
    found: Any,
    changes: Mapping[str, tuple[Collection[tuple[Value, ...]], Collection[tuple[Value, ...]]]],
    answer_only: bool = False,
) -> Iterator[str]:
    """What an update changed: first the answer, then the auxiliary relations.

    Of each, deletions precede insertions, and both are sorted.
    """
    changed = False
    for kept in (found.answer, *(() if answer_only else found.auxiliaries)):
        for sign, rows in zip("-+", changes.get(kept.name, ((), ())), strict=True):
            for row in sorted(rows, key=value_key):
                changed = True
                yield f"{sign}{fact_text(kept.name, row)}."
    if not changed:
        yield NO_CHANGE
