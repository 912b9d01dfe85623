"""MVIVM: the literal algorithm and the fast one tell the same changes as recomputation, on every kind of stream."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from join_cases import Step, cases, states

from everlog.core.classify.multivariate import components
from everlog.core.classify.query import Query
from everlog.core.joins.view import joined
from everlog.core.mvivm.lifespans import (
    Lived,
    canonical_partition,
    glued,
    interval,
    partition_of_database,
    partition_of_tuple,
    time_join,
)
from everlog.core.mvivm.literal import Literal
from everlog.core.program import Row

DEPTH = 4
spans = st.tuples(st.integers(1, 16), st.integers(1, 16)).map(lambda pair: (min(pair), max(pair)))


@given(span=spans)
def test_a_canonical_partition_covers_the_lifespan_once(span: tuple[int, int]) -> None:
    nodes = canonical_partition(*span, DEPTH)
    times = [t for node in nodes for t in range(interval(node, DEPTH)[0], interval(node, DEPTH)[1] + 1)]
    assert times == list(range(span[0], span[1] + 1))
    assert len(nodes) <= 2 * DEPTH


@given(one=spans, other=spans)
def test_lifespans_meet_exactly_where_a_node_is_a_prefix_of_another(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    meet = max(one[0], other[0]) <= min(one[1], other[1])
    nodes, others = canonical_partition(*one, DEPTH), canonical_partition(*other, DEPTH)
    assert meet == any(a.startswith(b) or b.startswith(a) for a in nodes for b in others)


@given(
    data=st.fixed_dictionaries(
        {
            n: st.lists(st.tuples(spans, st.tuples(st.integers(0, 1), st.integers(0, 1))), max_size=4)
            for n in range(3)
        }
    )
)
@settings(max_examples=25)
def test_theorem_b_3_the_partition_of_the_answers_is_the_answer_on_the_partitions(
    data: dict[int, list[Lived]],
) -> None:
    query = Query.of("R(a, b)", "S(b, c)", "T(a, c)")
    expected = {part for lived in time_join(query, data) for part in partition_of_tuple(lived, 1, DEPTH)}
    found: set[Row] = set()
    for order, extended in components(query):
        instance = partition_of_database(query, order, data, DEPTH)
        answers = joined(extended, [instance[atom] for atom in order])
        names = extended.variables
        times = [names.index(v) for v in names if v not in query.variables]
        values = [names.index(v) for v in query.variables]
        found |= {glued(tuple(answer[n] for n in (*times, *values)), 3) for answer in answers}
    assert found == expected


@given(case=cases(most_atoms=3, most_steps=14))
@settings(max_examples=25)
def test_algorithm_1_tells_what_recomputation_tells(case: tuple[Query, list[Step]]) -> None:
    query, stream = case
    literal = Literal(query)
    total: Counter[Row] = Counter()
    for (atom, row, insert), expected in states(query, stream):
        if (literal.insert if insert else literal.delete)(atom, row):
            for answer, _ in literal.delta(atom, row):
                total[answer] += 1 if insert else -1
        assert {answer for answer, number in total.items() if number} == expected
        assert {answer for answer, _ in literal.answers()} == expected
    literal.check()
