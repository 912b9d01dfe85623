"""Functors and comparisons as Column expressions: the same values as in process.

They hold in both modes of Spark's arithmetic.  One program per kind applies every functor to all
values of the kind, with generated code, as for users.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from everlog.core.evaluate.reference import evaluate as reference
from everlog.core.program import (
    Aggregate,
    Atom,
    Call,
    Column,
    Comparison,
    Functor,
    Kind,
    Program,
    Relation,
    Row,
    Rule,
    Term,
    Variable,
)
from everlog.core.program.functors import BUILTINS, COMPARISONS
from everlog.core.program.values import EvaluationError
from everlog.dsl.check import compile_text
from everlog.spark_backend.column_types import fetch, kinds_of
from everlog.spark_backend.evaluate import evaluate, telling
from everlog.spark_backend.executor import SparkExecutor
from everlog.spark_backend.frames.expressions import NotOnSpark
from everlog.spark_backend.frames.marks import evaluation_error
from everlog.spark_backend.inputs import WrongInput
from everlog.spark_backend.plan import explain
from everlog.spark_backend.settings import Settings, tuned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

N, U, F, S = Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL
VALUES: dict[Kind, list[Any]] = {
    N: [0, 1, -1, 2, -7, 62, 64, 10**12, 2**31, 2**32 + 5, 2**63 - 1, -(2**63), -(2**63) + 1, 3037000500],
    U: [0, 1, 2, 7, 63, 64, 2**32 - 1, 2**63 - 1, 2**63, 2**63 + 11, 2**64 - 1],
    F: [
        0.0,
        1.0,
        -1.5,
        0.1,
        1e300,
        -1e300,
        5e-324,
        2.0**63,
        -(2.0**63),
        2.0**64,
        1e19,
        math.inf,
        -math.inf,
        math.nan,
    ],
    S: [
        "",
        "a",
        "A",
        "ab",
        "ba",
        "zé",
        "é",
        "日本",
        "😀",
        "\udcff",
        "a\udc80b",
        "\udcc3",
        "\ue000",
        "a\nb",
        "-12",
        "0x1f",
    ],
}
FAILING = {("/", N), ("%", N), ("/", U), ("%", U), ("^", N), ("to_number", S), ("to_unsigned", S), ("to_float", S)}
REFUSED = {("ord", S)}
ARITIES = {"neg": 1, "bnot": 1, "lnot": 1, "strlen": 1, "ord": 1, "substr": 3, "cat": 3, "min": 3, "max": 2}
X, Y, Z, R = Variable("x"), Variable("y"), Variable("z"), Variable("r")


def arity(name: str) -> int:
    one = name.startswith("to_") or name in ("itof", "itou", "utoi", "utof", "ftoi", "ftou")
    return ARITIES.get(name, 1 if one else 2)


def program_of_functors(kind: Kind) -> Program:
    """Every functor on this kind, each in its own relation, on all values it accepts."""
    relations = {"v": Relation("v", (Column("x", kind),)), "n": Relation("n", (Column("x", N),))}
    rules = []
    for number, ((name, operand), builtin) in enumerate(BUILTINS.items()):
        if operand is not kind or (name, kind) in REFUSED:
            continue
        args: tuple[Term, ...] = (X, Y, Z)[: arity(name)]
        body: list[Any] = [Atom("v", (arg,)) for arg in args]
        if name == "substr":
            body = [Atom("v", (X,)), Atom("n", (Y,)), Atom("n", (Z,))]
        head = f"{number} {name}"
        if (name, kind) in FAILING:
            good = f"{head} good"
            relations[good] = Relation(good, tuple(Column("x", kind) for _ in args))
            body = [Atom(good, args)]
        shown = (X, Y, Z)[: len(body) if name == "substr" else len(args)]
        columns = [Column("x", kind), *(Column("y", N if name == "substr" else kind) for _ in shown[1:])]
        relations[head] = Relation(head, (*columns, Column("r", builtin.result)))
        call = Call(name, args, kind, builtin.result)
        rules.append(Rule(Atom(head, (*shown, R)), (*body, Comparison("=", R, call, builtin.result)), head))
    for number, op in enumerate(COMPARISONS):
        if kind is S or op in ("=", "!=", "<", "<=", ">", ">="):
            head = f"compared {number}"
            relations[head] = Relation(head, (Column("x", kind), Column("y", kind)))
            body = [Atom("v", (X,)), Atom("v", (Y,)), Comparison(op, X, Y, kind)]
            rules.append(Rule(Atom(head, (X, Y)), tuple(body), head))
    for op in ("min", "max", "sum", "mean", "count"):
        if kind is S and op in ("sum", "mean"):
            continue
        result = N if op == "count" else F if op == "mean" else kind
        relations[op] = Relation(op, (Column("r", result),))
        literal = Aggregate(R, op, None if op == "count" else X, (Atom("v", (X,)),), (), result)
        rules.append(Rule(Atom(op, (R,)), (literal,), op))
    return Program(relations, tuple(rules))


def inputs_of(program: Program, kind: Kind) -> dict[str, list[Row]]:
    from itertools import product

    inputs: dict[str, list[Row]] = {"v": [(value,) for value in VALUES[kind]]}
    inputs["n"] = [(value,) for value in (0, 1, -1, 2, 3, 100, 2**40)]
    for name, relation in program.relations.items():
        if name.endswith(" good"):
            builtin = BUILTINS[name.split()[1], kind]
            inputs[name] = []
            for row in product(VALUES[kind], repeat=relation.arity):
                try:
                    builtin.function(*row)
                except EvaluationError:
                    continue
                inputs[name].append(row)
    return inputs


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("kind", list(Kind))
def test_functors_comparisons_and_aggregates_are_those_of_the_reference(
    spark: SparkSession, kind: Kind, ansi: str
) -> None:
    program = program_of_functors(kind)
    inputs = inputs_of(program, kind)
    expected = reference(program, inputs)
    derived = sorted({rule.head.relation for rule in program.rules})
    with tuned(spark, {"spark.sql.ansi.enabled": ansi, "spark.sql.leafNodeDefaultParallelism": "1"}):
        found = evaluate(spark, program, inputs)
        rows = fetch({name: (found[name], kinds_of(program.relations[name])) for name in derived})
    assert rows is not None
    for name in derived:
        assert frozenset(rows[name]) == expected[name], name


def test_a_sum_of_floats_is_rounded_once_whatever_the_partitions(spark: SparkSession) -> None:
    values = [1e16, 1.0, -1e16, 1e-3, 3.5e300, -3.5e300, 0.1, 0.2, 0.3]
    program = compile_text(".decl f(i:number, x:float)\n.decl s(x:float)\ns(t) :- t = sum x : { f(_, x) }.\n")
    frame = spark.createDataFrame(list(enumerate(values)), "c0 bigint, c1 double").repartition(4)
    found = fetch({"s": (evaluate(spark, program, {"f": frame})["s"], (F,))})
    assert found == {"s": [(math.fsum(values),)]}


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("q(10 / x) :- n(x).", "division by zero: 10 / 0"),
        ("q(x % (x - 3)) :- n(x).", "division by zero: 3 % 0"),
        ('q(to_number(cat("a", to_string(x)))) :- n(x).', "to_number('a0'): the symbol is not a number"),
        ("q(@f(x)) :- n(x).", "@f(0) raised ValueError: no"),
    ],
)
def test_an_error_on_a_worker_is_that_of_the_rule(spark: SparkSession, rule: str, message: str) -> None:
    def refuse(x: int) -> int:
        raise ValueError("no")

    text = f".decl n(x:number)\n.decl q(x:number)\n.functor f(x:number):number\n{rule}\n"
    program = compile_text(text)
    functors = {"f": Functor("f", (N,), N, refuse)}
    program = Program(program.relations, program.rules, functors=functors)
    with pytest.raises(EvaluationError) as caught:
        SparkExecutor(spark).start(
            Program(program.relations, program.rules, {"n": ((0,), (3,))}, functors=functors)
        )
    assert message in (caught.value.message, caught.value.message.replace("(3)", "(0)").replace("'a3'", "'a0'"))
    assert caught.value.rule == rule


def test_a_literal_that_may_fail_is_not_tried_before_the_others(spark: SparkSession) -> None:
    program = compile_text(
        ".decl n(x:number)\n.decl ok(x:number)\n.decl q(x:number)\nn(0). n(5). ok(5).\nq(x) :- n(x), x != 0, 10 / x > 1.\n"
        "q(y) :- ok(x), n(x), y = 10 / x.\n"
    )
    found = fetch({"q": (evaluate(spark, program)["q"], (N,))})
    assert found is not None
    assert sorted(found["q"]) == [(2,), (5,)]


def test_rules_nested_deep_have_an_answer(spark: SparkSession) -> None:
    """Spark merges steps into one term of depth 800, too deep for Java's stack."""
    term = "x"
    for depth in range(20):
        term = f"bnot({term})" if depth % 2 else f"({term} bxor y)"
    steps = "".join(f".decl p{n}(x:number, y:number)\np{n}({term}, y) :- p{n - 1}(x, y).\n" for n in range(1, 41))
    program = compile_text(f".decl p0(x:number, y:number)\n{steps}")
    frame = spark.range(3).selectExpr("id AS c0", "id + 5 AS c1")
    found = fetch({"p40": (evaluate(spark, program, {"p0": frame}, wanted=["p40"])["p40"], (N, N))})
    assert found is not None
    assert sorted(found["p40"]) == [(0, 5), (1, 6), (2, 7)]


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("q(autoinc()) :- n(_).", "the workers have no common counter"),
        ('q(ord(cat("a", to_string(x)))) :- n(x).', "ordinals belong to one process"),
        ("q(@f(x)) :- n(x).", "not bound to a Python function"),
    ],
)
def test_what_cannot_run_on_spark_is_refused_before_anything_runs(rule: str, reason: str) -> None:
    program = compile_text(f".decl n(x:number)\n.decl q(x:number)\n.functor f(x:number):number\n{rule}\n")
    with pytest.raises(NotOnSpark, match=reason):
        explain(program)


def test_inputs_that_do_not_fit_are_reported(spark: SparkSession) -> None:
    program = compile_text(".decl e(x:number, y:symbol)\n.decl p(x:number)\np(x) :- e(x, _).\n")
    with pytest.raises(WrongInput, match="has 2 columns, its input has 1: id bigint"):
        evaluate(spark, program, {"e": spark.range(3)})
    with pytest.raises(WrongInput, match="is a symbol, which Spark holds as string; the input has b double"):
        evaluate(spark, program, {"e": spark.createDataFrame([(1, 2.0)], "a int, b double")})
    null = spark.createDataFrame([(1, None)], "a int, b string")
    with pytest.raises(Exception, match="has a null in its column `b`"):
        fetch({"e": (evaluate(spark, program, {"e": null})["e"], (N, S))})


def test_a_frame_of_floats_has_no_minus_zero_and_no_nulls(spark: SparkSession) -> None:
    program = compile_text(".decl f(x:float) .input f\n.decl g(x:float) .output g\ng(x) :- f(x).")
    found = evaluate(spark, program, {"f": spark.createDataFrame([(-0.0,), (0.0,)], "x double")})["g"]
    assert [str(row[0]) for row in found.collect()] == ["0.0"]
    assert not found.schema[0].nullable


def test_explain_reports_which_unit_runs_how(spark: SparkSession) -> None:
    program = compile_text(
        ".decl e(x:number, y:number)\n.decl p(x:number, y:number)\n.decl s(x:number, y:number)\n"
        ".decl c(x:number, y:number) choice-domain x\n.decl t(x:number)\n"
        "p(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"
        "s(x, y) :- e(z, x), e(z, y).\ns(x, y) :- e(a, x), s(a, b), e(b, y).\nc(x, y) :- e(x, y).\nt(x) :- p(x, x), !s(x, x).\n"
    )
    told = explain(program, Settings(small=50)).splitlines()
    assert told == [
        "e: given (no rules)",
        "p: decomposed (p carries column 1; in process if it reads at most 50 rows)",
        "s: iterated (no column is carried along by every recursive atom; in process if it reads at most 50 rows)",
        "c: in process (a choice domain admits facts in one order)",
        "t: plan (not recursive)",
    ]


def test_an_exception_of_spark_that_is_not_ours_stays_as_it_is(spark: SparkSession) -> None:
    program = compile_text(".decl p(x:number)\np(1).\n")
    assert evaluation_error(program, RuntimeError("something else")) is None
    with pytest.raises(Exception, match="nowhere"), telling(program):
        spark.read.parquet("/nowhere").count()
