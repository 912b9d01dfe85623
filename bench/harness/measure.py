"""One measurement, in a process of its own, with a request on its input.

The command is `python -P -m everlog.bench.harness.measure`.  It prints JSON lines: `begin` before a
timed phase (with its limit), `ok` or `error` at the end.  The parent ends a process that stays in a
phase longer than its limit.  Clocks are wall time, since some sides use several threads; CPU time
is printed beside it.  Digests and reading answers are not timed.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from everlog.bench.harness.digests import chained, digest
from everlog.bench.harness.discovery import sides
from everlog.bench.harness.machine import megabytes, peak_megabytes
from everlog.bench.harness.soak import soaked
from everlog.bench.harness.workload import Case, Living, Static, Told, Update

_SAMPLES = 10  # of memory, along a stream
_WARM = 10  # steps before latencies count: the first use of a rule compiles it


class Tell(Protocol):
    """Sends a message to the parent."""

    def __call__(self, **told: object) -> None: ...


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall seconds and CPU seconds (all threads, and children that have ended)."""
    begin = os.times()
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    end = os.times()
    busy = sum(end[n] - begin[n] for n in range(4))
    return seconds, busy


def static(case: Case, system: Static, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    base = megabytes()
    tell(phase="load", limit=asked["limit"])
    load, load_cpu = timed(system.load)
    tell(phase="solve", limit=max(1.0, asked["limit"] - load))
    solve, solve_cpu = timed(system.solve)
    peak = getattr(system, "peak", None) or peak_megabytes()
    tell(phase="answer", limit=600)
    out: dict[str, Any] = {"load": load, "solve": solve, "cpu": load_cpu + solve_cpu, "base": base, "peak": peak}
    out["sizes"] = {relation: system.size(relation) for relation in case.answers}
    if asked["check"]:
        out["answers"] = {relation: digest(system.answer(relation)) for relation in case.answers}
    out |= getattr(system, "more", {})
    system.close()
    return out


def living(case: Case, system: Living, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Load, then play streams one after the other; each restores the initial facts.

    Each result is reported at once, so a process that is ended later leaves it behind.
    """
    base = megabytes()
    tell(phase="load", limit=asked["limit"])
    load, load_cpu = timed(system.load)
    follow(system, system.told if hasattr(system, "told") else {})
    part: dict[str, Any] = {"load": load, "cpu": load_cpu, "base": base, "loaded": megabytes()}
    part["load_peak"] = peak_megabytes()
    if asked["check"]:
        tell(phase="answer", limit=600)
        part["answers"] = {relation: digest(system.answer(relation)) for relation in case.answers}
    tell(part=part)
    for stream, batch, number in asked["plays"]:
        updates = case.stream(stream)[:number]
        tell(phase=f"{stream} by {batch}", limit=asked["limit"])
        play = played(case, system, updates, batch, asked["budget"])
        tell(play={"stream": stream, "batch": batch} | play, peak=peak_megabytes())
        tell(phase="restore", limit=2 * asked["limit"])
        follow(system, system.step(inverse(updates[: play["done"]])))
    out: dict[str, Any] = {}
    if asked["check"]:
        tell(phase="answer", limit=600)
        out["restored"] = {relation: digest(system.answer(relation)) for relation in case.answers}
    system.close()
    return out


def follow(system: Living, told: Told) -> None:
    """Let a system that only reports changes add them up, for comparison; not timed."""
    if hasattr(system, "follow"):
        system.follow(told)


def played(case: Case, system: Living, updates: list[Update], batch: int, budget: float) -> dict[str, Any]:
    """Play steps of a stream until its time budget is used up."""
    steps = [updates[first : first + batch] for first in range(0, len(updates), batch)]
    warm = min(_WARM, len(steps) // 4)
    times: list[float] = []
    current: list[float] = []  # until the answer is ready, before changed rows are made
    chain: list[int] = []
    memory: list[tuple[int, float]] = []
    every = max(1, len(steps) // _SAMPLES)
    told_rows = done = 0
    clock = time.perf_counter
    begin = os.times()
    spent = 0.0
    for number, step in enumerate(steps):
        start = clock()
        told: Told = system.step(step)
        times.append(clock() - start)
        current.append(min(times[-1], getattr(system, "current_at", math.inf) - start))
        done += len(step)
        follow(system, told)
        chain.append(chained(chain[-1] if chain else 0, told, case.answers))
        told_rows += sum(len(rows) for rows in told.values())
        if number % every == 0:
            memory.append((done, megabytes()))
        spent += times[-1]
        if spent > budget:
            break
    end = os.times()
    first = warm if len(times) > warm else 0
    counted = times[first:]
    return {
        "first": times[0],
        "steps": len(times),
        "done": done,
        "all": done == len(updates),
        "counted": done - sum(map(len, steps[:first])),
        "seconds": sum(counted),
        "current": sum(current[first:]),
        "from": first,
        "cpu": sum(end[n] - begin[n] for n in range(4)),
        "told": told_rows,
        "latency": percentiles(counted),
        "memory": memory,
        "chain": chain,
        "times": [round(seconds, 8) for seconds in times],
    }


def percentiles(times: list[float]) -> dict[str, float]:
    """Percentiles of times.

    >>> percentiles([1.0, 2.0, 3.0, 4.0])
    {'mean': 2.5, 'p50': 2.0, 'p90': 4.0, 'p99': 4.0, 'max': 4.0}
    """
    ordered = sorted(times)

    def at(share: float) -> float:
        return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]

    return {
        "mean": sum(ordered) / len(ordered),
        "p50": at(0.5),
        "p90": at(0.9),
        "p99": at(0.99),
        "max": ordered[-1],
    }


def inverse(updates: list[Update]) -> list[Update]:
    """The updates that undo a stream.

    >>> inverse([("e", (1,), True), ("e", (2,), False)])
    [('e', (2,), True), ('e', (1,), False)]
    """
    return [(relation, row, not insert) for relation, row, insert in reversed(updates)]


def answer(asked: dict[str, Any], tell: Tell) -> None:
    """Do the request, and report its progress."""
    try:
        case = Case.read(Path(asked["case"]))
        side = sides()[asked["side"]]
        if asked["soak"] is not None:
            assert side.living is not None
            tell(phase="soak", limit=24 * 3600)
            result = soaked(case, side.living(case), *asked["soak"])
        elif asked["living"]:
            assert side.living is not None
            result = living(case, side.living(case), asked, tell)
        else:
            assert side.static is not None
            result = static(case, side.static(case), asked, tell)
        tell(ok=result)
    except Exception as problem:
        traceback.print_exc()
        tell(error=f"{type(problem).__name__}: {problem}")


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries goes to the error stream

    def tell(**told: object) -> None:
        out.write(json.dumps(told) + "\n")
        out.flush()

    answer(asked, tell)
    sys.stderr.flush()
    os._exit(0)  # threads of a library may not end by themselves


if __name__ == "__main__":
    main()
