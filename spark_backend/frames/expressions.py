"""Terms and comparisons as Column expressions, with their in-process meaning.

What Spark can say exactly is an expression (`spark_backend.frames.functors`); the rest is computed
by our own functions in Python workers (`spark_backend.frames.workers`).

A term that fails has no value, and an error instead: `Attempt`.  An error is raised at the end of a
rule, for bindings that no condition excludes (`raising`).  Its message has a nondeterministic part,
so that the optimizer leaves it at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from everlog.core.program import Call, Constant, Functor, Kind, Program, Term, Variable
from everlog.core.program.values import encoded
from everlog.spark_backend.column_types import TYPES, stored
from everlog.spark_backend.frames.functors import (
    DIVISIONS,
    FLOAT,
    NATIVE,
    NUMBER,
    SYMBOL,
    UNSIGNED,
    compared,
    to_text,
)
from everlog.spark_backend.frames.marks import marked
from everlog.spark_backend.frames.workers import Compared, Named, Ranged, Users, Worked, worked

if TYPE_CHECKING:
    from pyspark.sql import Column


class NotOnSpark(ValueError):
    """A program uses a construct that has no meaning on Spark."""


# ── refused constructs ───────────────────────────────────────────────────────────────────────


def refuse(call: Call, program: Program, where: str) -> None:
    """Raise NotOnSpark for a functor that depends on one process."""
    if call.name == "autoinc":
        raise NotOnSpark(f"`autoinc()` cannot run on Spark: the workers have no common counter ({where})")
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


# ── terms ────────────────────────────────────────────────────────────────────────────────────


@frozen
class Attempt:
    """A call that may fail: a column with its value (or None) and its error (or None)."""

    pair: Column
    symbol: bool = False

    def value(self, name: str) -> Column:
        from pyspark.sql import functions as F

        found = F.col(f"{name}.value")
        return found.cast("string") if self.symbol else found


@frozen
class Expressions:
    """Translates the terms of one rule; `rule` is its number, for errors."""

    program: Program
    rule: int

    def term(self, term: Term, env: Mapping[Variable, Column]) -> Column:
        """A term that cannot fail, whose variables all have values."""
        match term:
            case Variable():
                return env[term]
            case Constant(value, kind):
                return literal(value, kind)
            case Call(args=args):
                return self.call(term, [self.term(arg, env) for arg in args])
        raise AssertionError("a wildcard has no value")

    def call(self, call: Call, args: list[Column]) -> Column:
        """A call that cannot fail, applied to values."""
        if call.name == "as" and call.operand == call.kind:
            return args[0]
        if call.name == "as" and {call.operand, call.kind} == {NUMBER, UNSIGNED}:
            return args[0]
        if call.name in ("/", "%") and call.operand is not FLOAT:
            return DIVISIONS[call.name, call.operand](*args)
        native = NATIVE.get((call.name, call.operand))
        if native is not None:
            return native(*args)
        named = Named(call.name, call.operand, call.kind)
        return worked(Worked(named, (call.operand,) * len(args), call.kind), args)

    def attempt(self, call: Call, args: list[Column]) -> Attempt:
        """A call that may fail, applied to values, some of which may be missing."""
        from pyspark.sql import functions as F

        if call.name in ("/", "%"):
            a, b = args
            exact = F.when(b != 0, DIVISIONS[call.name, call.operand](a, F.when(b != 0, b)))
            message = F.concat(F.lit("division by zero: "), to_text(a, call.operand), F.lit(f" {call.name} 0"))
            return Attempt(F.struct(exact.alias("value"), F.when(b == 0, message).alias("error")))
        if call.name.startswith("@"):
            functor = self.program.functors[call.name[1:]]
            made = Worked(Users(functor), functor.params, functor.result, fails=True)
        else:
            made = Worked(
                Named(call.name, call.operand, call.kind), (call.operand,) * len(args), call.kind, fails=True
            )
        return Attempt(worked(made, args), made.result is SYMBOL)

    def comparison(self, op: str, left: Column, right: Column, kind: Kind) -> Column:
        """The truth of `left op right`; null if a side has no value."""
        if op in ("match", "not_match"):
            return worked(Worked(Compared(op), (SYMBOL, SYMBOL), None), [left, right])
        return compared(op, left, right, kind)

    def ranged(self, args: Sequence[Column], kind: Kind) -> Column:
        """The values of a range of integers, as an array; null if an end has no value."""
        return worked(Worked(Ranged(), (kind,) * len(args), kind, many=True), args)

    def attempt_range(self, args: Sequence[Column], kind: Kind) -> Attempt:
        return Attempt(worked(Worked(Ranged(), (kind,) * len(args), kind, many=True, fails=True), args))

    def raising(self, error: str) -> Column:
        """True, or raises the error in the column of this name, marked with the rule."""
        from pyspark.sql import functions as F

        before, after = marked(self.rule, "\0").split("\0")
        last = F.substring(F.rand(0).cast("string"), 1, 0)  # empty, but nondeterministic: see above
        message = F.concat(F.lit(before), F.col(error), F.lit(after), last)
        return F.when(F.col(error).isNotNull(), F.raise_error(message).cast("boolean")).otherwise(F.lit(True))


def literal(value: Any, kind: Kind) -> Column:
    from pyspark.sql import functions as F

    if kind is SYMBOL:
        data = encoded(value)
        try:
            return F.lit(data.decode("utf-8"))
        except UnicodeDecodeError:
            return F.lit(bytearray(data)).cast("string")
    return F.lit(stored(value, kind)).cast(TYPES[kind])
