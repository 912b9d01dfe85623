"""Rules that were cliffs: time as data grows, beside the best form that one would write by hand.

    python -P bench/plans.py [--small] [--living]
    python -P bench/plans.py --rules 20000
    python -P bench/plans.py --planning

Each case is a rule as a user would write it, the same answer by hand-split rules, and data that
doubles.  Printed are CPU seconds of both, their ratio, and the growth per doubling.

`--rules N` checks, plans and runs N rules of three atoms over hardly any facts, so that plans
are all the work.  `--planning` orders a body of five atoms over 20 000 rows each: the samples of
its tables, the order with new samples (cold), and once more (warm).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from attrs import frozen

from everlog import Database, compile_text, evaluate
from everlog.core.codegen.join_order import Ordering
from everlog.core.program import Atom, Variable
from everlog.core.storage.table_shapes import shape_of
from everlog.core.storage.table_statistics import statistics_of

Rows = Mapping[str, list[tuple[Any, ...]]]


@frozen
class Case:
    name: str
    declarations: str
    written: str
    by_hand: str
    data: Callable[[int], Rows]
    sizes: tuple[int, int, int]


def _calls(n: int) -> Rows:
    random = Random(1)
    functions, modules, names = n // 40, 10, n // 20
    return {
        "call": [(s, random.randrange(functions)) for s in range(n)],
        "recv": [(s, random.randrange(names), random.randrange(50)) for s in range(n)],
        "infunc": [(f, f % modules) for f in range(functions)],
        "imports": [
            (m, random.randrange(modules), random.randrange(names))
            for m in range(modules)
            for _ in range(n // 100)
        ],
    }


def _payments(n: int) -> Rows:
    random = Random(2)
    accounts, countries = n // 10, 40
    return {
        "pay": [
            (random.randrange(accounts), random.randrange(accounts), random.randrange(1_000_000)) for _ in range(n)
        ],
        "home": [(a, random.randrange(countries)) for a in range(accounts)],
        "pair": [(c, d) for c in range(countries) for d in range(countries)],
    }


def _orders(n: int) -> Rows:
    random = Random(3)
    return {"o": [(i, random.randrange(n // 40), random.randrange(1000)) for i in range(n)]}


def _zipf(n: int) -> Rows:
    random = Random(4)
    weights = [1 / (i + 1) for i in range(n // 20)]
    customers = random.choices(range(n // 20), weights, k=n)
    kinds = ["pay", "see", "buy", "ask"]
    return {
        "s": [(x, c) for x, c in enumerate(customers)],
        "k": [(x, random.choice(kinds), random.randrange(200)) for x in range(n)],
        "b": list({(c, random.randrange(200)) for c in customers}),
    }


def _edges(n: int) -> Rows:
    random = Random(5)
    return {"e": [(random.randrange(n // 4), random.randrange(n // 4)) for _ in range(n)]}


def _zipfian(random: Random, n: int, values: int, skew: float) -> list[int]:
    return random.choices(range(values), [1 / (i + 1) ** skew for i in range(values)], k=n)


def _follows(n: int) -> Rows:
    random = Random(8)
    people = n // 5
    follows = zip(_zipfian(random, n, people, 0.9), _zipfian(random, n, people, 0.9), strict=True)
    tags = zip([random.randrange(people) for _ in range(n)], _zipfian(random, n, 200, 1.0), strict=True)
    return {"f": [*follows], "t": [*tags]}


def _views(n: int) -> Rows:
    random = Random(9)
    users = n // 10

    def pairs() -> list[tuple[int, int]]:
        return [*zip(_zipfian(random, n, users, 0.8), _zipfian(random, n, users, 0.8), strict=True)]

    return {
        "u": [(a, "vip" if a % 500 == 0 else "std") for a in range(users)],
        "v": pairs(),
        "s": pairs(),
        "c": [(p, random.randrange(100)) for p in range(users)],
    }


def _lines(n: int) -> Rows:
    random = Random(10)
    orders, customers = n // 4, n // 20
    return {
        "o": [*enumerate(_zipfian(random, orders, customers, 1.0))],
        "l": [(random.randrange(orders), random.randrange(100), random.randrange(10**6)) for _ in range(n)],
        "g": [(c, c % 50) for c in range(customers)],
    }


def _paths(n: int) -> Rows:
    random = Random(11)
    nodes = n // 3
    edges = zip(_zipfian(random, n, nodes, 0.6), _zipfian(random, n, nodes, 0.6), strict=True)
    return {
        "e": [*edges],
        "a": [(nodes - i,) for i in range(1, 40)],
        "b": [(nodes - i,) for i in range(100, 140)],
    }


CASES = [
    Case(
        "call graph",
        """.decl call(s:number, f:number)  .decl recv(s:number, r:number, n:number)
.decl infunc(f:number, m:number)  .decl imports(m:number, t:number, r:number)
.decl tgt(s:number, f:number, t:number, n:number)  .decl q(s:number, f:number, m:number, r:number, n:number)
""",
        "tgt(s, f, t, n) :- call(s, f), recv(s, r, n), infunc(f, m), imports(m, t, r).",
        """q(s, f, m, r, n) :- call(s, f), infunc(f, m), recv(s, r, n).
tgt(s, f, t, n) :- q(s, f, m, r, n), imports(m, t, r).""",
        _calls,
        (20_000, 40_000, 80_000),
    ),
    Case(
        "sum per pair of countries",
        """.decl pay(a:number, b:number, x:number)  .decl home(a:number, c:number)
.decl pair(c:number, d:number)  .decl abroad(c:number, d:number, t:number)
.decl q(c:number, d:number, a:number, b:number, x:number)  .decl g(c:number, d:number, t:number)
""",
        "abroad(c, d, t) :- pair(c, d), t = sum x : { pay(a, b, x), x > 950000, home(a, c), home(b, d) }.",
        """q(c, d, a, b, x) :- pay(a, b, x), x > 950000, home(a, c), home(b, d).
abroad(c, d, t) :- pair(c, d), t = sum x : { q(c, d, a, b, x) }.""",
        _payments,
        (30_000, 60_000, 120_000),
    ),
    Case(
        "previous order",
        ".decl o(o:number, c:number, y:number)  .decl prev(o:number, p:number)  .decl d(c:number, y:number)"
        "  .decl m(c:number, y:number, p:number)\n",
        "prev(o, p) :- o(o, c, y), p = max z : { o(_, c, z), z < y }.",
        """d(c, y) :- o(_, c, y).
m(c, y, p) :- d(c, y), p = max z : { d(c, z), z < y }.
prev(o, p) :- o(o, c, y), m(c, y, p).""",
        _orders,
        (2_000, 4_000, 8_000),
    ),
    Case(
        "a constant in a body",
        """.decl s(x:number, c:number)  .decl k(x:number, w:symbol, p:number)  .decl b(c:number, p:number)
.decl r(c:number, p:number)  .decl kp(x:number, p:number)
""",
        'r(c, p) :- b(c, p), s(x, c), k(x, "pay", p).',
        'kp(x, p) :- k(x, "pay", p).\nr(c, p) :- kp(x, p), s(x, c), b(c, p).',
        _zipf,
        (50_000, 100_000, 200_000),
    ),
    Case(
        "mutual edges",
        ".decl e(x:number, y:number)  .decl q(x:number, y:number)\n",
        "q(x, y) :- e(x, y), e(y, x), x < y.",
        "q(x, y) :- e(x, y), x < y, e(y, x).",
        _edges,
        (50_000, 100_000, 200_000),
    ),
    Case(
        "mutual follows with a tag",
        ".decl f(a:number, b:number)  .decl t(a:number, g:number)  .decl m(a:number, b:number)"
        "  .decl q(a:number, b:number, g:number)\n",
        "q(a, b, g) :- f(a, b), f(b, a), t(a, g), t(b, g).",
        "m(a, b) :- f(a, b), f(b, a).\nq(a, b, g) :- m(a, b), t(a, g), t(b, g).",
        _follows,
        (20_000, 40_000, 80_000),
    ),
    Case(
        "not seen by the few",
        """.decl u(a:number, k:symbol)  .decl v(a:number, p:number)  .decl s(a:number, p:number)
.decl c(p:number, g:number)  .decl vip(a:number)  .decl good(p:number)  .decl q(a:number, p:number)
""",
        'q(a, p) :- v(a, p), c(p, g), u(a, "vip"), !s(a, p), g > 95.',
        """vip(a) :- u(a, "vip").
good(p) :- c(p, g), g > 95.
q(a, p) :- vip(a), v(a, p), good(p), !s(a, p).""",
        _views,
        (50_000, 100_000, 200_000),
    ),
    Case(
        "greatest line by group",
        """.decl o(i:number, c:number)  .decl l(i:number, p:number, x:number)  .decl g(c:number, k:number)
.decl b(k:number, x:number)  .decl q(k:number, m:number)
""",
        "q(k, m) :- g(_, k), m = max x : { g(c, k), o(i, c), l(i, _, x) }.",
        "b(k, x) :- g(c, k), o(i, c), l(i, _, x).\nq(k, m) :- g(_, k), m = max x : { b(k, x) }.",
        _lines,
        (50_000, 100_000, 200_000),
    ),
    Case(
        "paths between few ends",
        """.decl e(x:number, y:number)  .decl a(x:number)  .decl b(x:number)
.decl first(x:number, y:number)  .decl last(x:number, y:number)  .decl q(x:number, w:number)
""",
        "q(x, w) :- a(x), e(x, y), e(y, z), e(z, w), b(w).",
        """first(x, y) :- a(x), e(x, y).
last(z, w) :- e(z, w), b(w).
q(x, w) :- first(x, y), e(y, z), last(z, w).""",
        _paths,
        (50_000, 100_000, 200_000),
    ),
]


def _once(text: str, rows: Rows, living: bool) -> tuple[float, int]:
    """CPU seconds, and the answers of the last rule."""
    program = compile_text(text)
    last = program.rules[-1].head.relation
    start = time.process_time()
    answers = Database(program, facts=rows).view(last) if living else evaluate(program, rows).relation(last)
    return time.process_time() - start, len(answers)


def many_rules(count: int) -> None:
    """Rules of three atoms, each with a relation of its own."""
    random = Random(6)
    lines = [".decl e0(x:number, y:number)"]
    for number in range(1, count + 1):
        a, b, c = (random.randrange(max(0, number - 50), number) for _ in range(3))
        lines += [
            f".decl e{number}(x:number, y:number)",
            f"e{number}(x, w) :- e{a}(x, y), e{b}(y, z), e{c}(z, w).",
        ]
    start = time.process_time()
    program = compile_text("\n".join(lines))
    checked = time.process_time()
    evaluate(program, {"e0": [(1, 2), (2, 3)]})
    print(f"{count} rules: check {checked - start:.2f} s, plan and run {time.process_time() - checked:.2f} s")


def planning() -> None:
    """The order of one body of five atoms."""
    random = Random(7)
    names = [f"r{number}" for number in range(5)]
    tables = {name: {(random.randrange(3000), random.randrange(3000)) for _ in range(20_000)} for name in names}
    variables = [Variable(f"x{number}") for number in range(6)]
    body = [Atom(name, (variables[n], variables[n + 1])) for n, name in enumerate(names)]
    shape = shape_of(2)
    facts = {name: shape.facts_of(rows) for name, rows in tables.items()}
    times: dict[str, list[float]] = {"statistics": [], "cold": [], "warm": []}
    for _ in range(10):
        start = time.process_time()
        known = {name: statistics_of(shape, rows, {}) for name, rows in facts.items()}
        times["statistics"].append(time.process_time() - start)
        for what in ("cold", "warm"):
            start = time.process_time()
            Ordering(body, known).chosen()
            times[what].append(time.process_time() - start)
    for what, found in times.items():
        print(f"5 atoms, {what}: {min(found) * 1000:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a tenth of the data")
    parser.add_argument("--living", action="store_true", help="load a living engine instead")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--rules", type=int, default=0, metavar="N", help="plan N small rules instead")
    parser.add_argument("--planning", action="store_true", help="time the order of one body instead")
    asked = parser.parse_args()
    if asked.rules or asked.planning:
        if asked.rules:
            many_rules(asked.rules)
        if asked.planning:
            planning()
        return
    for case in CASES:
        if asked.only not in case.name:
            continue
        previous = 0.0
        for size in case.sizes:
            rows = case.data(size // 10 if asked.small else size)
            seconds, answers = _once(case.declarations + case.written, rows, asked.living)
            best, expected = _once(case.declarations + case.by_hand, rows, asked.living)
            assert answers == expected, (case.name, answers, expected)
            growth = f"{seconds / previous:5.2f} ×" if previous else "       "
            print(
                f"{case.name:28} {size:8} {seconds:8.3f} s   by hand {best:8.3f} s   "
                f"{seconds / best:6.2f} ×   growth {growth}",
                flush=True,
            )
            previous = seconds


if __name__ == "__main__":
    main()
