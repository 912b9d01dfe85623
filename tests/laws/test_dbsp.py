"""The propositions of DBSP as properties, and delta rules against brute force.

Numbers of propositions and theorems are those of Budiu et al., PVLDB 16(7), 2023.  Streams are
compared on a prefix: all operators are causal, so a longer input has the same prefix of output.
"""

from __future__ import annotations

import doctest
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import islice, product
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from oracles import zsets
from oracles.streams import (
    NotStrict,
    Stream,
    bilinear_incremental,
    bilinear_incremental_of_three,
    cumulative,
    delay,
    differentiate,
    distinct_incremental,
    fix,
    impulse,
    incremental,
    integrate,
    lift,
    limit,
    linear_incremental,
    maintained,
    naive,
    seminaive,
    stream,
    total,
)
from oracles.zsets import (
    ZSet,
    distinct,
    distinct_delta,
    filtered,
    graph,
    graph_delta,
    group_count,
    group_sum,
    join,
    mapped,
)

from everlog.core.dbsp import derive
from everlog.core.dbsp.derive import DeltaRule, delta_name, delta_rules, each_delta_rule
from everlog.core.program import (
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    Kind,
    Literal,
    Negation,
    Range,
    Rule,
    Term,
    Variable,
    Wildcard,
    computed_arguments,
)

N = 6  # the prefix on which streams are compared
few = settings(max_examples=settings().max_examples * 2 // 5)  # of what the profile asks for

# ── what is drawn ────────────────────────────────────────────────────────────────────────────────

rows = st.tuples(st.integers(0, 2), st.integers(0, 2))
zset = st.dictionaries(rows, st.integers(-2, 2), max_size=5).map(ZSet)
positive = st.dictionaries(rows, st.integers(0, 3), max_size=5).map(ZSet)
number = st.integers(-4, 4)
numbers = st.lists(number, max_size=N).map(lambda values: stream(values, 0))
zstream = st.lists(zset, max_size=N).map(lambda values: stream(values, ZSet()))
nested = st.lists(numbers, max_size=N).map(lambda values: stream(values, stream([], 0)))
Op = Callable[..., Stream[Any]]


def joined(a: ZSet[Any], b: ZSet[Any]) -> ZSet[Any]:
    """Paths of two steps."""
    return mapped(join(a, b, lambda e: e[1], lambda e: e[0]), lambda pair: (pair[0][0], pair[1][1]))


# Operators on streams of integers.  LTI: linear and time-invariant.
LTI: dict[str, Op] = {
    "identity": lambda s: s,
    "z⁻¹": delay,
    "D": differentiate,
    "I": integrate,
    "-": lambda s: -s,
    "↑(3·)": lift(lambda n: 3 * n),
    "a loop": lambda s: fix(lambda a: lift(lambda n: 2 * n)(s + delay(a)), 0),
}
CAUSAL: dict[str, Op] = LTI | {
    "↑square": lift(lambda n: n * n),
    "↑(1+)": lift(lambda n: n + 1),
    "↑sign, then I": lambda s: integrate(lift(lambda n: (n > 0) - (n < 0))(s)),
    "a loop that is not linear": lambda s: fix(lambda a: lift(lambda n, m: max(n, m) + 1)(s, delay(a)), 0),
}
BINARY: dict[str, Op] = {
    "+": lambda a, b: a + b,
    "↑max": lift(max),
    "↑(x·y + 1)": lift(lambda x, y: x * y + 1),
    "z⁻¹ of the left": lambda a, b: delay(a) - b,
}
each_lti = pytest.mark.parametrize("q", LTI.values(), ids=LTI)
each_causal = pytest.mark.parametrize("q", CAUSAL.values(), ids=CAUSAL)
each_binary = pytest.mark.parametrize("t", BINARY.values(), ids=BINARY)
causal = st.sampled_from(sorted(CAUSAL))


def values(s: Any, n: int = N) -> Any:
    return [values(x, n) for x in s.prefix(n)] if isinstance(s, Stream) else s


def same(a: Stream[Any], b: Stream[Any]) -> None:
    assert values(a) == values(b)


@pytest.mark.parametrize("module", ["everlog.core.dbsp.derive", "oracles.streams", "oracles.zsets"])
def test_examples_in_docstrings(module: str) -> None:
    assert doctest.testmod(import_module(module)).failed == 0


# ── Z-sets ───────────────────────────────────────────────────────────────────────────────────────


@few
@given(zset, zset, zset)
def test_zsets_are_an_abelian_group(a: ZSet[Any], b: ZSet[Any], c: ZSet[Any]) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + ZSet() == a
    assert a - a == a + -a == ZSet()
    assert a - b == a + -b
    assert hash(a + b) == hash(b + a)
    for m in (a + b, a - b, -a, a * 3, distinct(a), distinct_delta(a, b), joined(a, b)):
        m.check()


@few
@given(zset, zset, number, number)
def test_scaling_is_repeated_addition(a: ZSet[Any], b: ZSet[Any], n: int, k: int) -> None:
    assert a * (n + k) == a * n + a * k
    assert (a + b) * n == n * a + n * b
    assert a * 3 == a + a + a
    assert a * -1 == -a


@few
@given(zset)
def test_distinct_makes_a_set_of_what_is_positive(m: ZSet[Any]) -> None:
    assert distinct(m).is_set
    assert set(distinct(m)) == {x for x in m if m[x] > 0}
    assert m.is_set == (m == distinct(m))
    assert m.is_positive == (set(distinct(m)) == set(m))


@few
@given(zset, zset)
def test_distinct_delta_is_the_difference_of_distinct(state: ZSet[Any], change: ZSet[Any]) -> None:
    assert distinct_delta(state, change) == distinct(state + change) - distinct(state)


def test_distinct_delta_looks_only_at_the_change() -> None:
    class Watched(ZSet[int]):
        def __iter__(self) -> Any:
            raise AssertionError("the whole state is read")

        items = __iter__

    assert distinct_delta(Watched(dict.fromkeys(range(9), 1)), ZSet({3: -1})) == ZSet({3: -1})


LINEAR: dict[str, Callable[[ZSet[Any]], ZSet[Any]]] = {
    "map": lambda m: mapped(m, lambda row: (row[1], row[0] + 1)),
    "project": lambda m: mapped(m, lambda row: row[0]),
    "filter": lambda m: filtered(m, lambda row: row[0] < row[1]),
    "count": lambda m: group_count(m, lambda row: row[0]),
    "sum": lambda m: group_sum(m, lambda row: row[0], lambda row: row[1]),
}
BILINEAR: dict[str, Callable[[ZSet[Any], ZSet[Any]], ZSet[Any]]] = {
    "join": lambda a, b: join(a, b, lambda e: e[1], lambda e: e[0]),
    "join, then project": joined,
    "product": zsets.product,
}
each_linear = pytest.mark.parametrize("f", LINEAR.values(), ids=LINEAR)
each_bilinear = pytest.mark.parametrize("times", BILINEAR.values(), ids=BILINEAR)


@each_linear
@few
@given(zset, zset)
def test_linear_operators_respect_addition(f: Any, a: ZSet[Any], b: ZSet[Any]) -> None:
    assert f(a + b) == f(a) + f(b)


@each_bilinear
@few
@given(zset, zset, zset)
def test_bilinear_operators_respect_addition_on_each_side(times: Any, a: Any, b: Any, c: Any) -> None:
    assert times(a + b, c) == times(a, c) + times(b, c)
    assert times(a, b + c) == times(a, b) + times(a, c)


@few
@given(zset, positive, positive)
def test_distinct_can_be_postponed_and_dropped(m: ZSet[Any], a: ZSet[Any], b: ZSet[Any]) -> None:
    """Propositions 4.4 and 4.5."""
    assert distinct(distinct(m)) == distinct(m)
    # 4.4: filter, join, product of positive Z-sets commute with distinct ...
    assert distinct(LINEAR["filter"](m)) == LINEAR["filter"](distinct(m))
    for times in (BILINEAR["join"], BILINEAR["product"]):
        assert distinct(times(a, b)) == times(distinct(a), distinct(b))
    # 4.5: ... and under an outer distinct, the inner ones of map, projection and + have no effect.
    for f in (LINEAR["map"], LINEAR["project"], LINEAR["filter"]):
        assert distinct(f(distinct(a))) == distinct(f(a))
    assert distinct(distinct(a) + distinct(b)) == distinct(a + b)
    assert distinct(joined(distinct(a), distinct(b))) == distinct(joined(a, b))


@few
@given(positive, positive)
def test_set_operations_by_distinct(a: ZSet[Any], b: ZSet[Any]) -> None:
    """Table 1: union and difference of relations."""
    a, b = distinct(a), distinct(b)
    assert set(distinct(a + b)) == set(a) | set(b)
    assert set(distinct(a - b)) == set(a) - set(b)


@few
@given(positive, zset)
def test_aggregates_follow_a_change(m: ZSet[Any], change: ZSet[Any]) -> None:
    """Counts and sums are linear; their rows (group, number) change by `graph_delta`."""
    count, total_of = LINEAR["count"], LINEAR["sum"]

    def aggregated(m: ZSet[Any]) -> ZSet[Any]:
        return graph(count(m), total_of(m))

    for k in range(3):
        expected = sum(w * row[1] for row, w in m.items() if row[0] == k)
        assert aggregated(m)[(k, expected)] == any(row[0] == k for row in m)
    after = graph_delta(count(m), total_of(m), count(change), total_of(change))
    assert aggregated(m) + after == aggregated(m + change)


# ── streams and operators ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [numbers, zstream, nested], ids=["numbers", "Z-sets", "streams"])
@few
@given(st.data())
def test_streams_of_a_group_are_a_group(kind: Any, data: st.DataObject) -> None:
    a, b, c = data.draw(kind), data.draw(kind), data.draw(kind)
    zero = stream([], a.zero)
    same((a + b) + c, a + (b + c))
    same(a + b, b + a)
    same(a + zero, a)
    same(a - a, zero)
    same(a - b, a + -b)


@few
@given(numbers)
def test_lifting_distributes_over_composition(s: Stream[int]) -> None:
    def f(n: int) -> int:
        return n * n + 1

    def g(n: int) -> int:
        return 3 - n

    same(lift(lambda n: f(g(n)))(s), lift(f)(lift(g)(s)))


@each_lti
@few
@given(numbers, numbers)
def test_lti_operators_are_linear_and_time_invariant(q: Op, a: Stream[int], b: Stream[int]) -> None:
    same(q(a + b), q(a) + q(b))
    same(q(delay(a)), delay(q(a)))


@few
@given(numbers)
def test_a_lifted_function_is_time_invariant_if_it_maps_zero_to_zero(s: Stream[int]) -> None:
    square, successor = CAUSAL["↑square"], CAUSAL["↑(1+)"]
    same(square(delay(s)), delay(square(s)))
    assert successor(delay(s))[0] != delay(successor(s))[0]


@each_causal
@few
@given(st.lists(number, min_size=N, max_size=N), st.lists(number, min_size=N, max_size=N), st.integers(0, N))
def test_operators_are_causal_and_behind_a_delay_strict(q: Op, a: list[int], b: list[int], t: int) -> None:
    """Input from `t` on changes nothing before `t`; after a delay, nothing at `t`."""
    one, other = stream(a, 0), stream(a[:t] + b[t:], 0)
    assert q(one).prefix(t) == q(other).prefix(t)
    assert delay(q(one)).prefix(t + 1) == delay(q(other)).prefix(t + 1)


@few
@given(numbers)
def test_fix_of_a_strict_operator_is_its_fixpoint(s: Stream[int]) -> None:
    def f(a: Stream[int]) -> Stream[int]:
        return lift(lambda n, m: 2 * n - m)(s, delay(a))

    same(f(fix(f, 0)), fix(f, 0))
    other = stream([1] * N, 0)
    for _ in range(N):  # from anywhere, N rounds settle N values: there is no second fixpoint
        other = f(other)
    same(other, fix(f, 0))


def test_fix_of_an_operator_that_is_not_strict_is_refused() -> None:
    with pytest.raises(NotStrict, match="at time 0"):
        fix(lambda a: a + stream([1], 0), 0)[0]
    with pytest.raises(NotStrict, match="at time 0"):
        fix(lambda a: a + stream([], stream([1], 0)), stream([], 0))[0][0]


def test_a_long_stream_needs_no_deep_recursion() -> None:
    assert integrate(integrate(Stream(lambda t: 1, 0)))[20_000] == 20_001 * 20_002 // 2


@each_lti
@few
@given(numbers, numbers)
def test_feedback_around_an_lti_operator_is_lti(q: Op, a: Stream[int], b: Stream[int]) -> None:
    def looped(s: Stream[int]) -> Stream[int]:
        return fix(lambda x: q(s + delay(x)), 0)

    same(looped(a + b), looped(a) + looped(b))
    same(looped(delay(a)), delay(looped(a)))


@pytest.mark.parametrize("kind", [numbers, zstream, nested], ids=["numbers", "Z-sets", "streams"])
@few
@given(st.data())
def test_integration_and_differentiation_are_inverse(kind: Any, data: st.DataObject) -> None:
    s = data.draw(kind)
    same(differentiate(integrate(s)), s)
    same(integrate(differentiate(s)), s)
    for t in range(N):
        assert values(integrate(s)[t]) == values(total(s, t + 1))


# ── Proposition 3.2 ──────────────────────────────────────────────────────────────────────────────


@each_causal
@few
@given(numbers)
def test_inversion(q: Op, s: Stream[int]) -> None:
    same(cumulative(incremental(q))(s), q(s))
    same(incremental(cumulative(q))(s), q(s))


@few
@given(numbers, numbers)
def test_invariance(a: Stream[int], b: Stream[int]) -> None:
    same(incremental(BINARY["+"])(a, b), a + b)
    for q in (LTI["-"], delay, integrate, differentiate):
        same(incremental(q)(a), q(a))


@each_lti
@few
@given(numbers)
def test_push_and_pull(q: Op, s: Stream[int]) -> None:
    same(q(integrate(s)), integrate(q(s)))
    same(differentiate(q(s)), q(differentiate(s)))


@each_causal
@few
@given(numbers, numbers, causal)
def test_chain(q: Op, a: Stream[int], b: Stream[int], name: str) -> None:
    r = CAUSAL[name]
    same(incremental(lambda s: q(r(s)))(a), incremental(q)(incremental(r)(a)))
    for t in BINARY.values():  # and with two inputs
        chained = incremental(lambda x, y, t=t: t(q(x), r(y)))(a, b)
        same(chained, incremental(t)(incremental(q)(a), incremental(r)(b)))


@each_causal
@few
@given(numbers, causal)
def test_add(q: Op, s: Stream[int], name: str) -> None:
    r = CAUSAL[name]
    same(incremental(lambda s: q(s) + r(s))(s), incremental(q)(s) + incremental(r)(s))


@each_binary
@few
@given(numbers)
def test_cycle(t: Op, s: Stream[int]) -> None:
    outside = incremental(lambda s: fix(lambda a: t(s, delay(a)), 0))(s)
    same(outside, fix(lambda a: incremental(t)(s, delay(a)), 0))


# ── Theorems 3.3 and 3.4, distinct, nested streams ───────────────────────────────────────────────


@each_lti
@few
@given(numbers)
def test_linear_theorem(q: Op, s: Stream[int]) -> None:
    same(incremental(q)(s), linear_incremental(q)(s))


@each_linear
@few
@given(zstream)
def test_linear_theorem_for_relations(f: Any, s: Stream[Any]) -> None:
    same(incremental(lift(f))(s), linear_incremental(lift(f))(s))


@each_bilinear
@few
@given(zstream, zstream)
def test_bilinear_theorem(times: Any, a: Stream[Any], b: Stream[Any]) -> None:
    expected = incremental(lift(times))(a, b)
    same(expected, bilinear_incremental(lift(times))(a, b))
    same(expected, bilinear_incremental_of_three(lift(times))(a, b))


@few
@given(zstream)
def test_distinct_has_an_incremental_form(s: Stream[Any]) -> None:
    same(incremental(lift(distinct))(s), distinct_incremental(s))


@few
@given(zstream)
def test_aggregates_have_an_incremental_form(s: Stream[Any]) -> None:
    count, total_of = lift(LINEAR["count"]), lift(LINEAR["sum"])
    expected = incremental(lambda s: lift(graph)(count(s), total_of(s)))(s)
    c, k = count(s), total_of(s)
    same(expected, lift(graph_delta)(delay(integrate(c)), delay(integrate(k)), c, k))


@few
@given(nested)
def test_the_two_clocks_of_nested_streams_commute(s: Stream[Any]) -> None:
    for q in (delay, differentiate, integrate):
        for r in (delay, differentiate, integrate):
            same(q(lift(r)(s)), lift(r)(q(s)))


@few
@given(st.lists(numbers, max_size=3), st.lists(numbers, max_size=3))
def test_bilinear_theorem_on_both_clocks(a: list[Any], b: list[Any]) -> None:
    """Applied twice, the incremental form of a product is bilinear, in four products."""
    times = lift(lambda x, y: x * y)
    one, other = stream(a, stream([], 0)), stream(b, stream([], 0))
    twice = bilinear_incremental(lift(bilinear_incremental(times)))
    same(twice(one, other), incremental(lift(incremental(times)))(one, other))


# ── recursion ────────────────────────────────────────────────────────────────────────────────────

edge = st.tuples(st.integers(0, 3), st.integers(0, 3))
edges = st.sets(edge, max_size=6)
ROUNDS = 6  # a path without a cycle among four nodes has at most three edges


def closure(pairs: Any) -> set[Any]:
    """Transitive closure, by hand."""
    paths = set(pairs)
    while more := {(x, z) for x, y in pairs for v, z in paths if y == v} - paths:
        paths |= more
    return paths


def step(e: ZSet[Any], p: ZSet[Any]) -> ZSet[Any]:
    # path(x, z) :- edge(x, z).  path(x, z) :- edge(x, y), path(y, z).
    return distinct(e + joined(e, p))


def step_of_changes(e: Stream[Any], p: Stream[Any]) -> Stream[Any]:
    """(↑step)^Δ by the rules: chain, linear, bilinear, and H for distinct."""
    return distinct_incremental(e + bilinear_incremental(lift(joined))(e, p))


def step_of_changes_of_changes(e: Stream[Any], p: Stream[Any]) -> Stream[Any]:
    """(↑(↑step)^Δ)^Δ: the same rules once more, on the outer clock."""
    products = bilinear_incremental(lift(bilinear_incremental(lift(joined))))(e, p)
    return incremental(lift(distinct_incremental))(e + products)


@few
@given(number, st.sampled_from([max, lambda i, o: i * o + 1, lambda i, o: i - o // 2]))
def test_semi_naive_rounds_are_the_changes_of_naive_rounds(n: int, f: Any) -> None:
    """The cycle rule on the inner clock, for steps that need not be monotone."""
    same(seminaive(incremental(lift(f)), 0)(n), differentiate(naive(f, 0)(n)))


@few
@given(edges)
def test_recursion_is_a_fixpoint_of_nested_streams(pairs: set[Any]) -> None:
    given_edges, expected = ZSet.of(pairs), closure(pairs)
    rounds: Stream[Any] = naive(step, ZSet())(given_edges)
    assert set(rounds[ROUNDS]) == expected
    assert limit(differentiate(rounds)) == ZSet.of(expected)
    # Semi-naive evaluation is the incremental form of the loop, by the cycle rule.
    for incremental_step in (incremental(lift(step)), step_of_changes):
        news: Stream[Any] = seminaive(incremental_step, ZSet())(given_edges)
        same(news, differentiate(rounds))
        assert limit(news) == total(news, ROUNDS) == ZSet.of(expected)


@few
@given(st.lists(edges, min_size=1, max_size=4))
def test_recursion_over_changing_edges_equals_recomputation(states: list[set[Any]]) -> None:
    held = stream(map(ZSet.of, states), ZSet())
    changes = differentiate(held)
    for incremental_step in (incremental(lift(incremental(lift(step)))), step_of_changes_of_changes):
        told: Stream[Any] = maintained(incremental_step, ZSet(), ROUNDS)(changes)
        expected: Stream[Any] = incremental(lift(lambda e: limit(seminaive(step_of_changes, ZSet())(e))))(changes)
        assert told.prefix(len(states)) == expected.prefix(len(states))
        for t, state in enumerate(states):
            assert integrate(told)[t] == ZSet.of(closure(state))


@few
@given(zset, st.integers(1, N))
def test_into_the_inner_clock_and_out_again(m: ZSet[Any], n: int) -> None:
    assert total(impulse(m), n) == m
    assert limit(impulse(m)) == m


# ── derive: products of numbers ──────────────────────────────────────────────────────────────────


@few
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=5))
def test_expansion_is_the_change_of_a_product(pairs: list[tuple[int, int]]) -> None:
    """For any numbers: the terms of `expand` sum to the new product less the old one."""
    atom = Atom("a", ())
    factors = tuple(derive.Factor(i, atom, 1, Negation(atom)) for i in range(len(pairs)))

    def multiplied(numbers: Any) -> int:
        result = 1
        for n in numbers:
            result *= n
        return result

    old, new = [a for a, _ in pairs], [b for _, b in pairs]
    change = sum(
        multiplied(new[f.position] for f in term.new)
        * (new[term.change.position] - old[term.change.position])
        * multiplied(old[f.position] for f in term.old)
        for term in derive.expand(factors)
    )
    assert change == multiplied(new) - multiplied(old)
    assert list(derive.expand(factors)) == [
        derive.Product(factors[:i], factor, factors[i + 1 :]) for i, factor in enumerate(factors)
    ]


# ── derive: rules, by counting all bindings ──────────────────────────────────────────────────────

NUMBER = Kind.NUMBER
VARIABLES = [Variable(name) for name in "wxyz"]
DOMAIN = range(3)
variable = st.sampled_from(VARIABLES)


def number_term(n: int) -> Constant:
    return Constant(n, NUMBER)


terms = st.one_of(
    variable,
    variable,
    variable,
    st.sampled_from(DOMAIN).map(number_term),
    variable.map(lambda v: Call("+", (v, number_term(1)), NUMBER, NUMBER)),
)
e_atom = st.tuples(terms, terms).map(lambda args: Atom("e", args))
v_atom = terms.map(lambda arg: Atom("v", (arg,)))
aggregate = st.tuples(variable, variable).map(
    lambda pair: Aggregate(
        pair[1], "sum", Variable("t"), (Atom("g", (pair[0], Variable("t"))),), (pair[0],), NUMBER
    )
)
others = st.one_of(
    v_atom,
    v_atom.map(Negation),
    aggregate,
    st.tuples(terms, terms).map(lambda sides: Comparison("<", *sides, NUMBER)),
    st.tuples(variable, terms).map(lambda ends: Range(ends[0], number_term(0), ends[1], None, NUMBER)),
)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """One to four occurrences of `e` among other literals; perhaps not grounded."""
    body: list[Literal] = [*draw(st.lists(st.one_of(e_atom, e_atom.map(Negation)), min_size=1, max_size=4))]
    body += draw(st.lists(others, max_size=3))
    head = Atom("q", tuple(draw(st.lists(variable, max_size=2))))
    return Rule(head, tuple(draw(st.permutations(body))))


pairs = st.tuples(st.integers(0, 3), st.integers(0, 3))
singles = st.tuples(st.integers(0, 3))
tables = st.fixed_dictionaries(
    {"e": st.sets(pairs, max_size=8), "v": st.sets(singles), "g": st.sets(pairs, max_size=8)}
)
Tables = Mapping[str, set[Any]]


def value(term: Term, binding: Mapping[Variable, int]) -> Any:
    match term:
        case Variable():
            return binding[term]
        case Constant(constant):
            return constant
        case Call("+", (left, right)):
            return value(left, binding) + value(right, binding)
    raise AssertionError(term)


def holds(literal: Literal, binding: Mapping[Variable, int], tables: Tables) -> bool:
    match literal:
        case Atom(relation, args):
            return tuple(value(arg, binding) for arg in args) in tables[relation]
        case Negation(atom):
            return not holds(atom, binding, tables)
        case Aggregate(result=result, outer=outer, body=(Atom(group, _),)):
            return holds(Atom(group, (*outer, result)), binding, tables)
        case Comparison("=", left, right):
            return bool(value(left, binding) == value(right, binding))
        case Comparison(left=left, right=right):
            return bool(value(left, binding) < value(right, binding))
        case Range(result=result, stop=stop):
            return bool(0 <= binding[result] < value(stop, binding))
    raise AssertionError(literal)


def derivations(head: Atom, body: tuple[Literal, ...], tables: Tables) -> ZSet[Any]:
    """How many bindings of all variables derive each head row."""
    bindings = [dict(zip(VARIABLES, values, strict=True)) for values in product(DOMAIN, repeat=4)]
    for computed, term in computed_arguments(body).items():
        assert isinstance(computed, Variable)
        for b in bindings:
            b[computed] = value(term, b)
    return ZSet.of(
        tuple(value(arg, b) for arg in head.args)
        for b in bindings
        if all(holds(literal, b, tables) for literal in body)
    )


def gained(delta: DeltaRule, tables: Tables, change: set[Any]) -> ZSet[Any]:
    """What a delta rule says, on the one version of the table that there is."""
    read, body = {**tables, delta_name(delta.relation): change}, list(delta.body)
    atom = body[delta.position]
    assert isinstance(atom, Atom)
    assert atom.relation == delta.relation
    body[delta.position] = Atom(delta_name(delta.relation), atom.args)
    return delta.sign * derivations(delta.head, tuple(body), read)


@given(rules(), tables, st.sampled_from("eeeg"), st.data())
def test_delta_rules_sum_to_the_change_of_derivations(
    rule: Rule, tables: Tables, relation: str, data: st.DataObject
) -> None:
    """Deletes, then inserts: old count + Σ sign · bindings = new count, per head row."""
    note(str(rule))
    deltas = delta_rules(rule, relation)
    present = sorted(tables[relation])
    gone = data.draw(st.sets(st.sampled_from(present))) if present else set()
    kept = tables[relation] - gone
    added = data.draw(st.sets(pairs, max_size=6)) - kept
    for event, change, new in (("delete", gone, kept), ("insert", added, kept | added)):
        after = {**tables, relation: new}
        count = derivations(rule.head, rule.body, tables)
        for delta in deltas:
            if delta.event == event:
                note(f"{event} {sorted(change)}: {delta}")
                count += gained(delta, tables if delta.before else after, change)
        assert count == derivations(rule.head, rule.body, after)
        tables = after


@given(rules(), st.sampled_from("egv"))
def test_delta_rules_keep_to_their_interface(rule: Rule, relation: str) -> None:
    deltas = delta_rules(rule, relation)
    reads = derive.occurrences(rule, relation)
    assert [(d.event, d.before) for d in deltas] == sorted(((d.event, d.before) for d in deltas), key=_in_a_step)
    assert len({(d.event, d.position) for d in deltas}) == len(deltas) == 2 * len(reads)
    for d in deltas:
        assert d.before == (d.sign == -1)
        assert isinstance(d.body[d.position], Atom)
        filters = d.body[len(rule.body) :]
        assert all(isinstance(f, Negation) and f.atom.relation == delta_name(relation) for f in filters)
        kept = [(i, b) for i, b in enumerate(d.body[: len(rule.body)]) if i != d.position]
        assert kept == [(i, b) for i, b in enumerate(rule.body) if i != d.position]


def _in_a_step(key: tuple[str, bool]) -> tuple[bool, bool]:
    event, before = key
    return event == "insert", not before


w, x, y, z = VARIABLES


def test_filters_stand_for_the_occurrences_further_left_of_the_same_sign() -> None:
    body = (Atom("e", (x, y)), Negation(Atom("e", (y, x))), Atom("e", (y, z)), Negation(Atom("e", (z, x))))
    assert [str(d) for d in delta_rules(Rule(Atom("q", (x, z)), body), "e")] == [
        "q(x, z) -:= Δe(x, y), !e(y, x), e(y, z), !e(z, x).",
        "q(x, z) -:= e(x, y), !e(y, x), Δe(y, z), !e(z, x), !Δe(x, y).",
        "q(x, z) +:= e(x, y), !e(y, x), e(y, z), Δe(z, x), !Δe(y, x).",
        "q(x, z) +:= e(x, y), Δe(y, x), e(y, z), !e(z, x).",
        "q(x, z) -:= e(x, y), Δe(y, x), e(y, z), !e(z, x).",
        "q(x, z) -:= e(x, y), !e(y, x), e(y, z), Δe(z, x), !Δe(y, x).",
        "q(x, z) +:= e(x, y), !e(y, x), Δe(y, z), !e(z, x), !Δe(x, y).",
        "q(x, z) +:= Δe(x, y), !e(y, x), e(y, z), !e(z, x).",
    ]


def test_an_aggregate_reads_the_graph_of_its_function() -> None:
    literal = Aggregate(z, "max", w, (Atom("g", (x, y, w)),), (x, y), NUMBER)
    rule = Rule(Atom("q", (x, z)), (Atom("e", (x, y)), literal))
    lost, found = delta_rules(rule, "g")
    assert str(lost) == "q(x, z) -:= e(x, y), Δg(x, y, z)."
    assert str(found) == "q(x, z) +:= e(x, y), Δg(x, y, z)."
    assert delta_rules(rule, "q") == ()


def test_what_is_not_normalised_is_refused() -> None:
    group = Atom("g", (x, w))
    largest, smallest = (Aggregate(r, op, w, (group,), (x,), NUMBER) for r, op in ((z, "max"), (y, "min")))
    of_two = Aggregate(z, "max", w, (group, Atom("e", (x, w))), (x,), NUMBER)
    for body in ((Atom("g", (x, Wildcard())),), (of_two,), (largest, smallest), (largest, group)):
        with pytest.raises(AssertionError, match=r"wildcard|not the aggregate|different ways"):
            delta_rules(Rule(Atom("q", (x,)), body), "g")


def test_a_body_of_ten_thousand_atoms() -> None:
    """No recursion, and the first delta rules do not cost all of them."""
    n = 10_000
    body = tuple(Atom("e", (Variable(f"x{i}"), Variable(f"x{i + 1}"))) for i in range(n))
    rule = Rule(Atom("q", ()), body)
    first = list(islice(each_delta_rule(rule, "e"), 20))
    assert [len(d.body) - n for d in first] == list(range(20))
