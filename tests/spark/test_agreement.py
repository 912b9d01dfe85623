"""Random programs of every construct equal the reference evaluator on Spark."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import generators
import partial_programs
import pytest
from generators import DECLARATIONS, SHAPES
from hostile_names import hostile
from hypothesis import HealthCheck, given, settings
from living import program_of
from specs import tiny

from everlog.core.evaluate import reference
from everlog.core.program import Program, Row
from everlog.core.program.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.spark_backend.column_types import fetch, kinds_of
from everlog.spark_backend.evaluate import evaluate, telling
from everlog.spark_backend.frames.expressions import NotOnSpark
from everlog.spark_backend.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


def agree(spark: SparkSession, program: Program, inputs: Any, way: str) -> None:
    """Spark has the relations of the reference, and fails exactly where it fails."""
    expected: Any = None
    with suppress(EvaluationError):
        expected = reference.evaluate(program, inputs)
    with tiny(spark):
        rows = None
        with nullcontext() if expected is not None else pytest.raises(EvaluationError):
            found = evaluate(spark, program, inputs, Settings(recursion=way))
            with telling(program):
                rows = fetch({name: (found[name], kinds_of(r)) for name, r in program.relations.items()})
        if expected is None:
            return
        assert rows is not None
        for name in program.relations:
            assert frozenset(rows[name]) == expected[name], name
            assert len(rows[name]) == len(expected[name]), f"{name}: duplicates"
        found.release()


def random_programs(way: str, examples: int) -> Any:
    @settings(max_examples=examples, deadline=None, suppress_health_check=_HEALTH)
    @given(text=generators.programs(), inputs=generators.facts())
    def test(spark: SparkSession, text: str, inputs: Any) -> None:
        program = program_of(text)
        try:
            agree(spark, program, inputs, way)
        except NotOnSpark:
            assert "autoinc" in text

    return test


test_random_programs_agree_with_the_reference = random_programs("auto", 8)
test_random_programs_agree_when_recursion_is_iterated = random_programs("iterated", 3)
test_random_programs_agree_when_recursion_is_decomposed = random_programs("decomposed", 4)
test_many_random_programs = pytest.mark.deep(random_programs("auto", 1000))
test_many_random_programs_iterated = pytest.mark.deep(random_programs("iterated", 300))
test_many_random_programs_decomposed = pytest.mark.deep(random_programs("decomposed", 300))


def hostile_programs(first: int, last: int) -> Any:
    def test(spark: SparkSession) -> None:
        """Users' names and constants that equal our identifiers and code."""
        for seed in range(first, last):
            case = hostile(seed)
            facts: dict[str, list[Row]] = {}
            for name, row in case.rows:
                facts.setdefault(name, []).append(row)
            try:
                agree(spark, case.program, facts, "auto")
            except NotOnSpark:
                assert "autoinc" in case.text

    return test


test_hostile_names_and_constants_agree = hostile_programs(0, 6)
test_many_hostile_names_and_constants_agree = pytest.mark.deep(hostile_programs(0, 100))


def failing_programs(examples: int) -> Any:
    @settings(max_examples=examples, deadline=None, suppress_health_check=_HEALTH)
    @given(case=partial_programs.cases())
    def test(spark: SparkSession, case: generators.Case) -> None:
        text, _, stream = case
        facts: dict[str, dict[Any, None]] = {}
        for name, row, insert in (change for step in stream for change in step):
            if insert:
                facts.setdefault(name, {})[row] = None
            else:
                facts.setdefault(name, {}).pop(row, None)
        agree(spark, program_of(text), facts, "iterated")

    return test


test_programs_fail_where_the_reference_does = failing_programs(8)
test_many_programs_fail_where_the_reference_does = pytest.mark.deep(failing_programs(300))


@pytest.mark.deep
@pytest.mark.parametrize("way", ["auto", "iterated", "decomposed"])
@pytest.mark.parametrize("name", sorted(SHAPES))
def test_each_shape_agrees_with_the_reference(spark: SparkSession, name: str, way: str) -> None:
    @settings(max_examples=5, deadline=None, suppress_health_check=_HEALTH)
    @given(inputs=generators.facts())
    def test(inputs: Any) -> None:
        try:
            agree(spark, compile_text(f"{DECLARATIONS}\n{SHAPES[name]}\n"), inputs, way)
        except NotOnSpark:
            assert "autoinc" in SHAPES[name]

    test()
