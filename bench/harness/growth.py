"""Time and memory against size, with fitted and promised exponents.

Each workload is measured at several sizes, computed once and following single updates, on few
sides.  An exponent is the slope of the least-squares line through the logarithms of the number of
base facts and of the measured value: 1 is linear.  A side that did not finish at one size skips the
next.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import evolve

from everlog.bench._common import slope
from everlog.bench.harness.cases import make_case
from everlog.bench.harness.discovery import sides
from everlog.bench.harness.figures import least, per_update, record_of, solve
from everlog.bench.harness.jobs import base_facts
from everlog.bench.harness.runs import OK, Limits, Record, compared
from everlog.bench.harness.workload import Workload

_STEPS = 400  # single updates at each size, at most
_SHARE = 4  # for an amortized cost: one update per this number of facts
_NOISE = 2.0  # megabytes above start that are noise


def grown(
    workload: Workload, small: bool, names: Sequence[str], limits: Limits, tell: Callable[[str], None]
) -> Record:
    """The records of each size."""
    sizes = (workload.small // 2, workload.small) if small else workload.growth
    steps = workload.small_steps if small else min(_STEPS, workload.steps)
    stream = workload.streams[0]
    tell(f"{workload.title}: growth, sizes {', '.join(map(str, sizes))}")
    asking = [name for name in names if sides()[name].grows]
    amortized = workload.update_promise.amortized and not small  # then a few updates pay for all that follow
    budget = min(limits.budget, 2.0) * (_SHARE if amortized else 1)
    once = evolve(limits, rounds=1, seconds=min(limits.seconds, 60.0), budget=budget)
    points: list[Record] = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="everlog-bench-") as folder:
            if amortized:
                steps = max(_STEPS, sum(map(len, workload.make(size).values())) // _SHARE)
            case = make_case(Path(folder) / "case", workload, size, {stream: steps})
            static = [name for name in asking if sides()[name].static and not _given_up(points, "static", name)]
            living = [name for name in asking if sides()[name].living and not _given_up(points, "living", name)]
            points.append(
                {
                    "size": size,
                    "given": base_facts(case),
                    "static": compared(case, static, False, (), once),
                    "living": compared(case, living, True, [(stream, 1, steps)], once),
                }
            )
    return {
        "workload": workload.name,
        "title": workload.title,
        "stream": stream,
        "points": points,
        "promised": {
            "static": [workload.static_promise.exponent, workload.static_promise.why],
            "update": [workload.update_promise.exponent, workload.update_promise.why],
        },
    }


def _given_up(points: list[Record], kind: str, name: str) -> bool:
    last = record_of(points[-1][kind], name) if points else None
    return bool(points) and (last is None or last["status"] != OK)


# ── series and exponents ─────────────────────────────────────────────────────────────────────


def series(growth: Record, kind: str, side: str) -> list[tuple[float, float]]:
    """(base facts, figure) of a side.

    kind is `static` or `update` (seconds), or `memory` (megabytes).
    """
    out: list[tuple[float, float]] = []
    for point in growth["points"]:
        figure = _FIGURES[kind](point, side, growth["stream"])
        if figure is not None:
            out.append((float(point["given"]), figure))
    return out


def _static(point: Record, side: str, stream: str) -> float | None:
    return least(record_of(point["static"], side), solve)


def _memory(point: Record, side: str, stream: str) -> float | None:
    found = least(record_of(point["static"], side), lambda run: float(run["peak"]) - float(run["base"]))
    return found if found is not None and found > _NOISE else None


def _update(point: Record, side: str, stream: str) -> float | None:
    return per_update(record_of(point["living"], side), stream, 1)


_FIGURES: dict[str, Callable[[Record, str, str], float | None]] = {
    "static": _static,
    "memory": _memory,
    "update": _update,
}


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """The slope of the logarithms, if there are three points or more.

    >>> round(exponent([(1, 3), (10, 300), (100, 30000)]), 6)
    2.0
    """
    return slope(list(points)) if len(points) >= 3 else None
