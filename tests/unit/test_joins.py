"""Views of joins by themselves: the paper's examples, delays, refusals."""

from __future__ import annotations

import itertools
import random
import re
from fractions import Fraction
from random import Random

import pytest
from join_cases import joined

from everlog.core.classify.query import Query
from everlog.core.engine.engine import Engine
from everlog.core.engine.planning.systems import NoSuchStrategy
from everlog.core.joins.calibrated import Calibrated
from everlog.core.joins.exponents import refuge_of, refuges_of, search_exponent, update_exponent
from everlog.core.joins.join_strategies import JOINS, view_of
from everlog.core.joins.tries import Input
from everlog.core.joins.untold import Shown
from everlog.core.joins.variable_orders import variable_order
from everlog.core.joins.view import Asked, CannotServe, JoinView
from everlog.core.program import Row
from everlog.core.program.executor import InsertOnly, Update
from everlog.dsl.check import compile_text

TRIANGLE = Query.of("R(A, B)", "S(B, C)", "T(A, C)")
# Eq. (12): one triangle over A, B, C and another over B, C, D
TWO_TRIANGLES = Query.of("R(A, B)", "S(B, C)", "T(A, C)", "U(B, D)", "V(C, D)")


def inserted(view: JoinView, atom: int, row: Row) -> list[Row]:
    assert view.insert(atom, row)
    return [answer for answer, _ in view.delta(atom, row)]


# ── Example 5.3 ──────────────────────────────────────────────────────────────────────────────


def test_large_bodies_have_a_view_that_stays_small() -> None:
    """Eight atoms have too many orders by age; delta alone would be O(D²)."""
    query = Query.of("r(a, b)", "s(b, c)", "t(a, c)", "u(a)", "v(b)", "w(c)", "x(a)", "y(b)")
    assert search_exponent("delta", query) == 2
    assert refuge_of(query) == "heavy_light"
    assert search_exponent("heavy_light", query) == 1


def test_example_5_3_every_insert_of_table_1_reports_its_delta() -> None:
    """The inserts of Table 1, in its order."""
    view = view_of("calibrated", Asked.full(TRIANGLE))
    assert inserted(view, 0, ("a1", "b1")) == []
    assert inserted(view, 1, ("b1", "c1")) == []
    assert inserted(view, 2, ("a1", "c1")) == [("a1", "b1", "c1")]
    assert inserted(view, 1, ("b2", "c1")) == []
    assert list(view.answers()) == [(("a1", "b1", "c1"), 1)]


def test_example_5_3_each_relation_is_indexed_by_either_column_first() -> None:
    """An insert into R needs S by B and T by A; one into S R by B and T by C; etc."""
    view = view_of("calibrated", Asked.full(TRIANGLE))
    assert isinstance(view, Calibrated)
    (bag,) = view.bags
    keys = {source.schema: {key for key, _, _ in source.indexes} for source in bag.inputs}
    assert keys == {("A", "B"): {("A",), ("B",)}, ("B", "C"): {("B",), ("C",)}, ("A", "C"): {("A",), ("C",)}}


@pytest.mark.parametrize("side", [4, 8, 16])
def test_example_5_3_all_inserts_together_stay_within_the_agm_bound(side: int) -> None:
    view = view_of("calibrated", Asked.full(TRIANGLE, counting=True))
    stream = [(atom, row) for atom in range(3) for row in itertools.product(range(side), repeat=2)]
    random.Random(side).shuffle(stream)
    for atom, row in stream:
        view.insert(atom, row)
    assert view.steps <= 3 * (3 * side**2 + side**3)  # (|R| |S| |T|)^1/2 = side^3


# ── Examples 5.4 and 5.5 ─────────────────────────────────────────────────────────────────────

DATA: dict[int, list[Row]] = {
    0: [("a1", "b1"), ("a2", "b1"), ("a3", "b2")],
    1: [("b1", "c1"), ("b2", "c2")],
    2: [("a1", "c1"), ("a2", "c1"), ("a3", "c2")],
    3: [("b1", "d1"), ("b1", "d2"), ("b3", "d1")],
    4: [("c1", "d1"), ("c1", "d2")],
}


def test_example_5_4_the_decomposition_has_the_two_triangles_as_bags() -> None:
    view = view_of("calibrated", Asked.full(TWO_TRIANGLES))
    assert isinstance(view, Calibrated)
    assert view.decomposition.width.as_integer_ratio() == (3, 2)
    assert {frozenset(bag.schema) for bag in view.bags} == {frozenset("ABC"), frozenset("BCD")}


def test_examples_5_4_and_5_5_bags_hold_the_projections_of_the_answers() -> None:
    """Q′₂ is calibrated by P₁, and Q″₁ by P′₁: projections of Q, so no dead ends."""
    view = view_of("calibrated", Asked.full(TWO_TRIANGLES))
    assert isinstance(view, Calibrated)
    view.load(DATA)
    answers = {answer for answer, _ in view.answers()}
    assert answers == joined(TWO_TRIANGLES, [DATA[n] for n in range(5)])
    assert answers == {(a, "b1", "c1", d) for a in ("a1", "a2") for d in ("d1", "d2")}
    variables = TWO_TRIANGLES.variables
    for bag in view.bags:
        places = [variables.index(v) for v in bag.schema]
        assert set(bag.alive) == {tuple(answer[p] for p in places) for answer in answers}
    triangles = next(bag for bag in view.bags if set(bag.schema) == set("ABC"))
    assert ("a3", "b2", "c2") in triangles.rows, "Q₁ has the triangle that no D completes"
    assert ("a3", "b2", "c2") not in triangles.alive


def test_example_5_5_an_insert_into_r_is_reported_from_the_other_bag() -> None:
    view = view_of("calibrated", Asked.full(TWO_TRIANGLES))
    view.load({**DATA, 0: DATA[0][1:]})
    assert sorted(inserted(view, 0, ("a1", "b1"))) == [("a1", "b1", "c1", "d1"), ("a1", "b1", "c1", "d2")]
    assert sorted(inserted(view, 4, ("c2", "d1"))) == []
    assert sorted(inserted(view, 3, ("b2", "d1"))) == [("a3", "b2", "c2", "d1")]


# ── delays, steps, orders ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("strategy", "query"), [("view_tree", "star"), ("calibrated", "path")])
def test_no_gap_between_answers_grows_with_the_data(strategy: str, query: str) -> None:
    atoms = {"star": ("R(a, b, c)", "S(a, b, d)", "T(a, e)"), "path": ("R(a, b)", "S(b, c)", "T(c, d)")}[query]
    gaps = []
    for size in (200, 2000):
        view = view_of(strategy, Asked.full(Query.of(*atoms), counting=True))
        draw = random.Random(size)
        for n in range(size):
            atom = draw.randrange(3)
            width = len(Query.of(*atoms).atoms[atom].variables)
            view.insert(atom, tuple(draw.randrange(5) if draw.random() < 0.7 else n for _ in range(width)))
        gap, before = 0, view.steps
        for _ in itertools.islice(view.answers(), 5000):
            gap, before = max(gap, view.steps - before), view.steps
        gaps.append(gap)
    assert gaps[0] == gaps[1]


def test_an_update_of_a_hierarchical_view_takes_the_same_steps_at_any_size() -> None:
    most = []
    for size in (100, 10_000):
        view = view_of("view_tree", Asked.full(Query.of("R(a, b)", "S(a, c)"), counting=True))
        for n in range(size):
            view.insert(n % 2, (0, n))
        before = view.steps
        view.insert(0, (0, -1))
        view.delete(0, (0, -1))
        most.append(view.steps - before)
    assert most[0] == most[1]


def test_a_projection_is_counted_and_not_walked() -> None:
    view = view_of("view_tree", Asked(Query.of("R(a, b)", "S(a, c)", free="a"), ("a",), counting=True))
    for n in range(1000):
        view.insert(1, (7, n))
    view.insert(0, (7, 1))
    before = view.steps
    assert list(view.delta(0, (7, 1))) == [((7,), 1000)]
    assert view.steps - before <= 3


def test_variables_of_the_same_atoms_are_one_node() -> None:
    (root,) = variable_order(Query.of("R(a, b, c)", "S(a, b)", "T(a, b)"))
    assert root.variables == ("a", "b")
    assert [child.variables for child in root.children] == [("c",)]


# ── refusals ─────────────────────────────────────────────────────────────────────────────────


def test_heavy_and_light_values_are_refused_where_no_splits_are_found() -> None:
    five = Query.of("R(a, b)", "S(b, c)", "T(c, d)", "U(d, e)", "V(a, e)")
    with pytest.raises(CannotServe, match="no splits by heavy and light values are found"):
        view_of("heavy_light", Asked.full(five))


@pytest.mark.parametrize("strategy", JOINS)
def test_too_many_variables_are_refused_by_every_strategy(strategy: str) -> None:
    wide = Query.of(*(f"R{n}(x{n}, x{n + 1})" for n in range(30)))
    with pytest.raises(CannotServe, match="variables"):
        view_of(strategy, Asked.full(wide))


def test_an_input_follows_its_rows_with_every_index() -> None:
    source = Input(("a", "b"))
    index = source.index(("a",), "b")
    source.add((1, 2), 1)
    source.add((1, 2), 1)
    assert index == {1: {2: 1}}
    source.add((1, 2), -2)
    assert index == {}
    source.check()


# ── in the engine ────────────────────────────────────────────────────────────────────────────

PATH = """.decl r(a:number, b:number)  .decl s(b:number, c:number)  .decl t(c:number, d:number)
.decl q(a:number, d:number)  q(a, d) :- r(a, b), s(b, c), t(c, d)."""


def test_a_delete_from_an_insert_only_relation_changes_nothing() -> None:
    engine = Engine(compile_text(PATH + " .insert_only r, s, t"))
    engine.apply([Update("r", (1, 2)), Update("s", (2, 3)), Update("t", (3, 4))])
    for step in ([Update("r", (1, 2), False)], [Update("r", (5, 5)), Update("s", (9, 9), False)]):
        with pytest.raises(InsertOnly, match=r"is `\.insert_only`"):
            engine.apply(step)
    assert engine.view("q") == {(1, 4)}
    assert engine.view("r") == {(1, 2)}
    engine.check()


def test_a_wish_that_cannot_be_served_is_an_error() -> None:
    program = compile_text(PATH.replace("t(c, d).", "t(c, d), r(d, e), r(e, a)."))
    with pytest.raises(NoSuchStrategy, match="`heavy_light` cannot keep q#1: no splits by heavy and light"):
        Engine(program, strategies={"q": "heavy_light"})
    with pytest.raises(NoSuchStrategy, match="no strategy `fast`"):
        Engine(program, strategies={"q": "fast"})
    with pytest.raises(NoSuchStrategy, match="there is no such rule"):
        Engine(program, strategies={"q#2": "delta"})
    Engine(program, strategies={"*": "heavy_light"})  # wherever it serves: nowhere


def test_a_rule_that_fails_leaves_its_view_as_it_was() -> None:
    engine = Engine(
        compile_text(
            """.decl r(a:number, b:number)  .decl s(a:number, c:number)  .decl t(a:number)
            .decl q(a:number)  q(a / b) :- r(a, b), s(a, _), t(a)."""
        )
    )
    assert engine.strategy_of("q")[0] == "counts"
    engine.apply([Update("s", (8, 1)), Update("t", (8,))])
    for _ in range(2):
        with pytest.raises(Exception, match="division by zero"):
            engine.apply([Update("r", (8, 2)), Update("r", (8, 0))])
        engine.check()
    engine.apply([Update("r", (8, 2))])
    assert engine.view("q") == {(4,)}
    engine.check()


def test_heavy_light_walks_the_smaller_side_however_many_values_are_heavy() -> None:
    """Light rows of a triangle with ten heavy values: the work for one does not follow the data."""
    spent = []
    for size in (1 << 10, 1 << 14):
        view = view_of("heavy_light", Asked.full(Query.of("R(a, b)", "S(b, c)", "T(c, a)"), counting=True))
        part = size // 11
        view.load(
            {
                1: [(hub, n) for hub in range(10) for n in range(part)],
                0: [(10_000 + n, 7) for n in range(part)],
            }
        )
        before = view.steps
        for n in range(100):
            view.insert(2, (n, 10_000))
            view.delete(2, (n, 10_000))
            view.insert(0, (20_000, n))
        spent.append(view.steps - before)
    assert spent[1] < 2 * spent[0]


def cycle(length: int) -> Query:
    return Query.of(*(f"r{n}(x{n}, x{(n + 1) % length})" for n in range(length)))


def clique(corners: int) -> Query:
    return Query.of(*(f"r{a}{b}(x{a}, x{b})" for a in range(corners) for b in range(a)))


@pytest.mark.parametrize(
    ("query", "exponent"),
    [(cycle(7), "1"), (cycle(12), "1"), (clique(4), "1"), (clique(5), "3/2"), (clique(6), "2")],
    ids=["7-cycle", "12-cycle", "K4", "K5", "K6"],
)
def test_what_is_left_of_large_cyclic_bodies_is_narrower(query: Query, exponent: str) -> None:
    assert refuges_of(query)[-1] == "factorized"
    assert search_exponent("factorized", query) == Fraction(exponent) < search_exponent("delta", query)


def test_what_lies_behind_a_value_is_searched_once() -> None:
    """A cycle of nine with all edges between a few values: D^4 ways, which do not close."""
    spent = []
    for side in (8, 32):
        view = view_of("factorized", Asked.full(cycle(9), counting=True))
        dense = [(a, b) for a in range(side) for b in range(side)]
        view.load(dict.fromkeys(range(1, 8), dense) | {8: [(side + a, 0) for a in range(side)]})
        before = view.steps
        view.insert(0, (0, 0))
        assert not list(view.delta(0, (0, 0)))
        spent.append(view.steps - before)
    assert spent[1] < 20 * spent[0], "16 times as many rows"


def test_a_part_that_shows_nothing_is_counted() -> None:
    query = cycle(7)
    for shown in ([], ["x0"], ["x3"]):
        assert update_exponent("factorized", query, Shown(frozenset(shown))) == 1 < update_exponent("delta", query)
    view = view_of("factorized", Asked(query, ("x0",), counting=True))
    dense = [(a, b) for a in range(6) for b in range(6)]
    view.load(dict.fromkeys(range(1, 7), dense))
    view.insert(0, (0, 0))
    before = view.steps
    assert list(view.delta(0, (0, 0))) == [((0,), 6**5)]
    assert view.steps - before < 1000


# Figure 4 of the paper: atoms, and the exponents of D for F-IVM and for IVM^ε.  Where the paper has
# no entry for IVM^ε, the exponent is that of its own algorithm.
FIGURE_4 = {
    "R(a, b, c) S(a, b) T(b, c)": ("1", "1/2"),
    "R(a, b) S(b, c) T(c, d)": ("1", "1/2"),
    "R(a, b) S(b, c) T(a, c)": ("1", "1/2"),
    "R(a, b) S(b, c) T(a, c) U(c)": ("1", "2/3"),
    "R(a, b, c, d) S(a, b) T(b, c) U(b, d)": ("1", "2/3"),
    "R(a, b, c) S(a) T(b) U(c)": ("1", "2/3"),
    "R(a, b, c, d) S(a) T(b) U(c) V(d)": ("1", "3/4"),
    "R(a) S(a, b) T(b, c) U(c)": ("1", "1/2"),
    "R(a, b) S(b, c) T(c, d) U(a, d)": ("1", "2/3"),
}


@pytest.mark.parametrize("atoms", FIGURE_4)
def test_view_trees_and_splits_have_the_exponents_of_figure_4(atoms: str) -> None:
    query = Query.of(*re.findall(r"\w\([^)]*\)", atoms))
    trees, splits = map(Fraction, FIGURE_4[atoms])
    assert search_exponent("view_tree", query) == trees
    assert search_exponent("heavy_light", query) == splits


@pytest.mark.parametrize("atoms", FIGURE_4)
def test_the_steps_of_splits_grow_no_faster_than_their_exponent(atoms: str) -> None:
    """Random rows over domains of different powers of D, which come and go."""
    query = Query.of(*re.findall(r"\w\([^)]*\)", atoms))
    for seed in range(3):
        draw = Random(seed)
        powers = {v: draw.choice([0, 1 / 3, 1 / 2, 2 / 3, 1]) for v in query.variables}
        spent = [steps_of_splits(query, powers, size, draw) for size in (256, 2048)]
        assert spent[1] <= 3 * 8 ** float(search_exponent("heavy_light", query)) * max(spent[0], 10)


def steps_of_splits(query: Query, powers: dict[str, float], size: int, draw: Random) -> float:
    """Steps for one update that is not told, on average."""
    view = view_of("heavy_light", Asked.full(query, counting=True))
    domains = [[max(1, round(size ** powers[v])) for v in atom.variables] for atom in query.atoms]

    def row() -> tuple[int, tuple[int, ...]]:
        atom = draw.randrange(len(domains))
        return atom, tuple(map(draw.randrange, domains[atom]))

    loaded = [row() for _ in range(size)]
    view.load({n: [values for atom, values in loaded if atom == n] for n in range(len(domains))})
    before = view.steps
    for n in range(400):
        update = row() if n % 2 else draw.choice(loaded)
        if not view.insert(*update):
            view.delete(*update)
    return (view.steps - before) / 400
