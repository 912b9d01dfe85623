"""Every strategy for joins: reported changes sum to the answers from scratch."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from join_cases import Step, cases, states, told

from everlog.core.classify.query import Query
from everlog.core.joins.join_strategies import JOINS, view_of
from everlog.core.joins.leapfrog import Bound, leapfrog
from everlog.core.joins.view import Asked, joined
from everlog.core.program import Row


def served(strategy: str, query: Query) -> bool:
    return not JOINS[strategy].refusal(query)


@pytest.mark.parametrize("strategy", JOINS)
@given(case=cases())
def test_told_deltas_sum_to_the_answers(strategy: str, case: tuple[Query, list[Step]]) -> None:
    query, stream = case
    if not served(strategy, query):
        return
    view = view_of(strategy, Asked.full(query))
    total: Counter[Row] = Counter()
    for (atom, row, insert), expected in states(query, stream):
        change = told(view, atom, row, insert)
        assert set(change.values()) <= {1 if insert else -1}, "no answer is told twice"
        total.update(change)
        assert {answer for answer, number in total.items() if number} == expected
        answers = list(view.answers())
        assert len(answers) == len(set(answers)), "enumeration has no duplicates"
        assert {answer for answer, _ in answers} == expected
        view.check()


@pytest.mark.parametrize("strategy", JOINS)
@given(case=cases())
def test_weights_count_the_answers_behind_a_projection(strategy: str, case: tuple[Query, list[Step]]) -> None:
    query, stream = case
    if not served(strategy, query):
        return
    kept = tuple(v for v in query.variables if v in query.free)
    places = [query.variables.index(v) for v in kept]
    view = view_of(strategy, Asked(query, kept))
    total: Counter[Row] = Counter()
    for (atom, row, insert), answers in states(query, stream):
        total.update(told(view, atom, row, insert))
        expected = Counter(tuple(answer[p] for p in places) for answer in answers)
        assert {a: n for a, n in total.items() if n} == dict(expected)
        found: Counter[Row] = Counter()
        for answer, weight in view.answers():
            found[answer] += weight
        assert found == expected


@pytest.mark.parametrize("strategy", JOINS)
@given(case=cases())
def test_a_bulk_load_is_the_same_as_single_inserts(strategy: str, case: tuple[Query, list[Step]]) -> None:
    query, stream = case
    if not served(strategy, query):
        return
    view = view_of(strategy, Asked.full(query))
    rows: dict[int, list[Row]] = {}
    for atom, row, insert in stream:
        if insert:
            rows.setdefault(atom, []).append(row)
    view.load(rows)
    view.check()
    expected = joined(query, [set(rows.get(n, ())) for n in range(len(query.atoms))])
    assert {answer for answer, _ in view.answers()} == expected


@pytest.mark.parametrize("strategy", ["delta", "calibrated", "view_tree"])
@given(case=cases(), low=st.integers(0, 2), data=st.data())
def test_ranges_only_leave_out_what_a_filter_would(
    strategy: str, case: tuple[Query, list[Step]], low: int, data: st.DataObject
) -> None:
    """Leapfrog over sorted tries: bounds skip only answers that violate them."""
    query, stream = case
    variables = query.variables
    if not variables or not served(strategy, query):
        return
    x, y = data.draw(st.sampled_from(variables)), data.draw(st.sampled_from(variables))
    ranges = (Bound(x, ">=", low, constant=True), *([Bound(x, "<", y)] if x != y else []))
    view = view_of(strategy, Asked.full(query, ranges=ranges))

    def keeps(answer: Row) -> bool:
        a, b = answer[variables.index(x)], answer[variables.index(y)]
        return a >= low and (x == y or a < b)  # type: ignore[operator]

    total: Counter[Row] = Counter()
    for (atom, row, insert), expected in states(query, stream):
        total.update({a: n for a, n in told(view, atom, row, insert).items() if keeps(a)})
        assert {a for a, n in total.items() if n} == set(filter(keeps, expected))
        assert set(filter(keeps, (a for a, _ in view.answers()))) == set(filter(keeps, expected))
        view.check()


@given(
    sets=st.lists(st.sets(st.integers(0, 20)), min_size=1, max_size=4),
    bounds=st.lists(st.tuples(st.sampled_from(["<", "<=", ">", ">="]), st.integers(-1, 21)), max_size=3),
)
@example(sets=[{1}], bounds=[])
def test_leapfrog_finds_what_all_have_within_the_bounds(
    sets: list[set[int]], bounds: list[tuple[str, int]]
) -> None:
    from sortedcontainers import SortedDict

    holds = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}
    common = set.intersection(*sets)
    expected = sorted(v for v in common if all(holds[op](v, limit) for op, limit in bounds))
    assert list(leapfrog([SortedDict.fromkeys(s, 1) for s in sets], bounds)) == expected
