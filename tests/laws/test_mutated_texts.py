"""Any text ends in diagnostics, in a documented error of a step, or in a result."""

from __future__ import annotations

import pytest
from mutations import failures, mutated, outcome, sources, tokens


def test_the_texts_are_many_and_their_words_are_all_of_them() -> None:
    assert len(sources()) > 500
    assert all("".join(tokens(text)) == text for text in sources())
    assert mutated(7) == mutated(7)


def test_400_mutated_texts_end_well() -> None:
    assert not failures(0, 400)


@pytest.mark.deep
@pytest.mark.parametrize("part", range(20))
def test_100_000_mutated_texts_end_well(part: int) -> None:
    assert not failures(part * 5_000, (part + 1) * 5_000)


DECLARED = """.decl a(x:number)
.decl e(x:number, y:number)
.decl s(x:symbol)
.decl f(x:float)
.decl p(x:number)
a(1). s("a").
"""
MANY, DIGITS = 20_000, "9" * 5_000
KEPT = {
    "20 000 signs": f"p({'-' * MANY}1).",
    "20 000 calls of cat": f's({"cat(" * MANY}"a"{", 1)" * MANY}).',
    "20 000 calls of max": f"p({'max(1, ' * MANY}1{')' * MANY}).",
    "a tower of 100 000 powers": f"p({'1^' * 100_000}1).",
    "20 000 negations": f"p(x) :- a(x), {'!' * MANY}a(x).",
    "20 000 aggregates": f"p(x) :- x = {'count : { a(y), y < ' * MANY}1{'}' * MANY}.",
    "20 000 disjunctions": f"p(x) :- {'(a(x); ' * MANY}a(x){')' * MANY}.",
    "20 000 components": ".comp A { " * MANY + "}" * MANY,
    "20 000 parameters of a component": f".init c = {'A<' * MANY}B{'>' * MANY}",
    "20 000 heads that are never closed": ".comp A<T> : B<" * MANY + "> {}" * MANY,
    "20 000 types, each below the next": "".join(f".type T{i} <: T{i + 1}\n" for i in range(MANY))
    + f".type T{MANY} <: number\n.decl q(x:T0)\n",
    "20 000 aliases": "".join(f".type T{i} = T{i + 1}\n" for i in range(MANY)) + f".type T{MANY} = number\n",
    "20 000 unions of two unions": "".join(f".type T{i} = T{i + 1} | T{i + 2}\n" for i in range(MANY))
    + f".type T{MANY} <: number\n.type T{MANY + 1} <: number\n",
    "a condition of 20 000 signs": f"#if {'-' * MANY}1\n#endif\n",
    "a condition of 20 000 parentheses": f"#if {'(' * MANY}1{')' * MANY}\n#endif\n",
    "a condition of 20 000 choices": f"#if {'1 ? ' * MANY}1{' : 1' * MANY}\n#endif\n",
    "5 000 calls of a macro inside each other": f"#define F(x) x\np({'F(' * 5_000}1{')' * 5_000}).",
    "20 000 macros, each the next": "".join(f"#define A{i} A{i + 1}\n" for i in range(MANY)) + "p(A0).",
    "a pattern of 20 000 groups": f'p(1) :- s(x), match("{"(" * MANY}a{")" * MANY}", x).',
    "a pattern with a long repetition": f'p(1) :- s(x), match("a{{1,{DIGITS}}}", x).',
    "a limit of 5 000 digits": f".limitsize p(n={DIGITS})",
    "a limit that is a digit and no number": '.limitsize p(n="²")',
    "a line number of 5 000 digits": f"#line {DIGITS}\n",
    "a condition of 5 000 digits": f"#if {DIGITS}\n#endif\n",
    "a number of 5 000 digits": f"p({DIGITS}).",
    "a number of 5 000 zeros": f"p({'0' * 5_000}7).",
    "an unsigned of 5 000 digits": f"p({DIGITS}u).",
    "a hexadecimal of 5 000 digits": f"p(0x{DIGITS}).",
    "a float of 5 000 digits": f"f({DIGITS}).",
    "a float below zero of 5 000 digits": f"f(-{DIGITS}).",
    "a float that a rule compares": f"f(x) :- f(x), x < {DIGITS}.",
    "an exponent of 5 000 digits": f"f(1.5e{DIGITS}).",
    "an address of 5 000 digits": f"p({DIGITS}.1.1.1).",
    "a plan of 5 000 digits": f"p(x) :- a(x), p(x). .plan {DIGITS}:(1, 2)",
    "instances that double 40 times": "".join(
        f".comp C{i} {{ .init a = C{i + 1} .init b = C{i + 1} }}\n" for i in range(40)
    )
    + ".comp C40 { .decl q(x:number) q(1). }\n.init c = C0",
    "bases that double 40 times": "".join(f".comp C{i} : C{i + 1}, C{i + 1} {{}}\n" for i in range(40))
    + ".comp C40 { .decl q(x:number) q(1). }\n.init c = C0",
    "instances without end that grow": ".comp A { .init a = A { " + "p(1).\n" * 250 + "}\n.init a = A",
    "inlined relations that double 40 times": "".join(
        f".decl i{i}(x:number) inline\ni{i}(x) :- i{i + 1}(x), i{i + 1}(x).\n" for i in range(40)
    )
    + ".decl i40(x:number) inline\ni40(x) :- a(x).\np(x) :- i0(x).",
    "20 000 symbols that are never closed": '"\n' + '\\"\n' * MANY,
    "400 000 characters of no word": "\\" * 400_000,
    "the same atom 3 000 times": f"p(x) :- {', '.join(['a(x)'] * 3_000)}.",
    "300 atoms of one variable": f"p(x) :- {', '.join(f'e(x, {i})' for i in range(300))}.",
}


@pytest.mark.parametrize("name", KEPT)
def test_texts_that_once_broke_something_end_well(name: str) -> None:
    assert outcome(DECLARED + KEPT[name], 0) in ("diagnostics", "error", "result")
