"""Same generation in families of twenty generations (bench/programs_updates.py)."""

from __future__ import annotations

from everlog.bench.harness.workload import Promise, Workload
from everlog.bench.programs_updates import SAME_GENERATION, family

WORKLOAD = Workload(
    name="same_generation",
    query="same_generation",
    title="same generation",
    program=SAME_GENERATION + ".input parent\n.output same_generation\n",
    answers=("same_generation",),
    make=lambda people: {"parent": list(family(people))},
    describe=lambda people: f"{people} people in twenty generations",
    small=100,
    large=5000,
    growth=(1000, 2000, 4000),
    steps=1000,
    batch=100,
    static_promise=Promise(2, "pairs of a generation, times their parents"),
    update_promise=Promise(2, "follows the facts whose proof breaks: at most all pairs"),
)
