"""The measurements of a workload: computed once, and following streams."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import evolve, frozen

from everlog.bench.harness.cases import make_case
from everlog.bench.harness.runs import Limits, Play, Record, compared
from everlog.bench.harness.workload import Case, Workload


@frozen
class Wanted:
    """The part of a workload to measure, its sides, and its size."""

    workload: Workload
    size: int
    static: Sequence[str] = ()
    living: Sequence[str] = ()
    plays: Sequence[Play] = ()


def all_plays(workload: Workload, small: bool, batches: int = 20) -> list[Play]:
    """Every stream by single updates, then in batches; hubs last.

    Hubs change how data is stored.
    """
    steps, batch = (workload.small_steps, workload.small_batch) if small else (workload.steps, workload.batch)
    many = max(steps, batch * (2 if small else batches))
    benign = [kind for kind in workload.streams if kind != "hubs"]
    plays = [(kind, number, total) for number, total in ((1, steps), (batch, many)) for kind in benign]
    if "hubs" in workload.streams:
        plays += [("hubs", 1, steps), ("hubs", batch, many)]
    return plays


def work(wanted: Wanted, limits: Limits, tell: Callable[[str], None]) -> Record:
    """The record of a workload: every side's runs."""
    workload = wanted.workload
    with tempfile.TemporaryDirectory(prefix="everlog-bench-") as name:
        streams = {kind: max(n for k, _, n in wanted.plays if k == kind) for kind, _, _ in wanted.plays}
        case = make_case(Path(name) / "case", workload, wanted.size, streams)
        out: Record = {
            "workload": workload.name,
            "query": workload.query,
            "title": workload.title,
            "size": wanted.size,
            "described": workload.describe(wanted.size),
            "given": base_facts(case),
        }
        if wanted.static:
            tell(f"{workload.title}, {workload.describe(wanted.size)}: computed once")
            out["static"] = compared(case, wanted.static, False, (), limits)
        if wanted.living:
            tell(f"{workload.title}, {workload.describe(wanted.size)}: following updates")
            more = evolve(limits, patience=60.0, budget=max(limits.budget, workload.budget))
            out["living"] = compared(case, wanted.living, True, wanted.plays, more)
    return out


def base_facts(case: Case) -> int:
    """The number of base facts."""
    return sum(len(case.rows(relation)) for relation in case.base)
