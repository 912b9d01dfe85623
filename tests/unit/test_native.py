"""The compiled machine: its values, its storage, its limits."""

from __future__ import annotations

import math
import os
import random
import signal
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from everlog.core.evaluate import reference, seminaive
from everlog.core.evaluate.native import unit_rounds
from everlog.core.ir.operations import Plan
from everlog.core.program import (
    Aggregate,
    Atom,
    Call,
    Column,
    Comparison,
    Constant,
    Kind,
    Program,
    Relation,
    Row,
    Rule,
    Value,
    Variable,
)
from everlog.core.program.bodies import rule_may_fail
from everlog.core.program.dependencies import Unit
from everlog.core.program.functors import BUILTINS, COMPARISONS
from everlog.core.program.values import NAN, SIGNED_MAX, SIGNED_MIN, EvaluationError
from everlog.core.runtime.guards import LimitExceeded, Limits, memory_in_use
from everlog.dsl.check import compile_text
from everlog.functors import bind

machine: Any = pytest.importorskip("everlog.core.native._machine")

VALUES: dict[Kind, list[Value]] = {
    Kind.NUMBER: [0, 1, -1, 2, 7, -8, 63, 64, 2**31, -(2**31) - 1, SIGNED_MAX, SIGNED_MIN],
    Kind.UNSIGNED: [0, 1, 3, 65, 2**31, 2**32 - 1, 2**63, 2**64 - 1],
    Kind.FLOAT: [0.0, 1.0, -2.5, 1e308, -1e308, 2.0**63, 2.0**64, -(2.0**63), 5e-324, math.inf, -math.inf, NAN],
    Kind.SYMBOL: ["", "a", "b", "ab", "é", "\udcff", "a.*", "(", "12"],
}
x, y = Variable("x"), Variable("y")


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERLOG_PURE", "")


def relation(name: str, *kinds: Kind) -> Relation:
    return Relation(name, tuple(Column(f"c{n}", kind) for n, kind in enumerate(kinds)))


def pairs_of(kind: Kind) -> list[Row]:
    return [(a, b) for a in VALUES[kind] for b in VALUES[kind]]


def same_as_the_reference(program: Program, facts: dict[str, list[Row]], native: bool = True) -> None:
    found = seminaive.evaluate(program, facts)
    assert bool(found.relations.words) == native
    expected = reference.evaluate(program, facts)
    for name in program.relations:
        assert sorted(map(repr, found.relation(name))) == sorted(map(repr, expected[name]))


# ── values ───────────────────────────────────────────────────────────────────────────────────


def calls() -> Iterator[Call]:
    for (name, kind), builtin in BUILTINS.items():
        function, terms = builtin.function, (x, y)
        count = 3 if name == "substr" else 2
        for arguments in range(1, count + 1):
            try:
                function(*VALUES[kind][:arguments])
            except TypeError:
                continue
            except Exception:
                pass
            yield Call(name, terms[:arguments], kind, builtin.result)


@pytest.mark.parametrize("call", list(calls()), ids=lambda call: f"{call} of {call.operand}s")
def test_a_functor_computes_what_the_reference_computes(call: Call) -> None:
    """Every functor on the ends of its values; Python says what it means where one fails."""
    kind = call.operand
    head = Atom("out", (x, y, call))
    rule = Rule(head, (Atom("given", (x, y)),), "out#1")
    relations = relation("given", kind, kind), relation("out", kind, kind, call.kind)
    program = Program({one.name: one for one in relations}, (rule,))
    is_ordinal = call.name == "ord" and kind is Kind.SYMBOL
    if not rule_may_fail(rule):
        same_as_the_reference(program, {"given": pairs_of(kind)}, native=not is_ordinal)
        return
    for pair in pairs_of(kind):
        assert outcome(seminaive.evaluate, program, pair) == outcome(reference.evaluate, program, pair)


def outcome(evaluate: Any, program: Program, pair: Row) -> str:
    """The facts of `out`, or the error."""
    try:
        found = evaluate(program, {"given": [pair]})
    except EvaluationError as error:
        return str(error)
    return repr(found["out"] if isinstance(found, dict) else found.relation("out"))


@pytest.mark.parametrize("divisor", [1, -1, 2, -3, SIGNED_MIN, SIGNED_MAX])
@pytest.mark.parametrize("name", ["/", "%"])
def test_division_by_a_constant_is_compiled(name: str, divisor: int) -> None:
    call = Call(name, (x, Constant(divisor, Kind.NUMBER)), Kind.NUMBER, Kind.NUMBER)
    rule = Rule(Atom("out", (x, call)), (Atom("given", (x, y)),), "out#1")
    relations = relation("given", Kind.NUMBER, Kind.NUMBER), relation("out", Kind.NUMBER, Kind.NUMBER)
    same_as_the_reference(Program({one.name: one for one in relations}, (rule,)), {"given": pairs_of(Kind.NUMBER)})


@pytest.mark.parametrize("kind", Kind)
def test_comparisons_and_joins_mean_what_the_reference_means(kind: Kind) -> None:
    """Equality in a join finds NaN; the comparison `!=` says that NaN differs from itself."""
    names = [op for op in COMPARISONS if op.isalpha() or not op[0].isalpha()]
    ops = [op for op in names if kind is Kind.SYMBOL or not op.isalpha()]
    rules = [
        Rule(Atom(f"out{n}", (x, y)), (Atom("given", (x, y)), Comparison(op, x, y, kind)), f"out{n}#1")
        for n, op in enumerate(ops)
    ]
    rules.append(Rule(Atom("twice", (x,)), (Atom("given", (x, x)),), "twice#1"))
    rules.append(Rule(Atom("joined", (x, y)), (Atom("given", (x, y)), Atom("given", (y, x))), "joined#1"))
    rules += [
        Rule(Atom("fixed", (x,)), (Atom("given", (x, Constant(v, kind))),), "fixed#1") for v in VALUES[kind][1:3]
    ]
    relations = [relation("given", kind, kind), relation("twice", kind), relation("fixed", kind)]
    relations += [relation("joined", kind, kind), *(relation(f"out{n}", kind, kind) for n in range(len(ops)))]
    same_as_the_reference(Program({one.name: one for one in relations}, tuple(rules)), {"given": pairs_of(kind)})


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("op", ["count", "sum", "mean", "min", "max"])
def test_an_aggregate_takes_in_what_the_reference_takes_in(op: str, kind: Kind) -> None:
    """All values, some of them, one, and none; with a value of its own, and as a test."""
    if kind is Kind.SYMBOL and op in ("sum", "mean"):
        return
    result = {"count": Kind.NUMBER, "mean": Kind.FLOAT}.get(op, kind)
    group, value, found = Variable("g"), Variable("v"), Variable("r")
    of = Aggregate(found, op, None if op == "count" else value, (Atom("given", (group, value)),), (group,), result)
    rules = (
        Rule(Atom("out", (group, found)), (Atom("key", (group,)), of), "out#1"),
        Rule(Atom("same", (group,)), (Atom("out", (group, found)), of), "same#1"),
    )
    relations = [
        relation("given", Kind.NUMBER, kind),
        relation("key", Kind.NUMBER),
        relation("out", Kind.NUMBER, result),
    ]
    program = Program({one.name: one for one in (*relations, relation("same", Kind.NUMBER))}, rules)
    values = VALUES[kind]
    given = [(n, v) for n, chosen in enumerate((values, values[::2], values[1:2], values[-1:])) for v in chosen]
    same_as_the_reference(program, {"given": given, "key": [(n,) for n in range(6)]})


def test_ranges_of_all_directions_and_steps() -> None:
    program = compile_text(
        ".decl n(x:number) .decl a(x:number, y:number, z:number) .decl b(x:number, y:number, s:number, z:number)"
        " a(x, y, z) :- n(x), n(y), z = range(x, y). b(x, y, s, z) :- n(x), n(y), n(s), z = range(x, y, s)."
        " .decl c(x:number, y:number, z:number) c(x, y, z) :- n(x), n(y), n(z), n(s), z = range(x, y, s)."
        " .decl u(x:unsigned) .decl d(x:unsigned, y:unsigned, z:unsigned) d(x, y, z) :- u(x), u(y), z = range(x, y)."
    )
    facts: dict[str, list[Row]] = {"n": [(-3,), (0,), (1,), (2,), (5,)], "u": [(0,), (3,)]}
    same_as_the_reference(program, facts)


@given(
    st.lists(st.tuples(st.integers(-2, 4), st.integers(-2, 4), st.sampled_from(["", "0", "12", "x"])), max_size=8),
    st.sampled_from(["y != 0", "x < 3", "x = x", "!e(y, x, _)"]),
)
def test_what_fails_means_what_the_reference_says(facts: list[Row], test: str) -> None:
    """A rule fails only where no other literal excludes the choice of facts."""
    program = compile_text(
        ".decl e(x:number, y:number, s:symbol) .decl n(x:number) .decl p(x:number, y:number) .decl o(x:number)"
        f" n(x) :- e(x, _, _). p(x, x / y) :- e(x, y, _), {test}."
        f" o(z) :- e(x, y, s), z = to_number(s), n(z), {test}. o(x) :- n(x), count : {{ e(x, y, _), x % y = 1 }} > 0."
    )
    results = []
    for evaluate in (seminaive.evaluate, reference.evaluate):
        try:
            found = evaluate(program, {"e": facts})
            results.append([found[n] if isinstance(found, dict) else found.relation(n) for n in ("p", "o")])
        except EvaluationError:
            results.append("fails")
    assert results[0] == results[1]


def test_a_function_is_called_once_for_each_value() -> None:
    called: list[int] = []

    def half(value: int) -> int:
        called.append(value)
        return value // 2

    program = compile_text(
        ".functor half(x:number):number .decl e(x:number, y:number) .decl p(x:number, y:number)"
        " p(y, @half(x)) :- e(x, y)."
    )
    functor = evolve(program.functors["half"], function=half)
    program = evolve(program, functors={"half": functor})
    found = seminaive.evaluate(program, {"e": [(n % 5, n) for n in range(100)]})
    assert bool(found.relations.words)
    assert sorted(called) == list(range(5))
    assert found.relation("p") == {(n, n % 5 // 2) for n in range(100)}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([1.0, 2.0, NAN])), max_size=30))
def test_choices_are_those_of_the_reference(facts: list[Row]) -> None:
    program = compile_text(
        ".decl e(x:number, y:number, z:float) .decl f(x:number, y:number, z:float) choice-domain x, (y, z)"
        " .decl g(x:number, y:number, z:float) choice-domain (x, y)"
        " f(1, 1, 1.0). f(1, 2, 1.0). f(y, x, z) :- e(x, y, z), x < y. f(x, y, z) :- e(x, y, z)."
        " g(x, y, z) :- f(x, y, z). g(y, x, w) :- g(x, y, _), e(x, _, w). g(x, z, w) :- g(x, y, _), g(y, z, w)."
    )
    same_as_the_reference(program, {"e": facts})


@pytest.mark.parametrize("row", [(True, 1), (1.0, 1), ("a", 1), (2**64, 1), (1, 1, 1)])
def test_values_of_other_types_are_left_to_python(row: tuple[Any, ...]) -> None:
    program = compile_text(".decl e(x:number, y:number) .decl p(x:number) p(x) :- e(x, _), e(_, x), x = x.")
    if len(row) == 2:
        found = seminaive.evaluate(program, {"e": [row, (1, 2)]})
        assert not found.relations.words
        assert found.size("e") == 2
    else:
        with pytest.raises(ValueError, match="unpack"):
            seminaive.evaluate(program, {"e": [row]})


# ── storage ──────────────────────────────────────────────────────────────────────────────────

WORDS = st.one_of(st.integers(-3, 3), st.integers(-(2**33), 2**33), st.sampled_from([SIGNED_MIN, SIGNED_MAX]))


@given(st.lists(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=40), max_size=6))
def test_a_relation_is_a_set_in_order_of_arrival(rounds: list[list[Row]]) -> None:
    """Whatever arrives in rounds; a word that needs 64 bits widens all."""
    found, expected = machine.Relation((0, 0, 0), machine.Symbols()), dict[Row, None]()
    plan = machine.Plan(1, 3, machine.Symbols(), lambda: None)
    plan.put(0, "PROBE", -1, (0,), ((1, 1),))
    plan.over(0, found, 0, (0,))  # an index that grows with the relation
    for rows in rounds:
        before = len(expected)
        expected.update(dict.fromkeys(rows))
        found.fill(rows)
        assert found.advance() == range(before, len(expected))
        found.check()
    assert list(found.rows()) == list(expected)
    assert list(found.sorted_rows()) == sorted(expected)


def test_a_large_relation_with_groups_of_all_sizes() -> None:
    chance = random.Random(3)
    rows = [(int(chance.expovariate(1 / 50)), n % 701, chance.randrange(5)) for n in range(60_000)]
    found = machine.Relation((0, 0, 0), machine.Symbols())
    plan = machine.Plan(2, 3, machine.Symbols(), lambda: None)
    for at, key in enumerate([(0,), (1, 2)]):
        plan.put(at, "PROBE", -1, tuple(range(len(key))))
        plan.over(at, found, 0, key)
    for start in range(0, len(rows), 7_000):
        found.fill(rows[start : start + 7_000])
        found.advance()
        found.check()
    assert len(found) == len(set(rows))
    assert found.sample(10)[0] == rows[0]


def test_keys_may_have_any_number_of_columns() -> None:
    columns, key = ", ".join(f"x{n}:number" for n in range(80)), ", ".join(f"x{n}" for n in range(79))
    program = compile_text(
        f".decl r({columns}) .decl s({columns}) .decl p(x:number) p(y) :- r({key}, _), s({key}, y)."
        f" p(y) :- p(y), r({key}, y), s({key}, y)."
    )
    rows = [(*range(n, n + 79), n % 2) for n in range(3)]
    same_as_the_reference(program, {"r": rows, "s": rows[1:]})


def test_rows_are_sorted_as_python_sorts_them() -> None:
    symbols = machine.Symbols()
    found = machine.Relation((1, 2, 3), symbols)
    chance = random.Random(5)
    floats = [value for value in VALUES[Kind.FLOAT] if value == value]
    rows = [
        (chance.choice(VALUES[Kind.UNSIGNED]), chance.choice(floats), chance.choice(VALUES[Kind.SYMBOL]))
        for _ in range(500)
    ]
    found.fill(rows)
    assert list(found.sorted_rows()) == sorted(set(rows))


@pytest.mark.parametrize("size", [0, 1, 31, 32, 5_000])
def test_columns_of_words_are_rows(size: int) -> None:
    rows = {(n - 40, n % 7 / 4, 2**64 - 1 - n) for n in range(size)} | ({(0, NAN, 0)} if size else set())
    given = [*rows, *rows]
    columns = [
        struct.pack(f"{len(given)}{form}", *column)
        for form, column in zip("qdQ", zip(*given, strict=True), strict=False)
    ]
    words = machine.Relation((0, 2, 1), machine.Symbols())
    words.take(tuple(columns or [b""] * 3))
    assert set(words.rows()) == rows
    found = []
    for part in words.columns(1_000):
        assert len(part[0]) <= 8_000
        columns_read = (memoryview(held).cast(form) for form, held in zip("qdQ", part, strict=True))
        found += list(zip(*columns_read, strict=True))
    assert list(map(repr, found)) == list(map(repr, words.sorted_rows()))
    words.check()


@given(st.lists(st.tuples(WORDS, WORDS), max_size=40), st.lists(st.tuples(WORDS, WORDS), max_size=5))
def test_a_sealed_relation_keeps_its_rows_and_opens_again(rows: list[Row], more: list[Row]) -> None:
    words = machine.Relation((0, 0), machine.Symbols())
    words.fill(rows)
    words.advance()
    words.seal()
    before = words.size_in_bytes
    assert list(words.sorted_rows()) == sorted(set(rows))
    words.check()
    words.fill(more)
    words.advance()
    words.check()
    assert list(words.rows()) == list(dict.fromkeys([*rows, *more]))
    assert words.size_in_bytes >= before
    words.seal()
    plan = machine.Plan(2, 2, machine.Symbols(), lambda: None)
    out = machine.Relation((0, 0), machine.Symbols())
    plan.put(0, "SCAN", -1, (), ((0, 0), (1, 1)))
    plan.over(0, words, 0)
    plan.put(1, "ADD", 0, (1, 0))
    plan.over(1, out, 0)
    plan.run()
    assert set(out.rows()) == {(y, x) for x, y in words.rows()}


def test_columns_of_other_lengths_are_refused() -> None:
    words = machine.Relation((0, 0), machine.Symbols())
    for columns in ((b"12345678",), (b"12345678", b""), (b"", b"", b"")):
        with pytest.raises(ValueError, match="do not fit"):
            words.take(columns)


def test_lines_become_rows_and_rows_lines() -> None:
    words = machine.Relation((0, 2, 3), machine.Symbols())
    lines = [f"{n - 9}\t{n / 8!r}\tsymbol {n % 90}\n" for n in range(3_000)]
    assert words.parse("".join(lines).encode(), "\t")
    assert not words.parse(b"1\t2\n", "\t")
    assert set(words.rows()) >= {(n - 9, n / 8, f"symbol {n % 90}") for n in range(3_000)}
    again = machine.Relation((0, 2, 3), machine.Symbols())
    assert again.parse(b"".join(words.lines("\t")), "\t")
    assert set(again.rows()) == set(words.rows())


def test_a_recursion_is_planned_again_when_it_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    program = compile_text(
        ".decl e(x:number, y:number) .decl p(x:number, y:number)"
        " p(x, y) :- e(x, y). p(x, y) :- p(y, x). p(x, z) :- p(x, y), p(y, z), !e(z, z)."
    )
    known: list[float] = []
    planned = unit_rounds.planned

    def noted(program: Program, unit: Unit, rule: Rule, delta: int | None, statistics: Any, observed: Any) -> Plan:
        if len(rule.body) == 3 and delta == 0:
            known.append(statistics("p").rows)
        return planned(program, unit, rule, delta, statistics, observed)

    monkeypatch.setattr(unit_rounds, "planned", noted)
    same_as_the_reference(program, {"e": [(n, n + 1) for n in range(45)]})
    assert known[-1] > 1000
    assert len(known) == 2


# ── threads ──────────────────────────────────────────────────────────────────────────────────


def test_threads_derive_what_one_derives() -> None:
    """Joins, tests, functors in Python, recursion, on enough rows for all threads."""
    program = compile_text(
        ".decl e(x:number, y:number) .decl s(x:number, y:symbol) .decl p(x:number, y:number) .decl q(x:symbol)"
        " s(x, cat(to_string(x % 50), to_string(y % 3))) :- e(x, y). q(y) :- s(x, y), !e(x, x), strlen(y) > 1."
        " p(x, y) :- e(x, y), e(y, x). p(x, y) :- p(y, x). p(x, z) :- p(x, y), e(y, z), x < z, z < x + 40."
    )
    chance = random.Random(2)
    facts = {"e": sorted({(chance.randrange(400), chance.randrange(400)) for _ in range(20_000)})}
    one, two = seminaive.evaluate(program, facts), seminaive.evaluate(program, facts, jobs=3)
    for name in program.relations:
        assert one.relation(name) == two.relation(name)
        two.relations.words[name].check()


def test_threads_add_to_one_relation_while_it_grows_and_widens() -> None:
    """Most rows are derived by several threads; the last ones do not fit 32 bits."""
    symbols = machine.Symbols()
    numbers, out = machine.Relation((0,), symbols), machine.Relation((0, 0), symbols)
    values = [*range(1_200), *(2**40 + n for n in range(40))]
    numbers.fill([(value,) for value in values])
    numbers.advance()
    plan = machine.Plan(4, 3, symbols, lambda: None)
    plan.put(0, "SCAN", -1, (), ((0, 0),))
    plan.put(1, "SCAN", 0, (), ((0, 1),))
    plan.put(2, "TIMES", 1, (0, 1), ((0, 2),))
    plan.put(3, "ADD", 1, (2, 2))
    for at, relation in ((0, numbers), (1, numbers), (3, out)):
        plan.over(at, relation, 0)
    for _ in range(2):  # the second time, all rows are known
        plan.run(4)
        out.check()
        products = {(x * y + 2**63) % 2**64 - 2**63 for x in values for y in values}
        assert sorted(out) == sorted((product, product) for product in products)


def test_threads_leave_what_nothing_subsumes() -> None:
    """Walks of at most three steps to each node that are neither longer nor dearer than another."""
    program = compile_text(
        ".decl e(x:number, y:number, c:number) .decl w(y:number, n:number, c:number)"
        " w(y, 1, c) :- e(x, y, c), x < 300. w(y, n + 1, c + d) :- w(x, n, c), e(x, y, d), n < 3."
        " w(y, n, c) <= w(y, m, d) :- m <= n, d <= c."
    )
    chance = random.Random(3)
    facts = {"e": [(chance.randrange(2000), chance.randrange(2000), chance.randrange(99)) for _ in range(9_000)]}
    one, two = seminaive.evaluate(program, facts), seminaive.evaluate(program, facts, jobs=3)
    assert "w" in two.relations.words, "Python has run it"
    assert one.relation("w") == two.relation("w")


@pytest.mark.parametrize("limits", [Limits(seconds=0.3), None])
def test_all_threads_end_at_a_limit_and_at_ctrl_c(limits: Limits | None) -> None:
    before = threading.active_count()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    if limits is None:
        timer.start()
    with pytest.raises(LimitExceeded if limits else KeyboardInterrupt):
        seminaive.evaluate(ENDLESS, MANY, limits=limits, jobs=2)
    if limits is None:
        timer.join()
    assert threading.active_count() == before


def test_what_fails_on_a_thread_is_left_to_python() -> None:
    program = compile_text(".decl n(x:number) .decl p(x:number) p(10 / x) :- n(x), n(y), x < y.")
    with pytest.raises(EvaluationError, match="division by zero"):
        seminaive.evaluate(program, MANY, jobs=2)


@pytest.mark.parametrize("fails", ["start", "join"])
def test_no_thread_outlives_a_run_that_is_interrupted_between_threads(
    fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No second thread can be started, or Ctrl-C comes when the first has nothing left to do."""

    class Fragile(threading.Thread):
        calls = 0

        def start(self) -> None:
            Fragile.calls += fails == "start"
            if fails == "start" and Fragile.calls == 2:
                raise RuntimeError("can't start new thread")
            super().start()

        def join(self, timeout: float | None = None) -> None:
            Fragile.calls += fails == "join"
            if fails == "join" and Fragile.calls == 1:
                raise KeyboardInterrupt
            super().join(timeout)

    def slow(x: int) -> int:
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.002)
        return x

    monkeypatch.setattr(machine, "Thread", Fragile)
    text = ".functor slow(x:number):number .decl n(x:number) .decl p(x:number) p(@slow(x)) :- n(x)."
    before = threading.active_count()
    with pytest.raises(RuntimeError if fails == "start" else KeyboardInterrupt):
        seminaive.evaluate(bind(compile_text(text), {"slow": slow}), MANY, jobs=3)
    assert Fragile.calls >= 1
    assert threading.active_count() == before


# ── limits ───────────────────────────────────────────────────────────────────────────────────

ENDLESS = compile_text(".decl n(x:number) .decl p(x:number) p(x) :- n(x), n(y), n(z), n(w), x + y + z + w < 0.")
MANY = {"n": [(i,) for i in range(3_000)]}


def test_ctrl_c_ends_a_long_loop() -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        seminaive.evaluate(ENDLESS, MANY)
    timer.join()


def test_a_limit_of_time_ends_a_long_loop() -> None:
    with pytest.raises(LimitExceeded, match=r"more than 0\.2 s"):
        seminaive.evaluate(ENDLESS, MANY, limits=Limits(seconds=0.2))


def test_a_limit_of_time_holds_on_other_threads_which_python_can_use_meanwhile() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            seminaive.evaluate(ENDLESS, MANY, limits=Limits(seconds=0.5))
        except LimitExceeded as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    turns = 0
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    assert len(errors) == 1
    assert turns > 20, "the loop holds Python's lock"


def test_limits_on_facts_and_iterations_are_those_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    program = compile_text(".decl n(x:number) n(0). n(x + 1) :- n(x), x < 5000.")
    for limits in (Limits(facts=100), Limits(iterations=50)):
        told = set()
        for pure in ("", "1"):
            monkeypatch.setenv("EVERLOG_PURE", pure)
            with pytest.raises(LimitExceeded) as error:
                seminaive.evaluate(program, limits=limits)
            told.add(str(error.value))
        assert len(told) == 1


def test_progress_is_that_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        ".decl e(x:number, y:number) .decl p(x:number, y:number) p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z)."
    )
    edges = [(n, n + 1) for n in range(20)]
    told: dict[str, list[tuple[str, int, int]]] = {"": [], "1": []}
    for pure, rounds in told.items():
        monkeypatch.setenv("EVERLOG_PURE", pure)
        seminaive.evaluate(compile_text(text), {"e": edges}, lambda *round, to=rounds: to.append(round))  # type: ignore[misc]
    assert told[""] == told["1"]


def evaluations(count: int) -> int:
    """The bytes that this many evaluations leave behind."""
    program = compile_text(
        ".decl e(x:number, y:symbol) .decl p(x:number, y:symbol) .decl q(x:symbol)"
        " p(x, y) :- e(x, y). p(x, cat(y, z)) :- p(x, y), e(x, z), strlen(y) < 3. q(y) :- p(_, y), !e(0, y)."
    )
    facts = {"e": [(n % 7, f"{n}") for n in range(40)]}
    for _ in range(20):
        seminaive.evaluate(program, facts)
    before = memory_in_use()
    for _ in range(count):
        list(seminaive.evaluate(program, facts).rows("p"))
    return memory_in_use() - before


def test_evaluations_leave_nothing_behind() -> None:
    assert evaluations(300) < 8_000_000


@pytest.mark.deep
def test_many_evaluations_leave_nothing_behind() -> None:
    assert evaluations(10_000) < 16_000_000
