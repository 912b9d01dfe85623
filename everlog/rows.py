"""Facts from Python: checked against the columns of their relation before anything changes.

A stream of single inserts must not pay for the check, so each relation gets one generated test
that says yes to a tuple that may be stored as it is.  Whatever it refuses takes the slow way:
lists become tuples, an int in a float column becomes a float, and what does not fit is told with
its relation, column and value.

Reads: core.program, core.values, dsl.facts, everlog.tabular.  Read by: everlog.database, everlog.transactions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from operator import index, itemgetter
from typing import Any, TypeAlias

from everlog.core.executor import Update
from everlog.core.program import Kind, Relation, Row, Value
from everlog.core.values import MASK, NAN, SIGNED_MAX, SIGNED_MIN, decoded, encoded
from everlog.dsl.facts import FactTextError, read_fact, read_pattern, read_update
from everlog.files.values import column_label, shown, with_article
from everlog.frames import Tabular

Relations: TypeAlias = Mapping[str, Relation]
Pattern: TypeAlias = tuple[Relation, dict[int, Value], list[tuple[int, int]]]  # values, equal columns
Step: TypeAlias = str | Iterable[Update | str | tuple[str, Any, int]]


class FactError(ValueError):
    """A fact that does not fit the program: its relation, its columns, or its text; the message says why."""


# ── one row ──────────────────────────────────────────────────────────────────────────────────

# What is stored as it is.  NaN, zero and text beyond ASCII have several forms; one of them is stored.
_PLAIN = {
    Kind.NUMBER: f"{{0}}.__class__ is int and {SIGNED_MIN} <= {{0}} <= {SIGNED_MAX}",
    Kind.UNSIGNED: f"{{0}}.__class__ is int and 0 <= {{0}} <= {MASK}",
    Kind.FLOAT: "{0}.__class__ is float and {0} and {0} == {0}",
    Kind.SYMBOL: "{0}.__class__ is str and {0}.isascii()",
}


@lru_cache(maxsize=1024)
def plain_test(kinds: tuple[Kind, ...]) -> Callable[[tuple[Any, ...]], Any]:
    """A function that says whether a tuple can be stored as it is, in columns of these kinds.

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
    plain: Callable[[tuple[Any, ...]], Any] = namespace["plain"]
    return plain


def all_plain(kinds: tuple[Kind, ...], rows: list[Any]) -> bool:
    """Whether all of many rows can be stored as they are; looked at column by column, in C.

    >>> all_plain((Kind.NUMBER, Kind.SYMBOL), [(1, "a"), (2, "b")]), all_plain((Kind.NUMBER,), [(1,), (True,)])
    (True, False)
    """
    if set(map(type, rows)) != {tuple} or set(map(len, rows)) != {len(kinds)}:
        return False
    return all(plain_column(kind, list(map(itemgetter(number), rows))) for number, kind in enumerate(kinds))


def plain_column(kind: Kind, values: list[Any]) -> bool:
    """Whether all values of a column can be stored as they are; not for each that can it says so."""
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
    everlog.rows.FactError: point: column 2 (`name`:symbol): 2 is not a symbol
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
        return _CONVERTERS[column.kind](value)
    except (TypeError, ValueError, OverflowError) as problem:
        what = (
            str(problem)
            if problem.__class__ is ValueError
            else f"{shown(value)} is not {with_article(column.kind)}"
        )
        raise FactError(f"{relation.name}: {column_label(column, number + 1)}: {what}") from None


def _integer(value: Any, kind: Kind, low: int, high: int) -> int:
    """Whatever is an integer by `__index__`, numpy's too; True and False are none."""
    if isinstance(value, bool):
        raise TypeError
    number = index(value)
    if not low <= number <= high:
        raise ValueError(f"{shown(number)} is out of range for a 64-bit {kind}")
    return number


def _float(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    number = float(value if isinstance(value, float) else index(value))
    return number + 0.0 if number == number else NAN


def _symbol(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    try:
        return decoded(encoded(value))
    except UnicodeEncodeError:
        raise ValueError(f"{shown(value)} has no UTF-8 form") from None


_CONVERTERS: Mapping[Kind, Callable[[Any], Value]] = {
    Kind.NUMBER: lambda value: _integer(value, Kind.NUMBER, SIGNED_MIN, SIGNED_MAX),
    Kind.UNSIGNED: lambda value: _integer(value, Kind.UNSIGNED, 0, MASK),
    Kind.FLOAT: _float,
    Kind.SYMBOL: _symbol,
}


def _example(relation: Relation) -> str:
    values: dict[Kind, Value] = {Kind.NUMBER: 1, Kind.UNSIGNED: 1, Kind.FLOAT: 1.5, Kind.SYMBOL: "a"}
    return repr(tuple(values[column.kind] for column in relation.columns))


# ── rows and steps ───────────────────────────────────────────────────────────────────────────


def declared(relations: Relations, name: object) -> Relation:
    """The relation of this name, or FactError with the nearest one."""
    relation = relations.get(name) if isinstance(name, str) else None
    if relation is None:
        close = get_close_matches(str(name), relations, 1)
        raise FactError(f"undefined relation `{name}`" + (f"; did you mean `{close[0]}`?" if close else ""))
    return relation


def checked_rows(relation: Relation, given: object) -> list[Row]:
    """The rows that are given: one (a tuple or list of values), any iterable of rows, or a table.

    >>> from everlog.core.program import Column
    >>> edge = Relation("edge", (Column("x", Kind.NUMBER), Column("y", Kind.NUMBER)))
    >>> checked_rows(edge, (1, 2)), checked_rows(edge, [(1, 2), [3, 4]]), checked_rows(edge, [])
    ([(1, 2)], [(1, 2), (3, 4)], [])
    """
    if isinstance(given, tuple | list) and _is_row(relation, given):
        return [checked_row(relation, given)]
    if not isinstance(given, list | tuple | set | frozenset) and is_table(given):
        from everlog.tabular import rows_of_table  # not loaded for rows

        return rows_of_table(relation, given)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return [checked_row(relation, given)]  # which says what is wrong
    kinds = tuple(column.kind for column in relation.columns)
    rows = given if isinstance(given, list) else list(given)
    if all_plain(kinds, rows):
        return rows
    plain = plain_test(kinds)
    return [row if row.__class__ is tuple and plain(row) else checked_row(relation, row) for row in rows]


def is_table(given: object) -> bool:
    """Whether something has columns rather than rows.

    >>> is_table({"x": [1, 2]}), is_table([(1,), (2,)]), is_table(iter([(1,)]))
    (True, False, False)
    """
    if isinstance(given, Tabular):
        return False  # a result of ours, whose rows need no way through Arrow
    library = type(given).__module__.partition(".")[0]
    return library in _TABLES or isinstance(given, Mapping) or hasattr(given, "__arrow_c_stream__")


_TABLES = frozenset({"numpy", "pandas", "polars", "pyarrow"})


def _is_row(relation: Relation, given: tuple[Any, ...] | list[Any]) -> bool:
    """Values are never sequences of their own.  `()` is the fact of a relation without columns."""
    return not isinstance(given[0], tuple | list) if given else given == () and relation.arity == 0


def fact(relations: Relations, text_or_relation: str, row: object = None) -> tuple[str, Row]:
    """A fact given as text, or as the name of a relation and a row."""
    if row is not None:
        relation = declared(relations, text_or_relation)
        return relation.name, checked_row(relation, row)
    try:
        return read_fact(text_or_relation, relations)
    except FactTextError as problem:
        raise FactError(str(problem)) from None


def pattern_of(relations: Relations, text: str) -> Pattern:
    """A query: its relation, the values that columns must have, and the columns that must be equal.

    >>> from everlog.core.program import Column
    >>> relation = Relation("r", tuple(Column(name, Kind.NUMBER) for name in "abc"))
    >>> pattern_of({"r": relation}, "r(x, 7, x)")[1:]
    ({1: 7}, [(2, 0)])
    """
    try:
        name, constants, same = read_pattern(text, relations)
    except FactTextError as problem:
        raise FactError(str(problem)) from None
    bound = {column: value for column, value in enumerate(constants) if value is not None}
    return relations[name], bound, [(column, first) for column, first in enumerate(same) if column != first]


def updates(relations: Relations, text_or_relation: str, rows: object, insert: bool) -> list[Update]:
    """The updates of one `insert` or `delete`; without `rows`, of a fact as text."""
    if rows is None:
        return [Update(*fact(relations, text_or_relation), insert)]
    relation = declared(relations, text_or_relation)
    return [Update(relation.name, row, insert) for row in checked_rows(relation, rows)]


def step_updates(relations: Relations, step: Step) -> Iterator[Update]:
    """The updates of a step: `Update`s, lines `+fact.` or `-fact.`, or tuples (relation, row, ±1)."""
    for entry in step.split("\n") if isinstance(step, str) else step:
        match entry:
            case Update(relation=name, row=row, insert=insert):
                relation = declared(relations, name)
                yield Update(name, checked_row(relation, row), insert)
            case str():
                if not is_idle(entry):
                    yield line_update(relations, entry)
            case (name, row, 1 | -1 as sign) if not isinstance(sign, bool):
                relation = declared(relations, name)
                yield Update(relation.name, checked_row(relation, row), sign > 0)
            case _:
                raise FactError(
                    f'{shown(entry)} is no update; write `Update(relation, row)`, "+fact." or (relation, row, ±1)'
                )


# Ordinary lines, which need no parser: plain numbers, and symbols without escapes.
_CONSTANT = r'(?:-?[0-9]{1,20}|"[^"\\\n]*")'
_LINE = re.compile(
    rf"\s*([+-]?)\s*([?A-Za-z_][?A-Za-z0-9_]*)\(({_CONSTANT}(?:\s*,\s*{_CONSTANT})*)\)\s*\.?\s*(?://.*)?"
)
_VALUE = re.compile(r'"([^"]*)"|(-?[0-9]+)')


def is_idle(line: str) -> bool:
    """Whether a line says nothing: it is blank, or a comment."""
    text = line.strip()
    return not text or text.startswith(("//", "#"))


def line_update(relations: Relations, line: str) -> Update:
    """The update of a line `+fact.` or `-fact.`; the sign `+` and the full stop may be left out.

    Cost: a few microseconds for an ordinary line, as much as parsing a rule for any other.
    """
    found = _LINE.fullmatch(line)
    if found is not None and found[2] in relations:
        row = [int(number) if number else text for text, number in _VALUE.findall(found[3])]
        with suppress(FactError):  # the parser knows better what is wrong
            return Update(found[2], checked_row(relations[found[2]], row), found[1] != "-")
    try:
        return read_update(line, relations)
    except FactTextError as problem:
        raise FactError(str(problem)) from None
