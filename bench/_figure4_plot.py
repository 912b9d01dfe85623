"""The plot of `bench/figure4.py`: steps per update against size, log-log.

One panel per query; PNG and SVG.
"""

from __future__ import annotations

from pathlib import Path

STYLES = {
    "recompute": ("#bbbbbb", "x", "recomputation"),
    "delta": ("#b3541e", "o", "first-order delta"),
    "view_tree": ("#777777", "s", "view tree (F-IVM)"),
    "calibrated": ("#5b8c5a", "^", "calibrated bags (CROWN where acyclic)"),
    "heavy_light": ("#c9a227", "P", "heavy/light (IVM^ε)"),
    "generations": ("#14509e", "D", "age generations (MVIVM)"),
    "auto": ("#2b2b2b", ".", "auto"),
}


def write(folder: Path, found: dict[str, dict[str, list[tuple[int, float]]]], promised: dict[str, str]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, panels = plt.subplots(2, 5, figsize=(15, 6.2), sharex=True, sharey=True)
    for panel, (name, series) in zip(panels.flat, found.items(), strict=True):
        for strategy, points in series.items():
            colour, marker, label = STYLES[strategy]
            panel.loglog(
                [x for x, _ in points],
                [y for _, y in points],
                color=colour,
                marker=marker,
                markersize=4,
                label=label,
                linewidth=1.8 if strategy == "generations" else 1.1,
            )
        panel.set_title(f"{name}   MVIVM promises D^{promised[name]}", fontsize=9)
        panel.grid(True, which="major", linewidth=0.4, alpha=0.5)
    for panel in panels[-1]:
        panel.set_xlabel("tuples")
    for panel in panels[:, 0]:
        panel.set_ylabel("steps per update")
    handles, labels = panels.flat[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=8, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "figure4.png", dpi=130)
    figure.savefig(folder / "figure4.svg")
