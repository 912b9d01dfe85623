"""`everlog bench`: measure, tell, and write down.

Reads: everything in bench.harness.  Read by: bench/__main__.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from everlog.bench.harness import bars, tables
from everlog.bench.harness.catalogue import installed, sides, workloads
from everlog.bench.harness.jobs import Wanted, all_plays, work
from everlog.bench.harness.machine import load_average, machine
from everlog.bench.harness.model import Workload
from everlog.bench.harness.runs import FAILED, OURS, WRONG, Limits, Record

PARTS = {
    "static": "computed once, against all others",
    "updates": "streams of updates, against those that follow them",
    "bars": "just what the bars need",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `everlog bench`."""
    parser.add_argument("--small", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--only", nargs="+", metavar="WHAT", default=[], help="workloads, or parts (see --list)")
    parser.add_argument(
        "--against", nargs="+", metavar="SIDE", default=[], help="competitors; `none` for ours alone"
    )
    parser.add_argument("--json", metavar="FILE", help="write results there")
    parser.add_argument("--merge", action="store_true", help="keep what FILE has of workloads not measured now")
    parser.add_argument("--plot", metavar="FOLDER", help="write plots there, PNG and SVG (needs matplotlib)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often sides take turns (3)")
    parser.add_argument(
        "--limit", type=float, default=120.0, metavar="S", help="seconds that a side may take (120)"
    )
    parser.add_argument("--budget", type=float, default=4.0, metavar="S", help="seconds of each stream (4)")
    parser.add_argument("--memory", type=float, default=8.0, metavar="GB", help="gigabytes of a side (8)")
    parser.add_argument("--list", action="store_true", help="the workloads, parts and competitors there are")


def run(asked: argparse.Namespace) -> int:
    if asked.list:
        print(listing())
        return 0
    known = [*workloads(), *PARTS]
    for what, names, there in (
        ("workload or part", asked.only, known),
        ("competitor", [n for n in asked.against if n != "none"], list(sides())),
    ):
        unknown = [name for name in names if name not in there]
        if unknown:
            print(f"error: no {what} {', '.join(unknown)}; there are {', '.join(there)}", file=sys.stderr)
            return 2
    limits = Limits(asked.limit, asked.budget, asked.memory, 1 if asked.small else asked.rounds)
    results = started(asked.small, limits)
    for wanted in all_wanted(asked, chosen_sides(asked.against)):
        record = work(wanted, limits, tell)
        print(told(record), flush=True)
        results["work"].append(record)
        save(asked, results)
    results["bars"] = [bars.read(bar, results) for bar in bars.BARS]
    results["load_average"].append(load_average())
    save(asked, results)
    if not asked.only or "bars" in asked.only:
        print("── bars ──", *tables.bar_lines(results["bars"]), sep="\n")
    return 1 if problems(results) else 0


def tell(line: str) -> None:
    print(f"── {line} ──", flush=True)


def chosen_sides(against: Sequence[str]) -> list[str]:
    """Ours, and those asked for that are here."""
    here, left_out = installed()
    if against:
        here = {name: version for name, version in here.items() if name in against or name == OURS}
    for name, why in left_out.items():
        if not against or name in against:
            print(f"{sides()[name].title} is left out: {why}")
    return list(here)


def all_wanted(asked: argparse.Namespace, here: Sequence[str]) -> list[Wanted]:
    parts = [name for name in asked.only if name in PARTS] or ["static", "updates"]
    names = [name for name in asked.only if name in workloads()] or list(workloads())
    chosen = [workloads()[name] for name in names]
    if "bars" in parts:
        return [wanted for workload in chosen if (wanted := for_bars(workload, asked.small, here)) is not None]
    return [
        Wanted(
            workload,
            workload.small if asked.small else workload.large,
            asked.small,
            [n for n in here if sides()[n].static is not None] if "static" in parts else (),
            [n for n in here if sides()[n].living is not None] if "updates" in parts else (),
            all_plays(workload, asked.small) if "updates" in parts else (),
        )
        for workload in chosen
    ]


def for_bars(workload: Workload, small: bool, here: Sequence[str]) -> Wanted | None:
    """What the bars need of a workload, if anything."""
    name = workload.name
    stream, living = bars.LIVING.get(name, ("", ()))
    static = here if name in bars.STATIC else bars.RECOMPUTED.get(name, ())
    if not static and not living:
        return None
    return Wanted(
        workload,
        workload.small if small else workload.large,
        small,
        [n for n in static if n in here and sides()[n].static is not None],
        [n for n in living if n in here],
        [play for play in all_plays(workload, small) if play[0] == stream],
    )


def started(small: bool, limits: Limits) -> Record:
    here, left_out = installed()
    return {
        "format": 1,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "small": small,
        "machine": machine(),
        "load_average": [load_average()],
        "limits": {"seconds": limits.seconds, "budget": limits.budget, "gigabytes": limits.gigabytes},
        "sides": {name: {"title": sides()[name].title, "version": version} for name, version in here.items()},
        "left_out": left_out,
        "work": [],
        "bars": [],
    }


def save(asked: argparse.Namespace, results: Record) -> None:
    """Written after each workload, so that an interrupted run is not lost."""
    if asked.json is None:
        return
    path = Path(asked.json)
    kept = dict(results)
    if asked.merge and path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        now = {record["workload"] for record in results["work"]}
        kept["work"] = [r for r in before["work"] if r["workload"] not in now] + results["work"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def told(record: Record) -> str:
    """The tables of a workload, for a terminal."""
    parts: list[str] = []
    if "static" in record:
        parts += [tables.static_table(record)]
    if "living" in record:
        parts += [tables.loads_table(record), tables.living_table(record), tables.recomputation(record)]
    return "\n".join(part for part in parts if part) + "\n"


def problems(results: Record) -> list[str]:
    """Wrong answers and failures: then the exit status is 1."""
    found = [
        f"{record['workload']}, {tables.title(side['side'])}: {side['status']}: {side.get('why', '')}"
        for record in results["work"]
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
    lines += ["competitors:"]
    for name, side in sides().items():
        lines.append(
            f"  {name:<18} {side.title} {here[name] if name in here else '– left out: ' + left_out[name]}"
        )
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="everlog bench")
    arguments(parser)
    return run(parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(main())
