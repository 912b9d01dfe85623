"""The paper's own objects, to the letter: Table 1, Table 2, Figure 1, Eq. (15), Example 6.4."""

from __future__ import annotations

from everlog.core.classify.multivariate import component
from everlog.core.classify.query import Query
from everlog.core.joins.view import joined
from everlog.core.mvivm.lifespans import (
    Lived,
    canonical_partition,
    interval,
    partition_of_database,
    partition_of_tuple,
    time_join,
)
from everlog.core.mvivm.literal import Literal

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
    """For ever is the end of time: here 16, since the paper's 8 updates are followed by the moment after them."""
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
