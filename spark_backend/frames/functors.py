"""Functors and comparisons that Spark computes exactly, as Column expressions.

Spark's arithmetic depends on the session (ANSI mode raises on overflow, the other wraps or gives
null), so nothing here relies on it: a sum is `try_add`, and only where that has no answer the slow
exact way.  Unsigned order flips the sign bit; a symbol is ordered by bytes, with the bytes that are
no UTF-8 moved to where Python's order of strings has them.  What divides does not look for zero:
`spark_backend.frames.expressions` has done so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from everlog.core.program import Kind

if TYPE_CHECKING:
    from pyspark.sql import Column

NUMBER, UNSIGNED, FLOAT, SYMBOL = Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL
LEAST = -(2**63)


# ── comparisons ──────────────────────────────────────────────────────────────────────────────


def compared(op: str, left: Column, right: Column, kind: Kind) -> Column:
    from pyspark.sql import functions as F

    match op:
        case "contains":
            return F.contains(right, left)
        case "not_contains":
            return ~F.contains(right, left)
        case "=":
            return left == right
        case "!=" if kind is FLOAT:
            return (left != right) | F.isnan(left)
        case "!=":
            return left != right
    a, b = order_key(left, kind), order_key(right, kind)
    held = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
    return held & ~F.isnan(left) & ~F.isnan(right) if kind is FLOAT else held


def order_key(column: Column, kind: Kind) -> Column:
    """A column with the order of a kind's values (except NaN)."""
    from pyspark.sql import functions as F

    if kind is UNSIGNED:
        return column.bitwiseXOR(F.lit(LEAST).cast("bigint"))
    if kind is SYMBOL:
        return F.when(F.is_valid_utf8(column), F.hex(column)).otherwise(_escaped(column))
    return column


# One character of UTF-8 in hexadecimal digits; anything else is a byte that is not UTF-8.
_CHARACTER = (
    "[0-7].|C[2-9A-F][89AB].|D.[89AB].|E0[AB].[89AB].|E[1-9ABCEF][89AB].[89AB].|ED[89].[89AB].|"
    "F0[9AB].[89AB].[89AB].|F[1-3][89AB].[89AB].[89AB].|F48.[89AB].[89AB]."
)


def _escaped(column: Column) -> Column:
    """The symbol in hexadecimal; a byte that is not UTF-8 as Python's surrogate."""
    from pyspark.sql import functions as F

    text = F.regexp_replace(F.hex(column), f"\\G((?:{_CHARACTER})*+)([89A-F].)", "$1!$2")
    text = F.regexp_replace(text, "!([89AB])", "EDB2$1")
    for lead, place in zip("CDEF", "89AB", strict=True):
        text = F.regexp_replace(text, f"!{lead}", f"EDB3{place}")
    return text


# ── functors ─────────────────────────────────────────────────────────────────────────────────


def _wrapped(decimal: Column) -> Column:
    """The lowest 64 bits of a decimal without fraction."""
    from pyspark.sql import functions as F

    low = F.pmod(decimal, F.lit(str(2**64)).cast("decimal(20,0)"))
    high = low >= F.lit(str(2**63)).cast("decimal(20,0)")
    return F.when(high, low - F.lit(str(2**64)).cast("decimal(20,0)")).otherwise(low).cast("bigint")


def _exactly(attempt: str, operator: Callable[[Column, Column], Column]) -> Callable[..., Column]:
    """64-bit arithmetic: first as Spark tries it; on overflow with decimals, wrapped."""

    def wrapping(a: Column, b: Column) -> Column:
        from pyspark.sql import functions as F

        exact = operator(a.cast("decimal(19,0)"), b.cast("decimal(19,0)"))
        return F.coalesce(F.call_function(attempt, a, b), _wrapped(exact))

    return wrapping


def _negated(a: Column) -> Column:
    from pyspark.sql import functions as F

    return F.when(a == LEAST, a).otherwise(-a)


def _quotient(a: Column, b: Column) -> Column:
    from pyspark.sql import functions as F

    return F.when((b == -1), _negated(a)).otherwise(F.call_function("div", a, b))


def _remainder(a: Column, b: Column) -> Column:
    from pyspark.sql import functions as F

    return F.when((b == -1), F.lit(0).cast("bigint")).otherwise(a % b)


def _magnitude(a: Column) -> Column:
    """The value of unsigned bits as a decimal."""
    from pyspark.sql import functions as F

    exact = a.cast("decimal(20,0)")
    return F.when(a >= 0, exact).otherwise((exact + F.lit(str(2**64)).cast("decimal(20,0)")).cast("decimal(20,0)"))


def _unsigned_quotient(a: Column, b: Column) -> Column:
    from pyspark.sql import functions as F

    large, by = _magnitude(a), _magnitude(b)
    exact = ((large - large % by) / by).cast("decimal(20,0)")
    return F.when((a >= 0) & (b > 0), F.call_function("div", a, b)).otherwise(_wrapped(exact))


def _unsigned_remainder(a: Column, b: Column) -> Column:
    from pyspark.sql import functions as F

    return F.when((a >= 0) & (b > 0), a % b).otherwise(_wrapped(_magnitude(a) % _magnitude(b)))


_plus = _exactly("try_add", lambda a, b: a + b)
_minus = _exactly("try_subtract", lambda a, b: a - b)
_times = _exactly("try_multiply", lambda a, b: a * b)

DIVISIONS: Mapping[tuple[str, Kind], Callable[..., Column]] = {
    ("/", NUMBER): _quotient,
    ("%", NUMBER): _remainder,
    ("/", UNSIGNED): _unsigned_quotient,
    ("%", UNSIGNED): _unsigned_remainder,
}


def _float(operator: Callable[..., Column]) -> Callable[..., Column]:
    return lambda *args: operator(*args) + 0.0  # never -0.0


def _float_divided(a: Column, b: Column) -> Column:
    from pyspark.sql import functions as F

    infinite = F.when(a > 0, F.lit(float("inf"))).otherwise(F.lit(float("-inf")))
    undefined = (a == 0) | F.isnan(a)
    by_zero = F.when(undefined, F.lit(float("nan"))).otherwise(infinite)
    return F.when(b == 0, by_zero).otherwise(a / b + 0.0)


def _shifted(name: str) -> Callable[..., Column]:
    def shift(a: Column, b: Column) -> Column:
        from pyspark.sql import functions as F

        return F.call_function(name, a, b.bitwiseAND(F.lit(63)).cast("int"))

    return shift


def _truth(condition: Callable[..., Column]) -> Callable[..., Column]:
    def number(*args: Column) -> Column:
        from pyspark.sql import functions as F

        return F.when(condition(*(arg != 0 for arg in args)), F.lit(1)).otherwise(F.lit(0)).cast("bigint")

    return number


def _extreme(op: str, kind: Kind) -> Callable[..., Column]:
    def choose(*args: Column) -> Column:
        from pyspark.sql import functions as F

        return reduce(lambda best, arg: F.when(compared(op, arg, best, kind), arg).otherwise(best), args)

    return choose


def to_text(a: Column, kind: Kind) -> Column:
    from pyspark.sql import functions as F

    if kind is not UNSIGNED:
        return a.cast("string")
    return F.when(a >= 0, a.cast("string")).otherwise(_magnitude(a).cast("string"))


def as_float(a: Column, kind: Kind) -> Column:
    from pyspark.sql import functions as F

    if kind is not UNSIGNED:
        return a.cast("double")
    return F.when(a >= 0, a.cast("double")).otherwise(_magnitude(a).cast("double"))


def _truncated(a: Column) -> Column:
    from pyspark.sql import functions as F

    fits = (a >= float(LEAST)) & (a < 2.0**63)  # Spark's NaN is greater than all
    return F.when(fits, a.cast("bigint")).otherwise(F.lit(LEAST).cast("bigint"))


def _truncated_unsigned(a: Column) -> Column:
    from pyspark.sql import functions as F

    upper = (a - 2.0**63).cast("bigint").bitwiseXOR(F.lit(LEAST).cast("bigint"))
    fits = F.when(a < 2.0**64, upper).otherwise(F.lit(0).cast("bigint"))
    return F.when((a >= 2.0**63) & ~F.isnan(a), fits).otherwise(_truncated(a))


def _substring(text: Column, start: Column, length: Column) -> Column:
    from pyspark.sql import functions as F

    most = F.lit(2**31 - 2).cast("bigint")
    first = (F.least(start, most) + 1).cast("int")
    count = F.when(length < 0, most).otherwise(F.least(length, most)).cast("int")
    part = F.substring(text.cast("binary"), first, count).cast("string")
    return F.when(start < 0, F.lit("")).otherwise(part)


def _concatenated(*args: Column) -> Column:
    from pyspark.sql import functions as F

    return F.concat(*args)


def _length(text: Column) -> Column:
    from pyspark.sql import functions as F

    return F.octet_length(text).cast("bigint")


def _same(a: Column) -> Column:
    return a


NATIVE: dict[tuple[str, Kind], Callable[..., Column]] = {
    ("+", FLOAT): _float(lambda a, b: a + b),
    ("-", FLOAT): _float(lambda a, b: a - b),
    ("*", FLOAT): _float(lambda a, b: a * b),
    ("/", FLOAT): _float_divided,
    ("neg", FLOAT): _float(lambda a: -a),
    ("bshr", NUMBER): _shifted("shiftright"),
    ("bshr", UNSIGNED): _shifted("shiftrightunsigned"),
    ("+", SYMBOL): _concatenated,
    ("cat", SYMBOL): _concatenated,
    ("strlen", SYMBOL): _length,
    ("substr", SYMBOL): _substring,
    ("to_string", SYMBOL): _same,
    ("ftoi", FLOAT): _truncated,
    ("to_number", FLOAT): _truncated,
    ("ftou", FLOAT): _truncated_unsigned,
    ("to_unsigned", FLOAT): _truncated_unsigned,
    ("to_float", FLOAT): _same,
    ("itof", NUMBER): lambda a: as_float(a, NUMBER),
    ("utof", UNSIGNED): lambda a: as_float(a, UNSIGNED),
    ("itou", NUMBER): _same,
    ("utoi", UNSIGNED): _same,
}
for _kind in (NUMBER, UNSIGNED):
    NATIVE |= {
        ("+", _kind): _plus,
        ("-", _kind): _minus,
        ("*", _kind): _times,
        ("neg", _kind): _negated,
        ("band", _kind): lambda a, b: a.bitwiseAND(b),
        ("bor", _kind): lambda a, b: a.bitwiseOR(b),
        ("bxor", _kind): lambda a, b: a.bitwiseXOR(b),
        ("bnot", _kind): lambda a: a.bitwiseXOR(-1),
        ("bshl", _kind): _shifted("shiftleft"),
        ("bshru", _kind): _shifted("shiftrightunsigned"),
        ("land", _kind): _truth(lambda a, b: a & b),
        ("lor", _kind): _truth(lambda a, b: a | b),
        ("lxor", _kind): _truth(lambda a, b: a != b),
        ("lnot", _kind): _truth(lambda a: ~a),
        ("ord", _kind): _same,
        ("to_number", _kind): _same,
        ("to_unsigned", _kind): _same,
        ("to_string", _kind): lambda a, kind=_kind: to_text(a, kind),
        ("to_float", _kind): lambda a, kind=_kind: as_float(a, kind),
    }
for _kind in Kind:
    NATIVE |= {("min", _kind): _extreme("<", _kind), ("max", _kind): _extreme(">", _kind)}


def wrap_sum(high: Column, low: Column) -> Column:
    """`high * 2**32 + low`, in 64 bits."""
    from pyspark.sql import functions as F

    return _plus(F.call_function("shiftleft", high, F.lit(32)), low)
