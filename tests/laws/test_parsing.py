"""The parser never crashes or hangs: any text is a program or has errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everlog.dsl.check import diagnose
from everlog.dsl.preprocess import preprocess_text

ROOT = Path(__file__).parent.parent.parent
PROGRAMS = sorted((ROOT / "programs").rglob("*.dl"))
WORDS = """.decl .type .input .output .printsize .limitsize .comp .init .override .plan .functor .pragma .lattice
 a b x y p q number symbol float unsigned A1 _ _x ?y ( ) [ ] { } , ; : :- . = != < <= > >= <: | ! $ @ + - * / % ^ ->
 1 0 42 0x1F 0b11 3u 1.5 1.2.3.4 99999999999999999999 "s" "" "a\\n" "\\q" true false match contains cat strlen substr
 count sum min max mean range autoinc as nil band bor land lnot bnot eqrel inline choice-domain btree_delete
 recursive_iteration_cnt debug_delta stateful // /* */ #define #if #endif #include \\ \t \n""".split(" ")


def ends_well(text: str) -> None:
    source, problems = preprocess_text(text, "soup.dl")
    program, report = diagnose(source, problems)
    report.text()
    report.as_json()
    if program is None:
        assert report.errors, "no program, and no reason given"
        for diagnostic in report.errors:
            assert diagnostic.message
            assert diagnostic.code.startswith("DL")
    else:
        assert not report.errors


@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
@example(".decl a(x:number) a(1).a(2). a(x) :- a(y), x = y + .")
@example("a.b.c(1). .comp A { .comp B : A {} } .init a = A.B")
@example(".comp A<T> : T { .init x = A<T> } .init y = A<A>")
def test_token_soup_ends_in_a_program_or_in_diagnostics(text: str) -> None:
    ends_well(text)


DECLARED = ".decl a(x:number, y:number)\n.decl s(x:symbol)\n.decl n()\n.decl f(x:float, y:unsigned)\n"
BODY_WORDS = [
    *"a ( ) , ; ! x y z _ 1 2 s n f ( ) , = < != + - * { } : count sum max min range cat strlen".split(),
    *[
        '"s"',
        "3u",
        "1.5",
        "true",
        "false",
        "a(x, y)",
        "s(z)",
        "n()",
        "as(",
        "number",
        "autoinc()",
        "match(",
        ":-",
        ".",
    ],
]


@given(st.lists(st.lists(st.sampled_from(BODY_WORDS), max_size=14).map(" ".join), max_size=3))
@example(["x, y ) , z = count : { a(z, _) }"])
def test_rules_of_random_words_end_in_a_program_or_in_diagnostics(bodies: list[str]) -> None:
    ends_well(DECLARED + "".join(f"a(x, y) :- a(x, y), {body}.\n" for body in bodies))


@given(st.text(max_size=200))
def test_any_text_ends_in_a_program_or_in_diagnostics(text: str) -> None:
    ends_well(text)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
@given(data=st.data())
def test_mutations_of_every_program_end_in_a_program_or_in_diagnostics(path: Path, data: st.DataObject) -> None:
    text = path.read_text(encoding="utf-8")
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        stop = min(len(text), start + data.draw(st.integers(0, 30)))
        middle = data.draw(st.one_of(st.sampled_from(WORDS), st.text(max_size=5), st.just("")))
        moved = data.draw(st.sampled_from(["", text[start:stop]]))
        text = text[:start] + middle + moved + text[stop:]
    ends_well(text)
