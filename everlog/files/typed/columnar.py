"""Facts as Arrow columns with standard types: Parquet, Arrow files, DuckDB.

| kind       | written as | read from                                            |
|------------|------------|------------------------------------------------------|
| `number`   | int64      | integers and decimals without fraction, in range     |
| `unsigned` | uint64     | the same                                             |
| `float`    | double     | floats, integers, decimals                           |
| `symbol`   | string     | strings and binaries, also by dictionary             |

If a symbol is not UTF-8, the column is written as binary.  A relation without columns gets a column
`holds`, which is true, as on Spark.

Relations of the compiled machine are read and written as columns of words: there is no Python
object for a value, and one for each symbol.  Columns with nulls, decimals or other unusual types
are left to the reader of rows, which refuses or converts value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from everlog.core.native.words import SortedWords, empty_words
from everlog.core.program import Column, Kind, Row
from everlog.core.program.values import NAN
from everlog.extras import MissingPackage, optional
from everlog.files.location import Place, Reading, found, reason, replacing
from everlog.files.rejects import Refuse
from everlog.files.text_values import FactsError, sorted_rows
from everlog.files.typed.typed_values import Typed, check_columns, distinct_names, typed_rows, typed_value
from everlog.spark_backend.column_types import HOLDS, arrow_array

if TYPE_CHECKING:
    import pyarrow as pa

    from everlog.core.native._machine import Relation as Words
    from everlog.core.native._machine import Symbols

Batches: TypeAlias = Iterable["pa.RecordBatch"]
PART = 1 << 20  # rows that are written at once
_INTEGERS = frozenset({Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT})
_FLOATS = frozenset({Kind.FLOAT})
_TEXTS = frozenset({Kind.SYMBOL})


def needs(package: str, extra: str, what: str) -> Any:
    """An optional library, or FactsError that names the extra to install."""
    try:
        return optional(package, extra, what)
    except MissingPackage as problem:
        raise FactsError(str(problem)) from None


@contextmanager
def arrow_errors(where: object) -> Iterator[None]:
    """Convert errors of pyarrow to FactsError with the file's name."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise FactsError(f"{where}: {reason(problem)}") from None


# ── in ───────────────────────────────────────────────────────────────────────────────────────


def columns_file(reading: Reading, suffix: str) -> Path | None:
    """The file of a directive; None if it is missing and may be."""
    path = found(reading.place, reading.place.path(suffix), reading.missing_ok)
    if path is not None:
        needs("pyarrow", "arrow", suffix)
    return path


def kinds_of_type(type_: pa.DataType) -> frozenset[Kind]:
    """The kinds whose values a column of this type may hold."""
    import pyarrow as pa

    is_type = pa.types
    if is_type.is_dictionary(type_):
        return kinds_of_type(type_.value_type)
    if is_type.is_integer(type_):
        return _INTEGERS
    if is_type.is_floating(type_):
        return _FLOATS
    if is_type.is_decimal(type_):
        return _INTEGERS if type_.scale == 0 else _FLOATS
    views = [getattr(is_type, name, None) for name in ("is_string_view", "is_binary_view")]
    tests: list[Callable[[Any], bool] | None] = [is_type.is_string, is_type.is_large_string, is_type.is_binary]
    tests += [is_type.is_large_binary, is_type.is_fixed_size_binary, *views]
    return _TEXTS if any(test(type_) for test in tests if test is not None) else frozenset()


def wanted_columns(place: Place, schema: pa.Schema, where: str) -> list[int]:
    """The columns that hold the facts; FactsError if the schema does not fit."""
    columns = [Typed(field.name, str(field.type), kinds_of_type(field.type)) for field in schema]
    return check_columns(place, columns, where)


def rows_of_columns(place: Place, columns: Sequence[Any], where: str, refuse: Refuse) -> list[Row]:
    """The facts of Arrow columns, which are in the order of the relation's."""
    stored = [_values(column, of) for column, of in zip(columns, place.relation.columns, strict=True)]
    return typed_rows(place, stored, typed_value, where, refuse)


def _values(column: Any, of: Column) -> list[object]:
    listed: list[object] = column.to_pylist()
    if of.kind is Kind.FLOAT:
        return [NAN if value != value else value for value in listed]
    return listed


def words_of_batches(
    place: Place, batches: Batches, columns_of: Sequence[str | int], symbols: Symbols
) -> Words | None:
    """The facts of batches; None if a column needs a look at each value."""
    import pyarrow as pa

    found = empty_words(place.relation, symbols)
    for batch in batches:
        columns = [batch.column(which) for which in columns_of]
        if any(column.null_count for column in columns):
            return None
        try:
            held = [
                _words(column, of, symbols) for column, of in zip(columns, place.relation.columns, strict=True)
            ]
        except (pa.ArrowInvalid, ValueError):  # a value that is out of range
            return None
        if None in held:
            return None
        found.take(tuple(held))
    found.seal()
    return found


def _words(column: Any, of: Column, symbols: Symbols) -> Any:
    """The words of an Arrow array without nulls, as bytes; None if it has none."""
    import pyarrow as pa

    is_dictionary = pa.types.is_dictionary(column.type)
    if of.kind is Kind.SYMBOL:
        coded = column if is_dictionary else column.dictionary_encode()
        if coded.dictionary.null_count:
            return None
        texts = [str(typed_value(Kind.SYMBOL, value)) for value in coded.dictionary.to_pylist()]
        numbers = pa.Array.from_buffers(pa.int64(), len(texts), [None, pa.py_buffer(symbols.numbers(texts))])
        return _bytes(numbers.take(coded.indices))
    if is_dictionary:
        column = column.dictionary_decode()
    is_type = pa.types.is_floating if of.kind is Kind.FLOAT else pa.types.is_integer
    if not is_type(column.type):
        return None
    return _bytes(column.cast({Kind.FLOAT: pa.float64(), Kind.NUMBER: pa.int64()}.get(of.kind, pa.uint64())))


def _bytes(column: Any) -> memoryview:
    return memoryview(column.buffers()[1])[8 * column.offset : 8 * (column.offset + len(column))]


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write_columns(
    place: Place, rows: Iterable[Row], suffix: str, write: Callable[[pa.Schema, Batches, Path], object]
) -> None:
    """Write the facts of a relation to its file, completely or not at all."""
    needs("pyarrow", "arrow", suffix)
    path = place.path(suffix)
    if place.keeps(path.exists(), path):
        return
    if isinstance(rows, SortedWords) and place.relation.columns and rows.symbols.can_be_written():
        schema, batches = _schema_of_words(place), _batches_of_words(place, rows)
    else:
        table = table_of_rows(place, rows)
        schema, batches = table.schema, iter(table.to_batches(PART))
    with arrow_errors(path), replacing(path) as temporary:
        write(schema, batches, temporary)


def _schema_of_words(place: Place) -> pa.Schema:
    import pyarrow as pa

    types = {
        Kind.NUMBER: pa.int64(),
        Kind.UNSIGNED: pa.uint64(),
        Kind.FLOAT: pa.float64(),
        Kind.SYMBOL: pa.string(),
    }
    columns = place.relation.columns
    return pa.schema(list(zip(distinct_names(columns), (types[column.kind] for column in columns), strict=True)))


def _batches_of_words(place: Place, rows: SortedWords) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    schema = _schema_of_words(place)
    for part in rows.columns(PART):
        arrays = []
        for words, field, of in zip(part, schema, place.relation.columns, strict=True):
            type_ = pa.int64() if of.kind is Kind.SYMBOL else field.type
            array = pa.Array.from_buffers(type_, len(words) // 8, [None, pa.py_buffer(words)])
            if of.kind is Kind.SYMBOL:
                coded = array.dictionary_encode()
                texts = pa.array(rows.symbols.texts_of(coded.dictionary.to_pylist()), pa.string())
                array = texts.take(coded.indices)
            arrays.append(array)
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def table_of_rows(place: Place, rows: Iterable[Row]) -> pa.Table:
    """The facts of a relation, sorted."""
    import pyarrow as pa

    ordered = sorted_rows(place.relation, rows)
    columns = place.relation.columns
    if not columns:
        return pa.table({HOLDS: pa.array([True] * len(ordered), pa.bool_())})
    values: Sequence[Sequence[Any]] = list(zip(*ordered, strict=True)) if ordered else [()] * len(columns)
    arrays = [_array(listed, column.kind) for listed, column in zip(values, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=distinct_names(columns))


def _array(values: Sequence[Any], kind: Kind) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.uint64()) if kind is Kind.UNSIGNED else arrow_array(values, kind)
