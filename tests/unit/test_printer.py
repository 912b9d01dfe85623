"""The printer: trees to text that reads back as the same tree."""

from __future__ import annotations

import pytest

from everlog.dsl import ast
from everlog.dsl.parser import parse_text
from everlog.dsl.printer import print_program, print_statement


def read(text: str) -> ast.Program:
    program, report = parse_text(text)
    assert report.items == [], report.text()
    return program


def printed(text: str) -> str:
    """The printed text of a program, after checking that it reads back equal."""
    program = read(text)
    out = print_program(program)
    assert read(out) == program
    return out


def term(text: str) -> str:
    return printed(f"p(x) :- x = {text}.").removeprefix("p(x) :- x = ").removesuffix(".\n")


def body(text: str) -> str:
    return printed(f"p() :- {text}.").removeprefix("p() :- ").removesuffix(".\n")


# ── terms ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("(a + b) * c", "(a + b) * c"),
        ("(a * b) + c", "a * b + c"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("a ^ (b ^ c)", "a ^ b ^ c"),
        ("(a ^ b) ^ c", "(a ^ b) ^ c"),
        ("(a band b) bor c", "a band b bor c"),
        ("a band (b bor c)", "a band (b bor c)"),
        ("bnot (a + b)", "bnot (a + b)"),
        ("(bnot a) + b", "bnot a + b"),
        ("-(a ^ b)", "-a ^ b"),
        ("(-a) ^ b", "(-a) ^ b"),
        ("a ^ (-b)", "a ^ -b"),
        ("a - (-b)", "a - -b"),
        ("lnot -a", "lnot -a"),
    ],
)
def test_parentheses_stand_where_the_tree_needs_them_and_nowhere_else(written: str, shown: str) -> None:
    assert term(written) == shown


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("-(1)", "-1"),
        ("--1", "--1"),
        ("(-1) ^ 2", "(-1) ^ 2"),
        ("-1 ^ 2", "-1 ^ 2"),
        ("-1u", "-1u"),
        ("2 ^ -1.5", "2 ^ -1.5"),
    ],
)
def test_a_minus_before_a_literal_is_part_of_it(written: str, shown: str) -> None:
    assert term(written) == shown


@pytest.mark.parametrize("text", ["0x1F", "0b101", "007", "5u", "0xFFu", "1.50", "2.5e-3", "99999999999999999999"])
def test_numbers_stay_as_they_were_written(text: str) -> None:
    assert term(text) == text


def test_an_address_is_printed_as_the_number_it_is() -> None:
    assert term("0.0.1.2") == "258"
    assert term("255.255.255.255") == "-1"


def test_strings_keep_what_they_say_by_escapes() -> None:
    assert term(r'"a\"b\\c\n\t\'"') == r'''"a\"b\\c\n\t'"'''
    assert term('"é\x01"') == '"é\x01"'


@pytest.mark.parametrize(
    "text",
    [
        "autoinc()",
        "recursive_iteration_cnt()",
        "as(y + 1, unsigned)",
        "@f()",
        "@f(y, @g(1))",
        "cat(a, b, c)",
        "max(a, b, c)",
        "count : { q(_) }",
        "sum y + 1 : { q(y), y > 2 }",
        "1 + min y : { q(y) ; r(y) }",
        "mean max y : { q(y) } : { r(y) }",
        "nil",
        "[1, [x, nil]]",
        "[]",
    ],
)
def test_calls_aggregates_and_records(text: str) -> None:
    assert term(text) == text


def test_what_the_tree_lost_gets_a_made_up_name() -> None:
    assert term("$Add(1, y)") == "$Branch(1, y)"
    assert term("max y, z : { q(y, z) }") == "max y, y : { q(y, z) }"
    assert printed(".type T = A { x:number } | B {}") == ".type T = []\n"
    assert printed(".lattice L<> {Top->1,Lub->@f(_,_)}") == ".lattice L<> { Top -> 1, Lub -> @f(_, _) }\n"


def test_the_dollar_is_a_counter() -> None:
    assert term("$") == "autoinc()"


def test_a_chain_as_long_as_its_text_is_printed_without_descending() -> None:
    text = "p(x) :- x = " + " + ".join(["y"] * 20_000) + "."
    assert len("".join(print_program(read(text)).split())) == len("".join(text.split()))


# ── formulas ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "a(), b(), c()",
        "a(), (b(), c())",
        "(a(), b()), c()",
        "a() ; b() ; c()",
        "a() ; (b() ; c())",
        "a(), b() ; c(), d()",
        "(a() ; b()), c()",
        "!(a(), b())",
        "!(a() ; !b())",
        "!!a()",
        "!(x = y)",
        "!match(x, y)",
        "contains(x, cat(y, z)), true",
        "(x + 1) * 2 < y, false",
    ],
)
def test_groups_are_kept_as_the_tree_has_them(text: str) -> None:
    assert body(text) == text


def test_groups_that_change_nothing_go() -> None:
    assert body("((a(), b()))") == "a(), b()"
    assert body("(a(), b()) ; (c())") == "a(), b() ; c()"
    assert body("!x = y") == "!(x = y)"


# ── statements ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "p(x, _).",
        "a(x), b(y) :- c(x, y).",
        "c.d.e(x) :- c.f(x).",
        "p(x) :- q(x), r(x).\n    .plan 0:(2, 1), 1:()",
        "a(x) <= a(y) :- x < y.",
        ".decl p()",
        ".decl p, q(x:number, y:c.Type) brie output choice-domain x, (x, y)",
        ".decl d = debug_delta(p) output",
        ".decl p(x:L<>)",
        ".type A <: number",
        ".type A = B",
        ".type A = B | c.D | E",
        ".number_type N",
        ".symbol_type S",
        ".functor f(x:number, symbol):float stateful",
        ".functor f():number",
        ".input p",
        '.output p, c.q(IO="file", filename="a b.csv")',
        ".printsize p",
        '.limitsize p(n="10")',
        '.pragma "legacy"',
        '.pragma "provenance" "explain"',
        ".init c = C<A, B>",
        ".override p",
        ".comp A {}",
        ".comp A<T> : B<T>, C {\n    .decl p(x:T)\n    p(1).\n    .comp D {\n        q(2).\n    }\n}",
        ".output a. decl",
    ],
)
def test_every_statement_form(text: str) -> None:
    assert printed(text) == text + "\n"


def test_settings_are_quoted_whatever_they_were() -> None:
    assert printed(".output p(IO=file, n=3, b=true)") == '.output p(IO="file", n="3", b="true")\n'


# ── facts and lines ──────────────────────────────────────────────────────────────────────────


def test_a_fact_alone_on_its_line_stays_so() -> None:
    assert printed('p(1,-2).\np("a\tb",3).\n') == 'p(1, -2).\np("a\tb", 3).\n'


def test_facts_that_shared_a_line_share_a_line() -> None:
    assert printed("p(1). p(2).p(3).") == "p(1). p(2). p(3).\n"


def test_a_fact_that_is_not_a_line_is_separated_from_one_that_is() -> None:
    text = "p(1).\np( 2 ).\n"
    assert isinstance(read(text).statements[1], ast.Clause)
    assert printed(text) == "p(1).\n\np(2).\n"
    assert printed("p( 2 ).") == "\n\np(2).\n"


def test_facts_below_a_declaration_are_clauses_and_need_no_care() -> None:
    assert printed(".decl p(x:number)\np(1).\np(2).\n") == ".decl p(x:number)\np(1).\np(2).\n"


# ── lines ────────────────────────────────────────────────────────────────────────────────────


def test_a_rule_that_is_too_long_has_one_literal_per_line() -> None:
    (rule,) = read("p(x) :- q(x, y), !r(y), x = 3 ; s(x).").statements
    assert print_statement(rule, width=37) == "p(x) :- q(x, y), !r(y), x = 3 ; s(x)."
    assert print_statement(rule, width=36).splitlines() == [
        "p(x) :-",
        "    q(x, y),",
        "    !r(y),",
        "    x = 3",
        "    ;",
        "    s(x).",
    ]


def test_a_literal_that_is_too_long_opens_its_widest_brackets() -> None:
    (rule,) = read("p(x) :- q(x), x = sum y : { r(y, z), s(z, x) } + 1.").statements
    assert print_statement(rule, width=30).splitlines() == [
        "p(x) :-",
        "    q(x),",
        "    x = sum y : {",
        "        r(y, z),",
        "        s(z, x)",
        "    } + 1.",
    ]


def test_declarations_that_are_too_long_are_listed() -> None:
    relation, union = read(".decl p(x:number, y:number) output .type A = B | C").statements
    assert print_statement(relation, 20).splitlines() == [".decl p(", "    x:number,", "    y:number", ") output"]
    assert print_statement(union, 10).splitlines() == [".type A =", "    B", "    | C"]


def test_a_fact_is_one_line_however_long() -> None:
    (fact,) = read('p("' + "a" * 200 + '", x).').statements
    assert "\n" not in print_statement(fact)


def test_empty_brackets_are_not_opened() -> None:
    (rule,) = read('p() :- "a rather long symbol" = autoinc().').statements
    assert print_statement(rule, width=20) == 'p() :-\n    "a rather long symbol" = autoinc().'
