"""Columns of words between the compiled machine and tables: no Python object for a number.

A column of 64-bit words becomes an array of numpy or Arrow as it is.  Symbols are numbers of texts
there: each text is one Python object, however often it occurs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from everlog.core.native.words import SortedWords, column_of, words_of
from everlog.core.program import Column, Kind
from everlog.core.program.fact_rows import EXACT, plain_column
from everlog.tables.foreign_tables import ForeignColumn

if TYPE_CHECKING:
    from everlog.core.native._machine import Symbols

# ── in ───────────────────────────────────────────────────────────────────────────────────────


def words_of_column(source: ForeignColumn, kind: Kind, values: Callable[[], list[Any]], symbols: Symbols) -> Any:
    """The words of a column; `values` are looked at one by one where its type does not tell."""
    words = _of_texts(source, symbols) if kind is Kind.SYMBOL else _of_numbers(source, kind)
    return words_of(values(), kind, symbols) if words is None else words


def _of_numbers(source: ForeignColumn, kind: Kind) -> Any:
    """The words of numbers that all fit; None if they have to be looked at one by one."""
    array = source.array()
    if array is None:
        return None
    low, high = (array.min(), array.max()) if len(array) else (0, 0)
    match kind, array.dtype.kind:
        case (Kind.FLOAT, "f") | (Kind.NUMBER, "i") | (Kind.UNSIGNED, "u"):
            return array
        case Kind.FLOAT, "i" | "u" if int(low) > -EXACT and int(high) < EXACT:
            return array.astype("float64")
        case Kind.NUMBER, "u" if int(high) < 2**63:
            return array
        case Kind.UNSIGNED, "i" if int(low) >= 0:
            return array
    return None


def _of_texts(source: ForeignColumn, symbols: Symbols) -> Any:
    """The words of texts; None if they have to be looked at one by one."""
    coded = source.coded()
    if coded is None:
        return None
    codes, texts = coded
    if not plain_column(Kind.SYMBOL, texts):
        return None
    return sys.modules["numpy"].frombuffer(symbols.numbers(texts), dtype="int64").take(codes)


# ── out ──────────────────────────────────────────────────────────────────────────────────────


def values_of_words(words: SortedWords, columns: Sequence[Column]) -> list[Any]:
    """For each column its values in sorted order: an array of numbers, or a list of texts."""
    found = next(words.columns(max(1, len(words))), [bytearray()] * len(columns))
    return [_values(held, column.kind, words.symbols) for held, column in zip(found, columns, strict=True)]


def _values(held: bytearray, kind: Kind, symbols: Symbols) -> Any:
    """The values of a column; as an array of numpy, where that is installed, they need no copy."""
    try:
        import numpy as np
    except ModuleNotFoundError:
        return column_of(memoryview(held), kind, symbols)
    if kind is Kind.SYMBOL:
        return column_of(memoryview(held), kind, symbols)
    types = {Kind.NUMBER: np.int64, Kind.UNSIGNED: np.uint64, Kind.FLOAT: np.float64}
    return np.frombuffer(held, types[kind])
