"""The formatter, and `everlog fmt`, which calls it."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import pytest

from everlog.cli import main
from everlog.dsl.formatter import format_text


def formatted(text: str) -> str:
    """The text formatted, which a second time changes nothing."""
    out, report = format_text(text, "x.dl")
    assert report.items == [], report.text()
    assert format_text(out, "x.dl")[0] == out
    return out


# ── blanks and lines ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("p( x,y ):-q(x),!r(y) .", "p(x, y) :- q(x), !r(y)."),
        ("p(x):-q(x);r(x).", "p(x) :- q(x) ; r(x)."),
        (".decl p ( x : number ,y:symbol )output", ".decl p(x:number, y:symbol) output"),
        (".output  p ( IO = file )", ".output p(IO=file)"),
        (".type A=B|C", ".type A = B | C"),
        (".type R=[a:number,b:R]", ".type R = [a:number, b:R]"),
        (".type E=Num{x:number}|Nil{}", ".type E = Num { x:number } | Nil {}"),
        (".lattice L<>{Top->1,Lub->@f(_,_)}", ".lattice L<> { Top -> 1, Lub -> @f(_, _) }"),
        (".functor f( number ) : number", ".functor f(number):number"),
        ("p(x):-x=-1-  -y,z=- 2.", "p(x) :- x = -1 - -y, z = -2."),
        ("p(x):-x=count:{q(_)},y<x.", "p(x) :- x = count : { q(_) }, y < x."),
        ("p($ A(1),$-1,@ f(x)).", "p($A(1), $ - 1, @f(x))."),
        ("a(x)<=a(y):-x<y. .plan 0:(1,2)", "a(x) <= a(y) :- x < y.\n    .plan 0:(1, 2)"),
        (".init x=C< A,B >", ".init x = C<A, B>"),
        (".output a. decl", ".output a. decl"),
    ],
)
def test_blanks(written: str, shown: str) -> None:
    assert formatted(written) == shown + "\n"


def test_spellings_and_needless_parentheses_stay() -> None:
    text = 'p(127.0.0.1, $, (1), 0x1F, "a\\\'b") :- ((q())), x = (N) * 2.\n'
    assert formatted(text) == text


def test_one_statement_per_line() -> None:
    assert (
        formatted(".decl p() .output p p():-q(). p():-r().") == ".decl p()\n.output p\np() :- q().\np() :- r().\n"
    )


def test_facts_that_share_a_line_stay_together_while_they_fit() -> None:
    assert formatted("p(1).p(2).\np(3).") == "p(1). p(2).\np(3).\n"
    lines = formatted("edge(10, 20)." * 20).splitlines()
    assert [len(line) for line in lines] == [97, 97, 83]


def test_a_rule_joins_no_line() -> None:
    assert formatted("p(1). q(x) :- p(x). p(2). p(3).") == "p(1).\nq(x) :- p(x).\np(2). p(3).\n"


def test_a_rule_that_fits_is_one_line_and_one_that_does_not_is_many() -> None:
    assert formatted("p(x) :-\n  q(x),\n  r(x).") == "p(x) :- q(x), r(x).\n"
    long = ", ".join(f"relation_number_{i}(x)" for i in range(6))
    assert formatted(f"p(x) :- {long}.").splitlines()[:2] == ["p(x) :-", "    relation_number_0(x),"]


def test_one_empty_line_is_kept_between_statements_and_none_at_the_ends() -> None:
    assert formatted("\n\np().\n\n\n\nq().\nr().\n\n") == "p().\n\nq().\nr().\n"


def test_a_file_of_nothing_stays_empty() -> None:
    assert formatted("") == ""
    assert formatted(" \n\n\t") == ""


def test_components_are_indented() -> None:
    text = ".comp A<T>:B{\n\n.decl p(x:T) p(1).p(2).\n.comp C{}\n\n// end\n\n}.init a=A<number>"
    assert formatted(text).splitlines() == [
        ".comp A<T> : B {",
        "    .decl p(x:T)",
        "    p(1). p(2).",
        "    .comp C {}",
        "",
        "    // end",
        "}",
        ".init a = A<number>",
    ]


def test_line_ends_and_the_byte_order_mark_stay() -> None:
    assert formatted("\ufeffp( 1).\r\n// a\r\n\r\n\r\nq( 2).") == "\ufeffp(1).\r\n// a\r\n\r\nq(2).\r\n"


# ── comments ─────────────────────────────────────────────────────────────────────────────────


def test_comments_stay_where_they_are() -> None:
    text = "//  top\n/* a\n     b */\n\np(x):-q(x). // why\n/* c */ r(1).  s(2). /* d */ // e\n   // last"
    assert formatted(text).splitlines() == [
        "//  top",
        "/* a",
        "     b */",
        "",
        "p(x) :- q(x).  // why",
        "/* c */ r(1). s(2).  /* d */ // e",
        "// last",
    ]


def test_comments_in_a_column_stay_in_their_column() -> None:
    text = ".decl p(x:number)      // one\n.decl longer(x:number) // two\n"
    assert formatted(text) == ".decl p(x:number)      // one\n.decl longer(x:number)  // two\n"
    assert formatted("p() :- q(). .plan 0:(1)       // why") == "p() :- q().\n    .plan 0:(1)  // why\n"


def test_what_follows_a_comment_on_its_line_begins_a_new_one() -> None:
    assert formatted("p(1). /* a */ q(2).") == "p(1).  /* a */\nq(2).\n"
    assert formatted(".comp A { /* a */ q(2). /* b */ }") == ".comp A {  /* a */\n    q(2).  /* b */\n}\n"


def test_a_statement_with_a_comment_inside_is_left_as_it_is() -> None:
    text = "p(x):-   q(x), // first\n      r(x).\n"
    assert formatted(text + "s( 1).") == text + "s(1).\n"


def test_what_looks_like_a_comment_in_a_string_is_none() -> None:
    assert formatted('p("//"  ,"/*","#").') == 'p("//", "/*", "#").\n'


# ── the preprocessor ─────────────────────────────────────────────────────────────────────────


def test_preprocessor_lines_are_kept_to_the_letter() -> None:
    text = '#define  N  3\n   #if N  \\\n  > 2 /* so\n*/\np(N).\n#endif // "\n\n#define Q "\np(1).\n'
    assert formatted(text.replace("p(N)", "p( N )")) == text


def test_a_statement_with_a_preprocessor_line_inside_is_left_as_it_is() -> None:
    text = "p(x):-q(x)\n#ifdef A\n  ,r(x)\n#endif\n ,s(x).\n"
    assert formatted(text) == text


def test_includes_are_kept_to_the_letter() -> None:
    text = '.once\n.include  "a.dl"   // all of it\n  .include "b.dl"\np(1).\n'
    assert formatted(text) == text
    assert formatted('.include "a.dl" p( 1).') == '.include "a.dl"\np(1).\n'


def test_a_text_that_is_no_program_before_its_macros_is_left_alone() -> None:
    text = "#define RULE p(x) :- q(x).\nRULE\nr( 1).\n"
    out, report = format_text(text, "x.dl")
    assert out == text
    assert [report.source.locate(d.pos).line for d in report.errors] == [3]


def test_a_syntax_error_is_reported_at_its_place_and_nothing_is_changed() -> None:
    text = "p(1).\n/* a */ q(x :- r(x).\n"
    out, report = format_text(text, "x.dl")
    assert out == text
    place = report.source.locate(report.errors[0].pos)
    assert (place.file, place.line, place.column, place.text) == ("x.dl", 2, 13, "/* a */ q(x :- r(x).")


@pytest.mark.parametrize("text", ['p("a', "p(1). /* a", "p(1). #define", 'p("\\q").', ".include a", "p(1) ~"])
def test_broken_words_are_errors_too(text: str) -> None:
    out, report = format_text(text, "x.dl")
    assert out == text
    assert report.errors


# ── the command ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.dl"
    path.write_bytes(b"p( 1).\n")
    return path


def test_fmt_prints_the_formatted_text(file: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    file.write_bytes(b'p( "\xe9" ).\r\n')
    assert main(["fmt", str(file), str(file)]) == 0
    assert capsysbinary.readouterr().out == b'p("\xe9").\r\n' * 2
    assert file.read_bytes() == b'p( "\xe9" ).\r\n'


def test_fmt_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("p( 1)."))
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == "p(1).\n"
    assert main(["fmt", "-i", "-"]) == 2


def test_fmt_in_place_rewrites_what_changes_and_says_so(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.chmod(0o640)
    link = file.with_name("link.dl")
    link.symlink_to(file)
    assert main(["fmt", "-i", str(link)]) == 0
    assert capsys.readouterr().out == f"formatted {link}\n"
    assert file.read_bytes() == b"p(1).\n"
    assert (link.is_symlink(), stat.S_IMODE(file.stat().st_mode)) == (True, 0o640)
    before = file.stat().st_ino
    assert main(["fmt", "--in-place", str(file)]) == 0
    assert (capsys.readouterr().out, file.stat().st_ino) == ("", before)
    assert sorted(os.listdir(file.parent)) == ["link.dl", "x.dl"]


def test_fmt_check_names_the_files_that_would_change(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = file.with_name("good.dl")
    good.write_bytes(b"p(1).\n")
    assert main(["fmt", "--check", str(good), str(file)]) == 1
    assert capsys.readouterr().out == f"{file}\n"
    assert main(["fmt", "--check", str(good)]) == 0
    assert file.read_bytes() == b"p( 1).\n"


@pytest.mark.parametrize("flags", [[], ["-i"], ["--check"]])
def test_fmt_reports_syntax_errors_and_goes_on(
    flags: list[str], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = file.with_name("bad.dl")
    bad.write_bytes(b"#define A 1\np( A\n")
    assert main(["fmt", *flags, str(bad), str(file.with_name("none.dl")), str(file)]) == 1
    told = capsys.readouterr()
    assert "error[DL010]" in told.err
    assert "macros are not expanded" in told.err
    assert "cannot read" in told.err
    assert told.out != ""
    assert bad.read_bytes() == b"#define A 1\np( A\n"


def test_fmt_that_cannot_write_leaves_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr("os.replace", fails)
    assert main(["fmt", "-i", str(file)]) == 1
    assert "no space left" in capsys.readouterr().err
    assert os.listdir(file.parent) == ["x.dl"]
