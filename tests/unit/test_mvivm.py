"""The paper's own objects: Table 1, Table 2, Figure 1, Eq. (15), Example 6.4."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
from join_cases import joined
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
from everlog.core.joins.generations import Generations
from everlog.core.joins.view import Asked

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
    for size in (200, 2000):
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


def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row counts as too dear here, so that rules move at once."""
    monkeypatch.setattr(watch, "FAIR", dict.fromkeys(watch.FAIR, -1e9))
    monkeypatch.setattr(watch, "COMBINATION", 0)


@pytest.mark.parametrize(("above", "strategy"), [("", "heavy_light"), (", u(a)", "generations")])
def test_a_rule_changes_its_strategy_between_two_steps(
    above: str, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    always(monkeypatch)
    text = RINGS.replace("t(a, c).", f"t(a, c){above}.") + " .decl u(a:number)  u(0). u(1). u(3)."
    moving = Database.from_text(text)
    staying = Database.from_text(text, strategies={"q": "delta"})
    assert "in use       auto: " in moving.explain("q#1")
    seen = set()
    for number, (name, row) in enumerate(hub_updates(3000)):
        change = "delete" if moving.holds(name, row) else "insert"
        assert getattr(moving, change)(name, row) == getattr(staying, change)(name, row)
        if number % 10 == 0:
            seen.add(moving.stats().rules[0].strategy)
    assert moving.view("q") == staying.view("q")
    assert seen >= {strategy, "delta"}, "it moved there, and perhaps back: a model that is wrong is corrected"
    in_use = moving.explanation()["rules"][0]["in_use"]
    assert in_use["strategy"] == moving.stats().rules[0].strategy
    assert "since step " in in_use["why"]
    assert f"in use       {in_use['strategy']}: {in_use['why']}" in moving.explain("q#1")
    assert staying.explanation()["rules"][0]["in_use"]["strategy"] == "delta"


def test_a_rule_that_moved_survives_large_steps_and_other_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    always(monkeypatch)
    db = Database.from_text(RINGS)
    for name, row in hub_updates(1000):
        (db.delete if db.holds(name, row) else db.insert)(name, row)
    assert "since step" in db.explain("q#1")
    db.insert("s", [(n % 7, n) for n in range(3000)])  # a large step is computed anew
    db.add_rule(".decl p(a:number)  p(a) :- q(a, _, _).")
    fresh = Database.from_text(RINGS, facts={name: db.given(name) for name in "rst"})
    assert db.view("q") == fresh.view("q")
    for name, row in hub_updates(200):
        change = "delete" if db.holds(name, row) else "insert"
        assert getattr(db, change)(name, row)["q"] == getattr(fresh, change)(name, row)["q"]


def strategies_of(db: Database) -> dict[str, str]:
    return {rule["name"]: rule["in_use"]["strategy"] for rule in db.explanation()["rules"]}


def toggled(db: Database, name: str, row: tuple[int, ...], times: int) -> None:
    for _ in range(times):
        (db.delete if db.holds(name, row) else db.insert)(name, row)


HUBS = {"s": [(0, 2 * n) for n in range(4000)], "t": [(0, 2 * n + 1) for n in range(4000)]}
LONELY = [(-1 - n % 50, -1 - n % 47) for n in range(3000)]
WIDE = {name: [(a, b, 0) for a, b in rows] for name, rows in HUBS.items()}
LOOP = {"e": [(0, 10 + 2 * n) for n in range(4000)] + [(11 + 2 * n, 1) for n in range(4000)]}
MOVING = {
    "plain": (RINGS, HUBS, ("r", (0, 0))),
    "self-join": (
        ".decl e(x:number, y:number) .decl q(x:number, y:number, z:number) q(x, y, z) :- e(x, y), e(y, z), e(z, x).",
        LOOP,
        ("e", (1, 0)),
    ),
    "wildcards": (
        RINGS.replace(":number)  ", ":number, w:number)  ", 2)
        .replace(".decl t(a:number, c:number)", ".decl t(a:number, c:number, w:number)")
        .replace("r(a, b), s(b, c), t(a, c).", "r(a, b, _), s(b, c, _), t(a, c, _)."),
        WIDE,
        ("r", (0, 0, 0)),
    ),
    "derived": (
        RINGS + " .decl x(b:number, c:number)  s(b, c) :- x(b, c), c >= 0.",
        {"x": HUBS["s"], "t": HUBS["t"]},
        ("r", (0, 0)),
    ),
    "negated": (RINGS.replace("t(a, c).", "t(a, c), !u(a).") + " .decl u(a:number)", HUBS, ("r", (0, 0))),
    "filtered": (RINGS.replace("t(a, c).", "t(a, c), a + b < c."), HUBS, ("r", (0, 0))),
    "before a recursion": (
        RINGS + " .decl p(a:number, b:number) p(a, b) :- q(a, b, _). p(a, c) :- p(a, b), p(b, c).",
        HUBS,
        ("r", (0, 0)),
    ),
}


@pytest.mark.parametrize("case", MOVING)
def test_auto_sees_every_update_whatever_the_rule_is_like(case: str) -> None:
    text, facts, (name, row) = MOVING[case]
    db = Database.from_text(text, facts=facts)
    toggled(db, name, row, 3000)
    assert strategies_of(db)["q#1"] == "heavy_light"
    db._engine.check()


def test_auto_sees_the_join_inside_an_aggregate() -> None:
    text = RINGS + " .decl n(k:number) n(k) :- k = count : { r(a, b), s(b, c), t(a, c) }."
    db = Database.from_text(text, facts=HUBS)
    toggled(db, "r", (0, 0), 4000)
    (counting,) = [rule for rule in db.stats().rules if rule.name == "n#1"]
    assert counting.strategy == "heavy_light"
    assert counting.moved.startswith("to heavy_light after step")
    (told,) = [rule["in_use"] for rule in db.explanation()["rules"] if rule["name"] == "n#1"]
    (part,) = told["parts"]
    assert (part["strategy"], part["update_cost"]) == ("heavy_light", "O(D^1/2) amortized")
    assert part["moves"] == [counting.moved]
    db.add_rule(".decl two(a:number) two(a) :- r(a, b), s(b, _).")
    (again,) = [rule["in_use"]["parts"] for rule in db.explanation()["rules"] if rule["name"] == "n#1"]
    assert again == [part], "it is kept as before, and says so"


def test_auto_sees_updates_in_batches() -> None:
    facts = {"s": [(b, 2 * n) for b in range(4) for n in range(4000)]}
    facts["t"] = [(a, 2 * n + 1) for a in range(4) for n in range(4000)]
    db = Database.from_text(RINGS, facts=facts)
    for n in range(400):
        with db.transaction():
            for k in range(16):
                (db.insert if n % 2 == 0 else db.delete)("r", (k // 4, k % 4))
    assert strategies_of(db)["q#1"] == "heavy_light"


@pytest.mark.parametrize("every", [3, 5, 6])
def test_an_expensive_minority_counts_by_its_share_of_the_work(every: int) -> None:
    partners = range(20_000)
    db = Database.from_text(
        RINGS, facts={"s": [(0, 2 * n) for n in partners], "t": [(0, 2 * n + 1) for n in partners]}
    )
    for n in range(12_000):
        toggled(db, "r", (0, 0) if n % every == 0 else LONELY[n % len(LONELY)], 1)
    assert strategies_of(db)["q#1"] == "heavy_light"


def test_a_benign_stream_stays_with_delta_and_a_rule_moves_back_when_that_pays() -> None:
    db = Database.from_text(RINGS, facts=HUBS)
    for n in range(3000):
        toggled(db, "r", LONELY[n], 1)
    assert strategies_of(db)["q#1"] == "auto"
    toggled(db, "r", (0, 0), 3000)
    assert strategies_of(db)["q#1"] == "heavy_light"
    for n in range(30_000):
        toggled(db, "r", LONELY[n % len(LONELY)], 1)
        if n % 100 == 0 and strategies_of(db)["q#1"] == "delta":
            break
    assert strategies_of(db)["q#1"] == "delta"
    moves = db.explanation()["rules"][0]["in_use"]["moves"]
    assert [move.split(" after ")[0] for move in moves] == ["to heavy_light", "to delta"]
    db._engine.check()


def test_until_the_first_delete_a_rule_is_served_as_insert_only() -> None:
    text = """.decl r(a:number, b:number) .decl s(b:number, c:number) .decl t(c:number, d:number)
    .decl q(a:number, b:number, c:number, d:number)  q(a, b, c, d) :- r(a, b), s(b, c), t(c, d)."""
    facts = {"s": [(0, n) for n in range(4000)], "t": [(-1 - n, 0) for n in range(4000)]}
    db = Database.from_text(text, facts=facts)
    for n in range(2000):
        db.insert("r", (n, 0))
    assert strategies_of(db)["q#1"] == "calibrated"
    for _ in range(200):  # each of these gives or takes support from many rows
        toggled(db, "t", (7, 1), 1)
        toggled(db, "r", (-1, 0), 1)
        toggled(db, "s", (0, 7), 1)
    assert strategies_of(db)["q#1"] == "delta"
    db._engine.check()


def test_one_update_that_delta_cannot_finish_is_done_by_another_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LIMIT", 100_000)
    names = "abcdefgh"
    decls = " ".join(f".decl r{n}(x:number, y:number)" for n in range(1, 8))
    body = ", ".join(f"r{n}({names[n - 1]}, {names[n]})" for n in range(1, 8))
    head = ", ".join(names)
    text = f"{decls} .decl q({', '.join(f'{v}:number' for v in names)}) q({head}) :- {body}."
    facts = {f"r{n}": [(0, m) if n % 2 == 0 else (m, 0) for m in range(400)] for n in range(2, 7)}
    facts["r7"] = [(-1 - m, 0) for m in range(400)]  # none of which fits
    db = Database.from_text(text, facts=facts)
    toggled(db, "r1", (0, 0), 3)
    in_use = db.explanation()["rules"][0]["in_use"]
    assert in_use["strategy"] == "calibrated"
    assert "gave up" in in_use["why"]
    db._engine.check()


def test_a_row_above_the_join_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LIMIT", 1_000)
    text = """.decl r(a:number, b:number) .decl s(b:number, c:number) .decl t(c:number, d:number)
    .decl no(b:number) .decl q(a:number, b:number, c:number, d:number)
    q(a, b, c, d) :- r(a, b), s(b, c), t(c, d), !no(b)."""
    facts = {"r": [(n, 0) for n in range(60)], "s": [(0, n) for n in range(60)], "t": [(n, 0) for n in range(60)]}
    db = Database.from_text(text, facts=facts)
    for moved in (False, True):
        assert len(db.insert("no", (0,))["q"]) == 3600
        assert len(db.delete("no", (0,))["q"]) == 3600
        if not moved:
            toggled(db, "s", (0, 0), 2)
            toggled(db, "r", (0, 0), 2)
    db._engine.check()
