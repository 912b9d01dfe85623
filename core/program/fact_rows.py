"""Facts from Python, checked against the columns of their relation.

Each relation gets one generated test for tuples that can be stored unchanged, so that many rows are
checked fast.  Other rows are converted: lists become tuples, an int in a float column becomes a
float.  A row that does not fit raises an error with its relation, column and value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from operator import index, itemgetter
from typing import Any

from everlog.core.program import Column, Kind, Relation, Row, Value
from everlog.core.program.values import MASK, NAN, SIGNED_MAX, SIGNED_MIN, decoded, encoded
from everlog.core.program.values import shown as shown

EXACT = 2**53  # up to here every integer is a float


class FactError(ValueError):
    """A fact that does not fit its relation, its columns or its text."""


# ── one row ──────────────────────────────────────────────────────────────────────────────────

# Tests for values that are stored unchanged.  NaN, zero and text beyond ASCII are converted.
_PLAIN = {
    Kind.NUMBER: f"{{0}}.__class__ is int and {SIGNED_MIN} <= {{0}} <= {SIGNED_MAX}",
    Kind.UNSIGNED: f"{{0}}.__class__ is int and 0 <= {{0}} <= {MASK}",
    Kind.FLOAT: "{0}.__class__ is float and {0} and {0} == {0}",
    Kind.SYMBOL: "{0}.__class__ is str and {0}.isascii()",
}


@lru_cache(maxsize=1024)
def plain_test(kinds: tuple[Kind, ...]) -> Callable[[tuple[object, ...]], bool]:
    """A function that tells whether a tuple can be stored unchanged, given its kinds.

    >>> plain = plain_test((Kind.NUMBER, Kind.SYMBOL))
    >>> plain((1, "a")), plain((True, "a")), plain((1,))
    (True, False, False)

    Cost: a call takes about 0.1 µs.
    """
    names = [f"v{i}" for i in range(len(kinds))]
    tests = [_PLAIN[kind].format(name) for name, kind in zip(names, kinds, strict=True)]
    lines = ["def plain(row):", f"    if len(row) != {len(kinds)}: return False"]
    lines += [f"    {name}, = row" for name in [", ".join(names)] if name]
    lines += [f"    return {' and '.join(tests) or True}"]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)
    plain: Callable[[tuple[object, ...]], bool] = namespace["plain"]
    return plain


def all_plain(kinds: tuple[Kind, ...], rows: list[Any]) -> bool:
    """Whether all rows can be stored unchanged; checked column by column, in C.

    >>> all_plain((Kind.NUMBER,), [(1,), (2,)]), all_plain((Kind.NUMBER,), [(1,), (True,)])
    (True, False)
    """
    if set(map(type, rows)) != {tuple} or set(map(len, rows)) != {len(kinds)}:
        return False
    return all(plain_column(kind, list(map(itemgetter(number), rows))) for number, kind in enumerate(kinds))


def plain_column(kind: Kind, values: list[Any]) -> bool:
    """Whether a column can be stored unchanged; may return False for one that can."""
    types = set(map(type, values))
    if kind is Kind.NUMBER and types == {int}:
        return bool(min(values) >= SIGNED_MIN and max(values) <= SIGNED_MAX)
    if kind is Kind.UNSIGNED and types == {int}:
        return bool(min(values) >= 0 and max(values) <= MASK)
    if kind is Kind.SYMBOL and types == {str}:
        return all(map(str.isascii, values)) or _all_utf8(values)
    return not types


def _all_utf8(values: list[str]) -> bool:
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_row(relation: Relation, row: object) -> Row:
    """A row as the relation stores it, or FactError.

    >>> from everlog.core.program import Column
    >>> point = Relation("point", (Column("x", Kind.FLOAT), Column("name", Kind.SYMBOL)))
    >>> checked_row(point, [1, "a"])
    (1.0, 'a')
    >>> checked_row(point, (1, 2))
    Traceback (most recent call last):
    everlog.core.program.fact_rows.FactError: point: column 2 (`name`:symbol): 2 is not a symbol
    """
    if not isinstance(row, tuple | list):
        raise FactError(
            f"{relation.name}: {shown(row)} is not a row; write it as a tuple, such as {_example(relation)}"
        )
    if len(row) != relation.arity:
        hint = "; several rows are a list of tuples" if relation.arity == 1 and len(row) > 1 else ""
        raise FactError(f"`{relation}` has {relation.arity} column(s), {len(row)} given: {shown(row)}{hint}")
    return tuple([checked_value(relation, number, value) for number, value in enumerate(row)])


def checked_value(relation: Relation, number: int, value: object) -> Value:
    """A value as a column stores it, or FactError."""
    column = relation.columns[number]
    try:
        return value_of_kind(column.kind, value)
    except FactError as problem:
        raise FactError(f"{relation.name}: {column_label(column, number + 1)}: {problem}") from None


def value_of_kind(kind: Kind, value: object) -> Value:
    """A value as columns of this kind store it, or FactError.

    >>> value_of_kind(Kind.FLOAT, 1)
    1.0
    >>> value_of_kind(Kind.SYMBOL, 1)
    Traceback (most recent call last):
    everlog.core.program.fact_rows.FactError: 1 is not a symbol
    """
    try:
        return _CONVERTERS[kind](value)
    except (TypeError, ValueError, OverflowError) as problem:
        known = problem.__class__ is ValueError
        raise FactError(str(problem) if known else f"{shown(value)} is not {with_article(kind)}") from None


def kind_of_value(value: object) -> Kind | None:
    """The kind of a Python value; None if it has none.

    >>> kind_of_value("a"), kind_of_value(1), kind_of_value(True)
    (<Kind.SYMBOL: 'symbol'>, <Kind.NUMBER: 'number'>, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return Kind.SYMBOL
    if isinstance(value, float):
        return Kind.FLOAT
    return Kind.NUMBER if hasattr(value, "__index__") else None


def _integer(value: Any, kind: Kind, low: int, high: int) -> int:
    """Convert integers, numpy's too, by `__index__`; refuse True and False."""
    if isinstance(value, bool):
        raise TypeError
    number = index(value)
    if not low <= number <= high:
        raise ValueError(f"{shown(number)} is out of range for a 64-bit {kind}")
    return number


def _float(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    if not isinstance(value, float):
        return exact_float(index(value))
    number = float(value)
    return number + 0.0 if number == number else NAN


def exact_float(number: int) -> float:
    """An integer as a float; ValueError where no float is equal to it.

    >>> exact_float(2**53)
    9007199254740992.0
    >>> exact_float(2**53 + 1)
    Traceback (most recent call last):
    ValueError: no float is exactly 9007199254740993; the nearest one is 9007199254740992
    """
    try:
        nearest = float(number)
    except OverflowError:
        raise ValueError(f"{shown(number)} is out of range for a 64-bit float") from None
    if nearest != number:
        raise ValueError(f"no float is exactly {shown(number)}; the nearest one is {shown(int(nearest))}")
    return nearest


def plain_float(text: str) -> float:
    """The float equal to a numeral >= 2**53 without exponent; ValueError if none is.

    Smaller decimals, and those with an exponent, get the nearest float elsewhere.

    >>> plain_float("9007199254740992.0"), plain_float("-9007199254740994")
    (9007199254740992.0, -9007199254740994.0)
    >>> plain_float("9007199254740993.0")
    Traceback (most recent call last):
    ValueError: no float is exactly 9007199254740993; the nearest one is 9007199254740992
    """
    whole, _, fraction = text.lstrip("+-").partition(".")
    if fraction.strip("0"):
        raise ValueError(f"no float is exactly {text if len(text) < 60 else text[:57] + '...'}")
    digits = whole.lstrip("0") or "0"
    number = int(digits) if len(digits) < 400 else 10**400  # beyond every float
    return exact_float(-number if text.startswith("-") else number)


def exact_floats(numbers: list[int]) -> list[float]:
    """Many integers as floats; ValueError where no float is equal to one of them."""
    if not numbers or (max(numbers) <= EXACT and min(numbers) >= -EXACT):
        return list(map(float, numbers))
    return list(map(exact_float, numbers))


def _symbol(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    try:
        return decoded(encoded(value))
    except UnicodeEncodeError:
        raise ValueError(f"{shown(value)} has no UTF-8 form") from None


_CONVERTERS: Mapping[Kind, Callable[[object], Value]] = {
    Kind.NUMBER: lambda value: _integer(value, Kind.NUMBER, SIGNED_MIN, SIGNED_MAX),
    Kind.UNSIGNED: lambda value: _integer(value, Kind.UNSIGNED, 0, MASK),
    Kind.FLOAT: _float,
    Kind.SYMBOL: _symbol,
}


def _example(relation: Relation) -> str:
    values: dict[Kind, Value] = {Kind.NUMBER: 1, Kind.UNSIGNED: 1, Kind.FLOAT: 1.5, Kind.SYMBOL: "a"}
    return repr(tuple(values[column.kind] for column in relation.columns))


# ── rows of a relation ───────────────────────────────────────────────────────────────────────


def fact_rows(relation: Relation, values: Iterable[Any]) -> list[Row]:
    """Rows as the relation stores them, or FactError."""
    kinds = tuple(column.kind for column in relation.columns)
    rows = values if isinstance(values, list) else list(values)
    if all_plain(kinds, rows):
        return rows
    plain = plain_test(kinds)
    return [row if row.__class__ is tuple and plain(row) else checked_row(relation, row) for row in rows]


def declared(relations: Mapping[str, Relation], name: object) -> Relation:
    """The relation of this name, or FactError with the nearest one."""
    relation = relations.get(name) if isinstance(name, str) else None
    if relation is None:
        close = get_close_matches(str(name), relations, 1)
        raise FactError(f"undefined relation `{name}`" + (f"; did you mean `{close[0]}`?" if close else ""))
    return relation


# ── messages ─────────────────────────────────────────────────────────────────────────────────


def with_article(kind: Kind) -> str:
    """
    >>> with_article(Kind.UNSIGNED), with_article(Kind.NUMBER)
    ('an unsigned', 'a number')
    """
    return f"{'an' if kind is Kind.UNSIGNED else 'a'} {kind}"


def column_label(column: Column, number: int) -> str:
    """
    >>> column_label(Column("y", Kind.NUMBER), 2)
    'column 2 (`y`:number)'
    """
    return f"column {number} (`{column.name}`:{column.type_name or column.kind})"
