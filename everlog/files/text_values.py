r"""One value of a column: from the text of a file to Python, and back.

Python's `int` and `float` accept more than Soufflé does (`1_000`, `5 `, digits of other scripts)
and less (`0x1p3`).  So a field must match the grammar of its kind before it is converted.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping

from everlog.core.program import Kind, Relation, Row, Value
from everlog.core.program.fact_rows import EXACT, plain_float, shown
from everlog.core.program.values import MASK, NAN, SIGNED_MAX, SIGNED_MIN, encoded


class FactsError(Exception):
    """An error in facts or in the parameters of a directive; the message says where."""


class NoSuchFile(FactsError):
    """The file of a directive does not exist."""


# ── from text ────────────────────────────────────────────────────────────────────────────────
# A parser raises ValueError with the reason; the reader adds the place.

_BLANKS = r"[ \t\n\v\f\r]*"
_NUMBER = re.compile(rf"{_BLANKS}([+-]?)([0-9]+)")
_UNSIGNED = re.compile(rf"{_BLANKS}\+?([0-9]+)|0x([0-9a-fA-F]+)|0b([01]+)")
_BASES = {1: 10, 2: 16, 3: 2}
_DECIMAL = re.compile(
    rf"{_BLANKS}([+-]?)(?:(?P<digits>[0-9]+\.?[0-9]*|\.[0-9]+)(?P<exponent>e[+-]?[0-9]+)?|inf|infinity)",
    re.IGNORECASE | re.ASCII,
)
_NOT_A_NUMBER = re.compile(rf"{_BLANKS}[+-]?nan(?:\([0-9a-z_]*\))?", re.IGNORECASE | re.ASCII)
_HEXADECIMAL = re.compile(
    rf"{_BLANKS}([+-]?)(0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?)", re.IGNORECASE | re.ASCII
)
_LONGEST = 64  # significant digits; numerals with more are out of range in every base


def parse_number(text: str) -> int:
    """A number, with optional sign and leading blanks.

    >>> parse_number("+5"), parse_number(" 5"), parse_number("-007")
    (5, 5, -7)
    """
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"{shown(text)} is not a number")
    value = _integer(found[2], 10) * (-1 if found[1] == "-" else 1)
    if not SIGNED_MIN <= value <= SIGNED_MAX:
        raise ValueError(f"{shown(text)} is out of range for a 64-bit number")
    return value


def parse_unsigned(text: str) -> int:
    """An unsigned number, in decimal, hexadecimal or binary.

    >>> parse_unsigned("12"), parse_unsigned("0x1f"), parse_unsigned("0b101")
    (12, 31, 5)
    """
    found = _UNSIGNED.fullmatch(text)
    if found is None:
        raise ValueError(f"{shown(text)} is not an unsigned number")
    group = found.lastindex or 0
    value = _integer(found[group], _BASES[group])
    if value > MASK:
        raise ValueError(f"{shown(text)} is out of range for a 64-bit unsigned number")
    return value


def _integer(digits: str, base: int) -> int:
    """The value of digits; 2**64, which is out of range, if there are too many."""
    digits = digits.lstrip("0") or "0"
    return int(digits, base) if len(digits) <= _LONGEST else 2**64


def parse_float(text: str) -> float:
    """A float, in decimal or hexadecimal.

    >>> [parse_float(text) for text in (".5", "1e3", "0x1p3", "-inf", "-0")]
    [0.5, 1000.0, 8.0, -inf, 0.0]
    """
    found = _DECIMAL.fullmatch(text)
    if found is not None:
        value = float(text)
        if found["digits"] and not found["exponent"] and not -EXACT < value < EXACT:
            return plain_float(found[1] + found["digits"])
        _require_range(text, value, found["digits"])
        return value + 0.0  # never -0.0
    if _NOT_A_NUMBER.fullmatch(text):
        return NAN
    found = _HEXADECIMAL.fullmatch(text)
    if found is None:
        raise ValueError(f"{shown(text)} is not a float")
    try:
        value = float.fromhex(found[1] + found[2])
    except OverflowError:
        value = math.inf
    _require_range(text, value, found[2].lower().removeprefix("0x").partition("p")[0])
    return value + 0.0


def _require_range(text: str, value: float, digits: str | None) -> None:
    """Refuse a numeral that would overflow to infinity or underflow to 0.

    C's strtod returns infinity and 0, and so does Soufflé.
    """
    if digits is not None and (math.isinf(value) or (not value and digits.strip("0."))):
        size = "large" if value else "small"
        raise ValueError(f"{shown(text)} is too {size} for a 64-bit float")


PARSERS: Mapping[Kind, Callable[[str], Value]] = {
    Kind.NUMBER: parse_number,
    Kind.UNSIGNED: parse_unsigned,
    Kind.FLOAT: parse_float,
    Kind.SYMBOL: sys.intern,
}


# ── to text ──────────────────────────────────────────────────────────────────────────────────


def sorted_rows(relation: Relation, rows: Iterable[Row]) -> list[Row]:
    """Rows by value, column by column; NaN, which has no order, first.

    Cost: one sort; a key per row only if there is a NaN.
    """
    rows = list(rows)
    floats = [i for i, column in enumerate(relation.columns) if column.kind is Kind.FLOAT]
    if any(row[i] != row[i] for i in floats for row in rows):
        return sorted(rows, key=lambda row: tuple((v == v, v if v == v else 0) for v in row))
    return sorted(rows)


def encoded_text(text: str) -> bytes:
    """The bytes of an output; bytes that were not UTF-8 are written unchanged."""
    try:
        return encoded(text)
    except UnicodeEncodeError as problem:
        around = text[max(0, problem.start - 20) : problem.end + 20]
        raise FactsError(f"a symbol has no UTF-8 form: {shown(around)}") from None
