"""Practical systems: what they refuse, and what is special in each."""

from __future__ import annotations

import builtins
import random
from itertools import pairwise
from typing import Any
from unittest import mock

import pytest

from everlog.ies.practical import fans, tc_algebra
from everlog.ies.practical.alternating_paths import AlternatingPaths
from everlog.ies.practical.field_matrices import DenseMatrix, P, SparseMatrix
from everlog.ies.practical.protocol import BadTuple, NotPermissible, Practical
from everlog.ies.practical.same_generation_counts import CountedGenerations
from everlog.ies.practical.tc_algebra import AlgebraicClosure
from everlog.ies.practical.tc_counts import CountedClosure
from everlog.ies.practical.tc_witness import WitnessClosure

ACYCLIC = [CountedClosure, CountedGenerations]
ALL = [*ACYCLIC, WitnessClosure, AlgebraicClosure, AlternatingPaths]


def everything(system: Practical) -> dict[str, set[Any]]:
    return {name: set(system.view(name)) for name in system.sizes()}


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cls", ACYCLIC)
def test_an_edge_that_closes_a_cycle_is_refused_with_the_way_back(cls: type[Practical]) -> None:
    system = cls()
    system.load({"edge": [("a", "b"), ("b", 3), (3, "d"), ("x", "y")]})
    before = everything(system)
    with pytest.raises(NotPermissible) as error:
        system.insert("edge", ("d", "a"))
    assert str(error.value) == (
        'edge("d", "a") closes a cycle: "a" → "b" → 3 → "d" is there already, and this system is for acyclic graphs'
    )
    assert everything(system) == before
    system.check()


@pytest.mark.parametrize("cls", ACYCLIC)
def test_a_self_loop_is_refused(cls: type[Practical]) -> None:
    system = cls()
    with pytest.raises(NotPermissible, match=r"edge\(1, 1\) is a cycle of one edge"):
        system.insert("edge", (1, 1))
    assert everything(system) == everything(cls())


@pytest.mark.parametrize("cls", ACYCLIC)
def test_cyclic_edges_are_not_loaded_and_what_was_there_stays(cls: type[Practical]) -> None:
    system = cls()
    system.load({"edge": [(1, 2)]})
    before = everything(system)
    with pytest.raises(NotPermissible, match=r"closes a cycle: (2 → 3 → 4|3 → 4 → 2|4 → 2 → 3) is there"):
        system.load({"edge": [(1, 2), (2, 3), (3, 4), (4, 2), (4, 5)]})
    assert everything(system) == before
    assert system.insert("edge", (2, 3))
    system.check()


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(
    "row", [(1,), (1, 2, 3), (1, True), (None, 1), ([1], 2), (frozenset({1}), 2), "ab", 7, ((1,), 2)]
)
def test_what_is_no_row_is_refused(cls: type[Practical], row: Any) -> None:
    system = cls()
    system.load({"edge": [(1, 2)]})
    before = everything(system)
    for attempt in (
        lambda: system.insert("edge", row),
        lambda: system.delete("edge", row),
        lambda: system.load({"edge": [(5, 6), row]}),
    ):
        with pytest.raises(BadTuple, match=r"is not a row of edge : \{node \* node\}"):
            attempt()
    assert everything(system) == before


def test_rows_of_one_column_are_tuples() -> None:
    with pytest.raises(BadTuple, match=r"\"a\" is not a row of universal : \{node\}"):
        AlternatingPaths().insert("universal", "a")  # type: ignore[arg-type]


@pytest.mark.parametrize("cls", ALL)
def test_rows_are_shown_as_the_calculus_writes_them(cls: type[Practical]) -> None:
    with pytest.raises(BadTuple, match=r"^\(true, \{1\}\) is not a row of edge"):
        cls().insert("edge", (True, frozenset({1})))
    with pytest.raises(BadTuple, match=r"^\(nan, 1\) is not a row of edge: systems do not take NaN$"):
        cls().insert("edge", (float("nan"), 1))


@pytest.mark.parametrize("cls", ALL)
def test_relations_that_a_system_does_not_have_are_refused(cls: type[Practical]) -> None:
    system = cls()
    answer = cls.described.answer.name
    for attempt in (
        lambda: system.insert(answer, (1, 2)),
        lambda: system.delete("nonsense", (1, 2)),
        lambda: system.load({"nonsense": []}),
    ):
        with pytest.raises(BadTuple, match=f"is not an input of {cls.described.name}; there is edge"):
            attempt()
    with pytest.raises(
        BadTuple, match=f"nonsense is not a relation of {cls.described.name}; there is edge, .*{answer}"
    ):
        system.view("nonsense")


# ── all of them ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cls", ALL)
def test_reported_changes_stay_the_same(cls: type[Practical]) -> None:
    """Lazy rows of an old change stay correct, though node numbers were reused since."""
    system = cls()
    system.load({"edge": [(1, 2), (2, 3)]})
    answer = cls.described.answer.name
    view, expected = system.view(answer), set(system.view(answer))
    gone = system.delete("edge", (1, 2))[answer][0]
    system.delete("edge", (2, 3))
    for edge in (("x", "y"), ("y", "z"), ("z", "w")):
        system.insert("edge", edge)
    assert set(view) == expected
    assert set(gone) <= expected
    assert len(gone) == len(set(gone)) > 0
    assert next(iter(gone)) in gone
    assert ("x", "y") not in gone


@pytest.mark.parametrize("cls", ALL)
def test_auxiliary_changes_are_reported_once_they_are_read(cls: type[Practical]) -> None:
    system = cls()
    public = {"edge", cls.described.answer.name}
    assert set(system.insert("edge", (1, 2))) == public
    system.track()
    assert set(system.insert("edge", (2, 3))) > public


@pytest.mark.parametrize("cls", ALL)
def test_what_is_said_of_auxiliaries_is_so(cls: type[Practical]) -> None:
    system = cls()
    system.load({"edge": [(1, 2), (2, 3), (1, 3)]})
    for kept in (*cls.described.inputs, cls.described.answer, *cls.described.auxiliaries):
        assert {len(row) for row in system.view(kept.name)} <= {kept.arity}
        assert len(kept.columns) == len(kept.types) == kept.arity
        assert kept.meaning
    assert cls.described.growth
    assert cls.described.cost
    assert not cls.described.exponential


# ── counts ───────────────────────────────────────────────────────────────────────────────────────


def test_path_counts_are_exact_beyond_machine_words() -> None:
    """A chain of 100 diamonds has 2^100 paths from end to end."""
    system = CountedClosure()
    diamonds = [edge for n in range(100) for edge in ((n, (n, 0)), (n, (n, 1)), ((n, 0), n + 1), ((n, 1), n + 1))]
    names = {node: f"{node}" for edge in diamonds for node in edge}
    system.load({"edge": [(names[x], names[y]) for x, y in diamonds]})
    assert ("0", "100", 2**100) in set(system.view("ways"))
    system.delete("edge", ("50", names[50, 0]))
    assert ("0", "100", 2**99) in set(system.view("ways"))
    system.check()


def test_same_generation_begins_with_walks_of_no_edges() -> None:
    system = CountedGenerations()
    changes = system.insert("edge", ("p", "c"))
    assert set(changes["sg"][1]) == {("p", "p"), ("c", "c")}
    assert set(system.insert("edge", ("p", "d"))["sg"][1]) == {("d", "d"), ("c", "d"), ("d", "c")}


# ── witnesses ────────────────────────────────────────────────────────────────────────────────────


def test_sparse_closures_are_sets_and_grow_into_bits() -> None:
    with mock.patch.object(fans, "SMALL", 8):
        system = WitnessClosure()
        system.load({"edge": [(2 * n, 2 * n + 1) for n in range(500)]})
        assert system.form is fans.SETS
        for n in range(499):
            system.insert("edge", (2 * n + 1, 2 * n + 2))
        assert system.form is fans.BITS
        assert system.pairs == 1000 * 999 // 2
        system.check()
        for n in range(499):
            system.delete("edge", (2 * n + 1, 2 * n + 2))
        assert system.form is fans.SETS
        system.check()


def test_a_route_is_a_path_of_the_graph() -> None:
    draw = random.Random(4)
    edges = {(draw.randrange(30), draw.randrange(30)) for _ in range(60)}
    system = WitnessClosure()
    system.load({"edge": edges})
    for edge in sorted(edges)[::3]:
        system.delete("edge", edge)
    left, pairs = system.base["edge"], set(system.view("path"))
    for x in range(30):
        for y in range(30):
            route = system.route(x, y)
            assert bool(route) == ((x, y) in pairs)
            if route:
                assert (route[0], route[-1]) == (x, y)
                assert set(pairwise(route)) <= left


# ── the matrix ───────────────────────────────────────────────────────────────────────────────────


class Rigged(random.Random):
    """First fixed weights, then random ones."""

    def __init__(self, *given: int) -> None:
        super().__init__(1)
        self.given = list(given)

    def randrange(self, *args: Any, **kwargs: Any) -> int:
        return self.given.pop(0) if self.given else super().randrange(*args, **kwargs)


def rigged(*weights: int) -> AlgebraicClosure:
    system = AlgebraicClosure(track_auxiliaries=True)
    system._draw = Rigged(*(w for weight in weights for w in (weight, weight)))
    return system


def test_an_insert_that_would_be_singular_draws_another_weight() -> None:
    system = rigged(1)  # 1 − 1·1 = 0
    assert set(system.insert("edge", (1, 1))["path"][1]) == {(1, 1)}
    assert set(system.view("weight")) != {(1, 1, 1, 1)}
    assert system.refreshes == 0
    system.check()


def test_a_delete_that_would_be_singular_draws_all_weights_anew() -> None:
    system = rigged(5, 1, 1)  # without the loop of weight 5 the determinant is 1 − 1·1
    for edge in ((1, 1), (1, 2), (2, 1)):
        system.insert("edge", edge)
    weights = set(system.view("weight"))
    changes = system.delete("edge", (1, 1))
    assert system.refreshes == 1
    assert "path" not in changes
    assert set(changes["weight"][0]) == weights
    assert set(changes["weight"][1]) == set(system.view("weight"))
    assert set(system.view("path")) == {(1, 1), (1, 2), (2, 1), (2, 2)}
    system.check()


def test_two_weightings_catch_what_one_misses() -> None:
    """1 → 2 → 4 and 1 → 3 → 4 cancel in the first field only."""
    system = AlgebraicClosure()
    system._draw = Rigged(1, 2, 1, 3, 1, 5, P - 1, 7)
    for edge in ((1, 2), (2, 4), (1, 3), (3, 4)):
        changes = system.insert("edge", edge)
    assert set(changes["path"][1]) == {(3, 4)}
    assert {row[:2]: row[2] for row in system.view("inverse")}[1, 4] == 0
    assert (1, 4) in set(system.view("path"))
    assert set(system.delete("edge", (2, 4))["path"][0]) == {(2, 4)}
    system.check()


def test_the_error_bound_is_that_of_schwartz_and_zippel() -> None:
    system = AlgebraicClosure()
    assert system.error_bound() == 0
    system.load({"edge": [(n, (n + 1) % 100) for n in range(100)]})
    least = (100 / (P - 1)) ** 2
    assert least <= system.pair_error_bound() < 1.01 * least
    assert system.error_bound() == pytest.approx(100**2 * system.pair_error_bound())
    system.risk = 0.5
    assert system.pair_error_bound() == pytest.approx(4 * least, rel=1e-3)
    system.risk = 1.5
    assert system.pair_error_bound() == system.error_bound() == 1


def test_how_sure_an_answer_is_can_be_read() -> None:
    system = AlgebraicClosure(seed=1)
    system.load({"edge": [(n, (n + 1) % 100) for n in range(100)]})
    for n in range(99):
        system.insert("edge", (n, 99 - n))
    assert 0 < system.error_bound() <= AlgebraicClosure.highest_error_bound(100)
    system.risk = 0.5  # the largest before weights are redrawn
    assert system.error_bound() == pytest.approx(AlgebraicClosure.highest_error_bound(100), rel=0.01)
    (before,) = AlgebraicClosure.prospects()
    assert "8.7e-11 for 100 nodes, 8.7e-07 for 1,000 nodes, 8.7e-03 for 10,000 nodes" in before
    (now,) = system.remarks()
    assert now.endswith("is at most 8.7e-11 (100 nodes)")
    for cls in set(ALL) - {AlgebraicClosure}:
        assert cls.described.exact
        assert cls.prospects() == cls().remarks() == []


def test_a_matrix_is_arrays_while_dense_and_dictionaries_while_sparse() -> None:
    with mock.patch.object(tc_algebra, "LEAST", 64):
        system = AlgebraicClosure()
        for n in range(29):
            system.insert("edge", (n, n + 1))
        assert isinstance(system.matrix, DenseMatrix)
        for n in range(400):
            system.insert("edge", (f"a{n}", f"b{n}"))
        assert isinstance(system.matrix, SparseMatrix)
        assert system.sizes()["path"] == 30 * 29 // 2 + 400
        assert set(system.delete("edge", (14, 15))["path"][0]) == {
            (x, y) for x in range(15) for y in range(15, 30)
        }


def test_without_numpy_it_is_dictionaries_all_along() -> None:
    real = builtins.__import__

    def absent(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "numpy":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    with mock.patch.object(builtins, "__import__", absent):
        system = AlgebraicClosure()
        system.load({"edge": [(n, (n + 1) % 80) for n in range(80)]})
        assert isinstance(system.matrix, SparseMatrix)
        assert system.sizes()["path"] == 80 * 80
        assert len(system.delete("edge", (79, 0))["path"][0]) == 80 * 81 // 2


def test_the_same_seed_draws_the_same_weights_and_without_one_they_differ() -> None:
    def weights(seed: int | None) -> set[Any]:
        system = AlgebraicClosure(seed=seed)
        system.load({"edge": [(1, 2), (2, 3)]})
        return set(system.view("weight"))

    assert weights(1) == weights(1) != weights(2)
    assert weights(None) != weights(None)


# ── alternating paths ────────────────────────────────────────────────────────────────────────────


def test_a_universal_node_is_not_held_up_by_itself() -> None:
    """x universal has y by z; after x → w → x, w would have y only by x: both lose it."""
    system = AlternatingPaths()
    system.load({"edge": [("x", "z"), ("z", "y")], "universal": [("x",)]})
    system.insert("edge", ("w", "x"))
    assert ("w", "y") in set(system.view("apath"))
    changes = system.insert("edge", ("x", "w"))
    assert {("x", "y"), ("w", "y")} <= set(changes["apath"][0])
    system.check()
    assert {("x", "y"), ("w", "y")} <= set(system.delete("edge", ("x", "w"))["apath"][1])


def test_a_universal_node_without_edges_has_itself_alone() -> None:
    system = AlternatingPaths()
    assert set(system.insert("universal", ("u",))["apath"][1]) == {("u", "u")}
    system.insert("edge", ("u", "v"))
    assert ("u", "v") in set(system.view("apath"))
    assert set(system.delete("edge", ("u", "v"))["apath"][0]) == {("u", "v"), ("v", "v")}
    assert set(system.delete("universal", ("u",))["apath"][0]) == {("u", "u")}
    assert not set(system.view("apath"))
