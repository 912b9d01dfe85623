"""A rule's body as one DataFrame: each literal is a join, a filter or a column.

`Bindings` is a frame with a column for each variable bound so far.  Literals that only filter or
compute come as early as possible; of the atoms, the one that shares most with the bindings is next.
An atom that binds nothing new is a semi-join, a negated one an anti-join, and an aggregate a
grouping that is joined.

What may fail comes last, when atoms and sure conditions have chosen what to compute it for
(`spark_backend.frames.partial`).  Where it is the key of a join, bindings for which it has a value
are joined by it, and the others with all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING, TypeAlias, assert_never

from attrs import evolve

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
from everlog.core.program.bodies import binds, is_ready, may_fail, schedule, sure_and_open
from everlog.spark_backend.column_types import HOLDS, TYPES, frame_of_rows, names_of
from everlog.spark_backend.frames.bindings import Bindings, Facts, only
from everlog.spark_backend.frames.expressions import Expressions
from everlog.spark_backend.frames.expressions import literal as constant
from everlog.spark_backend.frames.partial import Attempts, all_there, binders_first, bound_side, is_open, kept
from everlog.spark_backend.frames.totals import ERROR, TARGET, folded_groups, totalled

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


Lookup: TypeAlias = Callable[
    [Atom, int | None], Facts
]  # an atom, and its place in the body (None: inside another literal)


class Body:
    """Solves the bodies of one rule."""

    def __init__(self, spark: SparkSession, expressions: Expressions, lookup: Lookup) -> None:
        self._spark, self._expressions, self._lookup = spark, expressions, lookup
        self._fresh = (f"v{number}" for number in count())
        self.attempts = Attempts(expressions, self._fresh)
        self._relations, self._functors = expressions.program.relations, expressions.program.functors

    def fresh(self) -> str:
        """An unused column name."""
        return next(self._fresh)

    def nothing(self) -> Bindings:
        """The bindings of an empty body: one row."""
        return Bindings(frame_of_rows(self._spark, [()], ()))

    def solve(self, body: Sequence[Literal], start: Bindings | None = None, inner: bool = False) -> Bindings:
        """All extensions of the bindings that satisfy the literals, or leave one open."""
        bound = set() if start is None else {variable.name for variable in start.names}
        parts = [(place, literal) for place, literal in enumerate(body)]
        places = {id(literal): None if inner else place for place, literal in parts}
        found = start
        rest, waiting = sure_and_open([literal for _, literal in parts], bound)
        while rest:
            bound = set() if found is None else {variable.name for variable in found.names}
            keys = [] if found is None else self._keys(waiting, found)
            chosen = self._next(rest, bound | {name for key in keys for name in binds(key)})
            rest = [literal for literal in rest if literal is not chosen]
            used = [key for key in keys if not binds(key).isdisjoint(binds(chosen) - bound)]
            if isinstance(chosen, Atom) and used and found is not None:
                found = self._joined_by(used, chosen, places[id(chosen)], found)
                waiting = [literal for literal in waiting if not any(literal is key for key in used)]
            else:
                found = self._extended(chosen, places[id(chosen)], found)
        found = self.nothing() if found is None else found
        order, _ = schedule(waiting, {variable.name for variable in found.names})
        for literal in binders_first(order, found):
            found = self._opened(literal, found)
        return found

    def _keys(self, waiting: Iterable[Literal], found: Bindings) -> list[Comparison]:
        """For each variable, an equality that may fail and could join an atom."""
        keys: dict[Variable, Comparison] = {}
        for literal in waiting:
            if isinstance(literal, Comparison):
                variable, _ = bound_side(literal, found)
                if variable is not None and variable not in found.names:
                    keys.setdefault(variable, literal)
        return list(keys.values())

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

    def _opened(self, literal: Literal, found: Bindings) -> Bindings:
        """The bindings that a condition which may fail does not exclude."""
        match literal:
            case Comparison():
                return self.attempts.compared(literal, found)
            case Negation(atom):
                return self._without(atom, found)
            case Range():
                return self._ranged(literal, found)
            case Aggregate():
                return self._aggregated(literal, found)
        raise AssertionError(f"an atom cannot fail: {literal}")

    # ── atoms ────────────────────────────────────────────────────────────────────────────────

    def _matched(
        self, atom: Atom, facts: Facts, bound: Mapping[Variable, str]
    ) -> tuple[Bindings, list[tuple[Term, str]]]:
        """The facts of an atom in fresh columns, and (term, column) pairs to match."""
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
            # a semi-join: the atom binds no variable
            frame = _semi(left.frame, own.frame, keys, "left_semi")
            return only(found, frame)
        if not facts.unique:  # duplicates of several atoms would multiply
            own = evolve(own, frame=without_repeats(own.frame, own.rare), unique=True, rare=True)
        frame = left.frame.join(own.frame, _all(keys), "inner") if keys else left.frame.crossJoin(own.frame)
        joined = evolve(
            found,
            frame=frame,
            names={**found.names, **own.names},
            kinds={**found.kinds, **own.kinds},
            keys=found.keys | own.keys,
            unique=found.unique and own.unique,
            rare=found.rare and own.rare,
        )
        return self._filtered(only(joined, frame) if not inside else joined, inside)

    def _joined_by(self, keys: Sequence[Comparison], atom: Atom, place: int | None, found: Bindings) -> Bindings:
        """Join an atom by keys that may fail; bindings without a key meet all facts."""
        from pyspark.sql import functions as F

        columns: dict[Variable, str] = {}
        for key in keys:
            variable, term = bound_side(key, found)
            assert variable is not None
            found, value = self.attempts.value(term, found)
            columns[variable] = next(self._fresh)
            found = evolve(found, frame=found.frame.withColumn(columns[variable], value.cast(TYPES[key.kind])))
        missing = reduce(lambda a, b: a | b, [F.col(name).isNull() for name in columns.values()])
        keyed = evolve(found, frame=found.frame.where(~missing), names={**found.names, **columns})
        kinds = {**found.kinds, **{variable: key.kind for variable, key in zip(columns, keys, strict=True)}}
        one = self._joined(atom, place, evolve(keyed, kinds=kinds))
        hidden = {Variable(f"{variable.name}@key"): name for variable, name in columns.items()}
        other = evolve(found, frame=found.frame.where(missing), names={**found.names, **hidden})
        other = self._joined(atom, place, other)
        for variable in columns:  # some of several keys may have a value
            there = other.names[Variable(f"{variable.name}@key")]
            other = kept(other, F.col(there) == F.col(other.names[variable]))
        return self._both(one, other)

    def _both(self, one: Bindings, other: Bindings) -> Bindings:
        """The union of two bindings, with the variables of the first."""
        from pyspark.sql import functions as F

        fresh = {variable: next(self._fresh) for variable in one.names}
        error = next(self._fresh)
        frames = []
        for part in (one, other):
            shown = [F.col(part.names[variable]).alias(name) for variable, name in fresh.items()]
            why = F.lit(None).cast("string") if part.error is None else F.col(part.error)
            frames.append(part.frame.select(*shown, why.alias(error)))
        return evolve(
            one,
            frame=frames[0].union(frames[1]),
            names=fresh,
            keys=frozenset(fresh),
            unique=one.unique and other.unique,
            rare=one.rare and other.rare,
            error=error,
        )

    def _filtered(self, found: Bindings, pairs: Sequence[tuple[Term, str]]) -> Bindings:
        """Keep the bindings for which each term equals its column."""
        from pyspark.sql import functions as F

        if not pairs:
            return found
        frame = found.frame
        for term, name in pairs:
            frame = frame.where(self._expressions.term(term, found.env()) == F.col(name))
        return only(found, frame)

    def _keyed(self, found: Bindings, pairs: Sequence[tuple[Term, str]]) -> tuple[Bindings, list[tuple[str, str]]]:
        """Add a column for each computed key; the pairs of columns to join on."""
        keys: list[tuple[str, str]] = []
        for term, name in pairs:
            if isinstance(term, Variable):
                keys.append((found.names[term], name))
            else:
                fresh = next(self._fresh)
                found, value = self.attempts.value(term, found)
                found = evolve(found, frame=found.frame.withColumn(fresh, value))
                keys.append((fresh, name))
        return found, keys

    def _without(self, atom: Atom, found: Bindings) -> Bindings:
        own, pairs = self._matched(atom, self._lookup(atom, None), found.names)
        left, keys = self._keyed(found, pairs)
        return only(left, _semi(left.frame, own.frame, keys, "left_anti"))

    # ── literals that bind one variable ──────────────────────────────────────────────────────

    def _computed(self, variable: Variable, term: Term, kind: Kind, found: Bindings) -> Bindings:
        column = self._expressions.term(term, found.env()).cast(TYPES[kind])
        return self._bound(variable, column, kind, found, key=False)

    def _bound(self, variable: Variable, column: Column, kind: Kind, found: Bindings, key: bool) -> Bindings:
        fresh = next(self._fresh)
        wider = evolve(
            found,
            frame=found.frame.withColumn(fresh, column),
            names={**found.names, variable: fresh},
            kinds={**found.kinds, variable: kind},
            keys=found.keys | {variable} if key else found.keys,
        )
        return only(wider, wider.frame)

    def _ranged(self, literal: Range, found: Bindings | None) -> Bindings:
        from pyspark.sql import functions as F

        terms = literal.bounds
        if found is None:  # an empty binding may still be dropped by a test
            if literal.kind is Kind.NUMBER and all(isinstance(term, Constant) for term in terms):
                return self._counted(literal, [int(term.value) for term in terms if isinstance(term, Constant)])
            found = self.nothing()
        ends = []
        for term in terms:
            found, end = self.attempts.value(term, found)
            ends.append(end)
        arrayed, exploded = next(self._fresh), next(self._fresh)
        if literal.kind is Kind.FLOAT:
            found, values = self.attempts.attempted(self._expressions.attempt_range(ends, literal.kind), found)
        else:
            values = self._expressions.ranged(ends, literal.kind)
        opens = may_fail(literal) or is_open(terms, found)
        frame = found.frame.withColumn(arrayed, values)
        if opens:  # an empty range has no match, an unknown one may have any
            frame = frame.where(F.col(arrayed).isNull() | (F.size(arrayed) > 0))
        frame = frame.withColumn(exploded, (F.explode_outer if opens else F.explode)(F.col(arrayed)))
        found = evolve(found, frame=frame, open=found.open | {literal.result} if opens else found.open)
        return self._met(literal.result, exploded, literal.kind, found, key=True)

    def _counted(self, literal: Range, numbers: list[int]) -> Bindings:
        """The values of a range between constants, generated by the workers."""
        from pyspark.sql import functions as F

        start, stop = numbers[:2]
        step = numbers[2] if len(numbers) > 2 else 1 if start <= stop else -1
        name = next(self._fresh)
        if step == 0:
            frame = self._spark.range(1).select(F.lit(start).cast("bigint").alias(name))
            frame = frame if start != stop else frame.where(F.lit(False))
        elif abs(stop - start) < 2**63:
            frame = self._spark.range(start, stop, step).select(F.col("id").alias(name))
        else:  # Spark's own range is wrong if its length exceeds 64 bits
            wide = F.lit(start).cast("decimal(38,0)") + F.col("id").cast("decimal(20,0)") * F.lit(step)
            steps = min(-((start - stop) // step), 2**63 - 1)
            frame = self._spark.range(steps).select(wide.cast("bigint").alias(name))
        return Bindings(frame, {literal.result: name}, {literal.result: literal.kind}, frozenset([literal.result]))

    def _met(self, result: Variable, name: str, kind: Kind, found: Bindings, key: bool) -> Bindings:
        """Bind `result` to a column; if it is bound already, the two must agree."""
        from pyspark.sql import functions as F

        if result in found.names:
            return kept(found, F.col(found.names[result]) == F.col(name))
        return self._bound(result, F.col(name), kind, found, key)

    # ── aggregates ───────────────────────────────────────────────────────────────────────────

    def _aggregated(self, literal: Aggregate, found: Bindings | None) -> Bindings:
        from pyspark.sql import functions as F

        outer = list(literal.outer)
        if outer and found is not None and not found.unique:  # one row per group suffices
            found = evolve(found, frame=found.frame.distinct(), unique=True, keys=frozenset(found.names))
        start: Bindings | None = None
        if outer and self._needs_domain(literal):
            assert found is not None
            frame = found.frame.select(*(found.names[v] for v in outer)).dropna().distinct()
            start = Bindings(frame, {v: found.names[v] for v in outer}, found.kinds, frozenset(outer))
        inside = self.solve(literal.body, start, inner=True)
        if not inside.unique:
            inside = evolve(inside, frame=without_repeats(inside.frame, inside.rare))
        outside = found or self.nothing()
        if literal.target is not None:
            inside, target = self.attempts.value(literal.target, inside)
            inside = evolve(inside, frame=inside.frame.withColumn(TARGET, target))
        groups = [inside.names[v] for v in outer]
        if inside.error is not None:
            failing = inside.frame.where(F.col(inside.error).isNotNull())
            errors = failing.groupBy(*groups).agg(F.min(inside.error).alias(ERROR))
            inside = evolve(inside, frame=inside.frame.where(F.col(inside.error).isNull()))
        if literal.start is not None:
            functor = self._functors[literal.op[1:]]
            frame, value, unfolded = folded_groups(literal, functor, inside, groups, self._fresh)
            if inside.error is not None:
                unfolded = errors.unionByName(unfolded).groupBy(*groups).agg(F.min(ERROR).alias(ERROR))
            return self._grouped_or_open(literal, outside, groups, frame, unfolded, value)
        frame, value = totalled(literal, inside, groups, self._fresh)
        if inside.error is None and not is_open(outer, outside):
            return self._grouped(literal, outside, groups, frame, value)
        if inside.error is None:
            errors = frame.select(*groups).limit(0).withColumn(ERROR, F.lit(None).cast("string"))
        return self._grouped_or_open(literal, outside, groups, frame, errors, value)

    def _grouped(
        self, literal: Aggregate, outside: Bindings, groups: Sequence[str], frame: DataFrame, value: str
    ) -> Bindings:
        """The bindings with the value of their group."""
        from pyspark.sql import functions as F

        has_default = literal.op in ("count", "sum")
        if not groups:
            wider = outside.frame.crossJoin(F.broadcast(frame))
        else:
            wider = self._beside(outside, literal.outer, groups, frame, "left" if has_default else "inner")
            if has_default:
                wider = wider.withColumn(value, F.coalesce(F.col(value), F.lit(0).cast(TYPES[literal.kind])))
        return self._met(literal.result, value, literal.kind, evolve(outside, frame=wider), key=False)

    def _grouped_or_open(
        self,
        literal: Aggregate,
        outside: Bindings,
        groups: Sequence[str],
        frame: DataFrame,
        errors: DataFrame,
        value: str,
    ) -> Bindings:
        """The same, if a group may fail or be unknown."""
        from pyspark.sql import functions as F

        if groups:
            wider = self._beside(outside, literal.outer, groups, frame, "left")
            wider = self._beside(evolve(outside, frame=wider), literal.outer, groups, errors, "left")
        else:
            wider = outside.frame.join(frame, F.lit(True), "left").join(errors, F.lit(True), "left")
        known = all_there([F.col(outside.names[v]) for v in literal.outer], F.col(ERROR).isNull())
        known = F.coalesce(known, F.lit(False))
        total: Column = F.col(value)
        if literal.start is not None:
            total = F.coalesce(total, constant(literal.start.value, literal.kind))
        elif literal.op in ("count", "sum"):
            total = F.coalesce(total, F.lit(0).cast(TYPES[literal.kind]))
        else:
            wider = wider.where(~known | total.isNotNull())  # an empty group has no value, and no match
        result = next(self._fresh)
        found = self.attempts.erring(
            evolve(outside, frame=wider.withColumn(result, F.when(known, total))), F.col(ERROR)
        )
        found = evolve(found, open=found.open | {literal.result})
        return self._met(literal.result, result, literal.kind, found, key=False)

    def _beside(
        self, outside: Bindings, outer: Sequence[Variable], groups: Sequence[str], frame: DataFrame, how: str
    ) -> DataFrame:
        """The bindings joined with a frame by their groups."""
        from pyspark.sql import functions as F

        renamed = {name: next(self._fresh) for name in groups}
        rest = [name for name in frame.columns if name not in renamed]
        right = frame.select(*(F.col(old).alias(new) for old, new in renamed.items()), *rest)
        keys = [(outside.names[v], renamed[name]) for v, name in zip(outer, groups, strict=True)]
        return outside.frame.join(right, _all(keys), how)

    def _needs_domain(self, literal: Aggregate) -> bool:
        """Whether the groups must be known first, because the body may not bind them."""
        sure, _ = sure_and_open(literal.body, ())
        bound = {name for x in sure for name in binds(x)}
        return bool(schedule(literal.body, ())[1]) or not bound.issuperset(v.name for v in literal.outer)


def without_repeats(frame: DataFrame, rare: bool) -> DataFrame:
    """The frame without duplicate rows.

    Spark removes duplicates before a shuffle too, and keeps all rows of a task for that.  If they
    are rare, this saves nothing, and beyond the memory of a task it sorts on disk.
    """
    return (frame.repartition(*frame.columns) if rare else frame).distinct()


def _names(term: Term) -> set[str]:
    return {variable.name for variable in p.variables_of(term)}


def _all(keys: Sequence[tuple[str, str]]) -> list[Column]:
    from pyspark.sql import functions as F

    return [F.col(left) == F.col(right) for left, right in keys]


def _semi(left: DataFrame, right: DataFrame, keys: Sequence[tuple[str, str]], how: str) -> DataFrame:
    """The rows of `left` with (or without) a partner; without keys, any row is one."""
    from pyspark.sql import functions as F

    if keys:
        return left.join(right, _all(keys), how)
    present = right.limit(1).select(F.lit(True).alias("present"))
    return left.join(present, F.lit(True), how)


__all__ = ["Bindings", "Body", "Facts"]
