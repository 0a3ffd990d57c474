"""The figures, in one style."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evomeans.wording import how_to_install
from lab.paper.analysis import averaged, in_order
from lab.paper.experiment import Row
from lab.paper.methods import HG_DEEP, HG_FAST, HG_MEANS
from lab.paper.printed import printed_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, PAPER = "#0b6e4f", "#9a9a9a"
COLOURS = {
    HG_DEEP: "#0b3d2e",
    HG_MEANS: OURS,
    HG_FAST: "#6abf69",
    "K-means repeated": "#b0b0b0",
    "K-means++ repeated": "#6f6f6f",
    "breathing k-means": "#e07a1f",
    "FLS++": "#e8919b",
    "random swap": "#2a6fbb",
    "SAGA": "#8e4fa8",
    "GKM": "#d9a400",
    "MGKM": "#a0762a",
    "MS-MGKM": "#6b4f1d",
    "bkmeans": "#f2b27a",
    "flspp": "#c23b4b",
}
# A gap below this is drawn as this one, on axes that are logarithmic.
SMALLEST_GAP = 1e-3
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "savefig.dpi": 130,
}


def pyplot() -> Any:
    """Import matplotlib, which writes files without a screen; not everyone has it."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise SystemExit(f"Figures need matplotlib: {how_to_install('plot')}.") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


@contextmanager
def panels(titles: Sequence[str], path: Path, across: int = 4) -> Iterator[list[Axes]]:
    """Give one panel per title, and write the figure at the end."""
    across = min(across, len(titles))
    down = ceil(len(titles) / across)
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            down, across, figsize=(max(3.1 * across, 5), 2.5 * down), squeeze=False
        )
        used = list(axes.flat)[: len(titles)]
        for panel, title in zip(used, titles, strict=True):
            panel.set_title(title, loc="left")
        for panel in list(axes.flat)[len(titles) :]:
            panel.set_visible(False)
        yield used
        handles: dict[str, Any] = {}
        for panel in used:
            for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        # A label with its handle takes less than 2.6 inches.
        width, height = figure.get_size_inches()
        columns = max(1, min(len(handles), int(width / 2.6)))
        below = 0.28 * ceil(len(handles) / columns)
        figure.set_size_inches(width, height + below)
        figure.legend(list(handles.values()), list(handles), loc="lower center", ncols=columns)
        figure.tight_layout(rect=(0, below / (height + below), 1, 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        plt.close(figure)


def draw_times(rows: Sequence[Row], baselines: Sequence[Row], path: Path) -> None:
    """CPU time against the number of clusters, ours and the paper's, a panel per data set.

    The paper prints no times of its baselines by number of clusters; ours are drawn if measured.
    """
    datasets = [
        name
        for name in in_order(row["dataset"] for row in rows)
        if len({row["m"] for row in rows if row["dataset"] == name}) > 1
    ]
    with panels(datasets, path, across=3) as axes:
        for panel, dataset in zip(axes, datasets, strict=True):
            for method, number, colour in ((HG_MEANS, 6, OURS), (HG_FAST, 7, COLOURS[HG_FAST])):
                there = [row for row in printed_table(number) if row["dataset"] == dataset]
                panel.plot(
                    [row["m"] for row in there],
                    [row["seconds"] for row in there],
                    color=PAPER,
                    linestyle="-" if method == HG_MEANS else ":",
                    marker="o",
                    markersize=3,
                    label=f"{method}, the paper's machine",
                )
                panel.plot(
                    *times_of(rows, method, dataset),
                    color=colour,
                    marker="o",
                    markersize=3,
                    label=f"{method}, evomeans",
                )
            for method in in_order(row["method"] for row in baselines):
                panel.plot(
                    *times_of(baselines, method, dataset),
                    color=COLOURS[method],
                    linewidth=1,
                    marker="s",
                    markersize=3,
                    label=f"{method}, evomeans",
                )
            panel.set(yscale="log", xlabel="clusters m", ylabel="CPU seconds")


def times_of(rows: Sequence[Row], method: str, dataset: str) -> tuple[list[int], list[float]]:
    """Return the numbers of clusters of a method's runs on a data set, and the CPU seconds."""
    own = [row for row in rows if row["method"] == method and row["dataset"] == dataset]
    times: dict[Any, float] = averaged(own, "cpu_s", lambda row: row["m"])
    clusters = sorted(times)
    return clusters, [times[m] for m in clusters]


def draw_anytime(rows: Sequence[Row], methods: Sequence[str], path: Path) -> None:
    """Mean gap against CPU time, a panel per problem."""
    setups = in_order(f"{row['dataset']}:{row['m']}" for row in rows)
    with panels(setups, path) as axes:
        for panel, setup in zip(axes, setups, strict=True):
            own = [row for row in rows if f"{row['dataset']}:{row['m']}" == setup]
            seeds = len({row["seed"] for row in own})
            for method in methods:
                curve = [row for row in own if row["method"] == method]
                times = sorted({row["y"] for row in curve})
                gaps = [[row["gap"] for row in curve if row["y"] == y] for y in times]
                # A mean over some of the seeds only would jump when the others join.
                points = [
                    (y, max(statistics.fmean(values), SMALLEST_GAP))
                    for y, values in zip(times, gaps, strict=True)
                    if len(values) == seeds
                ]
                panel.plot(
                    [y for y, _ in points],
                    [gap for _, gap in points],
                    color=COLOURS[method],
                    linewidth=2.2 if method == HG_MEANS else 1.3,
                    zorder=3 if method == HG_MEANS else 2,
                    label=method,
                )
            panel.set(
                xscale="log", yscale="log", xlabel="CPU time (scikit-learn runs)", ylabel="gap (%)"
            )


def draw_reliability(rows: Sequence[Row], path: Path) -> None:
    """All runs of each method as points, a panel per problem."""
    setups = in_order(f"{row['dataset']}:{row['m']}" for row in rows)
    methods = in_order(row["method"] for row in rows)
    with panels(setups, path, across=5) as axes:
        for panel, setup in zip(axes, setups, strict=True):
            for position, method in enumerate(methods):
                gaps = sorted(
                    max(row["gap"], SMALLEST_GAP)
                    for row in rows
                    if row["method"] == method and f"{row['dataset']}:{row['m']}" == setup
                )
                spread = [position + 0.5 * (i + 0.5) / len(gaps) - 0.25 for i in range(len(gaps))]
                panel.plot(
                    spread,
                    gaps,
                    linestyle="none",
                    marker="o",
                    markersize=2.6,
                    color=COLOURS.get(method, "#444444"),
                    label=method,
                )
            panel.set(yscale="log", xticks=[], ylabel="gap (%)")
            panel.grid(axis="x", visible=False)
