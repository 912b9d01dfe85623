"""Sums of floats without intermediate rounding: terms can be removed in any order.

A finite float is an integer times the smallest float, so a sum of floats is an integer sum; only
the result is rounded, once.  Infinities and NaN are counted beside it.
"""

from __future__ import annotations

import math

_SCALE = 1 << 1074  # one over the smallest float that is not zero
NAN = math.nan  # the one NaN of all values


class ExactSum:
    """
    >>> total = ExactSum()
    >>> total.add(1e100); total.add(1.5); total.add(1e100, -1)
    >>> total.value()
    1.5
    """

    __slots__ = ("_down", "_finite", "_nans", "_up")

    def __init__(self) -> None:
        self._finite = self._up = self._down = self._nans = 0

    def add(self, value: float, times: int = 1) -> None:
        if math.isfinite(value):
            numerator, denominator = value.as_integer_ratio()
            self._finite += times * numerator * (_SCALE // denominator)
        elif value == math.inf:
            self._up += times
        elif value == -math.inf:
            self._down += times
        else:
            self._nans += times

    def value(self) -> float:
        """The float nearest to the sum."""
        if self._nans or (self._up and self._down):
            return NAN
        if self._up or self._down:
            return math.inf if self._up else -math.inf
        try:
            return self._finite / _SCALE
        except OverflowError:
            return math.inf if self._finite > 0 else -math.inf


# ── sums as single integers ──────────────────────────────────────────────────────────────────
#
# For sums that are added to each other, one float is one integer: its value as above, and behind
# that how many infinities, NaNs and floats the sum has.  The parts never meet: 2^128 floats have
# less than `_ROOM` together.

_ROOM = 1 << 2300
_FIELD = 1 << 128


def packed_float(value: float) -> int:
    """One float as an integer that sums may add.

    >>> unpacked_sum(packed_float(1e100) + packed_float(1.5) - packed_float(1e100))
    1.5
    """
    one = _ROOM * _FIELD**3
    if math.isfinite(value):
        numerator, denominator = value.as_integer_ratio()
        return numerator * (_SCALE // denominator) + one
    field = 0 if value == math.inf else 1 if value == -math.inf else 2
    return int(_ROOM * _FIELD**field) + one


def _unpacked(total: int) -> tuple[ExactSum, int]:
    found = ExactSum()
    finite = (total + _ROOM // 2) % _ROOM - _ROOM // 2
    rest = (total - finite) // _ROOM
    found._finite = finite
    found._up, found._down, found._nans = rest % _FIELD, rest // _FIELD % _FIELD, rest // _FIELD**2 % _FIELD
    return found, rest // _FIELD**3


def unpacked_sum(total: int) -> float:
    """The float nearest to a sum of packed floats."""
    return _unpacked(total)[0].value()


def unpacked_mean(total: int) -> float:
    """The mean of packed floats.

    >>> unpacked_mean(packed_float(1.0) + packed_float(4.0))
    2.5
    """
    found, number = _unpacked(total)
    return found.value() / number


def terms_of(total: int) -> list[tuple[float, int]]:
    """A few floats, each with a number of times, that add up to a sum of packed floats.

    There are as many of them as were added.

    >>> terms_of(packed_float(math.inf) + 3 * packed_float(5e-324))
    [(5e-324, 3), (inf, 1)]
    """
    found, number = _unpacked(total)
    terms = [(5e-324, found._finite), (math.inf, found._up), (-math.inf, found._down), (NAN, found._nans)]
    terms.append((0.0, number - sum(times for _, times in terms)))
    return [(value, times) for value, times in terms if times]
