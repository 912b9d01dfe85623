"""One batch through the units: how each relation follows its inputs' changes.

| unit                         | how                                                               |
|------------------------------|-------------------------------------------------------------------|
| rules that are not recursive | count the derivations of each fact; a batch adds and subtracts    |
| recursion                    | over-delete what a lost fact may support, rederive, insert        |
| aggregates, choice, `<=`     | recompute if something that it reads has changed, and compare     |

A unit that reads no changed relation is skipped.  Each changed relation is written anew beside the
old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from everlog.core.program import Aggregate, Program
from everlog.core.program.bodies import rule_may_fail
from everlog.core.program.executor import InsertOnly
from everlog.spark_backend.batches.deltas import SIGN, Deltas, Versions
from everlog.spark_backend.batches.parquet_state import Folder, Table, Writing
from everlog.spark_backend.column_types import frame_of_rows, kinds_of, names_of, schema_of
from everlog.spark_backend.evaluate import evaluate_plan
from everlog.spark_backend.frames.bindings import Facts
from everlog.spark_backend.frames.rule_frames import Rules
from everlog.spark_backend.inputs import Input
from everlog.spark_backend.iterate import Checkpoints, Iteration, release
from everlog.spark_backend.plan import DECOMPOSED, GIVEN, IN_PROCESS, ITERATED, Planned, SparkPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT = "count"
COUNTED, DRED, AGAIN = "counted", "delete and derive again", "computed again"


@frozen
class Applied:
    """The effect of a batch: inserted and deleted facts by relation, in `folder`."""

    batch: str
    version: int
    changed: Mapping[str, int]
    folder: Path
    repeated: bool = False  # the batch was in the state already, and nothing was done


def way_of(one: Planned) -> str:
    if one.way == GIVEN:
        return GIVEN
    aggregates = any(isinstance(literal, Aggregate) for rule in one.unit.rules for literal in rule.body)
    if one.way == IN_PROCESS or aggregates or one.unit.subsumptions or any(map(rule_may_fail, one.unit.rules)):
        return AGAIN  # a condition that may fail must not combine old facts with new ones
    return DRED if one.way in (ITERATED, DECOMPOSED) else COUNTED


class Tables:
    """The tables of a state as frames."""

    def __init__(self, spark: SparkSession, program: Program, folder: Folder, planned: SparkPlan) -> None:
        self.spark, self.program, self._folder = spark, program, folder
        self._ways = {name: way_of(one) for one in planned.units for name in one.unit.relations}

    def table(self, name: str, tables: Mapping[str, Table] | None = None) -> DataFrame | None:
        """A table of the state (or of `tables`); None if it is empty."""
        table = (tables or self._folder.commit.tables).get(name)
        if table is None or not table.size:
            return None
        relation = name.split(" ", 1)[1]
        schema = schema_of(kinds_of(self.program.relations[relation]))
        if name.startswith("facts ") and self._ways[relation] == COUNTED:
            schema += f", {COUNT} bigint"
        return self._folder.read(self.spark, table, schema)

    def facts(self, relation: str, tables: Mapping[str, Table] | None = None) -> DataFrame | None:
        """The facts of a relation, without counts."""
        found = self.table(f"facts {relation}", tables)
        return None if found is None else found.drop(COUNT)

    def empty(self, relation: str) -> DataFrame:
        return frame_of_rows(self.spark, [], kinds_of(self.program.relations[relation]))


class Following:
    """One batch on its way through the units."""

    def __init__(
        self,
        tables: Tables,
        planned: SparkPlan,
        writing: Writing,
        given: Mapping[str, DataFrame],
        taken: Mapping[str, DataFrame],
    ) -> None:
        self._tables, self._planned, self._settings, self._writing = tables, planned, planned.settings, writing
        self._given, self._taken = given, taken
        self._spark, self._program = tables.spark, tables.program
        self._checkpoints = Checkpoints(self._spark, planned.settings)
        self._versions: dict[str, Versions] = {}
        self._cuts: list[DataFrame] = []

    def run(self, batch: str) -> Applied:
        changed: dict[str, int] = {}
        for one in self._planned.units:
            bases = {name: self._base(name, one.way == GIVEN) for name in one.unit.relations}
            moved = any(self._versions[name].delta is not None for name in one.reads)
            moved = moved or any(base.delta is not None for base in bases.values())
            for name in one.unit.relations:
                old = self._tables.facts(name)
                self._versions[name] = Versions(old, old)
            if not moved:
                continue
            deltas = {GIVEN: self._given_unit, COUNTED: self._counted, DRED: self._dred, AGAIN: self._again}[
                way_of(one)
            ](one, bases)
            for name, delta in deltas.items():
                size = self._settle(name, delta, way_of(one) == COUNTED)
                if size:
                    changed[name] = size
        commit = self._writing.commit(batch)
        return Applied(batch, commit.version, changed, self._writing.changes)

    def release(self) -> None:
        """Free the intermediate results."""
        for frame in self._cuts:
            release(frame)

    # ── parts ────────────────────────────────────────────────────────────────────────────────

    def _names(self, name: str) -> list[str]:
        return names_of(self._program.relations[name].arity)

    def _old(self, name: str) -> DataFrame:
        old = self._versions[name].old
        return self._tables.empty(name) if old is None else old

    def _cut(self, frame: DataFrame) -> DataFrame | None:
        """Compute a frame once; None if it has no rows."""
        piece = self._checkpoints.cut(frame)
        self._cuts.append(piece.frame)
        return piece.frame if piece.size else None

    def _base(self, name: str, alone: bool) -> Versions:
        """The base facts of a relation before and after; without rules, all its facts."""
        from pyspark.sql import functions as F

        table = f"facts {name}" if alone else f"given {name}"
        old = self._tables.table(table)
        given, taken, names = self._given.get(name), self._taken.get(name), self._names(name)
        parts = []
        if given is not None:
            plus = given.distinct()
            plus = plus if old is None else plus.join(old, names, "left_anti")
            parts.append(plus.withColumn(SIGN, F.lit(1)))
        if taken is not None and old is not None:
            minus = old.join(taken, names, "left_semi")
            minus = minus if given is None else minus.join(given, names, "left_anti")
            parts.append(minus.withColumn(SIGN, F.lit(-1)))
        if not parts:
            return Versions(old, old)
        delta = self._cut(parts[0] if len(parts) == 1 else parts[0].union(parts[1]))
        if delta is None:
            return Versions(old, old)
        if self._program.relations[name].insert_only and not delta.where(F.col(SIGN) < 0).isEmpty():
            raise InsertOnly(name)
        new = self._moved(name, old, delta)
        if not alone:
            self._writing.write(table, new)
        return Versions(old, new, delta)

    def _moved(self, name: str, old: DataFrame | None, delta: DataFrame) -> DataFrame:
        """The facts after a change."""
        from pyspark.sql import functions as F

        plus = delta.where(F.col(SIGN) > 0).drop(SIGN)
        if old is None:
            return plus
        minus = delta.where(F.col(SIGN) < 0).drop(SIGN)
        return old.join(minus, self._names(name), "left_anti").union(plus)

    def _settle(self, name: str, delta: DataFrame | None, counted: bool) -> int:
        """Write a relation's new facts and its changes, which later units read."""
        if delta is None:
            return 0
        old = self._versions[name].old
        if not counted:
            self._writing.write(f"facts {name}", self._moved(name, old, delta))
        size = self._writing.tell(name, delta.select(*self._names(name), SIGN))
        new = self._tables.facts(name, self._writing.tables)
        self._versions[name] = Versions(old, new, delta if size else None)
        return size

    # ── strategies ───────────────────────────────────────────────────────────────────────────

    def _given_unit(self, one: Planned, bases: Mapping[str, Versions]) -> dict[str, DataFrame | None]:
        return {name: base.delta for name, base in bases.items()}

    def _counted(self, one: Planned, bases: Mapping[str, Versions]) -> dict[str, DataFrame | None]:
        """Add gained derivations and subtract lost ones; a fact needs a positive count."""
        from pyspark.sql import functions as F

        (name,) = one.unit.relations
        names = self._names(name)
        deltas = Deltas(self._spark, self._program, self._versions.__getitem__)
        parts = [frame for rule in one.unit.rules for frame in deltas.counted(rule)]
        base = bases[name].delta
        parts += [base] if base is not None else []
        if not parts:
            return {}
        every = parts[0]
        for part in parts[1:]:
            every = every.union(part)
        summed = (
            every.groupBy(*names).agg(F.sum(F.col(SIGN).cast("bigint")).alias("more")).where(F.col("more") != 0)
        )
        old = self._tables.table(f"facts {name}")
        if old is None:
            joined = summed.withColumn("before", F.lit(0).cast("bigint"))
        else:
            joined = summed.join(old, names, "left").withColumn("before", F.coalesce(F.col(COUNT), F.lit(0)))
        touched = self._cut(joined.select(*names, "before", (F.col("before") + F.col("more")).alias("after")))
        if touched is None:
            return {}
        kept = touched.where(F.col("after") != 0).select(*names, F.col("after").alias(COUNT))
        new = kept if old is None else old.join(touched, names, "left_anti").select(*names, COUNT).union(kept)
        self._writing.write(f"facts {name}", new)
        sign = F.when(F.col("before") == 0, F.lit(1)).otherwise(F.lit(-1))
        moved = touched.where((F.col("before") == 0) | (F.col("after") == 0))
        return {name: moved.select(*names, sign.alias(SIGN))}

    def _dred(self, one: Planned, bases: Mapping[str, Versions]) -> dict[str, DataFrame | None]:
        """Over-delete on the old facts; rederive and insert on the new ones."""
        gone = self._overdeleted(one, bases)
        rest = {}
        for name in one.unit.relations:
            old = self._old(name)
            rest[name] = old if gone.get(name) is None else old.join(gone[name], self._names(name), "left_anti")
        seeds = {name: self._regained(one, name, bases[name], rest, gone.get(name)) for name in one.unit.relations}
        found = self._iterated(one, seeds, known=rest, frozen=None)
        out: dict[str, DataFrame | None] = {}
        for name, facts in found.items():
            out[name] = self._signed(name, facts, gone.get(name))
        return out

    def _signed(self, name: str, added: DataFrame, gone: DataFrame | None) -> DataFrame | None:
        """The inserted facts without those that were deleted only temporarily."""
        from pyspark.sql import functions as F

        names = self._names(name)
        both = added.withColumn(SIGN, F.lit(1))
        if gone is not None:
            both = both.union(gone.withColumn(SIGN, F.lit(-1)))
            both = both.groupBy(*names).agg(F.sum(SIGN).cast("int").alias(SIGN)).where(F.col(SIGN) != 0)
        return self._cut(both)

    def _overdeleted(self, one: Planned, bases: Mapping[str, Versions]) -> dict[str, DataFrame]:
        deltas = Deltas(self._spark, self._program, self._versions.__getitem__)
        seeds: dict[str, DataFrame] = {}
        for name in one.unit.relations:
            old = self._versions[name].old
            parts = _some(bases[name].signed(-1))
            for rule in one.unit.rules:
                if rule.head.relation == name:
                    parts += deltas.touched(rule, losing=True)
            if old is None or not parts:
                continue
            lost = self._cut(_all(parts).distinct().join(old, self._names(name), "left_semi"))
            if lost is not None:
                seeds[name] = lost
        if not seeds:
            return {}
        every = {name: seeds.get(name, self._tables.empty(name)) for name in one.unit.relations}
        old_facts = {name: Facts(self._old(name)) for name in one.unit.relations}
        return self._iterated(one, every, known=None, frozen=old_facts)

    def _regained(
        self, one: Planned, name: str, base: Versions, rest: Mapping[str, DataFrame], gone: DataFrame | None
    ) -> DataFrame:
        """Facts derived from what is left: deleted ones that still hold, and new ones."""
        now = {other: Versions(frame, frame) for other, frame in rest.items()}
        deltas = Deltas(self._spark, self._program, lambda other: now.get(other) or self._versions[other])
        parts = _some(base.signed(1))
        if gone is not None and base.new is not None:
            parts.append(gone.join(base.new, self._names(name), "left_semi"))
        for rule in one.unit.rules:
            if rule.head.relation == name:
                parts += deltas.touched(rule, losing=False)
                again = None if gone is None else deltas.derived(rule, among=gone)
                parts += [] if again is None else [again]
        return _all(parts) if parts else self._tables.empty(name)

    def _iterated(
        self,
        one: Planned,
        seeds: Mapping[str, DataFrame],
        known: Mapping[str, DataFrame] | None,
        frozen: Mapping[str, Facts] | None,
    ) -> dict[str, DataFrame]:
        """The facts that recursion adds to `known`; with `frozen`, those it reaches there."""
        base = {}
        for name in one.reads:
            held = self._versions[name]
            frame = held.old if frozen is not None else held.new
            base[name] = Facts(self._tables.empty(name) if frame is None else frame)
        rules = Rules(self._spark, self._program, self._planned.cyclic)
        iteration = Iteration(rules, one.unit, base, self._settings, frozen=frozen)
        begin = None if known is None else {name: Facts(frame) for name, frame in known.items()}
        iteration.run({name: Facts(frame) for name, frame in seeds.items()}, begin)
        return {name: iteration.added(name).frame for name in one.unit.relations}

    def _again(self, one: Planned, bases: Mapping[str, Versions]) -> dict[str, DataFrame | None]:
        """Evaluate the unit on the new facts, and compare."""
        from pyspark.sql import functions as F

        planned = self._planned.alone(one)
        inputs: dict[str, Input] = {}
        for name in planned.program.relations:
            held = bases[name].new if name in bases else self._versions[name].new
            if held is not None:
                inputs[name] = held
        found = evaluate_plan(self._spark, planned, inputs, unique=True)
        out = {}
        for name in one.unit.relations:
            after, old = found[name].withColumn(SIGN, F.lit(1)), self._versions[name].old
            if old is not None:
                both = after.union(old.withColumn(SIGN, F.lit(-1)))
                after = (
                    both.groupBy(*self._names(name))
                    .agg(F.sum(SIGN).cast("int").alias(SIGN))
                    .where(F.col(SIGN) != 0)
                )
            out[name] = self._cut(after)
        found.release()
        return out


def _some(part: DataFrame | None) -> list[DataFrame]:
    return [] if part is None else [part]


def _all(parts: list[DataFrame]) -> DataFrame:
    every = parts[0]
    for part in parts[1:]:
        every = every.union(part)
    return every
