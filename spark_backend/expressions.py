"""Terms and comparisons as Column expressions that mean exactly what they mean in process.

What Spark can say exactly is an expression (`spark_backend.functors`); the rest is computed by our own functions
in Python workers (`spark_backend.workers`).

An expression that may fail ends in `raise_error` with a mark that names its rule.  Its error message has a
nondeterministic part: so the optimizer leaves the expression where the body has it, instead of trying it early on
rows that another literal would have removed.

Reads: core.program, spark_backend.columns, .functors, .marks, .workers.  Read by: spark_backend.bodies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from everlog.core.program import Call, Constant, Functor, Kind, Program, Term, Variable
from everlog.core.values import encoded
from everlog.spark_backend.columns import TYPES, stored
from everlog.spark_backend.functors import DIVISIONS, FLOAT, NATIVE, NUMBER, SYMBOL, UNSIGNED, compared, to_text
from everlog.spark_backend.marks import marked
from everlog.spark_backend.workers import Compared, Named, Ranged, Users, Worked, worked

if TYPE_CHECKING:
    from pyspark.sql import Column


class NotOnSpark(ValueError):
    """A program uses a construct that has no meaning on Spark; told before anything runs."""


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
            return worked(Worked(Users(functor), functor.params, functor.result, self.rule), args, fails=True)
        if call.name == "as" and call.operand == call.kind:
            return args[0]
        if call.name == "as" and {call.operand, call.kind} == {NUMBER, UNSIGNED}:
            return args[0]
        if call.name in ("/", "%") and call.operand is not FLOAT:
            return self._divided(call, *args)
        native = NATIVE.get((call.name, call.operand))
        if native is not None:
            return native(*args)
        named = Named(call.name, call.operand, call.kind)
        return worked(Worked(named, (call.operand,) * len(args), call.kind, self.rule), args, may_fail(call))

    def _divided(self, call: Call, a: Column, b: Column) -> Column:
        from pyspark.sql import functions as F

        exact = DIVISIONS[call.name, call.operand](a, b)
        if not may_fail(Call(call.name, (Constant(0, NUMBER), call.args[1]), call.operand, call.kind)):
            return exact
        shown = to_text(a, call.operand)
        before, after = marked(self.rule, f"division by zero: \0 {call.name} 0").split("\0")
        message = F.concat(
            F.lit(before),
            shown,
            F.lit(after),
            F.substring(F.rand(0).cast("string"), 1, 0),  # see above: keeps the expression in its place
        )
        return F.when(b == 0, F.raise_error(message).cast("bigint")).otherwise(exact)

    def comparison(self, op: str, left: Column, right: Column, kind: Kind) -> Column:
        """The truth of `left op right`."""
        if op in ("match", "not_match"):
            return worked(Worked(Compared(op), (SYMBOL, SYMBOL), None, self.rule), [left, right], fails=False)
        return compared(op, left, right, kind)

    def ranged(self, args: Sequence[Column], kind: Kind) -> Column:
        """The values of a range, as an array."""
        return worked(Worked(Ranged(), (kind,) * len(args), kind, self.rule, many=True), args, kind is FLOAT)


def literal(value: Any, kind: Kind) -> Column:
    from pyspark.sql import functions as F

    if kind is SYMBOL:
        data = encoded(value)
        try:
            return F.lit(data.decode("utf-8"))
        except UnicodeDecodeError:
            return F.lit(bytearray(data)).cast("string")
    return F.lit(stored(value, kind)).cast(TYPES[kind])
