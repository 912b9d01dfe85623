"""MVIVM: the literal and the fast algorithm agree with recomputation."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from join_cases import Step, cases, joined, states, told
from oracles.backward import Backward
from oracles.lifespans import (
    Lived,
    canonical_partition,
    glued,
    interval,
    partition_of_database,
    partition_of_tuple,
    time_join,
)
from oracles.literal import Literal, components

from everlog.core.classify.multivariate import component
from everlog.core.classify.query import Query
from everlog.core.joins.generations import Generations
from everlog.core.joins.join_strategies import view_of
from everlog.core.joins.view import Asked
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
def test_algorithm_1_reports_what_recomputation_reports(case: tuple[Query, list[Step]]) -> None:
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


# ── age generations ──────────────────────────────────────────────────────────────────────────


@st.composite
def hostile_cases(draw: st.DrawFn) -> tuple[Query, list[Step]]:
    """A query and a stream that strains a clock: undo, windows, one hot row, refills."""
    query, stream = draw(cases(most_steps=20))
    kind = draw(st.sampled_from(["as it is", "undo", "window", "hot", "clear and refill"]))
    inserts = [(atom, row, True) for atom, row, _ in stream]
    if kind == "undo":
        return query, [*inserts, *((atom, row, False) for atom, row, _ in reversed(inserts))]
    if kind == "window":
        width = draw(st.integers(1, 6))
        gone = [(atom, row, False) for atom, row, _ in inserts]
        return query, [
            s for n, step in enumerate(inserts) for s in ([gone[n - width]] if n >= width else []) + [step]
        ]
    if kind == "hot":
        atom, row, _ = draw(st.sampled_from(stream))
        return query, [s for step in inserts for s in (step, (atom, row, True), (atom, row, False))]
    if kind == "clear and refill":
        return query, [*inserts, *((atom, row, False) for atom, row, _ in inserts), *inserts]
    return query, stream


@given(
    case=hostile_cases(),
    fan_out=st.integers(2, 3),
    shortest=st.integers(2, 40),
    bulk=st.integers(0, 10),
    between=st.integers(0, 30),
)
@settings(max_examples=settings().max_examples * 2)
def test_generations_report_what_recomputation_reports(
    case: tuple[Query, list[Step]], fan_out: int, shortest: int, bulk: int, between: int
) -> None:
    """With ticks and resets at every few updates; parts of the stream are bulk loads."""
    query, stream = case
    view = Generations(Asked.full(query), fan_out, shortest)
    relations: list[set[Row]] = [set() for _ in query.atoms]
    for atom, row, insert in stream[:bulk]:
        (relations[atom].add if insert else relations[atom].discard)(row)
    view.load(dict(enumerate(relations)))
    total = Counter(joined(query, relations))
    for number, (atom, row, insert) in enumerate(stream[bulk:]):
        if number == between:
            more = {atom: [row for a, row, _ in stream[-4:] if a == atom] for atom in range(len(relations))}
            view.load(more)
            for a, rows in more.items():
                relations[a].update(rows)
            total = Counter(joined(query, relations))
        (relations[atom].add if insert else relations[atom].discard)(row)
        change = told(view, atom, row, insert)
        assert set(change.values()) <= {1 if insert else -1}, "no answer is told twice"
        total.update(change)
        expected = joined(query, relations)
        assert {answer for answer, number in total.items() if number} == expected
        answers = [answer for answer, _ in view.answers()]
        assert len(answers) == len(set(answers)), "enumeration has no duplicates"
        assert set(answers) == expected
        view.check()


@given(case=cases(most_atoms=3, most_steps=12))
@settings(max_examples=20)
def test_fast_and_literal_report_the_same(case: tuple[Query, list[Step]]) -> None:
    query, stream = case
    literal, fast = Literal(query), Generations(Asked.full(query), 2, 4)
    for atom, row, insert in stream:
        change = told(fast, atom, row, insert)
        changed = (literal.insert if insert else literal.delete)(atom, row)
        deltas = {answer for answer, _ in literal.delta(atom, row)} if changed else set()
        assert {answer for answer, number in change.items() if number} == deltas
        assert {a for a, _ in fast.answers()} == {a for a, _ in literal.answers()}


def test_a_toggled_row_finds_its_residual_as_it_was() -> None:
    """Disjoint neighbourhoods, which first-order deltas scan each time."""
    query = Query.of("R(a, b)", "S(b, c)", "T(a, c)")
    steps = {}
    for size in (1000, 8000):
        view = Generations(Asked.full(query))
        view.load({1: [(0, 2 * n) for n in range(size)], 2: [(0, 2 * n + 1) for n in range(size)]})
        for _ in range(200):
            told(view, 0, (0, 0), True)
            told(view, 0, (0, 0), False)
        steps[size] = view.steps
    assert steps[8000] < 3 * steps[1000] + 20_000


@pytest.mark.parametrize(
    "atoms",
    [
        "E(x, y) F(z, y) G(x, z)",
        "R(a, b) S(b, c) T(c, d)",
        "T(p, q) R(q, r) S(s, p)",
        "R(a, b) S(b, c) T(c, d) U(a, d)",
        "R(a) S(a, b) T(b, c) U(c)",
        "R(a, b) S(b, c) T(a, c) U(c)",
        "R(a, b) S(b, c) T(a, c) U(b, d) V(a, d)",
        "R(a, b, c) S(a) T(b) U(c)",
    ],
)
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_heavy_and_light_values_report_what_recomputation_reports(atoms: str, data: st.DataObject) -> None:
    """Few values and many updates, so that values and the threshold change often."""
    query = Query.of(*re.findall(r"\w\([^)]*\)", atoms))
    most = data.draw(st.integers(1, 6))
    values = st.integers(0, most)
    update = st.tuples(st.integers(0, len(query.atoms) - 1), st.tuples(values, values, values), st.integers(0, 3))
    drawn = data.draw(st.lists(update, max_size=120))
    stream = [(atom, row[: len(query.atoms[atom].variables)], sign > 0) for atom, row, sign in drawn]
    if data.draw(st.booleans()):
        stream += [(atom, row, False) for atom, row, _ in stream]
    view = view_of("heavy_light", Asked.full(query))
    total: Counter[Row] = Counter()
    for (atom, row, insert), expected in states(query, stream):
        change = told(view, atom, row, insert)
        assert set(change.values()) <= {1 if insert else -1}, "no answer is told twice"
        total.update(change)
        assert {answer for answer, number in total.items() if number} == expected
        view.check()
    assert {answer for answer, _ in view.answers()} == joined(
        query, [set(view.rows(n)) for n in range(len(query.atoms))]
    )


# ── the backward reduction ───────────────────────────────────────────────────────────────────


@st.composite
def component_instances(draw: st.DrawFn) -> tuple[Query, tuple[int, ...], list[set[Row]]]:
    """An order of the atoms of a query, and an arbitrary instance of its component."""
    query = draw(
        st.sampled_from(
            [
                Query.of("R(a, b)", "S(b, c)", "T(a, c)"),
                Query.of("R(a, b)", "S(b, c)", "T(c, d)"),
                Query.of("R(a)", "S(a, b)", "T(b)"),
            ]
        )
    )
    order = tuple(draw(st.permutations(range(3))))
    values, times = st.integers(0, 1), st.sampled_from("xyz")
    instance: list[set[Row]] = []
    for parts, atom in enumerate(order, 1):
        width = len(query.atoms[atom].variables)
        row = st.tuples(st.tuples(*[times] * parts), st.tuples(*[values] * width)).map(lambda two: two[0] + two[1])
        instance.append(draw(st.sets(row, max_size=8)))
    return query, order, instance


@given(case=component_instances())
@settings(max_examples=25)
def test_examples_6_5_and_7_3_whatever_maintains_a_query_evaluates_its_components(
    case: tuple[Query, tuple[int, ...], list[set[Row]]],
) -> None:
    query, order, instance = case
    extended = component(query, order)
    names = extended.variables
    wanted = [*(v for v in names if v not in query.variables), *query.variables]
    places = [names.index(v) for v in wanted]
    expected = {tuple(answer[p] for p in places) for answer in joined(extended, instance)}
    backward = Backward.of(query, order, instance)
    assert backward.answers() == expected
    for strategy in ("delta", "calibrated", "generations", "heavy_light"):
        assert backward.answers_through(view_of(strategy, Asked.full(query))) == expected
