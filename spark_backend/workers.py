"""Our own functions in Spark's Python workers, by Arrow: what Spark cannot say exactly.

Regular expressions, `^`, parsing, a float as text and users' functions are computed by the very functions of
`core.functors`.  An error that one of them meets travels through Java under the mark of its rule.

Reads: core.functors, core.program, spark_backend.columns, .marks.  Read by: spark_backend.expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from everlog.core.functors import BUILTINS, COMPARISONS, as_kind, call_functor, one_nan, range_values
from everlog.core.program import Functor, Kind
from everlog.core.values import MASK, NAN, EvaluationError, decoded
from everlog.spark_backend.columns import TYPES, stored
from everlog.spark_backend.marks import marked

if TYPE_CHECKING:
    from pyspark.sql import Column


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
    if kind is Kind.FLOAT:
        return float(value)
    return stored(value, kind)


@frozen
class Named:
    """A built-in functor, found by its name where it runs: nothing of it is pickled."""

    name: str
    operand: Kind
    result: Kind

    def __call__(self, *args: Any) -> Any:
        if self.name == "as":
            return as_kind(args[0], self.operand, self.result)
        return BUILTINS[self.name, self.operand].function(*args)


@frozen
class Compared:
    op: str

    def __call__(self, *args: Any) -> bool:
        return bool(COMPARISONS[self.op](*args))


@frozen
class Users:
    functor: Functor

    def __call__(self, *args: Any) -> Any:
        return call_functor(self.functor, args)


@frozen
class Ranged:
    def __call__(self, start: Any, stop: Any, step: Any = None) -> Any:
        return range_values(start, stop, step)


def worked(worked: Worked, args: Sequence[Column], fails: bool) -> Column:
    """The function applied by Python workers."""
    from pyspark.sql import functions as F

    kind = worked.result
    held = "boolean" if kind is None else "binary" if kind is Kind.SYMBOL else TYPES[kind]
    function = F.udf(worked, f"array<{held}>" if worked.many else held, useArrow=True)
    if fails:
        function = function.asNondeterministic()
    sent = [a.cast("binary") if k is Kind.SYMBOL else a for a, k in zip(args, worked.params, strict=True)]
    column = function(*sent)
    return column.cast("string") if kind is Kind.SYMBOL and not worked.many else column
