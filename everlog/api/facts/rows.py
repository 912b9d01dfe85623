"""Checks of user input: rows, tables, lines of text, steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from attrs import field, frozen

from everlog.api.facts.dataframes import Tabular
from everlog.api.facts.named_rows import is_record, row_of, rows_of
from everlog.api.parameters import Given
from everlog.core.program import Kind, Relation, Row, Value
from everlog.core.program.executor import Update
from everlog.core.program.fact_rows import FactError, checked_row, declared, fact_rows, shown
from everlog.dsl.answer_order import NONE
from everlog.dsl.fact_text import FactTextError, cut, pattern_text, read_fact, read_update
from everlog.dsl.query_text import ParsedQuery

Relations: TypeAlias = Mapping[str, Relation]
Step: TypeAlias = str | Iterable[Update | str | tuple[str, Any, int]]


# ── rows and steps ───────────────────────────────────────────────────────────────────────────


def checked_rows(relation: Relation, rows: object) -> list[Row]:
    """The rows of an input: one row, an iterable of rows, or a table.  Dicts of plain values and
    dataclasses are rows, too.

    >>> from everlog.core.program import Column, Kind
    >>> edge = Relation("edge", (Column("x", Kind.NUMBER), Column("y", Kind.NUMBER)))
    >>> checked_rows(edge, (1, 2)), checked_rows(edge, [(1, 2), [3, 4]]), checked_rows(edge, [])
    ([(1, 2)], [(1, 2), (3, 4)], [])
    """
    if isinstance(rows, tuple | list) and _is_row(relation, rows):
        return [checked_row(relation, rows)]
    if is_record(rows):
        return [row_of(relation, rows)]
    if not isinstance(rows, list | tuple | set | frozenset) and is_table(rows):
        from everlog.api.facts.tabular import rows_of_table  # not needed for rows

        return rows_of_table(relation, rows)
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        return [checked_row(relation, rows)]  # raises the error
    listed = rows if isinstance(rows, list) else list(rows)
    if listed and is_record(listed[0]):
        return rows_of(relation, listed)
    return fact_rows(relation, listed)


def is_table(source: object) -> bool:
    """Whether an input has columns rather than rows.

    >>> is_table({"x": [1, 2]}), is_table([(1,), (2,)]), is_table(iter([(1,)]))
    (True, False, False)
    """
    if isinstance(source, Tabular):
        return False  # our own result has rows, and needs no detour through Arrow
    library = type(source).__module__.partition(".")[0]
    return library in _TABLES or isinstance(source, Mapping) or hasattr(source, "__arrow_c_stream__")


_TABLES = frozenset({"numpy", "pandas", "polars", "pyarrow"})


def _is_row(relation: Relation, row: tuple[Any, ...] | list[Any]) -> bool:
    """Whether an input is one row; `()` is the row of a relation without columns."""
    if not row:
        return row == () and relation.arity == 0
    return not isinstance(row[0], tuple | list) and not is_record(row[0])


def fact(
    relations: Relations, text_or_relation: str, row: object = None, given: Given | None = None
) -> tuple[str, Row]:
    """A fact from a relation and a row, or from text with parameters."""
    if row is not None:
        if given is not None and given.values:
            raise FactError("parameters need a fact as text; this one is a relation and a row")
        relation = declared(relations, text_or_relation)
        return relation.name, checked_row(relation, row)
    used: set[str] = set()

    def value_of(name: str, kind: Kind) -> Value:
        assert given is not None
        used.add(name)
        return given.value(name, kind)

    try:
        found = read_fact(text_or_relation, relations, None if given is None else value_of)
    except FactTextError as problem:
        raise FactError(str(problem)) from None
    for name in () if given is None else given.values:
        if name not in used:
            raise FactError(f"`{text_or_relation.strip()}` has no parameter `${name}`")
    return found


@frozen
class Pattern:
    """A query of one atom: constants by column, and pairs of equal columns.

    `parameters` names the parameters without a value, by column.
    """

    relation: Relation
    bound: Mapping[int, Value] = field(factory=dict)
    equal: tuple[tuple[int, int], ...] = ()
    parameters: Mapping[int, str] = field(factory=dict)

    def filled(self, given: Given) -> Pattern:
        """The pattern with the values of its parameters filled in."""
        columns = self.relation.columns
        values = {at: given.value(name, columns[at].kind) for at, name in self.parameters.items()}
        return Pattern(self.relation, {**self.bound, **values}, self.equal)

    def matches(self, row: Row) -> bool:
        return all(row[column] in (value,) for column, value in self.bound.items()) and self.has_equals(row)

    def has_equals(self, row: Row) -> bool:
        """Whether a variable that occurs twice has one value; NaN equals itself."""
        return all(row[i] is row[j] or row[i] == row[j] for i, j in self.equal)


def pattern_of(relations: Relations, query: ParsedQuery) -> Pattern:
    """The pattern that a query of one atom is, or FactError.

    >>> from everlog.core.program import Column, Kind
    >>> from everlog.dsl.query_text import parse_query
    >>> relation = Relation("r", tuple(Column(name, Kind.NUMBER) for name in "abc"))
    >>> found = pattern_of({"r": relation}, parse_query("r(x, 7, x)"))
    >>> other = pattern_of({"r": relation}, parse_query("r(x, $id, _)"))
    >>> found.bound, found.equal, other.parameters
    ({1: 7}, ((2, 0),), {1: 'id'})
    """
    if query.ordering != NONE:
        raise FactError(f"`{cut(query.text)}`: a pattern has no order and no limit")
    try:
        read = pattern_text(query, relations)
    except FactTextError as problem:
        raise FactError(str(problem)) from None
    return Pattern(
        relations[read.relation],
        {column: value for column, value in enumerate(read.constants) if value is not None},
        tuple((column, first) for column, first in enumerate(read.same) if column != first),
        {column: name for column, name in enumerate(read.parameters) if name},
    )


def updates(relations: Relations, text_or_relation: str, rows: object, insert: bool) -> list[Update]:
    """The updates of one `insert` or `delete`; without `rows`, of a fact as text."""
    if rows is None:
        return [Update(*fact(relations, text_or_relation), insert)]
    relation = declared(relations, text_or_relation)
    return [Update(relation.name, row, insert) for row in checked_rows(relation, rows)]


def step_updates(relations: Relations, step: Step) -> Iterator[Update]:
    """The updates of a step.

    An entry is an `Update`, a line `+fact.` or `-fact.`, or a tuple (relation, row, ±1).
    """
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
                    f"{shown(entry)} is not an update;"
                    ' write `Update(relation, row)`, "+fact." or (relation, row, ±1)'
                )


# Ordinary lines need no parser: plain numbers, and symbols without escapes.
_CONSTANT = r'(?:-?[0-9]{1,20}|"[^"\\\n]*")'
_LINE = re.compile(
    rf"\s*([+-]?)\s*([?A-Za-z_][?A-Za-z0-9_]*)\(({_CONSTANT}(?:\s*,\s*{_CONSTANT})*)\)\s*\.?\s*(?://.*)?"
)
_VALUE = re.compile(r'"([^"]*)"|(-?[0-9]+)')


def is_idle(line: str) -> bool:
    """Whether a line is blank or a comment."""
    text = line.strip()
    return not text or text.startswith(("//", "#"))


def line_update(relations: Relations, line: str) -> Update:
    """The update of a line `+fact.` or `-fact.`; `+` and the full stop are optional.

    Cost: a few microseconds for an ordinary line, that of parsing a rule for any other.
    """
    found = _LINE.fullmatch(line)
    if found is not None and found[2] in relations:
        row = [int(number) if number else text for text, number in _VALUE.findall(found[3])]
        with suppress(FactError):  # the parser reports the error better
            return Update(found[2], checked_row(relations[found[2]], row), found[1] != "-")
    try:
        return read_update(line, relations)
    except FactTextError as problem:
        raise FactError(str(problem)) from None
