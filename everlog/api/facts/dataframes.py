"""Rows as a table of pandas, Polars or Arrow.

Numbers become `int64`, unsigned numbers `uint64`, floats `float64`, and symbols the library's text
type.  The rows are sorted.  Where the compiled machine has them, its columns of words are handed
over; otherwise C code splits rows into columns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from everlog.api.facts.named_rows import dicts, instances
from everlog.core.native.words import SortedWords
from everlog.core.program import Column, Kind, Row
from everlog.core.program.values import encoded
from everlog.extras import optional

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


_Record = TypeVar("_Record")


class Tabular:
    """Anything with columns and rows; converts to the tables of other libraries."""

    __slots__ = ()

    @abstractmethod
    def rows(self) -> list[Row]:
        """All rows, sorted."""

    @abstractmethod
    def _columns(self) -> Sequence[Column]:
        """The columns with their kinds."""

    def _words(self) -> SortedWords | None:
        """All rows as words of the compiled machine, if it has them."""
        return None

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dicts by column, sorted.

        >>> from everlog import Database
        >>> Database.from_text(".decl n(x:number)  n(1).")["n"].to_dicts()
        [{'x': 1}]
        """
        return dicts([column.name for column in self._columns()], self.rows())

    def to_objects(self, cls: type[_Record]) -> list[_Record]:
        """The rows as instances of a class that takes the columns by name, such as a dataclass."""
        return instances(cls, [column.name for column in self._columns()], self.rows())

    def to_pandas(self) -> pd.DataFrame:
        """A pandas DataFrame, with the rows sorted.

        Needs pandas: `pip install 'everlog[pandas]'`.
        """
        pandas = optional("pandas", "pandas", "to_pandas()")
        types = {Kind.NUMBER: "int64", Kind.UNSIGNED: "uint64", Kind.FLOAT: "float64", Kind.SYMBOL: None}
        size, values = self._values()
        series = {
            column.name: pandas.Series(some, dtype=types[column.kind] if size else types[column.kind] or "str")
            for column, some in values
        }
        return pandas.DataFrame(series, index=pandas.RangeIndex(size))

    def to_polars(self) -> pl.DataFrame:
        """A Polars DataFrame, with the rows sorted.

        Needs Polars: `pip install 'everlog[polars]'`.
        """
        polars = optional("polars", "polars", "to_polars()")
        types = {
            Kind.NUMBER: polars.Int64,
            Kind.UNSIGNED: polars.UInt64,
            Kind.FLOAT: polars.Float64,
            Kind.SYMBOL: polars.String,
        }
        columns = [polars.Series(c.name, values, dtype=types[c.kind]) for c, values in self._values()[1]]
        frame: pl.DataFrame = polars.DataFrame(columns)
        return frame

    def to_arrow(self) -> pa.Table:
        """An Arrow table, with the rows sorted; symbols that are not UTF-8 as `binary`.

        Needs pyarrow: `pip install 'everlog[arrow]'`.
        """
        arrow = optional("pyarrow", "arrow", "to_arrow()")
        types = {Kind.NUMBER: arrow.int64(), Kind.UNSIGNED: arrow.uint64(), Kind.FLOAT: arrow.float64()}
        arrays: dict[str, Any] = {}
        for column, values in self._values()[1]:
            try:
                arrays[column.name] = arrow.array(values, types.get(column.kind, arrow.string()))
            except (UnicodeEncodeError, arrow.ArrowInvalid):
                arrays[column.name] = arrow.array([encoded(str(value)) for value in values], arrow.binary())
        return arrow.table(arrays)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows through Arrow's C interface: `pyarrow.table(result)`, DuckDB, …"""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _values(self) -> tuple[int, list[tuple[Column, Sequence[Any]]]]:
        """The number of rows, and the values of each column in sorted order."""
        columns, words = self._columns(), self._words()
        if words is not None and columns:
            from everlog.api.facts.word_columns import values_of_words  # not needed for rows

            return len(words), list(zip(columns, values_of_words(words, columns), strict=True))
        rows = self.rows()
        values: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
        return len(rows), list(zip(columns, values, strict=True)) if columns else []
