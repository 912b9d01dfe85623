"""The calculus by examples: syntax, meaning, errors, and evaluation of terms."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from everlog.dsl.diagnostics import DatalogError, Report
from everlog.dsl.source import Source
from everlog.ies.nrc import terms as t
from everlog.ies.nrc.check import check, height_of, type_of
from everlog.ies.nrc.compiled_terms import compile_term, evaluate, source_of
from everlog.ies.nrc.desugar import desugar
from everlog.ies.nrc.errors import CODES, MAX_DEPTH, CalculusError
from everlog.ies.nrc.indexes import _KEPT, carry, index, probe
from everlog.ies.nrc.meaning import meaning
from everlog.ies.nrc.parser import parse_definitions, parse_system, parse_term
from everlog.ies.nrc.prelude import prelude, with_prelude
from everlog.ies.nrc.printer import system_text, term_text
from everlog.ies.nrc.types import BOOL, NUM, Base, Product, SetOf, Type
from everlog.ies.nrc.walk import finite_set
from everlog.ies.system import Becomes, Differs

NODE = Base("node")
GRAPH = SetOf(Product((NODE, NODE)))
ENVIRONMENT: dict[str, Type] = {"R": GRAPH, "X": SetOf(NUM), "n": NUM, "u": NODE, "b": BOOL}
VALUES = {"R": frozenset({(1, 2), (2, 3), (3, 1)}), "X": frozenset({1, 2, 4}), "n": 3, "u": 1, "b": True}

# ── what terms mean ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("union{ {(x, x)} | x in {1, 2} }", {(1, 1), (2, 2)}),  # the example of Section 2
        ("sum{| 1 | x in X |}", 3),
        ("sum{| x - x | x in X |} + sum{| 5 | x in X |}", 15),  # duplicates are added up
        ("{(x, z) | (x, y) in R, (y', z) in R, y = y'}", {(1, 3), (2, 1), (3, 2)}),
        ("{(x, y) | x in {1}, y in {2}} = {(1, 2)}", True),
        ("{{}, {1}} = {{1}, {x | x in X, false}}", True),
        ("1 / 3 + 1 / 6", Fraction(1, 2)),
        ("1 / 2 + 1 / 2", 1),
        ("(u, (n, b)).2.1", 3),
        ("if n <= 3 then {n} else {}", {3}),
        ("{x | x in X, x in {2}}", {2}),  # a generator hides, it does not test
        ("{x | x in X, (x in {2})}", {2}),
        ("{x | x in X, y in {7}, (x in {2})}", {2}),
        ("let (a, _) = (n, 1) in {a, a + 1} minus {3}", {4}),
        ("let f = n > 2 in not f or (u, 2) in R", True),
        ("all{ exists{ (a, _) in R, a = y } | (_, y) in R }", True),
        ("{1} subset X and not (X subset {1}) and X intersect {4, 5} = {4}", True),
        ("3 /[7] 5", 2),
        ("2 -[7] 5 *[7] 1/3", 5),
        ("- n * -2 - -1", 7),
        ('"a\\"b" = "c"', False),
        ("{ -- nothing here\n}", set()),
    ],
)
def test_what_terms_mean(text: str, value: Any) -> None:
    term = parse_term(text)
    assert evaluate(term, VALUES) == value
    assert meaning(term, VALUES) == value
    assert evaluate(desugar(term), VALUES) == value


def test_rationals_are_exact_and_integral_ones_are_ints() -> None:
    third = evaluate(parse_term("sum{| 1 / 3 | x in X |}"), VALUES)
    assert third == 1
    assert type(third) is int
    assert evaluate(parse_term("10000000000000000001 / 3 * 3"), {}) == 10000000000000000001


def test_names_may_be_the_words_of_system_files() -> None:
    term = parse_term("sum + all + exists + end + new + input + cost'")
    names = ["sum", "all", "exists", "end", "new", "input", "cost'"]
    assert evaluate(term, dict.fromkeys(names, 2)) == 14


def test_true_is_not_one() -> None:
    assert t.Const(True) != t.Const(1)
    assert evaluate(parse_term("({true}, {1}, 1, true)"), {}) == (frozenset({True}), frozenset({1}), 1, True)
    assert [type(part) for part in evaluate(parse_term("(1, true)"), {})] == [int, bool]


def test_functions_see_their_parameters_and_what_is_outermost() -> None:
    definitions = {d.name: d for d in parse_definitions("def f(x) = {y | (z, y) in R, z = x}")}
    term = parse_term("union{ f(R) | (R, _) in R }")  # the inner R is a node
    value = evaluate(term, VALUES, definitions)
    assert value == {1, 2, 3}
    assert evaluate(desugar(term, definitions), VALUES) == value


def test_a_function_of_a_system_does_not_change_the_prelude() -> None:
    own = parse_definitions("def count(X) = 0")
    assert evaluate(parse_term("avg(X) + count(X)"), VALUES, with_prelude(own)) == Fraction(7, 3)


# ── division by zero ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["1 / (n - 3)", "n /[7] 14", "(1/7) +[7] 1", "{1 / (x - 2) | x in X}"])
def test_division_by_zero_names_its_place(text: str) -> None:
    with pytest.raises(CalculusError, match="division by zero") as caught:
        evaluate(parse_term(text), VALUES)
    assert text[caught.value.pos : caught.value.end].strip("{}").startswith(text.strip("{")[:5])


def test_division_by_zero_in_the_prelude_names_the_call() -> None:
    text = "n + avg({x | x in X, x < 0})"
    with pytest.raises(CalculusError) as caught:
        evaluate(parse_term(text), VALUES, prelude())
    assert text[caught.value.pos : caught.value.end] == "avg({x | x in X, x < 0})"


@pytest.mark.parametrize(
    "text",
    [
        "{1 / 0 | x in X, x > 9}",
        "if n = 3 then 1 else 1 / 0",
        "let y = 1 / 0 in n",
        "{x | x in X, y in {z | z in X, z > 9}, x = 1 / 0}",
        "b or 1 / 0 = 1",
        "sum{| sum{| 1 / (n - 3) | y in X, y > 9 |} | x in X |}",
        "{x | x in X, x != 1, 1 / (x - 1) > 0}",
    ],
)
def test_what_is_not_asked_for_is_not_computed(text: str) -> None:
    term = parse_term(text)
    assert evaluate(term, VALUES) == meaning(term, VALUES)


# ── types ────────────────────────────────────────────────────────────────────────────────────────


def told(text: str, want: Type | None = None, definitions: Any = None) -> Report:
    report = Report(Source(text))
    found = type_of(parse_term(text), ENVIRONMENT, definitions or prelude(), report, want)
    assert (found is None) == bool(report.errors)
    return report


@pytest.mark.parametrize(
    ("text", "type_", "height"),
    [
        ("{(x, {y | (z, y) in R, z = x}) | (x, _) in R}", "{node * {node}}", 2),
        ("sum{| 1 | S in {X, {1}} |}", "num", 2),
        ("R = {}", "bool", 1),
        ("{(1, 2)} union R", "{node * node}", 1),  # literals are of the type that is wanted
        ('{(u, "a"), (2, u)}', "{node * node}", 1),
        ('("a", 1)', "text * num", 0),
        ("if b then {} else {{}, X}", "{{num}}", 2),
        ("({} : {num * {bool}})", "{num * {bool}}", 2),
        ("nest(R)", "{node * {node}}", 2),
        ("u = 1 and count(R) = n", "bool", 1),
    ],
)
def test_types_and_heights(text: str, type_: str, height: int) -> None:
    checked = check(parse_term(text), ENVIRONMENT, prelude(), Report(Source(text)))
    assert checked is not None
    assert (str(checked.type), checked.height) == (type_, height)
    assert height_of(parse_term(text), ENVIRONMENT, prelude()) == height


def test_the_type_of_an_empty_set_is_found_where_it_is_wanted() -> None:
    term = parse_term("{x | x in {}, x = n} union {}")
    checked = check(term, ENVIRONMENT, {}, Report(Source("")), SetOf(NUM))
    assert checked is not None
    assert isinstance(term, t.Union)
    assert checked.at(term.right) == SetOf(NUM)


@pytest.mark.parametrize(
    ("text", "code", "message", "place"),
    [
        ("n + X", "NRC030", "`+` wants num, and this is {num}", "X"),
        ("R = X", "NRC031", "`=` between {node * node} and {num}", "R = X"),
        ("n in R", "NRC031", "`in` between num and {node * node}", "n in R"),
        ("{1} union {b}", "NRC030", "here must stand num, and this is bool", "b"),
        ("if b then n else X", "NRC031", "this must be num, like the other, and is {num}", "X"),
        ("if n then 1 else 2", "NRC030", "a condition is bool, and this is num", "n"),
        ("{x | x in n}", "NRC030", "a generator runs over a set, and this is num", "n"),
        ("{x | (x, y, z) in R}", "NRC033", "a pattern of 3 parts for node * node", "(x, y, z)"),
        ("{x | x in X, q}", "NRC020", "`q` is not known here", "q"),
        ("_", "NRC020", "`_` takes a value and keeps none", "_"),
        ("count", "NRC020", "`count` is a function", "count"),
        ("counts(X)", "NRC021", "function `counts` is not known", "counts(X)"),
        ("count(X, X)", "NRC021", "`count(X)` takes 1 arguments, not 2", "count(X, X)"),
        ("(u, n).3", "NRC032", "there is no part 3 in node * num", "(u, n).3"),
        ("X.1", "NRC032", "`.1` wants a tuple, and this is {num}", "X"),
        ("{}", "NRC034", "nothing says what this empty set holds", "{}"),
        ("count({})", "NRC034", "nothing says what this empty set holds", "{}"),
        ('"a" < "b"', "NRC030", "`<` compares num, and this is text", '"a"'),
        ("u < 1", "NRC030", "`<` compares num, and this is node", "u"),
        ("b = 1", "NRC031", "`=` between bool and num", "b = 1"),
        ("total(R)", "NRC030", "in `total`: `sum` adds up num, and this is node * node", "total(R)"),
        ("sum{| x | x in {b} |}", "NRC030", "`sum` adds up num, and this is bool", "x"),
        ("b and n", "NRC030", "`and` wants bool, and this is num", "n"),
        ("{n} minus b", "NRC031", "this must be {num}, like the other, and is bool", "b"),
    ],
)
def test_a_mistake_is_reported_at_its_place(text: str, code: str, message: str, place: str) -> None:
    first = told(text).errors[0]
    assert (first.code, first.message) == (code, message)
    assert text[first.pos : first.end] == place


def test_all_mistakes_are_reported_at_once_and_each_once() -> None:
    report = told("{(x + b, q) | (x, y) in X, n, z in R, z.3 = 1}")
    assert [d.code for d in report.errors] == ["NRC030", "NRC020", "NRC033", "NRC030", "NRC032"]


def test_what_is_wanted_is_named() -> None:
    report = told("{(x, n) | (x, _) in R}", GRAPH)
    assert [d.message for d in report.errors] == ["here must stand node, and this is num"]
    assert "1 | {(x, n) | (x, _) in R}\n   |      ^" in report.text()


def test_a_mistake_inside_a_function_shows_the_call() -> None:
    text = "def f(A) = A + 1 def g(A) = f(A)"
    definitions = {d.name: d for d in parse_definitions(text)}
    report = Report(Source(text))
    term = t.Call("g", (t.Var("X"),))
    assert type_of(term, ENVIRONMENT, definitions, report) is None
    (only,) = report.errors
    assert text[only.pos : only.end] == "A"
    assert [text[label.pos : label.end] for label in only.labels] == ["f(A)"]


def test_a_function_that_calls_itself_is_refused() -> None:
    definitions = {d.name: d for d in parse_definitions("def f(A) = g(A) def g(A) = f(A)")}
    report = told("f(X)", definitions=definitions)
    assert [d.code for d in report.errors] == ["NRC022"]
    with pytest.raises(CalculusError, match="defined by itself"):
        evaluate(parse_term("f(X)"), VALUES, definitions)
    with pytest.raises(CalculusError, match="cannot be called"):
        desugar(parse_term("f(X)"), definitions)


def test_functions_that_call_each_other_twice_are_checked_in_linear_time() -> None:
    chain = "def f0(A) = A " + " ".join(f"def f{i + 1}(A) = f{i}(A) union f{i}(A)" for i in range(40))
    definitions = {d.name: d for d in parse_definitions(chain)}
    assert not told("f40(X)", definitions=definitions).errors


def test_functions_that_multiply_end_in_an_error() -> None:
    chain = "def f0(A) = A " + " ".join(
        f"def f{i + 1}(A) = f{i}(A) union f{i}(A union {{{i}}})" for i in range(40)
    )
    definitions = {d.name: d for d in parse_definitions(chain)}
    assert not told("f40(X)", definitions=definitions).errors
    assert [d.code for d in told("f40({})", definitions=definitions).errors] == ["NRC023"]
    for stage in (lambda term: evaluate(term, VALUES, definitions), lambda term: desugar(term, definitions)):
        with pytest.raises(CalculusError, match="call functions more than 5,000 times"):
            stage(parse_term("f40(X)"))


# ── text ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("((a)) + ((b * c)) - (d - e)", "a + b * c - (d - e)"),
        ("((a union b)) minus (c union (d))", "a union b minus (c union d)"),
        ("not (a and (b or c))", "not (a and (b or c))"),
        ("not (a = b)", "a != b"),
        ("not ((a) in b)", "a not in b"),
        ("a > b and b >= c", "b < a and c <= b"),
        ("{1} union {2} union x", "{1, 2} union x"),
        ("{a, b, c}", "{a, b, c}"),
        ("{x | x in X, ((x) in (Y))}", "{x | x in X, (x in Y)}"),
        ("{x | x in X, x.1 in Y}", "{x | x in X, x.1 in Y}"),
        ("let f = ((x in Y)) in f", "let f = (x in Y) in f"),
        ("(if a then b else c) = d", "(if a then b else c) = d"),
        ("(let x = 1 in x) + 1", "(let x = 1 in x) + 1"),
        ("-(x.1)", "0 - x.1"),
        ("(-3) * -2", "-3 * -2"),
        ("(f()).2", "f().2"),
        ("(({} : {num * (bool * num)}))", "({} : {num * (bool * num)})"),
        ("a +[7] (b *[7] c)", "a +[7] b *[7] c"),
        ('"a\\\\\\"b"', '"a\\\\\\"b"'),
        ("all{ x < y | x in X, (y, _) in R }", "all{x < y | x in X, (y, _) in R}"),
        ("sum{|x|x in X,x>1|}", "sum{| x | x in X, 1 < x |}"),
    ],
)
def test_terms_are_printed_with_the_fewest_parentheses(text: str, printed: str) -> None:
    term = parse_term(text)
    assert term_text(term) == printed
    assert parse_term(printed) == term


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("a = b = c", "NRC010", "unexpected `=`, expected an operator or the end"),
        ("(a, ", "NRC010", "unexpected the end of the text, expected a term"),
        ("if a then b", "NRC010", "unexpected the end of the text, expected `else`"),
        ("{x | }", "NRC010", "unexpected `}`, expected a term"),
        ("a $ b", "NRC001", "unexpected character `$`"),
        ('a = "b', "NRC002", "this text is never closed"),
        ('"\\q"', "NRC002", "unknown escape sequence `\\q`"),
        ("{x | (x, x) in R}", "NRC012", "pattern variable `x` stands twice"),
        ("a *[6] b", "NRC013", "6 is not a prime number"),
        ("a *[1" + "0" * 5000 + "1] b", "NRC013", "this modulus has too many digits"),
        ("1" * 5000, "NRC010", "this number has too many digits"),
        ("-[7] b", "NRC013", "`-[7]` needs something before it"),
        ("union{ {x} | x in X, y in X }", "NRC014", "`union{…}` takes one generator"),
        ("({} : num)", "NRC030", "an empty set has a set type, not num"),
    ],
)
def test_syntax_errors(text: str, code: str, message: str) -> None:
    with pytest.raises(DatalogError) as caught:
        parse_term(text)
    first = caught.value.report.errors[0]
    assert (first.code, first.message) == (code, message)


def test_hints_say_what_to_write() -> None:
    for text, hint in (("a = b = c", "do not chain"), ("a + if b then 1 else 2", "put this `if` in parentheses")):
        with pytest.raises(DatalogError, match=hint):
            parse_term(text)


@pytest.mark.parametrize(
    "text",
    [
        "not " * 5000 + "a",
        "-" + " -" * 5000 + "1",
        "{" * 5000 + "}" * 5000,
        "f(" * 5000 + "x" + ")" * 5000,
        "+".join("a" * 5000),
        "if a then b else " * 5000 + "c",
        "let x = y in " * 5000 + "x",
        "(" * 300 + "a, b" + ", c)" * 300,
        "{x | x in " * 1000 + "X" + "}" * 1000,
        "{ " + "(" * 500 + "a, b" + ", c)" * 500 + " | " + "(" * 500 + "a, b" + ", c)" * 500 + " in R }",
    ],
)
def test_deep_nesting_is_reported(text: str) -> None:
    with pytest.raises(DatalogError) as caught:
        parse_term(text)
    (only,) = caught.value.report.errors
    assert only.code == "NRC011"
    assert f"more than {MAX_DEPTH} levels" in only.message


DEPTH = MAX_DEPTH - 5


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "n" + ")" * 5000,
        "+".join("n" * DEPTH),
        "n - (" * DEPTH + "n" + ")" * DEPTH,
        "not " * DEPTH + "b",
        "if b then n else " * DEPTH + "n",
        "if not b then 0 else sum{| x | x in X |} + (" * (DEPTH // 2) + "n" + ")" * (DEPTH // 2),
        "{x | x in " * (DEPTH // 2) + "X" + "}" * (DEPTH // 2),
        "union{ {x} | x in " * (DEPTH // 2) + "X" + "}" * (DEPTH // 2),
        "union{ " * 45 + "X" + " | y in {x | x in X, x = n} union {n} }" * 45,
        "sum{| " * 40 + "n" + " | y in {1} union {n} minus {n} |}" * 40,
        "let x = n + 1 in " * DEPTH + "x",
        "{" + ", ".join(map(str, range(3000))) + "}",
        "exists{ y in {n} minus {u}, y != n or " * 30 + "b" + "}" * 30,
    ],
)
def test_what_the_parser_takes_every_stage_takes(text: str) -> None:
    term = parse_term(text)
    report = Report(Source(text))
    found = type_of(term, ENVIRONMENT, prelude(), report)
    assert parse_term(term_text(term)) == term
    desugar(term)
    if found is not None:  # some of these are not well typed, and have an error
        value = evaluate(term, VALUES, prelude())
        assert value == meaning(term, VALUES, prelude())
    else:
        assert report.errors


def test_a_long_set_is_not_a_deep_term() -> None:
    term = finite_set([t.Const(i) for i in range(10_000)])
    assert evaluate(term, {}) == frozenset(range(10_000))


# ── systems ──────────────────────────────────────────────────────────────────────────────────────

SYSTEM = """system closure "A closure"   -- a comment
theorem "none"
about "several
lines"
growth exponential "much"
cost "a lot"
instead other
query "path(x, y) :- edge(x, y)."
input edge : {node * node}
input new : {node}
answer path : {node * node}
aux cost : {node * {node * num}} "by start"
def both(A, B) = {(x, y) | x in A, y in B}
initially cost = {}
on insert new (u, v) into edge
  require u != v else "a \\"self-loop\\""
  require not (v, u) in path else "a cycle"
  let P = path union {(u, v)}
  let q = u in {x | (x, _) in P}
  path := P union {(x, v) | (x, y) in path, y = u}
  cost -= {(u, {})}
  cost += {(u, {(v, 1)})}
on delete present e from edge
  path -= {e}
on insert new into new
on delete x from new
example
  +edge(1, 2).
  +edge("a\\"b).", 3).   -- a string
  path = {(1, 2)}
  cost = {}
  -edge(1, 2).
end
"""


def test_a_system_file_says_all_of_a_system() -> None:
    system = parse_system(SYSTEM, "closure.nrc")
    assert (system.name, system.title, system.about) == ("closure", "A closure", "several\nlines")
    assert (system.growth, system.exponential, system.instead) == ("much", True, "other")
    assert [stored.name for stored in system.stored] == ["edge", "new", "path", "cost"]
    insert = system.updates["insert", "edge"]
    assert insert.effective
    assert not system.updates["delete", "new"].effective
    assert system.updates["insert", "new"].tuple_ == t.Bind("new")
    assert [r.otherwise for r in insert.requirements] == ['a "self-loop"', "a cycle"]
    assert insert.bindings[1][1] == parse_term("u in {x | (x, _) in P}")
    assert isinstance(insert.changes["path"], Becomes)
    assert insert.changes["cost"] == Differs(parse_term("{(u, {})}"), parse_term("{(u, {(v, 1)})}"))
    assert [step for step, _ in system.examples[0].steps] == [
        "+edge(1, 2).",
        '+edge("a\\"b).", 3).',
        "-edge(1, 2).",
    ]
    assert list(system.examples[0].steps[1][1]) == ["path", "cost"]


def test_the_text_of_a_system_parses_to_the_system() -> None:
    system = parse_system(SYSTEM)
    assert parse_system(system_text(system)) == system
    text = 'system s "t"\ninput x : {num}\nanswer y : {num}\nsri e, T => T union {e} from {}\nshows T => T'
    recursion = parse_system(text)
    assert recursion.sri is not None
    assert recursion.sri.shows == ("T", t.Var("T"))
    assert parse_system(system_text(recursion)) == recursion


def test_all_syntax_errors_of_a_file_are_reported() -> None:
    text = SYSTEM.replace("let P = path union", "let P = path union union").replace("input edge :", "input edge")
    text = text.replace("path -= {e}", "path -= {e").replace("cost = {}\n  -edge", "cost = \n  -edge")
    with pytest.raises(DatalogError) as caught:
        parse_system(text, "bad.nrc")
    where = [caught.value.report.source.locate(d.pos).line for d in caught.value.report.errors]
    assert where == [9, 18, 25, 32]  # what could not stand there begins the next item or step


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("answer path", "aux path", "a system has an `answer`"),
        ("aux cost", "aux path", "relation `path` a second time"),
        ('cost "a lot"', 'cost "a lot" cost "more"', "a second `cost`"),
        ("  path -= {e}", "  path -= {e}\n  path := {e}", "two functions for `path` in one update"),
        ("on insert new into new", "on delete x from new", "update `on delete … new` a second time"),
        ("def both(A, B)", "def both(A, A)", "parameter `A` stands twice"),
        ("input new : {node}", "input new : node", "a relation has a set type, not node"),
        ("example", "sri x, X => X from {}\nexample", "`on` cannot stand beside `sri`, which defines it"),
        ("example", "shows X => X\nexample", "`shows` is the last step of `sri`, which is missing"),
        ("(u, v) into", "(u, u) into", "pattern variable `u` stands twice"),
    ],
)
def test_what_a_system_file_must_have_and_may_have_once(old: str, new: str, message: str) -> None:
    assert old in SYSTEM
    with pytest.raises(DatalogError) as caught:
        parse_system(SYSTEM.replace(old, new, 1))
    assert message in [d.message for d in caught.value.report.errors]
    assert {d.code for d in caught.value.report.errors} <= CODES.keys()


# ── evaluation ───────────────────────────────────────────────────────────────────────────────────


def test_an_equality_becomes_a_lookup() -> None:
    source = source_of(parse_term("{(x, z) | (x, y) in R, (a, z) in S, a = y, z != x}"), ["R", "S"])
    assert "index(r2, ((0,),))" in source
    source = source_of(parse_term("{x | (x, y) in R, exists{ (a, b) in S, a = y, b = x }}"), ["R", "S"])
    assert "in r2:" in source
    assert "index" not in source


def test_what_a_loop_does_not_change_is_computed_once() -> None:
    calls: list[int] = []

    class Counted(frozenset[int]):
        def __iter__(self) -> Any:
            calls.append(1)
            return super().__iter__()

    run = compile_term(parse_term("{x | x in X, x > sum{| y * y | y in Y |}}"), ["X", "Y"])
    assert run(frozenset(range(100)), Counted({1, 2})) == frozenset(range(6, 100))
    assert len(calls) == 1


def test_equal_terms_are_computed_once() -> None:
    source = source_of(parse_term("(sum{| x * x | x in X |}, 1 + sum{| x * x | x in X |})"), ["X"])
    assert source.count("for ") == 1


def test_ranks_and_extremes_sort_and_search() -> None:
    assert "bisect" in source_of(parse_term("rank(X)"), ["X"], prelude())
    assert "min(" in source_of(parse_term("least(X)"), ["X"], prelude())
    X = frozenset([*range(0, 3000, 3), Fraction(1, 2)])
    run = compile_term(parse_term("({r | (x, r) in rank(X)}, minimum(X), maximum(X))"), ["X"], prelude())
    assert run(X) == (frozenset(range(1001)), 0, 2997)


def test_more_loops_than_python_nests_in_a_function() -> None:
    qualifiers = ", ".join(f"x{i} in X{', x%d = x%d' % (i, i - 1) if i else ''}" for i in range(40))
    term = parse_term(f"{{(x0, x39) | {qualifiers}}}")
    assert evaluate(term, VALUES) == {(1, 1), (2, 2), (4, 4)}
    loops = ", ".join(f"x{i} in {{x{i - 1}, x{i - 1}}}" for i in range(1, 40))
    assert evaluate(parse_term(f"sum{{| x39 | x0 in X, {loops} |}}"), VALUES) == 7
    assert evaluate(parse_term(f"exists{{ x0 in X, {loops}, x39 = 4 }}"), VALUES) is True


def test_indexes_are_kept_as_long_as_their_set() -> None:
    source = frozenset({(1, 2), (1, 3), (2, 3)})
    before = len(_KEPT)
    first = index(source, ((0,),))
    assert index(source, ((0,),)) is first
    assert sorted(probe(source, ((1,),), 3)) == [(1, 3), (2, 3)]  # by a scan
    assert sorted(probe(source, ((1,),), 3)) == [(1, 3), (2, 3)]  # by an index
    assert list(probe(source, ((1,),), 9)) == []
    assert len(_KEPT) == before + 1
    del source
    assert len(_KEPT) == before


def test_indexes_are_carried_to_what_an_update_makes_of_a_set() -> None:
    old = frozenset({(1, 2), (1, 3), (2, 3)})
    made = index(old, ((0,),))
    gone, new = {(1, 2), (2, 3)}, {(1, 4), (3, 3)}
    after = (old - gone) | new
    carry(old, after, gone, new)
    assert index(after, ((0,),)) is made
    assert {key: sorted(items) for key, items in made.items()} == {1: [(1, 3), (1, 4)], 3: [(3, 3)]}
    assert {key: sorted(items) for key, items in index(old, ((0,),)).items()} == {1: [(1, 2), (1, 3)], 2: [(2, 3)]}
