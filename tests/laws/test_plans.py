"""No plan is a cliff: the chosen order tries about as few rows as the best."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import Any

import pytest
from join_steps import Steps

from everlog.core.codegen.join_order import Ordering
from everlog.core.program import Atom, Comparison, Constant, Kind, Literal, Negation, Variable, Wildcard
from everlog.core.program.bodies import variables_of_literal
from everlog.core.storage.table_shapes import shape_of
from everlog.core.storage.table_statistics import Statistics, statistics_of

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
