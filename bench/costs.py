"""The cost of updates in counted steps, against the bound of each class.

Views count their own steps (look-ups, values visited, entries changed), so the counts are the same
on every machine.  Each line has them for growing sizes; a slope is that of the least-squares line
through the logarithms.

    hierarchical   R(a,b,c), S(a,b,d), T(a,e): steps of one update; few values of a, large totals
    against hand   R(a,b), S(a,c): the engine against hand-written triggers, seconds of one run
    acyclic        the 3-path, inserts only, hubs in the middle: steps of one insert, amortized
    cyclic         triangle and Loomis–Whitney 4 on complete relations, whose answers reach the
                   AGM bound; and the triangle on hubs: total steps
    delay          the most steps between two answers, of all answers and of those with one row

    python -P bench/costs.py [--small] [--most 1000000] [--steps 100000]
"""

from __future__ import annotations

import itertools
import math
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import at_most, by_turns, fail, options, ratio_of, slope

from everlog import Database
from everlog.core.classify.covers import agm_bound
from everlog.core.classify.query import Query
from everlog.core.classify.widths import fractional_hypertree_width
from everlog.core.joins.join_strategies import view_of
from everlog.core.joins.view import Asked, JoinView

Row = tuple[int, ...]
Stream = Iterable[tuple[int, Row]]

HIERARCHICAL = Query.of("R(a, b, c)", "S(a, b, d)", "T(a, e)")
PATH = Query.of("R(a, b)", "S(b, c)", "T(c, d)")
TRIANGLE = Query.of("R(a, b)", "S(b, c)", "T(a, c)")
LW4 = Query.of("R(b, c, d)", "S(a, c, d)", "T(a, b, d)", "U(a, b, c)")
TWO_TRIANGLES = Query.of("R(a, b)", "S(b, c)", "T(a, c)", "U(b, d)", "V(c, d)")


# ── streams ──────────────────────────────────────────────────────────────────────────────────


def few_tops(size: int) -> Iterator[tuple[int, Row]]:
    """Rows of the hierarchical query: ten values of a, a hundred of b, others unique."""
    draw = random.Random(1)
    for n in range(size):
        a, b = draw.randrange(10), draw.randrange(100)
        atom = draw.randrange(3)
        yield atom, (a, n) if atom == 2 else (a, b, n)


def hub_path(size: int) -> Iterator[tuple[int, Row]]:
    """R and T meet S in few hubs, in random order: S enables many answers, each once."""
    draw = random.Random(2)
    hubs = max(2, math.isqrt(size) // 4)
    for n in range(size):
        atom = draw.randrange(3)
        if atom == 0:
            yield atom, (n, draw.randrange(hubs))
        elif atom == 1:
            yield atom, (draw.randrange(hubs), draw.randrange(hubs))
        else:
            yield atom, (draw.randrange(hubs), n)


def complete(query: Query, side: int) -> list[tuple[int, Row]]:
    """Complete relations over `side` values, in random order."""
    rows = [
        (atom, row)
        for atom, of in enumerate(query.atoms)
        for row in itertools.product(range(side), repeat=len(of.variables))
    ]
    random.Random(3).shuffle(rows)
    return rows


def hub_triangle(size: int) -> Iterator[tuple[int, Row]]:
    """Hubs with many neighbours on both sides, and edges between the hubs."""
    draw = random.Random(4)
    hubs = max(2, math.isqrt(size) // 8)
    for n in range(size):
        atom = draw.randrange(3)
        if atom == 0:
            yield atom, (draw.randrange(hubs), draw.randrange(hubs))
        else:
            yield atom, (draw.randrange(hubs), n % (size // 4 + 1))


def sizes_up_to(most: int) -> list[int]:
    return [size for size in (10**3, 10**4, 10**5, 10**6) if size <= most]


# ── measuring ────────────────────────────────────────────────────────────────────────────────


def filled(strategy: str, query: Query, stream: Stream) -> tuple[JoinView, int]:
    """A counting view after a stream of inserts, and the number of new rows."""
    view = view_of(strategy, Asked.full(query, counting=True))
    return view, sum(view.insert(atom, row) for atom, row in stream)


def hierarchical(most: int, small: bool) -> None:
    print("hierarchical R(a,b,c), S(a,b,d), T(a,e): steps of one update")
    worst = []
    for size in sizes_up_to(most):
        view, _ = filled("view_tree", HIERARCHICAL, few_tops(size))
        steps = []
        for atom, row in itertools.islice(few_tops(size), 2000):
            for change in (view.delete, view.insert):
                before = view.steps
                change(atom, row)
                steps.append(view.steps - before)
        worst.append(max(steps))
        print(f"  {size:>9} tuples: {sum(steps) / len(steps):.2f} in the mean, {max(steps)} at most")
    at_most(
        "hierarchical, most steps of an update, largest to smallest size", worst[-1] / worst[0], 1.0, small=small
    )


def insert_only_path(most: int, small: bool) -> None:
    print("3-path, facts only come: steps of one insert, amortized")
    points = []
    for size in sizes_up_to(most):
        view, new = filled("calibrated", PATH, hub_path(size))
        points.append((new, view.steps / new))
        print(f"  {new:>9} tuples: {points[-1][1]:.2f}")
    at_most("3-path, slope of steps per insert", slope(points), 0.05, "", small)


def insert_only_cyclic(most: int, small: bool) -> None:
    cases: list[tuple[str, Query, list[Callable[[], Stream]]]] = [
        ("triangle, complete", TRIANGLE, [lambda n=n: complete(TRIANGLE, n) for n in (10, 20, 40, 80, 120)]),
        ("Loomis–Whitney 4, complete", LW4, [lambda n=n: complete(LW4, n) for n in (5, 8, 12, 18, 26)]),
        ("triangle, hubs", TRIANGLE, [lambda n=n: hub_triangle(n) for n in sizes_up_to(most)]),
    ]
    for title, query, streams in cases:
        width = fractional_hypertree_width(query).value
        print(f"{title}, facts only come: total steps")
        points, shares = [], []
        for stream in streams[:3] if small else streams:
            view, new = filled("calibrated", query, stream())
            bound = new + agm_bound(query, [len(view.rows(n)) for n in range(len(query.atoms))])
            points.append((new, view.steps))
            shares.append(view.steps / bound)
            print(f"  {new:>9} tuples: {view.steps:>10} steps, {shares[-1]:.2f} × (N + AGM bound)")
        at_most(
            f"{title}, steps over N + AGM, largest by smallest",
            shares[-1] / shares[0],
            1.25,
            small=small,
        )
        at_most(f"{title}, slope of steps (w = {width})", slope(points), float(width) + 0.05, "", small)


def delay(most: int, small: bool) -> None:
    cases: list[tuple[str, str, Query, Callable[[int], Stream]]] = [
        ("hierarchical, view_tree", "view_tree", HIERARCHICAL, few_tops),
        ("3-path, calibrated", "calibrated", PATH, hub_path),
        ("triangle, calibrated", "calibrated", TRIANGLE, sparse(TRIANGLE)),
        ("two triangles, calibrated", "calibrated", TWO_TRIANGLES, sparse(TWO_TRIANGLES)),
    ]
    print("delay: the most steps between two answers, all and with one row")
    for title, strategy, query, stream in cases:
        gaps = []
        for size in sizes_up_to(most):
            view, _ = filled(strategy, query, stream(size))
            gap = longest_gap(view, view.answers())
            for atom, row in itertools.islice(stream(size), 300):
                gap = max(gap, longest_gap(view, view.delta(atom, row)))
            gaps.append(gap)
        print(f"  {title}: {', '.join(map(str, gaps))} steps")
        at_most(f"{title}, longest gap, largest by smallest", gaps[-1] / gaps[0], 1.0, small=small)


def sparse(query: Query) -> Callable[[int], Stream]:
    """Random edges of a graph of degree about 8, so that every size has cycles."""

    def stream(size: int) -> Iterator[tuple[int, Row]]:
        draw = random.Random(5)
        nodes = max(8, size // (8 * len(query.atoms)))
        for _ in range(size):
            x = draw.randrange(nodes)
            yield draw.randrange(len(query.atoms)), (x, (x + draw.randrange(-4, 5)) % nodes)

    return stream


def longest_gap(view: JoinView, answers: Iterator[object], most: int = 20_000) -> int:
    gap, before = 0, view.steps
    for _ in itertools.islice(answers, most):
        gap, before = max(gap, view.steps - before), view.steps
    return max(gap, view.steps - before)


# ── against triggers by hand ─────────────────────────────────────────────────────────────────

STAR = """.decl r(a:number, b:number)
.decl s(a:number, c:number)
.decl q(a:number, b:number, c:number)
q(a, b, c) :- r(a, b), s(a, c).
"""


class ByHand:
    """R(a,b), S(a,c) by hand: two dicts of sets, and the rows that change."""

    def __init__(self) -> None:
        self.r: dict[int, set[int]] = {}
        self.s: dict[int, set[int]] = {}

    def step(self, name: str, a: int, x: int, insert: bool) -> dict[str, dict[Row, int]]:
        mine, other = (self.r, self.s) if name == "r" else (self.s, self.r)
        values = mine.setdefault(a, set())
        if insert is (x in values):
            return {}
        sign = 1 if insert else -1
        (values.add if insert else values.remove)(x)
        if not values:
            del mine[a]
        there = other.get(a, ())
        told: dict[str, dict[Row, int]] = {name: {(a, x): sign}}
        if there:
            told["q"] = {(a, x, y): sign for y in there} if name == "r" else {(a, y, x): sign for y in there}
        return told


def star_stream(number: int) -> list[tuple[str, int, int, bool]]:
    """Random rows, inserted if absent and deleted if present; six answers change each."""
    draw = random.Random(6)
    there: set[tuple[str, int, int]] = set()
    stream = []
    for _ in range(number):
        row = draw.choice("rs"), draw.randrange(2000), draw.randrange(12)
        stream.append((*row, row not in there))
        there ^= {row}
    return stream


def against_hand(number: int, small: bool) -> None:
    stream = star_stream(number)

    def by_hand() -> None:
        hand = ByHand()
        for name, a, x, insert in stream:
            for rows in hand.step(name, a, x, insert).values():
                len(rows)

    def database(strategy: str | None) -> Callable[[], None]:
        def work() -> None:
            db = Database.from_text(STAR, strategies={} if strategy is None else {"q": strategy})
            for name, a, x, insert in stream:
                changes = (db.insert if insert else db.delete)(name, (a, x))
                for relation in changes:
                    len(changes[relation])

        return work

    hand, db = ByHand(), Database.from_text(STAR)
    for name, a, x, insert in stream[:2000]:
        told = (db.insert if insert else db.delete)(name, (a, x))
        if {relation: dict(told[relation]) for relation in told} != hand.step(name, a, x, insert):
            fail("R(a,b), S(a,c): the engine and the triggers by hand tell different changes")
    times = by_turns(3, hand=by_hand, planned=database(None), view_tree=database("view_tree"))
    print(f"R(a,b), S(a,c): {number} single updates with their changes, against triggers by hand")
    for name, seconds in times.items():
        print(f"  {name:<10} {', '.join(f'{s / number * 1e6:.1f}' for s in seconds)} µs an update")
    at_most(
        "R(a,b), S(a,c), as planned, against triggers", ratio_of(times["planned"], times["hand"]), 6, small=small
    )
    print(f"  view_tree, asked for: {ratio_of(times['view_tree'], times['hand']):.1f} ×")


def main() -> None:
    asked = options(__doc__, most=10**6, steps=100_000)
    most = 10_000 if asked.small else asked.most
    start = time.perf_counter()
    hierarchical(most, asked.small)
    against_hand(2000 if asked.small else asked.steps, asked.small)
    insert_only_path(most, asked.small)
    insert_only_cyclic(most, asked.small)
    delay(most, asked.small)
    print(f"({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
