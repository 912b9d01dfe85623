"""`everlog bench`: measure, print, and save."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from everlog.bench.harness import bars, markdown_tables
from everlog.bench.harness.discovery import installed, sides, workloads
from everlog.bench.harness.growth import grown
from everlog.bench.harness.jobs import Wanted, all_plays, work
from everlog.bench.harness.machine import load_average, machine
from everlog.bench.harness.markdown_page import rewritten
from everlog.bench.harness.runs import FAILED, OURS, WRONG, Limits, Record
from everlog.bench.harness.soak import UPDATES, soaks
from everlog.bench.harness.workload import Workload

PARTS = {
    "static": "computed once, against all others",
    "updates": "streams of updates, against those that follow them",
    "growth": "time and memory against size, and fitted exponents",
    "soak": f"{UPDATES} updates at constant size: does memory grow?",
    "bars": "the parts of static and updates that the bars need",
}
_ALL = ("static", "updates", "growth", "soak")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `everlog bench`."""
    add = parser.add_argument
    add("--small", action="store_true", help="small sizes, for a quick check")
    add("--only", nargs="+", metavar="WHAT", default=[], help="workloads or parts; see --list")
    add(
        "--against",
        nargs="+",
        metavar="SIDE",
        default=[],
        help="competitors; see --list; `none` measures everlog alone",
    )
    add("--json", metavar="FILE", help="write all figures to this file")
    add("--merge", action="store_true", help="keep the figures in FILE of parts that are not measured now")
    add("--plot", metavar="FOLDER", help="write plots to this folder, PNG and SVG (needs matplotlib)")
    add("--page", metavar="FILE", help="write tables between the markers of a Markdown page")
    add(
        "--from",
        metavar="FILE",
        dest="source",
        help="measure nothing; make plots and pages from an earlier --json",
    )
    add("--rounds", type=int, default=2, metavar="N", help="number of rounds (2)")
    add("--limit", type=float, metavar="S", help="time limit of a side in seconds (20; for bars alone 120)")
    add("--budget", type=float, metavar="S", help="seconds of each stream that are timed (0.5; for bars alone 4)")
    add("--memory", type=float, default=8.0, metavar="GB", help="memory limit of a side in gigabytes (8)")
    add("--updates", type=int, default=None, metavar="N", help=f"updates of the soak ({UPDATES})")
    add("--list", action="store_true", help="show workloads, parts and competitors")


def run(asked: argparse.Namespace) -> int:
    if asked.list:
        print(listing())
        return 0
    if asked.source is not None:
        return written(asked, json.loads(Path(asked.source).read_text(encoding="utf-8")))
    known = [*workloads(), *PARTS]
    for what, names, there in (
        ("workload or part", asked.only, known),
        ("competitor", [name for name in asked.against if name != "none"], list(sides())),
    ):
        unknown = [name for name in names if name not in there]
        if unknown:
            print(f"error: no {what} {', '.join(unknown)}; there are {', '.join(there)}", file=sys.stderr)
            return 2
    try:
        results = measured(asked)
    except KeyboardInterrupt:
        print("interrupted; the measurements so far are kept", file=sys.stderr)
        return 130
    written(asked, results)
    return 1 if problems(results) else 0


# ── measuring ────────────────────────────────────────────────────────────────────────────────


def measured(asked: argparse.Namespace) -> Record:
    """All requested measurements; saved after each workload."""
    limits = limits_of(asked)
    here = chosen_sides(asked.against)
    results = started(asked, limits)
    parts = [name for name in asked.only if name in PARTS] or _ALL
    chosen = [workloads()[n] for n in asked.only if n in workloads()] or list(workloads().values())
    for workload in chosen:
        wanted = wanted_of(workload, parts, asked.small, here)
        if wanted is not None:
            record = work(wanted, limits, tell)
            print(told(record), flush=True)
            put(results["work"], record)
        if "growth" in parts:
            record = grown(workload, asked.small, here, limits, tell)
            print(markdown_tables.growth_table([record]) + "\n", flush=True)
            put(results["growth"], record)
        save(asked, results)
    if "soak" in parts:
        updates = asked.updates or (2000 if asked.small else UPDATES)
        results["soak"] = soaks(updates, asked.small, limits, tell)
        print(markdown_tables.soak_table(results["soak"]) + "\n")
    results["bars"] = [bars.read(bar, results) for bar in bars.BARS]
    results["load_average"].append(load_average())
    save(asked, results)
    if not asked.only or "bars" in asked.only:
        print("── bars ──", *markdown_tables.bar_lines(results["bars"], asked.small), sep="\n")
    return results


def limits_of(asked: argparse.Namespace) -> Limits:
    """The limits; longer ones if there are few measurements."""
    limit, budget = (120.0, 4.0) if "bars" in asked.only else (20.0, 0.5)
    rounds = 1 if asked.small else asked.rounds
    return Limits(asked.limit or limit, asked.budget or budget, asked.memory, rounds)


def tell(line: str) -> None:
    print(f"── {line} ──", flush=True)


def put(records: list[Record], record: Record) -> None:
    """Replace a workload's earlier record, keeping its other parts, or append.

    >>> sides = [{"side": "a", "n": 1}, {"side": "b", "n": 2}]
    >>> records = [{"workload": "w", "size": 1, "static": sides}]
    >>> put(records, {"workload": "w", "size": 1, "static": [{"side": "a", "n": 3}]})
    >>> records[0]["static"]
    [{'side': 'a', 'n': 3}, {'side': 'b', 'n': 2}]
    """
    for place, before in enumerate(records):
        if before["workload"] == record["workload"]:
            if before.get("size") == record.get("size"):
                for part in ("static", "living"):
                    if part in before and part in record:
                        sides = {one["side"]: one for one in (*before[part], *record[part])}
                        record[part] = list(sides.values())
                record = before | record
            records[place] = record
            return
    records.append(record)


def chosen_sides(against: Sequence[str]) -> list[str]:
    """Our sides, and the requested ones that are installed."""
    here, left_out = installed()
    for name, why in left_out.items():
        if not against or name in against:
            print(f"{sides()[name].title} is left out: {why}")
    return [name for name in here if not against or name in against or name == OURS]


def wanted_of(workload: Workload, parts: Sequence[str], small: bool, here: Sequence[str]) -> Wanted | None:
    """The parts of a workload to measure, beside its growth."""
    static: Sequence[str] = here if "static" in parts else ()
    living: Sequence[str] = here if "updates" in parts else ()
    plays = all_plays(workload, small)
    if "bars" in parts:
        stream, followers = bars.LIVING.get(workload.name, ("", ()))
        static = here if workload.name in bars.STATIC else bars.RECOMPUTED.get(workload.name, ())
        living = followers
        plays = [play for play in plays if play[0] == stream]
    static = [name for name in static if name in here and sides()[name].static is not None]
    living = [name for name in living if name in here and sides()[name].living is not None]
    if not static and not living:
        return None
    return Wanted(workload, workload.small if small else workload.large, static, living, plays if living else ())


def started(asked: argparse.Namespace, limits: Limits) -> Record:
    here, left_out = installed()
    results: Record = {
        "format": 1,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "small": asked.small,
        "machine": machine(),
        "load_average": [load_average()],
        "limits": {"seconds": limits.seconds, "budget": limits.budget, "gigabytes": limits.gigabytes},
        "sides": {name: {"title": sides()[name].title, "version": version} for name, version in here.items()},
        "left_out": left_out,
        "work": [],
        "growth": [],
        "soak": [],
        "bars": [],
    }
    if asked.merge and asked.json is not None and Path(asked.json).exists():
        before = json.loads(Path(asked.json).read_text(encoding="utf-8"))
        if before.get("small") == asked.small:
            results |= {key: before[key] for key in ("work", "growth", "soak", "load_average")}
            results["load_average"].append(load_average())
    return results


def save(asked: argparse.Namespace, results: Record) -> None:
    if asked.json is not None:
        path = Path(asked.json)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_text(results), encoding="utf-8")


def as_text(results: Record) -> str:
    """JSON with a line for each record, so that versions can be compared.

    >>> print(as_text({"format": 1, "work": [{"a": 1}, {"b": 2}]}))
    {
    "format": 1,
    "work": [
     {"a": 1},
     {"b": 2}
    ]
    }
    <BLANKLINE>
    """
    lines: list[str] = []
    for key, value in results.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n " + ",\n ".join(json.dumps(item, ensure_ascii=False) for item in value) + "\n]"
        lines.append(f"{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


# ── output ───────────────────────────────────────────────────────────────────────────────────


def told(record: Record) -> str:
    """The tables of a workload, for a terminal."""
    parts: list[str] = []
    if "static" in record:
        parts += [markdown_tables.static_table(record), *markdown_tables.refused(record, False)]
    if "living" in record:
        parts += [
            markdown_tables.loads_table(record),
            markdown_tables.living_table(record),
            *markdown_tables.refused(record, True),
        ]
        parts += [markdown_tables.recomputation(record)]
    return "\n".join(part for part in parts if part) + "\n"


def written(asked: argparse.Namespace, results: Record) -> int:
    """Write plots and pages."""
    if asked.plot is not None:
        try:
            from everlog.bench.harness import plots

            plots.write(Path(asked.plot), results)
        except ImportError:
            print("error: plots need matplotlib: pip install 'everlog[bench]'", file=sys.stderr)
            return 1
    if asked.page is not None:
        page = Path(asked.page)
        page.write_text(rewritten(page.read_text(encoding="utf-8"), results), encoding="utf-8")
    return 0


def problems(results: Record) -> list[str]:
    """Wrong answers and failures: then the exit status is 1."""
    works = [*results["work"], *(point | g for g in results["growth"] for point in g["points"])]
    found = [
        f"{record['workload']}, {markdown_tables.title(side['side'])}: {side['status']}: {side.get('why', '')}"
        for record in works
        for side in [*record.get("static", ()), *record.get("living", ())]
        if side["status"] in (WRONG, FAILED)
    ]
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    return found


def listing() -> str:
    here, left_out = installed()
    lines = ["workloads:"]
    lines += [f"  {w.name:<18} {w.title}: {w.describe(w.large)}" for w in workloads().values()]
    lines += ["parts:", *(f"  {name:<18} {what}" for name, what in PARTS.items())]
    lines += ["competitors, and ours:"]
    for name, side in sides().items():
        known = here.get(name) or f"– left out: {left_out[name]}"
        lines.append(f"  {name:<18} {side.title} {known}")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="everlog bench")
    arguments(parser)
    return run(parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(main())
