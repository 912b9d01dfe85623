"""A whole program on Spark: from DataFrames or rows to DataFrames.

Recursion runs many jobs.  So the inputs of a program that has some are fetched first, in one job
and up to a limit, and if all of them arrive the program is evaluated in the driver.  Otherwise
units are evaluated in order.  A unit that is not recursive only adds to the plan, which Spark
optimizes and runs as a whole when rows are needed; a relation that is read more than once is
cached.  A recursive unit is computed at once, according to its plan; what it reads may be small
where the inputs are not, so it is fetched in the same way.

Use the resulting frames inside `telling(program)`, so that a division by zero on a worker raises
the same EvaluationError as in process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attrs import frozen

from everlog.core import program as p
from everlog.core.evaluate.seminaive import Evaluation
from everlog.core.evaluate.seminaive import evaluate as in_process
from everlog.core.program import Atom, Program, Row, Rule
from everlog.core.program.aggregates.best_values import best_maps
from everlog.core.program.fact_rows import declared, fact_rows
from everlog.core.runtime.guards import LimitExceeded, Limits
from everlog.spark_backend.best_rounds import BestRounds
from everlog.spark_backend.column_types import (
    collected,
    fetch,
    frame_of_rows,
    frame_of_table,
    kinds_of,
    schema_of,
    sendable,
)
from everlog.spark_backend.cyclic.cubes import Cubes
from everlog.spark_backend.decomposed import decomposed
from everlog.spark_backend.frame_gc import forget_frames
from everlog.spark_backend.frames.bindings import Facts
from everlog.spark_backend.frames.marks import evaluation_error
from everlog.spark_backend.frames.rule_frames import Rules, distinct, union
from everlog.spark_backend.in_process import arrow_of, computed
from everlog.spark_backend.inputs import Input, conforming, is_frame
from everlog.spark_backend.iterate import Iteration, Progress
from everlog.spark_backend.plan import (
    DECOMPOSED,
    GIVEN,
    IN_PROCESS,
    ITERATED,
    PLAN,
    Planned,
    SparkPlan,
    plan,
)
from everlog.spark_backend.settings import DEFAULT, Settings, partitions_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FEW = 10_000  # rows in the driver: a plan may repeat them instead of caching
HEAVY = 8  # atoms that a plan of few rows may repeat


@contextmanager
def telling(program: Program) -> Iterator[None]:
    """Raise the error of a rule on a worker as its EvaluationError."""
    try:
        yield
    except Exception as error:
        ours = evaluation_error(program, error)
        if ours is None:
            raise
        raise ours from error


class Evaluated(Mapping[str, "DataFrame"]):
    """The relations of a program; `ways` says how each was computed.

    `rows` are those of relations in the driver; `few` says that all base facts are there.  `whole`
    has all relations, if they were evaluated in the driver: a frame is made when it is asked for.
    """

    def __init__(
        self,
        facts: Mapping[str, Facts],
        ways: Mapping[str, str],
        kept: list[DataFrame],
        rows: Mapping[str, list[Row]],
        few: bool,
        whole: Evaluation | None = None,
    ) -> None:
        self._facts, self.ways, self._kept, self.rows, self.few = facts, dict(ways), kept, rows, few
        self._whole = whole

    def __getitem__(self, name: str) -> DataFrame:
        return distinct(self._facts[name]).frame

    def __iter__(self) -> Iterator[str]:
        return iter(self.ways)

    def __len__(self) -> int:
        return len(self.ways)

    def size(self, name: str) -> int:
        return self[name].count() if self._whole is None else self._whole.size(name)

    def rows_here(self, name: str) -> Iterable[Row] | None:
        """The rows of a relation, sorted, if all relations are in the driver."""
        return None if self._whole is None else self._whole.rows(name)

    def release(self) -> None:
        """Free the caches of the relations; frames that are used again are recomputed."""
        for frame in self._kept:
            frame.unpersist()


def evaluate(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, Input] | None = None,
    settings: Settings = DEFAULT,
    progress: Progress | None = None,
    wanted: Collection[str] | None = None,
    unique: bool = False,
    dear: Collection[str] = (),
) -> Evaluated:
    """All relations of a program (or the `wanted` ones), from its facts and `inputs`.

    An input is a DataFrame with the columns of its relation, by position, or rows of Python;
    `unique` says that none has duplicate rows.  Every rule reads it anew, as is right for Parquet,
    unless it is `dear`: then its rows are cached, without duplicates.  Raises FactError, or
    NotOnSpark if the program cannot run on Spark, before anything runs.
    """
    for name in (*(inputs or ()), *(wanted or ())):
        declared(program.relations, name)
    return evaluate_plan(spark, plan(program, settings), inputs, progress, wanted, unique, dear)


def evaluate_plan(
    spark: SparkSession,
    planned: SparkPlan,
    inputs: Mapping[str, Input] | None = None,
    progress: Progress | None = None,
    wanted: Collection[str] | None = None,
    unique: bool = False,
    dear: Collection[str] = (),
) -> Evaluated:
    """As `evaluate`, of a program that was planned before."""
    for name in (*(inputs or ()), *(wanted or ())):
        declared(planned.program.relations, name)
    forget_frames()
    return Evaluator(spark, planned, progress, dear).run(inputs or {}, wanted, unique)


@frozen
class _Given:
    facts: Facts
    rows: list[Row] | None  # if they are in the driver


class _Frames(dict[str, Facts]):
    """Relations in the driver as frames, each made when it is first asked for."""

    def __init__(self, spark: SparkSession, whole: Evaluation) -> None:
        super().__init__()
        self._spark, self._whole = spark, whole

    def __missing__(self, name: str) -> Facts:
        program = self._whole.program
        rows = self._whole.relations.rows(name)
        self[name] = Facts(frame_of_rows(self._spark, rows, kinds_of(program.relations[name])))
        return self[name]


class Evaluator:
    def __init__(
        self,
        spark: SparkSession,
        planned: SparkPlan,
        progress: Progress | None,
        dear: Collection[str] = (),
    ) -> None:
        self._spark, self._planned, self._progress = spark, planned, progress
        self._program, self._settings = planned.program, planned.settings
        self._dear = frozenset(dear)
        self._rules = Rules(spark, planned.program, planned.cyclic)
        self._facts: dict[str, Facts] = {}
        self._rows: dict[str, list[Row]] = {}  # of relations in the driver
        self._raw: set[str] = set()  # inputs that are not cached
        self._weights: dict[str, int] = {}
        self._read: Counter[str] = Counter()  # the number of atoms that read a relation
        self._ways: dict[str, str] = {}
        self._kept: list[DataFrame] = []
        self._few = False

    def run(self, inputs: Mapping[str, Input], wanted: Collection[str] | None, unique: bool) -> Evaluated:
        planned = self._planned.needed(wanted)
        given = {
            name: self._given(name, inputs.get(name), unique) for one in planned for name in one.unit.relations
        }
        sizes = [None if one.rows is None else len(one.rows) for one in given.values()]
        self._few = None not in sizes and sum(size or 0 for size in sizes) <= FEW
        uses = self._uses(planned, wanted)
        with telling(self._program):
            whole = self._whole(planned, given)
            if whole is not None:
                return self._here(planned, whole)
            for one in planned:
                self._ways.update(dict.fromkeys(one.unit.relations, one.way))
                mine = {name: given[name] for name in one.unit.relations}
                if one.way in (GIVEN, PLAN):
                    self._plan(one, mine, uses)
                else:
                    self._recursive(one, mine)
        return Evaluated(self._facts, self._ways, self._kept, self._rows, self._few)

    def _whole(self, planned: Sequence[Planned], given: Mapping[str, _Given]) -> Evaluation | None:
        """Evaluate everything in the driver; None without recursion, or if it is too large."""
        if self._settings.recursion != "auto" or all(one.way in (GIVEN, PLAN) for one in planned):
            return None
        rows = {name: one.rows for name, one in given.items() if one.rows is not None}
        limit = self._settings.small - sum(map(len, rows.values()))
        if limit < 0:
            return None
        frames = {name: one.facts.frame for name, one in given.items() if one.rows is None}
        kinds = {name: kinds_of(self._program.relations[name]) for name in frames}
        fetched = fetch({name: (frame, kinds[name]) for name, frame in frames.items()}, limit)
        if fetched is None:
            return None
        try:
            program = self._planned.of(planned)
            return in_process(program, {**rows, **fetched}, limits=Limits(facts=self._settings.most))
        except LimitExceeded:
            return None

    def _here(self, planned: Sequence[Planned], whole: Evaluation) -> Evaluated:
        """The relations of an evaluation in the driver."""
        for one in planned:
            names = one.unit.relations
            self._ways.update(dict.fromkeys(names, GIVEN if one.way == GIVEN else IN_PROCESS))
            if one.way not in (GIVEN, PLAN):
                self._tell(one, sum(map(whole.size, names)))
        few = [name for name in self._ways if self._few and whole.size(name) <= FEW]
        rows = {name: list(whole.relations.rows(name)) for name in few}
        return Evaluated(_Frames(self._spark, whole), self._ways, [], rows, self._few, whole)

    def _uses(self, planned: Iterable[Planned], wanted: Collection[str] | None) -> Counter[str]:
        uses = Counter(list(self._program.relations if wanted is None else wanted))
        for one in planned:
            for rule in one.unit.rules:
                self._read.update(atom.relation for atom, _ in p.atoms_of(rule.body))
        uses.update(self._read)
        for one in planned:
            if one.way in (DECOMPOSED, ITERATED, IN_PROCESS):
                uses.update(one.reads)  # counted, then read again
        return uses

    # ── inputs ───────────────────────────────────────────────────────────────────────────────

    def _given(self, name: str, source: Input | None, unique: bool) -> _Given:
        relation = self._program.relations[name]
        own = self._program.facts.get(name, ())
        if not is_frame(source):
            rows = list({*own, *fact_rows(relation, source or ())})
            return _Given(Facts(frame_of_rows(self._spark, rows, kinds_of(relation))), rows)
        frame = conforming(source, relation)
        if not own:
            return _Given(Facts(frame, unique), None)
        return _Given(Facts(frame.union(frame_of_rows(self._spark, own, kinds_of(relation))), False), None)

    # ── units without recursion ──────────────────────────────────────────────────────────────

    def _plan(self, one: Planned, given: Mapping[str, _Given], uses: Counter[str]) -> None:
        (name,) = one.unit.relations
        parts = [given[name].facts] if given[name].rows != [] or not one.unit.rules else []
        parts += [self._derived(rule) for rule in one.unit.rules]
        atoms = [atom for rule in one.unit.rules for atom, _ in p.atoms_of(rule.body)]
        weight = 1 + sum(self._weights[atom.relation] for atom in atoms)
        facts = union(parts)
        rows = given[name].rows
        if not one.unit.rules:
            if rows is not None:
                self._rows[name] = rows
            elif self._read[name] > 1 and name in self._dear:
                facts = self._keep(distinct(facts))
            else:
                self._raw.add(name)
        elif uses[name] > 1 and (weight > HEAVY or not self._few):
            facts, weight = self._keep(distinct(facts)), 1
        elif uses[name] > 1 or len(parts) > 1:
            facts = distinct(facts)
        self._facts[name], self._weights[name] = facts, weight

    def _derived(self, rule: Rule) -> Facts:
        join = self._planned.cyclic.get(rule)
        if join is not None:
            cubes = self._cubes()
            found = cubes and self._rules.cubed(rule, self._lookup, join, cubes)
            if found:
                return found
            read = Counter(atom.relation for atom in join.atoms)
            for name in (name for name, times in read.items() if times > 1 and name in self._raw):
                self._facts[name] = self._keep(
                    distinct(self._facts[name])
                )  # expensive enough to remove duplicates first
                self._raw.discard(name)
        return self._rules.derived(rule, self._lookup)

    def _cubes(self) -> Cubes | None:
        asked = self._settings.cyclic
        if asked == "plan" or (asked == "auto" and self._few):
            return None
        partitions = partitions_of(self._spark, self._settings)
        return Cubes(partitions, worth=0) if asked == "cube" else Cubes(partitions)

    def _keep(self, facts: Facts) -> Facts:
        kept = facts.frame.persist()
        self._kept.append(kept)
        return Facts(kept, facts.unique)

    def _lookup(self, atom: Atom, _place: int | None) -> Facts:
        return self._facts[atom.relation]

    # ── recursion ────────────────────────────────────────────────────────────────────────────

    def _recursive(self, one: Planned, given: Mapping[str, _Given]) -> None:
        names = one.unit.relations
        if one.way == IN_PROCESS or self._settings.recursion == "auto":
            limit = None if one.way == IN_PROCESS else self._settings.small
            found = self._in_process(one, given, limit)
            if found is not None:
                self._ways.update(dict.fromkeys(names, IN_PROCESS))
                self._tell(one, sum(table.num_rows for table in found.values()))
                for name, table in found.items():
                    frame = frame_of_table(self._spark, table, kinds_of(self._program.relations[name]))
                    self._facts[name], self._weights[name] = Facts(frame), 1
                return
        seeds = {name: self._seeds(one, name, given[name]) for name in names}
        if one.way == DECOMPOSED:
            base = self._shipped(one)
            if base is not None:
                partitions = partitions_of(self._spark, self._settings)
                few = {name: facts if facts.rare else distinct(facts) for name, facts in seeds.items()}
                whole, frames = decomposed(self._program, one, few, base, partitions)
                self._kept.append(whole)
                for name, frame in frames.items():
                    self._facts[name], self._weights[name] = Facts(frame), 1
                return
            self._ways.update(dict.fromkeys(names, ITERATED))
        reads = {name: self._facts[name] for name in one.reads}
        iteration = Iteration(self._rules, one.unit, reads, self._settings, self._progress)
        if one.unit.subsumptions:
            maps = best_maps(self._program, names)
            iteration = BestRounds(self._rules, one.unit, reads, self._settings, self._progress, maps)
        self._facts.update(iteration.run(seeds))
        self._weights.update(dict.fromkeys(names, 1))

    def _tell(self, one: Planned, size: int) -> None:
        if self._progress is not None:
            self._progress(one.name, 0, size)

    def _seeds(self, one: Planned, name: str, given: _Given) -> Facts:
        """The facts of a relation without recursion, perhaps with duplicates."""
        rules = [r for r in one.unit.rules if r.head.relation == name and not one.unit.positions(r)]
        parts = [given.facts] if given.rows != [] or not rules else []
        return union(parts + [self._rules.derived(rule, self._lookup) for rule in rules])

    def _shipped(self, one: Planned) -> dict[str, pa.Table] | None:
        """The other relations that the recursive rules read; None if too large for tasks."""
        rules = [rule for rule in one.unit.rules if one.unit.positions(rule)]
        names = {a.relation for r in rules for a, _ in p.atoms_of(r.body)} - set(one.unit.relations)
        left = self._settings.shipped
        out: dict[str, pa.Table] = {}
        for name in sorted(names):
            kinds = kinds_of(self._program.relations[name])
            table = collected(sendable(self._facts[name].frame.limit(left + 1), kinds))
            left -= table.num_rows
            if left < 0:
                return None
            out[name] = table
        return out

    def _in_process(
        self, one: Planned, given: Mapping[str, _Given], limit: int | None
    ) -> dict[str, pa.Table] | None:
        """Compute the unit in the driver; None if it is too large."""
        inputs = {name: self._rows[name] for name in one.reads if name in self._rows}
        inputs |= {name: facts.rows for name, facts in given.items() if facts.rows is not None}
        asked = {name: self._facts[name].frame for name in one.reads if name not in inputs}
        asked |= {name: facts.facts.frame for name, facts in given.items() if name not in inputs}
        if limit is not None and sum(map(len, inputs.values())) > limit:
            return None
        kinds = {name: kinds_of(self._program.relations[name]) for name in asked}
        rows = fetch({name: (frame, kinds[name]) for name, frame in asked.items()}, limit)
        if rows is None:
            return None
        try:
            most = None if limit is None else self._settings.most
            tables = computed(self._planned.alone(one).program, one.unit.relations, {**inputs, **rows}, most)
        except LimitExceeded:
            if limit is None:
                raise
            return None
        out = {name: arrow_of(self._program, name, table) for name, table in tables.items()}
        if self._few:
            self._rows |= {name: list(table.rows()) for name, table in tables.items() if len(table) <= FEW}
        return out


__all__ = ["Evaluated", "evaluate", "evaluate_plan", "schema_of", "telling"]
