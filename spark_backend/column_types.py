"""The facts of a relation as a DataFrame: the exact Spark type of each kind.

| kind       | Spark type | representation                                                        |
|------------|------------|-----------------------------------------------------------------------|
| `number`   | `bigint`   | the value                                                             |
| `unsigned` | `bigint`   | its 64 bits: 2**64 - 1 is -1; expressions correct order and division  |
| `float`    | `double`   | the value; never -0.0; Spark's NaN equals itself, as ours does        |
| `symbol`   | `string`   | its bytes, UTF-8 or not, since Spark's strings are bytes              |

Columns are named c0, c1, …; a relation without columns has the one column `holds`, which is true.
No value is ever null.  Arrow carries rows between Python and Spark; symbols that are not UTF-8
travel as `binary`.

One job fetches many small relations: each is projected to the same wide columns (`tag`, then as
many of each type as the widest needs), their union is collected, and split by tag (`fetch`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everlog.core.program import Kind, Relation, Row, Value
from everlog.core.program.values import MASK, NAN, decoded, encoded, wrap

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

TYPES: Mapping[Kind, str] = {
    Kind.NUMBER: "bigint",
    Kind.UNSIGNED: "bigint",
    Kind.FLOAT: "double",
    Kind.SYMBOL: "string",
}
HOLDS = "holds"


def kinds_of(relation: Relation) -> tuple[Kind, ...]:
    return tuple(column.kind for column in relation.columns)


def names_of(arity: int) -> list[str]:
    """The column names for an arity.

    >>> names_of(2), names_of(0)
    (['c0', 'c1'], ['holds'])
    """
    return [f"c{n}" for n in range(arity)] or [HOLDS]


def positions_by_name(wanted: Sequence[str], names: Sequence[str]) -> list[int] | None:
    """The positions of a relation's columns in a source, or None.

    Columns are matched by name if each name occurs once (ignoring case); by position if there are
    as many columns and none of the names.

    >>> positions_by_name(["x", "y"], ["Y", "z", "X"]), positions_by_name(["x", "y"], ["a", "b"])
    ([2, 0], [0, 1])
    >>> positions_by_name(["x", "y"], ["x", "y", "y"]), positions_by_name(["x", "y"], ["z", "X"])
    (None, None)
    """
    for key in (str, str.lower):
        there = [key(name) for name in names]
        if all(there.count(key(name)) == 1 for name in wanted) and len(set(map(key, wanted))) == len(wanted):
            return [there.index(key(name)) for name in wanted]
    if len(names) == len(wanted) and not set(map(str.lower, names)) & set(map(str.lower, wanted)):
        return list(range(len(wanted)))
    return None


def schema_of(kinds: Sequence[Kind]) -> str:
    """The schema of a relation as DDL.

    >>> schema_of((Kind.NUMBER, Kind.SYMBOL)), schema_of(())
    ('c0 bigint, c1 string', 'holds boolean')
    """
    return ", ".join(f"c{n} {TYPES[kind]}" for n, kind in enumerate(kinds)) or f"{HOLDS} boolean"


def no_null(kind: Kind) -> Column:
    """The end of a `coalesce` after an error; so Spark knows that there are no nulls."""
    from pyspark.sql import functions as F

    return F.lit("" if kind is Kind.SYMBOL else 0).cast(TYPES[kind])


# ── Python to Arrow and back ─────────────────────────────────────────────────────────────────


def stored(value: Value, kind: Kind) -> int | float | bytes:
    """A value as Spark stores it; a symbol as bytes."""
    if kind is Kind.SYMBOL:
        return encoded(str(value))
    return wrap(int(value)) if kind is Kind.UNSIGNED else value  # type: ignore[return-value]


def arrow_table(rows: Iterable[Row], kinds: Sequence[Kind]) -> pa.Table:
    """Rows as an Arrow table; symbols as `string` if all are UTF-8, else as `binary`."""
    import pyarrow as pa

    listed = list(rows)
    if not kinds:
        return pa.table({HOLDS: pa.array([True] * bool(listed), pa.bool_())})
    columns: Sequence[Sequence[Any]] = list(zip(*listed, strict=True)) if listed else [()] * len(kinds)
    return pa.table({f"c{n}": arrow_array(columns[n], kind) for n, kind in enumerate(kinds)})


def arrow_array(values: Iterable[Any], kind: Kind) -> pa.Array:
    """The values of one column as Spark stores them."""
    import pyarrow as pa

    match kind:
        case Kind.NUMBER:
            return pa.array(values, pa.int64())
        case Kind.UNSIGNED:
            return pa.array([value - (value >> 63 << 64) for value in values], pa.int64())
        case Kind.FLOAT:
            return pa.array(values, pa.float64())
    held = values if isinstance(values, list | tuple) else list(values)
    try:
        return pa.array(held, pa.string())
    except (UnicodeEncodeError, pa.ArrowInvalid):
        return pa.array([encoded(text) for text in held], pa.binary())


def python_values(column: Any, kind: Kind) -> list[Any]:
    """An Arrow column as Python values; symbols may be `binary` or `string`."""
    listed: list[Any] = column.to_pylist()
    match kind:
        case Kind.NUMBER:
            return listed
        case Kind.UNSIGNED:
            return [value & MASK for value in listed]
        case Kind.FLOAT:
            return [value if value == value else NAN for value in listed]
    return [value if isinstance(value, str) else decoded(value) for value in listed]


def python_rows(columns: Sequence[Any], kinds: Sequence[Kind], count: int) -> Iterator[Row]:
    """The `count` rows of Arrow columns."""
    if not kinds:
        return iter([()] * min(count, 1))
    return zip(*(python_values(column, kind) for column, kind in zip(columns, kinds, strict=True)), strict=True)


# ── Python to Spark and back ─────────────────────────────────────────────────────────────────


def frame_of_table(spark: SparkSession, table: pa.Table, kinds: Sequence[Kind]) -> DataFrame:
    """An Arrow table with the columns above as a DataFrame."""
    import pyarrow as pa
    from pyspark.sql import functions as F

    if table.num_rows == 0:
        return spark.createDataFrame([], schema_of(kinds))
    frame = spark.createDataFrame(table)
    if any(pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type) for field in table.schema):
        columns = (F.col(name).cast("string").alias(name) for name in names_of(len(kinds)))
        frame = frame.select(
            *(c if k is Kind.SYMBOL else n for c, k, n in zip(columns, kinds, names_of(len(kinds)), strict=True))
        )
    return frame


def frame_of_rows(spark: SparkSession, rows: Iterable[Row], kinds: Sequence[Kind]) -> DataFrame:
    """Rows as a DataFrame; a few become part of the plan itself."""
    return frame_of_table(spark, arrow_table(rows, kinds), kinds)


def named(frame: DataFrame, relation: Relation) -> DataFrame:
    """The frame of a relation with its declared columns, to be handed to a user."""
    return frame.toDF(*(column.name for column in relation.columns)) if relation.columns else frame


def by_place(frame: DataFrame, kinds: Sequence[Kind]) -> DataFrame:
    """The frame with columns named by their place, as the backend reads them."""
    return frame.toDF(*names_of(len(kinds)))


def sendable(frame: DataFrame, kinds: Sequence[Kind]) -> DataFrame:
    """The frame with symbols as bytes, since not all are UTF-8."""
    from pyspark.sql import functions as F

    if Kind.SYMBOL not in kinds:
        return frame
    names = names_of(len(kinds))
    return frame.select(
        *(
            F.col(n).cast("binary").alias(n) if k is Kind.SYMBOL else F.col(n)
            for n, k in zip(names, kinds, strict=True)
        )
    )


def collected(frame: DataFrame) -> pa.Table:
    """All rows of a frame as an Arrow table in the driver.

    Plans first: `toArrow` plans in another thread, whose stack overflow would go unnoticed.
    """
    planned = getattr(frame, "_jdf", None)  # absent in Spark Connect
    if planned is not None:
        planned.queryExecution().executedPlan()
    return frame.toArrow()


def rows_of_frame(frame: DataFrame, kinds: Sequence[Kind]) -> Iterator[Row]:
    """All rows of a frame, in the driver."""
    table = collected(sendable(frame, kinds))
    return python_rows(table.columns, kinds, table.num_rows)


# ── many relations in one job ────────────────────────────────────────────────────────────────

_SLOTS: Mapping[Kind, str] = {Kind.NUMBER: "l", Kind.UNSIGNED: "l", Kind.FLOAT: "d", Kind.SYMBOL: "s"}
_SLOT_TYPES = {"l": "bigint", "d": "double", "s": "binary"}


def slots_of(kinds: Sequence[Kind]) -> list[str]:
    """The wide column for each column of a relation.

    >>> slots_of((Kind.NUMBER, Kind.SYMBOL, Kind.UNSIGNED))
    ['l0', 's0', 'l1']
    """
    used: dict[str, int] = {}
    out = []
    for kind in kinds:
        slot = _SLOTS[kind]
        out.append(f"{slot}{used.get(slot, 0)}")
        used[slot] = used.get(slot, 0) + 1
    return out


def widened(frames: Sequence[tuple[DataFrame, Sequence[Kind]]], extra: Sequence[str] = ()) -> DataFrame:
    """The union of frames in wide columns; `tag` is the number of a row's frame.

    `extra` columns are kept as they are.
    """
    from pyspark.sql import functions as F

    every = sorted({slot for _, kinds in frames for slot in slots_of(kinds)})
    out: DataFrame | None = None
    for tag, (frame, kinds) in enumerate(frames):
        place = dict(zip(slots_of(kinds), zip(names_of(len(kinds)), kinds, strict=False), strict=False))
        columns = [F.lit(tag).alias("tag")]
        for slot in every:
            if slot not in place:
                column = F.lit(None)
            else:
                column = F.col(place[slot][0])
            columns.append(column.cast(_SLOT_TYPES[slot[0]]).alias(slot))
        wide = frame.select(*columns, *extra)
        out = wide if out is None else out.union(wide)
    assert out is not None
    return out


def unwidened(table: pa.Table, kinds: Sequence[Sequence[Kind]]) -> Iterator[tuple[int, pa.Table]]:
    """The parts of a collected union with their tags; only columns of a part are read."""
    import pyarrow.compute as pc

    tags = table.column("tag")
    for tag in range(len(kinds)):
        part = table.filter(pc.equal(tags, tag)) if len(kinds) > 1 else table
        yield tag, part


def fetch(
    frames: Mapping[str, tuple[DataFrame, Sequence[Kind]]], limit: int | None = None
) -> dict[str, list[Row]] | None:
    """The rows of several frames, in one job; None if they exceed `limit` in total."""
    if not frames:
        return {}
    wide = widened(list(frames.values()))
    table = collected(wide if limit is None else wide.limit(limit + 1))
    if limit is not None and table.num_rows > limit:
        return None
    every = [kinds for _, kinds in frames.values()]
    out: dict[str, list[Row]] = {}
    for name, (tag, part) in zip(frames, unwidened(table, every), strict=True):
        columns = [part.column(slot) for slot in slots_of(every[tag])]
        out[name] = list(python_rows(columns, every[tag], part.num_rows))
    return out
