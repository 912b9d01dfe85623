"""Recursion inside the tasks: independent parts, computed in one stage.

A unit is decomposable if every recursive rule passes one column of its head on, unchanged, from all
its atoms of the unit (`path(x, z) :- path(x, y), edge(y, z)` carries x).  Then facts with different
values in that column are independent.  The seeds of the recursion are partitioned by that column;
the other relations that the rules read are sent to every task; each task computes the whole
fixpoint and returns its facts through Arrow.  There is no shuffle and no job per iteration.

Source: Shkapsky, Yang, Interlandi, Chiu, Condie, Zaniolo, Big data analytics with Datalog queries
on Spark, SIGMOD 2016.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from everlog.core.program import Program
from everlog.spark_backend.column_types import kinds_of, names_of, widened
from everlog.spark_backend.frames.bindings import Facts
from everlog.spark_backend.in_process import program_of
from everlog.spark_backend.plan import Planned
from everlog.spark_backend.tasks import run_in_tasks, task_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def decomposed(
    program: Program, planned: Planned, seeds: Mapping[str, Facts], base: Mapping[str, pa.Table], partitions: int
) -> tuple[DataFrame, dict[str, DataFrame]]:
    """The relations of a decomposable unit, from its seeds and what it reads.

    The first result is the union of all tasks' output, which is cached.
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
