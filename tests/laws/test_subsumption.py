"""Subsumption in recursion: orders, circles and both, on both machines, as the reference has it."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from agreeing import agree
from generators import histories, shaped_cases
from hypothesis import example, given, note
from hypothesis import strategies as st
from living import examples, follows, program_of

from everlog.core.evaluate import seminaive
from everlog.core.evaluate.native import subsumption
from everlog.core.evaluate.subsume import dominances
from everlog.dsl.check import compile_text

INPUTS = {"e": ("number", "number"), "t": ("number", "number", "number"), "v": ("number",)}
DECLARATIONS = """.decl e(x:number, y:number)  .decl t(x:number, y:number, z:number)  .decl v(x:number)
.decl p(x:number, a:number, b:number) btree_delete
p(x, y, z) :- t(x, y, z).
"""
RULES = [
    "p(y, a + x, b) :- p(x, a, b), e(x, y), a < 6.",
    "p(y, a, b + 1) :- p(x, a, b), e(x, y), b < 6.",
    "p(x, b, a) :- p(x, a, b), v(b).",
    "p(x, c, b) :- p(x, _, b), p(b, c, _).",
    "p(x, a, a) :- v(x), e(x, a).",
    "p(7, a, 0) :- p(_, a, _).",
]
CLAUSES = [
    "p(x, a, b) <= p(x, c, d) :- c <= a, d <= b.",
    "p(x, a, b) <= p(x, c, d) :- c < a.",
    "p(x, a, b) <= p(x, c, d) :- a < c, d = b.",
    "p(x, a, b) <= p(x, c, d) :- c = a, d < b.",
    "p(x, a, b) <= p(x, a, d) :- b < d.",
    "p(x, a, _) <= p(x, c, _) :- c <= a.",
    "p(x, a, b) <= p(y, a, b) :- y < x.",
    "p(x, a, b) <= p(y, c, d) :- e(x, y), c < a.",
    "p(x, a, b) <= p(x, c, d) :- c <= a, d <= b, v(x).",
    "p(x, a, b) <= p(x, c, d) :- c <= a, b <= d, p(d, _, _).",
    "p(x, a, b) <= p(x, c, b) :- e(c, a).",
    "p(x, a, a) <= p(x, c, c) :- c <= a.",
]
LINES = st.tuples(
    st.lists(st.sampled_from(RULES), max_size=3, unique=True),
    st.lists(st.sampled_from(CLAUSES), min_size=1, max_size=3, unique=True),
).map(lambda drawn: "\n".join([*drawn[0], *drawn[1]]))


@given(LINES, histories(INPUTS, numbers=4), st.sampled_from([0, 10**9]))
@example("\n".join([RULES[0], CLAUSES[0]]), ({"t": [(0, 3, 3), (0, 2, 3), (0, 3, 1)], "e": [(0, 0)]}, []), 0)
def test_subsumption_agrees_with_the_reference(text: str, history: Any, few: int) -> None:
    """With `few` = 0, what has not gone moves whenever more than half of the facts have gone."""
    note(text)
    with patch.object(subsumption, "_FEW", few):
        agree(compile_text(DECLARATIONS + text), history[0])


@examples(20)
@given(LINES, histories(INPUTS, numbers=4))
def test_what_is_computed_anew_as_words_follows(text: str, history: Any) -> None:
    with patch.object(seminaive, "_WORTH_WORDS", 0):
        follows(program_of(DECLARATIONS + text), *history, ["follow"])


@examples(20)
@given(shaped_cases())
def test_every_unit_that_is_computed_anew_as_words_follows(case: Any) -> None:
    """Choices, limits and counters, too."""
    text, inputs, stream = case
    with patch.object(seminaive, "_WORTH_WORDS", 0):
        follows(program_of(text), inputs, stream, ["bulk"])


@pytest.mark.parametrize(
    ("clauses", "in_pairs"),
    [
        ([0], False),
        ([1], False),
        ([1, 3], False),  # lexicographic
        ([0, 1, 3], False),
        ([2, 4], False),
        ([1, 2], True),
        ([3, 4], True),
        ([5], True),
        ([6], False),
        ([7], False),
        ([9], False),
        ([10], True),
        ([11], False),
    ],
)
def test_it_is_known_where_facts_cannot_dominate_each_other(clauses: list[int], in_pairs: bool) -> None:
    text = "\n".join(CLAUSES[number] for number in clauses)
    assert dominances(compile_text(DECLARATIONS + text).subsumptions)["p"].in_pairs is in_pairs
