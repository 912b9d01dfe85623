"""A cyclic join in one round: each task joins one cell of a hypercube.

Joined two atoms at a time, a triangle enumerates all paths of two edges, however few of them close.
Here each variable of the join is an axis, hashed into a few shares; a row goes to every cell that
agrees with its values, so that the rows of an answer meet in exactly one cell.  There, our own
engine joins one variable after another by intersecting sets, which is worst-case optimal.  Only the
atoms' rows are shuffled, and a row goes to a cell once, however many atoms of its relation read it
there (`cells`).

The shares minimize the number of copies, given the sizes of the atoms, which are counted first.
There are as many cells as the session has partitions, and more if a cell would be too large for a
task.

Spark joins two atoms about as fast as rows reach a task, so if the first two atoms have few answers
(the same job estimates their number from counts per key), Spark's own plan is better.

Source: Afrati, Ullman, Optimizing joins in a map-reduce environment, EDBT 2010; Beame, Koutris,
Suciu, Communication steps for parallel query processing, PODS 2013.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from everlog.core.program import (
    Atom,
    Column,
    Comparison,
    Kind,
    Program,
    Relation,
    Rule,
    Term,
    Variable,
    variables_of,
)
from everlog.spark_backend.column_types import names_of, widened
from everlog.spark_backend.cyclic.cells import CELL, MARK, Reading, best_split, in_cells, load_of, role_of
from everlog.spark_backend.cyclic.cyclic_joins import CyclicJoin
from everlog.spark_backend.frames.bindings import Bindings
from everlog.spark_backend.frames.body_frames import Body
from everlog.spark_backend.tasks import run_in_tasks, task_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOAD = 2_000_000  # rows of a cell that a worker can hold: a few hundred megabytes
WORTH = 20  # a cube is faster if the first two atoms have this many answers per row sent to a task
_JOINED = "joined"
_TURNED = {">": "<", ">=": "<="}


@frozen
class Source:
    """The rows of some atoms, in columns c0, c1, …"""

    frame: DataFrame
    kinds: tuple[Kind, ...]


@frozen
class Cubes:
    """Cyclic joins as cubes.

    `partitions` is the minimal number of cells; `worth` as above, 0 if a cube is always wanted.
    """

    partitions: int
    worth: int = WORTH
    load: int = LOAD

    def joined(self, solver: Body, program: Program, rule: Rule, number: int, join: CyclicJoin) -> Bindings | None:
        """The bindings of the join's visible variables; None if a cube is not worth it."""
        from pyspark.sql import functions as F

        sources, readings = _sources(solver, join)
        sizes, answers = _looked_at(sources, readings)
        split = best_split(readings, sizes, self.partitions, self.load)
        cells = prod(split.values())
        if answers < self.worth * cells * load_of(readings, sizes, split).sent:
            return None
        roles = [role_of(reading, split) for reading in readings]
        bits = {role: bit for bit, role in enumerate(dict.fromkeys(roles))}
        frames = []
        for place, source in enumerate(sources):
            own = [role for role in bits if role.source == place]
            frames.append((in_cells(source.frame, own, bits, split), source.kinds))
        wide = widened(frames, extra=[CELL, MARK]).repartition(cells, CELL).drop(CELL, "tag")
        kinds = {v: kind for r in readings for v, kind in zip(r.variables, sources[r.source].kinds, strict=True)}
        shown = tuple(v for v in kinds if v in join.shown) or tuple(kinds)[:1]
        atoms = [Atom(_named(bits[role]), one.variables) for role, one in zip(roles, readings, strict=True)]
        own_program = _program(
            program, evolve(rule, head=Atom(_JOINED, shown), body=(*atoms, *_left(join))), kinds
        )
        task = task_of(own_program, [*map(_named, bits.values())], [_JOINED], {rule.written: number}, {}, MARK)
        _, out = run_in_tasks(task, wide, keep=False)
        names = {v: solver.fresh() for v in shown}
        columns = zip(names_of(len(shown)), names.values(), strict=True)
        frame = out[_JOINED].select(*(F.col(old).alias(new) for old, new in columns))
        separate = {v for v, share in split.items() if share > 1} <= set(shown)  # equal rows are in one cell
        return Bindings(frame, names, {v: kinds[v] for v in shown}, frozenset(shown), separate)


# ── sources of atoms ─────────────────────────────────────────────────────────────────────────


def _sources(solver: Body, join: CyclicJoin) -> tuple[list[Source], list[Reading]]:
    """The sources of the atoms, each once, filtered by all tests of its variables.

    A source may have duplicate rows, which the engine ignores; but not many from a projection.
    """
    from pyspark.sql import functions as F

    known: dict[Hashable, int] = {}
    sources: list[Source] = []
    readings = []
    for atom in join.atoms:
        variables = _variables(atom)
        tests = [test for test in (*join.tests, *join.implied) if _tested(test) <= set(variables)]
        form = _form(atom, variables, tests)
        if form not in known:
            known[form] = len(sources)
            part = solver.solve([atom, *tests], inner=True)
            frame = part.frame.select(*(F.col(part.names[v]).alias(f"c{n}") for n, v in enumerate(variables)))
            frame = frame if part.unique or part.rare or not variables else frame.distinct()
            sources.append(Source(frame, tuple(part.kinds[v] for v in variables)))
        readings.append(Reading(known[form], variables))
    return sources, readings


def _form(atom: Atom, variables: Sequence[Variable], tests: Iterable[Comparison]) -> Hashable:
    """An atom with its tests up to names of variables: equal forms have equal rows."""
    numbers: dict[Term, int] = {variable: n for n, variable in enumerate(variables)}

    def numbered(term: Term) -> Hashable:
        return numbers.get(term, term)

    alike = set()
    for test in tests:
        ends = numbered(test.left), numbered(test.right)
        turned = test.op in _TURNED
        alike.add((_TURNED.get(test.op, test.op), test.kind, ends[::-1] if turned else ends))
    return atom.relation, tuple(map(numbered, atom.args)), frozenset(alike)


def _variables(atom: Atom) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(v for arg in atom.args for v in variables_of(arg)))


def _tested(test: Comparison) -> set[Variable]:
    return {*variables_of(test.left), *variables_of(test.right)}


def _left(join: CyclicJoin) -> list[Comparison]:
    """The tests that no source has applied."""
    return [test for test in join.tests if not any(_tested(test) <= set(_variables(atom)) for atom in join.atoms)]


def _looked_at(sources: Sequence[Source], readings: Sequence[Reading]) -> tuple[list[int], float]:
    """The sizes of the sources, and the number of answers of the first two atoms."""
    from pyspark.sql import functions as F

    first, *others = readings
    nearest = max(others, key=lambda other: len(set(other.variables) & set(first.variables)))
    keys = [v for v in first.variables if v in nearest.variables]
    alone = [n for n in range(len(sources)) if not keys or n not in (first.source, nearest.source)]
    nothing, one = F.lit(0).cast("bigint"), F.lit(1).cast("bigint")
    size, none = F.count(one).cast("double"), F.lit(0.0)
    rows = [sources[n].frame.agg(size).select(F.lit(n), "*", none, none) for n in alone]
    if keys:  # count the first two by key, which gives their sizes as well
        sides = [
            sources[reading.source].frame.select(
                *(F.col(f"c{reading.variables.index(v)}").alias(f"k{n}") for n, v in enumerate(keys)),
                (one if reading is first else nothing).alias("a"),
                (nothing if reading is first else one).alias("b"),
            )
            for reading in (first, nearest)
        ]
        counted = sides[0].union(sides[1]).groupBy(*(f"k{n}" for n in range(len(keys))))
        a, b = F.col("a").cast("double"), F.col("b").cast("double")
        sums = [F.coalesce(F.sum(term), F.lit(0.0)) for term in (a, b, a * b)]
        rows.append(counted.agg(F.sum("a").alias("a"), F.sum("b").alias("b")).agg(*sums).select(F.lit(-1), "*"))
    found = {row[0]: row[1:] for row in reduce(lambda a, b: a.union(b), rows).collect()}
    sizes = {n: int(found[n][0]) for n in alone}
    if keys:
        sizes |= {first.source: int(found[-1][0]), nearest.source: int(found[-1][1])}
    answers = found[-1][2] if keys else float(sizes[first.source] * sizes[nearest.source])
    return [sizes[n] for n in range(len(sources))], answers


# ── the program of a task ────────────────────────────────────────────────────────────────────


def _named(bit: int) -> str:
    return f"role{bit}"


def _program(program: Program, rule: Rule, kinds: Mapping[Variable, Kind]) -> Program:
    """The join as a program: one rule, and its relations."""
    relations = {}
    for atom in (rule.head, *(literal for literal in rule.body if isinstance(literal, Atom))):
        columns = tuple(Column(v.name, kinds[v]) for v in atom.args if isinstance(v, Variable))
        relations[atom.relation] = Relation(atom.relation, columns)
    return evolve(
        program,
        relations=relations,
        rules=(rule,),
        facts={},
        subsumptions=(),
        inputs=(),
        outputs=(),
        printsizes=(),
        limits={},
        functors={},
    )
