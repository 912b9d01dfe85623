"""Exact rational arithmetic, and the field of integers modulo a prime.

An integral rational is an int, never a Fraction, so that equal values look equal.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from everlog.ies.nrc.errors import CalculusError

Number: TypeAlias = int | Fraction


def plain(number: Number) -> Number:
    """The same number, as an int if it is integral.

    >>> plain(Fraction(4, 2)), plain(Fraction(1, 2))
    (2, Fraction(1, 2))
    """
    if number.__class__ is int:
        return number
    return number.numerator if number.denominator == 1 else number


def divided(left: Number, right: Number, pos: int = -1, end: int = -1) -> Number:
    """left / right, exactly.

    >>> divided(1, 2), divided(6, 3)
    (Fraction(1, 2), 2)
    """
    if right == 0:
        raise CalculusError("division by zero", pos, end)
    return plain(Fraction(left) / right)


def residue(number: Number, prime: int, pos: int = -1, end: int = -1) -> int:
    """The number in the field of the integers modulo a prime.

    >>> residue(-1, 7), residue(Fraction(1, 2), 7)
    (6, 4)
    """
    if number.denominator == 1:
        return number.numerator % prime
    if number.denominator % prime == 0:
        raise CalculusError(f"{number} is not in the field modulo {prime}: division by zero", pos, end)
    return number.numerator * pow(number.denominator, -1, prime) % prime


def modular(op: str, left: Number, right: Number, prime: int, pos: int = -1, end: int = -1) -> int:
    """left op right modulo a prime; op is one of + - * /.

    >>> modular("/", 1, 2, 7)
    4
    """
    a, b = residue(left, prime, pos, end), residue(right, prime, pos, end)
    match op:
        case "+":
            return (a + b) % prime
        case "-":
            return (a - b) % prime
        case "*":
            return a * b % prime
        case _:
            if b == 0:
                raise CalculusError(f"division by zero modulo {prime}", pos, end)
            return a * pow(b, -1, prime) % prime
