"""What `explain` prints against what happens: hostile streams through `Database`.

For each stream: the printed exponent, the fitted slope of the counted work and of CPU time per
update, and whether both hold (work: at most 0.15 above what is printed; time: 0.25, for caches).
Facts that are told count as updates: their readers pay for them.  Sizes are powers of two; each
stream first runs until its rules have had time to move.

With `--random N`, N rules and streams are made up instead, from `--seed` on; those whose answers
take too long are left out.

    python -P bench/promise.py [--small] [--only TEXT] [--least 10] [--most 16] [--seconds 2]
    python -P bench/promise.py --random 100 [--seed 1] --least 9 --most 13 [--seconds 2]
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import signal
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _random_streams import Case, Facts, Stream, Update, random_case

from everlog import Database

WORK, TIME = 0.15, 0.25  # how far a slope may be above what is printed


def declared(rules: str) -> str:
    """The rules with a declaration for each relation, all of whose columns are numbers."""
    from everlog.dsl.check import compile_text  # only here: the bench is also run by hand

    arities: dict[str, int] = {}
    depth, text = 0, ""
    for piece in rules.replace("!", " ").replace(":-", ",").replace(".", ",").replace("{", ",").replace("}", ","):
        depth += (piece == "(") - (piece == ")")
        text += "\0" if piece == "," and not depth else piece
    for part in text.split("\0"):
        name, _, rest = part.strip().partition("(")
        if rest and name.replace("_", "").isalnum():
            arities[name] = rest.count(",") + 1
    decls = "".join(f".decl {n}({', '.join(f'c{i}:number' for i in range(k))})\n" for n, k in arities.items())
    compile_text(decls + rules)
    return decls + rules


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


def dense(relation: str, arity: int = 2) -> Callable[[int], Facts]:
    def facts(size: int) -> Facts:
        side = math.isqrt(size)
        return {relation: [(a, b) for a in range(side) for b in range(side)]}

    return facts


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


TRIANGLE = "q(a, b, c) :- r(a, b), s(b, c), t(a, c)."
R00: Update = ("r", (0, 0))
BATCHED = in_turn(lambda size: [("r", (0, n)) for n in range(40)], "lifo")

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
            "k": [(0,)],
            "r": [(n, 0) for n in range(size // 2)],
            "s": [(0, n) for n in range(size // 2)],
        },
        toggle(("r", (-1, 0))),
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
    Case("4-cycle", cycle_rule(4), path(4), toggle(("r1", (0, 0)))),
    Case("5-cycle", cycle_rule(5), path(5), toggle(("r1", (0, 0)))),
    Case("6-cycle", cycle_rule(6), path(6), toggle(("r1", (0, 0)))),
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
    Case("triangle, in batches of 100", TRIANGLE, hubs(), BATCHED, batch=100),
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
        self_hubs,
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
]


# ── measuring ────────────────────────────────────────────────────────────────────────────────


def work_of(db: Database) -> int:
    return sum(rule.work for rule in db.stats().rules)


def played(
    db: Database, stream: Stream, on: set[Update], number: int, seconds: float, batch: int, least: int = 1
) -> tuple[int, int]:
    """Toggle facts, up to a number or a time, and at least a few; how many, and facts told."""
    done = told = 0
    start = time.process_time()
    while done < number and (done < least or time.process_time() - start < seconds):
        part = list(itertools.islice(stream, batch))
        if batch == 1:
            name, row = part[0]
            changes = (db.delete if part[0] in on else db.insert)(name, row)
        else:
            with db.transaction():
                for update in part:
                    (db.delete if update in on else db.insert)(*update)
            changes = {}
        for update in part:
            on ^= {update}
        done += len(part)
        told += sum(len(changes[name]) for name in changes) - len(part)
    return done, max(0, told)


def measured(case: Case, size: int, seconds: float) -> tuple[float, float, Fraction | None, str]:
    """Work and microseconds for one update, what is printed, and the strategies at the end."""
    facts = case.facts(size)
    db = Database.from_text(declared(case.rules), facts=facts)
    on = {(name, row) for name, rows in facts.items() for row in rows}
    stream = case.stream(size)
    played(db, stream, on, 6000, seconds, case.batch, least=100)
    before = work_of(db)
    start = time.process_time()
    done, told = played(db, stream, on, 2000, seconds, case.batch)
    taken = time.process_time() - start
    work = work_of(db) - before
    rules = db.explanation()["rules"]
    printed = [rule["in_use"]["exponent"] for rule in rules]  # none of a recursive rule
    exponent = max((Fraction(text) for text in printed if text is not None), default=None)
    used = [use for rule in rules for use in (rule["in_use"], *rule["in_use"]["parts"])]
    now = {use["strategy"] for use in used} - {"flow", "delta"}
    per = done + told
    return max(1.0, work / per), taken / per * 1e6, exponent, " ".join(sorted(now)) or "delta"


def slope(sizes: list[int], values: list[float]) -> float:
    """Of the line through the logarithms, by least squares."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="sizes 2^8 to 2^11: to see that it runs")
    parser.add_argument("--only", default="", help="streams whose name has this text")
    parser.add_argument("--least", type=int, default=10)
    parser.add_argument("--most", type=int, default=16)
    parser.add_argument("--by", type=int, default=2, help="between two powers")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each of two parts of a stream")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="that many random rules instead")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    least, most, by = (8, 11, 1) if asked.small else (asked.least, asked.most, asked.by)
    sizes = [2**power for power in range(least, most + 1, by)]
    seconds = 0.2 if asked.small else asked.seconds
    print(f"{'stream':<40} {'printed':>8} {'work':>6} {'time':>6}  {'µs at each size':<34} in use")
    if asked.random:
        cases = [random_case(seed) for seed in range(asked.seed, asked.seed + asked.random)]
        verdicts = [held(case, sizes, seconds, patience=20) for case in cases if case is not None]
    else:
        verdicts = [held(case, sizes, seconds) for case in CASES if asked.only in case.name]
    found = [verdict for verdict in verdicts if verdict is not None]
    print(f"{sum(found)} of {len(found)} streams hold")
    if not all(found) and not asked.small:
        sys.exit(1)


class Impatient(Exception):
    """A random rule has too many answers."""


def held(case: Case, sizes: list[int], seconds: float, patience: int = 0) -> bool | None:
    """Whether a stream keeps what is printed; None if it took too long.  Random rules are held to
    steps alone, for their streams are short.
    """

    def give_up(*_: object) -> None:
        raise Impatient

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, patience)
    try:
        rows = [measured(case, size, seconds) for size in sizes]
    except Exception as error:  # wherever it was raised, an engine may be broken by it
        if patience and (isinstance(error, Impatient) or isinstance(error.__context__, Impatient)):
            return None
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    exponent = rows[-1][2]
    works, times = (slope(sizes, [row[n] for row in rows]) for n in (0, 1))
    if patience:  # the last step, too: constants weigh less
        works = min(works, slope(sizes[-2:], [row[0] for row in rows[-2:]]))
    holds = exponent is None or (works <= exponent + WORK and (patience > 0 or times <= exponent + TIME))
    shown = " ".join(f"{row[1]:.0f}" if row[1] >= 10 else f"{row[1]:.1f}" for row in rows)
    printed = "none" if exponent is None else str(exponent)
    verdict = "holds" if holds else "does not hold"
    line = f"{case.name:<40} {printed:>8} {works:6.2f} {times:6.2f}  {shown:<34} {rows[-1][3]}; {verdict}"
    print(line, flush=True)
    return holds


if __name__ == "__main__":
    main()
