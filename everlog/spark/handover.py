"""From Spark to a living database and back, by whole Arrow columns.

A program is evaluated on Spark; then the in-process engine takes over, and applies single updates
in milliseconds.  The base facts travel, and the facts of `taken` relations as Spark has computed
them: the rules for a taken relation stay behind with all that they read, so a result that fits into
memory can be maintained here even if its sources do not fit.  Tables, indexes, derivation counts
and ranks are built here in one bulk step.

In the other direction, relations of a database become DataFrames, inputs of `spark_backend`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from everlog.api.database import Database
from everlog.core.program import Program, Row, atoms_of
from everlog.core.program.fact_rows import declared

if TYPE_CHECKING:
    from everlog.spark_backend.spark_types import DataFrame, SparkSession


class Disagreement(AssertionError):
    """The in-process engine and Spark have computed different relations: a bug."""


def database_from_spark(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, DataFrame] | None = None,
    *,
    wanted: Collection[str] | None = None,
    taken: Collection[str] = (),
    verify: bool = False,
    **options: Any,
) -> Database:
    """A database in this process that continues from Spark's result.

    `inputs` are the base facts of relations, as for `spark_backend.evaluate`.  `taken` relations
    are evaluated on Spark, and their facts are base facts here: inserts change them, but no longer
    their rules.  `wanted` (default: all that is left) are the relations to maintain, with what they
    read.  `verify` evaluates them on Spark as well, and compares sizes.  `options` are those of
    `Database`.
    """
    from everlog.spark_backend.evaluate import evaluate_plan, telling
    from everlog.spark_backend.inputs import frame_of_input
    from everlog.spark_backend.plan import plan

    inputs = dict(inputs or {})
    for name in (*inputs, *taken, *(wanted or ())):
        declared(program.relations, name)
    kept = cut_program(program, wanted, taken)
    planned = plan(program) if taken or verify else None
    with telling(program):
        result = evaluate_plan(spark, planned, inputs, wanted=list(taken)) if planned is not None and taken else {}
        frames = {name: result[name] for name in taken if name in kept.relations}
        for name, source in inputs.items():
            if name in kept.relations and name not in taken:
                frames[name] = frame_of_input(spark, source, program.relations[name])
        facts = {name: _rows(program, name, frame) for name, frame in frames.items()}
        database = Database(kept, facts=facts, **options)
        if planned is not None and verify:
            _compare(evaluate_plan(spark, planned, inputs, wanted=list(kept.relations)), database)
    return database


def cut_program(program: Program, wanted: Collection[str] | None, taken: Collection[str]) -> Program:
    """The program without the rules for `taken` relations and what only they read.

    >>> from everlog import compile_text
    >>> text = '''.decl a(x:number) .decl b(x:number) .decl c(x:number)
    ...           b(x) :- a(x).  c(x) :- b(x), x > 1.'''
    >>> cut = cut_program(compile_text(text), None, ["b"])
    >>> list(cut.relations), [str(rule) for rule in cut.rules]
    (['b', 'c'], ['c(x) :- b(x), x > 1.'])
    """
    reads: dict[str, set[str]] = {name: set() for name in program.relations}
    bodies = [(rule.head.relation, rule.body) for rule in program.rules]
    bodies += [(s.dominated.relation, s.body) for s in program.subsumptions]
    for head, body in bodies:
        if head not in taken:
            reads[head].update(atom.relation for atom, _ in atoms_of(body))
    if wanted is None:
        below = _reached(set(taken), _reads_of(program)) - set(taken)
        above = {name for name in program.relations if name not in below}
        wanted = above if taken else set(program.relations)
    kept = _reached(set(wanted), reads)
    return evolve(
        program,
        relations={name: relation for name, relation in program.relations.items() if name in kept},
        rules=tuple(r for r in program.rules if r.head.relation in kept and r.head.relation not in taken),
        subsumptions=tuple(
            s for s in program.subsumptions if s.dominated.relation in kept and s.dominated.relation not in taken
        ),
        facts={name: rows for name, rows in program.facts.items() if name in kept and name not in taken},
        inputs=tuple(d for d in program.inputs if d.relation in kept),
        outputs=tuple(d for d in program.outputs if d.relation in kept),
        printsizes=tuple(d for d in program.printsizes if d.relation in kept),
        limits={name: size for name, size in program.limits.items() if name in kept and name not in taken},
    )


def _reads_of(program: Program) -> dict[str, set[str]]:
    reads: dict[str, set[str]] = {name: set() for name in program.relations}
    for rule in program.rules:
        reads[rule.head.relation].update(atom.relation for atom, _ in atoms_of(rule.body))
    return reads


def _reached(start: set[str], reads: Mapping[str, set[str]]) -> set[str]:
    found, waiting = set(start), list(start)
    while waiting:
        new = reads[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def _rows(program: Program, name: str, frame: DataFrame) -> list[Row]:
    from everlog.spark_backend.column_types import kinds_of, rows_of_frame

    return list(rows_of_frame(frame, kinds_of(program.relations[name])))


def _compare(result: Mapping[str, DataFrame], database: Database) -> None:
    for name in database.relations:
        here, there = database.size(name), result[name].count()
        if here != there:
            raise Disagreement(f"`{name}` has {here} facts in process and {there} on Spark")


def database_to_spark(
    database: Database, spark: SparkSession, relations: Iterable[str] | None = None, *, given: bool = False
) -> dict[str, DataFrame]:
    """The relations of a database as DataFrames with their declared columns.

    With `given=True` they hold only base facts, as inputs of `spark_backend.evaluate`.
    """
    from everlog.spark_backend.column_types import frame_of_rows, kinds_of, named

    frames = {}
    for name in database.relations if relations is None else relations:
        relation = declared(database.relations, name)
        rows = database.given(name) if given else database.rows(name)
        frames[name] = named(frame_of_rows(spark, rows, kinds_of(relation)), relation)
    return frames
