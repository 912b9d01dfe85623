"""Aggregates as groupings: exact sums whatever the order, also of floats.

A sum of 64-bit numbers is the sum of their upper and of their lower halves, combined at the end:
neither overflows, in any mode of the session.

The sum of floats must not depend on the order of partitions.  A float is an integer of 53 bits
times a power of two, so the integers are summed by exponent, exactly, and a Python worker adds the
few sums of a group (one for each exponent) and rounds once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from attrs import frozen

from everlog.core.program import Aggregate, Kind, Term, Variable
from everlog.core.program.values import NAN
from everlog.spark_backend.column_types import TYPES
from everlog.spark_backend.frames.bindings import Bindings, Fresh
from everlog.spark_backend.frames.functors import as_float, order_key, wrap_sum
from everlog.spark_backend.frames.workers import Folds, Worked, worked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from everlog.core.program import Functor

TARGET = "target"
ERROR = "why"  # the column with the reason why a group has no value
_UNDEFINED, _UP, _DOWN = 10_000, 10_001, 10_002  # exponents that no float has


def totalled(literal: Aggregate, inside: Bindings, groups: Sequence[str], fresh: Fresh) -> tuple[DataFrame, str]:
    """The value of an aggregate for each group that has one, and its column's name.

    The column `TARGET` has the values to aggregate.
    """
    from pyspark.sql import functions as F

    value = next(fresh)
    frame, kind = inside.frame, literal.kind
    if literal.op == "count":
        return frame.groupBy(*groups).agg(F.count(F.lit(1)).cast(TYPES[kind]).alias(value)), value
    assert literal.target is not None
    target, of = next(fresh), kind_of(literal.target, inside.kinds, kind)
    frame = frame.select(*groups, F.col(TARGET).alias(target))
    given = F.col(target)
    match literal.op:
        case "min" | "max":
            return _extreme(literal.op, frame, groups, given, of, value), value
        case "sum" if kind is not Kind.FLOAT:
            high = F.coalesce(F.sum(F.call_function("shiftright", given, F.lit(32))), F.lit(0).cast("bigint"))
            low = F.coalesce(F.sum(given.bitwiseAND(F.lit(2**32 - 1))), F.lit(0).cast("bigint"))
            parts = frame.groupBy(*groups).agg(high.alias("high"), low.alias("low"))
            return parts.select(*groups, wrap_sum(F.col("high"), F.col("low")).alias(value)), value
    return _float_total(literal.op, frame.withColumn(target, as_float(given, of)), groups, target, value), value


def folded_groups(
    literal: Aggregate, functor: Functor, inside: Bindings, groups: Sequence[str], fresh: Fresh
) -> tuple[DataFrame, str, DataFrame]:
    """The same for a function of the user, and the errors of the groups for which it has no value.

    The targets of a group come together in a worker, which sorts them: so they are in one order.
    """
    from pyspark.sql import functions as F

    assert literal.target is not None
    assert literal.start is not None
    value, pair, kind = next(fresh), next(fresh), kind_of(literal.target, inside.kinds, functor.params[1])
    folds = Folds(functor, literal.start.value)
    made = Worked(folds, (kind,), literal.kind, fails=True, lists=True)
    lists = inside.frame.groupBy(*groups).agg(F.collect_list(F.col(TARGET)).alias(TARGET))
    found = lists.select(*groups, worked(made, [F.col(TARGET)]).alias(pair))
    found = found.select(*groups, F.col(f"{pair}.value").cast(TYPES[literal.kind]).alias(value), f"{pair}.error")
    errors = found.where(F.col("error").isNotNull()).select(*groups, F.col("error").alias(ERROR))
    return found.where(F.col("error").isNull()).select(*groups, value), value, errors


def kind_of(term: Term, kinds: Mapping[Variable, Kind], otherwise: Kind) -> Kind:
    if isinstance(term, Variable):
        return kinds.get(term, otherwise)
    return getattr(term, "kind", otherwise)


def _extreme(op: str, frame: DataFrame, groups: Sequence[str], given: Column, kind: Kind, value: str) -> DataFrame:
    """The minimum or maximum; an empty group (without `groups`) has none."""
    from pyspark.sql import functions as F

    if kind in (Kind.UNSIGNED, Kind.SYMBOL):
        chosen = (F.min_by if op == "min" else F.max_by)(given, order_key(given, kind))
    else:
        chosen = (F.min if op == "min" else F.max)(given)  # NaN is the greatest, as in process
    found = frame.groupBy(*groups).agg(chosen.alias(value))
    return found.where(F.col(value).isNotNull())


# ── floats ───────────────────────────────────────────────────────────────────────────────────


def _float_total(op: str, frame: DataFrame, groups: Sequence[str], target: str, value: str) -> DataFrame:
    from pyspark.sql import functions as F

    split = F.udf(_Split(), "struct<exponent:int,integer:bigint>", useArrow=True)(F.col(target))
    parts = frame.select(*groups, split.alias("parts")).select(*groups, "parts.exponent", "parts.integer")
    sums = parts.groupBy(*groups, "exponent").agg(
        F.sum(F.call_function("shiftright", F.col("integer"), F.lit(26))).alias("high"),
        F.sum(F.col("integer").bitwiseAND(F.lit(2**26 - 1))).alias("low"),
        F.count(F.lit(1)).alias("size"),
    )
    lists = sums.groupBy(*groups).agg(
        *(F.collect_list(name).alias(name) for name in ("exponent", "high", "low")), F.sum("size").alias("size")
    )
    rounded = F.udf(_Rounded(), "double", useArrow=True)(F.col("exponent"), F.col("high"), F.col("low"))
    found = lists.select(*groups, rounded.alias(value), "size")
    if op == "mean":
        found = found.where(F.coalesce(F.col("size"), F.lit(0)) > 0)
        return found.select(*groups, (F.col(value) / F.col("size") + 0.0).alias(value))
    return found.select(*groups, value)


@frozen
class _Split:
    def __call__(self, number: float) -> Any:
        return split_float(number)


@frozen
class _Rounded:
    def __call__(self, exponents: Any, highs: Any, lows: Any) -> float:
        return rounded_sum(list(exponents), list(highs), list(lows))


def split_float(number: float) -> tuple[int, int]:
    """The exponent and the integer of a float, whose value is 2**exponent · integer.

    >>> split_float(0.75) == (-53, 3 * 2**51), split_float(math.inf)
    (True, (10001, 1))
    """
    if number != number:
        return _UNDEFINED, 1
    if math.isinf(number):
        return (_UP if number > 0 else _DOWN), 1
    mantissa, exponent = math.frexp(number)
    return exponent - 53, int(mantissa * 2.0**53)


def rounded_sum(exponents: Sequence[int], highs: Sequence[int], lows: Sequence[int]) -> float:
    """The float nearest to the sum of (high · 2**26 + low) · 2**exponent.

    >>> rounded_sum([-53, -53], [0, 0], [1, 2**25]) == (2**25 + 1) / 2**53
    True
    """
    if _UNDEFINED in exponents or (_UP in exponents and _DOWN in exponents):
        return NAN
    if _UP in exponents or _DOWN in exponents:
        return math.inf if _UP in exponents else -math.inf
    total = Fraction(0)
    for exponent, high, low in zip(exponents, highs, lows, strict=True):
        total += ((int(high) << 26) + int(low)) * Fraction(2) ** int(exponent)
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf
