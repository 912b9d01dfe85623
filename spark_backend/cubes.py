"""A cyclic join in one round: each task has one cell of a cube, and joins what lies there with our own engine.

Joined two atoms at a time, a triangle goes through all paths of two edges, however few of them close.  Here each
variable of the join is an axis, cut into a few shares by hashing; a row goes to every cell that agrees with
the values it has, so that the rows of an answer meet in exactly one cell.  Inside, the engine joins one variable
after the other by intersecting sets, which is worst-case optimal.  Nothing but the atoms' rows is ever shuffled.

How many shares an axis has is what makes the fewest copies, given the sizes of the atoms, which are counted first.
There are as many cells as the session has partitions, and more when a cell would be too large for a task.

Spark joins two atoms at a time about as fast as rows reach a task, so where the first two atoms have few answers
(their number is summed up from counts per key, by the same job) the plan of Spark is the better one.

Reads: core.classify, spark_backend.bodies, spark_backend.tasks.  Read by: spark_backend.rules, spark_backend.plan.
Source: Afrati, Ullman, Optimizing joins in a map-reduce environment, EDBT 2010; Beame, Koutris, Suciu,
Communication steps for parallel query processing, PODS 2013.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from math import prod
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from everlog.core.classify.classes import is_acyclic
from everlog.core.classify.query import query_of
from everlog.core.program import (
    Aggregate,
    Atom,
    Column,
    Comparison,
    Constant,
    Kind,
    Literal,
    Negation,
    Program,
    Range,
    Relation,
    Rule,
    Term,
    Variable,
    Wildcard,
    calls_of,
    variables_of,
)
from everlog.spark_backend.bodies import Bindings, Body
from everlog.spark_backend.columns import names_of, widened
from everlog.spark_backend.expressions import may_fail
from everlog.spark_backend.tasks import run_in_tasks, task_of

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

LOAD = 2_000_000  # rows of a cell: what a worker holds, a few hundred megabytes
WORTH = 20  # answers of the first two atoms for each row that goes to a task, from which on a cube is faster
_JOINED = "joined"
_ORDERS = ("<", "<=", ">", ">=")


@frozen
class CyclicJoin:
    """The atoms of a cyclic join, the tests between their variables, what these imply, the rest of the body."""

    atoms: tuple[Atom, ...]
    tests: tuple[Comparison, ...]
    implied: tuple[Comparison, ...]
    rest: tuple[Literal, ...]
    shown: frozenset[Variable]  # what head and rest speak of


def cyclic_join(rule: Rule) -> CyclicJoin | None:
    """The join of a rule, if it is cyclic and its atoms have no computed arguments.

    A rule that may fail on some values is left alone: an error must not depend on which literal comes first.
    """
    atoms = tuple(literal for literal in rule.body if isinstance(literal, Atom))
    if len(atoms) < 3 or not all(_is_plain(arg) for atom in atoms for arg in atom.args):
        return None
    if is_acyclic(query_of(rule)) or any(may_fail(call) for call in calls_of(rule)):
        return None
    bound = {arg for atom in atoms for arg in atom.args if isinstance(arg, Variable)}
    tests = tuple(one for one in rule.body if isinstance(one, Comparison) and _is_test(one, bound))
    taken = {id(literal) for literal in (*atoms, *tests)}
    rest = tuple(literal for literal in rule.body if id(literal) not in taken)
    outside = {v for arg in rule.head.args for v in variables_of(arg)} | {v for one in rest for v in _spoken(one)}
    return CyclicJoin(atoms, tests, tuple(implied(tests)), rest, frozenset(outside & bound))


def implied(tests: Iterable[Comparison]) -> Iterator[Comparison]:
    """What follows of comparisons because orders are transitive: another atom may have fewer rows for it.

    >>> x, y, z = map(Variable, "xyz")
    >>> tests = [Comparison("<", x, y, Kind.NUMBER), Comparison(">=", z, y, Kind.NUMBER)]
    >>> [str(test) for test in implied(tests)]
    ['x < z']
    """
    strict: dict[tuple[Term, Term, Kind], bool] = {}
    for test in tests:
        if test.op in _ORDERS:
            ends = (test.left, test.right) if test.op in ("<", "<=") else (test.right, test.left)
            strict[*ends, test.kind] = strict.get((*ends, test.kind), False) or len(test.op) == 1
    given = dict(strict)
    for middle in dict.fromkeys(end for _, end, _ in given):
        for (a, b, kind), one in list(strict.items()):
            for (c, d, other), two in list(strict.items()):
                if b == middle == c and a != d and kind == other:
                    strict[a, d, kind] = strict.get((a, d, kind), False) or one or two
    for (left, right, kind), less in strict.items():
        if (left, right, kind) not in given and isinstance(left, Variable) and isinstance(right, Variable):
            yield Comparison("<" if less else "<=", left, right, kind)


def _is_plain(term: Term) -> bool:
    return isinstance(term, Variable | Constant | Wildcard)


def _is_test(test: Comparison, bound: Collection[Variable]) -> bool:
    """Whether it compares what the atoms bind; one that computes stays with Spark."""
    return all(isinstance(side, Constant) or side in bound for side in (test.left, test.right))


def _spoken(literal: Literal) -> Iterator[Variable]:
    """The variables by which a literal may hang together with others."""
    match literal:
        case Atom(args=args) | Negation(Atom(args=args)):
            terms: Sequence[Term] = args
        case Comparison(left=left, right=right):
            terms = [left, right]
        case Range(start=start, stop=stop, step=step, result=result):
            terms = [start, stop, result, *([] if step is None else [step])]
        case Aggregate(outer=outer, result=result):
            terms = [*outer, result]
    for term in terms:
        yield from variables_of(term)


@frozen
class Cubes:
    """`partitions` is the least number of cells; `worth` as above, 0 if a cube is wanted in any case."""

    partitions: int
    worth: int = WORTH
    load: int = LOAD

    def joined(self, solver: Body, program: Program, rule: Rule, number: int, join: CyclicJoin) -> Bindings | None:
        """What the join binds, of the variables that are spoken of elsewhere; None if a cube is not worth it."""
        from pyspark.sql import functions as F

        parts = []
        for atom in join.atoms:
            own = {v for arg in atom.args for v in variables_of(arg)}
            every = (*join.tests, *join.implied)
            tests = [t for t in every if {*variables_of(t.left), *variables_of(t.right)} <= own]
            parts.append(solver.solve([atom, *tests], inner=True))
        sizes, answers = _looked_at(parts)
        if answers < self.worth * sum(sizes):
            return None
        schemas = [tuple(part.names) for part in parts]
        split = self.split(schemas, sizes)
        cells = prod(split.values())
        frames = [
            (
                part.frame.select(
                    *(F.col(name).alias(f"c{n}") for n, name in enumerate(part.names.values())),
                    _cell(split, part).alias("cell"),
                ),
                tuple(part.kinds[v] for v in part.names),
            )
            for part in parts
        ]
        codes = F.array(*map(F.lit, even_codes(cells)))
        wide = widened(frames, extra=["cell"]).withColumn("cell", F.get(codes, F.col("cell")))
        shown = tuple(dict.fromkeys(v for schema in schemas for v in schema if v in join.shown))
        shown = shown or schemas[0][:1]
        own_program = _program(program, rule, join, parts, shown)
        reads = [f"atom{n}" for n in range(len(parts))]
        task = task_of(own_program, reads, [_JOINED], {rule.written: number}, {})
        _, out = run_in_tasks(task, wide.repartition(cells, "cell").drop("cell"), keep=False)
        kinds = {v: kind for part in parts for v, kind in part.kinds.items()}
        names = {v: solver.fresh() for v in shown}
        columns = zip(names_of(len(shown)), names.values(), strict=True)
        frame = out[_JOINED].select(*(F.col(old).alias(new) for old, new in columns))
        apart = {v for v, share in split.items() if share > 1} <= set(shown)  # equal rows are in one cell
        return Bindings(frame, names, {v: kinds[v] for v in shown}, frozenset(shown), apart)

    def split(self, schemas: Sequence[Sequence[Variable]], sizes: Sequence[int]) -> dict[Variable, int]:
        """The shares of each variable that several atoms have.

        >>> x, y, z = map(Variable, "xyz")
        >>> found = Cubes(8).split([(x, y), (y, z), (x, z)], [1000, 1000, 1000])
        >>> sorted(found.values()), Cubes(4).split([(x, y), (y, z), (x, z)], [10, 1000, 1000])[z]
        ([2, 2, 2], 4)
        """
        common = list(dict.fromkeys(v for schema in schemas for v in schema))
        common = [v for v in common if sum(v in schema for schema in schemas) > 1]
        cells = self.partitions
        while True:
            choices = (dict(zip(common, shares, strict=True)) for shares in _factors(cells, len(common)))
            best = min(choices, key=lambda split: _most(schemas, sizes, split))
            if _most(schemas, sizes, best) <= self.load or cells >= 4096:
                return best
            cells *= 2


def _most(schemas: Sequence[Sequence[Variable]], sizes: Sequence[int], split: Mapping[Variable, int]) -> float:
    """The rows of a cell."""
    shares = [prod(split.get(v, 1) for v in schema) for schema in schemas]
    return sum(size / share for size, share in zip(sizes, shares, strict=True))


def _factors(number: int, places: int) -> Iterator[tuple[int, ...]]:
    """
    >>> list(_factors(4, 2))
    [(1, 4), (2, 2), (4, 1)]
    """
    if places == 1:
        yield (number,)
        return
    for first in range(1, number + 1):
        if number % first == 0:
            for others in _factors(number // first, places - 1):
                yield first, *others


def _looked_at(parts: Sequence[Bindings]) -> tuple[list[int], float]:
    """The sizes of the atoms, and how many answers the first has with the one that shares most with it."""
    from pyspark.sql import functions as F

    first = parts[0]
    nearest = max(range(1, len(parts)), key=lambda n: len(parts[n].names.keys() & first.names.keys()))
    keys = [v for v in first.names if v in parts[nearest].names]
    size = F.count(F.lit(1)).cast("double")
    alone = [n for n in range(len(parts)) if not keys or n not in (0, nearest)]
    rows = [parts[n].frame.agg(size.alias("a")).select(F.lit(n), "a", F.lit(0.0), F.lit(0.0)) for n in alone]
    if keys:  # the first two are counted by key, which gives their sizes as well
        names = [f"k{n}" for n in range(len(keys))]
        left, right = (
            part.frame.groupBy(*(F.col(part.names[v]).alias(k) for k, v in zip(names, keys, strict=True))).agg(
                size.alias(name)
            )
            for part, name in ((first, "a"), (parts[nearest], "b"))
        )
        sums = [F.coalesce(F.sum(one), F.lit(0.0)) for one in (F.col("a"), F.col("b"), F.col("a") * F.col("b"))]
        rows.append(left.join(right, names, "full").agg(*sums).select(F.lit(-1), "*"))
    found = {row[0]: row[1:] for row in reduce(lambda a, b: a.union(b), rows).collect()}
    sizes = {n: int(found[n][0]) for n in alone}
    if keys:
        sizes |= {0: int(found[-1][0]), nearest: int(found[-1][1])}
    answers = found[-1][2] if keys else float(sizes[0] * sizes[nearest])
    return [sizes[n] for n in range(len(parts))], answers


def _cell(split: Mapping[Variable, int], part: Bindings) -> SparkColumn:
    """The cells of a row: one along each axis that it has a value for, all along the others."""
    from pyspark.sql import functions as F

    fixed, free, stride = F.lit(0), [0], 1
    for seed, (variable, share) in enumerate(split.items()):
        if share > 1 and variable in part.names:
            place = F.pmod(F.xxhash64(F.lit(seed), F.col(part.names[variable])), F.lit(share)).cast("int")
            fixed = fixed + place * F.lit(stride)
        elif share > 1:
            free = [cell + stride * step for step in range(share) for cell in free]
        stride *= share
    return fixed if len(free) == 1 else F.explode(F.transform(F.array(*map(F.lit, free)), lambda one: one + fixed))


def _program(
    program: Program, rule: Rule, join: CyclicJoin, parts: Sequence[Bindings], shown: Sequence[Variable]
) -> Program:
    """The join as a program: a relation for each atom, and one rule."""
    kinds = {v: kind for part in parts for v, kind in part.kinds.items()}

    def relation(name: str, variables: Sequence[Variable]) -> Relation:
        return Relation(name, tuple(Column(v.name, kinds[v]) for v in variables))

    atoms = [Atom(f"atom{n}", tuple(part.names)) for n, part in enumerate(parts)]
    relations = [relation(atom.relation, tuple(part.names)) for atom, part in zip(atoms, parts, strict=True)]
    relations.append(relation(_JOINED, shown))
    return evolve(
        program,
        relations={one.name: one for one in relations},
        rules=(evolve(rule, head=Atom(_JOINED, tuple(shown)), body=(*atoms, *join.tests)),),
        facts={},
        subsumptions=(),
        inputs=(),
        outputs=(),
        printsizes=(),
        limits={},
        functors={},
    )


# ── one cell in each partition ───────────────────────────────────────────────────────────────


def even_codes(cells: int) -> list[int]:
    """A number for each cell, such that Spark's hash puts each into a partition of its own.

    >>> sorted(murmur3(code) % 5 for code in even_codes(5))
    [0, 1, 2, 3, 4]
    """
    codes: dict[int, int] = {}
    code = 0
    while len(codes) < cells:
        codes.setdefault(murmur3(code) % cells, code)
        code += 1
    return [codes[cell] for cell in range(cells)]


def murmur3(value: int, seed: int = 42) -> int:
    """Spark's hash of an int column, by which it partitions.

    >>> murmur3(0), murmur3(1)
    (933211791, -559580957)
    """

    def turned(number: int, by: int) -> int:
        number &= 0xFFFFFFFF
        return (number << by | number >> 32 - by) & 0xFFFFFFFF

    mixed = turned(value * 0xCC9E2D51, 15) * 0x1B873593 & 0xFFFFFFFF
    hashed = (turned(seed ^ mixed, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    hashed ^= 4
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    hashed ^= hashed >> 16
    return hashed - (hashed >> 31 << 32)
