"""Maps to a best value on Spark, by grouping: against the reference, and against Dijkstra."""

from __future__ import annotations

import random
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import pytest
from specs import tiny

from everlog.core.evaluate import reference
from everlog.core.program.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.spark_backend.column_types import fetch, kinds_of
from everlog.spark_backend.evaluate import evaluate, telling
from everlog.spark_backend.plan import explain
from everlog.spark_backend.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BASE = ".decl arc(x:number, y:number, w:number)  .decl at(x:number, d:number)  "
PROGRAMS = {
    "shortest": ".decl best(x:number, d:number)  best(x, min(d)) :- at(x, d).  "
    "best(y, min(d + w)) :- best(x, d), arc(x, y, w).",
    "labels": ".decl best(x:number, l:number)  best(x, min(x)) :- arc(x, _, _) ; arc(_, x, _).  "
    "best(y, min(l)) :- best(x, l), (arc(x, y, _) ; arc(y, x, _)).",
    "widest, unsigned": ".decl best(d:unsigned, x:number)  best(max(itou(d)), x) :- at(x, d).  "
    "best(max(min(d, itou(w))), y) :- best(d, x), arc(x, y, w).",
    "symbols": ".decl best(x:number, s:symbol)  best(x, min(to_string(d))) :- at(x, d).  "
    "best(y, min(s)) :- best(x, s), arc(x, y, _).",
    "downhill": ".decl best(x:number, d:number)  best(x, min(d)) :- at(x, d).  "
    "best(y, min(d + w - 3)) :- best(x, d), arc(x, y, w), x < y.",
    "two maps": ".decl best(x:number, d:number)  .decl other(d:number, x:number)  best(x, min(d)) :- at(x, d).  "
    "other(min(d + w), y) :- best(x, d), arc(x, y, w).  best(y, min(d)) :- other(d, x), arc(x, y, _).",
    "pairs": ".decl best(d:number, x:number, y:number)  best(min(w), x, y) :- arc(x, y, w).  "
    "best(min(d + w), x, z) :- best(d, x, y), arc(y, z, w).",
    "several rules": ".decl best(x:number, d:number)  best(x, min(d)) :- at(x, d).  best(x, min(w)) :- arc(x, _, w).",
}


def found(spark: SparkSession, text: str, inputs: Any, settings: Settings) -> dict[str, Any]:
    program = compile_text(text)
    with tiny(spark), telling(program):
        made = evaluate(spark, program, inputs, settings)
        rows = fetch({name: (made[name], kinds_of(r)) for name, r in program.relations.items()})
    assert made.ways["best"] == "iterated"
    assert all(len(set(some)) == len(some) for some in rows.values())
    return {name: set(some) for name, some in rows.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rounds_equal_the_reference(name: str, spark: SparkSession) -> None:
    chance = random.Random(name)
    arcs = {(x, chance.randrange(12), chance.randrange(9)) for x in range(12) for _ in range(2)}
    inputs = {"arc": sorted(arcs), "at": [(0, 0), (0, 4), (3, 7)]}
    text = BASE + PROGRAMS[name]
    expected = reference.evaluate(compile_text(text), inputs)
    assert found(spark, text, inputs, Settings(recursion="iterated", compact=1)) == expected


def dijkstra(arcs: list[tuple[int, int, int]], start: int) -> dict[int, int]:
    settled: dict[int, int] = {}
    waiting = [(0, start)]
    while waiting:
        d, x = heappop(waiting)
        if x not in settled:
            settled[x] = d
            for a, y, w in arcs:
                if a == x:
                    heappush(waiting, (d + w, y))
    return settled


def test_shortest_paths_are_those_of_dijkstra(spark: SparkSession) -> None:
    chance = random.Random(5)
    arcs = [(chance.randrange(60), chance.randrange(60), chance.randrange(1, 50)) for _ in range(240)]
    inputs = {"arc": arcs, "at": [(0, 0)]}
    best = found(spark, BASE + PROGRAMS["shortest"], inputs, Settings(recursion="iterated"))["best"]
    assert dict(best) == dijkstra(arcs, 0)


def test_a_cycle_that_improves_for_ever_is_an_error(spark: SparkSession) -> None:
    inputs = {"arc": [(0, 1, 1), (1, 0, -2)], "at": [(0, 0)]}
    with pytest.raises(EvaluationError, match="for ever"):
        found(spark, BASE + PROGRAMS["shortest"], inputs, Settings(recursion="iterated"))


def test_what_is_computed_in_process_says_why() -> None:
    assert "best: iterated (the best value of each key, by grouping" in told(PROGRAMS["shortest"])
    assert "floats" in told(
        ".decl best(x:number, d:float)  best(x, min(to_float(d))) :- at(x, d).  "
        "best(y, min(d)) :- best(x, d), arc(x, y, _)."
    )
    assert "no key" in told(
        ".decl best(d:number)  best(min(d)) :- at(_, d).  best(min(d + w)) :- best(d), arc(_, _, w)."
    )


def told(rules: str) -> str:
    return explain(compile_text(BASE + rules))
