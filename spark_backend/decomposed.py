"""Recursion inside the tasks: facts that never meet are computed apart, each part by our own engine, in one stage.

A unit is decomposable when every recursive rule takes one column of its head, unchanged, from all its atoms of
the unit (`path(x, z) :- path(x, y), edge(y, z)` carries x).  Then the facts with one value in that column
depend on each other alone.  What starts the recursion is partitioned by that column; what the rules read
besides is sent along to every task; each task runs the whole fixpoint and hands its facts back by Arrow.  There
is no shuffle per iteration, and no job.

Reads: spark_backend.in_process, spark_backend.columns, spark_backend.plan.  Read by: spark_backend.evaluate.
Source: Shkapsky, Yang, Interlandi, Chiu, Condie, Zaniolo, Big data analytics with Datalog queries on Spark,
SIGMOD 2016.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from everlog.core.dependencies import Unit
from everlog.core.program import Kind, Program, Row
from everlog.core.values import EvaluationError
from everlog.spark_backend.bodies import Facts
from everlog.spark_backend.columns import kinds_of, names_of, python_rows, slots_of, widened
from everlog.spark_backend.expressions import marked
from everlog.spark_backend.in_process import columns_of, computed, program_of
from everlog.spark_backend.plan import Planned, unit_atoms

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_TYPES = {"l": "bigint", "d": "double", "s": "binary"}
_loaded: dict[bytes, dict[str, list[Row]]] = {}  # in a worker: what was sent along last, read once


@frozen
class Task:
    """What every task gets: the recursive rules, and the facts that they read, as Arrow's own bytes."""

    program: Program
    unit: Unit
    base: Mapping[str, bytes]
    numbers: Mapping[str, int]  # a rule as written → its number in the whole program, for errors
    token: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        kinds = [kinds_of(self.program.relations[name]) for name in self.unit.relations]
        inputs: dict[str, list[Row]] = {name: [] for name in self.unit.relations}
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for tag, name in enumerate(self.unit.relations):
                part = _tagged(table, tag) if len(kinds) > 1 else table
                columns = [part.column(slot) for slot in slots_of(kinds[tag])]
                inputs[name] += python_rows(columns, kinds[tag], part.num_rows)
        if not any(inputs.values()):
            return
        try:
            found = computed(self.program, self.unit, {**self._base(), **inputs})
        except EvaluationError as error:
            raise RuntimeError(marked(self.numbers.get(error.rule, 1 << 30), error.message)) from None
        slots = wide_slots(kinds)
        for tag, name in enumerate(self.unit.relations):
            yield from _batches(tag, columns_of(found[name]), kinds[tag], slots)

    def _base(self) -> dict[str, list[Row]]:
        if self.token not in _loaded:
            _loaded.clear()
            _loaded[self.token] = {n: list(_read(data, self._kinds(n))) for n, data in self.base.items()}
        return _loaded[self.token]

    def _kinds(self, name: str) -> tuple[Kind, ...]:
        return kinds_of(self.program.relations[name])


def wide_slots(kinds: Iterable[tuple[Kind, ...]]) -> list[str]:
    return sorted({slot for some in kinds for slot in slots_of(some)})


def _tagged(table: pa.Table, tag: int) -> pa.Table:
    import pyarrow.compute as pc

    return table.filter(pc.equal(table.column("tag"), tag))


def _batches(
    tag: int, columns: list[list[Any]], kinds: tuple[Kind, ...], slots: list[str]
) -> Iterator[pa.RecordBatch]:
    """The facts of a relation in wide columns."""
    import pyarrow as pa

    from everlog.spark_backend.columns import arrow_array

    types = {"l": pa.int64(), "d": pa.float64(), "s": pa.binary()}
    size = len(columns[0])
    arrays = {}
    for slot, values, kind in zip(slots_of(kinds), columns, kinds, strict=True):
        array = arrow_array(values, kind)
        arrays[slot] = array.cast(pa.binary()) if kind is Kind.SYMBOL else array
    held = [arrays[slot] if slot in arrays else pa.nulls(size, types[slot[0]]) for slot in slots]
    table = pa.table([pa.array([tag] * size, pa.int32()), *held], names=["tag", *slots])
    yield from table.to_batches(max_chunksize=100_000)


def _written(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _read(data: bytes, kinds: tuple[Kind, ...]) -> Iterator[Row]:
    import pyarrow as pa

    table = pa.ipc.open_stream(data).read_all()
    return python_rows(table.columns, kinds, table.num_rows)


def decomposed(
    program: Program, planned: Planned, seeds: Mapping[str, Facts], base: Mapping[str, pa.Table], partitions: int
) -> dict[str, DataFrame]:
    """The relations of a decomposable unit from its facts outside the recursion, and from what it reads."""
    from hashlib import sha256

    from pyspark.sql import functions as F

    unit = planned.unit
    recursive = [rule for rule in unit.rules if unit_atoms(rule, unit)]
    own = program_of(program, unit, recursive)
    written = {name: _written(table) for name, table in sorted(base.items())}
    token = sha256(b"".join([repr(own.rules).encode(), *written.values()])).digest()
    numbers = {rule.written: number for number, rule in reversed(list(enumerate(program.rules)))}
    task = Task(own, unit, written, numbers, token)
    frames = []
    for name in unit.relations:
        kinds = kinds_of(program.relations[name])
        key = F.col(f"c{planned.carried[name]}").alias("carried")
        frames.append((seeds[name].frame.select(*names_of(len(kinds)), key), kinds))
    wide = widened(frames, extra=["carried"]).repartition(partitions, "carried").drop("carried")
    slots = wide_slots(kinds for _, kinds in frames)
    schema = ", ".join(["tag int", *(f"{slot} {_TYPES[slot[0]]}" for slot in slots)])
    found = wide.mapInArrow(task, schema).persist()
    out = {}
    for tag, (name, (_, kinds)) in enumerate(zip(unit.relations, frames, strict=True)):
        part = found.where(F.col("tag") == tag) if len(frames) > 1 else found
        columns = zip(slots_of(kinds), names_of(len(kinds)), kinds, strict=True)
        out[name] = part.select(*(_column(slot, name_, kind) for slot, name_, kind in columns))
    out[""] = found
    return out


def _column(slot: str, name: str, kind: Kind) -> Any:
    from pyspark.sql import functions as F

    column = F.col(slot)
    return (column.cast("string") if kind is Kind.SYMBOL else column).alias(name)
