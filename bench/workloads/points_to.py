"""Andersen's points-to analysis of a C program by bench/programs_updates.py."""

from __future__ import annotations

from everlog.bench.harness.workload import Promise, Workload
from everlog.bench.programs_updates import POINTS_TO, points_to

WORKLOAD = Workload(
    name="points_to",
    query="points_to",
    title="points-to (Andersen)",
    program=POINTS_TO + ".input address_of, assign, load, store\n.output points_to\n",
    answers=("points_to",),
    make=lambda variables: {name: list(rows) for name, rows in points_to(variables).items()},
    describe=lambda variables: f"{variables} variables, {int(1.8 * variables)} statements",
    small=120,
    large=10000,
    growth=(1000, 2000, 4000, 8000),
    steps=1000,
    batch=100,
    static_promise=Promise(3, "worst case: pairs times what they point to"),
    update_promise=Promise(2, "follows the facts whose proof breaks: at most all pairs"),
)
