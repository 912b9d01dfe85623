"""The built-in functors: one table entry per name and operand kind.

An entry has the function that computes the functor and, for speed, the Python expression that
generated code uses instead of a call.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from attrs import frozen

from everlog.core.program import Functor, Kind, Row, Value
from everlog.core.program import values as v

NUMBER, UNSIGNED, FLOAT, SYMBOL = Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL


@frozen
class Builtin:
    """How a functor computes.

    `inline` is a format string over the operands.  With `checked`, the result may leave 64 bits,
    and generated code wraps it.
    """

    function: Callable[..., Any]
    result: Kind
    inline: str = ""
    checked: bool = False


def _signed(name: str, exact: Callable[[int, int], int]) -> Builtin:
    return Builtin(lambda a, b: v.wrap(exact(a, b)), NUMBER, f"({{0}} {name} {{1}})", checked=True)


def _masked(name: str, exact: Callable[[int, int], int]) -> Builtin:
    return Builtin(lambda a, b: exact(a, b) & v.MASK, UNSIGNED, f"(({{0}} {name} {{1}}) & 0xFFFFFFFFFFFFFFFF)")


def _nan(function: Callable[..., float]) -> Callable[..., float]:
    def canonical(*args: float) -> float:
        result = function(*args)
        return result + 0.0 if result == result else v.NAN  # never -0.0

    return canonical


def _text(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.6f}" if value == value else "-nan"
    return str(value)


BUILTINS: dict[tuple[str, Kind], Builtin] = {
    ("+", NUMBER): _signed("+", lambda a, b: a + b),
    ("-", NUMBER): _signed("-", lambda a, b: a - b),
    ("*", NUMBER): _signed("*", lambda a, b: a * b),
    ("/", NUMBER): Builtin(v.divide, NUMBER),
    ("%", NUMBER): Builtin(v.modulo, NUMBER),
    ("^", NUMBER): Builtin(v.power, NUMBER),
    ("neg", NUMBER): Builtin(lambda a: v.wrap(-a), NUMBER, "(-{0})", checked=True),
    ("+", UNSIGNED): _masked("+", lambda a, b: a + b),
    ("-", UNSIGNED): _masked("-", lambda a, b: a - b),
    ("*", UNSIGNED): _masked("*", lambda a, b: a * b),
    ("/", UNSIGNED): Builtin(v.unsigned_divide, UNSIGNED),
    ("%", UNSIGNED): Builtin(v.modulo, UNSIGNED),
    ("^", UNSIGNED): Builtin(v.unsigned_power, UNSIGNED),
    ("neg", UNSIGNED): Builtin(lambda a: -a & v.MASK, UNSIGNED, "(-{0} & 0xFFFFFFFFFFFFFFFF)"),
    ("+", FLOAT): Builtin(_nan(lambda a, b: a + b), FLOAT),
    ("-", FLOAT): Builtin(_nan(lambda a, b: a - b), FLOAT),
    ("*", FLOAT): Builtin(_nan(lambda a, b: a * b), FLOAT),
    ("/", FLOAT): Builtin(v.float_divide, FLOAT),
    ("^", FLOAT): Builtin(v.float_power, FLOAT),
    ("neg", FLOAT): Builtin(_nan(lambda a: -a), FLOAT),
    ("band", NUMBER): Builtin(lambda a, b: a & b, NUMBER, "({0} & {1})"),
    ("bor", NUMBER): Builtin(lambda a, b: a | b, NUMBER, "({0} | {1})"),
    ("bxor", NUMBER): Builtin(lambda a, b: a ^ b, NUMBER, "({0} ^ {1})"),
    ("bnot", NUMBER): Builtin(lambda a: ~a, NUMBER, "(~{0})"),
    ("bshl", NUMBER): Builtin(v.shift_left, NUMBER),
    ("bshr", NUMBER): Builtin(lambda a, b: a >> (b & 63), NUMBER, "({0} >> ({1} & 63))"),
    ("bshru", NUMBER): Builtin(v.shift_right_unsigned, NUMBER),
    ("band", UNSIGNED): Builtin(lambda a, b: a & b, UNSIGNED, "({0} & {1})"),
    ("bor", UNSIGNED): Builtin(lambda a, b: a | b, UNSIGNED, "({0} | {1})"),
    ("bxor", UNSIGNED): Builtin(lambda a, b: a ^ b, UNSIGNED, "({0} ^ {1})"),
    ("bnot", UNSIGNED): Builtin(lambda a: ~a & v.MASK, UNSIGNED, "(~{0} & 0xFFFFFFFFFFFFFFFF)"),
    ("bshl", UNSIGNED): Builtin(lambda a, b: (a << (b & 63)) & v.MASK, UNSIGNED),
    ("bshr", UNSIGNED): Builtin(lambda a, b: a >> (b & 63), UNSIGNED, "({0} >> ({1} & 63))"),
    ("bshru", UNSIGNED): Builtin(lambda a, b: a >> (b & 63), UNSIGNED, "({0} >> ({1} & 63))"),
    ("+", SYMBOL): Builtin(v.concatenated, SYMBOL),
    ("cat", SYMBOL): Builtin(v.concatenated, SYMBOL),
    ("strlen", SYMBOL): Builtin(v.byte_length, NUMBER),
    ("substr", SYMBOL): Builtin(v.substring, SYMBOL),
    ("ord", SYMBOL): Builtin(v.ordinal, NUMBER),
    ("ord", NUMBER): Builtin(lambda a: a, NUMBER, "{0}"),
    ("ord", UNSIGNED): Builtin(v.wrap, NUMBER),
    ("ord", FLOAT): Builtin(lambda a: as_kind(a, FLOAT, NUMBER), NUMBER),
    ("to_number", SYMBOL): Builtin(v.parsed_number, NUMBER),
    ("to_number", NUMBER): Builtin(lambda a: a, NUMBER, "{0}"),
    ("to_number", UNSIGNED): Builtin(v.wrap, NUMBER),
    ("to_number", FLOAT): Builtin(v.truncated, NUMBER),
    ("to_unsigned", SYMBOL): Builtin(v.parsed_unsigned, UNSIGNED),
    ("to_unsigned", NUMBER): Builtin(lambda a: a & v.MASK, UNSIGNED, "({0} & 0xFFFFFFFFFFFFFFFF)"),
    ("to_unsigned", UNSIGNED): Builtin(lambda a: a, UNSIGNED, "{0}"),
    ("to_unsigned", FLOAT): Builtin(v.truncated_unsigned, UNSIGNED),
    ("to_float", SYMBOL): Builtin(v.parsed_float, FLOAT),
    ("to_float", NUMBER): Builtin(float, FLOAT),
    ("to_float", UNSIGNED): Builtin(float, FLOAT),
    ("to_float", FLOAT): Builtin(lambda a: a, FLOAT, "{0}"),
    ("itof", NUMBER): Builtin(float, FLOAT),
    ("itou", NUMBER): Builtin(lambda a: a & v.MASK, UNSIGNED, "({0} & 0xFFFFFFFFFFFFFFFF)"),
    ("utoi", UNSIGNED): Builtin(v.wrap, NUMBER),
    ("utof", UNSIGNED): Builtin(float, FLOAT),
    ("ftoi", FLOAT): Builtin(v.truncated, NUMBER),
    ("ftou", FLOAT): Builtin(v.truncated_unsigned, UNSIGNED),
}

for _kind in (NUMBER, UNSIGNED):
    BUILTINS |= {
        ("land", _kind): Builtin(lambda a, b: int(bool(a and b)), _kind, "(1 if {0} and {1} else 0)"),
        ("lor", _kind): Builtin(lambda a, b: int(bool(a or b)), _kind, "(1 if {0} or {1} else 0)"),
        ("lxor", _kind): Builtin(lambda a, b: int(bool(a) != bool(b)), _kind),
        ("lnot", _kind): Builtin(lambda a: int(not a), _kind, "(0 if {0} else 1)"),
    }
for _kind in Kind:
    BUILTINS |= {
        ("min", _kind): Builtin(lambda *args: min(args), _kind),
        ("max", _kind): Builtin(lambda *args: max(args), _kind),
        ("to_string", _kind): Builtin(_text, SYMBOL),
    }

# The meaning of `a op b` for each comparison; the negated string tests come from `!match(…)`.
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b or (a != a and b != b),
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "match": v.matches,
    "contains": v.contains,
    "not_match": v.differs,
    "not_contains": lambda part, whole: not v.contains(part, whole),
}

NEGATED = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "match": "not_match",
    "contains": "not_contains",
    "not_match": "match",
    "not_contains": "contains",
}


def range_values(start: Value, stop: Value, step: Value | None) -> Iterable[Value]:
    """The values of `range(start, stop, step)`; a step of zero gives the start alone.

    A step that is too small fails before the first value.

    >>> [list(range_values(*args)) for args in ((1, 4, None), (10, 7, None), (0, 10, 4))]
    [[1, 2, 3], [10, 9, 8], [0, 4, 8]]
    """
    a, b = _numeric(start), _numeric(stop)
    s = _numeric(step) if step is not None else (1 if a <= b else -1)
    if s == 0:
        return [a] if a != b else []
    if isinstance(a, int) and isinstance(b, int) and isinstance(s, int):
        return range(a, b, s)
    if not ((s > 0 and a < b) or (s < 0 and a > b)):
        return []
    widest = max(abs(a), abs(b))
    if abs(s) <= math.ulp(widest) / 2:  # from some value on, adding the step changes nothing
        raise v.NoValue(f"range: the step {s} is too small for values as large as {widest}")
    return _float_range(a, b, s)


def _float_range(a: float, b: float, s: float) -> Iterator[Value]:
    while (s > 0 and a < b) or (s < 0 and a > b):
        yield a
        a += s


def _numeric(value: Value) -> int | float:
    assert not isinstance(value, str)
    return value


def as_kind(value: Value, source: Kind, target: Kind) -> Value:
    """`as(value, type)`: the same 64 bits as another kind; a symbol's are its ordinal.

    >>> as_kind(-1, Kind.NUMBER, Kind.UNSIGNED), as_kind(1.0, Kind.FLOAT, Kind.NUMBER)
    (18446744073709551615, 4607182418800017408)
    """
    if source == target:
        return value
    if source is SYMBOL:
        bits = v.ordinal(str(value))
    elif source is FLOAT:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    else:
        bits = int(value) & v.MASK
    if target is NUMBER:
        return v.wrap(bits)
    if target is UNSIGNED:
        return bits
    if target is FLOAT:
        result: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
        return result if result == result else v.NAN
    return v.symbol_of_ordinal(bits)


# ── users' functions ─────────────────────────────────────────────────────────────────────────


def call_functor(functor: Functor, args: Row) -> Value:
    """Apply a user's function; an error names the call."""
    if functor.function is None:
        raise v.NoValue(f"functor @{functor.name} is declared but not bound to a Python function")
    call = f"@{functor.name}({', '.join(map(repr, args))})"
    try:
        result = functor.function(*args)
    except v.EvaluationError:  # a limit was exceeded while it ran
        raise
    except Exception as error:
        raise v.NoValue(f"{call} raised {type(error).__name__}: {error}") from error
    match functor.result, result:
        case Kind.NUMBER, int():
            return v.wrap(result)
        case Kind.UNSIGNED, int():
            return result & v.MASK
        case (Kind.FLOAT, int()) if abs(result) < 2**1023:
            return float(result)
        case (Kind.FLOAT, float()):
            return one_nan(result)
        case (Kind.SYMBOL, str()) if result.isascii():
            return str.__str__(result)  # of a subclass of str, the text alone
        case (Kind.SYMBOL, str()):
            with suppress(UnicodeEncodeError):  # half a surrogate pair is no text
                return v.decoded(v.encoded(result))
    raise v.NoValue(f"{call} returned {v.shown(result)}, which is no {functor.result}")


def one_nan(value: Value) -> Value:
    """NaN as the one object that sets of rows find again."""
    return value if value == value else v.NAN
