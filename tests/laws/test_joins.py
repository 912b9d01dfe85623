"""Every strategy for joins: reported changes sum to the answers from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from join_cases import Step, cases, joined, states, told
from oracles.bags import BagView

from everlog.core.classify.query import Query
from everlog.core.joins.join_strategies import JOINS, view_of
from everlog.core.joins.leapfrog import Bound, leapfrog
from everlog.core.joins.view import Asked, JoinView, Weighted
from everlog.core.program import Row

CONSTANT_DELAY = ["view_tree", "calibrated", "generations", "heavy_light", "factorized"]


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


@pytest.mark.parametrize("strategy", [name for name, strategy in JOINS.items() if strategy.totals])
@given(case=cases(), data=st.data())
def test_weights_are_sums_of_products(strategy: str, case: tuple[Query, list[Step]], data: st.DataObject) -> None:
    """Values around zero, so that sums of different answers could cancel."""
    query, stream = case
    assume(query.variables and served(strategy, query))
    kept = tuple(v for v in query.variables if v in query.free)
    summed = tuple(data.draw(st.lists(st.sampled_from(query.variables), min_size=1, max_size=3)))
    shifted = [(atom, tuple(value - 1 for value in row), insert) for atom, row, insert in stream]
    view = view_of(strategy, Asked(query, kept, summed=summed))
    total: Counter[Row] = Counter()
    for (atom, row, insert), answers in states(query, shifted):
        total.update(told(view, atom, row, insert))
        expected: Counter[Row] = Counter()
        for answer in answers:
            values = dict(zip(query.variables, answer, strict=True))
            expected[tuple(values[v] for v in kept)] += prod(values[v] for v in summed)
        assert {a: n for a, n in total.items() if n} == {a: n for a, n in expected.items() if n}
        found: Counter[Row] = Counter()
        for answer, weight in view.answers():
            found[answer] += weight
        assert {a: n for a, n in found.items() if n} == {a: n for a, n in expected.items() if n}
        view.check()


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


@pytest.mark.parametrize("strategy", CONSTANT_DELAY)
@settings(max_examples=30)
@given(case=cases(), numbers=st.lists(st.integers(1, 3), min_size=1))
def test_bags_count_every_choice_of_rows(
    strategy: str, case: tuple[Query, list[Step]], numbers: list[int]
) -> None:
    """Section 8 of the paper: rows that are there several times."""
    query, stream = case
    if not served(strategy, query):
        return
    bags = BagView(strategy, query)
    given: list[Counter[Row]] = [Counter() for _ in query.atoms]
    total: Counter[Row] = Counter()
    for step, (atom, row, insert) in enumerate(stream):
        times = numbers[step % len(numbers)] if insert else -min(2, given[atom][row])
        given[atom][row] += times
        for answer, change in bags.change(atom, row, times):
            total[answer] += change
        present = [[row for row, number in rows.items() if number] for rows in given]
        expected = {
            answer: prod(
                rows[tuple(answer[query.variables.index(v)] for v in atom.variables)]
                for rows, atom in zip(given, query.atoms, strict=True)
            )
            for answer in joined(query, present)
        }
        assert {answer: number for answer, number in total.items() if number} == expected
        assert dict(bags.answers()) == expected
        bags.check()


# ── enumeration ──────────────────────────────────────────────────────────────────────────────


def gaps(view: JoinView, answers: Iterable[Weighted]) -> list[int]:
    """The steps before each answer, the first one too, and after the last."""
    found, before = [], view.steps
    for _ in answers:
        found.append(view.steps - before)
        before = view.steps
    return [*found, view.steps - before]


@pytest.mark.parametrize("strategy", CONSTANT_DELAY)
@settings(max_examples=30)
@given(case=cases())
def test_each_answer_comes_after_a_constant_number_of_steps(strategy: str, case: tuple[Query, list[Step]]) -> None:
    """The answers of a view, and those of one row once it was looked for."""
    query, stream = case
    if not served(strategy, query):
        return
    view = view_of(strategy, Asked.full(query, counting=True))
    most = len(query.variables) + len(query.atoms)
    for (atom, row, insert), _ in states(query, stream):
        if not insert and row in view.rows(atom):
            assert max(gaps(view, view.delta(atom, row))) <= most
        changed = (view.insert if insert else view.delete)(atom, row)
        if insert and changed:
            assert max(gaps(view, view.delta(atom, row))) <= most
        assert max(gaps(view, view.answers())) <= most


@pytest.mark.parametrize("strategy", CONSTANT_DELAY)
@pytest.mark.parametrize("size", [100, 1600])
def test_no_gap_grows_with_dead_ends(strategy: str, size: int) -> None:
    """Hubs whose partners mostly lead nowhere, half of them loaded and half inserted."""
    query = Query.of("R(a, b)", "S(b, c)", "T(a, c)")
    half = [(0, 3 * n) for n in range(size // 2)]
    view = view_of(strategy, Asked.full(query, counting=True))
    view.load({0: [(0, n) for n in range(size)], 1: [(n, n % 5) for n in range(size)], 2: half})
    for n in range(size // 2):
        view.insert(2, (n % 7, 5 + n))
    view.insert(2, (0, 4))
    found = gaps(view, view.answers())
    assert len(found) > 1
    assert max(found) <= len(query.variables) + len(query.atoms)


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
