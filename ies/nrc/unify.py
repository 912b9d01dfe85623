"""Unification of types that are not fully known.

An empty set does not give its element type, and a literal `1` or `"a"` may be of any base type that
has such values.  Such a type is an `Unknown` until something that it must equal decides it; an
undecided literal is a `num`, or a `text`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from everlog.ies.nrc.types import BOOL, NUM, Base, Product, SetOf, Type

Kind: TypeAlias = Literal["any", "number", "text"]  # "number": not bool; "text": neither bool nor num


class Unknown:
    """A type to be found; `is_` once it is."""

    def __init__(self, kind: Kind = "any") -> None:
        self.kind: Kind = kind
        self.is_: Open | None = None

    def __str__(self) -> str:
        found = found_of(self)
        return _DEFAULTS.get(found.kind, "?") if isinstance(found, Unknown) else shown(found)


class OpenProduct:
    """A product with parts that may be unknown."""

    def __init__(self, parts: tuple[Open, ...]) -> None:
        self.parts = parts


class OpenSet:
    """A set type whose element may be unknown."""

    def __init__(self, element: Open) -> None:
        self.element = element


Open: TypeAlias = Base | OpenProduct | OpenSet | Unknown
_DEFAULTS: dict[str, str] = {"number": "num", "text": "text"}


def opened(type_: Type) -> Open:
    """A type as an open type without unknowns."""
    match type_:
        case Base():
            return type_
        case Product(parts):
            return OpenProduct(tuple(map(opened, parts)))
        case SetOf(element):
            return OpenSet(opened(element))


def found_of(type_: Open) -> Open:
    """The known outermost level of a type."""
    found = type_
    while isinstance(found, Unknown) and found.is_ is not None:
        found = found.is_
    while isinstance(type_, Unknown) and type_.is_ is not None and type_ is not found:
        type_.is_, type_ = found, type_.is_  # path compression
    return found


def closed(type_: Open) -> Type | None:
    """The type, with undecided literals as `num` and `text`; None if unknown."""
    match found_of(type_):
        case Base() as base:
            return base
        case OpenProduct() as product:
            parts = [closed(part) for part in product.parts]
            known = tuple(part for part in parts if part is not None)
            return Product(known) if len(known) == len(parts) else None
        case OpenSet() as found:
            element = closed(found.element)
            return None if element is None else SetOf(element)
        case Unknown() as unknown:
            return Base(_DEFAULTS[unknown.kind]) if unknown.kind != "any" else None


def shown(type_: Open) -> str:
    """The type as text; `?` stands for unknown."""
    match found_of(type_):
        case Base(name):
            return name
        case OpenProduct() as product:
            parts = [(shown(part), isinstance(found_of(part), OpenProduct)) for part in product.parts]
            return " * ".join(f"({text})" if nested else text for text, nested in parts)
        case OpenSet() as found:
            return f"{{{shown(found.element)}}}"
        case Unknown() as unknown:
            return str(unknown)


def unify(left: Open, right: Open) -> bool:
    """Make two types equal; False if they cannot be.  Partial results stay."""
    left, right = found_of(left), found_of(right)
    if left is right:
        return True
    if isinstance(left, Unknown):
        return _assign(left, right)
    if isinstance(right, Unknown):
        return _assign(right, left)
    match left, right:
        case Base(), Base():
            return left == right
        case OpenProduct(), OpenProduct():
            if len(left.parts) != len(right.parts):
                return False
            found = [
                unify(a, b) for a, b in zip(left.parts, right.parts, strict=True)
            ]  # all of them, for messages
            return all(found)
        case OpenSet(), OpenSet():
            return unify(left.element, right.element)
        case _:
            return False


def _assign(unknown: Unknown, type_: Open) -> bool:
    if isinstance(type_, Unknown):
        strict: tuple[Kind, ...] = ("text", "number", "any")
        type_.kind = next(kind for kind in strict if kind in (unknown.kind, type_.kind))
    elif unknown.kind != "any":
        if not isinstance(type_, Base) or type_ == BOOL or (unknown.kind == "text" and type_ == NUM):
            return False
    elif _occurs(unknown, type_):
        return False
    unknown.is_ = type_
    return True


def _occurs(unknown: Unknown, type_: Open) -> bool:
    match found_of(type_):
        case OpenProduct() as product:
            return any(_occurs(unknown, part) for part in product.parts)
        case OpenSet() as found:
            return _occurs(unknown, found.element)
        case other:
            return other is unknown
