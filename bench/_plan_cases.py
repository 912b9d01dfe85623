"""Rules that bad plans make slow, each with the best form that one would write by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from attrs import frozen

Rows = Mapping[str, list[tuple[Any, ...]]]


@frozen
class Case:
    """A rule as a user would write it, and the same answer by rules that are split by hand."""

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


def _shop(n: int) -> Rows:
    random = Random(12)
    customers, products = n // 20, n // 50
    columns = (
        _zipfian(random, n, customers, 0.8),
        _zipfian(random, n, products, 1.0),
        [random.randrange(200) for _ in range(n)],
        [random.randrange(1000) for _ in range(n)],
    )
    return {
        "sale": [(i, *row) for i, row in enumerate(zip(*columns, strict=True))],
        "cust": [
            (c, random.choice(["gold", "std", "std", "std", "new"]), random.randrange(30))
            for c in range(customers)
        ],
        "prod": [(p, p % 40, random.randrange(500)) for p in range(products)],
        "store": [(s, s % 25) for s in range(200)],
        "region": [(r, "north" if r == 3 else "other") for r in range(25)],
        "kind": [(k, f"k{k}") for k in range(40)],
    }


def _people(n: int) -> Rows:
    random = Random(13)
    people = n // 10
    follows = zip(_zipfian(random, n, people, 0.8), _zipfian(random, n, people, 0.8), strict=True)
    return {
        "f": list(dict.fromkeys(follows)),
        "city": [(a, f"c{a % 200}") for a in range(people)],
        "age": [(a, random.randrange(80)) for a in range(people)],
        "vip": [(a,) for a in range(people - 20, people)],
    }


def _hubs(n: int) -> Rows:
    random = Random(14)
    nodes = n // 10
    edges = zip(_zipfian(random, n, nodes, 1.0), _zipfian(random, n, nodes, 1.0), strict=True)
    return {
        "e": list(dict.fromkeys(edges)),
        "a": [(nodes - i,) for i in range(1, 30)],
        "b": [(nodes // 2 + i,) for i in range(30)],
    }


def _steps(n: int) -> Rows:
    random = Random(15)
    nodes = n // 2
    return {
        "src": [(i,) for i in range(20)],
        "lab": [(i, i % 1000) for i in range(nodes)],
        "par": [(i, i // 3) for i in range(1, nodes)],
        "own": [(i, random.randrange(100)) for i in range(nodes)],
    }


def _chain(n: int) -> Rows:
    random = Random(16)
    values = n // 4
    found: dict[str, list[tuple[Any, ...]]] = {
        f"r{i}": [*zip(_zipfian(random, n, values, 0.4), _zipfian(random, n, values, 0.4), strict=True)]
        for i in range(5)
    }
    return found | {"s": [(v,) for v in range(values - 60, values)], "dim": [(v, v % 10) for v in range(values)]}


_SHOP = """.decl sale(i:number, c:number, p:number, s:number, x:number)  .decl cust(c:number, k:symbol, a:number)
.decl prod(p:number, k:number, x:number)  .decl store(s:number, r:number)  .decl region(r:number, n:symbol)
.decl kind(k:number, n:symbol)
"""
_PEOPLE = """.decl f(a:number, b:number)  .decl city(a:number, c:symbol)  .decl age(a:number, x:number)
.decl vip(a:number)
"""

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
    Case(
        "filters on dimensions",
        _SHOP + ".decl g(c:number)  .decl m(p:number)  .decl st(s:number)  .decl q(i:number, x:number)\n",
        """q(i, x) :- sale(i, c, p, s, x), cust(c, "gold", _), prod(p, k, _), kind(k, "k7"), store(s, r),
  region(r, "north").""",
        """g(c) :- cust(c, "gold", _).
m(p) :- kind(k, "k7"), prod(p, k, _).
st(s) :- region(r, "north"), store(s, r).
q(i, x) :- st(s), sale(i, c, p, s, x), m(p), g(c).""",
        _shop,
        (50_000, 100_000, 200_000),
    ),
    Case(
        "sum by group with filters",
        _SHOP + ".decl b(k:number, i:number, x:number)  .decl q(k:number, t:number)\n",
        """q(k, t) :- kind(k, _), t = sum x : { prod(p, k, y), y > 100, sale(i, c, p, s, x), x > 200,
  cust(c, "gold", _) }.""",
        """b(k, i, x) :- sale(i, c, p, _, x), x > 200, prod(p, k, y), y > 100, cust(c, "gold", _).
q(k, t) :- kind(k, _), t = sum x : { b(k, _, x) }.""",
        _shop,
        (50_000, 100_000, 200_000),
    ),
    Case(
        "sum in a head",
        _SHOP + ".decl b(n:symbol, i:number, x:number)  .decl q(n:symbol, t:number)\n",
        """q(n, sum(x)) :- kind(k, n), prod(p, k, _), sale(_, c, p, s, x), store(s, r), region(r, "north"),
  cust(c, "gold", _).""",
        """b(n, i, x) :- region(r, "north"), store(s, r), sale(i, c, p, s, x), cust(c, "gold", _),
  prod(p, k, _), kind(k, n).
q(n, sum(x)) :- b(n, i, x).""",
        _shop,
        (50_000, 100_000, 200_000),
    ),
    Case(
        "count per pair of cities",
        _PEOPLE
        + """.decl g(x:symbol, y:symbol, a:number, b:number)  .decl k(x:symbol)
.decl q(x:symbol, y:symbol, n:number)
""",
        """q(x, y, n) :- city(_, x), city(_, y), x != y,
  n = count : { f(a, b), city(a, x), city(b, y), age(a, u), age(b, v), u > v }, n > 5.""",
        """g(x, y, a, b) :- f(a, b), age(a, u), age(b, v), u > v, city(a, x), city(b, y).
k(x) :- city(_, x).
q(x, y, n) :- k(x), k(y), x != y, n = count : { g(x, y, _, _) }, n > 5.""",
        _people,
        (15_000, 30_000, 60_000),
    ),
    Case(
        "a condition by itself",
        _PEOPLE + ".decl there(x:number)  .decl q(a:number)\n",
        "q(a) :- age(a, _), f(b, c), age(b, x), age(c, y), x = y + 400.",
        "there(1) :- f(b, c), age(b, x), age(c, y), x = y + 400.\nq(a) :- age(a, _), there(_).",
        _people,
        (25_000, 50_000, 100_000),
    ),
    Case(
        "a chain with few ends",
        """.decl e(x:number, y:number)  .decl a(x:number)  .decl b(x:number)
.decl k(x:number, y:number)  .decl l(x:number, y:number)  .decl q(x:number, y:number)
""",
        "q(x, u) :- e(x, y), e(y, z), e(z, t), e(t, u), a(u), b(x).",
        """k(z, u) :- a(u), e(t, u), e(z, t).
l(x, z) :- b(x), e(x, y), e(y, z).
q(x, u) :- l(x, z), k(z, u).""",
        _hubs,
        (10_000, 20_000, 40_000),
    ),
    Case(
        "recursion over a join",
        """.decl src(x:number)  .decl lab(x:number, k:number)  .decl par(x:number, y:number)
.decl own(x:number, o:number)  .decl st(x:number, y:number)  .decl r(x:number, y:number)  .decl q(x:number)
""",
        """r(x, x) :- src(x).
r(x, w) :- r(x, y), lab(y, k), lab(z, k), par(z, w), own(w, 9), own(y, b), b < 50.
q(w) :- r(_, w).""",
        """st(y, w) :- own(w, 9), par(z, w), lab(z, k), lab(y, k), own(y, b), b < 50.
r(x, x) :- src(x).
r(x, w) :- r(x, y), st(y, w).
q(w) :- r(_, w).""",
        _steps,
        (20_000, 40_000, 80_000),
    ),
    Case(
        "twelve atoms",
        "".join(f".decl r{i}(x:number, y:number)  " for i in range(5))
        + """.decl s(x:number)  .decl dim(x:number, y:number)  .decl k(x:number)  .decl l(x:number, y:number)
.decl q(x:number, y:number)
""",
        """q(a, l) :- r0(a, b), r1(b, c), r2(c, d), r3(d, e), dim(e, 5), dim(b, j), dim(c, k), dim(d, l), j < k,
  s(e), r4(e, f), dim(f, m), s(g), dim(g, m), r0(g, h).""",
        """k(e) :- s(e), dim(e, 5), r4(e, f), dim(f, m), dim(g, m), s(g), r0(g, _).
l(c, y) :- k(e), r3(d, e), r2(c, d), dim(d, y).
q(a, y) :- l(c, y), r1(b, c), dim(b, j), dim(c, k), j < k, r0(a, b).""",
        _chain,
        (20_000, 40_000, 80_000),
    ),
]
