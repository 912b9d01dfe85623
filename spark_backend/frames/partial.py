"""Conditions that may fail, on Spark.

core.program.bodies defines failure: a binding fails if no condition excludes it and one cannot be
computed.  Here a value that cannot be computed is null, and the column `error` of the bindings says
why.  Spark's three-valued logic does the rest: a condition over null is neither true nor false, so
it excludes nothing.  The error is raised after all literals (`Expressions.raising`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from attrs import evolve

from everlog.core.program import Call, Comparison, Literal, Negation, Term, Variable
from everlog.core.program.bodies import may_fail, names
from everlog.spark_backend.column_types import TYPES
from everlog.spark_backend.frames.bindings import Bindings, Fresh, only
from everlog.spark_backend.frames.expressions import Attempt, Expressions

if TYPE_CHECKING:
    from pyspark.sql import Column


class Attempts:
    """Computes terms of bindings; a failed one sets the error of its binding."""

    def __init__(self, expressions: Expressions, fresh: Fresh) -> None:
        self._expressions, self._fresh = expressions, fresh

    def value(self, term: Term, found: Bindings) -> tuple[Bindings, Column]:
        """The value of a term, or null, and the bindings with its errors."""
        if not isinstance(term, Call) or not (may_fail(term) or is_open([term], found)):
            return found, self._expressions.term(term, found.env())
        args: list[Column] = []
        for arg in term.args:
            found, column = self.value(arg, found)
            args.append(column)
        if may_fail(Call(term.name, tuple(map(_plain, term.args)), term.operand, term.kind)):
            return self.attempted(self._expressions.attempt(term, args), found)
        return found, all_there(args, self._expressions.call(term, args))

    def attempted(self, attempt: Attempt, found: Bindings) -> tuple[Bindings, Column]:
        """The value of an attempt, and the bindings with its error."""
        from pyspark.sql import functions as F

        name = next(self._fresh)
        frame = found.frame.withColumn(name, attempt.pair)
        return self.erring(evolve(found, frame=frame), F.col(f"{name}.error")), attempt.value(name)

    def erring(self, found: Bindings, error: Column) -> Bindings:
        """The bindings with another error, where they have none."""
        from pyspark.sql import functions as F

        name = next(self._fresh)
        first = error if found.error is None else F.coalesce(F.col(found.error), error)
        return evolve(found, frame=found.frame.withColumn(name, first), error=name)

    def compared(self, literal: Comparison, found: Bindings) -> Bindings:
        """The bindings that a comparison does not exclude; it may bind a variable."""
        from pyspark.sql import functions as F

        variable, term = bound_side(literal, found)
        if variable is None:
            found, left = self.value(literal.left, found)
            found, right = self.value(literal.right, found)
            held = self._expressions.comparison(literal.op, left, right, literal.kind)
            return kept(found, all_there([left, right], held))
        found, column = self.value(term, found)
        name = next(self._fresh)
        column = column.cast(TYPES[literal.kind])
        if variable in found.names:  # it may have no value yet: then this one counts
            there = F.col(found.names[variable])
            found = evolve(found, frame=found.frame.where(F.coalesce(there == column, F.lit(True))))
            column = F.coalesce(there, column)
        wider = evolve(
            found,
            frame=found.frame.withColumn(name, column),
            names={**found.names, variable: name},
            kinds={**found.kinds, variable: literal.kind},
            open=found.open | {variable},
        )
        return only(wider, wider.frame)


def _plain(term: Term) -> Term:
    """An argument that cannot fail, to test whether the functor itself can."""
    return Variable("") if isinstance(term, Call) else term


def is_open(terms: Iterable[Term], found: Bindings) -> bool:
    """Whether a variable of the terms may have no value."""
    opened = {variable.name for variable in found.open}
    return not names(terms).isdisjoint(opened)


def bound_side(literal: Comparison, found: Bindings) -> tuple[Variable | None, Term]:
    """The variable that an equality binds, and the term for its value."""
    if literal.op == "=":
        sides = (literal.left, literal.right), (literal.right, literal.left)
        known = {variable.name for variable in found.names}
        for one, other in sides:
            new = isinstance(one, Variable) and (one not in found.names or one in found.open)
            if new and names([other]) <= known:
                assert isinstance(one, Variable)
                return one, other
    return None, literal.left


def binders_first(order: Sequence[Literal], found: Bindings) -> list[Literal]:
    """Conditions ordered so that those that may bind a variable precede its uses."""
    return sorted(order, key=lambda literal: not _is_binder(literal, found))


def _is_binder(literal: Literal, found: Bindings) -> bool:
    match literal:
        case Comparison("=", left, right):
            return any(isinstance(side, Variable) and side not in found.names for side in (left, right))
        case Comparison() | Negation():
            return False
    return True


def kept(found: Bindings, condition: Column) -> Bindings:
    """The bindings for which a condition is not false."""
    from pyspark.sql import functions as F

    return only(found, found.frame.where(F.coalesce(condition, F.lit(True))))


def all_there(columns: Sequence[Column], value: Column) -> Column:
    """A value that depends on others: null if one of them is."""
    from pyspark.sql import functions as F

    return F.when(reduce(lambda a, b: a & b, [c.isNotNull() for c in columns], F.lit(True)), value)
