"""Figure 4 of the paper, measured: steps per update against size, per strategy.

Atoms in turn are *toggled*: rows between a few hub values are inserted and deleted.  The other
atoms have these hubs too, each with many partners, but no two atoms have the same partners: so no
answer ever exists, and first-order delta visits the partners of a hub at each toggle to find that
out.  Every atom has hubs of its own, so that no strategy profits from its order.  The partners
change as well: with every tenth toggle one row of another atom is deleted and one inserted, so that
no result can be reused for ever.

The views count the steps themselves; sizes double from 2^10.  An exponent is the slope of the
least-squares line through the logarithms of steps per update, at the upper half of the sizes, where
logarithmic factors weigh less.  At one size, `auto` is also timed against the best single strategy.
Then the same streams go through `Database`: what `explain` prints, and the slope of counted work
once rules have had time to move.

    python -P bench/figure4.py [--small] [--most 17] [--updates 3000] [--plot FOLDER] [--engine]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))

from _common import at_most, slope

from everlog import Database
from everlog.core.classify.multivariate import multivariate_width
from everlog.core.classify.query import Query
from everlog.core.joins.join_strategies import JOINS, view_of
from everlog.core.joins.view import Asked, JoinView, Weighted

Row = tuple[int, ...]
Update = tuple[int, Row, bool]

# name → the query, and whether it has a bar for MVIVM
QUERIES: dict[str, tuple[Query, bool]] = {
    "Q'2p": (Query.of("R(a, b, c)", "S(a, b)", "T(b, c)"), True),
    "Q3p": (Query.of("R(a, b)", "S(b, c)", "T(c, d)"), True),
    "QΔ": (Query.of("R(a, b)", "S(b, c)", "T(a, c)"), True),
    "Q'Δ": (Query.of("R(a, b)", "S(b, c)", "T(a, c)", "U(c)"), True),
    "Q*": (Query.of("R(a, b, c, d)", "S(a, b)", "T(b, c)", "U(b, d)"), True),
    "Q3u": (Query.of("R(a, b, c)", "S(a)", "T(b)", "U(c)"), True),
    "Q4u": (Query.of("R(a, b, c, d)", "S(a)", "T(b)", "U(c)", "V(d)"), True),
    "Q''2p": (Query.of("R(a)", "S(a, b)", "T(b, c)", "U(c)"), False),
    "Q□": (Query.of("R(a, b)", "S(b, c)", "T(c, d)", "U(a, d)"), False),
    "LW4": (Query.of("R(b, c, d)", "S(a, c, d)", "T(a, b, d)", "U(a, b, c)"), True),
}
# The paper's own table: exponents of D for Naïve, Delta, F-IVM, CROWN, IVM^ε and MVIVM.
PAPER: dict[str, tuple[str, ...]] = {
    "Q'2p": ("1", "1", "1", "1", "open", "1/2"),
    "Q3p": ("1", "1", "1", "1", "1/2", "1/2"),
    "QΔ": ("3/2", "1", "1", "–", "1/2", "1/2"),
    "Q'Δ": ("3/2", "1", "1", "–", "2/3", "2/3"),
    "Q*": ("1", "1", "1", "1", "open", "2/3"),
    "Q3u": ("1", "1", "1", "1", "open", "2/3"),
    "Q4u": ("1", "1", "1", "1", "open", "3/4"),
    "Q''2p": ("1", "1", "1", "1", "1/2", "1"),
    "Q□": ("2", "1", "1", "–", "2/3", "1"),
    "LW4": ("4/3", "1", "1", "–", "–", "1/2"),  # not in the paper's table; from its theorems
}
COLUMNS = ("recompute", "delta", "view_tree", "calibrated", "heavy_light", "generations")
TITLES = ("Naïve", "Delta", "F-IVM", "CROWN", "IVM^ε", "MVIVM")
HUBS = 2
TOO_MANY = 20_000  # steps per update, above which larger sizes are skipped


def partner_rows(query: Query, toggled: int, atom: int) -> Iterator[Row]:
    """Rows of an atom: hubs where it meets the toggled one, and partners of its own."""
    hubs = set(query.atoms[toggled].variables)
    atoms = len(query.atoms)
    number = 0
    while True:
        yield tuple(
            -1 - toggled - atoms * (number % HUBS) if v in hubs else (number * atoms + atom) * atoms + toggled
            for v in query.atoms[atom].variables
        )
        number += 1


def hurts(query: Query, toggled: int) -> bool:
    """Whether two other atoms share a variable that the toggled one does not bind.

    Otherwise there would be answers.
    """
    bound = set(query.atoms[toggled].variables)
    free = [v for n, atom in enumerate(query.atoms) if n != toggled for v in atom.variables if v not in bound]
    return len(free) > len(set(free))


def hostile(query: Query, size: int, updates: int) -> tuple[dict[int, list[Row]], list[Update]]:
    """The loaded rows, and the stream."""
    draw = random.Random(size)
    atoms = range(len(query.atoms))
    groups = [(toggled, atom) for toggled in atoms if hurts(query, toggled) for atom in atoms if atom != toggled]
    makers = {group: partner_rows(query, *group) for group in groups}
    there = {
        group: list(dict.fromkeys(next(makers[group]) for _ in range(max(2, size // len(groups)))))
        for group in groups
    }
    loaded: dict[int, list[Row]] = {n: [] for n in atoms}
    for (_, atom), rows in there.items():
        loaded[atom] += rows
    held = [set(rows) for rows in loaded.values()]
    on: set[tuple[int, Row]] = set()
    stream: list[Update] = []
    for n in range(updates):
        toggled = draw.choice(groups)[0]
        row = tuple(-1 - toggled - len(atoms) * draw.randrange(HUBS) for _ in query.atoms[toggled].variables)
        if (toggled, row) in on or row not in held[toggled]:
            stream.append((toggled, row, (toggled, row) not in on))
            on ^= {(toggled, row)}
        if n % 10 == 9:
            group = draw.choice(groups)
            place, fresh = draw.randrange(len(there[group])), next(makers[group])
            if fresh not in held[group[1]] and (group[1], fresh) not in on:
                gone = there[group][place]
                if (group[1], gone) not in on:
                    stream += [(group[1], gone, False), (group[1], fresh, True)]
                    there[group][place] = fresh
                    held[group[1]] ^= {gone, fresh}
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


class Living:
    """The rule of a query in a `Database`, as a view: `auto` is the engine's own choice."""

    def __init__(self, query: Query, strategy: str = "auto") -> None:
        atoms = [f"r{n}({', '.join(atom.variables)})" for n, atom in enumerate(query.atoms)]
        typed = [", ".join(f"{v}:number" for v in atom.variables) for atom in query.atoms]
        head = [f".decl r{n}({columns})" for n, columns in enumerate(typed)]
        shown = ", ".join(f"{v}:number" for v in query.variables)
        rule = f"q({', '.join(query.variables)}) :- {', '.join(atoms)}."
        self.text = "\n".join([*head, f".decl q({shown})", rule])
        self.strategies = {} if strategy == "auto" else {"q": strategy}
        self.db = Database.from_text(self.text, strategies=self.strategies)

    def load(self, rows: Mapping[int, Iterable[Row]]) -> None:
        facts = {f"r{n}": list(given) for n, given in rows.items()}
        self.db = Database.from_text(self.text, facts=facts, strategies=self.strategies)

    def insert(self, atom: int, row: Row) -> bool:
        return bool(self.db.insert(f"r{atom}", row))

    def delete(self, atom: int, row: Row) -> bool:
        return bool(self.db.delete(f"r{atom}", row))

    def delta(self, atom: int, row: Row) -> Iterator[Weighted]:
        return iter(())  # told by the update itself

    @property
    def steps(self) -> int:
        return sum(rule.work for rule in self.db.stats().rules)


def made(strategy: str, query: Query, counting: bool = False) -> Any:
    return Living(query) if strategy == "auto" else view_of(strategy, Asked.full(query, counting=counting))


def measured(name: str, strategy: str, size: int, updates: int) -> float | None:
    """Steps per update, or None if the strategy does not support the query."""
    query, _ = QUERIES[name]
    if JOINS[strategy].refusal(query):
        return None
    loaded, stream = hostile(query, size, updates)
    view = made(strategy, query, counting=True)
    view.load(loaded)
    before = view.steps
    play(view, stream)
    return (view.steps - before) / len(stream)


def seconds(name: str, strategy: str, size: int, updates: int) -> float:
    """Mean seconds of one update through the engine."""
    query, _ = QUERIES[name]
    loaded, stream = hostile(query, size, updates)
    view = Living(query, strategy)
    view.load(loaded)
    start = time.process_time()
    play(view, stream)
    return (time.process_time() - start) / len(stream)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick check")
    parser.add_argument("--most", type=int, default=17, metavar="K", help="sizes up to 2^K")
    parser.add_argument("--updates", type=int, default=3000)
    parser.add_argument("--plot", metavar="FOLDER", help="write figure4.png, figure4.svg and figure4.json there")
    parser.add_argument("--engine", action="store_true", help="only through the engine")
    asked = parser.parse_args()
    sizes = [2**k for k in range(10, (12 if asked.small else asked.most) + 1)]
    through = engine_table(sizes[::2], asked.updates, asked.small)
    print(through)
    if asked.engine:
        return
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for name, (query, barred) in QUERIES.items():
        promised = multivariate_width(query).value - 1
        series: dict[str, list[tuple[int, float]]] = {}
        for strategy in JOINS:
            for size in sizes:
                updates = {"generations": asked.updates, "auto": asked.updates, "recompute": 12}.get(
                    strategy, max(100, asked.updates // 20)
                )
                steps = measured(name, strategy, size, updates)
                if steps is None:
                    break
                series.setdefault(strategy, []).append((size, steps))
                if steps > TOO_MANY:  # its slope is known
                    break
        found[name] = series
        told = ", ".join(f"{s} {slope(upper(points)):.2f}" for s, points in series.items())
        print(f"{name}: MVIVM promises {promised}; slopes: {told}", flush=True)
        for strategy, points in series.items():
            print(f"    {strategy:<12} {', '.join(f'{steps:.0f}' for _, steps in points)} steps per update")
        if barred:
            bar = float(promised + Fraction(1, 10))
            at_most(f"{name}, slope of generations", slope(upper(series["generations"])), bar, "", asked.small)
        size = sizes[-1] // 4
        quick = [s for s, points in series.items() if len(points) == len(sizes) and s not in ("auto", "recompute")]
        times = {strategy: seconds(name, strategy, size, asked.updates // 2) for strategy in quick}
        times["auto"] = seconds(name, "auto", size, asked.updates * 10)  # later updates pay for its switch
        best = min(quick, key=times.__getitem__)
        title = f"{name}, time of auto against the best ({best})"
        at_most(title, times["auto"] / times[best], 2.5, small=asked.small)
        held = {strategy: memory(name, strategy, size // 4, asked.updates // 4) for strategy in ("delta", "auto")}
        at_most(f"{name}, memory of auto against delta", held["auto"] / held["delta"], 4, small=asked.small)
    if asked.plot:
        from _figure4_plot import write

        write(Path(asked.plot), found, {n: str(multivariate_width(q).value - 1) for n, (q, _) in QUERIES.items()})
        (Path(asked.plot) / "figure4-table.md").write_text(f"{table(found)}\n{through}")
        (Path(asked.plot) / "figure4.json").write_text(json.dumps(found, ensure_ascii=False, indent=1))


def engine_table(sizes: list[int], updates: int, small: bool) -> str:
    """For each query: the printed exponent, the slope of the engine's work, the last strategy."""
    lines = ["| query | printed | slope | in use at the largest size |", "|---|---|---|---|"]
    for name, (query, _) in QUERIES.items():
        points = []
        for size in sizes:
            loaded, stream = hostile(query, size, 3 * updates)
            view = Living(query)
            view.load(loaded)
            play(view, stream[: -len(stream) // 3])
            before, rest = view.steps, stream[-len(stream) // 3 :]
            play(view, rest)
            points.append((float(size), (view.steps - before) / len(rest)))
        in_use = view.db.explanation()["rules"][0]["in_use"]
        bar = float(Fraction(in_use["exponent"])) + 0.15
        at_most(f"{name}, slope through the engine", slope(points), bar, "", small)
        lines.append(f"| {name} | {in_use['exponent']} | {slope(points):.2f} | {in_use['strategy']} |")
    return "\n".join(lines) + "\n"


def memory(name: str, strategy: str, size: int, updates: int) -> int:
    """The bytes that a view holds after the stream."""
    query, _ = QUERIES[name]
    loaded, stream = hostile(query, size, updates)
    tracemalloc.start()
    view = made(strategy, query)
    view.load(loaded)
    play(view, stream)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held


def table(found: dict[str, dict[str, list[tuple[int, float]]]]) -> str:
    """Fitted exponents, each beside the paper's."""
    lines = [f"| query | {' | '.join(TITLES)} |", "|---" * (len(TITLES) + 1) + "|"]
    for name, series in found.items():
        cells = []
        for strategy, paper in zip(COLUMNS, PAPER[name], strict=True):
            measured_here = f"{slope(upper(series[strategy])):.2f}" if strategy in series else "–"
            cells.append(f"{measured_here} ({paper})")
        lines.append(f"| {name} = {', '.join(map(str, QUERIES[name][0].atoms))} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def upper(points: list[tuple[int, float]]) -> list[tuple[float, float]]:
    return [(float(size), steps) for size, steps in points[max(0, len(points) // 2 - 1) :]]


if __name__ == "__main__":
    main()
