"""Facts from Spark's sources as frames of `column_types`, and back, in tasks.

Spark splits text (delimited, JSON lines) into lines, and *our* reader parses whole batches of lines
inside the tasks: so a file means the same as in process, including its errors, and is read in
parallel.  The caller passes that reader (`Parser`), since this folder knows no files.  Spark reads
sources with columns (Parquet, a table, a database); these are matched to the relation by name, or
else by position, and converted by expressions that refuse nulls and values out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import frozen

from everlog.core.program import Column, Kind, Relation, Value
from everlog.core.program.fact_rows import column_label, with_article
from everlog.spark_backend.column_types import (
    HOLDS,
    TYPES,
    kinds_of,
    names_of,
    no_null,
    positions_by_name,
    schema_of,
    sendable,
    stored,
)
from everlog.spark_backend.errors import SparkError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

# whole lines of a file, the file's name, the number of the first line if known → facts
Parser: TypeAlias = Callable[[bytes, str, "int | None"], "pa.Table"]
# columns from Spark, number of rows → their lines
Printer: TypeAlias = Callable[[Sequence[Any], int], bytes]

# ── delimited text ───────────────────────────────────────────────────────────────────────────


def read_lines(
    spark: SparkSession, path: str, relation: Relation, parse: Parser, has_header: Callable[[str], bool]
) -> DataFrame:
    """The facts of a file of lines, of a folder of such files, or of a pattern.

    `has_header` says whether the first line of a file is to be skipped.
    """
    pieces = _lines_of(spark, path, relation)
    return _parsed(pieces, kinds_of(relation), lambda batches: _line_tables(batches, parse, has_header))


def _lines_of(spark: SparkSession, path: str, relation: Relation) -> DataFrame:
    """Each line with its file, and the offset of its task's part of the file."""
    from pyspark.sql import functions as F

    lines = _existing(relation, path, lambda: spark.read.text(path, lineSep="\n"))
    return lines.select(
        F.col("value").cast("binary").alias("line"),
        F.input_file_name().alias("file"),
        F.expr("input_file_block_start()").alias("start"),
    )


def first_lines(spark: SparkSession, path: str, relation: Relation) -> dict[str, bytes]:
    """The first line of each file of a path or a pattern, by file name."""
    from pyspark.sql import functions as F

    lines = _lines_of(spark, path, relation).withColumn("number", F.monotonically_increasing_id())
    firsts = lines.where(F.col("start") == 0).groupBy("file").agg(F.min_by("line", "number").alias("line"))
    return {row["file"]: bytes(row["line"]) for row in firsts.collect()}


def _line_tables(batches: Iterator[Any], parse: Parser, has_header: Callable[[str], bool]) -> Iterator[Any]:
    """Each batch of lines as facts; a batch may hold lines of several files."""
    known: dict[str, int] = {}  # file → number of its next line, if read from the beginning
    for batch in batches:
        lines, files, starts = (batch.column(n) for n in range(3))
        for begin, end in _runs(files, starts):
            file, start = files[begin].as_py(), starts[begin].as_py()
            if start == 0 and file not in known:
                known[file] = 1
                if has_header(file):
                    known[file], begin = 2, begin + 1
            piece = b"\n".join(lines.slice(begin, end - begin).to_pylist())
            if begin < end:
                yield parse(piece + b"\n", file, known[file] if start == 0 else None)
            if start == 0:
                known[file] += end - begin


def _runs(files: Any, starts: Any) -> Iterator[tuple[int, int]]:
    """The ranges of rows with the same file and the same offset."""
    import pyarrow.compute as pc

    count = len(files)
    if count == 0:
        return
    changed = pc.or_(
        pc.not_equal(files.slice(1), files.slice(0, count - 1)),
        pc.not_equal(starts.slice(1), starts.slice(0, count - 1)),
    )
    cuts = [0, *(n + 1 for n, cut in enumerate(changed.to_pylist()) if cut), count]
    yield from pairwise(cuts)


def read_whole(spark: SparkSession, path: str, relation: Relation, parse: Parser) -> DataFrame:
    """The facts of files that cannot be split into lines; one task per file."""
    kinds = kinds_of(relation)
    files = _existing(relation, path, lambda: spark.read.format("binaryFile").load(path))

    def tables(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for content, file in zip(batch.column(0), batch.column(1), strict=True):
                yield parse(content.as_py(), file.as_py(), 1)

    return _parsed(files.select("content", "path"), kinds, tables)


def _parsed(
    pieces: DataFrame, kinds: Sequence[Kind], tables: Callable[[Iterator[Any]], Iterator[Any]]
) -> DataFrame:
    """Facts from pieces of files; symbols come as bytes and become strings here."""
    from pyspark.sql import functions as F

    names = names_of(len(kinds))
    plain = schema_of(kinds).replace(" string", " binary")
    schema = _arrow_schema(kinds)

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for table in tables(batches):
            yield from table.cast(schema()).to_batches()

    facts = pieces.mapInArrow(run, plain)
    if Kind.SYMBOL not in kinds:
        return facts.distinct() if not kinds else facts
    return facts.select(
        *(
            F.col(n).cast("string").alias(n) if k is Kind.SYMBOL else F.col(n)
            for n, k in zip(names, kinds, strict=True)
        )
    )


def _arrow_schema(kinds: Sequence[Kind]) -> Callable[[], Any]:
    """The Arrow types of columns for Spark; lazy, so that pyarrow is imported late."""
    letters = [kind.value for kind in kinds]

    def schema() -> Any:
        import pyarrow as pa

        types = {"number": pa.int64(), "unsigned": pa.int64(), "float": pa.float64(), "symbol": pa.binary()}
        if not letters:
            return pa.schema([(HOLDS, pa.bool_())])
        return pa.schema([(f"c{n}", types[letter]) for n, letter in enumerate(letters)])

    return schema


def _existing(relation: Relation, path: str, read: Callable[[], DataFrame]) -> DataFrame:
    """Read a source; SparkError names the relation if it does not exist."""
    from pyspark.errors import AnalysisException

    try:
        return read()
    except AnalysisException as problem:
        if "PATH_NOT_FOUND" in str(problem) or "does not exist" in str(problem):
            why = "there is no such file"
        else:
            why = str(problem).split(" SQLSTATE")[0].splitlines()[0]
        raise SparkError(f"cannot open fact file {path} of relation {relation.name}: {why}") from None


def write_lines(
    frame: DataFrame,
    relation: Relation,
    folder: str,
    print_lines: Printer,
    compression: str,
    mode: str = "overwrite",
    mark: bytes = b"",
) -> int:
    """Write the facts as sorted lines in files `part-…`; the number of bytes.

    The names of the files sort as the facts do.  A part that begins with `mark` gets another one,
    since its reader drops one.  The tasks count the bytes before compression.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    kinds = kinds_of(relation)

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        first = True
        for batch in batches:
            if batch.num_rows:
                text = print_lines(batch.columns, batch.num_rows)
                if first and mark and text.startswith(mark):
                    text = mark + text
                first = False
                yield pa.RecordBatch.from_arrays([pa.array([text], pa.binary())], names=["value"])

    written = Observation()
    lines = sendable(in_order(frame, kinds), kinds).mapInArrow(run, "value binary")
    counted = lines.observe(written, F.sum(F.octet_length("value") + F.lit(1)).alias("bytes"))
    writer = counted.select(F.col("value").cast("string")).write.mode(mode).option("compression", compression)
    writer.text(folder, lineSep="\n")
    return int(written.get["bytes"] or 0)


def in_order(frame: DataFrame, kinds: Sequence[Kind]) -> DataFrame:
    """Sort rows as in written files: numbers by value, symbols by bytes, NaN first."""
    from pyspark.sql import functions as F

    keys: list[SparkColumn] = []
    for name, kind in zip(names_of(len(kinds)), kinds, strict=False):
        if kind is Kind.UNSIGNED:
            keys.append(F.col(name) < 0)
        elif kind is Kind.FLOAT:
            keys.append(~F.isnan(name))
        keys.append(F.col(name))
    return frame.orderBy(*keys) if keys else frame


# ── sources with columns ─────────────────────────────────────────────────────────────────────


def read_columns(
    spark: SparkSession,
    relation: Relation,
    format: str,
    options: Mapping[str, str],
    path: str | None,
    given: Given | None = None,
) -> DataFrame:
    """The facts of a source that Spark reads with a format: parquet, jdbc, orc, …"""
    reader = spark.read.format(format).options(**options)
    where = path if path is not None else _told(format, options)
    found = _existing(relation, where, lambda: reader.load(path) if path is not None else reader.load())
    return converted(found, relation, where, given)


def read_table(spark: SparkSession, relation: Relation, table: str, given: Given | None = None) -> DataFrame:
    """The facts of a table of Spark's catalogue."""
    found = _existing(relation, f"table {table}", lambda: spark.read.table(table))
    return converted(found, relation, f"table {table}", given)


@frozen
class Given:
    """The user's settings for a source: positions of columns, and values for null."""

    positions: Sequence[int] | None = None
    nulls: Sequence[Value | None] = ()


def converted(frame: DataFrame, relation: Relation, where: str, given: Given | None = None) -> DataFrame:
    """A frame as the facts of a relation; SparkError if its columns do not fit.

    Columns are matched by name if all names exist (ignoring case), else by position if there are as
    many, unless `given` has positions.  A null without a value for it, or a number out of range,
    stops the evaluation with an error that names the column.
    """
    from pyspark.sql import functions as F

    if not relation.columns:
        return frame.limit(1).select(F.lit(True).alias(HOLDS))
    fields = frame.schema.fields
    given = given or Given()
    positions = _positions(relation, [field.name for field in fields], where, given)
    nulls = given.nulls or (None,) * len(positions)
    renamed = frame.toDF(*(f"f{n}" for n in range(len(fields))))
    out = []
    for number, (column, position, null) in enumerate(zip(relation.columns, positions, nulls, strict=True)):
        label = f"{column_label(column, number + 1)} of relation {relation.name}"
        value = _value(F.col(f"f{position}"), fields[position].dataType, column, f"{label}, in {where}", null)
        out.append(value.alias(f"c{number}"))
    return renamed.select(*out)


def _positions(relation: Relation, names: list[str], where: str, given: Given) -> Sequence[int]:
    if given.positions is not None:
        beyond = [position for position in given.positions if position >= len(names)]
        if beyond:
            raise SparkError(f"{where} has no column {beyond[0]}, counted from 0: it has {', '.join(names)}")
        return given.positions
    found = positions_by_name([column.name for column in relation.columns], names)
    if found is not None:
        return found
    raise SparkError(
        f"{where} has the columns {', '.join(names)}, which do not fit {relation}: use the relation's names"
        " (or the same number of columns with other names, which are matched by position), or select columns with"
        ' columns="2:0"'
    )


def _value(
    column: SparkColumn, given: DataType, wanted: Column, label: str, null_value: Value | None
) -> SparkColumn:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    kind, decimal = wanted.kind, isinstance(given, T.DecimalType) and given.scale == 0
    integral = isinstance(given, T.ByteType | T.ShortType | T.IntegerType | T.LongType)
    value: SparkColumn | None = None
    fits: SparkColumn | None = None
    if kind is Kind.SYMBOL and isinstance(given, T.StringType | T.CharType | T.VarcharType | T.BinaryType):
        value = column.cast("string")
    elif kind is Kind.FLOAT and (integral or isinstance(given, T.FloatType | T.DoubleType | T.DecimalType)):
        value = column.cast("double") + F.lit(0.0)
        if decimal or isinstance(given, T.LongType):
            fits = _is_exact(column)
    elif kind is Kind.NUMBER and integral:
        value = column.cast("bigint")
    elif kind is Kind.NUMBER and decimal:
        fits = column.between(F.lit(-(2**63)).cast("decimal(20,0)"), F.lit(2**63 - 1).cast("decimal(20,0)"))
        value = column.cast("bigint")
    elif kind is Kind.UNSIGNED and (integral or decimal):
        wide = column.cast("decimal(38,0)")
        fits = wide.between(F.lit(0), F.lit("18446744073709551615").cast("decimal(38,0)"))
        bits = F.when(wide <= F.lit(2**63 - 1), wide).otherwise(
            wide - F.lit("18446744073709551616").cast("decimal(38,0)")
        )
        value = column.cast("bigint") if integral else bits.cast("bigint")
    if value is None:
        raise SparkError(f"{label}: Spark's type `{given.simpleString()}` is not {with_article(kind)}")
    if fits is not None:
        shown = F.concat(
            F.lit(f"FactsError: {label}: "),
            column.cast("string"),
            F.lit(
                " is not an exact float" if kind is Kind.FLOAT else f" is out of range for {with_article(kind)}"
            ),
        )
        value = F.when(fits | column.isNull(), value).otherwise(F.raise_error(shown).cast(TYPES[kind]))
    if null_value is not None:
        held = stored(null_value, kind)
        return F.coalesce(value, F.lit(held).cast(TYPES[kind]), no_null(kind))
    null = F.raise_error(
        F.lit(
            f"FactsError: {label}: there is a null or no value, but a fact has a value in every column;"
            " set null=VALUE to replace it"
        )
    )
    return F.coalesce(value, null.cast(TYPES[kind]), no_null(kind))


def _is_exact(column: SparkColumn) -> SparkColumn:
    """Whether an integer is exactly a float; False for all beyond 64 bits."""
    from pyspark.sql import functions as F

    low, high = (F.lit(bound).cast("decimal(20,0)") for bound in (-(2**63), 2**63 - 1))
    nearest = column.cast("double")
    fits = column.cast("decimal(38,0)").between(low, high) & (nearest < F.lit(2.0**63))
    return F.when(fits, nearest.cast("bigint") == column.cast("bigint")).otherwise(F.lit(False))


def _told(format: str, options: Mapping[str, str]) -> str:
    named = (options[key] for key in ("dbtable", "query", "table", "url") if key in options)
    return f"{format} {next(named, '')}".strip()


def named_columns(frame: DataFrame, relation: Relation) -> DataFrame:
    """Facts with the relation's column names, and `unsigned` as decimals.

    Spark ignores case in names, so a later duplicate is numbered.
    """
    from pyspark.sql import functions as F

    if not relation.columns:
        return frame
    names: dict[str, str] = {}
    for number, column in enumerate(relation.columns):
        name = f"{column.name}_{number}" if column.name.lower() in names else column.name
        names[name.lower()] = name
    out = []
    for number, (column, name) in enumerate(zip(relation.columns, names.values(), strict=True)):
        value = F.col(f"c{number}")
        if column.kind is Kind.UNSIGNED:
            wide = value.cast("decimal(20,0)")
            value = F.when(value < 0, wide + F.lit("18446744073709551616").cast("decimal(20,0)")).otherwise(wide)
            value = value.cast("decimal(20,0)")
        out.append(value.alias(name))
    return frame.select(*out)


def write_columns(
    frame: DataFrame, relation: Relation, format: str, options: Mapping[str, str], path: str | None, mode: str
) -> None:
    """Write the facts with one of Spark's formats."""
    writer = named_columns(frame, relation).write.format(format).options(**options).mode(mode)
    if path is None:
        writer.save()
    else:
        writer.save(path)


def write_table(frame: DataFrame, relation: Relation, table: str, mode: str) -> None:
    """Write the facts to a table of Spark's catalogue."""
    named_columns(frame, relation).write.mode(mode).saveAsTable(table)
