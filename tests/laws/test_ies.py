"""Incremental evaluation systems: for any updates U, F_Q(U) = Q(U(∅)).

Encodings keep answers, and errors change nothing.  Updates are drawn from a small pool of tuples,
so inserts of existing tuples and deletes of missing ones are frequent; over a few nodes self-loops,
cycles and unconnected pieces are too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from everlog import compile_text
from everlog.core.evaluate import reference
from everlog.core.program import Program
from everlog.ies import registry
from everlog.ies.encodings.binarize import binarize
from everlog.ies.encodings.flatten import Flat, columns_of, flatten
from everlog.ies.encodings.orders import Names, Ordering
from everlog.ies.files import datalog
from everlog.ies.nrc.compiled_terms import evaluate
from everlog.ies.nrc.parser import parse_system
from everlog.ies.nrc.printer import system_text
from everlog.ies.nrc.terms import Minus, Union, Var
from everlog.ies.nrc.types import BOOL, NUM, Base, Product, SetOf, Type, Value, height, inhabits
from everlog.ies.practical.protocol import BadTuple, NotPermissible
from everlog.ies.properties import determinism, few_values
from everlog.ies.running import Running, TooLarge
from everlog.ies.sri import law_broken
from everlog.ies.system import Becomes, Differs
from everlog.ies.validation import definitions_of, make

WRITTEN = [name for name in registry.SYSTEMS if registry._is_written(name)]
ACYCLIC = {"tc_acyclic", "tc_counts", "same_generation", "same_generation_sri", "same_generation_counts"}
SRI = [name for name in WRITTEN if name.endswith("_sri")]
EXPONENTIAL = [name for name in WRITTEN if registry.system_of(name).exponential]
ASKED = [name for name in WRITTEN if registry.system_of(name).query]
ENCODED = [name for name in WRITTEN if registry.system_of(name).auxiliaries]


def few(share: int) -> settings:
    """A share, in percent, of the examples that the profile asks for."""
    return settings(max_examples=max(2, settings().max_examples * share // 100))


# ── what is drawn ────────────────────────────────────────────────────────────────────────────────

Step = tuple[bool, str, Value]


def constants(type_: Type, nodes: int) -> list[Value]:
    """Values of a tuple's type; nodes are numbers, as the oracle has them."""
    return [_numbered(value) for value in few_values(type_, nodes)]


def _numbered(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(map(_numbered, value))
    return int(value[1:]) if isinstance(value, str) else value


@st.composite
def updates(draw: st.DrawFn, name: str, pool: int, most: int, nodes: int = 4) -> list[Step]:
    system = registry.system_of(name)
    rows = [(stored.name, row) for stored in system.inputs for row in constants(stored.type.element, nodes)]
    chosen = draw(st.lists(st.sampled_from(rows), min_size=1, max_size=pool, unique=True))
    step = st.tuples(st.integers(0, 2).map(bool), st.sampled_from(chosen))
    return [(insert, *row) for insert, row in draw(st.lists(step, max_size=most))]


def applied(running: Running, step: Step) -> Any:
    insert, relation, row = step
    return (running.insert if insert else running.delete)(relation, row)


# ── the oracle ───────────────────────────────────────────────────────────────────────────────────


@cache
def oracle(name: str) -> Program:
    return compile_text(datalog(registry.system_of(name)))


def answer_from_scratch(name: str, running: Running) -> frozenset[Any]:
    system = registry.system_of(name)
    return reference.evaluate(oracle(name), {one.name: running.rows(one.name) for one in system.inputs})[
        system.answer.name
    ]


def closes_a_cycle(running: Running, edge: tuple[Any, Any]) -> bool:
    reached, waiting = {edge[1]}, [edge[1]]
    while waiting:
        node = waiting.pop()
        more = {y for x, y in running.view("edge") if x == node} - reached
        reached |= more
        waiting += more
    return edge[0] in reached


# ── F_Q(U) = Q(U(∅)) ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ASKED)
def test_the_answer_is_the_query_of_the_input(name: str) -> None:
    """After any inserts, deletes and refusals, the answer is that from scratch."""
    exponential = name in EXPONENTIAL
    size = (5, 9, 3) if exponential else (9, 16, 5)

    @few(40)
    @given(steps=updates(name, *size))
    def law(steps: list[Step]) -> None:
        running = Running(registry.system_of(name))
        told = {stored.name: running.view(stored.name) for stored in running.system.stored}
        held = {one.name: set[Value]() for one in running.system.inputs}
        for step in steps:
            insert, relation, row = step
            try:
                changes = applied(running, step)
            except NotPermissible:
                assert name in ACYCLIC
                assert insert
                assert closes_a_cycle(running, row)
                continue
            assert name not in ACYCLIC or not insert or not closes_a_cycle(running, row) or row in held[relation]
            (held[relation].add if insert else held[relation].discard)(row)
            assert running.view(relation) == held[relation]
            for changed, (gone, new) in changes.items():
                assert gone or new
                assert gone <= told[changed]
                assert not new & told[changed]
                told[changed] = told[changed] - gone | new
            assert running.rows(running.system.answer.name) == answer_from_scratch(name, running)
        assert all(running.view(relation) == rows for relation, rows in told.items())
        running.check()

    law()


@given(steps=updates("linear_order", 9, 16, 5))
def test_the_maintained_order_is_linear_and_ranks_every_constant(steps: list[Step]) -> None:
    running = Running(registry.system_of("linear_order"))
    for step in steps:
        applied(running, step)
        there = {node for edge in running.view("edge") for node in edge}
        upto, rank = running.view("upto"), dict(running.view("rank"))
        assert rank.keys() == there
        assert sorted(rank.values()) == list(range(len(there)))
        assert upto == {(x, y) for x in there for y in there if rank[x] <= rank[y]}


# ── auxiliaries are what they are said to be ─────────────────────────────────────────────────────


def walks_of(edges: frozenset[Any]) -> list[list[Any]]:
    """The walks without repeated nodes, except that the last may be the first."""
    found = [[x, y] for x, y in edges]
    for walk in found:  # grows while it is gone through
        if walk[0] != walk[-1]:
            ends = {y for x, y in edges if x == walk[-1]}
            found += [[*walk, y] for y in ends if y not in walk[1:]]
    return found


def path_sets(edges: frozenset[Any]) -> set[Any]:
    return {(walk[0], walk[-1], frozenset(pairwise(walk))) for walk in walks_of(edges)}


def subsets_of(rows: Iterable[Any]) -> list[frozenset[Any]]:
    items = list(rows)
    return [frozenset(some) for size in range(len(items) + 1) for some in combinations(items, size)]


def odd_classes(edges: frozenset[Any]) -> set[Any]:
    degrees = Counter(x for x, _ in edges)
    sharing = Counter(degrees.values())
    return {x for x, degree in degrees.items() if sharing[degree] % 2}


def counted(keys: Iterable[Any]) -> set[Any]:
    return {(*key, number) for key, number in Counter(keys).items()}


def walk_pairs(edges: frozenset[Any]) -> set[Any]:
    walks = walks_of(edges)
    return counted((a[-1], b[-1]) for a in walks for b in walks if a[0] == b[0] and len(a) == len(b))


def inverse_holds(running: Running) -> bool:
    """(N - I)(I - A) = A, modulo p."""
    prime = 2**31 - 1
    nodes = {node for edge in running.view("edge") for node in edge}
    weights = {(x, y): k for x, y, k in running.view("weights")}
    entries = {(x, y): k for x, y, k in running.view("walks")}
    assert weights.keys() == running.view("edge")
    assert all(0 < k < prime for k in entries.values())
    assert len(entries) == len(running.view("walks"))
    assert {node for pair in entries for node in pair} <= nodes
    return all(
        (
            entries.get((x, y), 0)
            - sum(entries.get((x, z), 0) * weights.get((z, y), 0) for z in nodes)
            - weights.get((x, y), 0)
        )
        % prime
        == 0
        for x in nodes
        for y in nodes
    )


def answers_of_subsets(running: Running) -> bool:
    """(X, O) for each subset O of the input, with the X that the system has for O."""
    input_ = running.system.inputs[0].name
    kept = {part: value for value, part in running.view("subsets")}
    assert len(kept) == len(running.view("subsets"))
    assert kept.keys() == set(subsets_of(running.view(input_)))
    for part, value in kept.items():
        alone = Running(running.system)
        for row in sorted(part):
            alone.insert(input_, row)
        assert (value, part) in alone.view("subsets")
    return True


MEANINGS: dict[str, Callable[[Running], bool]] = {
    "tc_paths": lambda r: r.view("paths") == path_sets(r.view("edge")),
    "same_generation": lambda r: r.view("walks") == path_sets(r.view("edge")),
    "alternating_paths": lambda r: r.view("sets") == set(subsets_of({x for x, _ in r.view("edge")})),
    "max_outdegree_parity": lambda r: r.view("odd") == odd_classes(r.view("edge")),
    "tc_counts": lambda r: r.view("ways") == counted((w[0], w[-1]) for w in walks_of(r.view("edge"))),
    "same_generation_counts": lambda r: (
        r.view("walks") == counted((w[0], w[-1], len(w) - 1) for w in walks_of(r.view("edge")))
        and r.view("pairs") == walk_pairs(r.view("edge"))
    ),
    "tc_algebra": inverse_holds,
    **dict.fromkeys(SRI, answers_of_subsets),
}


def test_the_meaning_of_every_auxiliary_is_tested() -> None:
    assert MEANINGS.keys() | {"linear_order"} == set(ENCODED)  # which has a law of its own


@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_auxiliaries_are_what_they_are_said_to_be(name: str) -> None:
    size = (3, 6, 3) if name in SRI else (6, 10, 3) if name in EXPONENTIAL else (8, 14, 4)

    @few(15 if name in SRI else 60)
    @given(steps=updates(name, *size))
    def law(steps: list[Step]) -> None:
        running = Running(registry.system_of(name))
        for step in steps:
            with suppress(NotPermissible):
                applied(running, step)
            assert MEANINGS[name](running)

    law()


@pytest.mark.parametrize("name", WRITTEN)
def test_taking_away_and_adding_is_the_same_as_becoming(name: str) -> None:
    """`r -= a; r += b` means r := (r minus a) union b."""
    system = registry.system_of(name)

    def becoming(relation: str, change: Becomes | Differs) -> Becomes:
        match change:
            case Becomes():
                return change
            case Differs(gone, new):
                value: Any = Var(relation)
                value = value if gone is None else Minus(value, gone)
                return Becomes(value if new is None else Union(value, new))

    changed = {
        key: evolved(update, changes={r: becoming(r, c) for r, c in update.changes.items()})
        for key, update in system.updates.items()
    }
    other = make(evolved(system, updates=changed))

    @few(10)
    @given(steps=updates(name, 4, 8, 3))
    def law(steps: list[Step]) -> None:
        one, two = Running(system), Running(other)
        for step in steps:
            try:
                assert applied(one, step) == applied(two, step)
            except NotPermissible:
                with pytest.raises(NotPermissible):
                    applied(two, step)
        assert one.state() == two.state()

    law()


def evolved(value: Any, **changes: Any) -> Any:
    from attrs import evolve

    return evolve(value, **changes)


# ── errors change nothing ────────────────────────────────────────────────────────────────────────


def refusal(running: Running, step: Step) -> NotPermissible | TooLarge | None:
    try:
        applied(running, step)
    except (NotPermissible, TooLarge) as refused:
        return refused
    return None


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_past_the_limit_nothing_is_lost(name: str) -> None:
    """An update that makes the auxiliaries too large is refused; deletes still work."""

    @few(10)
    @given(steps=updates(name, 6, 10, 3), limit=st.integers(4, 60))
    def law(steps: list[Step], limit: int) -> None:
        system = registry.system_of(name)
        running, free = Running(system, limit), Running(system, None)
        assume(running.values <= limit)
        for step in steps:
            before = running.state()
            refused = refusal(running, step)
            if refused is None:
                applied(free, step)
                assert running.values <= limit
            elif isinstance(refused, NotPermissible):
                with pytest.raises(NotPermissible):
                    applied(free, step)
                assert running.state() == before
            else:
                assert step[0], "a delete makes nothing grow"
                assert running.state() == before
                assert refused.values > limit
                assert system.growth in str(refused)
                assert system.instead in str(refused)
                applied(free, step)
                assert free.values == refused.values
                free = Running(system, None, running.state())
            assert running.state() == free.state()
            running.check()

    law()


WRONG = [(), (1,), (1, 2, 3, 4), "x", 1.5, None, (1, None), (True, 1), ((1, 2), 3), frozenset({1}), (0, 1, True)]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_wrong_tuple_changes_nothing(name: str) -> None:
    system = registry.system_of(name)
    running = Running(system)
    for stored in system.inputs:
        for row in constants(stored.type.element, 2)[:3]:
            try:
                running.insert(stored.name, row)
            except NotPermissible:
                continue
    before = running.state()
    for stored in system.inputs:
        for row in WRONG:
            plain = row[0] if isinstance(row, tuple) and len(row) == 1 else row
            if not inhabits(plain, stored.type.element):
                for update in (running.insert, running.delete):
                    with pytest.raises(BadTuple, match=stored.name):
                        update(stored.name, row)
    for update in (running.insert, running.delete):
        with pytest.raises(BadTuple, match="is not an input"):
            update(system.answer.name, 1)
    assert running.state() == before


# ── structural recursion ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", SRI)
def test_the_step_of_a_recursion_obeys_its_laws(name: str) -> None:
    """f(x, f(x, y)) = f(x, y) and f(x, f(y, z)) = f(y, f(x, z)), on reachable values."""
    text = registry.resources.files("everlog.ies").joinpath("systems", f"{name}.nrc").read_text("utf-8")
    system = parse_system(text)
    assert system.sri is not None
    rows = constants(system.inputs[0].type.element, 3)

    @few(15)
    @given(elements=st.lists(st.sampled_from(rows), max_size=4, unique=True))
    def law(elements: list[Value]) -> None:
        if name in ACYCLIC:
            elements = [(x, y) for x, y in elements if x < y]
        assert law_broken(system.sri, definitions_of(system), elements) is None

    law()


# ── encodings ────────────────────────────────────────────────────────────────────────────────────


def constants_of(type_: Type, value: Value, base: str) -> set[Value]:
    match type_:
        case Base(name):
            return {value} if name == base else set()
        case Product(parts):
            return {c for part, item in zip(parts, value, strict=True) for c in constants_of(part, item, base)}
        case SetOf(element):
            return {c for item in value for c in constants_of(element, item, base)}


@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.parametrize("encoding", ["flatten", "binarize"])
def test_an_encoded_system_gives_the_same_answers(encoding: str, name: str) -> None:
    given_, encoded = registry.system_of(name), registry.system_of(f"{encoding}({name})")
    arities = [len(columns_of(one.type.element)) for one in encoded.auxiliaries]
    assert all(height(one.type) == 1 for one in encoded.auxiliaries)
    assert encoding == "flatten" or max(arities) <= 2
    kept = [one.name for one in encoded.auxiliaries if one.name.startswith("upto_")]

    @few(8)
    @given(steps=updates(name, *((2, 3, 2) if name in SRI else (3, 5, 3))))
    def law(steps: list[Step]) -> None:
        one, two = Running(given_), Running(encoded, None)
        for step in steps:
            try:
                applied(one, step)
            except NotPermissible:
                before = two.state()
                with pytest.raises(NotPermissible):
                    applied(two, step)
                assert two.state() == before
                continue
            applied(two, step)
            assert one.view(one.system.answer.name) == two.view(one.system.answer.name)
            for order in kept:
                there = {x for x, y in two.view(order) if x == y}
                live = {c for s in given_.stored for c in constants_of(s.type, one.view(s.name), "node")}
                assert live <= there <= live | {""}, "an order is on the constants there are"
                assert len(two.view(order)) == len(there) * (len(there) + 1) // 2
        two.check()

    law()


@pytest.mark.parametrize("name", WRITTEN)
def test_encodings_take_what_encodings_make(name: str) -> None:
    """Flat systems, or those of arity two, stay; nested systems are flattened first."""
    flat, binary = registry.system_of(f"flatten({name})"), registry.system_of(f"binarize({name})")
    assert flatten(flat) == flat
    assert binarize(flat) == binary
    assert flatten(binary) == binary
    assert binarize(binary) == binary


@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.parametrize("encoding", ["{}", "flatten({})", "binarize({})"])
def test_an_encoded_system_is_a_text_like_any_other(encoding: str, name: str) -> None:
    """What is printed of it is read again, and is the same system."""
    system = registry.system_of(encoding.format(name))
    again = make(parse_system(system_text(system)))
    assert again == system


named = st.sampled_from([Base("node"), Base("colour"), NUM, BOOL])
types: st.SearchStrategy[Type] = st.recursive(
    named,
    lambda inner: inner.map(SetOf) | st.lists(inner, min_size=2, max_size=3).map(tuple).map(Product),
    max_leaves=4,
)
ORDERS = {"node": "order_node", "colour": "order_colour"}


def values(type_: Type) -> st.SearchStrategy[Value]:
    match type_:
        case Base("bool"):
            return st.booleans()
        case Base("num"):
            return st.integers(-2, 2) | st.fractions(-1, 1, max_denominator=2).map(
                lambda f: f.numerator if f.denominator == 1 else f
            )
        case Base():
            return st.sampled_from(["", "a", "b", "c"])
        case Product(parts):
            return st.tuples(*map(values, parts))
        case SetOf(element):
            return st.frozensets(values(element), max_size=3)


def orders(ranking: Sequence[str]) -> dict[str, Value]:
    pairs = frozenset((a, b) for n, b in enumerate(ranking) for a in ranking[: n + 1])
    return dict.fromkeys(ORDERS.values(), pairs)


@given(data=st.data(), element=types, ranking=st.permutations(["", "a", "b", "c"]))
def test_q_undoes_p(data: st.DataObject, element: Type, ranking: list[str]) -> None:
    """Proposition 11, over any types and values; the image of p is flat and not empty."""
    type_ = SetOf(element)
    value = data.draw(values(type_))
    ordering = Ordering(ORDERS, Names({"O", "R"}))
    flat = Flat(Names({"O", "R"}), ordering)
    p, q = flat.p(type_, Var("O")), flat.q(type_, Var("R"))
    definitions = {definition.name: definition for definition in ordering.definitions}
    rows = evaluate(p, {"O": value, **orders(ranking)}, definitions)
    assert rows
    assert inhabits(rows, SetOf(Product(columns_of(type_))))
    assert evaluate(q, {"R": rows}, definitions) == value


@given(data=st.data(), type_=types, ranking=st.permutations(["", "a", "b", "c"]))
def test_every_type_has_a_linear_order(data: st.DataObject, type_: Type, ranking: list[str]) -> None:
    """Of two different values exactly one is smaller, and ranks count from 0."""
    some = data.draw(st.frozensets(values(type_), max_size=5))
    ordering = Ordering(ORDERS, Names({"O"}))
    less, rank = ordering.less(type_, Var("a"), Var("b")), ordering.rank(type_, Var("O"))
    definitions = {definition.name: definition for definition in ordering.definitions}
    base = orders(ranking)
    for a in some:
        for b in some:
            forth = evaluate(less, {"a": a, "b": b, **base}, definitions)
            back = evaluate(less, {"a": b, "b": a, **base}, definitions)
            assert (forth, back) in ([(False, False)] if a == b else [(True, False), (False, True)])
    ranked = evaluate(rank, {"O": some, **base}, definitions)
    assert {value for value, _ in ranked} == some
    assert sorted(r for _, r in ranked) == list(range(len(some)))


# ── determinism ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", WRITTEN)
def test_only_what_keeps_an_order_of_arrival_depends_on_the_history(name: str) -> None:
    """Corollary 7 for the paper's systems; tc_algebra orders and weighs by arrival."""
    found = determinism(registry.system_of(name), histories=12)
    assert found.histories >= 2
    assert found.holds == (name not in ("linear_order", "tc_algebra"))
    if found.differ is not None:
        ended = []
        for history in found.differ:
            running = Running(registry.system_of(name))
            for event, relation, row in history:
                applied(running, (event == "insert", relation, row))
            ended.append(running)
        assert ended[0].view("edge") == ended[1].view("edge")
        assert ended[0].state() != ended[1].state()
