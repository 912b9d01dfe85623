"""Recursion inside the tasks: facts that never meet are computed apart, each part by our own
engine, in one stage.

A unit is decomposable when every recursive rule takes one column of its head, unchanged, from all
its atoms of the unit (`path(x, z) :- path(x, y), edge(y, z)` carries x).  Then the facts with one
value in that column depend on each other alone.  What starts the recursion is partitioned by that
column; what the rules read besides is sent along to every task; each task runs the whole fixpoint
and hands its facts back by Arrow.  There is no shuffle per iteration, and no job.

Source: Shkapsky, Yang, Interlandi, Chiu, Condie, Zaniolo, Big data analytics with Datalog queries
on Spark, SIGMOD 2016.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from everlog.core.program import Program
from everlog.spark_backend.bindings import Facts
from everlog.spark_backend.column_types import kinds_of, names_of, widened
from everlog.spark_backend.in_process import program_of
from everlog.spark_backend.plan import Planned
from everlog.spark_backend.tasks import run_in_tasks, task_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def decomposed(
    program: Program, planned: Planned, seeds: Mapping[str, Facts], base: Mapping[str, pa.Table], partitions: int
) -> tuple[DataFrame, dict[str, DataFrame]]:
    """The relations of a decomposable unit from its facts outside the recursion, and from what it
    reads.

    Before them all that the tasks give, which is kept.
    """
    from pyspark.sql import functions as F

    unit = planned.unit
    own = program_of(program, unit, [rule for rule in unit.rules if unit.positions(rule)])
    numbers = {rule.written: number for number, rule in reversed(list(enumerate(program.rules)))}
    frames = []
    for name in unit.relations:
        kinds = kinds_of(program.relations[name])
        key = F.col(f"c{planned.carried[name]}").alias("carried")
        frames.append((seeds[name].frame.select(*names_of(len(kinds)), key), kinds))
    wide = widened(frames, extra=["carried"]).repartition(partitions, "carried").drop("carried")
    return run_in_tasks(task_of(own, unit.relations, unit.relations, numbers, base), wide, keep=True)
