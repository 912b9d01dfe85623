"""No plan is a cliff: the chosen order tries about as few rows as the best."""

from __future__ import annotations

import math
from itertools import permutations, product
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from join_steps import Steps, tasks

from everlog import Database, compile_text, evaluate
from everlog.core.codegen.join_order import Ordering
from everlog.core.engine.stepping.work import ROW
from everlog.core.evaluate.native import rule_task, unit_rounds
from everlog.core.evaluate.parts import grouped_bodies
from everlog.core.ir import rule_lowering
from everlog.core.native.availability import why_not
from everlog.core.program import Atom, Comparison, Constant, Kind, Literal, Negation, Program, Variable, Wildcard
from everlog.core.program.bodies import variables_of_literal
from everlog.core.runtime.guards import LimitExceeded, Limits
from everlog.core.storage.table_shapes import shape_of
from everlog.core.storage.table_statistics import Statistics, statistics_of

UPDATES = 100  # units of work that hardly matter: of finding that nothing matches
MOST = 300_000  # steps that are counted: a body that no order joins in fewer is left out


def skewed_values(random: Random, domain: int) -> Any:
    """A source of values below `domain`: all alike, or a few of them far more often.

    Some columns have values of their own, so that joins on them find little or nothing.
    """
    skew = random.choice([0.0, 0.0, 0.7, 1.1])
    weights = [1 / (i + 1) ** skew for i in range(domain)]
    start = random.choice([0, 0, 0, 0, domain // 2, domain - 1])
    names = list(range(start, start + domain))
    if random.random() < 0.5:
        random.shuffle(names)
    return lambda n: random.choices(names, weights, k=n)


def random_table(random: Random, arity: int) -> set[tuple[int, ...]]:
    """Rows of skewed values; sometimes one column follows from another."""
    size = random.choice([3, 10, 60, 300, 1500, 1500, 5000])
    columns = [skewed_values(random, random.choice([3, 20, 200, 1000, 5000]))(size) for _ in range(arity)]
    if arity > 1 and random.random() < 0.25:
        modulus = random.choice([2, 10, 100, 1000])
        columns[1] = [value % modulus for value in columns[0]]
    return set(zip(*columns, strict=True))


def random_case(seed: int) -> tuple[list[Literal], dict[str, set[tuple[int, ...]]]]:
    """A connected body of 2 to 5 atoms with constants, comparisons and negation, and its tables."""
    random = Random(seed)
    variables = [Variable(name) for name in "abcdef"]
    tables: dict[str, set[tuple[int, ...]]] = {}
    body: list[Literal] = []
    seen: list[Variable] = []
    for number in range(random.randint(2, 5)):
        arity = random.choice([1, 2, 2, 2, 3, 3])
        args: list[Any] = [random.choice(variables) for _ in range(arity)]
        if seen and not set(args) & set(seen):
            args[random.randrange(arity)] = random.choice(seen)
        seen += args
        name = f"r{number}"
        again = [one for one, rows in tables.items() if len(next(iter(rows))) == arity]
        if again and random.random() < 0.15:
            name = random.choice(again)
        else:
            tables[name] = random_table(random, arity)
        if arity > 1 and random.random() < 0.2:
            column = random.randrange(arity)
            value = random.choice(sorted(tables[name]))[column]
            args[column] = Constant(random.choice([value, value, value + 1]), Kind.NUMBER)
        body.append(Atom(name, tuple(args)))
    used = list(dict.fromkeys(v for x in body for v in x.args if isinstance(v, Variable)))  # type: ignore[union-attr]
    while used and random.random() < 0.35:
        other = random.choice([Constant(random.choice([1, 5, 50]), Kind.NUMBER), *used])
        body.append(Comparison(random.choice(["<", ">", "!=", "="]), random.choice(used), other, Kind.NUMBER))
    if used and random.random() < 0.3:
        arity = random.choice([1, 1, 2])
        tables["no"] = random_table(random, arity)
        body.append(Negation(Atom("no", tuple(random.choice(used) for _ in range(arity)))))
    random.shuffle(body)
    return body, tables


def known_of(tables: dict[str, set[tuple[int, ...]]]) -> dict[str, Statistics]:
    known = {}
    for name, rows in tables.items():
        shape = shape_of(len(next(iter(rows))))
        known[name] = statistics_of(shape, shape.facts_of(rows), {})
    return known


def times_the_best(seed: int, delta: bool = False) -> float:
    """The rows that the chosen order tries, by those of the best order.

    With `delta`, of orders that begin with one of the atoms: what an update of its relation runs.
    """
    return ratio(*random_case(seed), Random(seed) if delta else None)


def ratio(body: list[Literal], tables: dict[str, set[tuple[int, ...]]], random: Random | None) -> float:
    steps = Steps(body, tables)
    every = frozenset(v for literal in body for v in variables_of_literal(literal))
    atoms = [i for i, x in enumerate(body) if isinstance(x, Atom)]
    first = random.choice(atoms) if random else None
    ordering = Ordering(body, known_of(tables), first=first, kept=every)
    chosen_order = [estimate.position for estimate in ordering.chosen()]
    chosen = steps.of(chosen_order, MOST)
    best = min(chosen, MOST)
    for order in permutations(atoms):
        if first in (None, order[0]):
            best = min(best, steps.of(order, best))
    return 1.0 if best >= MOST else chosen / max(best, 1)


# ── aggregates ───────────────────────────────────────────────────────────────────────────────


class InOrder(Ordering):
    """Joins the atoms of every body in the order of the names in `names`, after the one of Δ."""

    names: tuple[str, ...] = ()

    def __init__(
        self, body: Any, statistics: Any, bound: Any = frozenset(), first: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        places = [i for i, x in enumerate(body) if isinstance(x, Atom) and x.relation in self.names]
        if places and len(places) == sum(isinstance(x, Atom) for x in body):
            order = sorted(places, key=lambda i: (i != first, self.names.index(body[i].relation)))
            kwargs["fixed"] = tuple(order)
        super().__init__(body, statistics, bound, first, *args, **kwargs)


def aggregate_case(seed: int) -> tuple[str, dict[str, set[tuple[int, ...]]]]:
    """A rule with an aggregate over a join, and its tables."""
    random = Random(seed)
    outer = [f"o{n}" for n in range(random.choice([1, 1, 2]))]
    inner = [f"i{n}" for n in range(random.choice([1, 2, 2, 3]))]
    tables, atoms, seen = {}, {}, ["a"]
    for name in (*outer, *inner):
        arity = random.choice([1, 2, 2, 3])
        args = [random.choice("abcd" if name in outer else "abcdxyz") for _ in range(arity)]
        args[random.randrange(arity)] = random.choice(seen)
        if random.random() < 0.2:
            args[random.randrange(arity)] = str(random.choice([1, 7]))
        seen += [a for a in args if a.isalpha()]
        tables[name], atoms[name] = random_table(random, arity), f"{name}({', '.join(args)})"
    shown = sorted({v for name in outer for v in atoms[name] if v in "abcd"})
    body = [*(atoms[name] for name in inner)]
    given = sorted({v for one in body for v in one.split("(")[1] if v.isalpha()})
    if given and random.random() < 0.3:
        body.append(f"{random.choice(given)} > {random.choice([2, 15])}")
    term = f"{random.choice(['sum', 'min', 'max'])} {random.choice(given)} :" if given else "count :"
    term = random.choice([term, "count :"])
    lines = [
        f".decl {n}({', '.join(f'c{i}:number' for i in range(len(next(iter(t)))))})" for n, t in tables.items()
    ]
    head = ", ".join([*shown, "t"])
    lines.append(f".decl q({', '.join(f'c{i}:number' for i in range(len(shown) + 1))})")
    rule = f"q({head}) :- {', '.join(atoms[n] for n in outer)}, t = {term} {{ {', '.join(body)} }}."
    return "\n".join([*lines, rule]), tables


def counted(program: Program, tables: Any, most: float) -> float:
    """The rows that the compiled machine tries; infinite where it stops after too many."""
    with tasks() as found:
        try:
            evaluate(program, tables, limits=Limits(seconds=5))
        except LimitExceeded:
            return most
    return sum(begun + tried for task in found for begun, tried, _ in task.made.counted())


def times_the_best_aggregate(seed: int) -> float:
    """Steps of a rule with an aggregate, by those of the best orders, by group or at once."""
    text, tables = aggregate_case(seed)
    program = compile_text(text)
    chosen = best = counted(program, tables, math.inf)
    if chosen > MOST:
        return 1.0
    outer, inner = ([n for n in tables if n[0] == kind] for kind in "oi")
    for one, other in product(permutations(outer), permutations(inner)):
        for grouped in (False, True):
            with (
                patch.object(unit_rounds, "Ordering", InOrder),
                patch.object(InOrder, "names", (*one, *other)),
                patch.object(grouped_bodies, "is_cheaper", lambda *_, grouped=grouped: grouped),
                patch.object(rule_task.NativeTask, "_most", lambda *_: MOST),
            ):
                best = min(best, counted(program, tables, math.inf))
    return chosen / max(best, 1)


def counted_living(text: str, tables: Any, seed: int) -> int:
    """The work of delta rules for some rows that go and come back, without what each row costs."""
    random = Random(seed)
    db = Database(compile_text(text), facts=tables)
    network = db._engine._network
    for name in tables:
        for row in random.choices(sorted(tables[name]), k=4):
            db.delete(name, row)
            db.insert(name, row)
    found = 0
    for keeper in network.keepers:
        for work in getattr(keeper, "work", {}).values():
            done, _, rows = work.total()
            found += done - ROW * rows
    return found


def times_the_best_living_aggregate(seed: int) -> float:
    """The work of updates below an aggregate, by that of the best order of its body."""
    text, tables = aggregate_case(seed)
    inner = [name for name in tables if name[0] == "i"]
    chosen = best = counted_living(text, tables, seed)
    for names in permutations(inner):
        with patch.object(rule_lowering, "Ordering", InOrder), patch.object(InOrder, "names", names):
            best = min(best, counted_living(text, tables, seed))
    return (chosen + UPDATES) / (best + UPDATES)


def test_what_follows_an_aggregate_is_never_20_times_the_best() -> None:
    found = {seed: times_the_best_living_aggregate(seed) for seed in range(10)}
    worse = {seed: ratio for seed, ratio in found.items() if ratio > 4}
    assert len(worse) <= len(found) * 0.05, worse


@pytest.mark.deep
def test_of_many_aggregates_few_are_followed_at_4_times_and_none_at_20_times_the_best() -> None:
    found = {seed: times_the_best_living_aggregate(seed) for seed in range(400)}
    print(f"above 4 times: {sum(x > 4 for x in found.values())}, at most {max(found.values()):.1f} times")
    assert sum(x > 4 for x in found.values()) <= len(found) * 0.05
    assert max(found.values()) <= 20


@pytest.mark.deep
@pytest.mark.skipif(bool(why_not()), reason="the compiled machine is not there")
def test_of_many_plans_of_aggregates_few_are_4_times_and_none_is_20_times_the_best() -> None:
    found = {seed: times_the_best_aggregate(seed) for seed in range(1000)}
    print(f"above 4 times: {sum(x > 4 for x in found.values())}, at most {max(found.values()):.1f} times")
    assert sum(x > 4 for x in found.values()) <= len(found) * 0.05
    assert max(found.values()) <= 20


@pytest.mark.skipif(bool(why_not()), reason="the compiled machine is not there")
def test_a_chosen_plan_of_an_aggregate_is_never_20_times_the_best() -> None:
    found = {seed: times_the_best_aggregate(seed) for seed in range(60)}
    worse = {seed: ratio for seed, ratio in found.items() if ratio > 4}
    assert len(worse) <= len(found) * 0.05, worse
    assert max(found.values()) <= 20, worse


def atoms(text: str) -> list[Literal]:
    """A body such as `r(a, b) s(b, 7)`: letters are variables."""
    found: list[Literal] = []
    for part in text.split(") "):
        name, args = part.strip(" )").split("(")
        terms = [Constant(int(a), Kind.NUMBER) if a.isdigit() else Variable(a) for a in args.split(", ")]
        found.append(Atom(name, tuple(terms)))
    return found


SPREAD = {(x, x % 1000, x % 7) for x in range(5000)}


@pytest.mark.parametrize(
    ("body", "tables"),
    [
        # few rows that meet far more than others do: 3309 steps against 127
        (
            "r(a, b) s(f, e, a) t(a, f, d)",
            {
                "r": {(1, 1), (2, 2), (3, 3)},
                "s": SPREAD | {(x, x, 10_000) for x in range(5000)} | {(9, x, 1) for x in range(1000)},
                "t": {(x % 900, x, x) for x in range(1800)},
            },
        ),
        # few rows that meet nothing in a large relation: 6467 steps against 21
        (
            "r(c, e) s(a, c) t(a, b) u(f, e, a)",
            {
                "r": {(20_000 + x, x) for x in range(10)},
                "s": {(x, x % 20) for x in range(5000)},
                "t": {(x, x) for x in range(100)},
                "u": {(x, x % 10, x % 30) for x in range(100)},
            },
        ),
        # a constant that no row has
        (
            "p(9) q(a, b) r(b, c) s(c)",
            {
                "p": {(x,) for x in range(10, 2500)},
                "q": {(x, x) for x in range(10)},
                "r": {(x, x) for x in range(4000)},
                "s": {(x,) for x in range(40)},
            },
        ),
    ],
)
def test_few_rows_are_looked_up_before_an_order_is_chosen(
    body: str, tables: dict[str, set[tuple[int, ...]]]
) -> None:
    assert ratio(atoms(body), tables, None) <= 4


@pytest.mark.parametrize("delta", [False, True], ids=["whole", "living"])
def test_a_chosen_order_is_seldom_4_times_and_never_20_times_the_best(delta: bool) -> None:
    found = {seed: times_the_best(seed, delta) for seed in range(100)}
    worse = {seed: ratio for seed, ratio in found.items() if ratio > 4}
    assert len(worse) <= len(found) * 0.05, worse
    assert max(found.values()) <= 20, worse


@pytest.mark.deep
@pytest.mark.parametrize("delta", [False, True], ids=["whole", "living"])
def test_of_many_orders_few_are_4_times_and_none_is_20_times_the_best(delta: bool) -> None:
    found = [times_the_best(seed, delta) for seed in range(4000)]
    print(f"above 4 times: {sum(x > 4 for x in found)}, at most {max(found):.1f} times")
    assert sum(x > 4 for x in found) <= len(found) * 0.05
    assert max(found) <= 20


def test_wildcards_match_per_value() -> None:
    """`r(x, _)` gives each x once, however many rows have it."""
    shape = shape_of(3)
    known = statistics_of(shape, shape.facts_of([(x, y, 0) for x in range(10) for y in range(100)]), {})
    x = Variable("x")
    (estimate,) = Ordering([Atom("r", (x, Wildcard(), Wildcard()))], {"r": known}).chosen()
    assert 9 <= estimate.matches <= 11
