"""The classes and widths of known queries, such as those of Figure 4 of MVIVM."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from oracles.literal import components

from everlog.core.classify import covers, multivariate, widths
from everlog.core.classify.classes import (
    QueryClass,
    classify,
    ear_removal,
    hierarchy_break,
    is_acyclic,
    is_free_connex,
    is_q_hierarchical,
    loomis_whitney,
)
from everlog.core.classify.covers import agm_bound, agm_exponent, cover_number, fractional_cover
from everlog.core.classify.decompositions import Decomposition, from_elimination, join_tree
from everlog.core.classify.multivariate import component, multivariate_width
from everlog.core.classify.query import Query
from everlog.core.classify.widths import fractional_hypertree_width, free_connex_width


def F(text: str) -> Fraction:
    return Fraction(text)


def query(text: str, free: str | None = None) -> Query:
    """`AB BC AC` is R0(A, B), R1(B, C), R2(A, C); `-` is an atom without variables."""
    return Query.of(*(f"R{i}({', '.join(a.strip('-'))})" for i, a in enumerate(text.split())), free=free)


def graph(edges: list[tuple[int, int]]) -> Query:
    return Query.of(*(f"R{i}({', '.join(f'x{v}' for v in edge)})" for i, edge in enumerate(edges)))


def cycle(n: int) -> Query:
    return graph([(i, (i + 1) % n) for i in range(n)])


def lw(k: int) -> Query:
    return query(" ".join("".join(c) for c in combinations("ABCDEFGH"[:k], k - 1)))


HIERARCHICAL, ACYCLIC, CYCLIC = QueryClass
FIGURE_4 = {  # query: class, w(Q), w(Q̂) - 1
    "Q'2p": ("ABC AB BC", ACYCLIC, "1", "1/2"),
    "Q3p": ("AB BC CD", ACYCLIC, "1", "1/2"),
    "QΔ": ("AB BC AC", CYCLIC, "3/2", "1/2"),
    "Q'Δ": ("AB BC AC C", CYCLIC, "3/2", "2/3"),
    "Q*": ("ABCD AB BC BD", ACYCLIC, "1", "2/3"),
    "Q3u": ("ABC A B C", ACYCLIC, "1", "2/3"),
    "Q4u": ("ABCD A B C D", ACYCLIC, "1", "3/4"),
    "Q''2p": ("A AB BC C", ACYCLIC, "1", "1"),
    "Q□": ("AB BC CD AD", CYCLIC, "2", "1"),
}


# ── Figure 4 and Section 4.2 ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", FIGURE_4)
def test_the_queries_of_figure_4(name: str) -> None:
    text, kind, width, exponent = FIGURE_4[name]
    body = query(text)
    assert classify(body)[0] is kind
    static = fractional_hypertree_width(body)
    assert (static.value, static.exact) == (F(width), True)
    static.decomposition.check(body)
    found = multivariate_width(body)
    assert (found.value - 1, found.exact, found.lower) == (F(exponent), True, found.value)
    assert found.worst is not None
    assert fractional_hypertree_width(component(body, found.worst)).value == found.value


@pytest.mark.parametrize("k", [3, 4, 5, 6, 7])
def test_a_loomis_whitney_query_has_multivariate_width_three_halves(k: int) -> None:
    assert loomis_whitney(lw(k)) == k
    assert fractional_hypertree_width(lw(k)).value == Fraction(k, k - 1)
    assert (multivariate_width(lw(k)).value, multivariate_width(lw(k)).exact) == (F("3/2"), True)
    assert classify(lw(k))[0] is CYCLIC


@pytest.mark.parametrize(
    "text", ["", "-", "- -", "A", "AB", "AB AB", "AB AC A", "AB CD", "A AB ABC ABD -", "ABCD A AB"]
)
def test_a_hierarchical_query_has_width_one_twice(text: str) -> None:
    body = query(text)
    assert classify(body) == (
        HIERARCHICAL,
        "the atoms of any two variables are disjoint or one set contains the other",
    )
    assert fractional_hypertree_width(body).value == multivariate_width(body).value == 1
    fractional_hypertree_width(body).decomposition.check(body)
    for _, each in components(body):
        assert is_acyclic(each)


def test_equation_8_of_the_paper() -> None:
    triangle = Query.of("R(A, B)", "S(B, C)", "T(A, C)")
    found = dict(components(triangle))
    assert len(found) == 6
    assert found[0, 1, 2] == Query.of("R(Z1, A, B)", "S(Z1, Z2, B, C)", "T(Z1, Z2, Z3, A, C)")


def test_fresh_variables_do_not_clash() -> None:
    assert component(Query.of("R(Z2, A)", "S(A)"), (0, 1)) == Query.of("R(Z_1, Z2, A)", "S(Z_1, Z_2, A)")


def test_atoms_without_variables_and_duplicates_change_no_width() -> None:
    body = query("- AB BC AC C AB - C")
    assert fractional_hypertree_width(body).value == F("3/2")
    found = multivariate_width(body)
    assert (found.value, found.exact) == (F("5/3"), True)
    assert found.worst is not None
    assert sorted(found.worst) == list(range(8))
    assert fractional_hypertree_width(component(body, found.worst)).value == F("5/3")


# ── classes and reasons ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("atoms", "reason"),
    [
        (
            ["r(a, b)", "s(b, c)", "t(c, d)"],
            "`b` and `c` break the hierarchy: both are in s(b, c), only `b` in r(a, b), only `c` in t(c, d)",
        ),
        (["r(a, b)", "s(b, c)", "t(a, c)", "u(c, d)"], "after ear removal the cycle a – b – c remains"),
        (["r(a, b)", "s(b, c)", "t(c, d)", "u(d, a)", "v()"], "after ear removal the cycle a – b – c – d remains"),
        (
            ["r(a, b, c)", "s(a, b, d)", "t(a, c, d)", "u(b, c, d)", "v(d, e)"],
            "after ear removal a, b, c, d remain: any 3 of them share an atom, but not all",
        ),
    ],
)
def test_the_reason_names_the_witness(atoms: list[str], reason: str) -> None:
    assert classify(Query.of(*atoms))[1] == reason


def test_a_cycle_is_a_shortest_one_without_chords() -> None:
    wheel = graph([(i, (i + 1) % 6) for i in range(6)] + [(0, 3)])  # two squares with a common side
    assert len(ear_removal(wheel).cycle) == 4
    for n in range(3, 9):
        found = ear_removal(cycle(n)).cycle
        near = {frozenset(atom.variables) for atom in cycle(n).atoms}
        assert len(set(found)) == len(found) == n
        assert all(frozenset(pair) in near for pair in pairwise((*found, found[0])))


def test_the_break_is_the_first_in_the_order_of_the_body() -> None:
    assert hierarchy_break(query("AB BC CD DE")) == ("B", "C")
    assert hierarchy_break(query("AB BC")) is None


@pytest.mark.parametrize(
    ("text", "free", "q_hierarchical", "free_connex"),
    [
        ("AB B", "AB", True, True),
        ("AB B", "B", True, True),
        ("AB B", "A", False, True),
        ("AB B", "", True, True),
        ("AB BC", "AC", False, False),
        ("AB BC CD", "ABCD", False, True),
        ("AB BC CD", "ABC", False, True),
        ("AB BC CD", "AD", False, False),
        ("AB BC CD", "", False, True),
        ("AB BC AC", "", False, False),
        ("AB AB", "A", True, True),
        ("- AB", "A", True, True),
    ],
)
def test_free_variables_decide(text: str, free: str, q_hierarchical: bool, free_connex: bool) -> None:
    body = query(text, free)
    assert (is_q_hierarchical(body), is_free_connex(body)) == (q_hierarchical, free_connex)
    assert (free_connex_width(body).value == 1) == free_connex


def test_loomis_whitney_is_strict() -> None:
    assert loomis_whitney(query("AB BC AC -")) == 3
    for other in ["AB", "AB BC", "AB BC AC C", "AB BC AC AB", "AB BC CD AD", "A B C"]:
        assert loomis_whitney(query(other)) is None


@pytest.mark.parametrize("text", ["AB BC CD", "ABC AB BC C", "AB CD EF", "- AB", "ABCD A B C D", "AB AB BC"])
def test_ear_removal_gives_one_join_tree(text: str) -> None:
    body = query(text)
    ears = ear_removal(body)
    assert (ears.remaining, ears.cycle) == ((), ())
    assert ears.parents.count(None) == 1
    for variable in body.variables:  # the atoms that have it are connected
        at = [i for i, atom in enumerate(body.atoms) if variable in atom.variables]
        assert sum(ears.parents[i] not in at for i in at) == 1


# ── decompositions ───────────────────────────────────────────────────────────────────────────────


def test_a_join_tree_has_a_bag_for_each_maximal_atom() -> None:
    body = query("ABC AB BC CD DE E FG - G FG")
    tree = join_tree(body)
    assert tree is not None
    tree.check(body)
    assert sorted("".join(sorted(bag)) for bag in tree.bags) == ["ABC", "CD", "DE", "FG"]
    assert (tree.parents.count(None), tree.width) == (2, 1)
    assert join_tree(query("AB BC AC")) is None
    assert join_tree(query("-")) == Decomposition((frozenset(),), (None,), Fraction(1))


def test_every_atom_has_a_home() -> None:
    body = query("AB BC CD AD - A")
    found = from_elimination(body, "ACBD")
    for atom, bag in zip(body.atoms, found.home(body), strict=True):
        assert found.bags[bag].issuperset(atom.variables)


@pytest.mark.parametrize(
    ("bags", "parents", "wrong"),
    [
        (["AB", "BC"], [None, 0], "I1"),  # no bag has A and C
        (["ABC", "D"], [None, None], "I1"),  # no such variable
        (["ABC", "A"], [None, None], "I2"),  # A is in two parts
        (["ABC", "A"], [1, None], "I3"),  # the child comes first
    ],
)
def test_check_refuses_what_is_no_decomposition(bags: list[str], parents: list[int | None], wrong: str) -> None:
    bad = Decomposition(tuple(map(frozenset, bags)), tuple(parents), F("3/2"))
    with pytest.raises(AssertionError, match=wrong):
        bad.check(query("AB BC AC"))


def test_the_top_of_a_free_connex_decomposition_is_over_the_free_variables() -> None:
    body = query("AB BC CD DE", "BC")
    found = free_connex_width(body).decomposition
    found.check(body)
    top = [i for i, bag in enumerate(found.bags) if bag <= body.free]
    assert frozenset().union(*(found.bags[i] for i in top)) == body.free
    assert all(found.parents[i] is None or found.parents[i] in top for i in top)


# ── covers ───────────────────────────────────────────────────────────────────────────────────────

FANO = ["ABC", "ADE", "AFG", "BDF", "BEG", "CDG", "CEF"]


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([], "0"),
        (["ABC"], "1"),
        (["AB", "BC"], "2"),
        (["AB", "BC", "AC"], "3/2"),
        (["AB", "BC", "CD", "DE", "AE"], "5/2"),
        (["AB", "BC", "CD", "DE", "EF", "FG", "AG"], "7/2"),
        (["AB", "BC", "CD", "AD"], "2"),
        (["ABC", "ABD", "ACD", "BCD"], "4/3"),
        (["ABC", "A", "B", "C"], "1"),
        (FANO, "7/3"),
        (["AB", "BC", "AC", "DE", "EF", "DF", "GH"], "4"),
    ],
)
@pytest.mark.parametrize("small", [0, covers.SMALL])
def test_covers_of_known_hypergraphs(
    edges: list[str], expected: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covers, "SMALL", small)  # 0: HiGHS for all
    covers.solve.cache_clear()
    sets = [frozenset(edge) for edge in edges]
    vertices = frozenset().union(*sets)
    found = fractional_cover(sets, vertices)
    assert found.number == sum(found.weights) == sum(found.packing.values()) == F(expected)
    for v in vertices:
        assert sum(w for edge, w in zip(sets, found.weights, strict=True) if v in edge) >= 1
    for edge in sets:
        assert sum(found.packing[v] for v in edge) <= 1


def test_fractions_that_prove_nothing_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covers, "SMALL", 0)
    monkeypatch.setattr(covers, "highs", lambda edges, n: ((F("1/3"),) * len(edges), (F("1/3"),) * n))
    covers.solve.cache_clear()
    found = fractional_cover([frozenset(e) for e in ["AB", "BC", "CD", "DE", "AE"]], frozenset("ABCDE"))
    covers.solve.cache_clear()
    assert found.number == F("5/2")


def test_a_large_kernel_is_proved_too() -> None:
    n = 31  # an odd cycle: all weights are 1/2
    found = fractional_cover(
        [frozenset({f"{i}", f"{(i + 1) % n}"}) for i in range(n)], frozenset(map(str, range(n)))
    )
    assert found.number == Fraction(n, 2)
    assert set(found.weights) == {F("1/2")}


def test_a_vertex_without_an_edge_is_our_mistake() -> None:
    with pytest.raises(AssertionError):
        fractional_cover([frozenset("AB")], frozenset("ABC"))


def test_the_number_of_a_bag_depends_on_the_edges_of_its_vertices() -> None:
    square = [0b1001, 0b0011, 0b0110, 0b1100]
    assert [cover_number(square[i] for i in bag) for bag in ([], [0], [0, 1], [0, 1, 2], [0, 2])] == [
        0,
        1,
        1,
        2,
        2,
    ]
    assert cover_number([0b01, 0b01, 0b11]) == 1


def test_agm() -> None:
    triangle = query("AB BC AC")
    assert agm_exponent(triangle) == F("3/2")
    assert agm_exponent(query("AB BC AC -")) == F("3/2")
    assert agm_exponent(query("- -")) == 0
    assert agm_bound(triangle, [100, 100, 100]) == pytest.approx(1000)
    assert agm_bound(triangle, [4, 100, 10**6]) == pytest.approx(400)  # R × S, then T filters
    assert agm_bound(triangle, [100, 0, 100]) == 0
    assert agm_bound(query("AB AB B"), [50, 20, 3]) == pytest.approx(20)
    assert agm_bound(query("- A"), [1, 7]) == pytest.approx(7)
    assert agm_bound(query("- A"), [0, 7]) == 0
    assert agm_bound(query(""), []) == 1
    assert agm_bound(graph([(2 * i, 2 * i + 1) for i in range(40)]), [10**9] * 40) == float("inf")


# ── limits ───────────────────────────────────────────────────────────────────────────────────────


def test_too_many_variables_give_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = graph([(4 * i + j, 4 * i + j + step) for i in range(4) for j in range(4) for step in (1, 4)
                  if (step == 4 and i < 3) or (step == 1 and j < 3)])  # fmt: skip
    exact = fractional_hypertree_width(cycle(8))
    found = fractional_hypertree_width(grid)
    assert (exact.value, exact.exact, found.exact) == (2, True, False)
    assert found.value >= 2
    found.decomposition.check(grid)
    monkeypatch.setattr(widths, "MOST_VARIABLES", 16)
    widths._width.cache_clear()
    best = fractional_hypertree_width(grid)
    assert best.exact
    assert best.value <= found.value
    widths._width.cache_clear()


def test_too_many_atoms_give_bounds() -> None:
    star = query("ABCDEFG A B C D E F G")
    found = multivariate_width(star)
    assert (found.value, found.exact, found.lower) == (2, False, F("3/2"))
    found = multivariate_width(cycle(7))
    assert (found.value, found.exact, found.lower) == (3, False, 2)


def test_too_much_work_gives_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    body = query("AEGH CEGH BCDHI CEJ BDFJ BCEFG")
    exact = multivariate_width(body)
    monkeypatch.setattr(multivariate, "MOST_WORK", 200)
    multivariate_width.cache_clear()
    found = multivariate_width(body)
    multivariate_width.cache_clear()
    assert (exact.exact, found.exact) == (True, False)
    assert F("3/2") <= found.lower <= exact.value <= found.value <= fractional_hypertree_width(body).value + 1


def test_small_queries_need_no_scipy() -> None:
    """To load scipy takes a second: too long for a program that only has small rules."""
    code = (
        "import sys; from everlog.core.classify.query import Query;"
        "from everlog.core.classify.multivariate import multivariate_width as w;"
        "assert w(Query.of('R(A, B)', 'S(B, C)', 'T(C, D)', 'U(A, D)', 'V(A, C)')).exact;"
        "assert 'scipy' not in sys.modules and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
