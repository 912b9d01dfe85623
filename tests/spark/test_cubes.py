"""A cyclic join inside the tasks finds each answer of the reference exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from specs import tiny

from everlog.core.evaluate import reference
from everlog.core.program import Program, Variable
from everlog.dsl.check import compile_text
from everlog.spark_backend.column_types import fetch, kinds_of
from everlog.spark_backend.cyclic.cells import (
    Load,
    Reading,
    best_split,
    even_codes,
    in_cells,
    load_of,
    murmur3,
    role_of,
)
from everlog.spark_backend.cyclic.cyclic_joins import cyclic_join
from everlog.spark_backend.evaluate import evaluate
from everlog.spark_backend.plan import explain
from everlog.spark_backend.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

E = ".decl e(x:number, y:number) .input e\n.decl label(x:number, s:symbol) .input label\n.decl q(x:number, y:number, z:number)\n"
BODIES = {
    "triangle": "q(x, y, z) :- e(x, y), e(y, z), e(x, z), x < y, y < z.",
    "projected": "q(x, 1, x + 1) :- e(x, y), e(y, z), e(z, x).",
    "nullary test and constant": "q(x, y, z) :- e(x, y), e(y, z), e(z, x), e(1, 2), x != 2.",
    "with negation and a count": "q(x, y, n) :- e(x, y), e(y, z), e(x, z), !e(z, x), n = count : { e(x, _) }.",
    "four atoms": "q(a, b, c) :- e(a, b), e(b, c), e(c, d), e(d, a), a <= c.",
    "through symbols": 'q(x, y, 0) :- label(x, s), label(y, s), e(x, y), s != "a".',
    "tests turned round": "q(x, y, z) :- e(x, y), e(y, z), e(x, z), x < y, z > y.",
    "a test for one atom": "q(x, y, z) :- e(x, y), e(y, z), e(z, x), x != 2, y != z.",
    "wildcards and repeats": "q(x, y, z) :- e(x, y), e(y, z), e(z, x), e(x, x), e(y, _).",
}
NODES = st.integers(0, 4)
EDGES = st.frozensets(st.tuples(NODES, NODES), max_size=14)
LABELS = st.frozensets(st.tuples(NODES, st.sampled_from(["a", "b", "é", "\udcff"])), max_size=6)


def agree(spark: SparkSession, program: Program, inputs: Any, partitions: int) -> None:
    expected = reference.evaluate(program, inputs)["q"]
    with tiny(spark):
        found = evaluate(spark, program, inputs, Settings(cyclic="cube", partitions=partitions), wanted=["q"])
        rows = fetch({"q": (found["q"], kinds_of(program.relations["q"]))})
        found.release()
    assert rows is not None
    assert sorted(rows["q"]) == sorted(expected)


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(sorted(BODIES)), edges=EDGES, labels=LABELS, partitions=st.sampled_from([1, 2, 4]))
def test_a_cube_finds_what_the_reference_finds(
    spark: SparkSession, name: str, edges: Any, labels: Any, partitions: int
) -> None:
    agree(spark, compile_text(E + BODIES[name]), {"e": edges, "label": labels}, partitions)


@pytest.mark.deep
@pytest.mark.parametrize("name", sorted(BODIES))
def test_many_cubes_find_what_the_reference_finds(spark: SparkSession, name: str) -> None:
    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(edges=EDGES, labels=LABELS, partitions=st.sampled_from([1, 2, 6]))
    def test(edges: Any, labels: Any, partitions: int) -> None:
        agree(spark, compile_text(E + BODIES[name]), {"e": edges, "label": labels}, partitions)

    test()


@pytest.mark.parametrize("name", sorted(BODIES))
def test_the_join_of_each_body_is_cyclic(name: str) -> None:
    assert cyclic_join(compile_text(E + BODIES[name]).rules[0]) is not None


@pytest.mark.parametrize(
    "body",
    [
        "q(x, y, z) :- e(x, y), e(y, z), e(z, _).",  # acyclic
        "q(x, y, z) :- e(x, y), e(y, z), e(x, z), 10 / x > y.",  # may fail
        "q(x, y, z) :- e(x, y), e(y, z), e(x, z + 1).",  # a computed argument
    ],
)
def test_what_is_not_cyclic_or_may_fail_stays_with_the_plan(body: str) -> None:
    assert cyclic_join(compile_text(E + body).rules[0]) is None


def test_a_cube_is_made_only_where_it_is_worth_it(spark: SparkSession) -> None:
    """A hub in the middle of many paths of which few close, and a sparse ring."""
    program = compile_text(E + BODIES["triangle"])
    hub = [(n, 500) for n in range(400)] + [(500, n) for n in range(501, 900)] + [(0, 501)]
    ring = [(n, n + 1) for n in range(800)] + [(5, 7)]
    for edges, worth in ((hub, True), (ring, False)):
        frame = spark.createDataFrame(edges, "c0 bigint, c1 bigint")
        found = evaluate(spark, program, {"e": frame, "label": []}, wanted=["q"])
        tasks = "MapInArrow" in found["q"]._jdf.queryExecution().toString()  # type: ignore[operator]
        assert (tasks, found["q"].count()) == (worth, 1)
        found.release()


def test_a_cell_that_would_be_too_large_is_cut_further() -> None:
    rule = compile_text(E + BODIES["triangle"]).rules[0]
    join = cyclic_join(rule)
    assert join is not None
    readings: Any = [Reading(n, atom.args) for n, atom in enumerate(join.atoms)]
    few, many = (best_split(readings, [1000, 1000, 1000], 2, load) for load in (5000, 300))
    assert sorted(few.values()) == [1, 1, 2]
    assert sorted(many.values()) == [4, 4, 4]


def test_atoms_of_one_relation_share_its_rows(spark: SparkSession) -> None:
    """Two cells need one copy of each edge, though three atoms read edges."""
    x, y, z = map(Variable, "xyz")
    readings = [Reading(0, (x, y)), Reading(0, (y, z)), Reading(0, (x, z))]
    split = best_split(readings, [1000], 2, 5000)
    assert load_of(readings, [1000], split) == Load(sent=1000, held=1500)
    roles = list(dict.fromkeys(role_of(reading, split) for reading in readings))
    bits = {role: bit for bit, role in enumerate(roles)}
    edges = [(n, n + 1) for n in range(50)]
    frame = spark.createDataFrame(edges, "c0 bigint, c1 bigint")
    rows = [tuple(row) for row in in_cells(frame, roles, bits, split).collect()]
    assert sorted(row[:2] for row in rows) == sorted(edges * 2)
    whole = next(bits[role] for role in roles if role.share(split) == 1)
    assert all(mark >> whole & 1 for *_, mark in rows)
    cut = sorted(row[:2] for row in rows if row[3] >> (1 - whole) & 1)
    assert cut == edges  # in one of the cells each


def test_repeated_rows_of_an_input_change_nothing(spark: SparkSession) -> None:
    program = compile_text(E + BODIES["triangle"])
    frame = spark.createDataFrame([(1, 2), (2, 3), (1, 3), (2, 3)], "c0 bigint, c1 bigint")
    for cyclic in ("cube", "plan"):
        found = evaluate(spark, program, {"e": frame, "label": []}, Settings(cyclic=cyclic), wanted=["q"])
        assert [tuple(row) for row in found["q"].collect()] == [(1, 2, 3)]
        found.release()


def test_each_cell_has_a_partition_of_its_own(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    codes = even_codes(7)
    frame = spark.createDataFrame([(code,) for code in codes], "cell int")
    assert [row[0] for row in frame.select(F.hash("cell")).collect()] == [murmur3(code) for code in codes]
    parts = frame.repartition(7, "cell").select(F.spark_partition_id()).distinct()
    assert parts.count() == 7


def test_explain_mentions_cyclic_joins() -> None:
    assert "cyclic" in explain(compile_text(E + BODIES["triangle"]))


def test_an_atom_that_computes_is_no_part_of_a_cyclic_join() -> None:
    text = ".decl e(x:number, y:number) .decl q(x:number)\nq(x) :- e(x, y), e(y, z), e({}, x)."
    (plain,), (computing,) = (compile_text(text.format(arg)).rules for arg in ("z", "z + 1"))
    assert cyclic_join(plain) is not None
    assert cyclic_join(computing) is None
