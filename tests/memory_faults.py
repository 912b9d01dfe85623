"""Steps whose every allocation fails in turn, as SQLite tests itself.

`faults(program, facts, step)` runs a step once for each allocation that it makes, in a process of
its own, with that one allocation failing.  Afterwards the relations are those of before the step,
or, where the step did not mind, those after it; or the engine says that it is broken, and does
nothing else any more.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from everlog.core.engine import Engine
from everlog.core.program import Program, Row
from everlog.core.program.executor import Update
from everlog.core.runtime.guards import Broken

try:
    import _testcapi
except ImportError:  # Debian has it in a package of its own
    _testcapi = None  # type: ignore[assignment]

State = dict[str, frozenset[Row]]
GOOD = ("done", "taken back", "broken")


def views(engine: Engine) -> State:
    return {name: engine.view(name) for name in engine.program.relations}


def attempt(engine: Engine, move: Callable[[Engine], Any], number: int, before: State, after: State) -> str:
    """Make a move with one allocation failing; in a word, how it ended."""
    gc.collect()
    gc.disable()
    failed = True
    try:
        _testcapi.set_nomemory(number, number + 1)
        try:
            move(engine)
            failed = False
        finally:
            _testcapi.remove_mem_hooks()
    except BaseException:
        pass
    gc.enable()
    try:
        found = views(engine)
    except Broken:
        return "broken"
    if found != (before if failed else after):
        return "wrong"
    engine.check()
    if failed:
        move(engine)
        if views(engine) != after:
            return "wrong afterwards"
        engine.check()
    return "taken back" if failed else "done"


def in_a_process(task: Callable[[], str]) -> str:
    """The result of a task in a forked process, which may crash."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                word = task()
            except BaseException as error:
                word = f"{type(error).__name__}: {error}"[:200]
            os.write(writer, word.encode("utf-8", "replace"))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        word = pipe.read().decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    return word or f"signal {os.waitstatus_to_exitcode(status)}"


def faults(
    program: Program, before: list[list[Update]], step: list[Update], large: bool = False, every: int = 1
) -> Counter[str]:
    """How a step ends if one of its allocations fails, for each, or one of `every`."""
    engines = [Engine(program, large=1 if large else 10**9) for _ in range(2)]

    def move(engine: Engine) -> Any:
        return engine.apply(step)

    for engine in engines:
        for earlier in before:
            engine.apply(earlier)
    engine, other = engines
    state = views(engine)
    move(other)
    after = views(other)
    ends: Counter[str] = Counter()
    quiet, number = 0, 1
    gc.collect()
    gc.freeze()  # each process collects its own garbage only, and leaves these pages shared
    try:
        while quiet < 4:  # past the last allocation nothing fails any more
            word = in_a_process(lambda number=number: attempt(engine, move, number, state, after))
            ends[word] += 1
            if word not in GOOD:
                print(f"allocation {number}: {word}", file=sys.stderr)
            quiet = quiet + 1 if word == "done" else 0
            number += every
    finally:
        gc.unfreeze()
    return ends
