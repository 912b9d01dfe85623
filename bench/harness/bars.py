"""The bars: each a ratio from one run, with its required value.

A bar names the workloads and sides that it needs, so that `--only bars` measures just those.  If a
competitor is not installed, its bar is reported as not measured; if one did not finish, its time
limit gives a bound of the ratio.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from everlog.bench.harness.figures import (
    against_ours,
    best_play,
    best_static,
    bound,
    least,
    per_update,
    ratio,
    record_of,
    solve,
    times,
    work_of,
)
from everlog.bench.harness.runs import LONG, OK, OURS, Record

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "not measured"


@frozen
class Bar:
    """A required ratio.

    `measure` gives the other's figure over ours (ours over theirs, for `at_most`), or why there is
    none.
    """

    work: str
    what: str
    at_least: float | None
    at_most: float | None
    measure: Callable[[Record], Reading]


@frozen
class Reading:
    """A ratio, or a bound of it, with its two figures."""

    ratio: float | None
    ours: float | None = None
    theirs: float | None = None
    only_bound: bool = False
    why: str = ""


def read(bar: Bar, results: Record) -> Record:
    """A bar with its figure and verdict, as stored in the JSON."""
    found = bar.measure(results)
    wanted = f"at least {bar.at_least:g} ×" if bar.at_least is not None else f"at most {bar.at_most:g} ×"
    if found.ratio is None:
        verdict = UNKNOWN
    elif bar.at_least is not None:
        # a lower bound that is large enough decides the bar
        verdict = HOLDS if found.ratio >= bar.at_least else UNKNOWN if found.only_bound else FAILS
    else:
        assert bar.at_most is not None
        verdict = HOLDS if found.ratio <= bar.at_most else FAILS
    return {
        "work": bar.work,
        "what": bar.what,
        "bar": wanted,
        "ratio": found.ratio,
        "only_bound": found.only_bound,
        "ours": found.ours,
        "theirs": found.theirs,
        "verdict": verdict,
        "why": found.why,
    }


# ── figures that bars are made of ────────────────────────────────────────────────────────────


def static_against(workload: str, *others: str) -> Callable[[Record], Reading]:
    """The fastest of the others' times, over ours."""

    def measure(results: Record) -> Reading:
        records = work_of(results, workload).get("static")
        ours = least(record_of(records, OURS))
        return _against(ours, [record_of(records, other) for other in others], others, results, least)

    return measure


def updates_against(workload: str, stream: str, batch: int | None, other: str) -> Callable[[Record], Reading]:
    """Their seconds per update over ours by single updates.

    If theirs are single updates too, the same steps are compared.  With toggled hubs it is the mean
    of all our updates: the first ones pay for the others.
    """

    def measure(results: Record) -> Reading:
        records = work_of(results, workload).get("living")
        ours = per_update(record_of(records, OURS), stream, 1)
        record = record_of(records, other)
        if record is not None and record["status"] == LONG:  # its limit says nothing about an update
            return Reading(None, ours, why=f"stopped in its {record['phase']} after {record['bound']:g} s")
        play = best_play(record, stream, batch) if record is not None and record["status"] == OK else None
        same = against_ours(play) if play is not None and batch == 1 and stream != "hubs" else None
        if play is not None and same is not None:
            theirs = play["seconds"] / play["counted"]
            return Reading(same, theirs / same, theirs, why=f"of {play['done']} updates")

        def figure(record: Record | None) -> float | None:
            return per_update(record, stream, batch)

        return _against(ours, [record], (other,), results, figure)

    return measure


def update_against_recomputation(workload: str, stream: str, *others: str) -> Callable[[Record], Reading]:
    """The fastest recomputation (of some or all sides), over our seconds per update.

    Both end when the answer and its size are known: recomputation reports no changes.  The ratio
    with all changed rows read is printed beside it.
    """

    def measure(results: Record) -> Reading:
        work = work_of(results, workload)
        living = record_of(work.get("living"), OURS)
        ours, told = per_update(living, stream, 1, "current"), per_update(living, stream, 1)
        records = [r for r in work.get("static") or () if not others or r["side"] in others]
        if not records and others:
            return Reading(None, ours, why=_absence(others, results))
        found = best_static(records, solve)
        if found is None or ours is None:
            return Reading(None, ours, why="not measured in this run")
        why = f"the fastest is {found[0]}; {times(ratio(found[1], told))} with all changed rows"
        return Reading(found[1] / ours, ours, found[1], why=why)

    return measure


def memory_against(workload: str, other: str) -> Callable[[Record], Reading]:
    """Our peak memory of a loaded database over theirs."""

    def measure(results: Record) -> Reading:
        records = work_of(results, workload).get("static")
        ours = least(record_of(records, "everlog living"), _peak)
        theirs = least(record_of(records, other), _peak)
        if ours is None or theirs is None:
            return Reading(None, ours, theirs, why=_absence((other,), results))
        return Reading(ours / theirs, ours, theirs)

    return measure


def _peak(run: Record) -> float:
    return float(run["peak"])


def _against(
    ours: float | None,
    records: list[Record | None],
    others: tuple[str, ...],
    results: Record,
    figure: Callable[[Record | None], float | None],
) -> Reading:
    if ours is None:
        return Reading(None, why="not measured in this run")
    found = [value for record in records if (value := figure(record)) is not None]
    if found:
        return Reading(min(found) / ours, ours, min(found))
    limits = [value for record in records if (value := bound(record)) is not None]
    if limits:
        return Reading(min(limits) / ours, ours, min(limits), only_bound=True, why="did not finish")
    wrong = [f"{r['side']}: {r['status']}, {r.get('why', '')}" for r in records if r is not None]
    return Reading(None, ours, why="; ".join(wrong) or _absence(others, results))


def _absence(others: tuple[str, ...], results: Record) -> str:
    missing = [results["left_out"][other] for other in others if other in results["left_out"]]
    return missing[0] if missing else "not measured in this run"


# ── the table of the issue ───────────────────────────────────────────────────────────────────

DUCKDB = ("duckdb", "duckdb rounds")
ANALYSES = {"same_generation": "same generation", "points_to": "points-to", "value_flow": "value flow"}
CLOSURES = {"closure_random": "closure, random graph", "closure_grid": "closure, grid"}

BARS: list[Bar] = [
    bar
    for name, work in CLOSURES.items()
    for bar in (
        Bar(f"{work}, static", "Soufflé's interpreter over ours", 1, None, static_against(name, "souffle")),
        Bar(f"{work}, static", "DuckDB over ours", 2, None, static_against(name, *DUCKDB)),
    )
]
BARS += [
    bar
    for name, work in ANALYSES.items()
    for bar in (
        Bar(f"{work}, static", "Soufflé's interpreter over ours", 0.5, None, static_against(name, "souffle")),
        Bar(f"{work}, static", "clingo over ours", 1, None, static_against(name, "clingo")),
        Bar(f"{work}, static", "DuckDB over ours", 1, None, static_against(name, *DUCKDB)),
    )
]
BARS += [
    Bar(
        "closure, random graph, single-edge update",
        "Pathway's commit over ours",
        20,
        None,
        updates_against("closure_random", "random", 1, "pathway"),
    ),
    Bar(
        "closure, random graph, single-edge update",
        "best static recomputation over ours",
        50,
        None,
        update_against_recomputation("closure_random", "random"),
    ),
    Bar(
        "join and group-by count, single-tuple steps",
        "Pathway committing one by one over ours",
        20,
        None,
        updates_against("join_count", "random", 1, "pathway"),
    ),
    Bar(
        "join and group-by count, single-tuple steps",
        "Pathway committing 1 000 at a time over ours",
        1,
        None,
        updates_against("join_count", "random", None, "pathway"),
    ),
    Bar(
        "hostile triangle, 10^6 tuples",
        "first-order delta over ours",
        20,
        None,
        updates_against("hostile_triangle", "hubs", 1, "everlog delta"),
    ),
    Bar(
        "hostile triangle, 10^6 tuples",
        "DuckDB recomputation over ours",
        20,
        None,
        update_against_recomputation("hostile_triangle", "hubs", "duckdb"),
    ),
    Bar(
        "hostile triangle, 10^6 tuples",
        "Pathway's commit over ours",
        20,
        None,
        updates_against("hostile_triangle", "hubs", 1, "pathway"),
    ),
]
BARS += [
    Bar(f"memory of a loaded program: {work}", "ours over Soufflé's", None, 3, memory_against(name, "souffle"))
    for name, work in (CLOSURES | ANALYSES).items()
]

STATIC = (*CLOSURES, *ANALYSES)  # workloads that are computed once for the bars
LIVING: dict[str, tuple[str, tuple[str, ...]]] = {  # and those that follow updates: stream, sides
    "closure_random": ("random", ("everlog", "pathway")),
    "join_count": ("random", ("everlog", "pathway")),
    "hostile_triangle": ("hubs", ("everlog", "everlog delta", "pathway")),
}
RECOMPUTED = {"hostile_triangle": ("everlog", "duckdb")}  # static sides beside those
