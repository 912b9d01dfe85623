"""The engine's state in a checkpoint: when to write it, and when to trust it.

Facts are written for reading without an engine (`sorted_rows`), wherever they are not few.  The
states of units are written for engines.  Loading a state takes about as long as reading its bytes;
computing it takes as long as its rules need.  Which is faster depends on rules and facts, so it is
measured for each unit when the checkpoint is written: the bytes are read back against the clock,
and compared with the time of the unit's last computation, in proportion to its facts.  A unit that
was never computed at a comparable size is stored: in all measurements (docs/durable.md) loading is
faster.

Both are trusted only under their key: the program with the names of its rules, the strategies, and
the engine's source code.  Functors cannot be compared, so a program with functors has no key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import perf_counter

from everlog import core
from everlog.core.engine import Engine
from everlog.core.engine.planning.demand_parts import DEMAND
from everlog.core.engine.planning.plan import GIVEN as BASE_ONLY
from everlog.core.engine.planning.view_rules import VIEW
from everlog.core.engine.stepping.saved_state import Columns
from everlog.core.native.availability import why_not
from everlog.core.program import Program, Relation, calls_of
from everlog.core.runtime.collector import collector_paused
from everlog.store.checkpoint import SortedFacts, State
from everlog.store.column_codec import decoded_columns, encoded_columns
from everlog.store.sorted_rows import in_order

FEW = 2000  # a unit with fewer facts is computed quickly, unless a measurement says otherwise
SHORT = 0.01  # a unit computed in fewer seconds is not worth storing
COMPARABLE = 4  # a measured time is valid for up to this many times the facts


def worth_keeping(engine: Engine, text: str, strategies: Mapping[str, str], always: bool = False) -> State | None:
    """The state of units that load faster than they compute, and derived facts of large databases.

    With `always`, of all.
    """
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
            for column in decoded_columns(data, shared):
                list(column)
            # building sets and dicts from the values takes about as long again
            reading = 2 * (perf_counter() - start)
            if always or computing is None or reading < computing:
                units[name] = data
    program = engine.program
    read = [
        name
        for name, of in program.relations.items()
        if not of.auxiliary_of and engine.strategy_of(name)[0] not in (DEMAND, VIEW)
    ]
    if not always and sum(map(engine.size, read)) < FEW:
        return State(_key(text, strategies), units)
    base = [name for name in read if engine.strategy_of(name)[0] == BASE_ONLY]
    derived = [program.relations[name] for name in read if name not in base]
    return State(_key(text, strategies), units, _sorted_facts(engine, derived), base)


def sorted_base_facts(engine: Engine) -> SortedFacts:
    """The base facts in the order in which they are searched."""
    relations = engine.program.relations.items()
    return ((name, in_order(of, given)) for name, of in relations if (given := engine.given(name)))


def _sorted_facts(engine: Engine, relations: Iterable[Relation]) -> SortedFacts:
    tables = engine.store_for([relation.name for relation in relations]).tables
    return ((relation.name, in_order(relation, tables[relation.name])) for relation in relations)


def _estimate(engine: Engine, unit: str, facts: int) -> float | None:
    """Seconds to compute a unit, from its last computation; None if that is unknown."""
    seconds, before = engine.computed.get(unit, (0.0, 0))
    return seconds * facts / before if before and before * COMPARABLE >= facts else None


def usable(key: str, text: str, program: Program, strategies: Mapping[str, str]) -> bool:
    """Whether what was written under a key is right for an engine of this program."""
    return _has_key(program) and key == _key(text, strategies)


def decoded(units: Mapping[str, bytes]) -> Mapping[str, Columns]:
    """The states of units."""
    shared: dict[str, str] = {}
    with collector_paused():
        return {name: decoded_columns(data, shared) for name, data in units.items()}


def _has_key(program: Program) -> bool:
    """Whether the results of all rules depend only on the key."""
    names = {call.name for rule in program.rules for call in calls_of(rule)}
    return not any(name.startswith("@") or name in ("ord", "as") for name in names)


def _key(text: str, strategies: Mapping[str, str]) -> str:
    parts = json.dumps([text, sorted(strategies.items()), engine_digest(), why_not()])
    return sha256(parts.encode("ascii")).hexdigest()


@cache
def engine_digest() -> str:
    """A hash of the engine's source: another version may store other data.

    Cost: about 10 ms, once in a process.
    """
    digest = sha256()
    for file in sorted(Path(core.__file__).parent.rglob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
