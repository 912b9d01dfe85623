"""The protocol of `core.program.executor` on Spark, by evaluation after each step.

This is the executor that tests hold to the reference, and what serves a small stream of steps on a
large base.  What changes large results by batches is `spark_backend.batches.spark_state`.

The base is the initial input, a frame of any size, with an overlay of the facts that steps inserted
or deleted.  One job evaluates the program and compares it with the previous state: it collects only
the changes.  If all facts of a relation were collected that way, its view is stored here, and the
next comparison needs no cached frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import field, frozen

from everlog.core.program import Program, Row
from everlog.core.program.executor import Changes, InsertOnly, NotABaseRelation, Update
from everlog.core.program.fact_rows import declared, fact_rows
from everlog.spark_backend.column_types import (
    collected,
    fetch,
    frame_of_rows,
    kinds_of,
    names_of,
    python_rows,
    slots_of,
    unwidened,
    widened,
)
from everlog.spark_backend.evaluate import Evaluated, evaluate_plan, telling
from everlog.spark_backend.inputs import Input, frame_of_input
from everlog.spark_backend.plan import plan
from everlog.spark_backend.settings import DEFAULT, Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KNOWN = 1_000_000  # facts of one relation that are stored here rather than on Spark


@frozen
class SparkExecutor:
    """Runs programs on a Spark session."""

    spark: SparkSession
    settings: Settings = field(default=DEFAULT)

    def start(self, program: Program, inputs: Mapping[str, Input] | None = None) -> SparkRun:
        """A run with the program's own facts, and those of `inputs`."""
        return SparkRun(self.spark, program, self.settings, inputs or {})


class SparkRun:
    """One running program.

    Invariants:
      I1  `_overlay` maps facts of relations of the program to whether they exist;
      I2  a relation is in `_views` with exactly its facts, or its frame is in `_frames`.
    """

    def __init__(
        self, spark: SparkSession, program: Program, settings: Settings, inputs: Mapping[str, Input]
    ) -> None:
        self._planned = plan(program, settings).without_facts()
        self._spark, self._program = spark, self._planned.program
        self._given = {
            name: frame_of_input(spark, source, declared(program.relations, name))
            for name, source in inputs.items()
        }
        self._overlay = {name: dict.fromkeys(program.facts.get(name, ()), True) for name in program.relations}
        self._views: dict[str, frozenset[Row]] = {name: frozenset() for name in program.relations}
        self._frames: dict[str, DataFrame] = {}
        self._held: Evaluated | None = None
        self._kinds = {name: kinds_of(relation) for name, relation in program.relations.items()}
        self._become(self._overlay)

    # ── the protocol ─────────────────────────────────────────────────────────────────────────

    def apply(self, step: Iterable[Update]) -> Changes:
        overlay = {name: dict(rows) for name, rows in self._overlay.items()}
        for update in step:
            rows = overlay.get(update.relation)
            if rows is None:
                raise NotABaseRelation(f"undefined relation `{update.relation}`")
            (row,) = fact_rows(self._program.relations[update.relation], [update.row])
            if not update.insert and self._program.relations[update.relation].insert_only:
                raise InsertOnly(update.relation)
            rows[row] = update.insert
        return self._become(overlay)

    def view(self, relation: str) -> frozenset[Row]:
        declared(self._program.relations, relation)
        if relation not in self._views:
            with telling(self._program):
                rows = fetch({relation: (self._frames[relation], self._kinds[relation])})
            assert rows is not None
            return frozenset(rows[relation])
        return self._views[relation]

    def frame(self, relation: str) -> DataFrame:
        """The current relation as a frame."""
        if relation in self._frames:
            return self._frames[relation]
        return frame_of_rows(self._spark, self._views[relation], self._kinds[relation])

    def check(self) -> None:
        for name, overlay in self._overlay.items():
            assert all(len(row) == len(self._kinds[name]) for row in overlay), "I1"
        assert self._views.keys() | self._frames.keys() == self._program.relations.keys(), "I2"
        assert not self._views.keys() & self._frames.keys(), "I2"

    # ── one step ─────────────────────────────────────────────────────────────────────────────

    def _base(self, overlay: Mapping[str, Mapping[Row, bool]]) -> dict[str, Input]:
        out: dict[str, Input] = {}
        for name, rows in overlay.items():
            there = [row for row, present in rows.items() if present]
            if name not in self._given:
                out[name] = there
                continue
            frame, columns = self._given[name], names_of(len(self._kinds[name]))
            if rows:  # without all facts of the overlay, then with the existing ones
                frame = frame.join(frame_of_rows(self._spark, rows, self._kinds[name]), columns, "left_anti")
                frame = frame.union(frame_of_rows(self._spark, there, self._kinds[name]))
            out[name] = frame.distinct()
        return out

    def _become(self, overlay: dict[str, dict[Row, bool]]) -> Changes:
        """Evaluate the program on a base, and go over to it; the changes."""
        found = evaluate_plan(self._spark, self._planned, self._base(overlay), unique=True)
        names = list(self._program.relations)
        with telling(self._program):
            changes = self._compared(found, names)
        views: dict[str, frozenset[Row]] = {}
        frames: dict[str, DataFrame] = {}
        for name in names:
            change = changes.get(name, {})
            known = self._views.get(name)
            if known is not None and len(known) + len(change) <= KNOWN:
                gone = {row for row, sign in change.items() if sign < 0}
                views[name] = (known - gone) | {row for row, sign in change.items() if sign > 0}
            else:
                frames[name] = found[name].persist()
        if self._held is not None:
            self._held.release()
        for frame in self._frames.values():
            frame.unpersist()
        self._overlay, self._views, self._frames, self._held = overlay, views, frames, found
        return changes

    def _compared(self, found: Evaluated, names: list[str]) -> dict[str, dict[Row, int]]:
        """The new facts (+1) and lost facts (-1) of each relation, in at most one job."""
        changes: dict[str, dict[Row, int]] = {}
        asked: list[str] = []
        for name in names:
            if name in found.rows and name in self._views:
                changes[name] = _difference(self._views[name], frozenset(found.rows[name]))
            else:
                asked.append(name)
        if asked:
            whole = {name for name in asked if found.few and name in self._views}
            every = [self._kinds[name] for name in asked]
            parts = [(self._change(name, found[name], name in whole), self._kinds[name]) for name in asked]
            for tag, part in unwidened(collected(widened(parts, extra=["sign"])), every):
                columns = [part.column(slot) for slot in slots_of(every[tag])]
                rows = python_rows(columns, every[tag], part.num_rows)
                name = asked[tag]
                if name in whole:
                    changes[name] = _difference(self._views[name], frozenset(rows))
                else:
                    changes[name] = dict(zip(rows, part.column("sign").to_pylist(), strict=False))
        return {name: change for name, change in changes.items() if change}

    def _change(self, name: str, now: DataFrame, whole: bool) -> DataFrame:
        """The signed rows of a relation: all of `now`, or the differences."""
        from pyspark.sql import functions as F

        after = now.select("*", F.lit(1).alias("sign"))
        if whole or self._views.get(name) == frozenset():
            return after
        before = self.frame(name).select("*", F.lit(-1).alias("sign"))
        columns = names_of(len(self._kinds[name]))
        both = after.union(before).groupBy(*columns).agg(F.sum("sign").cast("int").alias("sign"))
        return both.where(F.col("sign") != 0)


def _difference(before: frozenset[Row], after: frozenset[Row]) -> dict[Row, int]:
    return dict.fromkeys(after - before, 1) | dict.fromkeys(before - after, -1)
