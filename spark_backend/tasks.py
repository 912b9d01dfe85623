"""Our own engine inside a task: Arrow carries its input relations and its results.

All relations of a task travel in one stream of wide rows, each with the number of its relation as
its `tag` (`column_types.widened`), or with a bit mask of its relations.  Other data that every task
needs is sent as Arrow's own bytes, and read once per worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from attrs import frozen

from everlog.core.program import Kind, Program, Row
from everlog.core.program.values import EvaluationError
from everlog.core.storage.shape import SavedColumns
from everlog.spark_backend.column_types import arrow_array, kinds_of, names_of, python_rows, slots_of
from everlog.spark_backend.frames.marks import marked
from everlog.spark_backend.in_process import columns_of, computed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_TYPES = {"l": "bigint", "d": "double", "s": "binary"}
_loaded: dict[bytes, dict[str, list[Row]]] = {}  # in a worker: the last data that was sent along


@frozen
class Task:
    """The data of every task: rules, input and output relations, and other facts."""

    program: Program
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    numbers: Mapping[str, int]  # text of a rule → its number in the whole program, for errors
    base: Mapping[str, bytes]
    token: bytes
    mark: str | None = None  # the column of bit masks, if there is one

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        held = list(batches)
        if not any(batch.num_rows for batch in held):
            return
        tables = [pa.Table.from_batches([batch]) for batch in held]
        inputs = {name: self._rows(tables, tag, self._kinds(name)) for tag, name in enumerate(self.reads)}
        try:
            found = computed(self.program, self.gives, {**self._base(), **inputs})
        except EvaluationError as error:
            raise RuntimeError(marked(self.numbers.get(error.rule, 1 << 30), error.message)) from None
        given = [self._kinds(name) for name in self.gives]
        slots = wide_slots(given)
        for tag, name in enumerate(self.gives):
            yield from _batches(tag, columns_of(found[name]), given[tag], slots)

    def _rows(self, tables: Sequence[pa.Table], tag: int, kinds: tuple[Kind, ...]) -> Iterator[Row]:
        """The rows of a relation, converted from Arrow lazily."""
        for table in tables:
            part = self._part(table, tag) if len(self.reads) > 1 else table
            yield from python_rows([part.column(slot) for slot in slots_of(kinds)], kinds, part.num_rows)

    def _part(self, table: pa.Table, tag: int) -> pa.Table:
        """The rows of one relation."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.mark is None:
            return table.filter(pc.equal(table.column("tag"), tag))
        bit = pa.scalar(1 << tag, table.schema.field(self.mark).type)
        return table.filter(pc.equal(pc.bit_wise_and(table.column(self.mark), bit), bit))

    def _base(self) -> dict[str, list[Row]]:
        if self.token not in _loaded:
            _loaded.clear()
            _loaded[self.token] = {n: list(_read(data, self._kinds(n))) for n, data in self.base.items()}
        return _loaded[self.token]

    def _kinds(self, name: str) -> tuple[Kind, ...]:
        return kinds_of(self.program.relations[name])


def task_of(
    program: Program,
    reads: Sequence[str],
    gives: Sequence[str],
    numbers: Mapping[str, int],
    base: Mapping[str, pa.Table],
    mark: str | None = None,
) -> Task:
    written = {name: _written(table) for name, table in sorted(base.items())}
    token = sha256(b"".join([repr(program.rules).encode(), *written.values()])).digest()
    return Task(program, tuple(reads), tuple(gives), numbers, written, token, mark)


def run_in_tasks(task: Task, wide: DataFrame, keep: bool) -> tuple[DataFrame, dict[str, DataFrame]]:
    """Run a task per partition of `wide`: its output (cached if `keep`), by relation."""
    from pyspark.sql import functions as F

    kinds = [kinds_of(task.program.relations[name]) for name in task.gives]
    schema = ", ".join(["tag int", *(f"{slot} {_TYPES[slot[0]]}" for slot in wide_slots(kinds))])
    found = wide.mapInArrow(task, schema)
    if keep:
        found = found.persist()
    out = {}
    for tag, (name, own) in enumerate(zip(task.gives, kinds, strict=True)):
        part = found.where(F.col("tag") == tag) if len(kinds) > 1 else found
        columns = zip(slots_of(own), names_of(len(own)), own, strict=True)
        out[name] = part.select(*(_column(slot, name_, kind) for slot, name_, kind in columns))
    return found, out


def wide_slots(kinds: Iterable[tuple[Kind, ...]]) -> list[str]:
    return sorted({slot for some in kinds for slot in slots_of(some)})


def _column(slot: str, name: str, kind: Kind) -> Column:
    from pyspark.sql import functions as F

    column = F.col(slot)
    return (column.cast("string") if kind is Kind.SYMBOL else column).alias(name)


def _batches(
    tag: int, columns: SavedColumns, kinds: tuple[Kind, ...], slots: list[str]
) -> Iterator[pa.RecordBatch]:
    """The facts of a relation in wide columns."""
    import pyarrow as pa

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
