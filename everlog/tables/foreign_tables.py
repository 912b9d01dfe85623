"""Tables of other libraries as columns: pandas, Polars, Arrow, numpy, dicts.

The columns' types are mapped to the few that facts need, and nulls are found.  C code turns the
values into lists.  This module imports no library: a table brings its own.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from everlog.core.program.values import NAN
from everlog.extras import optional

INTEGER, FLOAT, TEXT, BYTES, OBJECT, OTHER = "integer", "float", "text", "bytes", "object", "other"


@frozen
class ForeignColumn:
    """One column of a table: its name and type in the table, and access to its values.

    `form` is the type of all values.  `missing` is the first row without a value, or None.
    `array` gives numbers as an array of numpy, `coded` texts as an array of places in a list of
    texts, without a Python object for each value; None if that is not possible.
    """

    name: str
    type: str
    form: str
    missing: int | None
    values: Callable[[], list[Any]]
    array: Callable[[], Any] = lambda: None
    coded: Callable[[], tuple[Any, list[str]] | None] = lambda: None


Table: TypeAlias = list[ForeignColumn]


def columns_of(table: object) -> Table | None:
    """The columns of a table, or None if it is not a table of a known kind.

    >>> [(column.name, column.form) for column in columns_of({"x": [1, 2], "y": ["a", "b"]})]
    [('x', 'object'), ('y', 'object')]
    >>> columns_of([(1, "a")])
    """
    if isinstance(table, list | tuple | set | frozenset):
        return None
    library = type(table).__module__.partition(".")[0]
    reader = _READERS.get(library)
    if reader is not None:
        return reader(table)
    if isinstance(table, Mapping):
        return [_column_of_mapping(str(name), column) for name, column in table.items()]
    if hasattr(table, "__arrow_c_stream__"):
        return _of_arrow(optional("pyarrow", "arrow", f"a table of {library}").table(table))
    return None


def _column_of_mapping(name: str, column: Any) -> ForeignColumn:
    library = type(column).__module__.partition(".")[0]
    if library in _SERIES and getattr(column, "ndim", 1) == 1:
        return _SERIES[library](name, column)
    values = list(column) if not isinstance(column, str | bytes) else [column]
    return ForeignColumn(name, "Python objects", OBJECT, None, lambda: values)


# ── pandas and numpy ─────────────────────────────────────────────────────────────────────────


def _of_pandas(table: Any) -> Table | None:
    if not hasattr(table, "columns"):  # a Series has values instead of rows
        return None
    return [_pandas_series(str(name), table.iloc[:, place]) for place, name in enumerate(table.columns)]


def _pandas_series(name: str, series: Any) -> ForeignColumn:
    pandas = sys.modules["pandas"]
    kind, type_ = pandas.api.types, series.dtype
    if isinstance(type_, pandas.CategoricalDtype):
        type_ = type_.categories.dtype
    if kind.is_bool_dtype(type_):
        form = OTHER
    elif kind.is_integer_dtype(type_):
        form = INTEGER
    elif kind.is_float_dtype(type_):
        form = FLOAT
    elif kind.is_object_dtype(type_):
        form = OBJECT
    elif kind.is_string_dtype(type_):
        form = TEXT
    else:
        form = OTHER
    missing = None
    plain_float = form == FLOAT and type(series.dtype).__module__.startswith("numpy")  # NaN is a value there
    if not plain_float and form != OBJECT:
        none = series.isna().to_numpy()
        missing = int(none.argmax()) if none.any() else None

    def values() -> list[Any]:
        if form == FLOAT:
            return _floats((series.to_numpy("float64") + 0.0).tolist())
        listed: list[Any] = series.tolist()
        return listed

    def coded() -> tuple[Any, list[str]] | None:
        if form != TEXT:
            return None
        codes, texts = pandas.factorize(series)
        return codes, texts.tolist()

    def array() -> Any:
        is_unsigned = form == INTEGER and kind.is_unsigned_integer_dtype(type_)
        wanted = {INTEGER: "uint64" if is_unsigned else "int64", FLOAT: "float64"}.get(form)
        return None if wanted is None else series.to_numpy(wanted)

    return ForeignColumn(name, str(series.dtype), form, missing, values, _of_words(array), coded)


def _of_numpy(table: Any) -> Table | None:
    if getattr(table, "dtype", None) is None or table.ndim != 2:
        return None
    return [_numpy_column(str(place), table[:, place]) for place in range(table.shape[1])]


def _numpy_column(name: str, column: Any) -> ForeignColumn:
    form = {"i": INTEGER, "u": INTEGER, "f": FLOAT, "U": TEXT, "O": OBJECT}.get(column.dtype.kind, OTHER)

    def values() -> list[Any]:
        listed: list[Any] = (column.astype("float64") + 0.0 if form == FLOAT else column).tolist()
        return _floats(listed) if form == FLOAT else listed

    return ForeignColumn(name, str(column.dtype), form, None, values, _of_words(lambda: column))


# ── Polars ───────────────────────────────────────────────────────────────────────────────────


def _of_polars(table: Any) -> Table | None:
    if hasattr(table, "collect"):  # a LazyFrame
        table = table.collect()
    if not hasattr(table, "get_columns"):
        return None
    return [_polars_series(series.name, series) for series in table.get_columns()]


def _polars_series(name: str, series: Any) -> ForeignColumn:
    polars = sys.modules["polars"]
    type_ = series.dtype
    if type_.is_integer():
        form = INTEGER
    elif type_.is_float():
        form = FLOAT
    elif type_ in (polars.String, polars.Categorical, polars.Enum):
        form = TEXT
    elif type_ == polars.Binary:
        form = BYTES
    else:
        form = OBJECT if type_ == polars.Object else OTHER
    missing = int(series.is_null().arg_max()) if series.null_count() else None

    def values() -> list[Any]:
        listed: list[Any] = (series.cast(polars.Float64) + 0.0 if form == FLOAT else series).to_list()
        return _floats(listed) if form == FLOAT else listed

    def coded() -> tuple[Any, list[str]] | None:
        if form != TEXT:
            return None
        texts = series.cast(polars.String)
        return (texts.rank("dense") - 1).to_numpy(), texts.unique().sort().to_list()

    return ForeignColumn(name, str(type_), form, missing, values, _of_words(series.to_numpy), coded)


# ── Arrow ────────────────────────────────────────────────────────────────────────────────────


def _of_arrow(table: Any) -> Table | None:
    if not hasattr(table, "column_names") and hasattr(table, "schema"):  # a reader of batches
        table = table.read_all() if hasattr(table, "read_all") else table
    if not hasattr(table, "column_names"):
        return None
    return [_arrow_column(name, table.column(place)) for place, name in enumerate(table.column_names)]


def _arrow_column(name: str, column: Any) -> ForeignColumn:
    arrow = optional("pyarrow", "arrow", "a table of Arrow")
    types, type_ = arrow.types, column.type
    if types.is_dictionary(type_):
        column = column.cast(type_.value_type)
    plain = column.type
    if types.is_integer(plain):
        form = INTEGER
    elif types.is_floating(plain):
        form = FLOAT
    elif types.is_string(plain) or types.is_large_string(plain) or _is_view(types, "string", plain):
        form = TEXT
    elif types.is_binary(plain) or types.is_large_binary(plain) or _is_view(types, "binary", plain):
        form = BYTES
    else:
        form = OTHER
    missing = column.is_null().to_pylist().index(True) if column.null_count else None

    def values() -> list[Any]:
        if form == FLOAT:
            compute = optional("pyarrow.compute", "arrow", "a table of Arrow")
            return _floats(_listed(compute.add(column.cast(arrow.float64()), 0.0)))
        return _listed(column) if form == INTEGER else column.to_pylist()

    def coded() -> tuple[Any, list[str]] | None:
        if form != TEXT or "numpy" not in sys.modules:
            return None
        found = arrow.chunked_array([column]) if isinstance(column, arrow.Array) else column
        one = found.combine_chunks().dictionary_encode()
        one = one.combine_chunks() if isinstance(one, arrow.ChunkedArray) else one
        return one.indices.to_numpy(), one.dictionary.to_pylist()

    def array() -> Any:
        return None if form not in (INTEGER, FLOAT) or "numpy" not in sys.modules else column.to_numpy()

    return ForeignColumn(name, str(type_), form, missing, values, _of_words(array), coded)


def _is_view(types: Any, what: str, type_: Any) -> bool:
    test = getattr(types, f"is_{what}_view", None)  # only newer versions have it
    return test is not None and test(type_)


def _listed(column: Any) -> list[Any]:
    """Numbers without nulls; through numpy, where installed, twenty times as fast."""
    try:
        listed: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    except (ImportError, TypeError):  # a chunked column takes no argument
        try:
            listed = column.to_numpy().tolist()
        except ImportError:
            listed = column.to_pylist()
    return listed


def _of_words(array: Callable[[], Any]) -> Callable[[], Any]:
    """The array with words of 64 bits; None unless it has integers or floats of at most as many."""

    def widened() -> Any:
        found = array()
        wanted = None if found is None else {"i": "int64", "u": "uint64", "f": "float64"}.get(found.dtype.kind)
        if wanted is None or found.dtype.itemsize > 8:
            return None
        return sys.modules["numpy"].ascontiguousarray(found, wanted)

    return widened


_READERS: Mapping[str, Callable[[Any], Table | None]] = {
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_arrow,
    "numpy": _of_numpy,
}
_SERIES: Mapping[str, Callable[[str, Any], ForeignColumn]] = {
    "pandas": _pandas_series,
    "polars": _polars_series,
    "pyarrow": _arrow_column,
    "numpy": _numpy_column,
}


def _floats(values: list[float]) -> list[float]:
    """The floats, with every NaN replaced by our one NaN object."""
    return [value if value == value else NAN for value in values] if any(map(math.isnan, values)) else values
