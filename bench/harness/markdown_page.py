"""The generated parts of a page: tables between two markers.

    <!-- generated: bars -->
    …
    <!-- end -->

Parts are `machine`, `bars`, `static`, `updates`, `growth`, `soak`; `static NAME` and `updates NAME`
are of one workload.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from everlog.bench.harness import markdown_tables
from everlog.bench.harness.figures import (
    best_play,
    best_static,
    compared_with,
    least,
    ratio,
    record_of,
    seconds,
    solve,
    times,
)
from everlog.bench.harness.runs import LONG, OK, OURS, Record

_PART = re.compile(r"(<!-- generated: ([^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


class NoSuchPart(ValueError):
    """A marker names an unknown part."""


def rewritten(text: str, results: Record) -> str:
    """The page with every part generated again.

    >>> print(rewritten("<!-- generated: bars -->\\nold\\n<!-- end -->", {"bars": []}))
    <!-- generated: bars -->
    <BLANKLINE>
    | work | ratio | measured | bar |  |
    |---|---|---|---|---|
    <BLANKLINE>
    <!-- end -->
    """
    return _PART.sub(lambda found: f"{found[1]}\n{part(found[2], results)}\n\n{found[3]}", text)


def part(name: str, results: Record) -> str:
    kind, _, workload = name.partition(" ")
    if kind not in _PARTS:
        raise NoSuchPart(f"no part `{name}`; there are {', '.join(_PARTS)}")
    chosen = [w for w in results.get("work", ()) if not workload or w["workload"] == workload]
    if workload and not chosen:
        return "(not measured)"
    return _PARTS[kind](results | {"work": chosen})


def _machine(results: Record) -> str:
    here = results["machine"]
    versions = dict.fromkeys(f"{side['title']} {side['version']}" for side in results["sides"].values())
    left_out = [f"{name}: {why}" for name, why in results["left_out"].items()]
    low, high = min(results["load_average"]), max(results["load_average"])
    lines = [
        f"{results['made']}, {here['processor']}, {here['cores']} cores, {here['memory_gb']} GB, {here['system']},"
        f" {here['python']}; load average {low} – {high}" + ("; small sizes" if results["small"] else "") + ".",
        f"Measured: {', '.join(versions)}.",
    ]
    return "\n\n".join([*lines, f"Left out: {'; '.join(left_out)}."] if left_out else lines)


def _bars(results: Record) -> str:
    return markdown_tables.bars_table(results["bars"])


def _static(results: Record) -> str:
    """A table for each workload, or one line each if there are many."""
    works = [work for work in results["work"] if "static" in work]
    if len(works) == 1:
        return markdown_tables.static_table(works[0])
    return summary(works)


def summary(works: list[Record]) -> str:
    """Every side's time over ours, a row for each workload."""
    names = [n for n in dict.fromkeys(r["side"] for w in works for r in w["static"]) if n != OURS]
    rows: list[list[str]] = []
    for work in works:
        ours = least(record_of(work["static"], OURS))
        cells: list[str] = []
        for name in names:
            record = record_of(work["static"], name)
            if record is None:
                cells.append("")
            elif record["status"] == LONG:
                cells.append(f"> {times(ratio(record['bound'], ours))}")
            else:
                cells.append(times(ratio(least(record), ours)) if record["status"] == OK else record["status"])
        rows.append([f"{work['title']}, {work['described']}", seconds(ours), *cells])
    return markdown_tables.markdown(["work", "everlog", *map(markdown_tables.title, names)], rows)


def _updates(results: Record) -> str:
    works = [work for work in results["work"] if "living" in work]
    if len(works) == 1:
        work = works[0]
        return "\n\n".join(
            filter(
                None,
                [
                    markdown_tables.loads_table(work),
                    markdown_tables.living_table(work),
                    markdown_tables.recomputation(work),
                ],
            )
        )
    return updates_summary(works)


def updates_summary(works: list[Record]) -> str:
    """Our latency by stream, and the others' means over ours."""
    names = [n for n in dict.fromkeys(r["side"] for w in works for r in w["living"]) if n != OURS]
    rows: list[list[str]] = []
    for work in works:
        ours = record_of(work["living"], OURS)
        if ours is None or ours["status"] != OK:
            continue
        again = best_static(work.get("static"), solve)
        for play in ours["runs"][0]["plays"]:
            stream, batch = play["stream"], play["batch"]
            best = best_play(ours, stream, batch)
            assert best is not None
            mean = best["seconds"] / best["counted"]
            cells = [_against(record_of(work["living"], name), best) for name in names]
            recomputed = times(again[1] / best["latency"]["mean"]) if again is not None else ""
            latency = best["latency"]
            figures = [seconds(latency["p50"]), seconds(latency["p99"]), f"{1 / mean:,.0f}".replace(",", " ")]
            rows.append([work["title"], stream, str(batch), *figures, *cells, recomputed])
    head = [
        "work",
        "stream",
        "a step",
        "p50",
        "p99",
        "updates/s",
        *map(markdown_tables.title, names),
        "recomputing",
    ]
    return markdown_tables.markdown(head, rows)


def _against(record: Record | None, ours: Record) -> str:
    if record is None:
        return ""
    if record["status"] != OK:
        return markdown_tables.unfinished(record)
    play = best_play(record, ours["stream"], ours["batch"])
    return "" if play is None else times(compared_with(play, ours))


def _growth(results: Record) -> str:
    return markdown_tables.growth_table(results.get("growth", ()))


def _soak(results: Record) -> str:
    return markdown_tables.soak_table(results.get("soak", ()))


_PARTS: dict[str, Callable[[Record], str]] = {
    "machine": _machine,
    "bars": _bars,
    "static": _static,
    "updates": _updates,
    "growth": _growth,
    "soak": _soak,
}
