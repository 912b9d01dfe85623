"""A soak: a million updates in a window of constant size; memory must not grow.

The number of facts is constant (one is inserted, the oldest deleted), so anything that a database
retains of old updates would show.  The soak samples the memory of the process and the blocks that
Python has allocated, at even distances; the first fifth is left out, since tables and indexes fill
up then.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from everlog.bench.harness.cases import make_case
from everlog.bench.harness.discovery import workloads
from everlog.bench.harness.machine import megabytes
from everlog.bench.harness.runs import OURS, Limits, Record, measured
from everlog.bench.harness.streams import updates_of
from everlog.bench.harness.workload import Case, Living

SOAKED = {"join_count": 20_000, "triangles": 20_000, "negation": 5_000}  # workload → size
UPDATES = 1_000_000
_SAMPLES = 100


def soaks(updates: int, small: bool, limits: Limits, tell: Callable[[str], None]) -> list[Record]:
    """One record for each workload."""
    out: list[Record] = []
    for name, size in SOAKED.items():
        workload = workloads()[name]
        size = workload.small if small else size
        tell(f"{workload.title}, {workload.describe(size)}: a soak of {updates} updates")
        with tempfile.TemporaryDirectory(prefix="everlog-bench-") as folder:
            case = make_case(Path(folder) / "case", workload, size)
            found = measured(case, OURS, True, (), False, limits, soak=(updates, size))
        out.append({"workload": name, "title": workload.title, "described": workload.describe(size)} | found)
    return out


def soaked(case: Case, system: Living, updates: int, size: int) -> dict[str, Any]:
    """Inside the process: play the window, and sample memory."""
    workload = workloads()[case.workload]
    system.load()
    facts = {relation: case.rows(relation) for relation in case.base}
    stream = updates_of("window", workload, facts, size)
    every = max(50, updates // _SAMPLES)
    samples: list[tuple[int, float, int]] = []
    spent = 0.0
    for number in range(updates):
        update = next(stream)
        start = time.perf_counter()
        system.step([update])
        spent += time.perf_counter() - start
        if number % every == every - 1:
            gc.collect()
            samples.append((number + 1, megabytes(), sys.getallocatedblocks()))
    return {"updates": updates, "seconds": spent, "samples": samples}


def growth_of(record: Record, column: int) -> float:
    """The growth from the first fifth to the end, as a share.

    column 1 is memory, 2 are blocks.

    >>> round(growth_of({"samples": [[n, 100.0 + n // 90, 1000] for n in range(100)]}, 1), 4)
    0.01
    """
    kept = record["samples"][len(record["samples"]) // 5 :]
    tenth = max(1, len(kept) // 10)
    first = sum(sample[column] for sample in kept[:tenth]) / tenth
    last = sum(sample[column] for sample in kept[-tenth:]) / tenth
    return float(last / first - 1)
