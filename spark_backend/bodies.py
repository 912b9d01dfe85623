"""A rule's body as one DataFrame: literal by literal, each a join, a filter or a column.

`Bindings` is a frame with a column for each variable bound so far.  The literals are taken in an order of their
own: whatever only filters or computes as soon as it can; of the atoms, the one that shares most with what is
bound.  An atom that binds nothing new is a semi-join, a negated one an anti-join, and an aggregate a grouping
that is joined on.

Facts are sets, but a projection of a join is not.  `unique` says whether each binding stands in the frame once:
then neither a rule nor an aggregate needs to make it so, which is the dearest operation of all.  Where it is not,
`rare` says that bindings are repeated only because a row of some input may be.

Reads: core.program, core.reference (what is ready), spark_backend.expressions, spark_backend.totals.
Read by: spark_backend.rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, TypeAlias, assert_never

from attrs import evolve, field, frozen

from everlog.core import program as p
from everlog.core.program import (
    Aggregate,
    Atom,
    Comparison,
    Constant,
    Kind,
    Literal,
    Negation,
    Range,
    Term,
    Variable,
    Wildcard,
)
from everlog.core.reference import apart, is_ready, schedule
from everlog.spark_backend.columns import HOLDS, TYPES, frame_of_rows, names_of
from everlog.spark_backend.expressions import Expressions, may_fail
from everlog.spark_backend.totals import totalled

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@frozen
class Facts:
    """The facts of a relation; `unique`: no row stands in the frame twice; `rare`: few do, if any."""

    frame: DataFrame
    unique: bool = True
    rare: bool = True


Lookup: TypeAlias = Callable[
    [Atom, int | None], Facts
]  # an atom, and its place in the body (None: inside something)


@frozen
class Bindings:
    """Invariant: the frame has exactly the columns in `names` (or just `holds`); `keys` determine the others."""

    frame: DataFrame
    names: Mapping[Variable, str] = field(factory=dict)
    kinds: Mapping[Variable, Kind] = field(factory=dict)
    keys: frozenset[Variable] = frozenset()
    unique: bool = True
    rare: bool = True

    def env(self) -> dict[Variable, Column]:
        from pyspark.sql import functions as F

        return {variable: F.col(name) for variable, name in self.names.items()}


class Body:
    """Solves the bodies of one rule."""

    def __init__(self, spark: SparkSession, expressions: Expressions, lookup: Lookup) -> None:
        self._spark, self._expressions, self._lookup = spark, expressions, lookup
        self._fresh = (f"v{number}" for number in count())
        self._relations = expressions.program.relations

    def fresh(self) -> str:
        """The name of a column that nobody has."""
        return next(self._fresh)

    def nothing(self) -> Bindings:
        """One binding, of no variable."""
        return Bindings(frame_of_rows(self._spark, [()], ()))

    def solve(self, body: Sequence[Literal], start: Bindings | None = None, inner: bool = False) -> Bindings:
        """Every way to extend the bindings so that all literals hold."""
        parts = [(place, literal) for place, literal in enumerate(body)]
        if schedule(body, set() if start is None else {variable.name for variable in start.names})[1]:
            parts = [(place, part) for place, literal in parts for part in apart(literal)]
        places = {id(literal): None if inner else place for place, literal in parts}
        found = start
        rest = [literal for _, literal in parts]
        while rest:
            bound = set() if found is None else {variable.name for variable in found.names}
            chosen = self._next(rest, bound)
            rest = [literal for literal in rest if literal is not chosen]
            found = self._extended(chosen, places[id(chosen)], found)
        return self.nothing() if found is None else found

    def _next(self, rest: Sequence[Literal], bound: set[str]) -> Literal:
        ready = [literal for literal in rest if is_ready(literal, bound)]
        assert ready, f"not grounded: {', '.join(map(str, rest))}"

        def cost(literal: Literal) -> tuple[int, int]:
            match literal:
                case Atom(args=args):
                    known = [
                        arg for arg in args if isinstance(arg, Constant) or (_names(arg) and _names(arg) <= bound)
                    ]
                    new = [arg for arg in args if not _names(arg) <= bound]
                    return (2 if known and not new else 3 if known or not bound else 4), -len(known)
                case Range():
                    return 5 if bound else 1, 0
                case Aggregate():
                    return 1, 0
                case Negation():
                    return 2, 0
                case Comparison():
                    return 0, 0
            assert_never(literal)

        return min(ready, key=cost)

    def _extended(self, literal: Literal, place: int | None, found: Bindings | None) -> Bindings:
        match literal:
            case Atom():
                return self._joined(literal, place, found)
            case Negation(atom):
                return self._without(atom, found or self.nothing())
            case Comparison("=", Variable() as variable, other) if found is None or variable not in found.names:
                return self._computed(variable, other, literal.kind, found or self.nothing())
            case Comparison("=", other, Variable() as variable) if found is None or variable not in found.names:
                return self._computed(variable, other, literal.kind, found or self.nothing())
            case Comparison(op, left, right, kind):
                found = found or self.nothing()
                a, b = (self._expressions.term(term, found.env()) for term in (left, right))
                return evolve(found, frame=found.frame.where(self._expressions.comparison(op, a, b, kind)))
            case Range():
                return self._ranged(literal, found)
            case Aggregate():
                return self._aggregated(literal, found)
            case _:
                assert_never(literal)

    # ── atoms ────────────────────────────────────────────────────────────────────────────────

    def _matched(
        self, atom: Atom, facts: Facts, bound: Mapping[Variable, str]
    ) -> tuple[Bindings, list[tuple[Term, str]]]:
        """The facts of an atom in fresh columns, with the pairs (term, column) that must still agree."""
        from pyspark.sql import functions as F

        columns = self._relations[atom.relation].columns
        frame, unique, rare = facts.frame, facts.unique, facts.rare
        names: dict[Variable, str] = {}
        kinds: dict[Variable, Kind] = {}
        pairs: list[tuple[Term, str]] = []
        kept: list[Column] = []
        for name, arg, column in zip(names_of(len(columns)), atom.args, columns, strict=False):
            match arg:
                case Wildcard():
                    unique = rare = False
                case Constant():
                    frame = frame.where(F.col(name) == self._expressions.term(arg, {}))
                case Variable() if arg in names:
                    first = next(n for n, a in zip(names_of(len(columns)), atom.args, strict=False) if a == arg)
                    frame = frame.where(F.col(first) == F.col(name))
                case _:
                    fresh = next(self._fresh)
                    kept.append(F.col(name).alias(fresh))
                    if isinstance(arg, Variable) and arg not in bound:
                        names[arg], kinds[arg] = fresh, column.kind
                    else:
                        pairs.append((arg, fresh))
        frame = frame.select(*kept) if kept else frame.select(F.lit(True).alias(HOLDS))
        return Bindings(frame, names, kinds, frozenset(names), unique, rare), pairs

    def _joined(self, atom: Atom, place: int | None, found: Bindings | None) -> Bindings:
        facts = self._lookup(atom, place)
        own, pairs = self._matched(atom, facts, {} if found is None else found.names)
        if found is None:
            return self._filtered(own, pairs)
        inside = [(t, n) for t, n in pairs if not _names(t) <= {v.name for v in found.names}]
        left, keys = self._keyed(found, [pair for pair in pairs if pair not in inside])
        if not own.names:
            # a semi-join: the atom binds nothing
            frame = _semi(left.frame, own.frame, keys, "left_semi")
            return _only(found, frame)
        if not facts.unique:  # duplicates of several atoms would multiply
            own = evolve(own, frame=without_repeats(own.frame, own.rare), unique=True, rare=True)
        frame = left.frame.join(own.frame, _all(keys), "inner") if keys else left.frame.crossJoin(own.frame)
        joined = Bindings(
            frame,
            {**found.names, **own.names},
            {**found.kinds, **own.kinds},
            found.keys | own.keys,
            found.unique and own.unique,
            found.rare and own.rare,
        )
        return self._filtered(_only(joined, frame) if not inside else joined, inside)

    def _filtered(self, found: Bindings, pairs: Sequence[tuple[Term, str]]) -> Bindings:
        """Keep the bindings for which each term is what its column has."""
        from pyspark.sql import functions as F

        if not pairs:
            return found
        frame = found.frame
        for term, name in pairs:
            frame = frame.where(self._expressions.term(term, found.env()) == F.col(name))
        return _only(found, frame)

    def _keyed(self, found: Bindings, pairs: Sequence[tuple[Term, str]]) -> tuple[Bindings, list[tuple[str, str]]]:
        """The bindings with a column for each computed key, and the pairs of columns to join on."""
        keys: list[tuple[str, str]] = []
        frame = found.frame
        for term, name in pairs:
            if isinstance(term, Variable):
                keys.append((found.names[term], name))
            else:
                fresh = next(self._fresh)
                frame = frame.withColumn(fresh, self._expressions.term(term, found.env()))
                keys.append((fresh, name))
        return evolve(found, frame=frame), keys

    def _without(self, atom: Atom, found: Bindings) -> Bindings:
        own, pairs = self._matched(atom, self._lookup(atom, None), found.names)
        left, keys = self._keyed(found, pairs)
        return _only(found, _semi(left.frame, own.frame, keys, "left_anti"))

    # ── what binds one variable ──────────────────────────────────────────────────────────────

    def _computed(self, variable: Variable, term: Term, kind: Kind, found: Bindings) -> Bindings:
        column = self._expressions.term(term, found.env()).cast(TYPES[kind])
        return self._bound(variable, column, kind, found, key=False)

    def _bound(self, variable: Variable, column: Column, kind: Kind, found: Bindings, key: bool) -> Bindings:
        fresh = next(self._fresh)
        wider = Bindings(
            found.frame.withColumn(fresh, column),
            {**found.names, variable: fresh},
            {**found.kinds, variable: kind},
            found.keys | {variable} if key else found.keys,
            found.unique,
            found.rare,
        )
        return _only(wider, wider.frame)

    def _ranged(self, literal: Range, found: Bindings | None) -> Bindings:
        from pyspark.sql import functions as F

        terms = [literal.start, literal.stop, *([] if literal.step is None else [literal.step])]
        if found is None:  # a binding of no variable may still be one that a test has dropped
            if literal.kind is Kind.NUMBER and all(isinstance(term, Constant) for term in terms):
                return self._counted(literal, [int(term.value) for term in terms if isinstance(term, Constant)])
            found = self.nothing()
        values = self._expressions.ranged(
            [self._expressions.term(term, found.env()) for term in terms], literal.kind
        )
        arrayed, exploded = next(self._fresh), next(self._fresh)
        frame = found.frame.withColumn(arrayed, values).withColumn(exploded, F.explode(F.col(arrayed)))
        return self._met(literal.result, exploded, literal.kind, evolve(found, frame=frame), key=True)

    def _counted(self, literal: Range, numbers: list[int]) -> Bindings:
        """A range between constants is counted by the workers."""
        from pyspark.sql import functions as F

        start, stop = numbers[:2]
        step = numbers[2] if len(numbers) > 2 else 1 if start <= stop else -1
        name = next(self._fresh)
        if step == 0:
            frame = self._spark.range(1).select(F.lit(start).cast("bigint").alias(name))
            frame = frame if start != stop else frame.where(F.lit(False))
        elif abs(stop - start) < 2**63:
            frame = self._spark.range(start, stop, step).select(F.col("id").alias(name))
        else:  # Spark's own range counts wrong where the way is longer than its numbers
            wide = F.lit(start).cast("decimal(38,0)") + F.col("id").cast("decimal(20,0)") * F.lit(step)
            steps = min(-((start - stop) // step), 2**63 - 1)
            frame = self._spark.range(steps).select(wide.cast("bigint").alias(name))
        return Bindings(frame, {literal.result: name}, {literal.result: literal.kind}, frozenset([literal.result]))

    def _met(self, result: Variable, name: str, kind: Kind, found: Bindings, key: bool) -> Bindings:
        """`result` is what the column has; where it is bound already, the two must agree."""
        from pyspark.sql import functions as F

        if result in found.names:
            return _only(found, found.frame.where(F.col(found.names[result]) == F.col(name)))
        return self._bound(result, F.col(name), kind, found, key)

    # ── aggregates ───────────────────────────────────────────────────────────────────────────

    def _aggregated(self, literal: Aggregate, found: Bindings | None) -> Bindings:
        from pyspark.sql import functions as F

        outer = list(literal.outer)
        if outer and found is not None and not found.unique:  # one row for each group is enough, and far fewer
            found = evolve(found, frame=found.frame.distinct(), unique=True, keys=frozenset(found.names))
        start: Bindings | None = None
        if outer and self._needs_domain(literal):
            assert found is not None
            frame = found.frame.select(*(found.names[v] for v in outer)).distinct()
            start = Bindings(frame, {v: found.names[v] for v in outer}, found.kinds, frozenset(outer))
        inside = self.solve(literal.body, start, inner=True)
        if not inside.unique:
            inside = evolve(inside, frame=without_repeats(inside.frame, inside.rare))
        frame, value = totalled(literal, inside, self._expressions, [inside.names[v] for v in outer], self._fresh)
        outside = found or self.nothing()
        if not outer:
            wider = outside.frame.crossJoin(F.broadcast(frame))
        else:
            renamed = {inside.names[v]: next(self._fresh) for v in outer}
            right = frame.select(*(F.col(old).alias(new) for old, new in renamed.items()), value)
            keys = [(outside.names[v], renamed[inside.names[v]]) for v in outer]
            wider = outside.frame.join(right, _all(keys), "left" if literal.op in ("count", "sum") else "inner")
            if literal.op in ("count", "sum"):
                wider = wider.withColumn(value, F.coalesce(F.col(value), F.lit(0).cast(TYPES[literal.kind])))
        return self._met(literal.result, value, literal.kind, evolve(outside, frame=wider), key=False)

    def _needs_domain(self, literal: Aggregate) -> bool:
        """Whether the groups that are asked for must be known first: the body does not bind them, or may fail."""
        order, stuck = schedule(literal.body, set())
        bound = {v for x in order for v in _variables(x)}
        fails = any(may_fail(call) for call in p.calls_of(p.Rule(_targets(literal), literal.body)))
        return bool(stuck) or not bound.issuperset(literal.outer) or fails


def without_repeats(frame: DataFrame, rare: bool) -> DataFrame:
    """Each row once.

    Spark looks for repeated rows before it shuffles, too, and holds all rows of a task for that.  Where they are
    rare, nothing is saved by it, and past the memory of a task it sorts on disk.
    """
    return (frame.repartition(*frame.columns) if rare else frame).distinct()


def _targets(literal: Aggregate) -> Atom:
    return Atom("", () if literal.target is None else (literal.target,))


def _names(term: Term) -> set[str]:
    return {variable.name for variable in p.variables_of(term)}


def _variables(literal: Literal) -> Iterable[Variable]:
    match literal:
        case Atom(args=args):
            return [v for arg in args for v in p.variables_of(arg)]
        case Comparison(left=left, right=right):
            return [*p.variables_of(left), *p.variables_of(right)]
        case Aggregate(result=result) | Range(result=result):
            return [result]
        case Negation():
            return []
    assert_never(literal)


def _only(found: Bindings, frame: DataFrame) -> Bindings:
    """The bindings with a frame that has their columns and no others."""
    return evolve(found, frame=frame.select(*found.names.values()) if found.names else frame.select(HOLDS))


def _all(keys: Sequence[tuple[str, str]]) -> list[Column]:
    from pyspark.sql import functions as F

    return [F.col(left) == F.col(right) for left, right in keys]


def _semi(left: DataFrame, right: DataFrame, keys: Sequence[tuple[str, str]], how: str) -> DataFrame:
    """The rows of `left` with (or without) a partner; without keys any row of `right` is one."""
    from pyspark.sql import functions as F

    if keys:
        return left.join(right, _all(keys), how)
    present = right.limit(1).select(F.lit(True).alias("present"))
    return left.join(present, F.lit(True), how)


__all__ = ["Bindings", "Body", "Facts"]
