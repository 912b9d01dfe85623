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
