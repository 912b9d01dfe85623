"""Figure 4 of the paper, measured: steps per update against the size of the database, for every strategy.

For each query one atom is *toggled*: rows between a few hub values come and go.  The other atoms have the hubs
too, each with many partners, but no two atoms have the same partners: so no answer ever exists, and first-order
delta walks the partners of a hub at each toggle to find that out.  Meanwhile the partners change as well: with
every tenth toggle a row of another atom goes and one comes, so that nothing may be computed once and for all.
How often what is remembered has to be searched again is what the exponent is about.

The steps are counted by the views themselves; sizes double from 2^10.  An exponent is the slope of a straight
line through the logarithms of steps per update, at the sizes of the upper half, where logarithms weigh less.

    python -P bench/figure4.py [--small] [--most 17] [--updates 4000] [--plot FOLDER]
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from _common import at_most

from everlog.core.classify.multivariate import multivariate_width
from everlog.core.classify.query import Query
from everlog.core.joins.strategies import JOINS, view_of
from everlog.core.joins.view import Asked, JoinView

Row = tuple[int, ...]
Update = tuple[int, Row, bool]

# name → the query, the atom that is toggled, whether a bar holds for MVIVM here
QUERIES: dict[str, tuple[Query, int, bool]] = {
    "Q'2p": (Query.of("R(a, b, c)", "S(a, b)", "T(b, c)"), 1, True),
    "Q3p": (Query.of("R(a, b)", "S(b, c)", "T(c, d)"), 0, True),
    "QΔ": (Query.of("R(a, b)", "S(b, c)", "T(a, c)"), 0, True),
    "Q'Δ": (Query.of("R(a, b)", "S(b, c)", "T(a, c)", "U(c)"), 0, True),
    "Q*": (Query.of("R(a, b, c, d)", "S(a, b)", "T(b, c)", "U(b, d)"), 1, True),
    "Q3u": (Query.of("R(a, b, c)", "S(a)", "T(b)", "U(c)"), 1, True),
    "Q4u": (Query.of("R(a, b, c, d)", "S(a)", "T(b)", "U(c)", "V(d)"), 1, True),
    "Q''2p": (Query.of("R(a)", "S(a, b)", "T(b, c)", "U(c)"), 0, False),
    "Q□": (Query.of("R(a, b)", "S(b, c)", "T(c, d)", "U(a, d)"), 0, False),
    "LW4": (Query.of("R(b, c, d)", "S(a, c, d)", "T(a, b, d)", "U(a, b, c)"), 0, True),
}
HUBS = 4


def partner_rows(query: Query, toggled: int, atom: int, start: int) -> Iterator[Row]:
    """Rows of an atom with hub values where it meets the toggled one, and partners that no other atom has."""
    hubs = set(query.atoms[toggled].variables)
    number = start
    while True:
        yield tuple(
            number % HUBS if v in hubs else (number * len(query.atoms) + atom) for v in query.atoms[atom].variables
        )
        number += 1


def hostile(query: Query, toggled: int, size: int, updates: int) -> tuple[dict[int, list[Row]], list[Update]]:
    """What is loaded, and the stream."""
    draw = random.Random(size)
    others = [n for n in range(len(query.atoms)) if n != toggled]
    makers = {atom: partner_rows(query, toggled, atom, 0) for atom in others}
    there = {atom: [next(makers[atom]) for _ in range(size // len(others))] for atom in others}
    there = {atom: list(dict.fromkeys(rows)) for atom, rows in there.items()}
    loaded = {atom: list(rows) for atom, rows in there.items()}
    width = len(query.atoms[toggled].variables)
    on: set[Row] = set()
    stream: list[Update] = []
    for n in range(updates):
        row = tuple(draw.randrange(HUBS) for _ in range(width))
        stream.append((toggled, row, row not in on))
        on ^= {row}
        if n % 10 == 9:
            atom = draw.choice(others)
            rows = there[atom]
            place = draw.randrange(len(rows))
            fresh = next(makers[atom])
            if fresh not in rows[-1:]:
                stream.append((atom, rows[place], False))
                rows[place] = fresh
                stream.append((atom, fresh, True))
    return loaded, stream


def play(view: JoinView, stream: list[Update]) -> None:
    for atom, row, insert in stream:
        if insert:
            view.insert(atom, row)
            for _ in view.delta(atom, row):
                pass
        else:
            for _ in view.delta(atom, row):
                pass
            view.delete(atom, row)


def measured(name: str, strategy: str, size: int, updates: int) -> float | None:
    """Steps per update, or None where the strategy does not serve the query."""
    query, toggled, _ = QUERIES[name]
    if JOINS[strategy].refusal(query):
        return None
    loaded, stream = hostile(query, toggled, size, updates)
    view = view_of(strategy, Asked.full(query, counting=True))
    view.load(loaded)
    before = view.steps
    play(view, stream)
    return (view.steps - before) / len(stream)


def slope(points: list[tuple[float, float]]) -> float:
    logs = [(math.log(x), math.log(max(y, 1e-9))) for x, y in points]
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="to see that it runs")
    parser.add_argument("--most", type=int, default=17, metavar="K", help="sizes up to 2^K")
    parser.add_argument("--updates", type=int, default=4000)
    parser.add_argument("--plot", metavar="FOLDER", help="write figure4.png, figure4.svg and figure4.json there")
    asked = parser.parse_args()
    sizes = [2**k for k in range(10, (12 if asked.small else asked.most) + 1)]
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for name, (query, _, barred) in QUERIES.items():
        promised = multivariate_width(query).value - 1
        series: dict[str, list[tuple[int, float]]] = {}
        for strategy in JOINS:
            if strategy == "recompute":
                continue
            for size in sizes:
                updates = asked.updates if strategy == "generations" else max(100, asked.updates // 20)
                steps = measured(name, strategy, size, updates)
                if steps is not None:
                    series.setdefault(strategy, []).append((size, steps))
        found[name] = series
        told = ", ".join(f"{s} {slope(upper(points)):.2f}" for s, points in series.items())
        print(f"{name}: MVIVM promises {promised}; slopes: {told}", flush=True)
        for strategy, points in series.items():
            print(f"    {strategy:<12} {', '.join(f'{steps:.0f}' for _, steps in points)} steps per update")
        if barred:
            bar = float(promised + Fraction(1, 10))
            at_most(f"{name}, slope of generations", slope(upper(series["generations"])), bar, "", asked.small)
    if asked.plot:
        from _figure4_plot import write

        write(
            Path(asked.plot), found, {n: str(multivariate_width(q).value - 1) for n, (q, _, _) in QUERIES.items()}
        )
        (Path(asked.plot) / "figure4.json").write_text(json.dumps(found, ensure_ascii=False, indent=1))


def upper(points: list[tuple[int, float]]) -> list[tuple[float, float]]:
    return [(float(size), steps) for size, steps in points[len(points) // 2 - 1 :]]


if __name__ == "__main__":
    main()
