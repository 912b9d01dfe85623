"""Figures of a record: the least of its runs, their spread, ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from everlog.bench.harness.runs import OK, Record


def total(run: Record) -> float:
    """Seconds from the files of program and facts to the answer."""
    return float(run["load"]) + float(run.get("solve", 0.0))


def solve(run: Record) -> float:
    """Seconds of the computation without reading files."""
    return float(run["solve"]) or float(run["load"])


def least(record: Record | None, of: Callable[[Record], float] = total) -> float | None:
    """The least of the runs, or None if there are none."""
    if record is None or record["status"] != OK or not record["runs"]:
        return None
    return min(map(of, record["runs"]))


def spread(record: Record, of: Callable[[Record], float] = total) -> float:
    """The slowest run against the fastest, as a share of the fastest.

    >>> spread({"runs": [{"load": 2.0}, {"load": 3.0}]})
    0.5
    """
    values = list(map(of, record["runs"]))
    return (max(values) - min(values)) / min(values) if min(values) else 0.0


def bound(record: Record | None) -> float | None:
    """The time limit that a side exceeded."""
    return float(record["bound"]) if record is not None and record["status"] == "took longer" else None


def record_of(records: Iterable[Record] | None, side: str) -> Record | None:
    return next((record for record in records or () if record["side"] == side), None)


def work_of(results: Record, workload: str) -> Record:
    """The record of a workload; empty if it was not measured."""
    found = (work for work in results["work"] if work["workload"] == workload)
    return next(found, {"workload": workload})


def play_of(run: Record, stream: str, batch: int | None) -> Record | None:
    """One stream of a run; batch None selects the one that is not 1."""
    for play in run["plays"]:
        if play["stream"] == stream and (play["batch"] == batch or (batch is None and play["batch"] > 1)):
            found: Record = play
            return found
    return None


def per_update(record: Record | None, stream: str, batch: int | None, until: str = "seconds") -> float | None:
    """Mean seconds per update of a run; the least of the runs.

    `until` is "seconds", until every change is reported, or "current", until the answer is ready.
    """
    if record is None or record["status"] != OK:
        return None
    plays = [play_of(run, stream, batch) for run in record["runs"]]
    means = [play.get(until, play["seconds"]) / play["counted"] for play in plays if play and play["counted"]]
    return min(means, default=None)


def best_play(record: Record, stream: str, batch: int | None) -> Record | None:
    """The run of a stream with the least mean."""
    plays = [play for run in record["runs"] if (play := play_of(run, stream, batch)) is not None]
    return min(plays, key=lambda play: play["seconds"] / play["counted"], default=None)


def against_ours(play: Record) -> float | None:
    """A side's seconds over ours, of the same steps in the same round."""
    return ratio(play["seconds"], play["ours"])


def amortized(play: Record, ours: Record | None) -> float | None:
    """A side's mean over our mean of the whole stream."""
    if ours is None:
        return None
    return ratio(play["seconds"] / play["counted"], ours["seconds"] / ours["counted"])


def compared_with(play: Record, ours: Record | None) -> float | None:
    """How a stream is compared: amortized if hubs are toggled, else step by step."""
    if play["stream"] == "hubs":
        return amortized(play, ours)
    found = against_ours(play)
    return amortized(play, ours) if found is None else found


def best_static(
    records: Iterable[Record] | None, of: Callable[[Record], float], but: Iterable[str] = ()
) -> tuple[str, float] | None:
    """The side that computes it fastest."""
    found = [(least(r, of), r["side"]) for r in records or () if r["side"] not in set(but)]
    quickest = min(((seconds, side) for seconds, side in found if seconds is not None), default=None)
    return None if quickest is None else (quickest[1], quickest[0])


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    return None if numerator is None or not denominator else numerator / denominator


def seconds(value: float | None) -> str:
    """Seconds as text.

    >>> seconds(0.0000021), seconds(0.0123), seconds(12.345), seconds(None)
    ('2.1 µs', '12.3 ms', '12.3 s', '–')
    """
    if value is None:
        return "–"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale or unit == "µs":
            scaled = value / scale
            return f"{scaled:.{0 if scaled >= 100 else 1 if scaled >= 10 else 2 if unit == 's' else 1}f} {unit}"
    raise AssertionError


def times(value: float | None) -> str:
    """A ratio as text.

    >>> times(0.513), times(3.14), times(42.4), times(1234.0)
    ('0.51 ×', '3.1 ×', '42 ×', '1230 ×')
    """
    if value is None:
        return "–"
    if value >= 1000:
        return f"{round(value, -1):.0f} ×"
    return f"{value:.0f} ×" if value >= 10 else f"{value:.1f} ×" if value >= 1 else f"{value:.2f} ×"
