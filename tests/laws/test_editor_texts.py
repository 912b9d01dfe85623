"""Whatever is in the text: no feature fails, edits arrive, and names agree with the checker."""

from __future__ import annotations

from random import Random

import pytest
from editor_documents import URI, everything, view_of
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types as lsp
from lsprotocol.converters import get_converter
from mutations import mutated

from everlog.editor.text_lines import column_at, normal, replaced, units

CONVERTER = get_converter()
TEXTS = st.text(st.sampled_from('ab(),.:- \n\r"é🦉\u2028'), max_size=40)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])


def check_text(seed: int, positions: int) -> None:
    """All features at random positions of a damaged program; answers must be valid messages."""
    text, random = mutated(seed), Random(seed)
    view = view_of(text[:60_000])
    for _ in range(positions):
        line = random.randrange(len(view.document.lines) + 1)
        position = lsp.Position(line, random.randrange(80))
        for answer in everything(view, position).values():
            CONVERTER.unstructure(answer)
    for items in everything(view, lsp.Position(0, 0))["diagnostics"].values():
        for item in items:
            assert item.range.start <= item.range.end


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9))
def test_no_feature_fails_on_a_damaged_program(seed: int) -> None:
    check_text(seed, 2)


@pytest.mark.parametrize("seed", [85, 107, 2171])  # a word of 20,000 letters; many errors; many on one line
def test_programs_that_were_slow_once(seed: int) -> None:
    check_text(seed, 1)


@pytest.mark.deep
@settings(max_examples=3_000, deadline=None)
@given(st.integers(0, 10**9))
def test_no_feature_fails_on_many_damaged_programs(seed: int) -> None:
    check_text(seed, 4)


@given(TEXTS, TEXTS, st.data(), ENCODINGS)
def test_an_edit_replaces_what_the_editor_means(text: str, new: str, data: st.DataObject, encoding: str) -> None:
    """Positions are lines and units; offsets of the text agree with them."""
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, len(text)))
    if any(text[at : at + 2] == "\r\n" for at in (first - 1, last - 1) if at >= 0):
        return  # no position stands between the two

    def position(at: int) -> tuple[int, int]:
        before = normal(text[:at])
        return before.count("\n"), units(before.rpartition("\n")[2], encoding)

    assert replaced(text, position(first), position(last), new, encoding) == text[:first] + new + text[last:]


@given(TEXTS, ENCODINGS, st.integers(0, 50))
def test_columns_go_back_and_forth(text: str, encoding: str, column: int) -> None:
    column = min(column, len(text))
    assert column_at(text, units(text[:column], encoding), encoding) == column


def test_the_uri_of_a_document_is_kept() -> None:
    assert view_of("p(1).").document.uri == URI
