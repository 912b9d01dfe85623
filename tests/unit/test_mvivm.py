"""The paper's own objects: Table 1, Table 2, Figure 1, Eq. (15), Example 6.4."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
from oracles.lifespans import (
    Lived,
    canonical_partition,
    interval,
    partition_of_database,
    partition_of_tuple,
    time_join,
)
from oracles.literal import Literal

from everlog import Database
from everlog.core.classify.multivariate import component
from everlog.core.classify.query import Query
from everlog.core.engine import watch
from everlog.core.joins import auto
from everlog.core.joins.auto import Auto
from everlog.core.joins.generations import Generations
from everlog.core.joins.heavy_light import HeavyLight
from everlog.core.joins.view import Asked, joined

TRIANGLE = Query.of("R(A, B)", "S(B, C)", "T(A, C)")
R, S, T = 0, 1, 2
STREAM = [  # Table 1
    (R, ("a1", "b1"), True),
    (S, ("b1", "c1"), True),
    (T, ("a1", "c1"), True),
    (S, ("b2", "c1"), True),
    (S, ("b1", "c1"), False),
    (S, ("b2", "c1"), False),
    (T, ("a1", "c1"), False),
    (R, ("a1", "b1"), False),
]
FIGURE_1: dict[int, set[Lived]] = {
    R: {((1, 8), ("a1", "b1"))},
    S: {((2, 5), ("b1", "c1")), ((4, 6), ("b2", "c1"))},
    T: {((3, 7), ("a1", "c1"))},
}
ANSWER = ("a1", "b1", "c1")


def test_table_1_full_and_delta_results() -> None:
    literal = Literal(TRIANGLE)
    full = [set(), set(), {ANSWER}, {ANSWER}, set(), set(), set(), set()]
    deltas = [set(), set(), {ANSWER}, set(), {ANSWER}, set(), set(), set()]
    for (atom, row, insert), expected, changed in zip(STREAM, full, deltas, strict=True):
        assert (literal.insert if insert else literal.delete)(atom, row)
        assert {answer for answer, _ in literal.answers()} == expected
        assert {answer for answer, _ in literal.delta(atom, row)} == changed


def test_table_2_updates_of_the_time_extension() -> None:
    """For ever is the end of time, 16 here: one moment follows the paper's 8 updates."""
    literal = Literal(TRIANGLE)
    literal._begin(16)
    literal.until_reset = 100
    ever = literal.end
    expected = [
        {R: {((1, ever), ("a1", "b1"))}},
        {S: {((2, ever), ("b1", "c1"))}},
        {T: {((3, ever), ("a1", "c1"))}},
        {S: {((2, ever), ("b1", "c1")), ((4, ever), ("b2", "c1"))}},
        {S: {((2, 5), ("b1", "c1")), ((4, ever), ("b2", "c1"))}},
        {S: {((2, 5), ("b1", "c1")), ((4, 6), ("b2", "c1"))}},
        {T: {((3, 7), ("a1", "c1"))}},
        {R: {((1, 8), ("a1", "b1"))}},
    ]
    for (atom, row, insert), after in zip(STREAM, expected, strict=True):
        (literal.insert if insert else literal.delete)(atom, row)
        for changed, lived in after.items():
            assert literal.lived[changed] == lived
    assert dict(enumerate(literal.lived)) == FIGURE_1, "at the end, the database of Figure 1"
    literal.check()


def test_figure_1_the_answer_lives_while_all_its_tuples_do() -> None:
    assert time_join(TRIANGLE, FIGURE_1) == {((3, 5), ANSWER)}


def test_equation_15_canonical_partitions_in_the_tree_of_8() -> None:
    assert set(canonical_partition(2, 8, 3)) == {"001", "01", "1"}
    assert set(canonical_partition(2, 5, 3)) == {"001", "01", "100"}
    assert interval("1", 3) == (5, 8)
    assert interval("100", 3) == (5, 5)


def test_example_6_4_the_witness_in_the_first_component() -> None:
    order = (R, S, T)
    instance = partition_of_database(TRIANGLE, order, FIGURE_1, 3)
    assert ("", "a1", "b1") in instance[R]
    assert ("", "01", "b1", "c1") in instance[S]
    assert ("", "01", "", "a1", "c1") in instance[T]
    extended = component(TRIANGLE, order)
    answers = joined(extended, [instance[atom] for atom in order])
    names = extended.variables
    witness = {"Z1": "", "Z2": "01", "Z3": "", "A": "a1", "B": "b1", "C": "c1"}
    assert tuple(witness[v] for v in names) in answers


def test_example_7_2_an_insert_and_a_delete_of_s() -> None:
    """+S(b1, c1) at time 2, and its truncation at time 5, in the tree of 8."""
    before = partition_of_tuple(((2, 8), ("b1", "c1")), 2, 3)
    after = partition_of_tuple(((2, 5), ("b1", "c1")), 2, 3)
    assert {z1 + z2 for z1, z2, *_ in (tuple(map(str, row)) for row in before)} == {"001", "01", "1"}
    assert {z1 + z2 for z1, z2, *_ in (tuple(map(str, row)) for row in after)} == {"001", "01", "100"}


def test_resets_begin_anew_with_what_is_alive() -> None:
    literal = Literal(TRIANGLE)
    for n in range(40):
        literal.insert(R, ("a", n % 3))
        literal.delete(R, ("a", n % 3))
    assert literal.resets > 3
    assert literal.end <= 64
    literal.check()


def longest_gap(view: Generations, answers: Iterator[object]) -> int:
    """The steps between two answers; those before the first belong to the update."""
    next(answers)
    gap, before = 0, view.steps
    for _ in answers:
        gap, before = max(gap, view.steps - before), view.steps
    return max(gap, view.steps - before)


def test_answers_of_generations_come_with_constant_delay() -> None:
    """Also after deletes: what no longer leads to an answer is not met any more."""
    gaps = []
    for size in (200, 4000):
        view = Generations(Asked.full(Query.of("R(a, b)", "S(b, c)", "T(c, d)")), fan_out=4)
        draw = random.Random(size)
        rows = [(n % 3, (draw.randrange(6), draw.randrange(size))) for n in range(size)]
        rows = [(atom, row if atom != 2 else row[::-1]) for atom, row in rows]
        for atom, row in rows:
            view.insert(atom, row)
            list(itertools.islice(view.delta(atom, row), 50))
        for n in range(6):
            view.insert(1, (n, n))
        for n in range(0, len(rows), 2):
            view.delete(*rows[n])
        view.insert(0, (0, 0))
        view.insert(1, (0, 0))
        view.insert(2, (0, 0))
        gap = longest_gap(view, itertools.islice(view.answers(), 3000))
        gaps.append(max(gap, longest_gap(view, itertools.islice(view.delta(1, (0, 0)), 3000))))
        view.check()
    assert gaps[0] == gaps[1]


# ── auto ─────────────────────────────────────────────────────────────────────────────────────

RINGS = """.decl r(a:number, b:number)  .decl s(b:number, c:number)  .decl t(a:number, c:number)
.decl q(a:number, b:number, c:number)
q(a, b, c) :- r(a, b), s(b, c), t(a, c)."""


def hub_updates(number: int) -> list[tuple[str, tuple[int, int]]]:
    draw = random.Random(1)
    return [(draw.choice("rrst"), (draw.randrange(4), draw.randrange(4))) for _ in range(number)]


@pytest.mark.parametrize(("above", "strategy"), [("", "heavy_light"), (", u(a)", "generations")])
def test_a_rule_changes_its_strategy_between_two_steps(
    above: str, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every update counts as too slow, so the move does not depend on the machine."""
    monkeypatch.setattr(watch, "FAIR", -1.0)
    text = RINGS.replace("t(a, c).", f"t(a, c){above}.") + " .decl u(a:number)  u(0). u(1). u(3)."
    moving = Database.from_text(text)
    staying = Database.from_text(text, strategies={"q": "delta"})
    assert "now " not in moving.explain("q#1")
    for name, row in hub_updates(3000):
        change = "delete" if moving.holds(name, row) else "insert"
        assert getattr(moving, change)(name, row) == getattr(staying, change)(name, row)
    assert moving.view("q") == staying.view("q")
    assert f"now          {strategy}, since step " in moving.explain("q#1")
    assert [rule.strategy for rule in moving.stats().rules] == [strategy]
    assert [rule.strategy for rule in staying.stats().rules] == ["delta"]


def test_a_rule_that_moved_survives_large_steps_and_other_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FAIR", -1.0)
    db = Database.from_text(RINGS)
    for name, row in hub_updates(1000):
        (db.delete if db.holds(name, row) else db.insert)(name, row)
    assert "now " in db.explain("q#1")
    db.insert("s", [(n % 7, n) for n in range(3000)])  # a large step is recomputed
    db.add_rule(".decl p(a:number)  p(a) :- q(a, _, _).")
    fresh = Database.from_text(RINGS, facts={name: db.given(name) for name in "rst"})
    assert db.view("q") == fresh.view("q")
    for name, row in hub_updates(200):
        change = "delete" if db.holds(name, row) else "insert"
        assert getattr(db, change)(name, row)["q"] == getattr(fresh, change)(name, row)["q"]


def test_auto_moves_when_the_excess_has_paid_and_back_when_it_was_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auto, "WORTH", 1)  # else hubs would have to be larger
    query = Query.of("R(a, b)", "S(b, c)", "T(a, c)", "U(c)")
    view = Auto(Asked.full(query))
    neighbours: dict[int, list[tuple[int, ...]]] = {1: [(0, 2 * n) for n in range(900)]}
    neighbours[2] = [(0, 2 * n + 1) for n in range(900)]
    neighbours[3] = [(n,) for n in range(1800)]
    view.load(neighbours)

    def toggle(atom: int, row: tuple[int, int], times: int) -> None:
        for _ in range(times):
            for _ in view.delta(atom, row):
                pass
            view.insert(atom, row) or view.delete(atom, row)

    assert view.strategy == "delta"
    toggle(0, (0, 0), 400)
    assert view.strategy == "generations"
    for n in range(40_000):  # rows without partners: nothing to remember
        toggle(0, (1000 + n % 50, 5), 1)
        if view.strategy == "delta":
            break
    assert view.strategy == "delta"
    view.check()


def test_a_triangle_moves_to_heavy_and_light_values() -> None:
    view = Auto(Asked.full(TRIANGLE))
    view.load({S: [(0, 2 * n) for n in range(500)], T: [(0, 2 * n + 1) for n in range(500)]})
    for _ in range(100):
        list(view.delta(R, (0, 0)))
        view.insert(R, (0, 0)) or view.delete(R, (0, 0))
    assert view.strategy == "heavy_light"
    assert isinstance(view.view, HeavyLight)
    assert any(pairs.heavy for pairs in view.view.pairs)
    view.check()
