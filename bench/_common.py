"""Shared parts of the benchmarks: seeded graphs, clocks, and bars.

Clocks are CPU time of this process, since other processes share the machine; two sides are measured
in turn.  A line that ends in `holds` or `does not hold` is a bar; `bench/__main__.py` repeats these
lines at its end.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # bench/closure.py runs its loops without everlog
    from everlog.core.program import Row

T = TypeVar("T")

CLOSURE = """.decl edge(x:number, y:number)
.input edge
.decl path(x:number, y:number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""

JOIN_COUNT = """.decl r(a:number, b:number)
.decl s(b:number, c:number)
.decl q(a:number, c:number)
.decl n(a:number, k:number)
q(a, c) :- r(a, b), s(b, c).
n(a, k) :- q(a, _), k = count : { q(a, _) }.
"""


# ── the command line ─────────────────────────────────────────────────────────────────────────


def options(description: str | None, **more: int) -> argparse.Namespace:
    """`--small`, and options with integers as their defaults."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick check; bars are for the full size")
    for name, default in more.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


# ── telling ──────────────────────────────────────────────────────────────────────────────────


def at_least(what: str, ratio: float, bar: float | None, small: bool = False) -> None:
    """Print a ratio that should be at least the bar, if there is one."""
    if bar is None:
        print(f"  {what:<58} {ratio:8.1f} ×", flush=True)
    else:
        _told(what, f"{ratio:8.1f} ×", f"at least {bar:g} ×", ratio >= bar, small)


def at_most(what: str, value: float, bar: float, unit: str = "×", small: bool = False) -> None:
    """Print a value that should be at most the bar."""
    _told(what, f"{value:8.2f} {unit}", f"at most {bar:g} {unit}", value <= bar, small)


def _told(what: str, value: str, bar: str, holds: bool, small: bool) -> None:
    verdict = "holds" if holds else "does not hold"
    if small:
        verdict = f"({verdict}; small size)"
    print(f"  {what:<58} {value:<12} bar: {bar:<18} {verdict}", flush=True)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


# ── clocks ───────────────────────────────────────────────────────────────────────────────────


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds, and the result."""
    gc.collect()
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def by_turns(rounds: int, **sides: Callable[[], object]) -> dict[str, list[float]]:
    """CPU seconds of each side per round; the sides take turns, results are dropped."""
    out: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, work in sides.items():
            seconds, result = timed(work)
            out[name].append(seconds)
            del result
    return out


def ratio_of(numerator: list[float], denominator: list[float]) -> float:
    """The median over rounds of the ratio within a round.

    A disturbance of a round affects both sides.
    """
    return statistics.median(a / b for a, b in zip(numerator, denominator, strict=True))


def slope(points: list[tuple[float, float]]) -> float:
    """The slope of the least-squares line through the logarithms."""
    logs = [(math.log(x), math.log(max(y, 1e-9))) for x, y in points]
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


# ── data ─────────────────────────────────────────────────────────────────────────────────────


def random_graph(nodes: int, edges: int, seed: int = 1) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    out: set[tuple[int, int]] = set()
    while len(out) < edges:
        out.add((draw.randrange(nodes), draw.randrange(nodes)))
    return sorted(out)


def grid(side: int) -> list[tuple[int, int]]:
    """Edges to the right and down."""
    right = [(y * side + x, y * side + x + 1) for y in range(side) for x in range(side - 1)]
    down = [(y * side + x, (y + 1) * side + x) for y in range(side - 1) for x in range(side)]
    return sorted(right + down)


# ── sums of changes ──────────────────────────────────────────────────────────────────────────


def add_changes(total: dict[str, dict[Row, int]], changes: Mapping[str, Mapping[Row, int]]) -> None:
    """Add the changes of a step; counts of zero are dropped."""
    for relation, told in changes.items():
        rows = total.setdefault(relation, {})
        for row, sign in told.items():
            count = rows.get(row, 0) + sign
            if count:
                rows[row] = count
            else:
                del rows[row]


def fail(message: str) -> None:
    sys.exit(f"WRONG: {message}")
