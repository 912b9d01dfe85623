"""Our own functions in Spark's Python workers, where Spark is not exact.

The functions of `core.program.functors` compute regular expressions, `^`, parsing, floats as text,
and users' functions.  A missing argument gives no value; a function that may fail returns a pair of
a value and an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from everlog.core.program import Functor, Kind, Value
from everlog.core.program.aggregates.folded import folded
from everlog.core.program.functors import BUILTINS, COMPARISONS, as_kind, call_functor, one_nan, range_values
from everlog.core.program.values import MASK, NAN, NoValue, decoded
from everlog.spark_backend.column_types import TYPES, stored

if TYPE_CHECKING:
    from pyspark.sql import Column


@frozen
class Worked:
    """A function as a worker calls it, with bytes and signed bits."""

    function: Callable[..., Any]
    params: tuple[Kind, ...]
    result: Kind | None  # None: a truth value
    many: bool = False  # the result is a list of such values
    fails: bool = False  # the result is a pair: the value, or the error
    lists: bool = False  # the arguments are lists of such values

    def __call__(self, *args: Any) -> Any:
        if not self.fails:
            return None if None in args else self._value(args)
        try:
            return (None if None in args else self._value(args)), None
        except NoValue as error:
            return None, error.message

    def _value(self, args: Sequence[Any]) -> Any:
        given = [self._given(value, kind) for value, kind in zip(args, self.params, strict=True)]
        found = self.function(*given)
        if self.many:
            return [_sent(value, self.result) for value in found]
        return found if self.result is None else _sent(one_nan(found), self.result)

    def _given(self, value: Any, kind: Kind) -> Any:
        return [_received(one, kind) for one in value] if self.lists else _received(value, kind)


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
    """A built-in functor, looked up by name in the worker: nothing is pickled."""

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
class Folds:
    functor: Functor
    start: Value

    def __call__(self, targets: Sequence[Value]) -> Value:
        return folded(self.functor, self.start, targets)


@frozen
class Ranged:
    def __call__(self, start: Any, stop: Any, step: Any = None) -> Any:
        return range_values(start, stop, step)


def worked(worked: Worked, args: Sequence[Column]) -> Column:
    """The function, applied by Python workers."""
    from pyspark.sql import functions as F

    kind = worked.result
    held = "boolean" if kind is None else "binary" if kind is Kind.SYMBOL else TYPES[kind]
    held = f"array<{held}>" if worked.many else held
    function = F.udf(worked, f"struct<value:{held},error:string>" if worked.fails else held, useArrow=True)
    if worked.fails:
        function = function.asNondeterministic()  # Spark calls it once per row, not once per use
    binary = "array<binary>" if worked.lists else "binary"
    sent = [a.cast(binary) if k is Kind.SYMBOL else a for a, k in zip(args, worked.params, strict=True)]
    column = function(*sent)
    return column.cast("string") if kind is Kind.SYMBOL and not worked.many and not worked.fails else column
