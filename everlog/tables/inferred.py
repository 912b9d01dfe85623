"""Relations from tables, without a declaration: names, columns, kinds and types are inferred.

A fact has a number, a float or a symbol in every column.  What else tables hold gets a fixed
meaning, which `docs/own-data.md` describes:

    boolean     1 or 0              type `boolean <: number`
    date        "2026-11-18"        type `date <: symbol`; symbols compare as dates do
    timestamp   "2026-11-18T09:30:00", in UTC if it has a time zone; type `timestamp <: symbol`
    decimal     a number if it has no fraction, else the float that prints the same
    null        "" in a column of symbols, `nan` in a column of numbers, which are floats then

A null that becomes a value is told in a note.  What has no such meaning is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from attrs import frozen

from everlog.api.facts.named_rows import is_record
from everlog.core.program import Column, Kind, Relation, Row
from everlog.core.program.fact_rows import FactError, shown
from everlog.core.program.values import MASK, NAN, SIGNED_MAX, SIGNED_MIN, decoded
from everlog.dsl.keywords import KEYWORDS
from everlog.tables.foreign_tables import columns_of

if TYPE_CHECKING:
    from everlog.api.database import Database

_BASES = {"boolean": "number", "date": "symbol", "timestamp": "symbol"}


@frozen
class Inferred:
    """A table as a relation: its declaration, its rows, and notes about nulls."""

    relation: Relation
    rows: list[Row]
    notes: tuple[str, ...] = ()

    def declaration(self, known: Iterable[str] = ()) -> str:
        """The text that declares the relation, and its types unless they are known."""
        types = dict.fromkeys(column.type_name for column in self.relation.columns)
        new = [f".type {name} <: {_BASES[name]}" for name in types if name in _BASES and name not in known]
        return "\n".join([*new, f".decl {self.relation}"])


def over(rules: str = "", /, **tables: object) -> Database:
    """A database whose relations are tables, ready for rules.

    >>> from everlog import over
    >>> db = over(
    ...     ".decl above(x:symbol, y:symbol)"
    ...     "above(x, y) :- boss(x, y).  above(x, z) :- above(x, y), boss(y, z).",
    ...     boss={"who": ["ann", "bob"], "whom": ["bob", "cy"]},
    ... )
    >>> db.query('above("ann", x)')
    [('bob',), ('cy',)]

    A table is a DataFrame of pandas or Polars, a table of Arrow, a relation of DuckDB, a dict of
    columns, or a list of dicts or dataclasses.
    """
    from everlog.api.database import Database

    found = [infer(name, table) for name, table in tables.items()]
    lines: list[str] = []
    for each in found:
        lines.append(each.declaration(known_types("\n".join(lines))))
    text = "\n".join([*lines, rules])
    return Database.from_text(text, facts={each.relation.name: each.rows for each in found})


def known_types(text: str) -> list[str]:
    """The types that a program's text declares."""
    return re.findall(r"\.type\s+(\w+)", text)


def infer(name: str, table: object) -> Inferred:
    """The relation that a table is; FactError if a column has values without a meaning.

    >>> infer("p", {"id": [1, 2], "born on": ["1815-12-10", None]}).declaration()
    '.decl p(id:number, born_on:symbol)'
    """
    columns, rows, notes = [], [], []
    written = _columns(table)
    own = identifiers([name], "table")[0]
    names = identifiers([title for title, _ in written], "c")
    for column, (title, values) in zip(names, written, strict=True):
        kind, type_name, converted, note = _converted(f"{name}: column `{title}`", values)
        columns.append(Column(column, kind, type_name))
        rows.append(converted)
        notes += [f"{own}.{column}: {note}"] if note else []
    return Inferred(Relation(own, tuple(columns)), list(zip(*rows, strict=True)) if rows else [], tuple(notes))


def identifiers(titles: Sequence[str], otherwise: str) -> list[str]:
    """Names of the language for titles, all different.

    >>> identifiers(["Unit price", "2nd", "min", "Unit-price", ""], "c")
    ['Unit_price', 'c2nd', 'min_', 'Unit_price_2', 'c5']
    """
    names: list[str] = []
    for number, title in enumerate(titles, 1):
        name = re.sub(r"\W+", "_", title.strip(), flags=re.ASCII).strip("_") or f"{otherwise}{number}"
        name = f"{otherwise}{name}" if name[0].isdigit() else name
        name = f"{name}_" if name in KEYWORDS else name
        again = 2
        while name in names:
            name = f"{name.removesuffix(f'_{again - 1}')}_{again}"
            again += 1
        names.append(name)
    return names


def _columns(table: object) -> list[tuple[str, list[Any]]]:
    """The columns of a table with their values."""
    if type(table).__module__.partition(".")[0] == "duckdb":
        relation: Any = table
        table = relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.arrow()
    if isinstance(table, list | tuple):
        return _of_records(table)
    found = columns_of(table)
    if found is None:
        raise FactError(f"{type(table).__name__} is not a table: pass a DataFrame, a dict of columns or dicts")
    return [(column.name, column.values()) for column in found]


def _of_records(rows: Sequence[object]) -> list[tuple[str, list[Any]]]:
    from everlog.api.facts.named_rows import fields_of

    if not rows:
        raise FactError("a list without rows has no columns: declare the relation with `.decl`")
    if not all(isinstance(row, Mapping) or is_record(row) for row in rows):
        raise FactError("rows without names have no columns: pass dicts, dataclasses or a dict of columns")
    records: list[Mapping[str, Any]] = [fields_of(row) for row in rows]
    names = dict.fromkeys(name for record in records for name in record)
    return [(name, [record.get(name) for record in records]) for name in names]


# ── values ───────────────────────────────────────────────────────────────────────────────────


def _converted(where: str, values: list[Any]) -> tuple[Kind, str, list[Any], str]:
    """The kind and type of a column, its values as facts have them, and a note about nulls."""
    present = [value for value in values if not _is_null(value)]
    nulls = len(values) - len(present)
    kind, type_name, converted = _of_type(where, present)
    if not nulls:
        return kind, type_name, converted, ""
    many = f"{nulls} null{'' if nulls == 1 else 's'}"
    rest = iter(converted)
    if kind is Kind.SYMBOL:
        note = f'{many}: the empty symbol ""'
        if "" in converted:
            note += ", as are its empty texts"
        return kind, type_name, ["" if _is_null(value) else next(rest) for value in values], note
    floats = [NAN if _is_null(value) else _as_float(where, next(rest)) for value in values]
    return Kind.FLOAT, "", floats, "" if kind is Kind.FLOAT else f"{many}: nan, so that the column is a float"


def _is_null(value: object) -> bool:
    return value is None or value != value or type(value).__name__ in ("NaTType", "NAType")


def _of_type(where: str, values: list[Any]) -> tuple[Kind, str, list[Any]]:
    """The kind, the type and the facts' values of a column without nulls."""
    types = {_plain_type(value) for value in values}
    if types <= {bool}:
        return (Kind.NUMBER, "boolean", list(map(int, values))) if values else (Kind.SYMBOL, "", [])
    if types == {int}:
        return (*_integers(where, values), [int(value) for value in values])
    if types <= {int, float}:
        return Kind.FLOAT, "", [_as_float(where, value) for value in values]
    if types == {str}:
        return Kind.SYMBOL, "", [decoded(value.encode("utf-8", "surrogateescape")) for value in values]
    if types == {bytes}:
        return Kind.SYMBOL, "", list(map(decoded, values))
    if types == {date}:
        return Kind.SYMBOL, "date", [value.isoformat() for value in values]
    if types == {datetime}:
        return Kind.SYMBOL, "timestamp", _timestamps(values)
    if types <= {time, timedelta}:
        return Kind.SYMBOL, "", list(map(str, values))
    if types == {Decimal}:
        return _decimals(where, values)
    listed = ", ".join(sorted(each.__name__ for each in types))
    raise FactError(f"{where} has values of {listed}, such as {shown(values[0])}: convert them to numbers or text")


def _plain_type(value: object) -> type:
    for each in (bool, str, bytes, datetime, date, time, timedelta, Decimal, float):
        if isinstance(value, each):
            return each
    return int if hasattr(value, "__index__") else type(value)


def _as_float(where: str, value: float) -> float:
    """A number as a float; FactError if that would change it."""
    found = float(value) + 0.0
    if isinstance(value, int) and int(found) != value:
        raise FactError(f"{where}: no float is {value}: convert the column to text, or leave out the nulls")
    return found


def _integers(where: str, values: list[Any]) -> tuple[Kind, str]:
    low, high = min(values), max(values)
    if low >= SIGNED_MIN and high <= SIGNED_MAX:
        return Kind.NUMBER, ""
    if low >= 0 and high <= MASK:
        return Kind.UNSIGNED, ""
    raise FactError(f"{where}: {shown(int(high if high > SIGNED_MAX else low))} does not fit 64 bits")


def _timestamps(values: list[datetime]) -> list[str]:
    """Timestamps as texts of one length, so that they compare as they should."""
    moved = [value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value for value in values]
    precision = "microseconds" if any(value.microsecond for value in moved) else "seconds"
    return [value.isoformat(timespec=precision) for value in moved]


def _decimals(where: str, values: list[Decimal]) -> tuple[Kind, str, list[Any]]:
    if all(value == value.to_integral_value() for value in values):
        whole = [int(value) for value in values]
        return (*_integers(where, whole), whole)
    floats = [float(value) for value in values]
    for value, number in zip(values, floats, strict=True):
        if Decimal(repr(number)) != value:
            raise FactError(f"{where}: no float prints as {value}: convert the column to text, or to whole units")
    return Kind.FLOAT, "", floats
