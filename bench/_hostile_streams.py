"""Streams that are expensive for first-order delta, for `promise.py`.

Each case has rules, facts of a size in which some values are *hubs* with many partners, and a
stream that toggles facts at those hubs: again and again, rarely among cheap ones, in turn, or while
hubs come and go.  A *benign* case has the same rules with random facts, whose values have few
partners.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

from _random_streams import Case, Facts, Row, Stream, Update


def arities(rules: str) -> dict[str, int]:
    """The relations of some rules, each with its number of columns."""
    found: dict[str, int] = {}
    depth, text = 0, ""
    for piece in rules.replace("!", " ").replace(":-", ",").replace(".", ",").replace("{", ",").replace("}", ","):
        depth += (piece == "(") - (piece == ")")
        text += "\0" if piece == "," and not depth else piece
    for part in text.split("\0"):
        name, _, rest = part.strip().partition("(")
        if rest and name.replace("_", "").isalnum():
            found[name] = rest.count(",") + 1
    return found


def declared(rules: str) -> str:
    """The rules with a declaration for each relation, all of whose columns are numbers."""
    columns = {name: ", ".join(f"c{i}:number" for i in range(k)) for name, k in arities(rules).items()}
    return "".join(f".decl {name}({found})\n" for name, found in columns.items()) + rules


# ── streams ──────────────────────────────────────────────────────────────────────────────────


def toggle(*updates: Update) -> Callable[[int], Stream]:
    """The same facts again and again, in order."""
    return lambda size: itertools.cycle(updates)


def rarely(update: Update, other: str, share: float, arity: int = 2) -> Callable[[int], Stream]:
    """One expensive fact among rows without partners."""

    def stream(size: int) -> Stream:
        draw = random.Random(5)
        while True:
            if draw.random() < share:
                yield update
            else:
                yield other, tuple(-1 - draw.randrange(50) for _ in range(arity))

    return stream


def every(number: int, update: Update, other: str) -> Callable[[int], Stream]:
    def stream(size: int) -> Stream:
        for n in itertools.count():
            yield update if n % number == 0 else (other, (-1 - n % 50, -1 - n % 47))

    return stream


def in_turn(rows: Callable[[int], list[Update]], order: str) -> Callable[[int], Stream]:
    """Facts that come and go: last in first out, first in first out, or at random."""

    def stream(size: int) -> Stream:
        given = rows(size)
        draw = random.Random(7)
        while True:
            yield from given
            if order == "random":
                for _ in range(4 * len(given)):
                    yield draw.choice(given)
            yield from reversed(given) if order == "lifo" else given

    return stream


def growing(relation: str, row: Callable[[int, int], tuple[int, ...]]) -> Callable[[int], Stream]:
    """Facts that only come."""
    return lambda size: ((relation, row(size, n)) for n in itertools.count())


# ── facts ────────────────────────────────────────────────────────────────────────────────────


def hubs(one: str = "s", other: str = "t", wide: int = 0) -> Callable[[int], Facts]:
    """Two hubs with half of all facts each, and no partner in common."""
    more = (0,) * wide

    def facts(size: int) -> Facts:
        half = size // 2
        return {
            one: [(0, 2 * n, *more) for n in range(half)],
            other: [(0, 2 * n + 1, *more) for n in range(half)],
        }

    return facts


def shared_hubs(size: int) -> Facts:
    """Two hubs with all partners in common: each toggle tells as many facts."""
    few = math.isqrt(size)
    return {"s": [(0, n) for n in range(few)], "t": [(0, n) for n in range(few)]}


def self_hubs(size: int) -> Facts:
    half = size // 2
    return {"e": [(0, 10 + 2 * n) for n in range(half)] + [(11 + 2 * n, 1) for n in range(half)]}


def self_squares(size: int) -> Facts:
    """Edges with many ways of two from 0, and many edges to 1, that do not meet."""
    part = size // 3
    out = [(0, 10 + 2 * n) for n in range(part)] + [(10 + 2 * n, 5) for n in range(part)]
    return {"e": out + [(11 + 2 * n, 1) for n in range(part)]}


def path(length: int, ends: bool = False) -> Callable[[int], Facts]:
    """Hubs at every other place of a path, whose last relation has nothing that fits."""

    def facts(size: int) -> Facts:
        part = size // length
        out: Facts = {}
        for n in range(2, length + 1):
            out[f"r{n}"] = [(0, m) if n % 2 == 0 else (m, 0) for m in range(part)]
        if not ends:
            last = out[f"r{length}"]
            out[f"r{length}"] = [(-5 - a, b) for a, b in last]
        return out

    return facts


def path_rule(length: int, head: str = "") -> str:
    names = "abcdefghij"
    body = ", ".join(f"r{n}({names[n - 1]}, {names[n]})" for n in range(1, length + 1))
    return f"q({head or ', '.join(names[: length + 1])}) :- {body}."


def cycle_rule(length: int) -> str:
    names = "abcdefghij"
    body = [f"r{n}({names[n - 1]}, {names[n % length]})" for n in range(1, length + 1)]
    return f"q({', '.join(names[:length])}) :- {', '.join(body)}."


def ring(length: int) -> Callable[[int], Facts]:
    """Hubs at every other place of a cycle; where it closes, no partners meet."""

    def facts(size: int) -> Facts:
        part = size // length
        out: Facts = {f"r{n}": [(0, m) if n % 2 == 0 else (m, 0) for m in range(part)] for n in range(2, length)}
        out[f"r{length}"] = [(part + m, 0) if length % 2 == 0 else (0, part + m) for m in range(part)]
        return out

    return facts


def dense_ways(length: int) -> Callable[[int], Facts]:
    """A cycle with far more ways than facts, from either side, that do not meet in the middle."""

    def facts(size: int) -> Facts:
        side, half = math.isqrt(size // length), length // 2 + 1
        square = [(a, b) for a in range(side) for b in range(side)]
        out: Facts = {f"r{n}": square for n in range(3, half + 1)}
        out |= {f"r{n}": [(a + side, b + side) for a, b in square] for n in range(half + 1, length)}
        out["r2"], out[f"r{length}"] = [(0, b) for b in range(side)], [(a + side, 0) for a in range(side)]
        return out

    return facts


def clique_rule(corners: int) -> str:
    names = "abcdefghij"
    pairs = list(itertools.combinations(range(corners), 2))
    body = [f"r{one}{other}({names[one]}, {names[other]})" for one, other in pairs]
    return f"q({', '.join(names[:corners])}) :- {', '.join(body)}."


def wheel(size: int) -> Facts:
    """Triangles with ten heavy values; the light ones are updated."""
    part = size // 20
    s = [(h, n) for h in range(10) for n in range(part)]
    t = [(n, 10**6 + n % 50) for n in range(part)]
    r = [(10**6 + k, 100 + k) for k in range(size // 4)]
    return {"s": s, "t": t, "r": r}


def light_of_wheel(size: int) -> Stream:
    part = size // 20
    for n in itertools.count():
        yield "t", (n % part, 10**6 + 7)


def cubes(size: int) -> Facts:
    """Loomis–Whitney: planes that do not meet."""
    part = size // 3
    return {
        "s": [(2 * n, 0, 0) for n in range(part)],
        "t": [(2 * n + 1, 0, 0) for n in range(part)],
        "u": [(3 * n, 0, 0) for n in range(part)],
    }


def corners(size: int) -> Facts:
    part = size // 4
    return {
        "r": [(0, 0, n) for n in range(part)],
        "a": [(n,) for n in range(1, part)],
        "b": [(n,) for n in range(part)],
        "c": [(-n,) for n in range(1, part)],
    }


def fans(size: int) -> Facts:
    return {"r": [(n, 0) for n in range(size // 2)] + [(n, 1) for n in range(size // 2)], "s": [(1,)]}


def chain(size: int) -> Facts:
    part = size // 3
    return {
        "r": [(n, 0) for n in range(part)],
        "s": [(0, n) for n in range(part)],
        "t": [(n, 0) for n in range(part)],
    }


def around_a_threshold(size: int) -> Stream:
    """A value whose degree rises and falls between √D / 4 and 4 √D, again and again."""
    root = math.isqrt(size)
    while True:
        for n in range(root // 4, 4 * root):
            yield "s", (0, 10**7 + n)
        for n in reversed(range(root // 4, 4 * root)):
            yield "s", (0, 10**7 + n)


def moving_hubs(size: int) -> Stream:
    """Hubs that come and go: each is built row by row, toggled for a while, and taken down."""
    width = math.isqrt(size)
    for hub in itertools.count(1):
        rows = [(name, (hub, 2 * n + k)) for n in range(width) for k, name in enumerate("st")]
        yield from rows
        yield from [("r", (hub, hub))] * (2 * width)
        yield from reversed(rows)


def tide(size: int) -> Stream:
    """The database grows to three times its size, and shrinks again."""
    while True:
        for _ in range(2):
            yield from (("s", (n % 97, 10**7 + n)) for n in range(2 * size))


def ends(size: int) -> Facts:
    """Paths of two between unary ends, with a hub on either side."""
    part = size // 2
    return {"s": [(0, n) for n in range(part)], "t": [(n + part, 0) for n in range(part)]}


def squares(size: int) -> Facts:
    """A cycle of four with hubs everywhere, whose middles do not meet."""
    part = size // 3
    return {
        "r2": [(0, n) for n in range(part)],
        "r3": [(n + part, n % 50) for n in range(part)],
        "r4": [(n % 50, 0) for n in range(part)] + [(n + size, 0) for n in range(part)],
    }


def hubs_that_swap(names: str, other: str) -> Callable[[int], Stream]:
    """A large hub is built, used and taken down, and then the next one."""

    def stream(size: int) -> Stream:
        width = size // 8
        for hub in itertools.count(1):
            rows = [(name, (hub, 2 * n + k)) for n in range(width) for k, name in enumerate(names.split())]
            yield from rows
            yield from [(other, (hub, hub))] * width
            yield from reversed(rows)

    return stream


def window(names: str, row: Callable[[random.Random, int], Row], part: int) -> Callable[[int], Stream]:
    """Facts come, and the oldest go: as many stay as a part of the size."""

    def stream(size: int) -> Stream:
        draw, held = random.Random(8), dict[Update, None]()
        while True:
            new = draw.choice(names.split()), row(draw, size)
            if new not in held:
                held[new] = None
                yield new
            if len(held) > size // part:
                oldest = next(iter(held))
                del held[oldest]
                yield oldest

    return stream


def beside_a_hub(draw: random.Random, size: int) -> Row:
    other = draw.randrange(size)
    return draw.choice([(0, other), (0, other), (other, 0), (other, 0), (other, draw.randrange(size))])


def by_power_law(draw: random.Random, size: int) -> Row:
    return int(size ** draw.random()), int(size ** draw.random())


def one_side_of_a_triangle(size: int) -> Facts:
    """Many paths of two, none of which closes."""
    part = range(size // 3)
    return {"r": [(n, 0) for n in part], "s": [(0, 2 * n) for n in part], "t": [(n, 2 * n + 1) for n in part]}


def ten_hubs(size: int) -> Facts:
    half = range(size // 2)
    return {"s": [(n % 10, 2 * n) for n in half], "t": [(n % 10, 2 * n + 1) for n in half]}


def comb(size: int) -> Facts:
    part = range(size // 6)
    into, out = [(n, 0) for n in part], [(0, n) for n in part]
    return {"r1": into, "r2": out, "r3": into, "r4": out, "p": out, "o": into}


TRIANGLE = "q(a, b, c) :- r(a, b), s(b, c), t(a, c)."
R00: Update = ("r", (0, 0))
BATCHED = in_turn(lambda size: [("r", (0, n)) for n in range(40)], "lifo")
LARGE_BATCHES = in_turn(lambda size: [(name, (n % 7, 10**6 + n)) for n in range(90) for name in "rst"], "random")

CASES = [
    Case(
        "triangle, self-join, two hubs",
        "t(x, y, z) :- e(x, y), e(y, z), e(z, x).",
        self_hubs,
        toggle(("e", (1, 0))),
    ),
    Case(
        "triangle, self-join, hub 1 of 5",
        "t(x, y, z) :- e(x, y), e(y, z), e(z, x).",
        self_hubs,
        rarely(("e", (1, 0)), "e", 0.2),
    ),
    Case("triangle, two hubs", TRIANGLE, hubs(), toggle(R00)),
    Case("triangle, hub 1 of 6", TRIANGLE, hubs(), every(6, R00, "r")),
    Case("triangle, hub 1 of 5", TRIANGLE, hubs(), every(5, R00, "s")),
    Case("triangle, hub 1 of 3", TRIANGLE, hubs(), every(3, R00, "t")),
    Case("triangle, hub 15 % at random", TRIANGLE, hubs(), rarely(R00, "r", 0.15)),
    Case("triangle, hub 1 % at random", TRIANGLE, hubs(), rarely(R00, "r", 0.01)),
    Case("triangle, with answers", TRIANGLE, shared_hubs, toggle(R00)),
    Case(
        "triangle, LIFO",
        TRIANGLE,
        hubs(),
        in_turn(lambda size: [("r", (0, 0)), ("s", (0, 1)), ("t", (0, 2)), ("r", (0, 5))], "lifo"),
    ),
    Case(
        "triangle, FIFO",
        TRIANGLE,
        hubs(),
        in_turn(lambda size: [("r", (0, 0)), ("s", (0, 1)), ("t", (0, 2)), ("r", (0, 5))], "fifo"),
    ),
    Case(
        "triangle, random toggles",
        TRIANGLE,
        hubs(),
        in_turn(lambda size: [("r", (0, 0)), ("r", (0, 5)), ("s", (7, 1)), ("t", (7, 9))], "random"),
    ),
    Case("triangle, in batches of 10", TRIANGLE, hubs(), BATCHED, batch=10),
    Case("triangle, ten heavy values", TRIANGLE.replace("t(a, c)", "t(c, a)"), wheel, light_of_wheel),
    Case(
        "triangle with wildcards",
        "q(a, b, c) :- r(a, b, _), s(b, c, _), t(a, c, _).",
        hubs(wide=1),
        toggle(("r", (0, 0, 0))),
    ),
    Case(
        "triangle with constants",
        "q(a, b, c) :- r(a, b, 7), s(b, c, 0), t(a, c, 0).",
        hubs(wide=1),
        toggle(("r", (0, 0, 7))),
    ),
    Case(
        "triangle of derived atoms",
        "s(b, c) :- x(b, c), c >= 0. t(a, c) :- y(a, c), a >= 0. " + TRIANGLE,
        hubs("x", "y"),
        toggle(R00),
    ),
    Case("triangle, negated", TRIANGLE.replace("t(a, c)", "t(a, c), !u(a)"), hubs(), toggle(R00)),
    Case("triangle, filtered", TRIANGLE.replace("t(a, c)", "t(a, c), a + b < c"), hubs(), toggle(R00)),
    Case(
        "triangle that feeds a recursion",
        TRIANGLE + " p(a, b) :- q(a, b, _). p(a, c) :- p(a, b), q(b, c, _).",
        hubs(),
        toggle(R00),
    ),
    Case("triangle that is counted", "q(n) :- n = count : { r(a, b), s(b, c), t(a, c) }.", hubs(), toggle(R00)),
    Case(
        "triangle that is counted, with answers",
        "q(n) :- n = count : { r(a, b), s(b, c), t(a, c) }.",
        lambda size: {name: [(0, n) for n in range(size // 2)] for name in "st"},
        toggle(R00),
    ),
    Case(
        "triangle that is summed, per value",
        "q(a, n) :- k(a), n = sum c : { r(a, b), s(b, c), t(a, c) }.",
        lambda size: {"k": [(0,)], **{name: [(0, n) for n in range(size // 2)] for name in "st"}},
        toggle(R00),
    ),
    Case(
        "greatest value per hub",
        "q(b, n) :- k(b), n = max x : { r(a, b), s(b, x) }.",
        lambda size: {
            "k": [(b,) for b in range(4)],
            "r": [(n, n % 4) for n in range(size // 2)],
            "s": [(n % 4, n) for n in range(size // 2)],
        },
        toggle(("r", (-1, 0)), ("s", (1, 10**7)), ("s", (2, -1))),
    ),
    Case(
        "sum over one relation, per key that comes and goes",
        "q(b, n) :- n = sum x : { k(b), s(b, x) }, k(b).",
        lambda size: {"s": [(0, n) for n in range(size)]},
        toggle(("k", (0,))),
    ),
    Case("triangle, head hides two", "q(a) :- r(a, b), s(b, c), t(a, c).", hubs(), toggle(R00)),
    Case(
        "Loomis–Whitney 4",
        "q(a, b, c, d) :- r(b, c, d), s(a, c, d), t(a, b, d), u(a, b, c).",
        cubes,
        toggle(("r", (0, 0, 0))),
    ),
    Case("three unary corners", "q(x, y, z) :- r(x, y, z), a(x), b(y), c(z).", corners, toggle(("a", (0,)))),
    Case("3-path, dead end", path_rule(3), path(3), toggle(("r1", (0, 0)))),
    Case("3-path, self-join", "q(x, y, z, w) :- e(x, y), e(y, z), e(z, w).", self_hubs, toggle(("e", (-7, 0)))),
    Case("4-path, dead end", path_rule(4), path(4), toggle(("r1", (0, 0)))),
    Case("5-path, dead end", path_rule(5), path(5), toggle(("r1", (0, 0)))),
    Case("5-path, dead end, random", path_rule(5), path(5), rarely(("r1", (0, 0)), "r1", 0.3)),
    Case("7-path, dead end", path_rule(7), path(7), toggle(("r1", (0, 0)))),
    Case(
        "5-path, facts only come",
        path_rule(5),
        path(5),
        growing("r1", lambda size, n: (n, 0)),
    ),
    Case("3-path, facts only come", path_rule(3), path(3), growing("r1", lambda size, n: (n, 0))),
    Case("4-cycle", cycle_rule(4), ring(4), toggle(("r1", (0, 0)))),
    Case("5-cycle", cycle_rule(5), ring(5), toggle(("r1", (0, 0)))),
    Case("6-cycle", cycle_rule(6), ring(6), toggle(("r1", (0, 0)))),
    Case("7-cycle", cycle_rule(7), ring(7), toggle(("r1", (0, 0)))),
    Case("9-cycle, dense", cycle_rule(9), dense_ways(9), toggle(("r1", (0, 0)))),
    Case(
        "K5",
        clique_rule(5),
        lambda size: {
            **{f"r{n}": [(0, m) for m in range(size // 10)] for n in ("02", "03", "04", "12", "13", "14")},
            **{f"r{n}": [(m, -1 - m) for m in range(size // 10)] for n in ("23", "24", "34")},
        },
        toggle(("r01", (0, 0))),
    ),
    Case(
        "two triangles with an edge in common",
        "q(a, b, c, d) :- r(a, b), s(b, c), t(a, c), u(b, d), v(a, d).",
        lambda size: {**hubs("s", "t")(size // 2), **hubs("u", "v")(size // 2)},
        toggle(R00),
    ),
    Case(
        "2-path between unary ends",
        "q(a, b) :- r(a), s(a, b), t(b).",
        lambda size: {"s": [(0, n) for n in range(size)]},
        toggle(("r", (0,))),
    ),
    Case("3-path, head hides three", "q(a) :- r(a, b), s(b, c), t(c, d).", chain, toggle(("t", (0, 1)))),
    Case("3-path, head hides three, middle", "q(a) :- r(a, b), s(b, c), t(c, d).", chain, toggle(("s", (0, 0)))),
    Case("2-path, head hides the middle", "q(a) :- r(a, b), s(b).", fans, toggle(("s", (0,)))),
    Case(
        "product, head hides the middle",
        "q(a, c) :- r(a, b), s(b, c).",
        lambda size: {"r": [(n, 0) for n in range(size)]},
        toggle(("s", (0, 1))),
    ),
    Case(
        "hierarchical star",
        "q(c) :- k(c), o(c, x), p(c, y).",
        lambda size: {
            "k": [(0,)],
            "o": [(0, n) for n in range(size // 2)],
            "p": [(0, n) for n in range(size // 2)],
        },
        toggle(("o", (0, 0)), ("k", (0,)), ("p", (0, 0))),
    ),
    Case(
        "star, head shows a branch",
        "q(c, y) :- o(c, x), p(c, y).",
        lambda size: {"o": [(0, n) for n in range(size // 2)], "p": [(0, n) for n in range(size // 2)]},
        toggle(("o", (0, 0))),
    ),
    Case(
        "sum per hub",
        "q(b, n) :- k(b), n = sum x : { r(a, b), s(b, x) }.",
        lambda size: {
            "k": [(0,)],
            "r": [(n, 0) for n in range(size // 2)],
            "s": [(0, n) for n in range(size // 2)],
        },
        toggle(("r", (-1, 0))),
    ),
    Case(
        "2-path, all told",
        "q(a, b, c) :- r(a, b), s(b, c).",
        lambda size: {"s": [(0, n) for n in range(64)], "r": [(n, 1) for n in range(size)]},
        toggle(R00),
    ),
    Case("triangle, around a threshold", TRIANGLE, hubs(), around_a_threshold),
    Case("triangle, hubs that move", TRIANGLE, hubs(), moving_hubs),
    Case("triangle, a tide", TRIANGLE, hubs(), tide),
    Case(
        "triangle over two layers",
        "s(b, c) :- x(b, c), y(c). t(a, c) :- s2(a, c), !z(a). s2(a, c) :- w(a, c), a >= 0. " + TRIANGLE,
        lambda size: {**hubs("x", "w")(size), "y": [(2 * n,) for n in range(size // 2)]},
        toggle(R00),
    ),
    Case(
        "several rules for one head",
        "q(a, b, c) :- r(a, b), s(b, c), t(a, c). q(a, b, c) :- r(b, a), s(a, c), t(b, c), a < c. "
        "q(a, b, 7) :- r(a, b), s(b, 7), t(a, 7).",
        hubs(),
        toggle(R00),
    ),
    Case(
        "triangle with a comparison between atoms",
        "q(a, b, c) :- r(a, b), s(b, c), t(a, c), b < c, a != c.",
        hubs(),
        toggle(R00),
    ),
    Case(
        "triangle of wide atoms",
        "q(a, b, c, x, y, z) :- r(a, b, x), s(b, c, y), t(a, c, z).",
        hubs(wide=1),
        toggle(("r", (0, 0, 0))),
    ),
    Case("triangle, in batches of 100", TRIANGLE, hubs(), LARGE_BATCHES, batch=100),
    Case(
        "path between unary ends",
        "q(a, b, c) :- r(a), s(a, b), t(b, c), u(c).",
        ends,
        toggle(("r", (0,)), ("u", (0,))),
    ),
    Case("4-cycle, hubs everywhere", cycle_rule(4), squares, toggle(("r1", (0, 0)))),
    Case(
        "4-cycle, self-join",
        "q(x, y, z, w) :- e(x, y), e(y, z), e(z, w), e(w, x).",
        self_squares,
        toggle(("e", (1, 0))),
    ),
    Case(
        "triangle with a unary end",
        "q(a, b, c) :- r(a, b), s(b, c), t(a, c), u(c).",
        hubs(),
        toggle(R00, ("u", (1,)), ("u", (2,))),
    ),
    Case(
        "triangle with five unary atoms",
        "q(a, b, c) :- r(a, b), s(b, c), t(a, c), u(a), v(b), w(c), x(a), y(b).",
        lambda size: {**hubs()(size), **{name: [(n,) for n in range(size // 8)] for name in "uvwxy"}},
        toggle(("r", (0, 0)), ("u", (0,)), ("y", (0,))),
    ),
    Case(
        "star with a wide centre",
        "q(a, b, c, d) :- r(a, b, c, d), s(a, b), t(b, c), u(b, d).",
        lambda size: {"r": [(0, 0, n, n) for n in range(size // 2)], "t": [(0, -n) for n in range(1, size // 2)]},
        toggle(("s", (0, 0))),
    ),
    Case(
        "K4",
        "q(a, b, c, d) :- r(a, b), s(a, c), t(a, d), u(b, c), v(b, d), w(c, d).",
        lambda size: {
            **{name: [(0, n) for n in range(size // 5)] for name in "stuv"},
            "w": [(n, -1 - n) for n in range(size // 5)],
        },
        toggle(R00),
    ),
    Case(
        "two triangles with a corner in common",
        "q(a, b, c, d, f) :- r(a, b), s(b, c), t(a, c), u(a, d), v(d, f), w(a, f).",
        lambda size: {
            "s": [(0, 2 * n) for n in range(size // 5)],
            **{name: [(0, 2 * n + 1) for n in range(size // 5)] for name in "tuw"},
            "v": [(2 * n + 1, 2 * n) for n in range(size // 5)],
        },
        toggle(R00, ("u", (0, -1))),
    ),
    Case(
        "a flag beside a triangle",
        "q(a, b, c) :- f(0), r(a, b), s(b, c), t(a, c).",
        one_side_of_a_triangle,
        toggle(("f", (0,))),
    ),
    Case(
        "a product with a triangle",
        "q(a, b, c, d) :- r(a, b), s(b, c), t(a, c), u(d).",
        one_side_of_a_triangle,
        toggle(("u", (0,))),
    ),
    Case(
        "triangle, ten hubs in batches of 100",
        TRIANGLE,
        ten_hubs,
        lambda size: itertools.cycle([("r", (a, b)) for a in range(10) for b in range(10)]),
        batch=100,
    ),
    Case(
        "4-path, in batches of 20",
        path_rule(4),
        path(4),
        in_turn(lambda size: [("r1", (n, 0)) for n in range(40)], "random"),
        batch=20,
    ),
    Case("triangle, sliding window with a hub", TRIANGLE, lambda size: {}, window("r s t", beside_a_hub, 2)),
    Case(
        "4-cycle, sliding window by a power law",
        cycle_rule(4),
        lambda size: {},
        window("r1 r2 r3 r4", by_power_law, 4),
    ),
    Case("K4, hubs that swap", clique_rule(4), lambda size: {}, hubs_that_swap("r02 r03 r12 r13", "r01")),
    Case(
        "comb of eight",
        "q(a, b, c, d, f, x, y, z) :- r1(a, b), r2(b, c), r3(c, d), r4(d, f), p(b, x), o(c, y), l(d, z), k(f).",
        comb,
        toggle(("l", (0, 0)), ("r1", (5, 0))),
    ),
    Case(
        "a count as an atom",
        "n(a, x) :- k(a), x = count : { o(a, _) }. q(a, b, c) :- n(a, b), s(b, c), t(a, c).",
        lambda size: {
            "k": [(0,)],
            "s": [(n % 3, 10 + 2 * n) for n in range(size // 2)],
            "t": [(0, 11 + 2 * n) for n in range(size // 2)],
        },
        toggle(("o", (0, 0)), ("o", (0, 1))),
    ),
    Case(
        "5-path, a delete now and then",
        path_rule(5),
        path(5),
        lambda size: (("r1", (n, 0)) if n % 100 else ("r2", (0, n // 100 % 50)) for n in itertools.count(1)),
    ),
]


# ── the same rules with benign data ──────────────────────────────────────────────────────────


def base_relations(rules: str) -> dict[str, int]:
    """The relations that no rule derives, each with its number of columns."""
    heads = {rule.partition("(")[0].strip() for rule in rules.split(". ")}
    return {name: columns for name, columns in arities(rules).items() if name not in heads}


def benign(case: Case) -> Case:
    """Random facts over as many values as there are facts of a relation; some come, some go."""
    relations = base_relations(case.rules)

    def drawn(draw: random.Random, size: int) -> Update:
        name = draw.choice(list(relations))
        return name, tuple([draw.randrange(max(1, size // len(relations))) for _ in range(relations[name])])

    def facts(size: int) -> Facts:
        draw = random.Random(1)
        found: dict[str, set[Row]] = {name: set() for name in relations}
        for _ in range(size):
            name, row = drawn(draw, size)
            found[name].add(row)
        return {name: sorted(rows) for name, rows in found.items()}

    def stream(size: int) -> Stream:
        draw = random.Random(2)
        there = [(name, row) for name, rows in facts(size).items() for row in rows]
        known = set(there)
        while True:
            new = drawn(draw, size)
            if draw.random() < 0.5 and there:
                place = draw.randrange(len(there))
                there[place], there[-1] = there[-1], there[place]
                known.remove(there[-1])
                yield there.pop()
            elif new not in known:
                known.add(new)
                there.append(new)
                yield new

    return Case(f"benign: {case.name}", case.rules, facts, stream)


BENIGN = [benign(case) for case in {case.rules: case for case in reversed(CASES)}.values()]
