"""Recursion as rounds of plans: one job and one shuffle per relation and round.

Each relation of the unit is partitioned by the column by which its recursive rules join it; so are
the relations that they join it with, once.  A round joins Δ in place, shuffles the candidates to
their partitions, and removes duplicates and known facts there.  The result is checkpointed, which
cuts the lineage, keeps partitions and order, and is the only job: `observe` counts the new facts.

Known facts are kept in pieces, newest last, and merged when there are many: a piece at least twice
as large as all newer ones stays, so that a fact is merged a logarithmic number of times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from attrs import define, field, frozen

from everlog.core.program import Atom, Variable
from everlog.core.program.dependencies import Unit
from everlog.spark_backend.column_types import names_of
from everlog.spark_backend.frame_gc import forget_frames
from everlog.spark_backend.frames.bindings import Facts
from everlog.spark_backend.frames.body_frames import Lookup
from everlog.spark_backend.frames.rule_frames import Rules, distinct, union
from everlog.spark_backend.settings import ITERATION, Settings, is_local, partitions_of, tuned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress: TypeAlias = Callable[[str, int, int], None]  # unit, round, number of new facts


@frozen
class Piece:
    """Checkpointed facts, and their number."""

    frame: DataFrame
    size: int


class Checkpoints:
    """Cuts lineage: checkpoints a frame on the executors or in the checkpoint folder."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self._reliable = not is_local(spark) if settings.reliable is None else settings.reliable
        if self._reliable and not spark.conf.get("spark.checkpoint.dir", None) and not _checkpoint_folder(spark):
            raise ValueError(
                "a recursion on a cluster needs a checkpoint folder that all executors can reach: "
                "set spark.checkpoint.dir (everlog run --conf spark.checkpoint.dir=…)"
            )

    def cut(self, frame: DataFrame) -> Piece:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        forget_frames()
        seen = Observation()
        watched = frame.observe(seen, F.count(F.lit(1)).alias("size"))
        kept = watched.checkpoint() if self._reliable else watched.localCheckpoint()
        size = seen.get.get("size")  # Spark Connect does not return what a checkpoint observed: count there
        return Piece(kept, kept.count() if size is None else int(size))


def _checkpoint_folder(spark: SparkSession) -> bool:
    try:
        return spark.sparkContext.getCheckpointDir() is not None
    except Exception:  # Spark Connect: the server has a folder or raises an error
        return True


def release(frame: DataFrame) -> None:
    """Free the blocks of a checkpointed frame now; Spark would free them later."""
    plan = getattr(frame, "_jdf", None)
    if plan is not None:
        try:
            plan.queryExecution().analyzed().rdd().unpersist(False)
        except Exception:  # not a plan of that form: the garbage collector frees it
            return


# ── partitioning ─────────────────────────────────────────────────────────────────────────────


def join_columns(unit: Unit) -> dict[str, tuple[int, ...]]:
    """For each relation the columns by which recursive rules most often join it."""
    found: dict[str, Counter[tuple[int, ...]]] = {name: Counter() for name in unit.relations}
    for rule in unit.rules:
        for place in unit.positions(rule):
            atom = rule.body[place]
            assert isinstance(atom, Atom)
            for other in rule.body:
                if isinstance(other, Atom) and other is not atom:
                    shared = tuple(
                        n for n, a in enumerate(atom.args) if isinstance(a, Variable) and a in other.args
                    )
                    if shared:
                        found[atom.relation][shared] += 1
    return {name: counter.most_common(1)[0][0] if counter else () for name, counter in found.items()}


def base_columns(unit: Unit, keys: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """For each relation joined with a key of the unit: its join columns."""
    out: dict[str, tuple[int, ...]] = {}
    for rule in unit.rules:
        for place in unit.positions(rule):
            atom = rule.body[place]
            assert isinstance(atom, Atom)
            variables = [atom.args[column] for column in keys[atom.relation]]
            for other in rule.body:
                if not isinstance(other, Atom) or other.relation in unit.relations or not variables:
                    continue
                if all(isinstance(v, Variable) and v in other.args for v in variables):
                    out.setdefault(other.relation, tuple(other.args.index(v) for v in variables))
    return out


# ── rounds ───────────────────────────────────────────────────────────────────────────────────


@define
class Known:
    """The facts of one relation so far, in disjoint pieces."""

    order: list[str]  # its columns
    names: list[str]  # the same, partitioning columns first
    keys: list[str]
    pieces: list[Piece] = field(factory=list)
    fixed: int = 0  # the number of first pieces that are not merged

    def facts(self) -> Facts:
        return Facts(union([Facts(piece.frame) for piece in self.pieces]).frame)

    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


class Iteration:
    """The fixpoint computation of one recursive unit."""

    def __init__(
        self,
        rules: Rules,
        unit: Unit,
        base: Mapping[str, Facts],
        settings: Settings,
        progress: Progress | None = None,
        frozen: Mapping[str, Facts] | None = None,
    ) -> None:
        """`base` is what the unit reads; with `frozen`, its atoms other than Δ read that."""
        self._rules, self._unit, self._settings, self._progress = rules, unit, settings, progress
        self._frozen = frozen
        self._begun: dict[str, int] = {}
        self._checkpoints = Checkpoints(rules.spark, settings)
        self._parts = partitions_of(rules.spark, settings)
        self._keys = join_columns(unit)
        self._base = dict(base)
        self.known: dict[str, Known] = {}
        for name in unit.relations:
            names = names_of(rules.program.relations[name].arity)
            first = [names[column] for column in self._keys[name]]
            self.known[name] = Known(names, first + [n for n in names if n not in first], first or names)

    def run(self, seeds: Mapping[str, Facts], known: Mapping[str, Facts] | None = None) -> dict[str, Facts]:
        """All facts of the unit, from `seeds` and the facts `known` before."""
        with tuned(self._rules.spark, ITERATION):
            self._place_base()
            for name, facts in (known or {}).items():
                self._begin(name, facts.frame)
            delta = {name: self._added(name, facts.frame) for name, facts in seeds.items()}
            number = 1
            self._tell(number, delta)
            while any(piece.size for piece in delta.values()):
                number += 1
                delta = self._round(delta)
                self._tell(number, delta)
        return {name: self.known[name].facts() for name in seeds}

    def added(self, name: str) -> Facts:
        """The facts that the rounds found, without those known before."""
        known = self.known[name]
        return Facts(union([Facts(piece.frame) for piece in known.pieces[self._begun.get(name, 0) :]]).frame)

    def _tell(self, number: int, delta: Mapping[str, Piece]) -> None:
        if self._progress is not None:
            self._progress(", ".join(self._unit.relations), number, sum(piece.size for piece in delta.values()))

    def _place_base(self) -> None:
        """Partition and sort the relations that Δ is joined with, once."""
        for name, columns in base_columns(self._unit, self._keys).items():
            facts = self._base[name]
            keys = [f"c{column}" for column in columns]
            placed = distinct(Facts(facts.frame.repartition(self._parts, *keys), facts.unique)).frame
            self._base[name] = Facts(self._checkpoints.cut(placed.sortWithinPartitions(*keys)).frame)

    def _round(self, delta: Mapping[str, Piece]) -> dict[str, Piece]:
        """The new facts that the recursive rules derive from Δ."""
        candidates: dict[str, list[Facts]] = {}
        for rule in self._unit.rules:
            for place in self._unit.positions(rule):
                atom = rule.body[place]
                assert isinstance(atom, Atom)
                if delta[atom.relation].size:
                    found = self._rules.derived(rule, self._reading(place, delta[atom.relation]))
                    candidates.setdefault(rule.head.relation, []).append(found)
        new = {name: self._fresh(name, union(parts).frame) for name, parts in candidates.items()}
        empty = Piece(next(iter(delta.values())).frame, 0)
        for name, piece in new.items():
            if piece.size:
                self.known[name].pieces.append(piece)
                self._merge(name)
        return {name: new.get(name, empty) for name in self._unit.relations}

    def _reading(self, place: int, delta: Piece) -> Lookup:
        def lookup(atom: Atom, at: int | None) -> Facts:
            if at == place:
                return Facts(delta.frame)
            if self._frozen is not None and atom.relation in self._frozen:
                return self._frozen[atom.relation]
            return self.known[atom.relation].facts() if atom.relation in self.known else self._base[atom.relation]

        return lookup

    def _placed(self, name: str, frame: DataFrame) -> DataFrame:
        known = self.known[name]
        return frame.select(*known.names).repartition(self._parts, *known.keys)

    def _begin(self, name: str, frame: DataFrame) -> None:
        """Add facts before the first round, which are not part of Δ."""
        known = self.known[name]
        placed = self._placed(name, frame).sortWithinPartitions(*known.names)
        known.pieces.append(self._checkpoints.cut(placed.select(*known.order)))
        self._begun[name] = known.fixed = 1

    def _added(self, name: str, frame: DataFrame) -> Piece:
        """The Δ of the first round."""
        piece = self._fresh(name, frame)
        self.known[name].pieces.append(piece)
        return piece

    def _fresh(self, name: str, frame: DataFrame) -> Piece:
        """The candidates that are not known."""
        known = self.known[name]
        fresh = self._placed(name, frame).distinct()
        pieces = [piece for piece in known.pieces if piece.size]
        for piece in pieces:
            fresh = fresh.join(piece.frame.hint("merge"), known.names, "left_anti")
        if not pieces:
            fresh = fresh.sortWithinPartitions(*known.names)
        return self._checkpoints.cut(fresh.select(*known.order))

    def _united(self, name: str, frames: Sequence[DataFrame]) -> DataFrame:
        """The facts of several pieces."""
        return union([Facts(frame) for frame in frames]).frame

    def _merge(self, name: str) -> None:
        """Merge the newest pieces if there are many."""
        known = self.known[name]
        if len(known.pieces) - known.fixed <= self._settings.compact:
            return
        newest = [known.pieces.pop()]
        while len(known.pieces) > known.fixed and known.pieces[-1].size < 2 * sum(piece.size for piece in newest):
            newest.append(known.pieces.pop())
        merged = self._united(name, [piece.frame for piece in newest]).select(*known.names)
        placed = merged.repartition(self._parts, *known.keys).sortWithinPartitions(*known.names)
        known.pieces.append(self._checkpoints.cut(placed.select(*known.order)))
        for piece in newest[1:]:  # the newest is Δ, which is read once more
            release(piece.frame)
