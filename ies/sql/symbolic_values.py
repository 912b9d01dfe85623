"""Symbolic values: what a term stands for while its SQL is written.

A scalar is a piece of SQL text with the columns it mentions.  A set is not a table but a *recipe*:
each time it is opened it gives, with fresh aliases, the branches of a union: tables to range over,
conditions, and a head, which may hold sets again.  A generator over such a set puts its tables and
conditions into the current query.  So comprehensions fuse, nested sets need no table, and in the
end every FROM names a stored flat relation.

Source: Wong, Normal forms and conservative extension properties for query languages over collection
types, 1996 (intermediate nested data can always be removed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Literal, TypeAlias

from attrs import field, frozen

from everlog.ies.nrc.types import Base, Product, Type
from everlog.ies.sql.errors import SqlError

Kind: TypeAlias = Literal["bool", "num", "named"]
Column: TypeAlias = tuple[str, str]  # alias, column
Constant: TypeAlias = bool | int | Fraction | str

OR, AND, COMPARE, ADD, MULTIPLY, ATOM = range(6)  # how tightly a text binds


@frozen
class Scalar:
    """A value of a base type, as SQL.

    `columns` are the outer columns that the text mentions; `column` is set if it is just that
    column; `heavy` says that it contains a query; `whole` is false while a 64-bit database may have
    overflowed in it.
    """

    text: str
    kind: Kind
    level: int = ATOM
    columns: frozenset[Column] = frozenset()
    column: Column | None = None
    constant: Constant | None = None
    heavy: bool = False
    whole: bool = True
    parts: tuple[Scalar, ...] = ()  # of a conjunction
    equals: tuple[Scalar, Scalar] | None = None

    def at(self, level: int) -> str:
        """The text, in parentheses if it binds more loosely than `level`."""
        return self.text if self.level >= level else f"({self.text})"


@frozen
class Tup:
    parts: tuple[Val, ...]


@frozen
class Table:
    """A stored flat relation, or a table with a result of an update."""

    name: str
    columns: tuple[str, ...]
    row: Type


@frozen
class From:
    """A table or a query without duplicates to range over; `free`: outer columns."""

    alias: str
    text: str
    columns: tuple[str, ...]
    kinds: tuple[Kind, ...]
    table: Table | None = None
    free: frozenset[Column] = frozenset()


@frozen
class Branch:
    """{head | froms, conditions}."""

    froms: tuple[From, ...]
    conditions: tuple[Scalar, ...]
    head: Val


@frozen(eq=False)
class SetVal:
    """A set; `table` if it is just that table."""

    open: Callable[[], list[Branch]]
    table: Table | None = field(default=None)


Val: TypeAlias = Scalar | Tup | SetVal

TRUE = Scalar("TRUE", "bool", constant=True)
FALSE = Scalar("FALSE", "bool", constant=False)
EMPTY = SetVal(list)


def kind_of(base: Base) -> Kind:
    return "bool" if base.name == "bool" else "num" if base.name == "num" else "named"


def shape(type_: Type, scalars: Iterator[Scalar]) -> Val:
    """The value of a flat type with these scalars, from left to right."""
    match type_:
        case Base():
            return next(scalars)
        case Product(parts):
            return Tup(tuple(shape(part, scalars) for part in parts))
        case _:
            raise AssertionError(f"{type_} is not flat")


def flat(value: Val) -> tuple[Scalar, ...] | None:
    """The scalars of a value from left to right; None if it holds a set."""
    match value:
        case Scalar():
            return (value,)
        case Tup(parts):
            out: list[Scalar] = []
            for part in parts:
                inner = flat(part)
                if inner is None:
                    return None
                out += inner
            return tuple(out)
        case SetVal():
            return None


def like(value: Val, scalars: Iterator[Scalar]) -> Val:
    """A flat value of the same shape with other scalars."""
    match value:
        case Scalar():
            return next(scalars)
        case Tup(parts):
            return Tup(tuple(like(part, scalars) for part in parts))
        case SetVal():
            raise AssertionError("a set has no columns")


def scalar(value: Val) -> Scalar:
    if not isinstance(value, Scalar):
        raise SqlError("a value of a base type is expected here; the system was not type-checked")
    return value


def as_set(value: Val) -> SetVal:
    if not isinstance(value, SetVal):
        raise SqlError("a set is expected here; the system was not type-checked")
    return value


def mentioned(scalars: Iterable[Scalar]) -> frozenset[Column]:
    return frozenset().union(*(one.columns for one in scalars))


# ── conditions ───────────────────────────────────────────────────────────────────────────────────


def conjunction(conditions: Iterable[Scalar]) -> Scalar:
    """The conjunction, without trivial and repeated conditions."""
    parts: dict[str, Scalar] = {}
    for condition in conditions:
        for part in condition.parts or (condition,):
            if part.constant is False:
                return FALSE
            if part.constant is not True:
                parts[part.text] = part
    each = tuple(parts.values())
    if not each:
        return TRUE
    if len(each) == 1:
        return each[0]
    text = " AND ".join(part.at(COMPARE) for part in each)
    return Scalar(text, "bool", AND, mentioned(each), heavy=any(p.heavy for p in each), parts=each)


def disjunction(conditions: Iterable[Scalar]) -> Scalar:
    parts: dict[str, Scalar] = {}
    for condition in conditions:
        if condition.constant is True:
            return TRUE
        if condition.constant is not False:
            parts[condition.text] = condition
    each = tuple(parts.values())
    if not each:
        return FALSE
    if len(each) == 1:
        return each[0]
    text = " OR ".join(part.at(AND) for part in each)
    return Scalar(text, "bool", OR, mentioned(each), heavy=any(p.heavy for p in each))


def negation(condition: Scalar) -> Scalar:
    if condition.constant is not None:
        return FALSE if condition.constant else TRUE
    text = condition.text
    if text.startswith("NOT ") and condition.level == COMPARE:
        return Scalar(text[4:], "bool", ATOM, condition.columns, heavy=condition.heavy)
    return Scalar(f"NOT {condition.at(ATOM)}", "bool", COMPARE, condition.columns, heavy=condition.heavy)


def determined(froms: Iterable[From], conditions: Iterable[Scalar], head: Iterable[Scalar]) -> bool:
    """Whether the head determines the row of every table, so that rows are distinct.

    The head determines its columns, and a condition that equates a column with a determined value
    determines it, too.
    """
    local = {(one.alias, name) for one in froms for name in one.columns}
    fixed = {one.column for one in head if one.column is not None} & local
    equations = [condition.equals for condition in conditions if condition.equals is not None]
    grows = True
    while grows and fixed != local:
        grows = False
        for left, right in equations:
            for one, other in ((left, right), (right, left)):
                new = one.column in local and one.column not in fixed
                if new and other.columns & local <= fixed:
                    assert one.column is not None
                    fixed.add(one.column)
                    grows = True
    return fixed == local
