"""Terms and comparisons as Column expressions that mean exactly what they mean in process.

Spark's arithmetic depends on the session (ANSI mode raises on overflow, the other wraps or gives null), so
nothing here relies on it: a sum is `try_add`, and only where that has no answer the slow exact way.  Division is
guarded by its own test; unsigned order flips the sign bit; a symbol is ordered by bytes, with the bytes that are
no UTF-8 moved to where Python's order of strings has them.

What Spark cannot say exactly (regular expressions, `^`, parsing, a float as text, users' functions) is computed by
the very functions of `core.functors`, in Python workers, by Arrow.

An expression that may fail ends in `raise_error` with a mark that names its rule.  Its error message has a
nondeterministic part: so the optimizer leaves the expression where the body has it, instead of trying it early on
rows that another literal would have removed.

Reads: core.functors, core.program, spark_backend.columns.  Read by: spark_backend.bodies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from attrs import frozen

from everlog.core.functors import BUILTINS, COMPARISONS, as_kind, call_functor, one_nan, range_values
from everlog.core.program import Call, Constant, Functor, Kind, Program, Term, Variable
from everlog.core.values import MASK, NAN, EvaluationError, decoded, encoded, wrap
from everlog.spark_backend.columns import TYPES, stored

if TYPE_CHECKING:
    from pyspark.sql import Column

NUMBER, UNSIGNED, FLOAT, SYMBOL = Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL
LEAST = -(2**63)
_MARK = re.compile(r"⟦everlog (\d+)⟧(.*?)⟦end⟧", re.DOTALL)


class NotOnSpark(ValueError):
    """A program uses a construct that has no meaning on Spark; told before anything runs."""


# ── errors on their way through the JVM ──────────────────────────────────────────────────────


def marked(rule: int, message: str) -> str:
    return f"⟦everlog {rule}⟧{message}⟦end⟧"


def evaluation_error(program: Program, error: BaseException) -> EvaluationError | None:
    """The error of ours that an exception of Spark carries, if any."""
    found = _MARK.search(str(error))
    if found is None:
        return None
    number = int(found[1])
    message = found[2]
    if number >= len(program.rules):
        return EvaluationError(message)
    rule = program.rules[number]
    return EvaluationError(message, rule.written, str(rule.origin))


# ── in Python workers ────────────────────────────────────────────────────────────────────────


@frozen
class Worked:
    """One of our functions as a worker calls it: bytes and signed bits come in and go out."""

    function: Callable[..., Any]
    params: tuple[Kind, ...]
    result: Kind | None  # None: a truth value
    rule: int
    many: bool = False  # the result is a list of such values

    def __call__(self, *args: Any) -> Any:
        given = [_received(value, kind) for value, kind in zip(args, self.params, strict=True)]
        try:
            found = self.function(*given)
            if self.many:
                return [_sent(value, self.result) for value in found]
        except EvaluationError as error:
            raise RuntimeError(marked(self.rule, error.message)) from None
        return found if self.result is None else _sent(one_nan(found), self.result)


def _received(value: Any, kind: Kind) -> Any:
    match kind:
        case Kind.SYMBOL:
            return decoded(bytes(value))
        case Kind.UNSIGNED:
            return value & MASK
        case Kind.FLOAT:
            return value if value == value else NAN
    return value


def _sent(value: Any, kind: Kind | None) -> Any:
    assert kind is not None
    if kind is FLOAT:
        return float(value)
    return stored(value, kind)


@frozen
class _Named:
    """A built-in functor, found by its name where it runs: nothing of it is pickled."""

    name: str
    operand: Kind
    result: Kind

    def __call__(self, *args: Any) -> Any:
        if self.name == "as":
            return as_kind(args[0], self.operand, self.result)
        return BUILTINS[self.name, self.operand].function(*args)


@frozen
class _Compared:
    op: str

    def __call__(self, *args: Any) -> bool:
        return bool(COMPARISONS[self.op](*args))


@frozen
class _Users:
    functor: Functor

    def __call__(self, *args: Any) -> Any:
        return call_functor(self.functor, args)


@frozen
class _Ranged:
    def __call__(self, start: Any, stop: Any, step: Any = None) -> Any:
        return range_values(start, stop, step)


def worked(worked: Worked, args: Sequence[Column], fails: bool) -> Column:
    """The function applied by Python workers."""
    from pyspark.sql import functions as F

    kind = worked.result
    held = "boolean" if kind is None else "binary" if kind is SYMBOL else TYPES[kind]
    function = F.udf(worked, f"array<{held}>" if worked.many else held, useArrow=True)
    if fails:
        function = function.asNondeterministic()
    sent = [a.cast("binary") if k is SYMBOL else a for a, k in zip(args, worked.params, strict=True)]
    column = function(*sent)
    return column.cast("string") if kind is SYMBOL and not worked.many else column


# ── what is refused ──────────────────────────────────────────────────────────────────────────


def refuse(call: Call, program: Program, where: str) -> None:
    """Raise NotOnSpark for a functor that depends on one process."""
    if call.name == "autoinc":
        raise NotOnSpark(f"`autoinc()` cannot run on Spark: there is no one counter for all workers ({where})")
    symbols = SYMBOL in (call.operand, call.kind) and call.operand != call.kind
    if (call.name == "ord" and call.operand is SYMBOL) or (call.name == "as" and symbols):
        raise NotOnSpark(
            f"`{call.name}` of a symbol cannot run on Spark: ordinals belong to one process ({where})"
        )
    if call.name.startswith("@"):
        functor = program.functors[call.name[1:]]
        if functor.function is None:
            raise NotOnSpark(f"functor {call.name} is declared but not bound to a Python function ({where})")
        _refuse_unpicklable(functor, where)


def _refuse_unpicklable(functor: Functor, where: str) -> None:
    from pyspark import cloudpickle

    try:
        cloudpickle.dumps(functor.function)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise NotOnSpark(
            f"functor @{functor.name} cannot be sent to Spark's workers: {error} ({where})"
        ) from error


def may_fail(term: Term) -> bool:
    """Whether a term computes something that is not defined for all values."""
    if not isinstance(term, Call):
        return False
    if any(map(may_fail, term.args)) or term.name.startswith("@"):
        return True
    if term.name in ("/", "%"):
        divisor = term.args[1]
        return term.operand is not FLOAT and not (isinstance(divisor, Constant) and divisor.value != 0)
    return term.operand is SYMBOL and term.name.startswith("to_") and term.kind is not SYMBOL


# ── terms ────────────────────────────────────────────────────────────────────────────────────


@frozen
class Expressions:
    """Writes the terms of one rule; `rule` is its number in the program, for errors."""

    program: Program
    rule: int

    def term(self, term: Term, env: Mapping[Variable, Column]) -> Column:
        match term:
            case Variable():
                return env[term]
            case Constant(value, kind):
                return literal(value, kind)
            case Call(args=args):
                return self._call(term, [self.term(arg, env) for arg in args])
        raise AssertionError("a wildcard has no value")

    def _call(self, call: Call, args: list[Column]) -> Column:
        if call.name.startswith("@"):
            functor = self.program.functors[call.name[1:]]
            return worked(Worked(_Users(functor), functor.params, functor.result, self.rule), args, fails=True)
        if call.name == "as" and call.operand == call.kind:
            return args[0]
        if call.name == "as" and {call.operand, call.kind} == {NUMBER, UNSIGNED}:
            return args[0]
        if call.name in ("/", "%") and call.operand is not FLOAT:
            return self._divided(call, *args)
        native = NATIVE.get((call.name, call.operand))
        if native is not None:
            return native(*args)
        named = _Named(call.name, call.operand, call.kind)
        return worked(Worked(named, (call.operand,) * len(args), call.kind, self.rule), args, may_fail(call))

    def _divided(self, call: Call, a: Column, b: Column) -> Column:
        from pyspark.sql import functions as F

        exact = _DIVISIONS[call.name, call.operand](a, b)
        if not may_fail(Call(call.name, (Constant(0, NUMBER), call.args[1]), call.operand, call.kind)):
            return exact
        shown = to_text(a, call.operand)
        message = F.concat(
            F.lit(f"⟦everlog {self.rule}⟧division by zero: "),
            shown,
            F.lit(f" {call.name} 0⟦end⟧"),
            F.substring(F.rand(0).cast("string"), 1, 0),  # see above: keeps the expression in its place
        )
        return F.when(b == 0, F.raise_error(message).cast("bigint")).otherwise(exact)

    def comparison(self, op: str, left: Column, right: Column, kind: Kind) -> Column:
        """The truth of `left op right`."""
        if op in ("match", "not_match"):
            return worked(Worked(_Compared(op), (SYMBOL, SYMBOL), None, self.rule), [left, right], fails=False)
        return compared(op, left, right, kind)

    def ranged(self, args: Sequence[Column], kind: Kind) -> Column:
        """The values of a range, as an array."""
        return worked(Worked(_Ranged(), (kind,) * len(args), kind, self.rule, many=True), args, kind is FLOAT)


def literal(value: Any, kind: Kind) -> Column:
    from pyspark.sql import functions as F

    if kind is SYMBOL:
        data = encoded(value)
        try:
            return F.lit(data.decode("utf-8"))
        except UnicodeDecodeError:
            return F.lit(bytearray(data)).cast("string")
    return F.lit(stored(value, kind)).cast(TYPES[kind])


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
    """What to compare values of a kind by (NaN apart)."""
    from pyspark.sql import functions as F

    if kind is UNSIGNED:
        return column.bitwiseXOR(F.lit(LEAST).cast("bigint"))
    if kind is SYMBOL:
        return F.when(F.is_valid_utf8(column), F.hex(column)).otherwise(_escaped(column))
    return column


# One character of UTF-8 in hexadecimal digits; whatever is none of these is a byte that is no UTF-8.
_CHARACTER = (
    "[0-7].|C[2-9A-F][89AB].|D.[89AB].|E0[AB].[89AB].|E[1-9ABCEF][89AB].[89AB].|ED[89].[89AB].|"
    "F0[9AB].[89AB].[89AB].|F[1-3][89AB].[89AB].[89AB].|F48.[89AB].[89AB]."
)


def _escaped(column: Column) -> Column:
    """The symbol in hexadecimal, a byte that is no UTF-8 as the surrogate that Python has for it."""
    from pyspark.sql import functions as F

    text = F.regexp_replace(F.hex(column), f"\\G((?:{_CHARACTER})*+)([89A-F].)", "$1!$2")
    text = F.regexp_replace(text, "!([89AB])", "EDB2$1")
    for lead, place in zip("CDEF", "89AB", strict=True):
        text = F.regexp_replace(text, f"!{lead}", f"EDB3{place}")
    return text


# ── functors that Spark can say exactly ──────────────────────────────────────────────────────


def _wrapped(decimal: Column) -> Column:
    """A decimal without fraction as the 64 bits that it ends in."""
    from pyspark.sql import functions as F

    low = F.pmod(decimal, F.lit(str(2**64)).cast("decimal(20,0)"))
    high = low >= F.lit(str(2**63)).cast("decimal(20,0)")
    return F.when(high, low - F.lit(str(2**64)).cast("decimal(20,0)")).otherwise(low).cast("bigint")


def _exactly(attempt: str, operator: Callable[[Column, Column], Column]) -> Callable[..., Column]:
    """64-bit arithmetic: at first as Spark tries it; where that overflows, by decimals, and wrapped."""

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
    """The value of unsigned bits, as a decimal."""
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

_DIVISIONS: Mapping[tuple[str, Kind], Callable[..., Column]] = {
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

    fits = (a >= float(LEAST)) & (a < 2.0**63)  # NaN is more than all in Spark
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


__all__ = ["Expressions", "NotOnSpark", "compared", "evaluation_error", "literal", "may_fail", "order_key", "wrap"]
