"""What programs mean: naive evaluation, feature by feature."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everlog.core.evaluate.choice_domains import Chooser
from everlog.core.evaluate.reference import evaluate
from everlog.core.evaluate.subsume import dominance_rule, dominated
from everlog.core.program import (
    Aggregate,
    Atom,
    Call,
    Column,
    Comparison,
    Constant,
    Functor,
    Kind,
    Literal,
    Negation,
    Origin,
    Program,
    Range,
    Relation,
    Row,
    Rule,
    Subsumption,
    Term,
    Variable,
    Wildcard,
)
from everlog.core.program.order import ordered
from everlog.core.program.values import NAN, EvaluationError

NUMBER, UNSIGNED, FLOAT, SYMBOL = Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL
KINDS = {"n": NUMBER, "u": UNSIGNED, "f": FLOAT, "s": SYMBOL}
AUTOINC = Call("autoinc", (), NUMBER, NUMBER)


# ── building programs ────────────────────────────────────────────────────────────────────────


def term(value: Term | float | str) -> Term:
    """A name is a variable, `_` a wildcard, a Python number a constant."""
    match value:
        case "_":
            return Wildcard()
        case str():
            return Variable(value)
        case int():
            return Constant(value, NUMBER)
        case float():
            return Constant(value, FLOAT)
        case _:
            return value


def sym(text: str) -> Constant:
    return Constant(text, SYMBOL)


def atom(name: str, *args: Term | float | str) -> Atom:
    return Atom(name, tuple(map(term, args)))


def no(name: str, *args: Term | float | str) -> Negation:
    return Negation(atom(name, *args))


def call(name: str, *args: Term | float | str, on: Kind = NUMBER, to: Kind | None = None) -> Call:
    return Call(name, tuple(map(term, args)), on, to or on)


def is_(left: Term | float | str, op: str, right: Term | float | str, kind: Kind = NUMBER) -> Comparison:
    return Comparison(op, term(left), term(right), kind)


def rule(head: Atom, *body: Literal) -> Rule:
    return Rule(head, body)


def aggregate(
    op: str, target: Term | str | None, *body: Literal, outer: str = "", kind: Kind = NUMBER, result: str = "r"
) -> Aggregate:
    of = None if target is None else term(target)
    return Aggregate(Variable(result), op, of, body, tuple(map(Variable, outer)), kind)


def declared(**kinds: str) -> dict[str, Relation]:
    """`declared(edge="nn", name="ns")`: relations by the initials of their kinds."""
    return {
        name: Relation(name, tuple(Column(f"c{n}", KINDS[k]) for n, k in enumerate(initials)))
        for name, initials in kinds.items()
    }


def answer(relations: dict[str, Relation], *rules: Rule, of: str = "p", **inputs: list[Any]) -> list[Row]:
    """Relation `of`, sorted; an input row of one column may be its bare value."""
    return ordered(evaluate(Program(relations, rules), _rows(inputs))[of])


def _rows(inputs: dict[str, list[Any]]) -> dict[str, list[Row]]:
    return {name: [row if isinstance(row, tuple) else (row,) for row in rows] for name, rows in inputs.items()}


PATH = (
    rule(atom("p", "x", "y"), atom("e", "x", "y")),
    rule(atom("p", "x", "z"), atom("p", "x", "y"), atom("e", "y", "z")),
)


# ── rules, atoms, negation ───────────────────────────────────────────────────────────────────


def test_facts_of_the_program_and_inputs_are_there_before_any_rule() -> None:
    program = Program(declared(p="n"), facts={"p": ((1,), (2,))})
    assert evaluate(program, {"p": [(2,), (3,)]}) == {"p": {(1,), (2,), (3,)}}


def test_every_declared_relation_is_in_the_answer() -> None:
    assert evaluate(Program(declared(p="n", q="nn"))) == {"p": frozenset(), "q": frozenset()}


def test_recursion_reaches_the_fixpoint() -> None:
    closure = answer(declared(e="nn", p="nn"), *PATH, e=[(1, 2), (2, 3), (3, 1)])
    assert closure == [(x, y) for x in (1, 2, 3) for y in (1, 2, 3)]


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_transitive_closure_is_what_warshall_computes(edges: set[tuple[int, int]]) -> None:
    paths = set(edges)
    for middle in range(6):
        paths |= {(x, y) for x in range(6) for y in range(6) if {(x, middle), (middle, y)} <= paths}
    assert answer(declared(e="nn", p="nn"), *PATH, e=list(edges)) == sorted(paths)


def test_mutual_recursion_computes_both_relations_together() -> None:
    rules = (
        rule(atom("even", 0)),
        rule(atom("odd", "y"), atom("even", "x"), atom("next", "x", "y")),
        rule(atom("even", "y"), atom("odd", "x"), atom("next", "x", "y")),
    )
    relations = declared(even="n", odd="n", next="nn")
    assert answer(relations, *rules, of="even", next=[(n, n + 1) for n in range(5)]) == [(0,), (2,), (4,)]


def test_a_repeated_variable_a_constant_a_wildcard_and_a_call_select_facts() -> None:
    def only(*args: Term | float | str) -> list[Row]:
        return answer(declared(e="nn", p="n"), rule(atom("p", "x"), atom("e", *args)), e=[(1, 1), (1, 2), (2, 3)])

    assert only("x", "x") == [(1,)]
    assert only("x", 3) == [(2,)]
    assert only("x", "_") == [(1,), (2,)]
    assert only("x", call("+", "x", 1)) == [(1,), (2,)]


def test_a_nullary_relation_is_true_or_false() -> None:
    assert answer(declared(a="n", p=""), rule(atom("p"), atom("a", "_")), a=[7]) == [()]
    assert answer(declared(a="n", p=""), rule(atom("p"), atom("a", "_")), a=[]) == []


def test_negation_means_absence_and_its_wildcard_means_for_no_value() -> None:
    relations = declared(a="n", e="nn", p="n")
    rules = rule(atom("p", "x"), atom("a", "x"), no("e", "x", "_"))
    assert answer(relations, rules, a=[1, 2], e=[(1, 9)]) == [(2,)]
    rules = rule(atom("p", "x"), atom("a", "x"), no("e", "x", call("+", "x", 8)))
    assert answer(relations, rules, a=[1, 2], e=[(1, 9)]) == [(2,)]


def test_negation_sees_the_whole_lower_relation() -> None:
    rules = (*PATH, rule(atom("q", "x"), atom("a", "x"), no("p", 1, "x")))
    relations = declared(a="n", e="nn", p="nn", q="n")
    assert answer(relations, *rules, of="q", a=[1, 3, 4], e=[(1, 2), (2, 3)]) == [(1,), (4,)]


def test_the_order_of_body_literals_does_not_matter() -> None:
    body: tuple[Literal, ...] = (
        atom("e", "x", "y"),
        is_("z", "=", call("+", "y", "n")),
        aggregate("count", None, atom("e", "x", "w"), outer="x", result="n"),
        no("e", "z", "_"),
        is_(call("*", "z", 2), "=", "d"),
        Range(Variable("i"), Constant(0, NUMBER), Variable("n"), None, NUMBER),
    )
    answers = {
        tuple(
            answer(declared(e="nn", p="nnn"), rule(atom("p", "x", "d", "i"), *order), e=[(1, 2), (1, 3), (4, 5)])
        )
        for order in permutations(body)
    }
    assert answers == {((1, 10, 0), (1, 10, 1), (4, 12, 0))}


def test_a_body_that_binds_nothing_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="not grounded: x < 1"):
        answer(declared(p="n"), rule(atom("p", 1), is_("x", "<", 1)))


# ── comparisons, ranges, functors ────────────────────────────────────────────────────────────


def test_equality_binds_a_bare_variable_on_either_side_and_compares_bound_ones() -> None:
    def doubled(*body: Literal) -> list[Row]:
        return answer(declared(a="n", p="nn"), rule(atom("p", "x", "y"), atom("a", "x"), *body), a=[1, 2])

    assert doubled(is_("y", "=", call("+", "x", "x"))) == [(1, 2), (2, 4)]
    assert doubled(is_(call("+", "x", "x"), "=", "y")) == [(1, 2), (2, 4)]
    assert doubled(is_("x", "=", "y")) == [(1, 1), (2, 2)]
    assert doubled(is_("y", "=", "x")) == [(1, 1), (2, 2)]
    assert doubled(atom("a", "y"), is_("x", "=", "y")) == [(1, 1), (2, 2)]


@pytest.mark.parametrize(
    ("op", "expected"), [("<", [1]), ("<=", [1, 2]), (">", [3]), (">=", [2, 3]), ("=", [2]), ("!=", [1, 3])]
)
def test_comparisons_filter(op: str, expected: list[int]) -> None:
    found = answer(declared(a="n", p="n"), rule(atom("p", "x"), atom("a", "x"), is_("x", op, 2)), a=[1, 2, 3])
    assert found == [(x,) for x in expected]


def test_string_tests_filter() -> None:
    test = is_(sym("a.*"), "match", "x", SYMBOL), is_(sym("z"), "not_contains", "x", SYMBOL)
    assert answer(declared(a="s", p="s"), rule(atom("p", "x"), atom("a", "x"), *test), a=["ab", "b", "az"]) == [
        ("ab",)
    ]


def test_range_gives_each_value_and_a_bound_result_must_be_among_them() -> None:
    def ranged(start: int, stop: int, step: int | None, *more: Literal) -> list[Row]:
        by = None if step is None else Constant(step, NUMBER)
        literal = Range(Variable("i"), Constant(start, NUMBER), Constant(stop, NUMBER), by, NUMBER)
        return answer(declared(a="n", p="n"), rule(atom("p", "i"), literal, *more), a=[2, 3, 8])

    assert ranged(1, 4, None) == [(1,), (2,), (3,)]
    assert ranged(10, 7, None) == [(8,), (9,), (10,)]
    assert ranged(0, 10, 4) == [(0,), (4,), (8,)]
    assert ranged(0, 10**15, 2, is_("i", "=", 8)) == [(8,)]
    assert ranged(0, 10, 4, atom("a", "i")) == [(8,)]


def test_range_may_begin_and_end_at_values_of_the_binding() -> None:
    literal = Range(Variable("i"), Variable("x"), call("+", "x", 2), None, NUMBER)
    assert answer(declared(a="n", p="nn"), rule(atom("p", "x", "i"), literal, atom("a", "x")), a=[5]) == [
        (5, 5),
        (5, 6),
    ]


def value_of(expression: Term | float | str, kind: str, **functors: Functor) -> Any:
    program = Program(declared(p=kind), (rule(atom("p", expression)),), functors=functors)
    ((value,),) = evaluate(program)["p"]
    return value


def test_calls_nest_and_are_chosen_by_the_kind_of_their_operands() -> None:
    assert value_of(call("+", 2**63 - 1, call("*", 1, 1)), "n") == -(2**63)
    assert value_of(call("-", Constant(0, UNSIGNED), Constant(1, UNSIGNED), on=UNSIGNED), "u") == 2**64 - 1
    assert value_of(call("/", 1.0, 4.0, on=FLOAT), "f") == 0.25
    assert value_of(call("strlen", sym("abc"), on=SYMBOL, to=NUMBER), "n") == 3


def test_min_max_and_cat_take_any_number_of_arguments() -> None:
    assert value_of(call("min", 3, 1, 2), "n") == 1
    assert value_of(call("max", 3, 1, 2), "n") == 3
    assert value_of(call("max", sym("ab"), on=SYMBOL), "s") == "ab"
    assert value_of(call("cat", sym("a"), sym("b"), sym("c"), on=SYMBOL), "s") == "abc"
    assert value_of(call("cat", sym("a"), on=SYMBOL), "s") == "a"


def test_as_shows_the_same_bits_as_another_kind() -> None:
    assert value_of(call("as", -1, on=NUMBER, to=UNSIGNED), "u") == 2**64 - 1


def test_nan_is_one_value_however_it_came_about() -> None:
    infinity = call("/", 1.0, 0.0, on=FLOAT)
    rules = (
        rule(atom("p", call("/", infinity, infinity, on=FLOAT))),
        rule(atom("p", call("/", 0.0, 0.0, on=FLOAT))),
    )
    (row,) = answer(declared(p="f"), *rules)
    assert row[0] is NAN
    assert answer(
        declared(a="f", b="f", p="f"), rule(atom("p", "x"), atom("a", "x"), atom("b", "x")), a=[NAN], b=[NAN]
    ) == [row]


def user(function: Any, result: Kind = NUMBER) -> Functor:
    return Functor("f", (NUMBER,), result, function)


def test_a_users_function_is_called_with_the_values() -> None:
    assert value_of(call("@f", 20), "n", f=user(lambda x: x + 1)) == 21
    assert value_of(call("@f", 20, to=SYMBOL), "s", f=user(str, SYMBOL)) == "20"


def test_a_users_integers_are_brought_back_into_64_bits() -> None:
    assert value_of(call("@f", 1), "n", f=user(lambda x: 2**63)) == -(2**63)
    assert value_of(call("@f", 1, to=UNSIGNED), "u", f=user(lambda x: -1, UNSIGNED)) == 2**64 - 1
    flag = value_of(call("@f", 1), "n", f=user(lambda x: True))
    assert (flag, type(flag)) == (1, int)


def test_a_users_nan_is_the_one_nan() -> None:
    assert value_of(call("@f", 1, to=FLOAT), "f", f=user(lambda x: float("nan"), FLOAT)) is NAN


@pytest.mark.parametrize(
    ("functor", "message"),
    [
        (user(None), "functor @f is declared but not bound to a Python function"),
        (user(lambda x: 1 // 0), "@f(7) raised ZeroDivisionError: integer division or modulo by zero"),
        (user(lambda x: "1"), "@f(7) returned '1', which is no number"),
        (user(lambda x: "1", FLOAT), "@f(7) returned '1', which is no float"),
        (user(lambda x: 1.0, UNSIGNED), "@f(7) returned 1.0, which is no unsigned"),
        (user(lambda x: None, SYMBOL), "@f(7) returned None, which is no symbol"),
    ],
)
def test_a_users_function_that_fails_is_named_with_its_arguments(functor: Functor, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        value_of(call("@f", 7), "n", f=functor)
    assert caught.value.message == message


def test_an_error_names_the_rule_and_its_place() -> None:
    wrong = Rule(atom("p", call("/", 1, "x")), (atom("a", "x"),), origin=Origin(file="bad.dl", line=3))
    with pytest.raises(EvaluationError) as caught:
        answer(declared(a="n", p="n"), wrong, a=[0])
    assert str(caught.value) == "division by zero: 1 / 0 at bad.dl:3\n  in the rule  p((1 / x)) :- a(x)."


def test_an_error_in_a_subsumption_names_the_subsumption() -> None:
    wrong = Subsumption(atom("p", "x"), atom("p", "y"), (is_(call("/", 1, "x"), "<", "y"),), Origin(line=4))
    with pytest.raises(EvaluationError) as caught:
        evaluate(Program(declared(p="n"), subsumptions=(wrong,)), {"p": [(0,), (1,)]})
    assert (caught.value.rule, caught.value.where) == ("p(x) <= p(y) :- (1 / x) < y.", "line 4")


# ── aggregates ───────────────────────────────────────────────────────────────────────────────

SALES: list[Row] = [(1, 10), (1, 30), (2, 10)]


def total(literal: Aggregate, *body: Literal, kind: str = "n", **inputs: list[Any]) -> list[Row]:
    """The answer of `p(r) :- literal, body.` over sale(shop, price)."""
    relations = declared(a="n", sale="nn", weight="nf", big="nu", name="ns", p=kind)
    return answer(relations, rule(atom("p", "r"), literal, *body), **({"sale": SALES} | inputs))


def test_count_counts_the_bindings_of_all_variables() -> None:
    assert total(aggregate("count", None, atom("sale", "s", "x"))) == [(3,)]
    assert total(aggregate("count", None, atom("sale", "s", 10))) == [(2,)]


def test_sum_adds_the_target_once_per_binding_not_once_per_value() -> None:
    assert total(aggregate("sum", "x", atom("sale", "s", "x"))) == [(50,)]


def test_bindings_are_a_set() -> None:
    body = atom("sale", "s", "_"), no("sale", "_", "s")
    assert total(aggregate("count", None, *body)) == [(2,)]


def test_the_target_may_be_a_term() -> None:
    assert total(aggregate("max", call("*", "s", "x"), atom("sale", "s", "x"))) == [(30,)]


def test_min_max_and_mean_choose_and_average() -> None:
    body = atom("sale", "s", "x")
    assert total(aggregate("min", "x", body)) == [(10,)]
    assert total(aggregate("max", "x", body)) == [(30,)]
    assert total(aggregate("mean", "x", body, kind=FLOAT), kind="f") == [(50 / 3,)]
    assert total(
        aggregate("min", "x", atom("name", "s", "x"), kind=SYMBOL), kind="s", name=[(1, "b"), (2, "a")]
    ) == [("a",)]


def test_over_nothing_count_and_sum_are_zero_and_the_others_have_no_value() -> None:
    assert total(aggregate("count", None, atom("sale", "s", "x")), sale=[]) == [(0,)]
    assert total(aggregate("sum", "x", atom("sale", "s", "x")), sale=[]) == [(0,)]
    (zero,) = total(aggregate("sum", "x", atom("weight", "s", "x"), kind=FLOAT), kind="f")
    assert repr(zero) == "(0.0,)"
    for op in ("min", "max", "mean"):
        assert total(aggregate(op, "x", atom("sale", "s", "x")), sale=[]) == []


def test_sums_have_the_arithmetic_of_their_kind() -> None:
    numbers = aggregate("sum", "x", atom("sale", "s", "x"))
    assert total(numbers, sale=[(1, 2**63 - 1), (2, 1)]) == [(-(2**63),)]
    unsigned = aggregate("sum", "x", atom("big", "s", "x"), kind=UNSIGNED)
    assert total(unsigned, kind="u", big=[(1, 2**64 - 1), (2, 2)]) == [(1,)]
    floats = aggregate("sum", "x", atom("weight", "s", "x"), kind=FLOAT)
    assert total(floats, kind="f", weight=[(n, 0.1) for n in range(10)]) == [(1.0,)]


def test_nan_is_the_greatest_float_for_min_and_max_and_spoils_sum_and_mean() -> None:
    def over(op: str) -> Any:
        literal = aggregate(op, "x", atom("weight", "s", "x"), kind=FLOAT)
        return total(literal, kind="f", weight=[(1, NAN), (2, 1.0)])[0][0]

    assert over("min") == 1.0
    assert over("max") is over("sum") is over("mean") is NAN


def test_an_aggregate_is_computed_for_each_binding_of_its_outer_variables() -> None:
    literal = aggregate("sum", "x", atom("sale", "s", "x"), outer="s")
    rules = rule(atom("p", "s", "r"), literal, atom("a", "s"))
    assert answer(declared(a="n", sale="nn", p="nn"), rules, a=[1, 2, 3], sale=SALES) == [(1, 40), (2, 10), (3, 0)]


def test_a_variable_that_is_not_outer_is_local_whatever_its_name() -> None:
    assert total(aggregate("sum", "x", atom("sale", "s", "x")), atom("a", "x"), is_("s", "=", 1), a=[7]) == [(50,)]


def test_a_bound_result_is_compared() -> None:
    assert total(aggregate("count", None, atom("sale", "s", "x")), atom("a", "r"), a=[2, 3, 4]) == [(3,)]


def test_aggregates_nest() -> None:
    inner = aggregate("sum", "x", atom("sale", "s", "x"), outer="s", result="t")
    assert total(aggregate("max", "t", atom("sale", "s", "_"), inner)) == [(40,)]


# ── equivalence relations, limits ────────────────────────────────────────────────────────────


def equivalence(name: str) -> Relation:
    column = Column("x", NUMBER)
    return Relation(name, (column, column), equivalence=True)


def test_an_equivalence_closes_inputs_and_derived_facts() -> None:
    relations = declared(a="nn") | {"p": equivalence("p")}
    pairs = answer(relations, rule(atom("p", "x", "y"), atom("a", "x", "y")), p=[(1, 2)], a=[(2, 3), (8, 9)])
    assert pairs == sorted((x, y) for group in ({1, 2, 3}, {8, 9}) for x in group for y in group)


def test_rules_of_an_equivalence_see_its_closure() -> None:
    relations = declared(a="nn") | {"p": equivalence("p")}
    joined = rule(atom("p", "x", 9), atom("p", 1, "x"))  # 1 ~ 3 only by transitivity
    assert (3, 9) in answer(relations, joined, p=[(1, 2), (2, 3)])
    assert (9, 2) in answer(relations, joined, p=[(1, 2), (2, 3)])


COUNTING = rule(atom("p", call("+", "x", 1)), atom("p", "x"))


def test_a_recursion_stops_after_the_round_that_reaches_its_limit() -> None:
    program = Program(declared(p="n"), (COUNTING,), facts={"p": ((0,), (10,))}, limits={"p": 5})
    assert sorted(evaluate(program)["p"]) == [(0,), (1,), (2,), (10,), (11,), (12,)]


def test_a_limit_does_not_stop_rules_without_recursion() -> None:
    program = Program(declared(a="n", p="n"), (rule(atom("p", "x"), atom("a", "x")),), limits={"p": 1})
    assert len(evaluate(program, {"a": [(1,), (2,), (3,)]})["p"]) == 3


# ── autoinc ──────────────────────────────────────────────────────────────────────────────────


def test_autoinc_numbers_the_sorted_bindings_from_zero() -> None:
    numbered = rule(atom("p", AUTOINC, "x"), atom("a", "x"))
    assert answer(declared(a="n", p="nn"), numbered, a=[30, 10, 20]) == [(0, 10), (1, 20), (2, 30)]


def test_bindings_are_sorted_by_the_names_of_their_variables() -> None:
    numbered = rule(atom("p", AUTOINC, "z", "b"), atom("e", "z", "b"))
    assert answer(declared(e="nn", p="nnn"), numbered, e=[(1, 9), (2, 8)]) == [(0, 2, 8), (1, 1, 9)]


def test_a_binding_counts_over_all_variables_of_the_rule() -> None:
    numbered = rule(atom("p", AUTOINC, "x"), atom("e", "x", "y"))
    assert answer(declared(e="nn", p="nn"), numbered, e=[(1, 1), (1, 2)]) == [(0, 1), (1, 1)]


def test_one_counter_serves_all_rules_in_order() -> None:
    rules = (
        rule(atom("q", AUTOINC), atom("p", "_", "x")),
        rule(atom("p", AUTOINC, 1)),
        rule(atom("p", AUTOINC, 2), atom("a", "x")),
    )
    found = evaluate(Program(declared(a="n", p="nn", q="n"), rules), {"a": [(5,), (6,)]})
    assert sorted(found["p"]) == [(0, 1), (1, 2), (2, 2)]
    assert sorted(found["q"]) == [(3,), (4,)]


def test_each_occurrence_draws_from_left_to_right_head_before_body() -> None:
    numbered = rule(
        atom("p", call("+", call("*", 10, AUTOINC), AUTOINC), "y", "z"),
        is_("z", "=", call("+", "y", 100)),
        is_("y", "=", AUTOINC),
        atom("a", "x"),
    )
    assert answer(declared(a="n", p="nnn"), numbered, a=[1, 2]) == [(1, 2, 102), (34, 5, 105)]


def test_a_rule_with_autoinc_runs_once_also_where_another_rule_recurses() -> None:
    rules = (
        rule(atom("p", AUTOINC, "x"), atom("a", "x")),
        rule(atom("p", "n", "y"), atom("p", "n", "x"), atom("e", "x", "y")),
    )
    found = answer(declared(a="n", e="nn", p="nn"), *rules, a=[1, 2], e=[(2, 3), (3, 4)])
    assert found == [(0, 1), (1, 2), (1, 3), (1, 4)]


def test_two_equal_rules_with_autoinc_both_count() -> None:
    assert answer(declared(p="n"), rule(atom("p", AUTOINC)), rule(atom("p", AUTOINC))) == [(0,), (1,)]


# ── choice domains ───────────────────────────────────────────────────────────────────────────


def choosing(*keys: tuple[int, ...]) -> dict[str, Relation]:
    column = Column("x", NUMBER)
    return declared(e="nn", f="nn", a="n") | {"p": Relation("p", (column, column), choices=keys)}


def copied(source: str) -> Rule:
    return rule(atom("p", "x", "y"), atom(source, "x", "y"))


def test_of_facts_with_one_key_the_first_in_sorted_order_stays() -> None:
    assert answer(choosing((0,)), copied("e"), e=[(1, 9), (1, 5), (2, 7)]) == [(1, 5), (2, 7)]


def test_a_fact_must_be_free_in_every_key() -> None:
    pairs = [(x, y) for x in (1, 2, 3) for y in (1, 2, 3)]
    assert answer(choosing((0,), (1,)), copied("e"), e=pairs) == [(1, 1), (2, 2), (3, 3)]
    assert answer(choosing((0, 1)), copied("e"), e=pairs) == pairs


def test_facts_and_inputs_are_chosen_before_derived_facts() -> None:
    program = Program(choosing((0,)), (copied("e"),), facts={"p": ((1, 7),)})
    assert sorted(evaluate(program, {"p": [(1, 6)], "e": [(1, 5), (2, 5)]})["p"]) == [(1, 6), (2, 5)]


def test_rules_choose_in_program_order() -> None:
    assert answer(choosing((0,)), copied("f"), copied("e"), e=[(1, 1)], f=[(1, 2)]) == [(1, 2)]


def test_an_earlier_round_chooses_before_a_better_sorted_later_one() -> None:
    spanning = (
        rule(atom("p", 0, 0)),
        rule(atom("p", "y", "x"), atom("p", "x", "_"), atom("e", "x", "y")),  # p(node, parent)
    )
    edges = [(0, 4), (0, 2), (2, 3), (4, 3), (3, 1), (0, 9), (1, 9)]
    assert answer(choosing((0,)), *spanning, e=edges) == [(0, 0), (1, 3), (2, 0), (3, 2), (4, 0), (9, 0)]


def test_a_chooser_returns_only_what_is_new_and_remembers() -> None:
    chooser = Chooser(choosing((0,))["p"], [(1, 1)])
    assert chooser.admit([(1, 1), (1, 0), (2, 2)]) == [(2, 2)]
    assert chooser.admit([(2, 2), (2, 1)]) == []


# ── subsumption ──────────────────────────────────────────────────────────────────────────────


def shorter(*body: Literal, name: str = "p") -> Subsumption:
    """Of two distances to a node the smaller stays."""
    return Subsumption(atom(name, "x", "d"), atom(name, "x", "e"), (is_("e", "<", "d"), *body))


def test_a_dominated_fact_goes_whether_loaded_or_derived() -> None:
    program = Program(declared(e="nn", p="nn"), (copied("e"),), subsumptions=(shorter(),))
    assert sorted(evaluate(program, {"p": [(1, 5), (1, 6), (2, 5)], "e": [(1, 4), (2, 6)]})["p"]) == [
        (1, 4),
        (2, 5),
    ]


def test_subsumption_inside_recursion_gives_shortest_distances_on_a_cycle() -> None:
    rules = (
        rule(atom("p", 0, 0)),
        rule(atom("p", "y", call("+", "d", "w")), atom("p", "x", "d"), atom("edge", "x", "y", "w")),
    )
    edges = [(0, 1, 9), (0, 2, 1), (2, 1, 1), (1, 0, 1), (1, 3, 1)]
    program = Program(declared(edge="nnn", p="nn"), rules, subsumptions=(shorter(),))
    assert sorted(evaluate(program, {"edge": edges})["p"]) == [(0, 0), (1, 2), (2, 1), (3, 3)]


def test_the_body_of_a_subsumption_may_ask_other_relations() -> None:
    program = Program(declared(a="n", p="nn"), subsumptions=(shorter(atom("a", "x")),))
    assert sorted(evaluate(program, {"a": [(1,)], "p": [(1, 1), (1, 2), (2, 1), (2, 2)]})["p"]) == [
        (1, 1),
        (2, 1),
        (2, 2),
    ]


def test_a_subsumption_without_body_keeps_one_fact_the_last() -> None:
    keep_one = Subsumption(atom("p", "x", "_"), atom("p", "x", "_"), ())
    program = Program(declared(p="nn"), subsumptions=(keep_one,))
    assert sorted(evaluate(program, {"p": [(1, 1), (1, 2), (2, 5), (1, 3)]})["p"]) == [(1, 3), (2, 5)]


def test_a_fact_goes_also_when_the_better_one_goes_for_a_still_better_one() -> None:
    """Whether `<=` is transitive or not, and whichever of the facts sorts first."""
    assert dominated([(1, 2), (2, 3)]) == {(1,), (2,)}
    assert dominated([(3, 2), (2, 1)]) == {(2,), (3,)}


@given(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6))))
def test_every_fact_that_goes_leads_to_one_that_stays_and_those_that_stay_have_no_better(
    pairs: set[tuple[int, int]],
) -> None:
    gone = {worse for (worse,) in dominated(pairs)}
    rules = rule(atom("p", "x"), atom("good", "x")), rule(atom("p", "x"), atom("e", "x", "y"), atom("p", "y"))
    staying = [x for x in range(7) if x not in gone]
    assert len(answer(declared(good="n", e="nn", p="n"), *rules, good=staying, e=list(pairs))) == 7
    assert not any(x != y and {x, y} <= set(staying) for x, y in pairs)


def test_a_fact_that_went_does_not_come_back_so_the_fixpoint_ends() -> None:
    better = Subsumption(atom("p", "x"), atom("p", call("+", "x", 1)), ())
    rules = rule(atom("p", 1)), rule(atom("p", call("+", "x", 1)), atom("p", "x"), is_("x", "<", 3))
    assert evaluate(Program(declared(p="n"), rules, subsumptions=(better,)))["p"] == {(3,)}


def test_several_subsumptions_of_a_relation_work_together() -> None:
    lower = Subsumption(atom("p", "x", "d"), atom("p", "y", "d"), (is_("y", "<", "x"),))
    program = Program(declared(p="nn"), subsumptions=(shorter(), lower))
    assert evaluate(program, {"p": [(x, d) for x in (1, 2) for d in (1, 2)]})["p"] == {(1, 1)}


def test_a_subsumption_is_a_rule_over_pairs() -> None:
    one = Subsumption(atom("p", "_", "d"), atom("p", "_", "e"), (is_("e", "<", "d"),))
    assert str(dominance_rule(one)) == "p(?0, d, ?1, e) :- p(?0, d), p(?1, e), e < d."


# ── order ────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.sampled_from([NAN, -math.inf, -1.0, 0.0, 2.0]), max_size=6), st.randoms())
def test_the_order_of_rows_is_total_also_with_nan(values: list[float], random: Any) -> None:
    rows: list[Row] = [(value, 1) for value in values]
    shuffled = rows[:]
    random.shuffle(shuffled)
    assert ordered(rows) == ordered(shuffled)
