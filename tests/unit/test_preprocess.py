"""The preprocessor: the part of C's that Soufflé uses, with line numbers."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everlog.dsl.preprocess import Problem, load, preprocess_text
from everlog.dsl.source import Source


def output(text: str, **options: object) -> str:
    source, problems = preprocess_text(text, **options)  # type: ignore[arg-type]  # any option
    assert problems == []
    return source.text


def last(text: str) -> str:
    """The last line of the output, without blanks around it."""
    return output(text).rstrip("\n").rpartition("\n")[2].strip()


def codes(text: str, **options: object) -> list[tuple[str, int]]:
    problems = preprocess_text(text, **options)[1]  # type: ignore[arg-type]  # any option
    return [(problem.code, problem.line) for problem in problems]


def place(source: Source, word: str) -> tuple[str, int]:
    where = source.locate(source.text.index(word))
    return Path(where.file).name, where.line


@pytest.fixture
def tree(tmp_path: Path):
    """Write files, and load the first of them."""

    def make(files: dict[str, str], **options: object) -> tuple[Source, list[Problem]]:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
        return load(tmp_path / next(iter(files)), **options)  # type: ignore[arg-type]  # any option

    return make


# ── text that has nothing to do ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a(1).",
        ".decl a(x: number)\na(x) :- b(x), x != 2. // done\n",
        'a("# not a directive").\n',
        'a(".include \\"x\\"").\n// .once #define A 1\n',
        "/*\n#define a b\n.include\n*/\na(1).\n",
        'a("a string\nover lines").\n',
        "component.once(1). component.include(2).\n",
    ],
)
def test_text_without_directives_is_left_as_it_is(text: str) -> None:
    assert preprocess_text(text) == (Source(text, "<text>"), [])


def test_a_large_text_is_only_searched() -> None:
    facts = "".join(f'edge({i}, "node {i}").\n' for i in range(20_000))
    calls = count()
    sys.setprofile(lambda *_: next(calls))
    try:
        plain, _ = preprocess_text(facts)
        some, _ = preprocess_text("#define FIRST 0\nroot(FIRST).\n" + facts)
    finally:
        sys.setprofile(None)
    assert next(calls) < 20_000, "fewer than one for each line"
    assert plain.text is facts
    assert some.text == "\nroot(0).\n" + facts
    assert plain.origins == some.origins == []


def test_a_file_is_utf8_with_stray_bytes_kept_its_mark_dropped_and_its_line_ends_made_plain(tree) -> None:
    source, problems = tree({"main.dl": '\ufeff#define É 1\r\na("é\udcff", X).\r\n#define X 2\r\nb(X).\r\n'})
    assert source.text == '\na("é\udcff", X).\n\nb(2).\n'
    assert [p.code for p in problems] == ["DL102"]


def test_a_main_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.dl")


# ── macros ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define N 3\na(N, NN, N2, ?N, N?, _N).", "a(3, NN, N2, ?N, N?, _N)."),
        ("#define ?x y\na(?x, x).", "a(y, x)."),
        ("#define EMPTY\na(EMPTY 1).", "a( 1)."),
        ("  #  define   N   3  // three\nN", "3"),
        ("#define N 3\n#undef N\na(N).", "a(N)."),
        ("#define N 3\n#define N 4\na(N).", "a(4)."),
        ("#define A B\n#define B 3\na(A).", "a(3)."),
        ("#define LE <\na LE= b", "a < = b"),
        ("#define F(x, y) x + y\na(F(1, 2)).", "a(1 + 2)."),
        ("#define F(x) [x]\nF(a(b, c)) F ((1, 2)) F", "[a(b, c)] [(1, 2)] F"),
        ("#define F(x) x\nF(a)b", "a b"),
        ("#define F() 1\nF() F( )", "1 1"),
        ("#define F(x) <x>\nF()", "<>"),
        ("#define F (x)\nF(1)", "(x)(1)"),
        ("#define F(x) x x\nF(F(a))", "a a a a"),
        ('#define F(x) x\nF("a, (b")', '"a, (b"'),
        ("#define F(x) x\n#define G F\nG(3)", "3"),
        ("#define F(x) x\n#define OPEN F(\nOPEN 3)", "3"),
        ("#define F(x) [x]\n#define G(y) F y\nG()(3 )", "[3]"),
        ("#define hash_hash # ## #\n#define P(a) a hash_hash b\nP(x)", "x ## b"),
        ("#define S(x) #x\nS(a  b) S(3)", '"a b" "3"'),
        ('#define S(x) # x\nS("a\\n")', '"\\"a\\\\n\\""'),
        ("#define N 3\n#define S(x) #x\n#define T(x) S(x)\nS(N) T(N)", '"N" "3"'),
        ("#define P(x, y) x ## y\nP(a, b) P(a, ) P(, b) P(1, 2)", "ab a b 12"),
        ("#define P(x) rel_##x(y)\nP(one)", "rel_one(y)"),
        ("#define N 3\n#define P(x, y) x##y\nP(N, N)", "NN"),
        ("#define A x ## y\nA", "xy"),
        ("#define V(...) r(__VA_ARGS__)\nV(a, b) V() V((c, d))", "r(a, b) r() r((c, d))"),
        ("#define V(x, ...) x: __VA_ARGS__\nV(a, b, c)", "a: b, c"),
        ("#define V(x, rest...) x: rest\nV(a, b, c)", "a: b, c"),
        ('#define N 3\na("N", N). // N\n', 'a("N", 3). // N'),
        ('#define N 3\na("\\"N", N). /* N */ b(N).', 'a("\\"N", 3). /* N */ b(3).'),
        ("#define N 3 /* a\n comment */ + 1\nN", "3 + 1"),
        ("#define N 64\na(0xN, 1N, N.N).", "a(0xN, 1N, 64.64)."),
    ],
)
def test_a_macro_stands_for_its_body(text: str, expected: str) -> None:
    assert last(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define a a + 1\na", "a + 1"),
        ("#define a b\n#define b a\na b", "a b"),
        ("#define f(x) x f\nf(1)(2)", "1 f(2)"),
        ("#define f(x) f(x + 1)\nf(f(0))", "f(f(0 + 1) + 1)"),
        ("#define NIL(xxx) xxx\n#define G_0(arg) NIL(G_1)(arg)\n#define G_1(arg) NIL(arg)\nG_0(42)", "42"),
    ],
)
def test_a_macro_is_not_expanded_in_its_own_expansion(text: str, expected: str) -> None:
    assert last(text) == expected


def test_the_last_example_of_the_c_standard_is_expanded_as_it_says() -> None:
    text = (
        "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n#define z z[0]\n"
        "#define h g(~\n#define m(a) a(w)\n#define w 0,1\n#define t(a) a\n"
    )
    assert last(text + "f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);") == (
        "f(2 * (y+1)) + f(2 * (f(2 * (z[0])))) % f(2 * (0)) + t(1);"
    )
    assert last(text + "g(x+(3,4)-w) | h 5) & m\n(f)^m(m);").replace("\n", "") == "^m(0,1);"
    assert output(text + "g(x+(3,4)-w) | h 5) & m\n(f)^m(m);").split("\n")[-2] == (
        "f(2 * (2+(3,4)-0,1)) | f(2 * (~ 5)) & f(2 * (0,1))"
    )


def test_a_body_over_several_lines_becomes_one_line() -> None:
    assert output("#define RULE(r) \\\n  r(x) :- \\\n  s(x).\nRULE(a)\nb.\n") == "\n\n\na(x) :- s(x).\nb.\n"


def test_a_call_over_several_lines_keeps_the_numbers_of_the_lines() -> None:
    text = "#define F(x, y) x + y\na(F(1, // one\n  /* and\n */ 2\n  )).\nb.\n"
    assert output(text) == "\na(1 + 2\n\n\n).\nb.\n"
    assert output("#define F(x, y) x + y\nF(1, \\\n2) b\n") == "\n1 + 2\n b\n"
    assert output("#define F(x) x\nF\n\n(1) b\n") == "\n1\n\n b\n"
    assert output("#define F(x) x\nF\n\nb (1)\n") == "\nF\n\nb (1)\n"


def test_lines_joined_by_a_backslash_are_one_also_outside_directives() -> None:
    assert output("a, \\\nb.\nc.") == "a,  \nb.\nc."
    assert output('a("x\\\ny"). b.\n') == 'a("xy"\n). b.\n'
    assert output("// a \\\n b\nc.\n") == "// a  b\n\nc.\n"


def test_predefined_macros_and_those_of_the_command_line() -> None:
    assert output("a(RAM_DOMAIN_SIZE, __SOUFFLE__).") == "a(64, 1)."
    assert output("a(N, F(2)).", macros={"N": "7", "F(x)": "x*x"}) == "a(7, 2*2)."
    assert output("a(RAM_DOMAIN_SIZE).", macros={"RAM_DOMAIN_SIZE": "32"}) == "a(32)."
    assert output("a(N1).", macros={"N": ""}) == "a(N1)."
    assert codes("a(1). // 1", macros={"1": ""}) == [("DL102", 1)]


def test_file_and_line_are_known_as_macros(tree) -> None:
    assert output('a(__FILE__, __LINE__).\n\nb(__LINE__, "__LINE__").', file='d\\"x') == (
        'a("d\\\\\\"x", 1).\n\nb(3, "__LINE__").'
    )
    assert output('#define HERE __LINE__\n\na(HERE).\n#line 40 "z.dl"\nb(HERE, __FILE__).') == (
        '\n\na(3).\n\nb(40, "z.dl").'
    )
    source, _ = tree({"m.dl": '#include "i.dl"\na(__LINE__).', "i.dl": "\nb(__LINE__, __FILE__)."})
    assert "b(2," in source.text
    assert 'i.dl").' in source.text
    assert "a(2)." in source.text


def test_more_macros_than_can_be_tried_one_by_one_work_as_well() -> None:
    text = "".join(f"#define M{i} {i}\n" for i in range(100))
    assert last(text + 'a(M7, M99, 0M1, "M7", M100).') == 'a(7, 99, 0M1, "M7", M100).'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("#define F(x, y) x\na.\nF(1)", 3),
        ("#define F(x) x\nF(1, 2)", 2),
        ("#define F() x\nF(1)", 2),
        ("#define F(x) x\nF(1\n\n", 2),
        ("#define F(x) x\nF(1\n#define G\n)", 2),
        ("#define F(x) x\n#define L F(\n#define G(x) x\nG(L 1)", 4),
    ],
)
def test_a_wrong_call_is_reported_at_its_line_and_left_as_it_is(text: str, line: int) -> None:
    source, (problem,) = preprocess_text(text)
    assert (problem.code, problem.line) == ("DL106", line)
    where = source.locate(problem.offset)
    assert (where.line, where.text) == (line, text.split("\n")[line - 1])


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"#define A{i} A{i + 1} A{i + 1}\n" for i in range(40)) + "A0\nA0\n",
        "#define F(x) x x\n" + "F(" * 40 + "y" + ")" * 40,
        "#define F(x) x\n" + "F(" * 3000 + "y" + ")" * 3000,
    ],
)
def test_an_expansion_without_end_ends_in_one_problem(text: str) -> None:
    assert [code for code, _ in codes(text)] == ["DL106"]


# ── conditions ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "condition",
    [
        "1",
        "0x10 == 16 && 010 == 8 && 0b11 == 3 && 10uL == 10",
        "defined(N) && defined N && !defined(M) && !defined M",
        "N == 3 && F(2) == 4 && M == 0",
        "2 + 3 * 4 == 14 && (2 + 3) * 4 == 20 && 10 - 3 - 2 == 5",
        "-7 / 2 == -3 && -7 % 2 == -1 && 7 / -2 == -3",
        "1 << 4 == 16 && -16 >> 2 == -4 && (6 & 3) == 2 && (6 | 3) == 7 && (6 ^ 3) == 5 && ~0 == -1",
        "1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3 && 1 != 2 && !0",
        "0 || 1 && 0 || 1",
        "0 ? 0 : 1 ? 2 : 0",
        "N?1:0",
        "!(0 && 1 / 0) && (1 || 1 % 0) && (1 ? 1 : 1 / 0)",
        "9223372036854775807 + 1 < 0",
        "RAM_DOMAIN_SIZE == 64",
        "1 /* a comment\n over lines */ + \\\n 0",
    ],
)
def test_a_condition_is_an_integer_expression(condition: str) -> None:
    define = "#define N 3\n#define F(x) (x * 2)\n"
    assert output(f"{define}#if {condition}\nyes\n#else\nno\n#endif\n").split() == ["yes"]
    assert output(f"{define}#if !({condition})\nno\n#endif\nyes").split() == ["yes"]


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "1 +",
        "(1",
        "1)",
        "1 / 0",
        "1 % 0",
        "1 2",
        "1.5",
        "09",
        "1 ? 2",
        '"a"',
        "f(1)",
        "@",
        "(" * 5000,
        "9" * 200,
    ],
)
def test_a_malformed_condition_is_reported_and_does_not_hold(condition: str) -> None:
    source, problems = preprocess_text(f"a.\n#if {condition}\nno\n#else\nyes\n#endif\n")
    assert [(p.code, p.line, p.offset) for p in problems] == [("DL102", 2, 3)]
    assert source.text == "a.\n\n\n\nyes\n\n"


def test_one_branch_is_read_and_the_others_leave_empty_lines() -> None:
    branches = "#if N == 1\none\n#elif N == 2\ntwo\n#elif N / 0\nthree\n#else\nother\n#endif\nend"
    assert output(f"#define N 2\n{branches}") == "\n\n\n\ntwo\n\n\n\n\n\nend"
    assert output(f"#define N 1\n{branches}") == "\n\none\n\n\n\n\n\n\n\nend"
    assert codes(branches) == [("DL102", 5)]


def test_ifdef_and_ifndef_ask_for_a_name() -> None:
    text = "#ifdef N\na\n#else\nb\n#endif N\n#ifndef N // c\nc\n#endif\n"
    assert output(text).split() == ["b", "c"]
    assert output("#define N\n" + text).split() == ["a"]
    assert codes("#ifdef\n#endif\n#ifndef 3\n#endif\n#undef\n") == [("DL102", 1), ("DL102", 3), ("DL102", 5)]


def test_in_a_skipped_branch_only_the_nesting_counts() -> None:
    text = (
        '#if 0\n#if 1/0\n#elif\n#else\n#endif\n#nonsense\n#error no\n#include <no>\n.include "no"\n'
        "it's an \" open string\n/*\n#endif\n*/ // /*\n#define N 3\n#endif\na(N)."
    )
    assert output(text) == "\n" * 15 + "a(N)."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.\n#if 1\n#ifdef X\n", [("DL103", 2), ("DL103", 3)]),
        ("#else\n#elif 1\n#endif\n", [("DL103", 1), ("DL103", 2), ("DL103", 3)]),
        ("#if 1\n#else\n#else\n#elif 1\n#endif\n", [("DL103", 3), ("DL103", 4)]),
    ],
)
def test_conditions_must_be_closed_and_closed_once(text: str, expected: list[tuple[str, int]]) -> None:
    source, problems = preprocess_text(text)
    assert [(p.code, p.line) for p in problems] == expected
    assert [(p.code, source.locate(p.offset).line) for p in problems] == expected


# ── other directives ─────────────────────────────────────────────────────────────────────────


def test_error_is_reported_and_warning_pragma_and_the_empty_directive_are_not() -> None:
    text = '#\n#warning careful\n#pragma whatever\n#error no "way" // really\na.'
    source, problems = preprocess_text(text, "x.dl")
    assert problems == [Problem("x.dl", 4, '#error no "way"', "", "DL104", 3)]
    assert source.text == "\n\n\n\na."


@pytest.mark.parametrize(
    "line",
    [
        "#defin N 3",
        "#!shell",
        "#define",
        "#define 3 4",
        "#define defined 4",
        "#define F(x",
        "#define F(x, x) x",
        "#define F(1) x",
        "#define F(x) #y",
        "#define F(x) x #",
        "#define F(x) ## x",
        "#define A x ##",
        "#include",
        "#include nothing",
        '#include "',
        "#line x",
        "#define A /* open",
        "# 12345678901",
    ],
)
def test_an_unknown_directive_is_reported_and_left_out(line: str) -> None:
    source, problems = preprocess_text(f"a.\n  {line}\n")
    assert [(p.code, p.line, p.offset) for p in problems] == [("DL102", 2, 3)]
    assert source.text == "a.\n\n"


def test_a_slip_in_a_directive_gets_a_hint() -> None:
    assert preprocess_text("#defin N 3")[1][0].hint == "did you mean `#define`?"


def test_a_hash_is_a_directive_only_at_the_start_of_a_line() -> None:
    assert output("a # define b\n") == "a # define b\n"
    assert output("/* first */ # define b c\nb") == "\nc"
    assert output("/*\n#define b c\n*/ b // */\n#define b d\nb") == "/*\n#define b c\n*/ b // */\n\nd"
    assert output('a("/*").\n#define b d\nb("*/").') == 'a("/*").\n\nd("*/").'
    assert output('// "/*\n#define b d\nb // "') == '// "/*\n\nd // "'


def test_line_directives_change_where_lines_come_from() -> None:
    source, problems = preprocess_text('a.\n#line 40 "x.dl"\nb.\n# 7 "y.dl" 2\nc.\n\nd.\n#line 9\ne.', "m.dl")
    assert problems == []
    assert source.text == "a.\n\nb.\n\nc.\n\nd.\n\ne."
    assert source.origins == [
        *[("m.dl", 1), ("m.dl", 2), ("x.dl", 40), ("x.dl", 41)],
        *[("y.dl", 7), ("y.dl", 8), ("y.dl", 9), ("y.dl", 10), ("y.dl", 9)],
    ]


# ── includes ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("include", ['#include "lib.dl"', "#include <lib.dl>", '.include "lib.dl"'])
def test_an_included_file_stands_in_place_with_its_own_lines(tree, tmp_path: Path, include: str) -> None:
    source, problems = tree({"main.dl": f"a(N).\n{include}\nb(N).\n", "lib.dl": "#define N 3\nc(N)."})
    assert problems == []
    assert source.text == "a(N).\n\n\nc(3).\nb(3).\n"
    main, lib = str(tmp_path / "main.dl"), str(tmp_path / "lib.dl")
    assert source.origins == [(main, 1), (main, 2), (lib, 1), (lib, 2), (main, 3), (main, 4)]


def test_includes_are_searched_beside_the_file_and_then_in_the_directories(tree, tmp_path: Path) -> None:
    files = {
        "main.dl": '#include "sub/a.dl"\n.include "far.dl"\n#include <both.dl>\n',
        "sub/a.dl": '#include "b.dl"\n',
        "sub/b.dl": "b.\n",
        "inc/far.dl": "far.\n",
        "inc/both.dl": "wrong.\n",
        "both.dl": "right.\n",
    }
    source, problems = tree(files, include_dirs=[tmp_path / "inc"])
    assert problems == []
    assert source.text.split() == ["b.", "far.", "right."]
    assert [place(source, word) for word in ("b.", "far.")] == [("b.dl", 1), ("far.dl", 1)]


def test_an_include_by_absolute_path_or_through_a_macro(tree, tmp_path: Path) -> None:
    (tmp_path / "lib.dl").write_text("lib.\n")
    source, problems = tree({"main.dl": f'#define L "lib.dl"\n#include L\n.include "{tmp_path}/lib.dl"'})
    assert problems == []
    assert source.text.split() == ["lib.", "lib."]


def test_a_native_include_may_have_neighbours_on_its_line(tree) -> None:
    source, problems = tree({"main.dl": 'a. .include "lib.dl" b.\nc.', "lib.dl": "x.\ny."})
    assert problems == []
    assert source.text == "a. \nx.\ny.\n b.\nc."
    places = [place(source, word) for word in ("a.", "x.", "y.", "b.", "c.")]
    assert places == [("main.dl", 1), ("lib.dl", 1), ("lib.dl", 2), ("main.dl", 1), ("main.dl", 2)]


@pytest.mark.parametrize("once", [".once", "#pragma once"])
def test_a_file_with_once_is_read_once_by_whatever_path(tree, once: str) -> None:
    files = {
        "main.dl": '#include "lib.dl"\n.include "sub/../lib.dl"\n#include "sub/other.dl"\nend.',
        "lib.dl": f"{once}\nlib.\n",
        "sub/other.dl": '#include "../lib.dl"\n',
    }
    source, problems = tree(files)
    assert problems == []
    assert source.text.split() == ["lib.", "end."]
    assert place(source, "end.") == ("main.dl", 4)


def test_an_include_guard_works_also_in_a_cycle(tree) -> None:
    files = {
        "main.dl": '#include "a.dl"\n#include "b.dl"\n',
        "a.dl": '#ifndef A\n#define A\n#include "b.dl"\na.\n#endif\n',
        "b.dl": '#ifndef B\n#define B\n#include "a.dl"\nb.\n#endif\n',
    }
    source, problems = tree(files)
    assert problems == []
    assert source.text.split() == ["b.", "a."]


@pytest.mark.parametrize("include", ['#include "no.dl"', "#include <no.dl>", '.include "no.dl"', '.include "."'])
def test_a_file_that_is_not_there_is_reported_with_where_it_was_sought(tree, tmp_path: Path, include: str) -> None:
    source, (problem,) = tree({"main.dl": f"a.\n{include}\nb.\n"}, include_dirs=[Path("/nowhere")])
    assert (problem.code, problem.line, problem.offset) == ("DL101", 2, 3)
    assert str(tmp_path) in problem.hint
    assert "/nowhere" in problem.hint
    assert source.text == "a.\n\nb.\n"
    assert source.origins == []


def test_a_problem_in_an_included_file_has_the_place_there(tree, tmp_path: Path) -> None:
    source, (problem,) = tree({"main.dl": 'a.\n#include "lib.dl"\n', "lib.dl": "\nb.\n#error no\n"})
    assert (problem.file, problem.line, problem.code) == (str(tmp_path / "lib.dl"), 3, "DL104")
    where = source.locate(problem.offset)
    assert (where.file, where.line, where.column, where.text) == (problem.file, 3, 1, "")


@pytest.mark.parametrize("line", [".include", ".include x", '.include "', '.include ""'])
def test_a_native_include_needs_a_file_name(line: str) -> None:
    assert codes(f"a.\n{line}\n") == [("DL102", 2)]


@pytest.mark.parametrize(
    "files",
    [
        {"main.dl": '#include "main.dl"\n#include "main.dl"\n'},
        {"main.dl": '.include "a.dl"', "a.dl": '\n.include "b.dl"', "b.dl": '\n.include "a.dl"'},
        {"main.dl": "#ifdef X\n#undef X\n#else\n#define X\n#endif\n" + '#include "main.dl"\n' * 3},
        {"f0.dl": '#include "f1.dl"\n'} | {f"f{i}.dl": f'#include "f{i + 1}.dl"\n' for i in range(1, 300)},
        {f"f{i}.dl": f'#include "f{i + 1}.dl"\n' * 2 for i in range(40)} | {"f40.dl": ""},
    ],
)
def test_includes_without_end_end_in_a_problem(tree, files: dict[str, str]) -> None:
    _, problems = tree(files)
    assert {problem.code for problem in problems} == {"DL105"}
    assert len(problems) <= 2


def test_200_files_inside_each_other_are_not_too_many(tree) -> None:
    files = {f"f{i}.dl": f'#include "f{i + 1}.dl"\n' for i in range(200)} | {"f200.dl": "end.\n"}
    source, problems = tree(files)
    assert problems == []
    assert place(source, "end.") == ("f200.dl", 1)


# ── without the preprocessor ─────────────────────────────────────────────────────────────────


def test_without_the_preprocessor_only_native_includes_and_line_markers_act(tree) -> None:
    text = '#define N 3\n#if 0\na(N, __LINE__). \\\n.include "lib.dl"\n# 7 "y.dl"\nbb.\n#line 9\n# .once\nc.'
    source, problems = tree({"main.dl": text, "lib.dl": ".once\n#include <x>\nlib."}, preprocess=False)
    assert problems == []
    expected = text.replace('.include "lib.dl"', "\n     \n#include <x>\nlib.")
    assert source.text == expected.replace("#line 9", "").replace('# 7 "y.dl"', "")
    places = [place(source, word) for word in ("a(N", "lib.", "bb.", "# .once", "c.")]
    assert places == [("main.dl", 3), ("lib.dl", 3), ("y.dl", 7), ("y.dl", 9), ("y.dl", 10)]


# ── any text ─────────────────────────────────────────────────────────────────────────────────

FRAGMENTS = st.sampled_from(
    [
        *[
            "\n",
            "\n",
            "\n#",
            "\\\n",
            " ",
            "(",
            ")",
            ",",
            '"',
            "/*",
            "*/",
            "//",
            "#",
            "##",
            "...",
            "?",
            ":",
            "1",
            "0x",
        ],
        *["\n#define A ", "\n#define F(x) ", "\n#define F(x, ...) ", "\n#undef A", "A", "B", "F", "F(", "x", "#x"],
        *[
            "\n#if ",
            "\n#ifdef A",
            "\n#elif ",
            "\n#else",
            "\n#endif",
            "defined",
            "defined(A)",
            "&&",
            "/",
            "<<",
            "-",
        ],
        *[
            '\n#include "no"',
            "\n#include <",
            "\n.include ",
            ".once",
            '"/no"',
            "\n#line 5",
            '\n# 3 "f" 1',
            "\n#error",
        ],
        *["__LINE__", "__FILE__", "__VA_ARGS__", "a(x) :- b(x).\n", "é", "\udcff", "\x00", "\r\n", "\t", "\u2028"],
    ]
)
TEXTS = st.lists(FRAGMENTS | st.text(max_size=3), max_size=40).map("".join)


@settings(deadline=2000, max_examples=300)
@given(text=TEXTS, preprocess=st.booleans())
def test_any_text_comes_back_with_a_place_for_every_line_and_every_problem(text: str, preprocess: bool) -> None:
    source, problems = preprocess_text(text, "m.dl", preprocess=preprocess)
    rows = source.text.count("\n") + 1
    assert not source.origins or len(source.origins) == rows
    if ".include" not in text:
        assert rows == text.replace("\r\n", "\n").count("\n") + 1
    for problem in problems:
        where = source.locate(problem.offset)
        assert (where.file, where.line) == (problem.file, problem.line)


@settings(deadline=2000, max_examples=100)
@given(lines=st.lists(st.sampled_from(["#define A 1", "#if A", "#endif", "a(A).", "/*", "*/", "b."]), min_size=1))
def test_without_includes_a_line_of_output_is_a_line_of_the_file(lines: list[str]) -> None:
    source, _ = preprocess_text("\n".join(lines))
    assert source.origins == []
    for line, written in zip(lines, source.text.split("\n"), strict=True):
        assert written in (line, "", "a(1).")
