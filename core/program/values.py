"""64-bit numbers, floats and byte strings, as in the 64-bit build of Soufflé.

A `number` is a Python int kept within 64 signed bits, an `unsigned` one within 64 bits, a `float`
a Python float, a `symbol` a Python str.  Symbols are byte strings in Soufflé: lengths and
positions count bytes of UTF-8, and bytes that are no UTF-8 survive as surrogate escapes.

There is one NaN object, so that a set of rows finds it again; -0.0 is 0.0 wherever a float is made.
"""

from __future__ import annotations

import math
import re
import warnings
from functools import lru_cache

from attrs import frozen

from everlog.core.program.exact import NAN as NAN
from everlog.core.program.exact import ExactSum
from everlog.core.program.patterns import Malformed, as_python

SIGNED_MIN = -(2**63)
SIGNED_MAX = 2**63 - 1
MASK = 2**64 - 1


class EvaluationError(Exception):
    """A rule cannot be evaluated: a functor has no value, or a limit is exceeded.

    Raised inside a rule; the caller that runs rules adds the rule and its line (`with_rule`).
    """

    def __init__(self, message: str, rule: str = "", where: str = "") -> None:
        self.message, self.rule, self.where = message, rule, where
        super().__init__(message)

    def with_rule(self, rule: str, where: str) -> EvaluationError:
        return self if self.rule else self.__class__(self.message, rule, where)

    def __str__(self) -> str:
        place = f" at {self.where}" if self.where else ""
        rule = f"\n  in the rule  {self.rule}" if self.rule else ""
        return f"{self.message}{place}{rule}"


class NoValue(EvaluationError):
    """A functor has no value for its arguments, such as a division by zero.

    core.program.bodies says when that makes a rule fail.
    """


@frozen
class Failed:
    """A placeholder for the value that a functor does not have."""

    message: str

    @property
    def error(self) -> NoValue:
        return NoValue(self.message)


# ── integers ─────────────────────────────────────────────────────────────────────────────────


def wrap(value: int) -> int:
    """Bring an integer back into 64 signed bits, as two's complement does.

    >>> wrap(2**63), wrap(-2**63 - 1), wrap(5)
    (-9223372036854775808, 9223372036854775807, 5)
    """
    return ((value + 2**63) & MASK) - 2**63


def divide(a: int, b: int) -> int:
    """Division towards zero.

    >>> divide(-7, 2), divide(7, -2)
    (-3, -3)
    """
    if b == 0:
        raise NoValue(f"division by zero: {a} / 0")
    quotient = abs(a) // abs(b)
    return wrap(-quotient if (a < 0) != (b < 0) else quotient)


def unsigned_divide(a: int, b: int) -> int:
    """
    >>> unsigned_divide(2**64 - 1, 1) == 2**64 - 1
    True
    """
    return divide(a, b) & MASK


def modulo(a: int, b: int) -> int:
    """The remainder of `divide`; it has the sign of the dividend.

    >>> modulo(-7, 2), modulo(7, -2)
    (-1, 1)
    """
    if b == 0:
        raise NoValue(f"division by zero: {a} % 0")
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def power(a: int, b: int) -> int:
    """A power, computed in floats: 53 bits are exact; on overflow the least number.

    >>> power(2, 10), power(2, -1), power(-1, -3), power(3, 39)
    (1024, 0, -1, 4052555153018976256)
    """
    return truncated(float_power(float(a), float(b)))


def unsigned_power(a: int, b: int) -> int:
    """
    >>> unsigned_power(2, 63), unsigned_power(2, 64)
    (9223372036854775808, 0)
    """
    return truncated_unsigned(float_power(float(a), float(b)))


def shift_left(a: int, b: int) -> int:
    """
    >>> shift_left(1, 65)
    2
    """
    return wrap(a << (b & 63))


def shift_right_unsigned(a: int, b: int) -> int:
    """
    >>> shift_right_unsigned(-1, 60)
    15
    """
    return wrap((a & MASK) >> (b & 63))


def truncated(value: float) -> int:
    """A float as a 64-bit number; outside of its range the least number, as on x86.

    >>> truncated(-2.9), truncated(1e30)
    (-2, -9223372036854775808)
    """
    if value != value or not -(2.0**63) <= value < 2.0**63:
        return SIGNED_MIN
    return int(value)


def truncated_unsigned(value: float) -> int:
    """A float as an unsigned: too large is 0, too small or NaN is 2^63, as on x86.

    >>> truncated_unsigned(2.9), truncated_unsigned(-1.0) == MASK, truncated_unsigned(2.0**64)
    (2, True, 0)
    """
    if value != value or value < -(2.0**63):
        return 2**63
    return int(value) & MASK if value < 2.0**64 else 0


# ── floats ───────────────────────────────────────────────────────────────────────────────────


def float_divide(a: float, b: float) -> float:
    """
    >>> float_divide(1.0, 0.0), float_divide(0.0, 0.0)
    (inf, nan)
    """
    if b != 0.0:
        result = a / b
        return result + 0.0 if result == result else NAN
    if a == 0.0 or a != a:
        return NAN
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def float_power(a: float, b: float) -> float:
    try:
        result = math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        return math.inf if a == 0.0 else NAN
    return result + 0.0 if result == result else NAN


def float_sum(values: list[float]) -> float:
    """The correctly rounded sum: it depends on the values, not on their order."""
    try:
        result = math.fsum(values)
    except (OverflowError, ValueError):  # both infinities, or past the largest float on the way
        total = ExactSum()
        for value in values:
            total.add(value)
        result = total.value()
    return result if result == result else NAN


def float_text(value: float) -> str:
    """A float as output files have it: 17 significant digits.

    >>> float_text(0.1), float_text(2.0), float_text(1e20), float_text(NAN)
    ('0.10000000000000001', '2', '1e+20', '-nan')
    """
    return "%.17g" % value if value == value else "-nan"


# ── symbols ──────────────────────────────────────────────────────────────────────────────────


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def byte_length(text: str) -> int:
    """
    >>> byte_length("naïve")
    6
    """
    return len(text) if text.isascii() else len(encoded(text))


def substring(text: str, start: int, length: int) -> str:
    """`length` bytes from `start`; empty if `start` is outside, cut at the end.

    >>> substring("datalog", 4, 3), substring("datalog", 9, 1), substring("datalog", 4, 99)
    ('log', '', 'log')
    """
    if start < 0:
        return ""
    stop = None if length < 0 else start + length
    return text[start:stop] if text.isascii() else decoded(encoded(text)[start:stop])


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[bytes] | None:
    """A pattern on bytes.  None: malformed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(as_python(encoded(text).decode("latin-1")).encode("latin-1"))
    except (Malformed, re.error, RecursionError, OverflowError):
        return None


def matches(pattern: str, text: str) -> bool:
    """Whether the *whole* text matches; a malformed pattern matches nothing.

    >>> matches("a.*", "abc"), matches("a", "abc"), matches("(", "(")
    (True, False, False)
    """
    compiled = _pattern(pattern)
    return compiled is not None and compiled.fullmatch(encoded(text)) is not None


def differs(pattern: str, text: str) -> bool:
    """`!match(pattern, text)`: a malformed pattern has no answer either way."""
    compiled = _pattern(pattern)
    return compiled is not None and compiled.fullmatch(encoded(text)) is None


def concatenated(*parts: str) -> str:
    """Symbols put together as bytes: halves of a character become the character.

    >>> concatenated(substring("é", 0, 1), substring("é", 1, 1))
    'é'
    """
    text = "".join(parts)
    if not text.isascii() and any("\udc80" <= c <= "\udcff" for c in text):
        return decoded(encoded(text))
    return text


def contains(part: str, whole: str) -> bool:
    """Whether the bytes of one symbol occur in those of another."""
    return part in whole if part.isascii() else encoded(part) in encoded(whole)


_NUMERALS = {
    base: re.compile(rf"[ \t\n\v\f\r]*([+-]?){digits}")
    for base, digits in ((2, "([01]+)"), (10, "([0-9]+)"), (16, "(?:0x(?=[0-9a-fA-F]))?([0-9a-fA-F]+)"))
}
_FLOAT = re.compile(
    r"[ \t\n\v\f\r]*([+-]?(?:inf(?:inity)?|nan|0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?))",
    re.IGNORECASE,
)


def parsed_number(text: str) -> int:
    """The value of `to_number`: the leading numeral of the symbol, as C reads it.

    >>> parsed_number("-12"), parsed_number("0x1f"), parsed_number("12 apples")
    (-12, 31, 12)
    """
    value = _integer(text, "to_number")
    if not SIGNED_MIN <= value <= SIGNED_MAX:
        raise NoValue(f"to_number({text!r}) is out of range for a 64-bit number")
    return value


def parsed_unsigned(text: str) -> int:
    value = _integer(text, "to_unsigned")
    if text.startswith("-") or not -MASK <= value <= MASK:
        raise NoValue(f"to_unsigned({text!r}) is out of range for a 64-bit unsigned")
    return value & MASK


def shown(value: object) -> str:
    """A value for a message, cut at 60 characters.

    >>> shown("abc"), len(shown("x" * 1000)), shown(10**5_000)
    ("'abc'", 60, 'a value of type int that cannot be shown')
    """
    try:
        text = repr(value)
    except Exception:  # an integer of more than 4300 digits, deep nesting, or an object of the user's
        return f"a value of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= 60 else f"{text[:57]}..."


def integer(digits: str, base: int = 10) -> int:
    """The value of digits without a sign; 10**400 if there are more than 400 digits.

    >>> integer("1f", 16), integer("0" * 5_000 + "7"), integer("9" * 5_000) == 10**400
    (31, 7, True)
    """
    if len(digits) > 400:  # Python refuses to convert more than 4300
        digits = digits.lstrip("0") or "0"
    return int(digits, base) if len(digits) <= 400 else 10**400


def _integer(text: str, functor: str) -> int:
    sign, plain = ("-", text[1:]) if text.startswith("-") else ("", text)
    base = {"0x": 16, "0b": 2}.get(plain[:2], 10)
    found = _NUMERALS[base].match(sign + plain[2:] if base == 2 else text)
    if found is None:
        raise NoValue(f"{functor}({text!r}): the symbol is not a number")
    value = integer(found[2], base)
    return -value if found[1] == "-" else value


def parsed_float(text: str) -> float:
    """
    >>> parsed_float("2.5"), parsed_float("1e3 m"), parsed_float("-inf")
    (2.5, 1000.0, -inf)
    """
    found = _FLOAT.match(text)
    if found is None:
        raise NoValue(f"to_float({text!r}): the symbol is not a float")
    numeral = found[1].lower()
    try:
        value = float.fromhex(numeral) if "0x" in numeral else float(numeral)
    except OverflowError:
        value = math.inf
    if math.isinf(value) and "inf" not in numeral:
        raise NoValue(f"to_float({text!r}) is out of range for a 64-bit float")
    return value + 0.0 if value == value else NAN


# ── ordinals ─────────────────────────────────────────────────────────────────────────────────

_ordinals: dict[str, int] = {}


def ordinal(text: str) -> int:
    """The number of a symbol: one per symbol and process, in order of first use."""
    return _ordinals.setdefault(text, len(_ordinals))


def symbol_of_ordinal(number: int) -> str:
    """The symbol that has this ordinal."""
    if number < len(_ordinals):
        return next(text for text, n in _ordinals.items() if n == number)
    raise NoValue(f"as({number}, symbol): no symbol has this ordinal")
