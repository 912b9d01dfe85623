"""Markdown tables from results, for the terminal and docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everlog.bench.harness.discovery import sides
from everlog.bench.harness.figures import (
    best_play,
    best_static,
    compared_with,
    least,
    ratio,
    record_of,
    seconds,
    solve,
    spread,
    times,
    total,
)
from everlog.bench.harness.growth import exponent, series
from everlog.bench.harness.runs import LARGE, LONG, OK, OURS, Record
from everlog.bench.harness.soak import growth_of


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(markdown(["side", "time"], [["everlog", "1 s"]]))
    | side | time |
    |---|---|
    | everlog | 1 s |
    """
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def named(record: Record) -> str:
    """The title of a side; marked if ours did not finish and nothing was compared."""
    return title(record["side"]) + ("" if record.get("checked", True) else " (not compared)")


def title(side: str) -> str:
    known = sides().get(side)
    return side if known is None else known.title


def megabytes(value: float) -> str:
    return f"{value:.0f} MB" if value < 1000 else f"{value / 1000:.1f} GB"


def unfinished(record: Record) -> str:
    """Why a record has no figures."""
    match record["status"]:
        case status if status == LONG:
            return f"> {record['bound']:.0f} s ({record['phase']})"
        case status if status == LARGE:
            return f"> {record['bound']:.0f} GB ({record['phase']})"
        case status:
            return f"{status}: {record.get('why', '')}".replace("|", "/")[:120]


# ── computed once ────────────────────────────────────────────────────────────────────────────


def static_table(work: Record) -> str:
    """Every side's time, the least of its runs, against ours."""
    ours = least(record_of(work["static"], OURS))
    rows: list[list[str]] = []
    for record in work["static"]:
        if record["status"] != OK:
            rows.append([named(record), unfinished(record), "", "", "", "", "", ""])
            continue
        best = min(record["runs"], key=total)
        rows.append(
            [
                named(record),
                seconds(total(best)),
                f"± {spread(record) * 100:.0f} %" if len(record["runs"]) > 1 else "once",
                seconds(best["solve"]) if best["solve"] else "",
                seconds(best["cpu"]),
                times(ratio(total(best), ours)),
                megabytes(best["peak"]),
                megabytes(max(0.0, best["peak"] - best["base"])),
            ]
        )
    return markdown(
        ["side", "time", "spread", "without reading", "CPU", "against ours", "peak", "above start"], rows
    )


def refused(work: Record, living: bool) -> list[str]:
    """The sides that do not support the workload, and why."""
    here = {record["side"] for record in work.get("living" if living else "static") or ()}
    out: list[str] = []
    for name, side in sides().items():
        why = side.refusal(work["query"], living)
        if name not in here and why and not side.own and (side.living if living else side.static):
            out.append(f"{side.title}: {why}")
    return out


# ── following updates ────────────────────────────────────────────────────────────────────────


def living_table(work: Record) -> str:
    """Latency and throughput of each stream."""
    rows: list[list[str]] = []
    runs = [run for record in work["living"] for run in record["runs"]]
    plays = list(dict.fromkeys((play["stream"], play["batch"]) for run in runs for play in run["plays"]))
    ours = record_of(work["living"], OURS)
    for stream, batch in plays:
        mine = best_play(ours, stream, batch) if ours is not None and ours["status"] == OK else None
        for record in work["living"]:
            play = best_play(record, stream, batch) if record["status"] == OK else None
            if play is not None:
                latency = play["latency"]
                rows.append(
                    [
                        stream,
                        str(batch),
                        named(record),
                        *(seconds(latency[p]) for p in ("p50", "p90", "p99", "max")),
                        f"{play['counted'] / play['seconds']:,.0f}".replace(",", " "),
                        times(compared_with(play, mine)),
                        str(play["done"]),
                        " → ".join(megabytes(play["memory"][n][1]) for n in (0, -1)),
                    ]
                )
    for record in work["living"]:
        if record["status"] != OK:
            rows.append(["", "", named(record), unfinished(record), "", "", "", "", "", "", ""])
        elif "stopped" in record["runs"][0]:
            rows.append(["", "", named(record), record["runs"][0]["stopped"], "", "", "", "", "", "", ""])
    figures = ["p50", "p90", "p99", "max", "updates/s", "against ours", "updates", "memory"]
    return markdown(["stream", "a step", "side", *figures], rows)


def loads_table(work: Record) -> str:
    """The cost of becoming ready for updates, and the recomputation that one saves."""
    rows: list[list[str]] = []
    for record in work["living"]:
        if record["status"] == OK:
            best = min(record["runs"], key=lambda run: float(run["load"]))
            held = megabytes(max(0.0, best["loaded"] - best["base"]))
            rows.append([title(record["side"]), seconds(best["load"]), held, megabytes(best["peak"])])
    return markdown(["side", "load", "holds then", "peak with all streams"], rows)


def recomputation(work: Record) -> str:
    """The fastest recomputation, to compare an update with."""
    found = best_static(work.get("static"), solve)
    return "" if found is None else f"Fastest recomputation: {title(found[0])}, {seconds(found[1])}."


# ── bars ─────────────────────────────────────────────────────────────────────────────────────


def bars_table(bars: Iterable[Record]) -> str:
    rows = [
        [
            bar["work"],
            bar["what"],
            ("> " if bar["only_bound"] else "") + times(bar["ratio"]),
            bar["bar"],
            f"**{bar['verdict']}**" + (f" ({bar['why']})" if bar["why"] else ""),
        ]
        for bar in bars
    ]
    return markdown(["work", "ratio", "measured", "bar", ""], rows)


def bar_lines(bars: Iterable[Record], small: bool) -> list[str]:
    """The bars, for a terminal."""
    out: list[str] = []
    for bar in bars:
        figure = ("> " if bar["only_bound"] else "") + times(bar["ratio"])
        why = f" ({bar['why']})" if bar["why"] else ""
        what = f"{bar['work']}: {bar['what']}"
        verdict = f"({bar['verdict']}; small size)" if small else bar["verdict"]
        out.append(f"  {what:<88} {figure:>9}  bar: {bar['bar']:<15} {verdict}{why}")
    return out


# ── growth and soak ──────────────────────────────────────────────────────────────────────────


def growth_table(growths: Iterable[Record]) -> str:
    """Our fitted exponents beside the promised ones."""
    rows: list[list[str]] = []
    for growth in growths:
        (static, why_static), (update, why_update) = growth["promised"]["static"], growth["promised"]["update"]
        sizes = [point["given"] for point in growth["points"]]
        rows.append(
            [
                growth["title"],
                f"{sizes[0]} – {sizes[-1]}",
                fitted(exponent(series(growth, "static", OURS))),
                f"{static:g} ({why_static})",
                fitted(exponent(series(growth, "memory", OURS))),
                fitted(exponent(series(growth, "update", OURS))),
                f"{update:g} ({why_update})",
            ]
        )
    promised = "promised, at most"
    head = ["work", "base facts", "time, fitted", promised, "memory, fitted", "update, fitted", promised]
    return markdown(head, rows)


def fitted(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def soak_table(soaks: Iterable[Record]) -> str:
    rows: list[list[str]] = []
    for soak in soaks:
        if soak["status"] != OK:
            rows.append([soak["title"], unfinished(soak), "", "", "", ""])
            continue
        after = soak["samples"][len(soak["samples"]) // 5]
        last = soak["samples"][-1]
        rows.append(
            [
                f"{soak['title']}, {soak['described']}",
                str(soak["updates"]),
                seconds(soak["seconds"] / soak["updates"]),
                f"{megabytes(after[1])} → {megabytes(last[1])}",
                f"{growth_of(soak, 1) * 100:+.1f} %",
                f"{growth_of(soak, 2) * 100:+.1f} %",
            ]
        )
    head = [
        "work",
        "updates",
        "an update",
        "memory after a fifth, at the end",
        "growth",
        "growth of Python's blocks",
    ]
    return markdown(head, rows)
