"""A program as text from which the same program can be rebuilt.

Rules keep their names while others are added and dropped, so the names are written too.  A program
that was created without text (`Database(program)`) is written as the values that it consists of.
Functors are Python functions, which cannot be written: pass them when you open the database.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import attrs
from attrs import evolve

from everlog.api.live import LiveText
from everlog.core import program as core
from everlog.core.program import Kind, Program
from everlog.core.program.values import NAN
from everlog.dsl.source import Source

Written: TypeAlias = LiveText | Program

_CLASSES: dict[str, Any] = {name: c for name, c in vars(core).items() if isinstance(c, type) and attrs.has(c)}


class BadProgram(ValueError):
    """The text is not a program of ours."""


def saved(written: Written) -> str:
    """A program as text for the file."""
    if isinstance(written, Program):
        return json.dumps({"program": _plain(written)})
    source = written.source
    return json.dumps(
        {
            "text": source.text,
            "file": source.file,
            "origins": _runs(source.origins),
            "include_dirs": [str(folder) for folder in written.include_dirs],
            "macros": dict(written.macros),
            "numbers": dict(written.numbers),
            "added": written.added,
            "rules": [rule.name for rule in written.program.rules],
        }
    )


def restored(text: str) -> Written:
    """Rebuild the program; DatalogError if this everlog finds errors in it."""
    try:
        found = json.loads(text)
        if "program" in found:
            program = _made(found["program"])
            if not isinstance(program, Program):
                raise BadProgram("it is not a program")
            return program
        source = Source(found["text"], found["file"], _lines(found["origins"]))
        folders = [Path(folder) for folder in found["include_dirs"]]
        live = LiveText.from_source(source, (), folders, found["macros"])
        names, rules = found["rules"], live.program.rules
        if len(names) == len(rules):  # otherwise this everlog derives other rules from the text
            named = tuple(evolve(rule, name=name) for rule, name in zip(rules, names, strict=True))
            live = evolve(live, program=evolve(live.program, rules=named), numbers=found["numbers"])
        return evolve(live, added=found["added"])
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise BadProgram(f"the program cannot be read: {problem}") from problem


def program_of(written: Written) -> Program:
    return written if isinstance(written, Program) else written.program


# ── lines ────────────────────────────────────────────────────────────────────────────────────


def _runs(origins: list[tuple[str, int]]) -> list[tuple[str, int, int]]:
    """The origins of lines, as runs of consecutive lines.

    >>> _runs([("a", 1), ("a", 2), ("b", 1), ("a", 3)])
    [('a', 1, 2), ('b', 1, 1), ('a', 3, 1)]
    """
    runs = []
    for (file, _), run in groupby(enumerate(origins), lambda line: (line[1][0], line[1][1] - line[0])):
        lines = list(run)
        runs.append((file, lines[0][1][1], len(lines)))
    return runs


def _lines(runs: list[tuple[str, int, int]]) -> list[tuple[str, int]]:
    return [(file, first + number) for file, first, count in runs for number in range(count)]


# ── values ───────────────────────────────────────────────────────────────────────────────────


def _plain(value: Any) -> Any:
    """A value of a program in terms of JSON: classes by name, mappings as pairs."""
    if isinstance(value, core.Functor):
        value = evolve(value, function=None)
    if attrs.has(value.__class__):
        fields = {f.alias: _plain(getattr(value, f.name)) for f in attrs.fields(value.__class__) if f.init}
        return {"class": value.__class__.__name__, "fields": fields}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(key), _plain(each)] for key, each in value.items()]}
    if isinstance(value, Kind):
        return {"kind": value.value}
    return value


def _made(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_made(each) for each in value)
    if not isinstance(value, dict):
        return NAN if isinstance(value, float) and value != value else value  # NaN is one object
    if "kind" in value:
        return Kind(value["kind"])
    if "pairs" in value:
        return {_made(key): _made(each) for key, each in value["pairs"]}
    return _CLASSES[value["class"]](**{name: _made(each) for name, each in value["fields"].items()})
