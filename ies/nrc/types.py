"""Types of the nested relational calculus: base types, products, sets.

    s ::= b | s1 * ... * sn | {s}

`bool` and `num` (exact rationals) are built in; any other name is a base type with equality only,
as in the paper.  A value is a Python value: a bool, an int or Fraction, any hashable scalar for a
named base type, a tuple, a frozenset.

Source: Libkin and Wong, Section 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, TypeAlias

from attrs import frozen

Value: TypeAlias = Any


@frozen
class Base:
    """A base type, by its name."""

    name: str

    def __str__(self) -> str:
        return self.name


@frozen
class Product:
    """The type of tuples; there are at least two parts."""

    parts: tuple[Type, ...]

    def __str__(self) -> str:
        return " * ".join(f"({part})" if isinstance(part, Product) else str(part) for part in self.parts)


@frozen
class SetOf:
    """The type of finite sets."""

    element: Type

    def __str__(self) -> str:
        return f"{{{self.element}}}"


Type: TypeAlias = Base | Product | SetOf

BOOL = Base("bool")
NUM = Base("num")


def height(type_: Type) -> int:
    """The depth of nesting of set brackets.

    >>> height(SetOf(Product((NUM, SetOf(NUM)))))
    2
    """
    match type_:
        case Base():
            return 0
        case Product(parts):
            return max(map(height, parts))
        case SetOf(element):
            return 1 + height(element)


def columns(type_: Type) -> tuple[Base, ...]:
    """The base types of a flat tuple, products inside products spliced.

    >>> [str(b) for b in columns(Product((NUM, Product((NUM, BOOL)))))]
    ['num', 'num', 'bool']
    """
    match type_:
        case Base():
            return (type_,)
        case Product(parts):
            return tuple(base for part in parts for base in columns(part))
        case SetOf():
            raise ValueError(f"{type_} is not the type of a flat tuple")


def base_types(type_: Type) -> Iterator[Base]:
    """Every base type inside, with repetitions, from left to right."""
    match type_:
        case Base():
            yield type_
        case Product(parts):
            for part in parts:
                yield from base_types(part)
        case SetOf(element):
            yield from base_types(element)


def inhabits(value: Value, type_: Type) -> bool:
    """Whether a value is of a type.

    >>> inhabits((1, frozenset({True})), Product((NUM, SetOf(BOOL))))
    True
    """
    match type_:
        case Base("bool"):
            return isinstance(value, bool)
        case Base("num"):
            return isinstance(value, (int, Fraction)) and not isinstance(value, bool)
        case Base():
            return isinstance(value, (int, str, float, Fraction)) and not isinstance(value, bool)
        case Product(parts):
            return isinstance(value, tuple) and len(value) == len(parts) and all(map(inhabits, value, parts))
        case SetOf(element):
            return isinstance(value, frozenset) and all(inhabits(item, element) for item in value)
