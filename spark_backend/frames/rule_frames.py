"""The facts that a rule derives, and their unions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from everlog.core.program import Program, Rule, Variable
from everlog.spark_backend.column_types import HOLDS, TYPES
from everlog.spark_backend.cyclic.cubes import Cubes
from everlog.spark_backend.cyclic.cyclic_joins import CyclicJoin
from everlog.spark_backend.frames.bindings import Bindings, Facts
from everlog.spark_backend.frames.body_frames import Body, Lookup, without_repeats
from everlog.spark_backend.frames.expressions import Expressions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Rules:
    """Turns the rules of one program into frames; `cyclic` has those that are cyclic joins."""

    def __init__(self, spark: SparkSession, program: Program, cyclic: Mapping[Rule, CyclicJoin]) -> None:
        self.spark, self.program, self._cyclic = spark, program, cyclic
        self._numbers: Mapping[int, int] = {id(rule): number for number, rule in enumerate(program.rules)}
        self._written = {rule.written: number for number, rule in reversed(list(enumerate(program.rules)))}

    def number(self, rule: Rule) -> int:
        """The number of a rule, for errors; a generated rule has that of its origin."""
        known = self._numbers.get(id(rule))
        return self._written.get(rule.written, len(self._numbers)) if known is None else known

    def derived(self, rule: Rule, lookup: Lookup) -> Facts:
        """The facts that a rule derives, with `lookup` for its atoms."""
        join = self._cyclic.get(rule)
        body, expressions = self._solver(rule, lookup)
        return self._headed(rule, body, body.solve((*rule.body, *(join.implied if join else ()))), expressions)

    def cubed(self, rule: Rule, lookup: Lookup, join: CyclicJoin, cubes: Cubes) -> Facts | None:
        """The same, with the cyclic join inside the tasks; None if that is not worth it."""
        body, expressions = self._solver(rule, lookup)
        joined = cubes.joined(body, self.program, rule, self.number(rule), join)
        return None if joined is None else self._headed(rule, body, body.solve(join.rest, joined), expressions)

    def _solver(self, rule: Rule, lookup: Lookup) -> tuple[Body, Expressions]:
        expressions = Expressions(self.program, self.number(rule))
        return Body(self.spark, expressions, lookup), expressions

    def _headed(self, rule: Rule, body: Body, found: Bindings, expressions: Expressions) -> Facts:
        """The facts of the head, one for each binding; a binding's error is raised."""
        from pyspark.sql import functions as F

        kinds = [column.kind for column in self.program.relations[rule.head.relation].columns]
        columns = []
        for n, (arg, kind) in enumerate(zip(rule.head.args, kinds, strict=True)):
            found, value = body.attempts.value(arg, found)
            columns.append(value.cast(TYPES[kind]).alias(f"c{n}"))
        if found.error is not None:
            found = evolve(found, frame=found.frame.where(expressions.raising(found.error)))
        shown = {arg for arg in rule.head.args if isinstance(arg, Variable)}
        frame = found.frame.select(*columns) if columns else found.frame.select(F.lit(True).alias(HOLDS))
        whole = found.keys <= shown
        return Facts(frame, found.unique and whole, found.rare and whole)


def union(parts: Sequence[Facts]) -> Facts:
    """All rows of all parts."""
    frame: DataFrame = parts[0].frame
    for part in parts[1:]:
        frame = frame.union(part.frame)
    alone = len(parts) == 1
    return Facts(frame, alone and parts[0].unique, alone and parts[0].rare)


def distinct(facts: Facts) -> Facts:
    return facts if facts.unique else Facts(without_repeats(facts.frame, facts.rare))
