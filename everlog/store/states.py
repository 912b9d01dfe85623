"""The state of an engine in a checkpoint: when it is worth writing, and when it may be believed.

To read a state back takes about as long as reading its bytes; to compute it takes as long as its
rules do.  Which is faster depends on the rules and the facts, so it is measured, unit by unit, when
the checkpoint is made: what was just written is read back against the clock, and compared with the
time that the unit took when it was last computed, in proportion to its facts.  A unit that was
never computed at a comparable size is kept:  in all that was measured (docs/durable.md) reading is
faster.

A state is believed only under its key: the program with the names of its rules, the strategies, and
the engine, to the letter of its source.  Functors are functions that nobody can compare, so a
program with functors has no key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

from attrs import frozen

from everlog import core
from everlog.core.engine import Engine
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.program import Program, calls_of
from everlog.core.runtime.collector import collector_paused
from everlog.store.column_codec import decoded_columns, encoded_columns

FEW = 2000  # facts of a unit, below which it is computed in no time, unless more is known
SHORT = 0.01  # seconds of computing that are not worth a state
COMPARABLE = 4  # a time that was measured says something up to so many times the facts


@frozen
class State:
    """What is written: under which key, and the bytes of each unit."""

    about: Mapping[str, Any]
    units: Mapping[str, bytes]


def worth_keeping(engine: Engine, text: str, strategies: Mapping[str, str], always: bool = False) -> State | None:
    """The state of those units that come back faster than they are computed; with `always`, of all."""
    if not _has_key(engine.program):
        return None
    units: dict[str, bytes] = {}
    shared: dict[str, str] = {}
    with collector_paused():
        for name, facts, columns in engine.state():
            computing = _estimate(engine, name, facts)
            if not always and (facts < FEW if computing is None else computing < SHORT):
                continue
            data = encoded_columns(columns)
            start = perf_counter()
            decoded_columns(data, shared)
            # what was read is then put into sets and dicts, which takes about as long again
            reading = 2 * (perf_counter() - start)
            if always or computing is None or reading < computing:
                units[name] = data
    if not units:
        return None
    return State({"key": _key(text, strategies)}, units)


def _estimate(engine: Engine, unit: str, facts: int) -> float | None:
    """Seconds that a unit takes to compute, from the last time that it was computed; None if that
    says nothing.
    """
    seconds, before = engine.computed.get(unit, (0.0, 0))
    return seconds * facts / before if before and before * COMPARABLE >= facts else None


def usable(
    state: State, text: str, program: Program, strategies: Mapping[str, str]
) -> Mapping[str, Columns] | None:
    """What the engine of this program may go on with; None if the state is of another one."""
    if not _has_key(program) or state.about["key"] != _key(text, strategies):
        return None
    shared: dict[str, str] = {}
    with collector_paused():
        return {name: decoded_columns(data, shared) for name, data in state.units.items()}


def _has_key(program: Program) -> bool:
    """Whether all that the rules compute depends on what can be compared."""
    names = {call.name for rule in program.rules for call in calls_of(rule)}
    return not any(name.startswith("@") or name in ("ord", "as") for name in names)


def _key(text: str, strategies: Mapping[str, str]) -> str:
    parts = json.dumps([text, sorted(strategies.items()), engine_digest()])
    return sha256(parts.encode("ascii")).hexdigest()


@cache
def engine_digest() -> str:
    """The engine, to the letter: another version of it may keep other things under the same names.

    Cost: about 10 ms, once in a process.
    """
    digest = sha256()
    for file in sorted(Path(core.__file__).parent.rglob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
