"""Laws of the calculus: text, types and values of random well-typed terms agree."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any

from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st
from nrc_terms import DEFINITIONS, ENVIRONMENT, FUNCTIONS, environments, typed_terms

from everlog.dsl.diagnostics import DatalogError, Report
from everlog.dsl.source import Source
from everlog.ies.nrc import terms as t
from everlog.ies.nrc.check import check, height_of, type_of
from everlog.ies.nrc.compiled_terms import evaluate
from everlog.ies.nrc.desugar import desugar
from everlog.ies.nrc.errors import CODES, CalculusError
from everlog.ies.nrc.lexer import BEFORE_BRACE, MARKS, RESERVED, SOFT
from everlog.ies.nrc.meaning import meaning
from everlog.ies.nrc.parser import parse_definitions, parse_system, parse_term
from everlog.ies.nrc.prelude import prelude
from everlog.ies.nrc.printer import term_text
from everlog.ies.nrc.types import Type, height, inhabits
from everlog.ies.nrc.walk import everywhere

CORE = (t.Var, t.Const, t.Tuple, t.Project, t.Empty, t.Single, t.Union, t.BigUnion, t.Sum, t.Equal, t.If, t.Arith)
CORE += (t.AtMost,)
FAILED = object()


def value_of(evaluator: Any, term: t.Term, environment: Mapping[str, Any], *definitions: Any) -> Any:
    try:
        return evaluator(term, environment, *definitions)
    except CalculusError:
        return FAILED


@given(typed_terms())
def test_the_text_of_a_term_parses_to_the_term(drawn: tuple[t.Term, Type]) -> None:
    term, _ = drawn
    assert parse_term(term_text(term)) == term
    assert parse_term(term_text(term, indent=60)) == term


@given(typed_terms())
def test_a_term_has_the_type_it_was_drawn_for_and_so_has_its_core(drawn: tuple[t.Term, Type]) -> None:
    term, type_ = drawn
    core = desugar(term, DEFINITIONS)
    for each, definitions in ((term, DEFINITIONS), (core, {})):
        report = Report(Source(""))
        checked = check(each, ENVIRONMENT, definitions, report, type_)
        assert checked is not None, report.text()
        assert checked.type == type_
        assert checked.height >= height(type_)


@given(typed_terms())
def test_the_core_of_a_term_has_only_the_constructs_of_the_paper(drawn: tuple[t.Term, Type]) -> None:
    core = desugar(drawn[0], DEFINITIONS)
    for node in everywhere(core):
        assert isinstance(node, CORE)
        if isinstance(node, (t.BigUnion, t.Sum)):
            assert isinstance(node.pattern, t.Bind)


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(typed_terms(), environments)
def test_a_term_and_its_core_evaluate_to_what_the_term_means(
    drawn: tuple[t.Term, Type], environment: dict[str, Any]
) -> None:
    """The evaluator may find a value where the plain reading divides by zero only."""
    term, type_ = drawn
    note(term_text(term))
    meant = value_of(meaning, term, environment, DEFINITIONS)
    for found in (
        value_of(evaluate, term, environment, DEFINITIONS),
        value_of(evaluate, desugar(term, DEFINITIONS), environment),
    ):
        assert meant is FAILED or found == meant
        if found is not FAILED:
            assert inhabits(found, type_)
            assert all(number.denominator != 1 for number in fractions(found)), "an integral Fraction"


def fractions(value: Any) -> list[Fraction]:
    if isinstance(value, (tuple, frozenset)):
        return [number for item in value for number in fractions(item)]
    return [value] if isinstance(value, Fraction) else []


@given(typed_terms(), st.sampled_from(sorted(ENVIRONMENT)), st.data())
def test_ill_typed_terms_are_reported_with_a_known_code(
    drawn: tuple[t.Term, Type], name: str, data: st.DataObject
) -> None:
    """A variable of another type: no type and reasons, or a type and none."""
    other = data.draw(st.sampled_from(list(ENVIRONMENT.values())))
    text = term_text(drawn[0])
    report = Report(Source(text))
    found = type_of(parse_term(text), {**ENVIRONMENT, name: other}, DEFINITIONS, report, drawn[1])
    assert (found is None) == bool(report.errors)
    last = max(len(text), len(FUNCTIONS))  # it may be a mistake inside of a function, for how it is called
    for diagnostic in report.errors:
        assert diagnostic.code in CODES
        assert 0 <= diagnostic.pos <= diagnostic.end <= last
    assert report.text() or found == drawn[1]


# ── the prelude is what Python says ──────────────────────────────────────────────────────────────

numbers = st.one_of(st.integers(-5, 9), st.fractions(-3, 3, max_denominator=4)).map(
    lambda n: int(n) if n == int(n) else n
)
sets = st.frozensets(numbers, max_size=7)
pairs = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=9)


def called(text: str, **environment: Any) -> Any:
    return evaluate(parse_term(text), environment, prelude())


@given(sets)
def test_aggregates_of_the_prelude_are_those_of_python(X: frozenset[Any]) -> None:
    assert called("count(X)", X=X) == len(X)
    assert called("total(X)", X=X) == sum(X)
    assert called("minimum(X)", X=X) == min(X, default=0)
    assert called("maximum(X)", X=X) == max(X, default=0)
    assert called("least(X)", X=X) == ({min(X)} if X else set())
    assert called("rank(X)", X=X) == {(x, i) for i, x in enumerate(sorted(X))}
    if X:
        assert called("avg(X)", X=X) == Fraction(sum(X)) / len(X)
        assert called("rankof(maximum(X), X)", X=X) == len(X) - 1


@given(sets, sets)
def test_counts_and_extremes_by_an_order_are_those_of_python(X: frozenset[Any], Y: frozenset[Any]) -> None:
    """Every way to write it: a sorted list, or a least or greatest element, answers."""
    for sign in ("<", "<=", ">", ">="):
        compared = {"<": lt, "<=": le, ">": gt, ">=": ge}[sign]
        counted = {(x, sum(compared(y, x) for y in Y)) for x in X}
        assert called(f"{{(x, sum{{| 1 | y in Y, y {sign} x |}}) | x in X}}", X=X, Y=Y) == counted
        assert called(f"{{(x, sum{{| if y {sign} x then 1 else 0 | y in Y |}}) | x in X}}", X=X, Y=Y) == counted
        everything = {x for x in X if all(compared(x, y) for y in Y)}
        assert called(f"{{x | x in X, all{{ x {sign} y | y in Y }}}}", X=X, Y=Y) == everything
        doubled = {x for x in X if all(compared(2 * y, x) for y in Y if y != 1)}
        assert called(f"{{x | x in X, all{{ y * 2 {sign} x | y in Y, y != 1 }}}}", X=X, Y=Y) == doubled


@given(pairs, pairs)
def test_relations_of_the_prelude_are_those_of_python(R: frozenset[Any], S: frozenset[Any]) -> None:
    firsts = {x for x, _ in R}
    groups = {x: frozenset(y for a, y in R if a == x) for x in firsts}
    assert called("compose(R, S)", R=R, S=S) == {(x, z) for x, y in R for a, z in S if a == y}
    assert called("nest(R)", R=R) == set(groups.items())
    assert called("unnest(nest(R))", R=R) == R
    assert called("count_by(R)", R=R) == {(x, len(group)) for x, group in groups.items()}
    assert called("total_by(R)", R=R) == {(x, sum(group)) for x, group in groups.items()}
    assert called("maximum_by(R)", R=R) == {(x, max(group)) for x, group in groups.items()}
    assert called("minimum_by(R)", R=R) == {(x, min(group)) for x, group in groups.items()}
    assert called("avg_by(R)", R=R) == {(x, Fraction(sum(g), len(g))) for x, g in groups.items()}
    assert called("difference(R, S)", R=R, S=S) == R ^ S
    assert called("max_outdegree(R)", R=R) == max((len(group) for group in groups.values()), default=0)
    assert called("{(x, indegree(x, R)) | x in range(R)}", R=R) == {(y, sum(b == y for _, b in R)) for _, y in R}
    assert called("product(domain(R), field(S))", R=R, S=S) == {(x, y) for x in firsts for p in S for y in p}


@given(st.frozensets(st.sampled_from("abcde")), st.permutations("abcde"))
def test_rank_by_an_order_counts_what_comes_before(X: frozenset[str], order: list[str]) -> None:
    before = frozenset((x, y) for i, x in enumerate(order) for y in order[i + 1 :])
    assert called("rank_by(X, L)", X=X, L=before) == {(x, i) for i, x in enumerate(sorted(X, key=order.index))}
    for x in X:
        assert called("rankof_by(x, X, L)", x=x, X=X, L=before) == sorted(X, key=order.index).index(x)


def test_every_function_of_the_prelude_has_a_type() -> None:
    calls = {
        "is_empty": "is_empty(X)",
        "union_of": "union_of({X, {1}})",
        "inverse": "inverse(R)",
        "image": "image(1, R)",
        "outdegree": "outdegree(1, R)",
        "indegree": "indegree(1, R)",
        "rank_by": "rank_by(X, R)",
        "rankof": "rankof(1, X)",
        "rankof_by": "rankof_by(1, X, R)",
        "unnest": "unnest(nest(R))",
    }
    environment = {"X": ENVIRONMENT["X"], "R": ENVIRONMENT["R"]}
    environment["R"] = type_of(parse_term("{(x, x) | x in X}"), environment, {}, Report(Source("")))  # type: ignore[assignment]
    for name, definition in prelude().items():
        text = calls.get(name) or f"{name}({', '.join('R' if p in 'RES' else 'X' for p in definition.parameters)})"
        assert height_of(parse_term(text), environment, prelude()) <= 2, name


# ── the parser never crashes ─────────────────────────────────────────────────────────────────────

WORDS = [
    *sorted(RESERVED | SOFT | BEFORE_BRACE),
    *MARKS,
    "sum{|",
    "union{",
    "exists{",
    "all{",
    "x",
    "y'",
    "_",
    "R",
]
WORDS += [
    "1",
    "0",
    "42",
    '"s"',
    '"\\q"',
    '"',
    "+[7]",
    "*[6]",
    "-- c",
    "\n",
    "\n+edge(1, 2).\n",
    "$",
    "é",
    "{num}",
    "\\",
]


def ends_well(text: str) -> None:
    for parse in (parse_term, parse_definitions, parse_system):
        report = None
        try:
            parse(text, "soup.nrc")
        except DatalogError as error:
            report = error.report
        if report is not None:
            assert report.errors
            assert {diagnostic.code for diagnostic in report.errors} <= CODES.keys()
            assert report.text()
            report.as_json()


@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
@example("system s input x : {num} answer y : {num} on insert new into x")
@example("sri x , X => {} from {} shows")
def test_token_soup_ends_in_a_term_or_in_diagnostics(text: str) -> None:
    ends_well(text)
    ends_well("system s\ninput x : {num}\nanswer y : {num}\n" + text)


@given(st.text(max_size=100))
def test_any_text_ends_in_a_term_or_in_diagnostics(text: str) -> None:
    ends_well(text)
