"""Results on Spark, maintained by batches of inserts and deletes.

The state is Parquet (`spark_backend.batches.parquet_state`).  A batch goes through the units in
order, and each follows the change of what it reads (`spark_backend.batches.propagation`).  What
changed is written as Parquet beside the new tables, and one rename makes all of it the state.
Deletes of a batch come before its inserts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.core.program import Program
from everlog.core.program.fact_rows import declared
from everlog.spark_backend.batches.parquet_state import Folder
from everlog.spark_backend.batches.propagation import Applied, Following, Tables, way_of
from everlog.spark_backend.column_types import named
from everlog.spark_backend.evaluate import telling
from everlog.spark_backend.inputs import Input, frame_of_input
from everlog.spark_backend.plan import plan
from everlog.spark_backend.settings import DEFAULT, Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIRST = "(the facts of the program)"


class SparkState:
    """The relations of a program in a folder, maintained by batches.

    Invariant: the state is the program evaluated on the base facts of its batches.
    """

    def __init__(
        self, spark: SparkSession, program: Program, folder: str | Path, settings: Settings = DEFAULT
    ) -> None:
        self._spark, self._program = spark, program
        self._planned = plan(program, settings)
        self._folder = Folder(folder, program)
        self._tables = Tables(spark, program, self._folder, self._planned)
        if self._folder.commit.version == 0:
            self.apply(FIRST, {name: list(rows) for name, rows in program.facts.items() if rows})

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    @property
    def version(self) -> int:
        self._folder.refresh()
        return self._folder.commit.version

    @property
    def batches(self) -> tuple[str, ...]:
        self._folder.refresh()
        return self._folder.commit.batches

    def view(self, relation: str) -> DataFrame:
        """The current facts of a relation, with its declared columns.

        Their files stay until the second batch that changes them.
        """
        known = declared(self._program.relations, relation)
        self._folder.refresh()
        found = self._tables.facts(relation)
        return named(self._tables.empty(relation) if found is None else found, known)

    def size(self, relation: str) -> int:
        declared(self._program.relations, relation)
        self._folder.refresh()
        table = self._folder.commit.tables.get(f"facts {relation}")
        return 0 if table is None else table.size

    def explain(self) -> str:
        return "\n".join(f"{one.name}: {way_of(one)}" for one in self._planned.units)

    # ── writing ──────────────────────────────────────────────────────────────────────────────

    def apply(
        self, batch: str, inserts: Mapping[str, Input] | None = None, deletes: Mapping[str, Input] | None = None
    ) -> Applied:
        """Apply a batch, all or nothing; a batch with a known name changes nothing."""
        if not isinstance(batch, str) or not batch:
            raise ValueError(f"the name of a batch must be a non-empty text: {batch!r} is not")
        given = {name: self._frame(name, source) for name, source in (inserts or {}).items()}
        taken = {name: self._frame(name, source) for name, source in (deletes or {}).items()}
        with self._folder.writing() as writing, telling(self._program):
            if batch in self._folder.commit.batches:
                commit = self._folder.commit
                version = commit.version - (len(commit.batches) - 1 - commit.batches.index(batch))
                return Applied(batch, version, {}, self._folder.path / "changes" / str(version), repeated=True)
            applying = Following(self._tables, self._planned, writing, given, taken)
            try:
                return applying.run(batch)
            finally:
                applying.release()

    def foreach_batch(self, relation: str, name: str, op: str = "op") -> Callable[[DataFrame, int], None]:
        """A function for `writeStream.foreachBatch`.

        Each micro-batch of a stream becomes a batch `NAME-EPOCH`.  The stream has the columns of
        the relation, by position, and may have a column `op`: rows with `-` or `delete` in it are
        deletes, all others inserts.  An epoch that Spark delivers again changes nothing.
        """

        def apply(frame: DataFrame, epoch: int) -> None:
            from pyspark.sql import functions as F

            inserts, deletes = frame, frame.limit(0)
            if op in frame.columns:
                mark = F.coalesce(F.lower(F.col(op).cast("string")), F.lit(""))
                gone = mark.isin("-", "delete", "d", "-1")
                inserts, deletes = frame.where(~gone).drop(op), frame.where(gone).drop(op)
            self.apply(f"{name}-{epoch}", {relation: inserts}, {relation: deletes})

        return apply

    def _frame(self, name: str, source: Input) -> DataFrame:
        return frame_of_input(self._spark, source, declared(self._program.relations, name))


__all__ = ["Applied", "SparkState"]
