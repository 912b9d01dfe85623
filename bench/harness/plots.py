"""Plots from results, PNG and SVG: times, updates, growth, memory of a soak."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil
from pathlib import Path
from typing import Any

from everlog.bench.harness.figures import best_static, bound, least, per_update, solve, total
from everlog.bench.harness.growth import exponent, series
from everlog.bench.harness.markdown_tables import title
from everlog.bench.harness.runs import OK, OURS, Record

_COLOURS = {
    "everlog": "#14509e",
    "everlog living": "#6f9bd1",
    "everlog delta": "#8fb4dd",
    "everlog generations": "#3f7cc0",
    "everlog tc_witness": "#5b8cc8",
    "clingo": "#b3541e",
    "duckdb": "#c9a227",
    "duckdb rounds": "#e3cd7d",
    "networkx": "#8a6fb0",
    "pathway": "#5b8c5a",
    "polars": "#7a5c3a",
    "python": "#777777",
    "rustworkx": "#b59ad6",
    "souffle": "#a03050",
    "souffle compiled": "#d07090",
    "sqlite": "#2f8f8f",
}


def write(folder: Path, results: Record) -> list[Path]:
    """All plots that the results have data for."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "everlog"}
    )
    folder.mkdir(parents=True, exist_ok=True)
    works, growths, soaks = results["work"], results.get("growth", ()), results.get("soak", ())
    drawn: dict[str, Any] = {
        "static": _bars(pyplot, [w for w in works if "static" in w], _static_figures),
        "updates": _bars(pyplot, [w for w in works if "living" in w], _update_figures),
        "growth-time": _growth(pyplot, growths, "static", "seconds"),
        "growth-memory": _growth(pyplot, growths, "memory", "megabytes above start"),
        "growth-update": _growth(pyplot, growths, "update", "seconds of a single update"),
        "soak": _soak(pyplot, [soak for soak in soaks if soak["status"] == OK]),
    }
    out: list[Path] = []
    for name, figure in drawn.items():
        if figure is not None:
            for path, more in (
                (folder / f"{name}.png", {"dpi": 120}),
                (folder / f"{name}.svg", {"metadata": {"Date": None}}),
            ):
                figure.savefig(path, **more)
                out.append(path)
            pyplot.close(figure)
    return out


def _panels(pyplot: Any, number: int, columns: int, height: float, **shared: bool) -> tuple[Any, list[Any]]:
    rows = ceil(number / columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(3.6 * columns, height * rows), squeeze=False, **shared)
    for axis in axes.flat[number:]:
        axis.set_visible(False)
    return figure, list(axes.flat[:number])


# ── side by side ─────────────────────────────────────────────────────────────────────────────

Bar = tuple[str, float, bool]  # side, seconds, whether it is only a bound


def _static_figures(work: Record) -> list[Bar]:
    out: list[Bar] = []
    for record in work["static"]:
        found, limit = least(record, total), bound(record)
        if found is not None:
            out.append((record["side"], found, False))
        elif limit is not None:
            out.append((record["side"], limit, True))
    return out


def _update_figures(work: Record) -> list[Bar]:
    """Single updates of the first stream, and the fastest recomputation."""
    plays = [play for record in work["living"] for run in record["runs"] for play in run["plays"]]
    if not plays:
        return []
    found = [(r["side"], per_update(r, plays[0]["stream"], 1)) for r in work["living"]]
    out: list[Bar] = [(side, value, False) for side, value in found if value is not None]
    again = best_static(work.get("static"), solve)
    return out if again is None else [*out, (f"recomputed by {again[0]}", again[1], False)]


def _bars(pyplot: Any, works: list[Record], figures: Callable[[Record], list[Bar]]) -> Any:
    if not works:
        return None
    figure, axes = _panels(pyplot, len(works), min(4, len(works)), 2.2)
    for axis, work in zip(axes, works, strict=True):
        bars = sorted(figures(work), key=lambda bar: -bar[1])
        names = [title(side) if not side.startswith("recomputed") else side for side, _, _ in bars]
        colours = [_COLOURS.get(side, "#bbbbbb") for side, _, _ in bars]
        drawn = axis.barh(range(len(bars)), [value for _, value, _ in bars], color=colours)
        for patch, (_, value, is_bound) in zip(drawn, bars, strict=True):
            if is_bound:
                patch.set_hatch("///")
                patch.set_alpha(0.5)
            told = f"{'> ' if is_bound else ''}{value:.3g} s" if value >= 0.1 else f"{value * 1e3:.3g} ms"
            axis.text(value, patch.get_y() + patch.get_height() / 2, f" {told}", va="center", fontsize=6)
        axis.set_yticks(range(len(bars)), [name[:34] for name in names], fontsize=6)
        axis.set_xscale("log")
        axis.margins(x=0.25)
        axis.set_title(f"{work['title']}\n{work['described']}", fontsize=7)
        axis.tick_params(axis="x", labelsize=6)
    figure.tight_layout()
    return figure


# ── growth ───────────────────────────────────────────────────────────────────────────────────


def _growth(pyplot: Any, growths: Iterable[Record], kind: str, unit: str) -> Any:
    growths = list(growths)
    if not growths:
        return None
    figure, axes = _panels(pyplot, len(growths), min(4, len(growths)), 2.4)
    labels: dict[str, Any] = {}
    for axis, growth in zip(axes, growths, strict=True):
        names = dict.fromkeys(r["side"] for p in growth["points"] for r in [*p["static"], *p["living"]])
        for side in names:
            points = series(growth, kind, side)
            if points:
                (line,) = axis.loglog(
                    [x for x, _ in points],
                    [y for _, y in points],
                    color=_COLOURS.get(side, "#bbbbbb"),
                    marker="o",
                    markersize=3,
                    linewidth=1.8 if side == OURS else 1.0,
                )
                labels.setdefault(title(side), line)
        fit = exponent(series(growth, kind, OURS))
        promised = "" if kind == "memory" else f", promised ≤ {growth['promised'][kind][0]:g}"
        axis.set_title(f"{growth['title']}\nexponent {'–' if fit is None else f'{fit:.2f}'}{promised}", fontsize=7)
        axis.grid(True, which="major", linewidth=0.4, alpha=0.5)
        axis.tick_params(labelsize=6)
        axis.set_xlabel("base facts", fontsize=6)
        axis.set_ylabel(unit, fontsize=6)
    figure.legend(labels.values(), labels.keys(), loc="lower center", ncol=6, frameon=False)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    return figure


# ── soak ─────────────────────────────────────────────────────────────────────────────────────


def _soak(pyplot: Any, soaks: list[Record]) -> Any:
    if not soaks:
        return None
    figure, axes = _panels(pyplot, len(soaks), 3, 2.6)
    for axis, soak in zip(axes, soaks, strict=True):
        axis.plot([n for n, _, _ in soak["samples"]], [mb for _, mb, _ in soak["samples"]], color=_COLOURS[OURS])
        axis.set_ylim(bottom=0)
        axis.set_title(f"{soak['title']}\n{soak['described']}", fontsize=7)
        axis.set_xlabel("updates")
        axis.set_ylabel("megabytes")
    figure.tight_layout()
    return figure
