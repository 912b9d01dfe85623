"""Batches of inserts and deletes, applied to results that live on Spark.

The state is Parquet (`spark_backend.state`).  A batch goes through the units in order, and each follows the
change of what it reads:

| unit                         | how                                                                            |
|------------------------------|--------------------------------------------------------------------------------|
| rules that are not recursive | the derivations of each fact are counted; a batch adds and takes away          |
| recursion                    | delete what a lost fact may have supported, derive again what still holds, add |
| aggregates, choice, `<=`     | computed again when something that it reads has changed, and compared          |

A unit that reads nothing changed is not looked at.  Each changed relation is written anew beside the old one,
what changed is written as Parquet, and one rename makes all of it the state.  Deletes of a batch come before
its inserts.

Reads: core.executor, spark_backend.deltas, .iterate, .evaluate, .state.  Read by: users, `foreachBatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from everlog.core.dependencies import Unit, units
from everlog.core.executor import InsertOnly, NotABaseRelation
from everlog.core.program import Aggregate, Program
from everlog.spark_backend.bodies import Facts
from everlog.spark_backend.columns import frame_of_rows, kinds_of, names_of, schema_of
from everlog.spark_backend.deltas import SIGN, Deltas, Versions
from everlog.spark_backend.evaluate import Input, conforming, evaluate, is_frame, telling
from everlog.spark_backend.in_process import program_of
from everlog.spark_backend.iterate import Checkpoints, Iteration, release
from everlog.spark_backend.plan import DECOMPOSED, GIVEN, IN_PROCESS, ITERATED, Planned, plan
from everlog.spark_backend.rules import Rules
from everlog.spark_backend.settings import DEFAULT, Settings
from everlog.spark_backend.state import Folder, Table, Writing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT = "count"
FIRST = "(the facts of the program)"
COUNTED, DRED, AGAIN = "counted", "delete and derive again", "computed again"


@frozen
class Applied:
    """What a batch did: of each changed relation how many facts came and went; `folder` has them as Parquet."""

    batch: str
    version: int
    changed: Mapping[str, int]
    folder: Path
    repeated: bool = False  # the batch was in the state already, and nothing was done


class SparkState:
    """The relations of a program in a folder, kept current by batches.

    Invariant: the state is the program evaluated on the facts that the batches in it gave.
    """

    def __init__(
        self, spark: SparkSession, program: Program, folder: str | Path, settings: Settings = DEFAULT
    ) -> None:
        self._spark, self._program, self._settings = spark, program, settings
        self._planned = plan(program, settings)
        self._ways = {name: _way(one) for one in self._planned for name in one.unit.relations}
        self._folder = Folder(folder, program)
        if self._folder.commit.version == 0:
            self.apply(FIRST, {name: list(rows) for name, rows in program.facts.items() if rows})

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    @property
    def version(self) -> int:
        return self._folder.commit.version

    @property
    def batches(self) -> tuple[str, ...]:
        return self._folder.commit.batches

    def view(self, relation: str) -> DataFrame:
        """The facts of a relation now."""
        found = self._table(f"facts {relation}")
        return self._empty(relation) if found is None else found.drop(COUNT)

    def size(self, relation: str) -> int:
        table = self._folder.commit.tables.get(f"facts {relation}")
        return 0 if table is None else table.size

    def explain(self) -> str:
        return "\n".join(f"{one.name}: {_way(one)}" for one in self._planned)

    def _table(self, name: str, tables: Mapping[str, Table] | None = None) -> DataFrame | None:
        table = (tables or self._folder.commit.tables).get(name)
        if table is None or not table.size:
            return None
        relation = name.split(" ", 1)[1]
        schema = schema_of(kinds_of(self._program.relations[relation]))
        if name.startswith("facts ") and self._ways[relation] == COUNTED:
            schema += f", {COUNT} bigint"
        return self._folder.read(self._spark, table, schema)

    def _empty(self, relation: str) -> DataFrame:
        return frame_of_rows(self._spark, [], kinds_of(self._program.relations[relation]))

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def apply(
        self, batch: str, inserts: Mapping[str, Input] | None = None, deletes: Mapping[str, Input] | None = None
    ) -> Applied:
        """Apply a batch, all or nothing; one that was applied before changes nothing."""
        given = {name: self._frame(name, source) for name, source in (inserts or {}).items()}
        taken = {name: self._frame(name, source) for name, source in (deletes or {}).items()}
        with self._folder.writing() as writing, telling(self._program):
            if batch in self._folder.commit.batches:
                commit = self._folder.commit
                version = commit.version - (len(commit.batches) - 1 - commit.batches.index(batch))
                return Applied(batch, version, {}, self._folder.path / "changes" / str(version), repeated=True)
            return _Batch(self, writing, given, taken).run(batch)

    def foreach_batch(self, relation: str, name: str, op: str = "op") -> Callable[[DataFrame, int], None]:
        """What `writeStream.foreachBatch` takes: each micro-batch of a stream becomes a batch `NAME-EPOCH`.

        The stream has the columns of the relation, by position, and may have a column `op`: rows with `-` in
        it, or `delete`, are deletes, all others inserts.  An epoch that Spark delivers again changes nothing.
        """

        def apply(frame: DataFrame, epoch: int) -> None:
            from pyspark.sql import functions as F

            inserts, deletes = frame, frame.limit(0)
            if op in frame.columns:
                gone = F.lower(F.col(op).cast("string")).isin("-", "delete", "d", "-1")
                inserts, deletes = frame.where(~gone).drop(op), frame.where(gone).drop(op)
            self.apply(f"{name}-{epoch}", {relation: inserts}, {relation: deletes})

        return apply

    def _frame(self, name: str, source: Input) -> DataFrame:
        if name not in self._program.relations:
            raise NotABaseRelation(f"undefined relation `{name}`")
        relation = self._program.relations[name]
        if is_frame(source):
            return conforming(source, relation)
        return frame_of_rows(self._spark, source, kinds_of(relation))


def _way(one: Planned) -> str:
    if one.way == GIVEN:
        return GIVEN
    aggregates = any(isinstance(literal, Aggregate) for rule in one.unit.rules for literal in rule.body)
    if one.way == IN_PROCESS or aggregates:
        return AGAIN
    return DRED if one.way in (ITERATED, DECOMPOSED) else COUNTED


class _Batch:
    """One batch on its way through the units."""

    def __init__(
        self, state: SparkState, writing: Writing, given: Mapping[str, DataFrame], taken: Mapping[str, DataFrame]
    ) -> None:
        self._state, self._writing, self._given, self._taken = state, writing, given, taken
        self._spark, self._program = state._spark, state._program
        self._checkpoints = Checkpoints(self._spark, state._settings)
        self._versions: dict[str, Versions] = {}
        self._cuts: list[DataFrame] = []
        self._original: Mapping[str, Unit] = {n: unit for unit in units(self._program) for n in unit.relations}

    def run(self, batch: str) -> Applied:
        changed: dict[str, int] = {}
        for one in self._state._planned:
            bases = {name: self._base(name, one.way == GIVEN) for name in one.unit.relations}
            moved = any(self._versions[name].delta is not None for name in one.reads)
            moved = moved or any(base.delta is not None for base in bases.values())
            for name in one.unit.relations:
                old = self._facts(name)
                self._versions[name] = Versions(old, old)
            if not moved:
                continue
            deltas = {GIVEN: self._given_unit, COUNTED: self._counted, DRED: self._dred, AGAIN: self._again}[
                _way(one)
            ](one, bases)
            for name, delta in deltas.items():
                size = self._settle(name, delta, _way(one) == COUNTED)
                if size:
                    changed[name] = size
        commit = self._writing.commit(batch)
        for frame in self._cuts:
            release(frame)
        return Applied(batch, commit.version, changed, self._writing.changes)

    # ── parts ────────────────────────────────────────────────────────────────────────────────

    def _facts(self, name: str) -> DataFrame | None:
        found = self._state._table(f"facts {name}")
        return None if found is None else found.drop(COUNT)

    def _names(self, name: str) -> list[str]:
        return names_of(self._program.relations[name].arity)

    def _cut(self, frame: DataFrame) -> DataFrame | None:
        """Compute a frame once; None if it has no rows."""
        piece = self._checkpoints.cut(frame)
        self._cuts.append(piece.frame)
        return piece.frame if piece.size else None

    def _base(self, name: str, alone: bool) -> Versions:
        """The given facts of a relation before and after; where it has no rules they are its facts."""
        from pyspark.sql import functions as F

        table = f"facts {name}" if alone else f"given {name}"
        old = self._state._table(table)
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
        """Facts after a change."""
        from pyspark.sql import functions as F

        plus = delta.where(F.col(SIGN) > 0).drop(SIGN)
        if old is None:
            return plus
        minus = delta.where(F.col(SIGN) < 0).drop(SIGN)
        return old.join(minus, self._names(name), "left_anti").union(plus)

    def _settle(self, name: str, delta: DataFrame | None, counted: bool) -> int:
        """Write a relation's new facts and what changed; later units read them."""
        if delta is None:
            return 0
        old = self._versions[name].old
        if not counted:
            self._writing.write(f"facts {name}", self._moved(name, old, delta))
        size = self._writing.tell(name, delta.select(*self._names(name), SIGN))
        new = self._state._table(f"facts {name}", self._writing.tables)
        new = None if new is None else new.drop(COUNT)
        self._versions[name] = Versions(old, new, delta if size else None)
        return size

    # ── ways ─────────────────────────────────────────────────────────────────────────────────

    def _given_unit(self, one: Planned, bases: Mapping[str, Versions]) -> dict[str, DataFrame | None]:
        return {name: base.delta for name, base in bases.items()}

    def _counted(self, one: Planned, bases: Mapping[str, Versions]) -> dict[str, DataFrame | None]:
        """Add the derivations gained and take away those lost; facts come and go with their count."""
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
        old = self._state._table(f"facts {name}")
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
        """Over-delete on the old facts; derive again, and add, on the new ones."""
        gone = self._overdeleted(one, bases)
        rest = {}
        for name in one.unit.relations:
            old = self._versions[name].old or self._state._empty(name)
            rest[name] = old if gone.get(name) is None else old.join(gone[name], self._names(name), "left_anti")
        seeds = {name: self._regained(one, name, bases[name], rest, gone.get(name)) for name in one.unit.relations}
        found = self._iterated(one, seeds, known=rest, frozen=None)
        out: dict[str, DataFrame | None] = {}
        for name, facts in found.items():
            out[name] = self._signed(name, facts, gone.get(name))
        return out

    def _signed(self, name: str, added: DataFrame, gone: DataFrame | None) -> DataFrame | None:
        """What was added, less what was only taken away for a while."""
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
        every = {name: seeds.get(name, self._state._empty(name)) for name in one.unit.relations}
        old_facts = {
            name: Facts(self._versions[name].old or self._state._empty(name)) for name in one.unit.relations
        }
        return self._iterated(one, every, known=None, frozen=old_facts)

    def _regained(
        self, one: Planned, name: str, base: Versions, rest: Mapping[str, DataFrame], gone: DataFrame | None
    ) -> DataFrame:
        """Facts that what is left derives at once: gone ones that still hold, and new ones."""
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
        return _all(parts) if parts else self._state._empty(name)

    def _iterated(
        self,
        one: Planned,
        seeds: Mapping[str, DataFrame],
        known: Mapping[str, DataFrame] | None,
        frozen: Mapping[str, Facts] | None,
    ) -> dict[str, DataFrame]:
        """What the recursion adds to `known`; with `frozen` old facts, what it reaches among them."""
        base = {}
        for name in one.reads:
            held = self._versions[name]
            frame = held.old if frozen is not None else held.new
            base[name] = Facts(self._state._empty(name) if frame is None else frame)
        rules = Rules(self._spark, self._program)
        iteration = Iteration(rules, one.unit, base, self._state._settings, frozen=frozen)
        begin = None if known is None else {name: Facts(frame) for name, frame in known.items()}
        iteration.run({name: Facts(frame) for name, frame in seeds.items()}, begin)
        return {name: iteration.added(name).frame for name in one.unit.relations}

    def _again(self, one: Planned, bases: Mapping[str, Versions]) -> dict[str, DataFrame | None]:
        """Evaluate the unit on the new facts, and compare."""
        from pyspark.sql import functions as F

        program = program_of(self._program, self._original[one.unit.relations[0]])
        inputs: dict[str, Input] = {}
        for name in program.relations:
            held = bases[name].new if name in bases else self._versions[name].new
            if held is not None:
                inputs[name] = held
        found = evaluate(self._spark, program, inputs, self._state._settings, unique=True)
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


__all__ = ["Applied", "SparkState"]
