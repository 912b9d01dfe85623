"""The Pygments lexer: found by name, loses no character, knows all keywords."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments import highlight, lex
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, Token

from everlog.dsl.keywords import DIRECTIVES, KEYWORDS
from everlog.pygments_lexer import DatalogLexer, SessionLexer

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "programs").rglob("*.dl"))


@pytest.mark.parametrize("name", ["souffle", "datalog-everlog", "everlog", "dl"])
def test_pygments_finds_the_lexer_by_its_names(name: str) -> None:
    assert isinstance(get_lexer_by_name(name), DatalogLexer)


def test_pygments_finds_it_by_the_name_of_a_file_and_sphinx_would_use_it() -> None:
    lexer = get_lexer_for_filename("reach.dl")
    assert isinstance(lexer, DatalogLexer)
    assert '<span class="nf">path</span>' in highlight("path(x) :- edge(x).", lexer, HtmlFormatter())
    assert isinstance(get_lexer_by_name("everlog-session"), SessionLexer)


def kinds(text: str) -> dict[str, object]:
    return {word: kind for kind, word in lex(text, DatalogLexer())}


def test_each_part_of_a_rule_has_its_colour() -> None:
    found = kinds(
        ".decl near(x:number, s:symbol) // remark\n"
        'near(x, "a\\n") :- far(x, _), y = count : { far(_, z) }, z != 0x1F, f = 1.5, match("a.*", s), @twice(x) = 7.\n'
    )
    assert found[".decl"] in Keyword.Declaration
    assert found["number"] in Keyword.Type
    assert found["// remark"] in Comment
    assert found["near"] in Name.Function
    assert found["far"] in Name.Function
    assert found["x"] in Name.Variable
    assert found['"'] in String
    assert found["\\n"] in String.Escape
    assert found["count"] in Name.Builtin
    assert found["0x1F"] in Number.Hex
    assert found["1.5"] in Number.Float
    assert found[":-"] in Operator
    assert found["@twice"] in Name.Decorator


def test_what_is_typed_at_the_prompt_has_its_colour() -> None:
    assert kinds(".tables")[".tables"] in Keyword.Namespace
    assert kinds("?- path(1, x).")["?-"] in Keyword
    assert kinds("path($from, x)?")["$from"] in Name.Variable
    assert kinds("-path#2.")["path#2"] in Name.Label


@pytest.mark.parametrize("word", [*KEYWORDS, *DIRECTIVES])
def test_every_word_of_the_language_is_known(word: str) -> None:
    kind = kinds(f"{word} x")[word]
    assert kind in Keyword or kind in Name.Builtin or kind in Operator.Word, kind


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_programs_lose_nothing_and_have_no_errors(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = list(DatalogLexer(stripnl=False, ensurenl=False).get_tokens(text))
    assert "".join(word for _, word in found) == text
    assert not [word for kind, word in found if kind in Token.Error]


@given(st.text(st.sampled_from('.-?+"\\/*#@[](){}:;,= \n0axé')))
def test_no_text_is_refused(text: str) -> None:
    for lexer in (DatalogLexer, SessionLexer):
        found = list(lexer(stripnl=False, ensurenl=False).get_tokens(text))
        assert "".join(word for _, word in found) == text


def test_a_conversation_has_its_prompts_and_changes() -> None:
    text = "everlog> edge(1, 2).\n+edge(1, 2).\neverlog [1 pending]> -edge(1, 2).\n-edge(1, 2).\nerror: no\n    ...> x\n"
    found = [(str(kind), word) for kind, word in lex(text, SessionLexer()) if kind in Generic]
    assert found == [
        ("Token.Generic.Prompt", "everlog> "),
        ("Token.Generic.Inserted", "+edge(1, 2)."),
        ("Token.Generic.Prompt", "everlog [1 pending]> "),
        ("Token.Generic.Deleted", "-edge(1, 2)."),
        ("Token.Generic.Error", "error: no"),
        ("Token.Generic.Prompt", "    ...> "),
    ]
